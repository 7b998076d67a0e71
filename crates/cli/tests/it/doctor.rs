//! `godex doctor`, on a terminal and for programs.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};
use testkit::{Script, Upstream};

use crate::cli::{command, godex, home};
use crate::codex::terminal::Terminal;
use crate::sessions::Godex;

/// Its checks, and how it ended.
fn report(command: &mut Command) -> (Value, Option<i32>) {
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr))), output.status.code())
}

/// The status and the message of the first check of this name that says this.
fn check(report: &Value, name: &str, says: &str) -> Option<String> {
    let all = report["checks"].as_array().unwrap();
    let said = |check: &&Value| check["check"] == name && check.to_string().contains(says);
    Some(all.iter().find(said)?["status"].as_str()?.to_owned())
}

fn models() -> Script {
    Script::json(200, &json!({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "vllm"}]}))
}

fn config(port: u16, providers: &str) -> String {
    format!("server: {{port: {port}}}\nsession: {{sqlite: {{path: data/s.db}}}}\nproviders: {{{providers}}}\n")
}

/// Nobody has it for now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_well_on_a_terminal_and_the_line_of_progress_is_gone() {
    let upstream = Upstream::start(models()).await.unwrap();
    let provider = format!("up: {{spec: vllm, endpoint: {{base_url: \"{}/v1\"}}}}", upstream.url());
    let home = home(&config(free_port(), &provider));
    let terminal = Terminal::start(&command(home.path(), &["doctor"]));
    let (screen, status) = terminal.end();
    assert_eq!(status.code(), Some(0), "{screen}");
    for expected in
        ["ok    godex", "ok    config", "ok    store", "not there yet", "up: answers in", "1 models", "is free"]
    {
        assert!(screen.contains(expected), "{expected}\n{screen}");
    }
    assert!(!home.path().join("data").exists(), "it changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_its_provider_does_not_list_is_named() {
    let upstream = Upstream::start(models()).await.unwrap();
    for (models, status, says) in [("m", "ok", "1 models"), ("m, typo", "warn", "it does not list typo")] {
        let url = upstream.url();
        let provider = format!("up: {{spec: vllm, endpoint: {{base_url: \"{url}/v1\"}}, models: [{models}]}}");
        let home = home(&config(free_port(), &provider));
        let (found, code) = report(&mut command(home.path(), &["doctor", "--json"]));
        assert_eq!(code, Some(0), "{found:#}");
        assert_eq!(check(&found, "provider", says).as_deref(), Some(status), "{found:#}");
    }
}

/// A list that everybody gets says nothing of a key, and an address without one may be the wrong one.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_good_only_where_it_made_a_difference() {
    let open = Upstream::start(models()).await.unwrap();
    let closed = Upstream::start_with(|request| match request.header("authorization") {
        Some("Bearer sk-good") => models(),
        _ => Script::json(401, &json!({"error": {"message": "no"}})),
    });
    let closed = closed.await.unwrap();
    let nothing = Upstream::start(Script::json(404, &json!({"detail": "Not Found"}))).await.unwrap();
    for (upstream, key, status, says) in [
        (&open, "sk-any", "ok", "its list needs no key, so the key was not tried, 1 models"),
        (&open, "", "ok", "no key needed, 1 models"),
        (&closed, "sk-good", "ok", "key accepted, 1 models"),
        (&closed, "sk-bad", "fail", "the key is refused (401)"),
        (&closed, "", "fail", "it wants a key (401)"),
        (&nothing, "sk-any", "warn", "answers 404 when asked for its models"),
    ] {
        let credentials = if key.is_empty() { String::new() } else { format!(", credentials: {{api_key: {key}}}") };
        let provider = format!("up: {{spec: vllm, endpoint: {{base_url: '{}/v1'}}{credentials}}}", upstream.url());
        let home = home(&config(free_port(), &provider));
        let (found, _) = report(&mut command(home.path(), &["doctor", "--json"]));
        assert_eq!(check(&found, "provider", says).as_deref(), Some(status), "{says}: {found:#}");
    }
}

