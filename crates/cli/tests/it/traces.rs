//! `godex traces` with a godex that runs, and without one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli::{command, godex, home};
use crate::sessions::Godex;

const SQLITE: &str = "session: {sqlite: {path: data/sessions.db}}\ntrace: {flush_interval_ms: 10}\n";

fn run(home: &Path, args: &[&str]) -> String {
    let (code, out, err) = godex(home, args);
    assert_eq!(code, Some(0), "{args:?}: {err}");
    out
}

/// Asks the demo model.
async fn ask(running: &Godex, input: &str) -> Value {
    let body = json!({"model": "demo", "input": input});
    let answer = running.client.post_json(&format!("{}/v1/responses", running.url), &body).await.unwrap();
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()
}

/// The list, as soon as it has so many.
async fn listed(home: &Path, count: usize) -> Vec<Value> {
    for _ in 0..200 {
        let out = run(home, &["traces", "--json"]);
        if out.lines().count() >= count {
            return out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there are never {count}: {}", run(home, &["traces"]));
}

#[tokio::test]
async fn traces_are_listed_and_shown() {
    let home = home(SQLITE);
    let running = Godex::logging_to(home.path(), Stdio::null());
    let first = ask(&running, "Hello").await;
    let second = ask(&running, "Hello again").await;
    let found = listed(home.path(), 2).await;
    assert_eq!((&found[0]["response_id"], &found[1]["response_id"]), (&second["id"], &first["id"]));
    let table = run(home.path(), &["traces", "--limit", "1"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines.len() == 2 && lines[0].trim_start().starts_with("NO") && lines[1].contains("completed"), "{table}");
    assert!(lines[1].ends_with(second["id"].as_str().unwrap()) && !table.contains('\u{1b}'), "{table}");
    for (args, count) in [
        (&["--provider", "demo"][..], 2),
        (&["--model", "demo/demo"], 2),
        (&["--model", "up/demo"], 0),
        (&["--errors"], 0),
        (&["--slower-than", "1h"], 0),
        (&["--since", "1h", "--outcome", "completed", "--tenant", "default"], 2),
        (&["--id", first["id"].as_str().unwrap()], 1),
    ] {
        let out = run(home.path(), &[&["traces", "--json"], args].concat());
        assert_eq!(out.lines().count(), count, "{args:?}: {out}");
    }
    let shown = run(home.path(), &["traces", "show", first["id"].as_str().unwrap()]);
    for section in ["\nrequest\n", "\nattempts\n", "\ntimes\n", "\nusage\n", "\nevents\n"] {
        assert!(shown.contains(section), "{section}: {shown}");
    }
    let json = run(home.path(), &["traces", "show", &found[0]["number"].to_string(), "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["response_id"], second["id"]);
    let (code, _, err) = godex(home.path(), &["traces", "show", "resp_none"]);
    assert!(code == Some(1) && err.contains("There is no trace of 'resp_none'."), "{err}");
    let (code, _, err) = godex(home.path(), &["traces", "--since", "soon"]);
    assert!(code == Some(1) && err.contains("`since` is"), "{err}");
    // Without a server the file itself is read.
    running.signal(Signal::TERM);
    assert!(running.ended().success());
    let found: Vec<Value> = listed(home.path(), 2).await;
    assert_eq!(found[1]["response_id"], first["id"]);
    let erased = run(home.path(), &["tenants", "erase", "default", "--yes", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&erased).unwrap()["erased"]["traces"], 2, "{erased}");
    let (code, out, err) = godex(home.path(), &["traces"]);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", "there are no such traces\n"));
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let home = home(SQLITE);
    for (args, expected) in [
        (
            &["traces", "--outcome", "nonsense"][..],
            "completed, incomplete, failed, cancelled, late, stopped, client_left",
        ),
        (&["traces", "show", ""], "an id is needed"),
        (&["traces", "--follow", "--until", "1s"], "cannot be used with"),
        (&["explain", " "], "an id is needed"),
    ] {
        let (code, _, err) = godex(home.path(), args);
        assert!(code == Some(2) && err.contains(expected), "{args:?}: {err}");
    }
}

#[tokio::test]
async fn whoever_follows_sees_them_come() {
    let home = home(SQLITE);
    let running = Godex::logging_to(home.path(), Stdio::null());
    let first = ask(&running, "Hello").await;
    listed(home.path(), 1).await;
    let mut following = command(home.path(), &["traces", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["response_id"], first["id"]);
    let second = ask(&running, "Hello again").await;
    assert_eq!(next()["response_id"], second["id"]);
    following.kill().unwrap();
    following.wait().unwrap();
}

/// Only a godex that serves puts it aside, and says where.
#[tokio::test]
async fn a_damaged_file_is_left_to_the_one_that_serves() {
    let home = home("session: {sqlite: {path: data/s.db}}\ntrace: {path: data/t.db}\nmodels: {discover: off}\n");
    run(home.path(), &["keys", "create", "a", "-q"]);
    let (file, aside) = (home.path().join("data/t.db"), home.path().join("data/t.db.damaged"));
    let damaged = ["SQLite format 3\0", &"no database ".repeat(400)].concat();
    std::fs::write(&file, &damaged).unwrap();
    for args in [&["traces"][..], &["traces", "show", "1"], &["explain", "resp_1"]] {
        let (code, _, err) = godex(home.path(), args);
        assert_eq!(code, Some(1), "{args:?}: {err}");
        assert!(err.contains("t.db") && err.contains("is damaged"), "{args:?}: {err}");
        assert!(err.contains("the next `godex serve` puts it aside"), "{args:?}: {err}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), damaged);
    assert!(!aside.exists());
    let log = std::fs::File::create(home.path().join("log")).unwrap();
    let running = Godex::logging_to(home.path(), log);
    assert!(running.end(Signal::TERM).success());
    assert_eq!(std::fs::read_to_string(&aside).unwrap(), damaged);
    let log = std::fs::read_to_string(home.path().join("log")).unwrap();
    assert!(log.contains("was moved aside") && log.contains("t.db.damaged"), "{log}");
}

/// What the store has of a response needs no trace.
#[tokio::test]
async fn a_response_is_explained_though_the_trace_file_is_damaged() {
    let home = home("session: {sqlite: {path: data/s.db}}\ntrace: {path: data/t.db, flush_interval_ms: 10}\n");
    let running = Godex::logging_to(home.path(), Stdio::null());
    let response = ask(&running, "Hello").await;
    listed(home.path(), 1).await;
    assert!(running.end(Signal::TERM).success());
    let file = home.path().join("data/t.db");
    let damaged = ["SQLite format 3\0", &"no database ".repeat(400)].concat();
    std::fs::write(&file, &damaged).unwrap();
    let id = response["id"].as_str().unwrap();
    let shown = run(home.path(), &["explain", id]);
    for expected in ["the stored items, planned again now", "its trace", "is damaged", "user \"Hello\""] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), damaged);
}

/// They are wanted above all when godex has ended, whatever is left of its sessions.
#[tokio::test]
async fn a_trace_file_is_read_without_sessions() {
    for session in ["backend: memory", "sqlite: {path: data/s.db}"] {
        let home = home(&format!("session: {{{session}}}\ntrace: {{path: data/t.db, flush_interval_ms: 10}}\n"));
        let running = Godex::logging_to(home.path(), Stdio::null());
        let response = ask(&running, "Hello").await;
        listed(home.path(), 1).await;
        assert!(running.end(Signal::TERM).success());
        let _ = std::fs::remove_file(home.path().join("data/s.db"));
        assert_eq!(listed(home.path(), 1).await[0]["response_id"], response["id"], "{session}");
        assert!(run(home.path(), &["traces", "show", "1"]).contains(response["id"].as_str().unwrap()), "{session}");
        assert!(!home.path().join("data/s.db").exists());
    }
}

/// The service has them from its own file.
#[tokio::test]
async fn a_server_is_managed_without_the_variables_of_its_providers() {
    let home = home(
        "providers:\n  demo: {}\n  up: {spec: openai-compatible, endpoint: {base_url: '${UP_URL}'}, credentials: {api_key: '${UP_KEY}'}}\n\
         webhooks: [{url: '${HOOK}', secret: '${HOOK_SECRET}', events: [response.completed]}]\n\
         session: {sqlite: {path: data/s.db}}\n",
    );
    for args in [&["keys", "create", "web", "-q"][..], &["keys", "list"], &["store", "check"], &["traces"]] {
        let (code, _, err) = godex(home.path(), args);
        assert_eq!(code, Some(0), "{args:?}: {err}");
    }
    // What is needed is asked for, and whoever serves needs all of it.
    std::fs::write(home.path().join("other.yaml"), "session: {sqlite: {path: '${SESSIONS}'}}\n").unwrap();
    for (args, name) in
        [(&["keys", "list", "--config", "other.yaml"][..], "SESSIONS"), (&["config", "check"], "UP_KEY")]
    {
        let (code, out, err) = godex(home.path(), args);
        assert!(code == Some(1) && format!("{out}{err}").contains(name), "{args:?}: {out}{err}");
    }
}

/// Who looks while no godex runs keeps the one that starts from nothing.
#[tokio::test]
async fn a_server_keeps_traces_that_starts_while_somebody_looks() {
    let home = home("session: {sqlite: {path: data/s.db}}\ntrace: {path: data/t.db, flush_interval_ms: 10}\n");
    let running = Godex::logging_to(home.path(), Stdio::null());
    ask(&running, "Hello").await;
    listed(home.path(), 1).await;
    assert!(running.end(Signal::TERM).success());
    let mut follows = command(home.path(), &["traces", "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follows.stdout.take().unwrap()).lines();
    // Its first line says that it has the file open.
    assert!(lines.next().unwrap().unwrap().contains("\"number\":1"));
    let running = Godex::logging_to(home.path(), Stdio::null());
    let second = ask(&running, "Hello again").await;
    assert_eq!(listed(home.path(), 2).await[0]["response_id"], second["id"]);
    follows.kill().unwrap();
    follows.wait().unwrap();
    assert!(running.end(Signal::TERM).success());
    // What is empty is nobody's to begin but the one that serves.
    std::fs::write(home.path().join("data/t.db"), "").unwrap();
    let (code, _, err) = godex(home.path(), &["traces"]);
    assert!(code == Some(1) && err.contains("it is empty"), "{err}");
    assert_eq!(std::fs::metadata(home.path().join("data/t.db")).unwrap().len(), 0);
}

/// A key that is declared is one, whether its variable is there or not.
#[test]
fn declared_keys_are_not_forgotten_without_a_server() {
    let home = home("keys: [{name: declared, tenant: d, key: '${TEAM_KEY}'}]\nsession: {sqlite: {path: data/s.db}}\n");
    for args in [&["keys", "list"][..], &["keys", "create", "declared", "--tenant", "e"]] {
        let (code, _, err) = godex(home.path(), args);
        assert!(code == Some(1) && err.contains("TEAM_KEY"), "{args:?}: {err}");
    }
}
