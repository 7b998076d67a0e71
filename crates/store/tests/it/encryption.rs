//! Encryption at rest: the same contract, nothing to be read in the files, no way in with another key, and keys that change.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use store::{
    Encryption, Error, NewConversation, NewJob, NewNotice, NewTurn, OpenError, Rekeyed, Rewriting, SqliteOptions,
    Store, StoreKey, Tenant, TurnEnd,
};

use crate::jobs::{MANY, background, worker};
use crate::make::{DEEP, history, item, tenant, turn};
use crate::turns::{begun, ended, events};

fn key(byte: u8) -> StoreKey {
    StoreKey::new(&[byte; 32]).unwrap()
}

/// Sealed with the first; the others only open.
pub(crate) fn keys(bytes: &[u8]) -> Encryption {
    Encryption { key: bytes.first().copied().map(key), previous: bytes.iter().skip(1).copied().map(key).collect() }
}

fn opening(byte: u8) -> Encryption {
    Encryption { key: None, previous: vec![key(byte)] }
}

fn open(path: &Path, encryption: Encryption) -> Result<Store, OpenError> {
    Store::encrypted_sqlite(path, &SqliteOptions::default(), encryption)
}

const CANARIES: [&str; 9] = [
    "CANARY-input",
    "CANARY-output",
    "CANARY-head",
    "CANARY-settings",
    "CANARY-event",
    "CANARY-request",
    "CANARY-notice",
    "CANARY-metadata",
    "CANARY-long",
];

