//! kill -9, again and again: what was acknowledged is there, what was deleted stays away.
//!
//! The test starts itself as the process that is killed.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use store::{Error, EventLimits, Status, Store, TurnEnd};
use tokio::task::JoinSet;

use crate::chance::Chance;
use crate::jobs::{MANY, begin, by, terminal, worker};
use crate::make::{after, history, tenant, turn};
use crate::sqlite::open;
use crate::turns::events;

const CYCLES: u64 = 20;
const FOLDER: &str = "STORE_TEST_FOLDER";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let mut chance = Chance::new(7);
    for cycle in 0..CYCLES {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::the_process_that_is_killed", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let ledger = folder.path().join("ledger");
        let before = lines(&ledger);
        while lines(&ledger) < before + 50 {
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself in cycle {cycle}");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(open(&folder.path().join("s.db")).is_err(), "a second process is refused");
        std::thread::sleep(Duration::from_millis(u64::try_from(chance.below(60)).unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
        let store = open(&folder.path().join("s.db")).unwrap();
        check(&store, &ledger).await;
        store.close().await;
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Each line says that something was acknowledged: `+` a turn and the history it had, `-` a deletion, `>` a job that began,
/// `.` one that ended.
async fn check(store: &Store, ledger: &Path) {
    let t = tenant(store, "t");
    let text = std::fs::read_to_string(ledger).unwrap();
    end_what_was_left(store).await;
    for (mark, statuses) in [(". ", &[Status::Completed][..]), ("> ", &[Status::Completed, Status::Failed])] {
        for id in text.lines().filter_map(|line| line.strip_prefix(mark)) {
            let page = t.events_after(id, None, EventLimits { events: 9, bytes: 999 }).await.unwrap();
            assert!(statuses.contains(&page.status), "{id} is {}", page.status);
            assert_eq!(page.events.last().unwrap().json, "end", "{id}");
        }
    }
    let deleted: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    for line in text.lines().filter_map(|line| line.strip_prefix("+ ")) {
        let (id, expected) = line.split_once(' ').unwrap();
        match history(&t, id).await {
            // Its own deletion may have been done and not yet written down.
            Err(Error::NotFound) => assert!(deleted.contains(&id) || id.contains('d'), "{id} is lost"),
            Ok(found) => {
                assert!(!deleted.contains(&id), "{id} is back");
                assert_eq!(found, expected);
            }
            Err(error) => panic!("{id}: {error}"),
        }
    }
}

/// Nothing runs on: what the killed process had is found at once.
async fn end_what_was_left(store: &Store) {
    let me = worker();
    let mut claims = Vec::new();
    loop {
        let found = store.recover(&me, 7, Duration::from_mins(1)).await.unwrap();
        if found.abandoned.is_empty() && found.requeued == 0 {
            break;
        }
        claims.extend(found.abandoned.into_iter().map(|job| job.claim));
    }
    claims
        .extend(store.claim(&me, MANY, 1_000, Duration::from_mins(1)).await.unwrap().into_iter().map(|job| job.claim));
    for claim in claims {
        let t = tenant(store, "t");
        let events = terminal(&t, claim.response_id()).await;
        t.finish(TurnEnd { status: Status::Failed, events, ..by(&claim) }).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the test above, with a folder"]
async fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let store = open(&folder.join("s.db")).unwrap();
    let ledger = OpenOptions::new().create(true).append(true).open(folder.join("ledger")).unwrap();
    let ledger = Arc::new(Mutex::new(ledger));
    let run = lines(&folder.join("ledger"));
    let (me, mut tasks) = (worker(), JoinSet::new());
    for writer in 0..16 {
        let (t, ledger) = (tenant(&store, "t"), Arc::clone(&ledger));
        let note = move |text: String| note(&ledger, &text);
        tasks.spawn(async move {
            let (mut last, mut items) = (None::<String>, String::new());
            for n in 0.. {
                let id = format!("r{run}-{writer}-{n}");
                let new = turn(&id, &format!("u{n}"), &format!("a{writer}_{n}"));
                t.put(last.as_ref().map_or(new.clone(), |last| after(last, new))).await.unwrap();
                items = format!("{items} u{n} a{writer}_{n}");
                note(format!("+ {id}{items}"));
                last = Some(id);
                let job = format!("j{run}-{writer}-{n}");
                let claim = begin(&t, &job, &me, Duration::from_mins(1)).await;
                note(format!("> {job}"));
                if n % 2 == 0 {
                    t.dispatch(&claim).await.unwrap();
                    t.append_events(&job, &events(0, &["first"]), Some(&claim)).await.unwrap();
                }
                let last = events(u64::from(n % 2 == 0), &["end"]);
                t.finish(TurnEnd { events: Some(last), ..by(&claim) }).await.unwrap();
                note(format!(". {job}"));
                // A lone one that is deleted again.
                let lone = format!("d{run}-{writer}-{n}");
                t.put(turn(&lone, "x", &lone)).await.unwrap();
                note(format!("+ {lone} x {lone}"));
                t.delete_response(&lone).await.unwrap();
                note(format!("- {lone}"));
            }
        });
    }
    tasks.join_all().await;
}

fn note(ledger: &Mutex<File>, text: &str) {
    ledger.lock().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
}
