//! Keys, tenants, reloading and draining from the command line: with a godex that runs, and without one.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::Answer;

use crate::cli::{godex, home, refused, run};
use crate::sessions::Godex;

const SQLITE: &str = "session: {sqlite: {path: data/sessions.db}}\n";

async fn ask(godex: &Godex, key: &str) -> Answer {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = json!({"model": "demo", "input": "Hello"}).to_string();
    godex.client.request(Method::POST, &format!("{}/v1/responses", godex.url), &headers, body).await.unwrap()
}

#[tokio::test]
async fn keys_are_made_and_revoked_while_it_runs() {
    let home = home(SQLITE);
    let log = File::create(home.path().join("log")).unwrap();
    let running = Godex::logging_to(home.path(), log);
    let socket = home.path().join(".godex/admin.sock");
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(ask(&running, "").await.status, 200, "everybody may ask");

    let (code, out, err) = godex(home.path(), &["keys", "create", "team-a", "--tenant", "a", "--rpm", "600"]);
    assert_eq!(code, Some(0), "{err}");
    let key = out.trim_end();
    assert!(out.lines().count() == 1 && key.len() > 30, "{out}");
    assert!(err.contains("every client needs a key") && !err.contains(key), "{err}");
    assert_eq!((ask(&running, "").await.status, ask(&running, key).await.status), (401, 200));

    let (_, out, err) =
        godex(home.path(), &["keys", "create", "second", "-q", "--expires", "90d", "--budget", "5usd/month"]);
    assert_eq!((out.lines().count(), err.as_str()), (1, ""));
    let second = out.trim_end().to_owned();
    let list = run(home.path(), &["keys", "list"]);
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].starts_with("NAME") && lines[0].ends_with("LIMITS"), "{list}");
    assert!(list.contains("rpm 600") && list.contains("5usd/month") && lines.len() == 3, "{list}");
    let as_json: Value = serde_json::from_str(&run(home.path(), &["keys", "list", "--json"])).unwrap();
    assert_eq!(as_json.as_array().unwrap().len(), 2);
    assert!(run(home.path(), &["keys", "show", "team-a"]).contains("tenant    a\n"));

    let rotated = run(home.path(), &["keys", "rotate", "second", "--grace", "0s"]);
    assert_eq!(ask(&running, &second).await.status, 401);
    assert_eq!(ask(&running, rotated.trim_end()).await.status, 200);
    // By its name both are ended, and both are named.
    let newer = run(home.path(), &["keys", "rotate", "second", "--grace", "1h"]);
    let said = run(home.path(), &["keys", "revoke", "second"]);
    assert!(said.starts_with("keys second (key_") && said.contains(", key_"), "{said}");
    assert!(said.contains("are revoked"), "{said}");
    for ended in [&rotated, &newer] {
        assert_eq!(ask(&running, ended.trim_end()).await.status, 401);
    }
    assert!(run(home.path(), &["keys", "revoke", "team-a"]).contains("is revoked"));
    assert_eq!(ask(&running, key).await.status, 401);
    assert!(refused(home.path(), &["keys", "show", "nobody"]).contains("there is no key nobody"));
    assert!(refused(home.path(), &["keys", "create", "a b"]).contains("a name is"));

    assert!(run(home.path(), &["drain"]).starts_with("godex drains and ends"));
    assert!(running.ended().success());
    assert!(!socket.exists());
    let written = fs::read_to_string(home.path().join("log")).unwrap() + &list;
    for secret in [key, &second, rotated.trim_end()] {
        assert!(!written.contains(secret));
    }
}