fn canary(name: &str) -> Bytes {
    assert!(CANARIES.contains(&name), "{name}");
    Bytes::from(format!(r#"{{"text":"{name}"}}"#))
}

/// Everything in which words of clients and models are kept.
async fn fill(store: &Store, name: &str) {
    let (t, me, lease) = (tenant(store, name), worker(), Duration::from_hours(1));
    let words = |id: &str, name: &str| store::Item { id: id.into(), body: canary(name) };
    let long = Bytes::from(format!(r#"{{"text":"{}"}}"#, "CANARY-long ".repeat(4_000)));
    let whole = NewTurn {
        head: canary("CANARY-head"),
        settings: Some(canary("CANARY-settings")),
        input: vec![words("i1", "CANARY-input"), store::Item { id: "i2".into(), body: long }],
        output: vec![words("o1", "CANARY-output")],
        events: Some(events(0, &[r#"{"event":"CANARY-event"}"#])),
        ..turn("whole", "", "")
    };
    t.put(whole).await.unwrap();
    let new = NewConversation {
        id: "conv".into(),
        created_at: 1,
        metadata: canary("CANARY-metadata"),
        items: vec![words("c1", "CANARY-input")],
    };
    t.create_conversation(new).await.unwrap();
    let job = NewJob { request: Some(canary("CANARY-request")), ..background() };
    t.begin_job(begun("waits", "u"), job, &me, store::JobLimits { running: 0, queued: 9 }, lease).await.unwrap();
    t.begin(begun("told", "u")).await.unwrap();
    let notice = NewNotice { id: "n".into(), endpoint: "e".into(), body: canary("CANARY-notice") };
    t.finish(TurnEnd { notices: vec![notice], ..ended("told", "a") }).await.unwrap();
}

/// That all of it is there as it was given.
async fn check(store: &Store, name: &str) {
    let t = tenant(store, name);
    let whole = t.response("whole").await.unwrap();
    assert_eq!((whole.head, whole.settings), (canary("CANARY-head"), Some(canary("CANARY-settings"))));
    assert_eq!(whole.output[0].body, canary("CANARY-output"));
    let history = t.history("whole", DEEP).await.unwrap();
    assert_eq!(history.items[0].body, canary("CANARY-input"));
    assert!(history.items[1].body.len() > 40_000);
    let limits = store::EventLimits { events: 9, bytes: 1_000 };
    assert_eq!(t.events_after("whole", None, limits).await.unwrap().events[0].json, r#"{"event":"CANARY-event"}"#);
    assert_eq!(t.conversation("conv").await.unwrap().metadata, canary("CANARY-metadata"));
    assert_eq!(t.conversation_item("conv", "c1").await.unwrap().body, canary("CANARY-input"));
    assert_eq!(t.item("o1").await.unwrap().body, canary("CANARY-output"));
}

/// What is claimed, and what is due, of all of them: given out once.
async fn take(store: &Store, names: &[&str]) {
    let jobs = store.claim(&worker(), MANY, 99, Duration::from_mins(1)).await.unwrap();
    let due = store.due_notices(99, Duration::from_mins(1)).await.unwrap();
    for name in names {
        let mine = |tenant: &Tenant| tenant.name() == *name;
        let job = jobs.iter().find(|job| mine(&job.tenant)).unwrap();
        assert_eq!(job.request.as_ref(), Some(&canary("CANARY-request")));
        assert_eq!(due.iter().find(|notice| mine(&notice.tenant)).unwrap().body, canary("CANARY-notice"));
    }
}

/// How often words that were stored are to be read in any file.
fn hits(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.map(|bytes| memchr::memmem::find_iter(&bytes, b"CANARY").count()).sum()
}

fn quiet(_: &Rekeyed) {}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_file_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("s.db"), keys(&[1])).unwrap();
    crate::run_all(&store).await;
    store.close().await;
}

#[tokio::test]
async fn nothing_is_to_be_read_in_the_files() {
    for (encryption, some) in [(Encryption::default(), true), (keys(&[1]), false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = open(&path, encryption.clone()).unwrap();
        fill(&store, "t").await;
        assert_eq!(hits(folder.path()) > 0, some, "while it is open");
        store.close().await;
        assert_eq!(hits(folder.path()) > 0, some, "and closed");
        let store = open(&path, encryption).unwrap();
        check(&store, "t").await;
        take(&store, &["t"]).await;
        store.close().await;
    }
}

#[tokio::test]
async fn a_file_opens_with_its_key_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path, keys(&[1])).unwrap();
    let derived = store.derive_key("x");
    store.close().await;
    // From the first moment on, also while it is empty.
    for _ in 0..2 {
        let refused = open(&path, Encryption::default()).unwrap_err();
        assert!(matches!(refused, OpenError::Encrypted { .. }), "{refused}");
        for other in [keys(&[2]), keys(&[2, 3]), opening(2)] {
            let refused = open(&path, other).unwrap_err();
            assert!(matches!(refused, OpenError::WrongKey { .. }), "{refused}");
        }
        for good in [keys(&[1]), keys(&[2, 1]), opening(1)] {
            let store = open(&path, good).unwrap();
            assert_eq!(store.derive_key("x"), derived);
            store.close().await;
        }
        let store = open(&path, keys(&[1])).unwrap();
        let _ = tenant(&store, "t").put(turn("r", "u", "a")).await;
        store.close().await;
    }
}

#[tokio::test]
async fn a_file_in_clear_is_sealed_by_and_by_or_at_once_and_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path, Encryption::default()).unwrap();
    fill(&store, "old").await;
    let derived = store.derive_key("x");
    store.close().await;
    let store = open(&path, keys(&[1])).unwrap();
    check(&store, "old").await;
    fill(&store, "new").await;
    tenant(&store, "old").put(turn("later", "u", "a")).await.unwrap();
    store.close().await;
    assert!(hits(folder.path()) > 0, "what was in clear still is");
    let store = open(&path, keys(&[1])).unwrap();
    let done = store.rekey(Rewriting::Seal, &mut quiet).await.unwrap();
    assert!(done.rows > 8 && done.tenants == 2 && done.damaged == 0 && done.kept == 0, "{done:?}");
    assert_eq!(hits(folder.path()), 0, "the server need not even stop");
    let again = store.rekey(Rewriting::Seal, &mut quiet).await.unwrap();
    assert_eq!((again.rows, again.data_keys), (0, 0));
    store.close().await;
    assert_eq!(hits(folder.path()), 0);
    assert!(matches!(open(&path, Encryption::default()), Err(OpenError::Encrypted { .. })));
    let store = open(&path, keys(&[1])).unwrap();
    assert_eq!(store.derive_key("x"), derived);
    for name in ["old", "new"] {
        check(&store, name).await;
    }
    take(&store, &["old", "new"]).await;
    // And back.
    let done = store.rekey(Rewriting::Clear, &mut quiet).await.unwrap();
    assert!(done.rows > 16 && done.damaged == 0, "{done:?}");
    store.close().await;
    let store = open(&path, Encryption::default()).unwrap();
    assert_eq!(store.derive_key("x"), derived);
    for name in ["old", "new"] {
        check(&store, name).await;
    }
    assert_eq!(history(&tenant(&store, "old"), "later").await.unwrap(), "u a");
    store.close().await;
}

/// However far a change of the key gets before its process is gone, nothing is lost, and the next one finishes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_the_key_that_is_cut_off_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let names = ["a", "b", "c"];
    let store = open(&path, keys(&[1])).unwrap();
    for name in names {
        fill(&store, name).await;
        for n in 0..150 {
            tenant(&store, name).put(turn(&format!("r{n}"), &format!("u{n}"), "a")).await.unwrap();
        }
    }
    store.close().await;
    for stop in [1, 2, 4, 7, 12, 20] {
        let store = open(&path, keys(&[2, 1])).unwrap();
        let (say, mut said) = tokio::sync::mpsc::channel::<()>(1);
        let mut told = 0;
        let mut tell = move |_: &Rekeyed| {
            told += 1;
            if told == stop {
                let _ = say.try_send(());
            }
        };
        // Dropped where it is, as by a kill; what it asked the writer for may or may not be done.
        tokio::select! {
            biased;
            _ = said.recv() => {}
            done = store.rekey(Rewriting::Seal, &mut tell) => { done.unwrap(); }
        }
        store.close().await;
        let store = open(&path, keys(&[2, 1])).unwrap();
        for name in names {
            check(&store, name).await;
            assert_eq!(history(&tenant(&store, name), "r149").await.unwrap(), "u149 a");
        }
        store.close().await;
    }
    let store = open(&path, keys(&[2, 1])).unwrap();
    let done = store.rekey(Rewriting::Seal, &mut quiet).await.unwrap();
    assert_eq!((done.tenants, done.damaged, done.kept), (3, 0, 0));
    store.close().await;
    assert!(matches!(open(&path, keys(&[1])), Err(OpenError::WrongKey { .. })));
    let store = open(&path, keys(&[2])).unwrap();
    for name in names {
        check(&store, name).await;
    }
    take(&store, &names).await;
    store.close().await;
}

/// Whoever can write to the file can at most destroy.
#[tokio::test]
async fn rows_that_were_swapped_or_changed_are_damage() {
    const SWAP: &str = "UPDATE item SET body = (SELECT other.body FROM item other WHERE other.tenant = 't' AND \
        other.id = iif(item.id = 'msg_u1', 'msg_u2', 'msg_u1')) WHERE tenant = 't' AND id IN ('msg_u1', 'msg_u2')";
    let changes = [
        SWAP,
        "UPDATE item SET body = (SELECT body FROM item WHERE tenant = 's' AND id = 'msg_u1') WHERE id = 'msg_u1'",
        "UPDATE item SET body = (SELECT head FROM response WHERE tenant = 't' AND id = 'r1') WHERE id = 'msg_u1'",
        "UPDATE item SET body = x'007b7d' WHERE id = 'msg_u1'",
        "UPDATE item SET body = substr(body, 1, length(body) - 1) WHERE id = 'msg_u1'",
        "UPDATE data_key SET wrapped = (SELECT wrapped FROM data_key WHERE tenant = 's') WHERE tenant = 't'",
        "DELETE FROM data_key WHERE tenant = 't'",
    ];
    for change in changes {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = open(&path, keys(&[1])).unwrap();
        for name in ["t", "s"] {
            tenant(&store, name).put(turn("r1", "u1", "a1")).await.unwrap();
            tenant(&store, name).put(turn("r2", "u2", "a2")).await.unwrap();
        }
        store.close().await;
        let file = rusqlite::Connection::open(&path).unwrap();
        assert!(file.execute(change, []).unwrap() > 0, "{change}");
        drop(file);
        let store = open(&path, keys(&[1])).unwrap();
        let found = history(&tenant(&store, "t"), "r1").await;
        assert!(matches!(found, Err(Error::Corrupt(_))), "{change}: {found:?}");
        assert!(matches!(tenant(&store, "t").item("msg_u1").await, Err(Error::Corrupt(_))), "{change}");
        store.close().await;
    }
}

#[tokio::test]
async fn a_tenant_without_its_data_keys_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("s.db"), keys(&[1])).unwrap();
    for name in ["t", "s"] {
        tenant(&store, name).put(turn("r", "u", "a")).await.unwrap();
    }
    assert_eq!(store.forget_tenant_keys(&Tenant::new("t")).await.unwrap(), 1);
    assert!(matches!(history(&tenant(&store, "t"), "r").await, Err(Error::Corrupt(_))));
    assert_eq!(history(&tenant(&store, "s"), "r").await.unwrap(), "u a");
    // What it writes from now on is sealed with a key of its own again.
    tenant(&store, "t").put(turn("later", "v", "b")).await.unwrap();
    assert_eq!(history(&tenant(&store, "t"), "later").await.unwrap(), "v b");
    assert_eq!(tenant(&store, "t").item("msg_v").await.unwrap(), item("v"));
    store.close().await;
}

