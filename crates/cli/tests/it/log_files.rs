//! `logging.file`: JSON lines in files that are begun anew, each place at its own level.

use std::fs::{self, File};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::cli::home;
use crate::sessions::Godex;

const CONFIG: &str = "session: {backend: memory}\nmodels: {discover: off}\n";

#[tokio::test]
async fn the_file_and_the_console_have_their_own_levels_and_forms() {
    let logging = "logging: {console: {level: warn, pretty: true}, file: {enabled: true, dir: ./logs, filename: g.log, level: debug}}\n";
    let logging = logging.replace(", pretty: true", "");
    let home = home(&format!("{CONFIG}{logging}"));
    let console = home.path().join("console");
    let godex = Godex::logging_to(home.path(), File::create(&console).unwrap());
    assert_eq!(godex.get("/nothing/here").await.0, 404);
    assert!(godex.end(Signal::TERM).success());
    let text = fs::read_to_string(home.path().join("logs/g.log")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["path"] == "/nothing/here" && line["level"] == "INFO"), "{text}");
    assert!(!fs::read_to_string(&console).unwrap().contains("/nothing/here"));
    // After a restart the same file goes on.
    let godex = Godex::logging_to(home.path(), std::process::Stdio::null());
    assert!(godex.end(Signal::TERM).success());
    let more = fs::read_to_string(home.path().join("logs/g.log")).unwrap();
    assert!(more.len() > text.len() && more.starts_with(&text), "{more}");
}

#[tokio::test]
async fn files_are_begun_anew_and_the_oldest_goes() {
    // A number above a million is bytes, the smallest that there can be.
    let logging =
        "logging: {console: {enabled: false}, file: {enabled: true, dir: logs, max_size: 1048576, max_files: 2}}\n";
    let home = home(&format!("{CONFIG}{logging}"));
    let logs = home.path().join("logs");
    let full = "x".repeat(1_048_500) + "\n";
    fs::create_dir(&logs).unwrap();
    fs::write(logs.join("godex.log"), &full).unwrap();
    fs::write(logs.join("godex.log.1"), "the oldest\n").unwrap();
    let godex = Godex::logging_to(home.path(), std::process::Stdio::null());
    assert_eq!(godex.get("/nothing/here").await.0, 404);
    assert!(godex.end(Signal::TERM).success());
    assert_eq!(fs::read_to_string(logs.join("godex.log.1")).unwrap(), full);
    assert!(fs::read_to_string(logs.join("godex.log")).unwrap().contains("/nothing/here"));
    assert_eq!(fs::read_dir(&logs).unwrap().count(), 2);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_stops_nothing_and_is_counted() {
    let home = home(&format!("{CONFIG}logging: {{file: {{enabled: true, dir: godex.yaml/logs}}}}\n"));
    let godex = Godex::logging_to(home.path(), std::process::Stdio::null());
    assert_eq!(godex.get("/nothing/here").await.0, 404);
    while godex.get("/health").await.1["lost_log_lines"].as_u64().is_none_or(|lost| lost == 0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(godex.end(Signal::TERM).code(), Some(0));
}