/// An address that others reach is not open to all when the last key is forgotten.
#[tokio::test]
async fn with_the_last_key_the_door_is_closed_also_for_metrics() {
    let home = home(&format!("{SQLITE}server: {{host: 0.0.0.0}}\n"));
    let key = run(home.path(), &["keys", "create", "only", "-q"]);
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    assert_eq!(ask(&running, key.trim_end()).await.status, 200);
    run(home.path(), &["keys", "revoke", "only"]);
    run(home.path(), &["keys", "delete", "only"]);
    let get = async |path: &str| {
        running.client.request(Method::GET, &format!("{}{path}", running.url), &[], String::new()).await.unwrap()
    };
    assert_eq!((ask(&running, "").await.status, get("/metrics").await.status), (401, 401));
    assert_eq!(get("/health").await.json()["providers"], Value::Null);
    assert!(running.end(Signal::TERM).success());
}

/// A key that a file has as well works on: whoever revokes it is told.
#[test]
fn a_revoked_key_that_is_declared_too_is_named() {
    let home = home(SQLITE);
    let key = run(home.path(), &["keys", "create", "leaked", "-q"]);
    let config = fs::read_to_string(home.path().join("godex.yaml")).unwrap();
    fs::write(home.path().join("godex.yaml"), format!("{config}keys: [{{name: file, key: {}}}]\n", key.trim_end()))
        .unwrap();
    let (code, out, err) = godex(home.path(), &["keys", "revoke", "leaked"]);
    assert!(code == Some(0) && out.contains("is revoked"), "{out}");
    assert!(err.starts_with("warning: godex.yaml declares file, by the same name or with the same key"), "{err}");
}

#[test]
fn without_a_server_the_database_is_used_itself() {
    let home = home(SQLITE);
    let key = run(home.path(), &["keys", "create", "first", "-q"]);
    assert!(run(home.path(), &["keys", "list"]).contains("first"));
    assert!(run(home.path(), &["tenants", "set", "default", "--rpm", "5"]).contains("rpm 5"));
    assert!(run(home.path(), &["tenants", "set", "default", "--tpm", "7"]).contains("rpm 5, tpm 7"));
    assert_eq!(run(home.path(), &["tenants", "set", "default", "--clear"]), "tenant default: -\n");
    for (args, expected) in [
        (&["reload"][..], "there is nothing to reload: no godex listens on unix:"),
        (&["drain"], "there is nothing to drain: no godex listens on unix:"),
        (&["tenants", "erase", "default"], "erasing needs --yes"),
    ] {
        assert!(refused(home.path(), args).contains(expected), "{args:?}: {}", refused(home.path(), args));
    }
    // A server that starts then knows the key.
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let statuses =
        runtime.block_on(async { (ask(&running, "").await.status, ask(&running, key.trim_end()).await.status) });
    assert_eq!(statuses, (401, 200));
    assert!(running.end(Signal::TERM).success());
}

#[test]
fn a_name_is_no_option_and_all_keys_that_are_forgotten_are_named() {
    let home = home(SQLITE);
    let (code, _, err) = godex(home.path(), &["keys", "create", "--", "-q"]);
    assert!(code == Some(2) && err.contains("a name does not begin with `-`"), "{err}");
    for args in [&["create", "a", "-q"][..], &["rotate", "a", "--grace", "0s", "-q"], &["create", "b", "-q"]] {
        run(home.path(), &[&["keys"][..], args].concat());
    }
    for (name, begins, ends, count) in
        [("a", "keys a (key_", "are forgotten\n", 2), ("b", "key b (key_", "is forgotten\n", 1)]
    {
        run(home.path(), &["keys", "revoke", name]);
        let said = run(home.path(), &["keys", "delete", name]);
        assert!(said.starts_with(begins) && said.ends_with(ends), "{said}");
        assert_eq!(said.matches("key_").count(), count, "{said}");
    }
}