/// All that a look at everything finds.
async fn looked_over(store: &Store) -> Vec<String> {
    let mut checking = store.checking();
    while checking.step().await.unwrap() {}
    checking.findings().lines()
}

/// An erasure forgets the keys first. A copy that is made meanwhile, and what a process leaves that is killed then, is whole.
#[tokio::test]
async fn what_is_left_of_a_tenant_that_is_erased_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path, keys(&[1])).unwrap();
    for name in ["erased", "other"] {
        fill(&store, name).await;
    }
    store.forget_tenant_keys(&Tenant::new("erased")).await.unwrap();
    assert_eq!(looked_over(&store).await, Vec::<String>::new());
    store.close().await;
    for encryption in [keys(&[1]), Encryption::default()] {
        let found = store::check_sqlite(&path, &encryption).unwrap();
        assert_eq!(found.lines(), Vec::<String>::new());
        assert!(found.unknown().unwrap().contains("rows are encrypted and were not read"));
    }
    // What else is there is still looked at.
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE item SET body = x'02ff' WHERE tenant = 'other' AND id = 'o1'").unwrap();
    connection.close().unwrap();
    let found = store::check_sqlite(&path, &keys(&[1])).unwrap().lines();
    assert!(found.len() == 1 && found[0].starts_with("item o1 of tenant other cannot be read"), "{found:?}");
    let store = open(&path, keys(&[1])).unwrap();
    let live = looked_over(&store).await;
    assert!(live.contains(&found[0]) && !live.iter().any(|line| line.contains("erased")), "{live:?}");
    store.close().await;
}

