//! Databases of an earlier version: opened by this one, and shared with it while an upgrade is under way.
//!
//! `cargo xtask fixture` builds that version from its commit, drives it over HTTP with the demo model, and keeps what its
//! databases held, what it answered, and every statement that it sent to Postgres while doing so.

mod beside;
mod drive;
mod dump;
mod old;
mod statements;

use std::path::PathBuf;

use serde_json::json;
use testkit::Postgres;

use super::*;
use drive::Recorded;

/// The folder of what was recorded.
fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures").join(old::COMMIT)
}

fn fixture(name: &str) -> String {
    std::fs::read_to_string(fixtures().join(name)).unwrap()
}

fn answers(name: &str) -> Vec<Recorded> {
    drive::read(&fixture(name))
}

/// Everything that was said is still said, and as it was; what was left out may have been added since.
fn kept(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            before.iter().all(|(name, value)| now.get(name).is_some_and(|now| kept(value, now)))
        }
        (Value::Array(before), Value::Array(now)) => {
            before.len() == now.len() && before.iter().zip(now).all(|(before, now)| kept(before, now))
        }
        (before, now) => before == now,
    }
}

/// Asks this version what the earlier one was asked.
async fn check(rig: &Rig, recorded: &[Recorded]) {
    assert!(recorded.len() > 40, "{}", recorded.len());
    let mut problems = Vec::new();
    for Recorded { method, path, body, status, answer } in recorded {
        let now = rig.send(method.parse().unwrap(), path, body).await;
        let (code, found) = (now.status, drive::comparable(path, now.status, &now.json()));
        if code != *status || !kept(answer, &found) {
            problems.push(format!("{method} {path} {body}\n  then {status} {answer}\n  now  {code} {found}"));
        }
    }
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), recorded.len(), problems.join("\n"));
}

#[tokio::test]
async fn a_file_of_the_earlier_version_answers_as_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    dump::load_sqlite(&path, &fixture("sqlite.sql"));
    let session = format!("ttl: never, sqlite: {{path: '{}'}}", path.display());
    // Twice: the second start finds what the first has made of it.
    for _ in 0..2 {
        let rig = rig(&session).await;
        check(&rig, &answers("sqlite.json")).await;
        rig.stop().await;
    }
}

fn on(postgres: &Postgres) -> String {
    format!("ttl: never, backend: postgres, postgres: {{url: '{}'}}", postgres.url())
}

#[tokio::test]
async fn a_postgres_database_of_the_earlier_version_answers_as_it_did() {
    let Some(postgres) = Postgres::start() else { return };
    dump::load_postgres(&postgres, &fixture("postgres.sql")).await;
    for _ in 0..2 {
        let rig = rig(&on(&postgres)).await;
        check(&rig, &answers("postgres.json")).await;
        rig.stop().await;
    }
}

/// What the earlier version sent to its own database works on ours, one statement after the other, and what it wrote is
/// there: a migration that breaks an instance which is not upgraded yet fails here.
#[tokio::test]
async fn statements_of_the_earlier_version_work_on_our_schema() {
    let Some(postgres) = Postgres::start() else { return };
    rig(&on(&postgres)).await.stop().await;
    let log = statements::read(&fixture("statements.json"));
    assert!(log.len() > 250, "{}", log.len());
    statements::replay(&postgres, &log).await;
    check(&rig(&on(&postgres)).await, &answers("postgres.json")).await;
}

/// Makes the fixture anew.
#[tokio::test]
#[ignore = "started by `cargo xtask fixture`, with the earlier version's binary"]
async fn record() {
    let Some(binary) = old::binary() else { return };
    let write = |name: &str, text: &str| std::fs::write(fixtures().join(name), text).unwrap();
    std::fs::create_dir_all(fixtures()).unwrap();

    let home = old::home("ttl: never, sqlite: {path: sessions.db}");
    let godex = old::Godex::start(&binary, home.path());
    let recorded = drive::drive(&godex.url).await;
    godex.stop();
    write("sqlite.sql", &dump::dump_sqlite(&home.path().join("sessions.db")));
    write("sqlite.json", &drive::written(&recorded));

    let mut postgres = Postgres::start().expect("the fixture needs a Postgres");
    // All statements on one connection, so that they have one order.
    let session = format!("ttl: never, backend: postgres, postgres: {{url: '{}', connections: 1}}", postgres.url());
    let home = old::home(&session);
    // It makes its schema before anything is written down.
    let godex = old::Godex::start(&binary, home.path());
    let healthy = testkit::Client::new().unwrap().get(&format!("{}/health", godex.url)).await.unwrap();
    assert_eq!(healthy.status, 200);
    godex.stop();
    let log = statements::Log::begin(&mut postgres).await;
    let godex = old::Godex::start(&binary, home.path());
    let recorded = drive::drive(&godex.url).await;
    godex.stop();
    write("statements.json", &log.end(&postgres).await);
    write("postgres.sql", &dump::dump_postgres(&postgres));
    write("postgres.json", &drive::written(&recorded));
}