/// What root makes, a service of another user cannot open: who only looks makes nothing.
#[test]
fn looking_makes_no_database() {
    let home = home(&format!("{SQLITE}keys: [{{name: mine, key: 0123456789abcdefghijkl}}]\n"));
    let entries = || fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let file = |args: &[&str]| if args[0] == "traces" { "data/trace.db" } else { "data/sessions.db" };
    let none = |args: &[&str]| format!("there is no database at {}\n", home.path().join(file(args)).display());
    for (args, expected) in [
        (&["traces"][..], ""),
        (&["traces", "--json"], ""),
        (&["traces", "--follow"], ""),
        (&["usage"], "nothing was used\n"),
        (&["usage", "--json"], "{\n  \"rows\": []\n}\n"),
        (&["tenants", "list"], "nothing is stored\n"),
        (&["tenants", "list", "--json"], "[]\n"),
        (&["tenants", "sessions", "default"], "nothing is stored\n"),
    ] {
        assert_eq!(godex(home.path(), args), (Some(0), expected.to_owned(), none(args)), "{args:?}");
    }
    let (code, out, err) = godex(home.path(), &["keys", "list"]);
    assert!(
        code == Some(0) && out.contains("mine") && out.contains("declared") && err == none(&["keys"]),
        "{out}{err}"
    );
    assert!(run(home.path(), &["keys", "show", "mine"]).contains("declared in the configuration"));
    fs::write(home.path().join("next.json"), r#"{"input": "Hi", "previous_response_id": "resp_1"}"#).unwrap();
    for args in [
        &["traces", "show", "1"][..],
        &["explain", "resp_1"],
        &["explain", "--dry-run", "next.json"],
        &["keys", "show", "other"],
        &["tenants", "export", "default"],
        &["store", "check"],
        &["store", "check", "data/sessions.db"],
        &["store", "backup", "copy.db"],
    ] {
        let said = refused(home.path(), args);
        assert!(said.starts_with("error: there is no database at ") && said.contains(file(args)), "{args:?}: {said}");
    }
    let mut names = entries();
    names.sort();
    assert_eq!(names, ["godex.yaml", "next.json"]);
    // Sessions without traces: the latter are not made, either.
    run(home.path(), &["keys", "create", "first", "-q"]);
    let before: Vec<_> =
        fs::read_dir(home.path().join("data")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let (code, out, err) = godex(home.path(), &["traces"]);
    assert!(code == Some(0) && out.is_empty() && err.starts_with("there is no database at "), "{out}{err}");
    assert!(refused(home.path(), &["explain", "resp_1"]).contains("resp_1"));
    assert_eq!(fs::read_dir(home.path().join("data")).unwrap().count(), before.len(), "{before:?}");
}

#[test]
fn what_is_only_in_memory_needs_a_server() {
    let home = home("session: {backend: memory}\n");
    let said = refused(home.path(), &["keys", "create", "a"]);
    assert!(said.contains("no godex runs") && said.contains("session.backend: memory"), "{said}");
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    assert!(run(home.path(), &["keys", "create", "a", "-q"]).lines().count() == 1);
    assert!(running.end(Signal::TERM).success());
}

#[test]
fn a_database_that_somebody_else_has_is_told_with_the_reason() {
    let home = home(&format!("{SQLITE}admin: {{listen: off}}\n"));
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    assert!(!home.path().join(".godex/admin.sock").exists());
    let said = refused(home.path(), &["keys", "list"]);
    assert!(said.contains("the admin listener is off") && said.contains("used by another process"), "{said}");
    assert!(running.end(Signal::TERM).success());
}

/// One socket for all, and a command is about the store of its own configuration.
#[tokio::test]
async fn a_command_never_reaches_the_store_of_another_configuration() {
    let home = home("session: {backend: memory}\n");
    fs::write(home.path().join("other.yaml"), "session: {backend: memory}\n").unwrap();
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    for (args, expected) in [
        (&["--config", "other.yaml", "keys", "create", "a"][..], "with `session.backend: memory` nothing outlives one"),
        (&["--config", "other.yaml", "tenants", "erase", "a", "--yes"], "with `session.backend: memory`"),
        (&["--config", "other.yaml", "drain"], "was started with another configuration"),
        (&["--config", "other.yaml", "reload"], "was started with another configuration"),
    ] {
        let error = refused(home.path(), args);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    assert_eq!(ask(&running, "").await.status, 200, "nobody has closed its door");
    run(home.path(), &["--config", "./godex.yaml", "keys", "create", "a"]);
    assert_eq!(ask(&running, "").await.status, 401);
}

/// A name that is in the file, too, is taken for the one of the store: that is what can be revoked.
#[tokio::test]
async fn a_stored_key_is_revoked_though_another_is_declared_with_its_name() {
    let home = home(SQLITE);
    let key = run(home.path(), &["keys", "create", "both"]);
    let declared = "keys: [{name: both, key: a-key-that-is-in-the-file}]\n";
    fs::write(home.path().join("godex.yaml"), format!("{SQLITE}{declared}")).unwrap();
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    assert_eq!(ask(&running, key.trim_end()).await.status, 200);
    run(home.path(), &["keys", "revoke", "both"]);
    assert_eq!(ask(&running, key.trim_end()).await.status, 401);
    assert_eq!(ask(&running, "a-key-that-is-in-the-file").await.status, 200);
}

#[tokio::test]
async fn the_configuration_is_read_anew_on_demand() {
    let config = |more: &str| format!("session: {{backend: memory}}\n{more}");
    let home = home(&config(""));
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    let file = home.path().join("godex.yaml");
    fs::write(&file, config("models: {aliases: {fast: demo/demo}}\n")).unwrap();
    assert!(!running.get("/v1/models").await.1.to_string().contains("fast"));
    assert_eq!(run(home.path(), &["reload"]), "the configuration was read anew\n");
    assert!(running.get("/v1/models").await.1.to_string().contains("fast"));
    fs::write(&file, config("server: {max_connections: 7}\n")).unwrap();
    assert!(refused(home.path(), &["reload"]).contains("the section `server` cannot change while the server runs"));
    assert!(running.get("/v1/models").await.1.to_string().contains("fast"));
    // Keys of the file are listed, and changed there.
    fs::write(&file, config("keys: [{name: mine, tenant: a, key: 0123456789abcdefghijkl}]\n")).unwrap();
    run(home.path(), &["reload"]);
    let list = run(home.path(), &["keys", "list"]);
    assert!(list.contains("mine") && list.contains("declared") && !list.contains("0123456789abc"), "{list}");
    let said = refused(home.path(), &["keys", "revoke", "mine"]);
    assert!(said.contains("is declared in") && said.contains("godex.yaml"), "{said}");
    assert!(running.end(Signal::TERM).success());
}

#[tokio::test]
async fn a_tenant_is_exported_and_erased() {
    let home = home(SQLITE);
    let running = Godex::logging_to(home.path(), std::process::Stdio::null());
    let response: Value = ask(&running, "").await.json();
    let id = response["id"].as_str().unwrap();
    let looks = || {
        let sessions = run(home.path(), &["tenants", "sessions", "default"]);
        assert!(sessions.contains(id) && sessions.contains("completed"), "{sessions}");
        let list = run(home.path(), &["tenants", "list"]);
        assert!(list.contains("default"), "{list}");
        let lines = run(home.path(), &["tenants", "export", "default"]);
        let line: Value = serde_json::from_str(lines.trim_end()).unwrap();
        assert_eq!((&line["object"], &line["response"]), (&json!("response"), &response));
        let file = home.path().join("out.jsonl");
        run(home.path(), &["tenants", "export", "default", "--output", "out.jsonl"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), lines);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    };
    looks();
    run(home.path(), &["drain"]);
    assert!(running.ended().success());
    looks();
    assert!(run(home.path(), &["tenants", "erase", "default", "--yes"]).starts_with("erased of default: 1 responses"));
    assert_eq!(run(home.path(), &["tenants", "sessions", "default"]), "nothing is stored\n");
}