/// Where nothing was ever sealed, a body that says that it is has been changed.
#[tokio::test]
async fn a_sealed_body_in_a_file_in_clear_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path, Encryption::default()).unwrap();
    tenant(&store, "t").put(turn("r", "u", "a")).await.unwrap();
    store.close().await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE item SET body = x'02ff' WHERE id = 'msg_a'").unwrap();
    connection.close().unwrap();
    let expected = "item msg_a of tenant t cannot be read: a stored body is encrypted, and there is no key";
    assert_eq!(store::check_sqlite(&path, &Encryption::default()).unwrap().lines(), [expected]);
    let store = open(&path, Encryption::default()).unwrap();
    assert!(looked_over(&store).await.contains(&expected.to_owned()));
    store.close().await;
}

#[cfg(unix)]
mod postgres {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use store::PostgresOptions;
    use tokio::task::JoinSet;

    use super::*;
    use crate::postgres::{postgres, sql};
    use crate::server::{Opened, Postgres};

    async fn open(server: &Postgres, encryption: Encryption) -> Result<Store, OpenError> {
        // On a slow disk many wait for few connections.
        let patient = Duration::from_secs(30);
        let options = PostgresOptions { acquire: patient, statement: patient, ..PostgresOptions::default() };
        Store::encrypted_postgres(&server.url(), &options, encryption).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_encrypted_postgres_keeps_the_contract() {
        let server = postgres!();
        server.store().await.close().await;
        crate::run_all(&open(&server, keys(&[1])).await.unwrap()).await;
        let refused = open(&server, Encryption::default()).await;
        assert!(matches!(refused, Err(OpenError::Encrypted { .. })), "{refused:?}");
        let refused = open(&server, keys(&[2])).await;
        assert!(matches!(refused, Err(OpenError::WrongKey { .. })), "{refused:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_is_left_of_a_tenant_that_is_erased_is_no_damage_there_either() {
        let server = postgres!();
        server.store().await.close().await;
        let store = open(&server, keys(&[1])).await.unwrap();
        for name in ["erased", "other"] {
            fill(&store, name).await;
        }
        store.forget_tenant_keys(&Tenant::new("erased")).await.unwrap();
        assert_eq!(looked_over(&store).await, Vec::<String>::new());
        sql(&server, "UPDATE godex.item SET body = '\\x02ff' WHERE id = 'o1'").await;
        let found = looked_over(&store).await;
        assert!(!found.is_empty() && found.iter().all(|line| line.contains("of tenant other")), "{found:?}");
    }

    /// Two instances write and read one another's turns, the whole time while the key changes.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_key_changes_under_two_instances() {
        let server = postgres!();
        let clear = server.store().await;
        fill(&clear, "clear").await;
        let derived = clear.derive_key("x");
        clear.close().await;
        let (one, two) = (open(&server, keys(&[1, 2])).await.unwrap(), open(&server, keys(&[2, 1])).await.unwrap());
        fill(&one, "sealed").await;
        check(&two, "sealed").await;
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for (who, mine, other) in [("one", one.clone(), two.clone()), ("two", two.clone(), one.clone())] {
            let stop = Arc::clone(&stop);
            tasks.spawn(async move {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    // Now and then a tenant that nobody has a key of.
                    for name in ["clear".to_owned(), "sealed".to_owned(), format!("new-{who}-{}", (n / 20).min(2))] {
                        let id = format!("{who}-{n}");
                        tenant(&mine, &name).put(turn(&id, &format!("u{n}"), "a")).await.unwrap();
                        assert_eq!(history(&tenant(&other, &name), &id).await.unwrap(), format!("u{n} a"), "{name}");
                    }
                    n += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                n
            });
        }
        let third = open(&server, keys(&[2, 1])).await.unwrap();
        let done = third.rekey(Rewriting::Seal, &mut quiet).await.unwrap();
        assert!(done.rows > 20 && done.damaged == 0 && done.kept > 0, "{done:?}");
        stop.store(true, Ordering::Relaxed);
        let written = tasks.join_all().await;
        assert!(written.iter().all(|n| *n > 5), "{written:?}");
        // The first still wraps with the old key the keys that it makes. Without it, and once more, there is only the new.
        one.close().await;
        third.rekey(Rewriting::Seal, &mut quiet).await.unwrap();
        third.close().await;
        two.close().await;
        let only = open(&server, keys(&[2])).await.unwrap();
        assert_eq!(only.derive_key("x"), derived);
        for name in ["clear", "sealed"] {
            check(&only, name).await;
            assert_eq!(history(&tenant(&only, name), "one-3").await.unwrap(), "u3 a");
            assert_eq!(history(&tenant(&only, name), "two-3").await.unwrap(), "u3 a");
        }
        take(&only, &["clear", "sealed"]).await;
        only.close().await;
        // Nothing in clear is left.
        let clear = "DO $$ BEGIN ASSERT NOT EXISTS (SELECT 1 FROM godex.item WHERE substring(body FROM 1 FOR 1) = '\\x00'); \
            ASSERT NOT EXISTS (SELECT 1 FROM godex.response WHERE substring(head FROM 1 FOR 1) = '\\x00'); END $$";
        sql(&server, clear).await;
    }
}