/// A wrong address, or a network that wants a login first.
#[tokio::test(flavor = "multi_thread")]
async fn what_answers_and_is_no_provider_is_told() {
    let page = "<!doctype html><html><head><title>Welcome to the hotel</title></head></html>";
    let html = || Script::body(200, "text/html", page);
    let provider = |url: &str, spec: &str| {
        format!("up: {{spec: {spec}, endpoint: {{base_url: '{url}/v1'}}, credentials: {{api_key: sk-any}}}}")
    };
    for (answer, spec, status, says) in [
        (html(), "vllm", "fail", "it answered 200, but no JSON, a web page: Welcome to the hotel"),
        (html(), "anthropic", "fail", "look at providers.up.endpoint.base_url: is http://127.0.0.1:"),
        (Script::json(200, &json!({"status": "ok"})), "vllm", "fail", "it answered 200, but no list: {\\\"status"),
        (Script::json(200, &json!({"object": "list", "data": []})), "vllm", "ok", "lists no models"),
        (Script::json(405, &json!({"detail": "no"})), "vllm", "warn", "answers 405 when asked for its models"),
    ] {
        let upstream = Upstream::start(answer).await.unwrap();
        let home = home(&config(free_port(), &provider(&upstream.url(), spec)));
        let (found, code) = report(&mut command(home.path(), &["doctor", "--json"]));
        assert_eq!(check(&found, "provider", says).as_deref(), Some(status), "{says}: {found:#}");
        assert_eq!(code, Some(i32::from(status == "fail")), "{says}: {found:#}");
    }
}

/// What a start would stumble over, and what only traces and spans suffer from.
#[test]
fn ports_and_files_beside_the_store_are_looked_at() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let (metrics, nobody) = (held.local_addr().unwrap().port(), free_port());
    let more = format!(
        "metrics: {{listen: \"127.0.0.1:{metrics}\"}}\notel: {{endpoint: \"http://127.0.0.1:{nobody}/v1/traces\"}}\n\
         trace: {{path: data/t.db}}\n"
    );
    let home = home(&format!("{}{more}", config(free_port(), "demo: {}")));
    fs::create_dir_all(home.path().join("data/t.db")).unwrap();
    let (found, code) = report(&mut command(home.path(), &["doctor", "--json"]));
    assert_eq!(code, Some(1), "{found}");
    assert_eq!(check(&found, "metrics", "take another with metrics.listen").as_deref(), Some("fail"), "{found}");
    assert_eq!(check(&found, "otel", "look at otel.endpoint").as_deref(), Some("warn"), "{found}");
    assert_eq!(check(&found, "traces", "name another trace.path").as_deref(), Some("warn"), "{found}");
    fs::remove_dir(home.path().join("data/t.db")).unwrap();
    fs::write(home.path().join("data/t.db"), "no database ".repeat(400)).unwrap();
    let (found, _) = report(&mut command(home.path(), &["doctor", "--json"]));
    assert_eq!(check(&found, "traces", "until then no traces are kept").as_deref(), Some("warn"), "{found}");
    // What begins as a database and is none is moved aside by the next start.
    let damaged = ["SQLite format 3\0", &"no database ".repeat(400)].concat();
    fs::write(home.path().join("data/t.db"), damaged).unwrap();
    let (found, _) = report(&mut command(home.path(), &["doctor", "--json"]));
    assert_eq!(check(&found, "traces", "the next start moves it aside").as_deref(), Some("warn"), "{found}");
}

/// As a start would refuse them.
#[test]
fn a_newer_database_and_an_open_door_are_found() {
    let config = |more: &str| {
        format!("server: {{host: 0.0.0.0, port: {}{more}}}\nsession: {{sqlite: {{path: data/s.db}}}}\n", free_port())
    };
    let home = home(&config(""));
    let doctor = || report(&mut command(home.path(), &["doctor", "--json", "--offline"]));
    let (found, code) = doctor();
    assert_eq!(code, Some(1), "{found:#}");
    let open = "without API keys, anybody who reaches this address";
    assert_eq!(check(&found, "access", open).as_deref(), Some("fail"), "{found:#}");
    assert_eq!(check(&found, "access", "make one with `godex keys create NAME`").as_deref(), Some("fail"));
    fs::write(home.path().join("godex.yaml"), config(", allow_unauthenticated: true")).unwrap();
    assert_eq!(check(&doctor().0, "access", ""), None);
    fs::write(home.path().join("godex.yaml"), config("")).unwrap();
    assert_eq!(godex(home.path(), &["keys", "create", "a", "-q"]).0, Some(0));
    let (found, code) = doctor();
    assert_eq!((code, check(&found, "access", "")), (Some(0), None), "{found:#}");
    let database = rusqlite::Connection::open(home.path().join("data/s.db")).unwrap();
    database.execute_batch("PRAGMA user_version = 999").unwrap();
    drop(database);
    let (found, code) = doctor();
    assert_eq!(code, Some(1), "{found:#}");
    let newer = "it was written by a newer version (schema 999";
    assert_eq!(check(&found, "store", newer).as_deref(), Some("fail"), "{found:#}");
}

