//! What the file endures when the machine fails under it: the power, the disk, the process in the middle of anything.
//!
//! The tests start this very program again as the one that writes, under strace. It says in a ledger what it begins and
//! what was acknowledged, so one trace orders both against the writes.

#[path = "../../tests/it/chance.rs"]
mod chance;
mod check;
mod disk;
mod faults;
mod groups;
mod power;
mod trace;
mod world;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use crate::{Clock, OpenError, SqliteOptions, Store};
use trace::Event;
use world::{World, perform};

const FOLDER: &str = "STORE_TEST_FOLDER";
const STEPS: &str = "STORE_TEST_STEPS";
const MORTAL: &str = "STORE_TEST_MORTAL";
const SYNCHRONOUS: &str = "STORE_TEST_SYNCHRONOUS";

/// Worlds that write at once.
const WORLDS: usize = 4;

/// The setting to use instead of this one, so that a test can show what a weaker one loses. Not in the product.
pub(super) fn synchronous(ours: &'static str) -> String {
    std::env::var_os(SYNCHRONOUS).map_or_else(|| ours.to_owned(), |other| other.into_string().unwrap())
}

/// By a clock that never moves: here only a sweep makes anything expire.
fn open(folder: &Path) -> Result<Store, OpenError> {
    let store = Store::sqlite(&folder.join("data/s.db"), &SqliteOptions::default());
    store.map(|store| store.with_clock(Clock::new(|| 0)))
}

type Steps = [usize; 2];

/// How the writer is run.
#[derive(Default)]
struct Run<'a> {
    /// Operations of each world in two sessions; the first one only adds.
    steps: Steps,
    synchronous: Option<&'a str>,
    /// What strace does to its calls.
    inject: Option<String>,
    /// Whether it dies of the first operation that fails.
    mortal: bool,
}

impl Run<'_> {
    /// Runs the writer on this folder and gives what it did. None, loudly, where strace does not work.
    fn trace(&self, folder: &Path) -> Option<(Vec<Event>, ExitStatus)> {
        // Where it is, it may still not be allowed.
        let probe = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
        if !probe.is_ok_and(|status| status.success()) {
            testkit::skipped("strace, with the right to trace");
            return None;
        }
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-xx", "-s", "1000000", "-e"]).arg(format!("trace={}", trace::CALLS));
        if let Some(inject) = &self.inject {
            command.args(["-e", &format!("inject={inject}")]);
        }
        command.arg("-o").arg(log.path()).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "sqlite::tests::the_writer", "--ignored", "--nocapture"]);
        command.env(FOLDER, folder).env(STEPS, self.steps.map(|steps| steps.to_string()).join(" "));
        if self.mortal {
            command.env(MORTAL, "1");
        }
        if let Some(synchronous) = self.synchronous {
            command.env(SYNCHRONOUS, synchronous);
        }
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        Some((trace::read(log.path(), folder), status))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started under strace by the other tests, with a folder"]
async fn the_writer() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let steps = std::env::var_os(STEPS).unwrap().into_string().unwrap();
    let steps: Vec<usize> = steps.split(' ').map(|steps| steps.parse().unwrap()).collect();
    let folder = Path::new(&folder);
    let ledger = OpenOptions::new().create(true).append(true).open(folder.join("ledger")).unwrap();
    let ledger = Arc::new(ledger);
    // Other worlds each time, on a folder where an earlier process has been.
    let number = ledger.metadata().unwrap().len();
    let mut worlds: Vec<World> = (0..WORLDS).map(|world| World::new(&format!("{world}.{number}"), steps[0])).collect();
    for (session, steps) in steps.into_iter().enumerate() {
        // Where calls fail, opening may have to be tried again.
        let store = (0..50).find_map(|_| open(folder).ok()).unwrap();
        let mut tasks = JoinSet::new();
        for world in worlds.drain(..) {
            tasks.spawn(act(store.clone(), world, Arc::clone(&ledger), (session, steps)));
        }
        worlds = tasks.join_all().await;
        store.close().await;
    }
}

async fn act(store: Store, mut world: World, ledger: Arc<File>, (session, steps): (usize, usize)) -> World {
    let say = |mark: &str, world: &World| {
        let line = format!("{mark} {}\n", world.name());
        (&*ledger).write_all(line.as_bytes()).unwrap();
    };
    for _ in 0..steps {
        let operation = world.next();
        say("?", &world);
        if perform(&store, operation).await.is_ok() {
            say("!", &world);
            world.done();
        } else {
            // Nobody knows whether it happened: another world goes on.
            say("x", &world);
            if std::env::var_os(MORTAL).is_some() {
                std::process::abort();
            }
            world = world.successor();
        }
        // Only with a reader's connection open does the log outlive a writer's that failed: once so, once so.
        let mut tries = if session > 0 { 10 } else { 0 };
        while tries > 0 && store.ping().await.is_err() {
            tries -= 1;
            assert!(tries > 0, "reading does not work again");
        }
    }
    world
}

/// What the ledger says up to some moment.
#[derive(Default)]
struct Ledger {
    worlds: BTreeMap<String, World>,
    acknowledged: usize,
    failed: usize,
}

impl Ledger {
    fn read(&mut self, line: &str, steps: Steps) {
        let (mark, name) = line.split_once(' ').unwrap();
        let world = self.worlds.entry(name.to_owned()).or_insert_with(|| World::new(name, steps[0]));
        match mark {
            "?" => drop(world.next()),
            "!" => {
                world.done();
                self.acknowledged += 1;
            }
            _ => self.failed += 1,
        }
    }

    /// Everything that is wrong with the store in this folder; nothing, if it is whole and goes on working.
    async fn check(&self, folder: &Path) -> Vec<String> {
        /// Another world each time, for folders that are looked at again.
        static AFTER: AtomicUsize = AtomicUsize::new(0);
        let store = match open(folder) {
            Ok(store) => store,
            Err(error) => return vec![format!("it does not open: {error}")],
        };
        let mut wrong = Vec::new();
        for world in self.worlds.values() {
            wrong.extend(world.check(&world::tenant(&store)).await);
        }
        let mut after = World::new(&format!("after{}.0", AFTER.fetch_add(1, Ordering::Relaxed)), 0);
        for _ in 0..5 {
            if let Err(error) = perform(&store, after.next()).await {
                wrong.push(format!("it takes nothing: {error}"));
            }
            after.done();
        }
        wrong.extend(after.check(&world::tenant(&store)).await);
        store.close().await;
        let connection = rusqlite::Connection::open(folder.join("data/s.db")).unwrap();
        let finding: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        if finding != "ok" {
            wrong.push(format!("it is damaged: {finding}"));
        }
        wrong
    }
}