/// Whatever answers there, it is not taken for a godex of another store.
#[tokio::test(flavor = "multi_thread")]
async fn another_server_on_the_admin_port_is_no_godex() {
    for answer in [Script::json(200, &json!({"ok": true})), Script::json(404, &json!({"error": {"message": "no"}}))] {
        let stranger = Upstream::start(answer).await.unwrap();
        let address = stranger.url().trim_start_matches("http://").to_owned();
        let admin = format!("admin: {{listen: '{address}', token: a-token-of-the-admin}}\n");
        let home = home(&format!("{}{admin}", config(free_port(), "demo: {}")));
        let (found, code) = report(&mut command(home.path(), &["doctor", "--json", "--offline"]));
        assert_eq!(code, Some(1), "{found:#}");
        let said = format!("what listens on {address} is not godex");
        assert_eq!(check(&found, "admin", &said).as_deref(), Some("fail"), "{found:#}");
        let (_, _, err) = godex(home.path(), &["drain"]);
        assert!(err.contains(&said), "{err}");
        // The store is nobody's: it is used itself.
        assert_eq!(godex(home.path(), &["keys", "create", "a", "-q"]).0, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_found_with_what_to_do() {
    let upstream = Upstream::start(Script::json(401, &json!({"error": {"message": "no"}}))).await.unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let providers = format!(
        "up: {{spec: vllm, endpoint: {{base_url: \"{}/v1\"}}, credentials: {{api_key: sk-wrong-key}}}}, away: {{spec: vllm, endpoint: \
         {{base_url: \"http://127.0.0.1:1/v1\"}}}}",
        upstream.url()
    );
    let home = home(&config(port, &providers));
    fs::create_dir(home.path().join("data")).unwrap();
    fs::write(home.path().join("data/s.db"), "this is a text, and not at all a database\n".repeat(30)).unwrap();
    let (report, code) = report(&mut command(home.path(), &["doctor", "--json"]));
    assert_eq!((code, &report["ok"]), (Some(1), &json!(false)), "{report:#}");
    for (name, says, status) in [
        ("store", "not a database", "fail"),
        ("provider", "up: the key is refused (401)", "fail"),
        ("provider", "away: http://127.0.0.1:1/v1", "warn"),
        ("port", "is taken", "fail"),
        ("config", "others may read it", "warn"),
        ("clock", "plausible", "ok"),
    ] {
        assert_eq!(check(&report, name, says).as_deref(), Some(status), "{name} {says}: {report:#}");
    }
    let advised = |check: &Value| check["status"] == "ok" || check["advice"].is_string();
    assert!(report["checks"].as_array().unwrap().iter().all(advised), "{report:#}");
    assert!(!report.to_string().contains("sk-wrong-key"));
}

#[test]
fn every_problem_of_the_configuration_is_a_line() {
    let home = home("server: {prot: 1}\nproviders: {deepseek: {}}\nlogging: {level: loud}\n");
    let (code, out, _) = godex(home.path(), &["doctor", "--offline"]);
    assert_eq!(code, Some(1));
    let failed: Vec<&str> = out.lines().filter(|line| line.starts_with("fail  config")).collect();
    assert_eq!(failed.len(), 3, "{out}");
    assert!(failed[0].contains("godex.yaml:1: server: unknown key `prot`; did you mean `port`?"), "{out}");
    assert!(out.contains("DEEPSEEK_API_KEY"), "{out}");
}

/// What can be looked at without a variable is looked at, and nobody is asked with a key that is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_variable_that_is_not_set_hides_nothing_else() {
    let upstream = Upstream::start(models()).await.unwrap();
    let key = format!(
        "{{spec: vllm, endpoint: {{base_url: \"{}/v1\"}}, credentials: {{api_key: \"${{GONE}}\"}}}}",
        upstream.url()
    );
    let home = home(&config(free_port(), &format!("up: {key}")));
    let (found, code) = report(&mut command(home.path(), &["doctor", "--json"]));
    assert_eq!(code, Some(1), "{found:#}");
    assert_eq!(check(&found, "config", "the environment variable GONE is not set").as_deref(), Some("fail"));
    for (name, says) in [("store", "not there yet"), ("port", "is free")] {
        assert_eq!(check(&found, name, says).as_deref(), Some("ok"), "{name}: {found:#}");
    }
    assert!(upstream.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_godex_that_runs_is_known() {
    let home = home("session: {sqlite: {path: s.db}}\nadmin: {listen: \"unix:admin.sock\"}\nmodels: {discover: off}\n");
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    let port = running.url.rsplit(':').next().unwrap().to_owned();
    let (found, code) = report(&mut command(home.path(), &["doctor", "--json", "--port", &port]));
    assert_eq!(code, Some(0), "{found:#}");
    for (name, says) in
        [("port", "a godex like this one runs there"), ("admin", "the godex that runs answers"), ("store", "whole")]
    {
        assert_eq!(check(&found, name, says).as_deref(), Some("ok"), "{name}: {found:#}");
    }
    drop(running);
}

/// A database that this configuration's keys do not open, or that the godex of another one has.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_a_start_could_not_have_is_found() {
    let home = home("");
    let write = |file: &str, more: &str| {
        let text = format!("session: {{sqlite: {{path: s.db}}{more}}}\nadmin: {{listen: \"unix:admin.sock\"}}\n");
        fs::write(home.path().join(file), text).unwrap();
    };
    let doctor = |more: &[&str]| {
        let port = free_port().to_string();
        report(command(home.path(), &["doctor", "--json", "--offline", "--port", &port]).args(more))
    };
    let with = |digit: &str| format!(", encryption: {{key: '{}'}}", digit.repeat(64));
    write("godex.yaml", &with("1"));
    assert_eq!(godex(home.path(), &["keys", "create", "a", "-q"]).0, Some(0));
    for (encryption, expected, status) in [
        (with("1"), "whole", "ok"),
        (with("2"), "is encrypted with another key than those in session.encryption", "fail"),
        (String::new(), "is encrypted, and session.encryption has no key", "fail"),
    ] {
        write("godex.yaml", &encryption);
        let (found, code) = doctor(&[]);
        assert_eq!(code, Some(i32::from(status == "fail")), "{found:#}");
        assert_eq!(check(&found, "store", expected).as_deref(), Some(status), "{found:#}");
    }
    write("godex.yaml", &with("1"));
    write("other.yaml", &with("1"));
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    let held = "s.db is used by the godex of ";
    for (config, expected) in [("godex.yaml", None), ("other.yaml", Some("fail"))] {
        let (found, code) = doctor(&["--config", config]);
        assert_eq!(check(&found, "store", held).as_deref(), expected, "{config}: {found:#}");
        assert_eq!(code, Some(i32::from(expected.is_some())), "{config}: {found:#}");
    }
    drop(running);
}

/// With these godex starts, and goes without something.
#[cfg(target_os = "linux")]
#[test]
fn what_a_start_would_go_without_is_a_warning() {
    let more = "trace: {path: /proc/nope/t.db}\nadmin: {listen: 'unix:/proc/nope/a.sock'}\n";
    let home = home(&format!("{}{more}", config(free_port(), "demo: {}")));
    let (found, code) = report(&mut command(home.path(), &["doctor", "--json", "--offline"]));
    assert_eq!(code, Some(0), "{found:#}");
    for (name, says) in [("traces", "/proc/nope/t.db cannot be made"), ("admin", "/proc/nope/a.sock cannot be made")] {
        assert_eq!(check(&found, name, says).as_deref(), Some("warn"), "{found:#}");
    }
}

#[test]
fn two_listeners_of_one_address_are_refused_before_a_start() {
    for (more, expected) in [
        ("metrics: {listen: '127.0.0.1:5999'}", "metrics.listen: 127.0.0.1:5999 is taken by server.port"),
        ("metrics: {enabled: false, listen: '127.0.0.1:5999'}", ""),
        ("admin: {listen: '0.0.0.0:5999', token: a-token-of-the-admin}", "admin.listen: 0.0.0.0:5999 is taken by"),
        (
            "admin: {listen: '127.0.0.1:6', token: a-token-of-the-admin}\nmetrics: {listen: '127.0.0.1:6'}",
            "metrics.listen: 127.0.0.1:6 is taken by admin.listen",
        ),
    ] {
        let home = home(&format!("{}{more}\n", config(5999, "demo: {}")));
        let (code, _, err) = godex(home.path(), &["config", "check"]);
        assert_eq!(code, Some(i32::from(!expected.is_empty())), "{more}: {err}");
        assert!(err.contains(expected), "{more}: {err}");
        // On another port nothing is in the way.
        if expected.contains("server.port") {
            assert_eq!(godex(home.path(), &["--port", "5998", "config", "check"]).0, Some(0), "{more}");
        }
    }
}
