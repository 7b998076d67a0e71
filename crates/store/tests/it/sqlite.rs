//! What the file must endure.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use store::{
    Error, Item, JobKind, JobLimits, KeyClaim, NewConversation, NewJob, NewTurn, OpenError, Parent, SqliteOptions,
    Status, Store, TurnEnd,
};
use tokio::task::JoinSet;

use crate::jobs::{MANY, background, begin, by, claimed, worker};
use crate::keys::key;
use crate::make::{after, history, items, names, tenant, turn};
use crate::model::random_trees;
use crate::turns::{begun, events};

pub(crate) fn open(path: &Path) -> Result<Store, OpenError> {
    Store::sqlite(path, &SqliteOptions::default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("sessions.db")).unwrap();
    crate::run_all(&store).await;
    store.close().await;
}

#[tokio::test]
async fn a_long_lookup_in_a_file_lets_others_in() {
    let folder = tempfile::tempdir().unwrap();
    crate::contract::a_long_lookup_lets_others_in(open(&folder.path().join("s.db")).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_jobs_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("s.db")).unwrap();
    crate::random_jobs::random_jobs(&store, 100, 500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_trees_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("s.db")).unwrap();
    random_trees(&store, 100, 1_000).await;
}

#[tokio::test]
async fn what_an_earlier_process_ran_is_found_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (store, gone, lease) = (open(&path).unwrap(), worker(), Duration::from_hours(1));
    let t = tenant(&store, "t");
    let metadata = Bytes::from_static(b"{}");
    for id in ["held", "free"] {
        let new = NewConversation { id: id.into(), created_at: 1, metadata: metadata.clone(), items: items("c0") };
        t.create_conversation(new).await.unwrap();
    }
    t.begin_turn("free", lease).await.unwrap();
    let dispatched = begin(&t, "dispatched", &gone, lease).await;
    t.dispatch(&dispatched).await.unwrap();
    begin(&t, "claimed", &gone, lease).await;
    let parent = Parent::Conversation(t.begin_turn("held", lease).await.unwrap());
    let none = JobLimits { running: 0, queued: 9 };
    t.begin_job(NewTurn { parent, ..begun("waits", "u") }, background(), &gone, none, lease).await.unwrap();
    assert_eq!(t.claim_key(key("k", 1, "unstored", &gone), lease, lease).await.unwrap(), KeyClaim::New);
    assert_eq!(t.use_key("used", "unstored", lease).await.unwrap(), None);
    store.close().await;

    let (store, me) = (open(&path).unwrap(), worker());
    let t = tenant(&store, "t");
    t.begin_turn("free", lease).await.unwrap();
    assert!(matches!(t.begin_turn("held", lease).await, Err(Error::Locked)), "its turn still waits");
    assert_eq!(t.claim_key(key("k", 1, "again", &me), lease, lease).await.unwrap(), KeyClaim::New);
    assert_eq!(t.use_key("used", "again", lease).await.unwrap().as_deref(), Some("unstored"));
    let found = store.recover(&me, 9, lease).await.unwrap();
    assert_eq!((found.requeued, found.abandoned.len()), (1, 1));
    t.finish(TurnEnd { status: Status::Failed, ..by(&found.abandoned[0].claim) }).await.unwrap();
    let claimed = store.claim(&me, MANY, 9, lease).await.unwrap();
    let ids: Vec<&str> = claimed.iter().map(|job| job.claim.response_id()).collect();
    assert_eq!(ids, ["claimed", "waits"]);
    for job in &claimed {
        t.finish(by(&job.claim)).await.unwrap();
    }
    assert_eq!(names(&t.conversation_history("held").await.unwrap()), "c0 u a");
}

#[tokio::test]
async fn a_file_has_one_owner_and_only_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/sessions.db");
    let store = open(&path).unwrap();
    assert!(store.ping().await.is_ok());
    let refused = open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }));
    assert!(refused.to_string().contains("sessions.db"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
            assert_eq!(mode(&file.unwrap().path()), 0o600);
        }
    }
    // A copy of the handle does not hold the file after it was closed.
    let copy = store.clone();
    store.close().await;
    assert!(copy.ping().await.is_err());
    open(&path).unwrap();
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path).unwrap();
    let t = tenant(&store, "t");
    t.put(turn("r1", "u1", "a1")).await.unwrap();
    let conversation =
        NewConversation { id: "c".into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: vec![] };
    t.create_conversation(conversation).await.unwrap();
    t.begin_turn("c", Duration::from_hours(1)).await.unwrap();
    store.close().await;
    let store = open(&path).unwrap();
    let t = tenant(&store, "t");
    // The secret is the same: what is sent again is shared, and seen by the id it has.
    t.put(NewTurn { input: vec![Item { id: "other".into(), ..crate::make::item("u1") }], ..turn("r2", "", "a2") })
        .await
        .unwrap();
    assert_eq!(history(&t, "r2").await.unwrap(), "u1 a2");
    // The process that had the lease is gone.
    t.begin_turn("c", Duration::from_hours(1)).await.unwrap();
}

#[test]
fn newer_damaged_and_foreign_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let newer = folder.path().join("newer.db");
    drop(open(&newer).unwrap());
    wait_for_lock(&newer);
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(open(&newer), Err(OpenError::Newer { found: 99, .. })));

    let altered = folder.path().join("altered.db");
    drop(open(&altered).unwrap());
    wait_for_lock(&altered);
    let change = "UPDATE migration SET checksum = x'00' WHERE number = 2";
    rusqlite::Connection::open(&altered).unwrap().execute_batch(change).unwrap();
    let refused = open(&altered).unwrap_err();
    assert!(matches!(refused, OpenError::Altered { number: 2, .. }), "{refused}");
    assert!(refused.to_string().contains("altered.db"), "{refused}");

    let garbage = folder.path().join("garbage.db");
    std::fs::write(&garbage, b"this is no database, but it is long enough to look at".repeat(20)).unwrap();
    assert!(open(&garbage).unwrap_err().to_string().contains("garbage.db"));
    assert!(std::fs::read(&garbage).unwrap().starts_with(b"this is no"), "it is left as it was");
}

/// The threads of a dropped store need a moment to close their file.
fn wait_for_lock(path: &Path) {
    while matches!(open(path), Err(OpenError::Locked { .. })) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path).unwrap();
    for n in 0..50 {
        tenant(&store, "t").put(turn(&format!("r{n}"), &"u ".repeat(20), &format!("a{n}"))).await.unwrap();
    }
    store.close().await;
    let mut bytes = std::fs::read(&path).unwrap();
    for (page, block) in bytes.chunks_mut(16_384).enumerate().skip(3) {
        if page % 2 == 0 {
            block[..64].fill(0xaa);
        }
    }
    std::fs::write(&path, bytes).unwrap();
    let refused = open(&path).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. } | OpenError::Sqlite { .. }), "{refused}");
}

#[tokio::test]
async fn a_file_from_before_there_was_anything_to_keep_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) STRICT").unwrap();
    drop(old);
    let store = open(&path).unwrap();
    tenant(&store, "t").put(turn("r", "u", "a")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_are_shared_by_those_who_wait() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("s.db")).unwrap();
    let before = store.counters();
    let mut tasks = JoinSet::new();
    for writer in 0..64 {
        let t = tenant(&store, "t");
        tasks.spawn(async move {
            for n in 0..20 {
                t.put(turn(&format!("r{writer}-{n}"), &format!("u{writer}_{n}"), &format!("a{writer}_{n}")))
                    .await
                    .unwrap();
            }
        });
    }
    tasks.join_all().await;
    let after = store.counters();
    let (writes, commits) = (after.writes - before.writes, after.commits - before.commits);
    assert_eq!(writes, 64 * 20);
    assert!(commits * 4 < writes, "{commits} commits for {writes} turns");
    // And one who is alone does not wait for others.
    tenant(&store, "t").put(turn("alone", "u", "a")).await.unwrap();
    assert_eq!(store.counters().commits, after.commits + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_elses_lock_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path).unwrap();
    let backup = rusqlite::Connection::open(&path).unwrap();
    backup.execute_batch("BEGIN IMMEDIATE").unwrap();
    let t = tenant(&store, "t");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { t.put(turn("r", "u", "a")).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(tasks.try_join_next().is_none(), "nothing is acknowledged before it is written");
    backup.execute_batch("COMMIT").unwrap();
    tasks.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(history(&tenant(&store, "t"), "r").await.unwrap(), "u a");
}

#[tokio::test]
async fn what_is_deleted_has_left_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path).unwrap();
    let t = tenant(&store, "t");
    let canary =
        |n: usize| Item { id: format!("i{n}"), body: Bytes::from(format!("\"canary-{n}-{}\"", "x".repeat(90))) };
    for n in 0..60 {
        let expires_at = (n % 3 == 1).then_some(1);
        let settings = Some(Bytes::from(format!("canary-settings-{n}")));
        let head = Bytes::from(format!("{{\"canary-head\":{n}}}"));
        let put = NewTurn { input: vec![canary(n)], expires_at, settings, head, ..turn(&format!("r{n}"), "", "a") };
        // Half of them in chains, so that deletions make holes as well as gaps.
        t.put(if n % 6 == 5 { after(&format!("r{}", n - 3), put) } else { put }).await.unwrap();
    }
    for n in 0..10 {
        let (id, expires_at) = (format!("b{n}"), (n % 2 == 1).then_some(1));
        let at_first = tenant(&store.clone().with_clock(store::Clock::new(|| 0)), "t");
        at_first.begin(NewTurn { expires_at, ..begun(&id, "") }).await.unwrap();
        at_first.append_events(&id, &events(0, &["canary-event"]), None).await.unwrap();
    }
    // A request goes with its job, and a log with its time.
    let request = Some(Bytes::from_static(b"canary-request"));
    let job = NewJob { kind: JobKind::Background, request };
    let claim = t.begin_job(begun("job", ""), job, &worker(), MANY, Duration::from_mins(1)).await.unwrap();
    let end = TurnEnd { events: Some(events(0, &["canary-last"])), ..by(&claimed(claim)) };
    t.finish(end).await.unwrap();
    assert_eq!(store.sweep_logs(i64::MAX, 100).await.unwrap(), 1);
    for id in (0..60).filter(|n| n % 3 != 1).map(|n| format!("r{n}")).chain((0..10).step_by(2).map(|n| format!("b{n}")))
    {
        t.delete_response(&id).await.unwrap();
    }
    assert_eq!(store.sweep(10, 100).await.unwrap(), 25);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "{}", file.display());
    }
}

/// A small file system of its own, where that is allowed.
#[cfg(target_os = "linux")]
struct Tmpfs(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl Tmpfs {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(folder.path());
        command
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
            .then_some(Self(folder))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_said_so_and_got_over() {
    let Some(disk) = Tmpfs::mount() else {
        testkit::skipped("the right to mount a file system");
        return;
    };
    let store = open(&disk.0.path().join("s.db")).unwrap();
    let t = tenant(&store, "t");
    t.put(turn("first", "u", "a")).await.unwrap();
    let filler = disk.0.path().join("filler");
    let _ = std::fs::write(&filler, vec![1; 8 << 20]);
    let mut kept = Vec::new();
    let refused = loop {
        let id = format!("r{}", kept.len());
        let noise: String =
            (0..3_000_u64).map(|n| char::from(b'a' + u8::try_from((n * n * 7 + n) % 26).unwrap())).collect();
        let item = Item { id: id.clone(), body: Bytes::from(format!("{id}{noise}")) };
        match t.put(NewTurn { input: vec![item], ..turn(&id, "", "a") }).await {
            Ok(()) => kept.push(id),
            Err(error) => break error,
        }
        assert!(kept.len() < 10_000);
    };
    assert!(matches!(refused, Error::Full), "{refused:?}");
    assert_eq!(history(&t, "first").await.unwrap(), "u a", "reading goes on");
    assert!(matches!(t.response(&format!("r{}", kept.len())).await, Err(Error::NotFound)));
    std::fs::remove_file(&filler).unwrap();
    t.put(after("first", turn("second", "v", "b"))).await.unwrap();
    assert_eq!(history(&t, "second").await.unwrap(), "u a v b");
    for id in &kept {
        t.response(id).await.unwrap();
    }
    store.close().await;
    open(&disk.0.path().join("s.db")).unwrap();
}

/// Also when there is not even room for the files that a new connection needs.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_stays_full_is_said_so_each_time() {
    let Some(disk) = Tmpfs::mount() else {
        testkit::skipped("the right to mount a file system");
        return;
    };
    let store = open(&disk.0.path().join("s.db")).unwrap();
    let t = tenant(&store, "t");
    t.put(turn("first", "u", "a")).await.unwrap();
    let fillers: Vec<_> = (0..4).map(|n| disk.0.path().join(format!("filler{n}"))).collect();
    // Nothing that could be packed.
    let mut state = 1_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    let noise: String = (0..400_000).map(|_| letter()).collect();
    for (n, filler) in fillers.iter().enumerate() {
        // Also the room that the last try gave back.
        let _ = std::fs::write(filler, vec![1; 8 << 20]);
        let item = Item { id: format!("i{n}"), body: Bytes::from(format!("\"{noise}\"")) };
        let refused = t.put(NewTurn { input: vec![item], ..turn(&format!("r{n}"), "", "a") }).await;
        assert!(matches!(refused, Err(Error::Full)), "{n}: {refused:?}");
    }
    for filler in &fillers {
        std::fs::remove_file(filler).unwrap();
    }
    t.put(after("first", turn("second", "v", "b"))).await.unwrap();
    assert_eq!(history(&t, "second").await.unwrap(), "u a v b");
}

/// A second process by another name would take the first one's work for lost.
#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_file_is_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("s.db"), folder.path().join("link.db"));
    let store = open(&path).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(open(&link), Err(OpenError::Locked { .. })));
    store.close().await;
    open(&link).unwrap().close().await;
}

/// Also when the file is made by way of the link: who comes later finds it by either name.
#[cfg(unix)]
#[tokio::test]
async fn a_link_to_a_file_that_is_not_there_yet_is_that_file() {
    use std::os::unix::fs::symlink;
    for linked in ["s.db", "further.db"] {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // One that leads there by its own folder, one that leads to the other.
        symlink("s.db", at("further.db")).unwrap();
        symlink(at(linked), at("link.db")).unwrap();
        let store = open(&at("link.db")).unwrap();
        for name in ["s.db", "further.db", "link.db", "./../link.db"] {
            let name = name.replace("..", &format!("../{}", folder.path().file_name().unwrap().display()));
            assert!(matches!(open(&at(&name)), Err(OpenError::Locked { .. })), "{linked}: {name}");
        }
        store.close().await;
        for name in ["s.db", "link.db"] {
            open(&at(name)).unwrap().close().await;
        }
    }
}

/// Earlier versions lock the name that they were given.
#[cfg(unix)]
#[tokio::test]
async fn an_earlier_version_on_a_link_is_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("s.db"), folder.path().join("link.db"));
    open(&path).unwrap().close().await;
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let earlier = std::fs::File::create(folder.path().join("link.db.lock")).unwrap();
    earlier.try_lock().unwrap();
    assert!(matches!(open(&link), Err(OpenError::Locked { .. })));
    drop(earlier);
    let store = open(&link).unwrap();
    let earlier = std::fs::File::open(folder.path().join("link.db.lock")).unwrap();
    assert!(earlier.try_lock().is_err(), "and this is another one to it");
    store.close().await;
}

/// What is written into a file without a name is lost with the process: it is refused, and nobody makes another file.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_removed_or_replaced_is_noticed_and_may_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, away) = (folder.path().join("s.db"), folder.path().join("away"));
    let store = open(&path).unwrap();
    let t = tenant(&store, "t");
    t.put(turn("first", "u", "a")).await.unwrap();
    let move_all = |from: &Path, to: &Path| {
        for end in ["", "-wal", "-shm"] {
            std::fs::rename(format!("{}{end}", from.display()), format!("{}{end}", to.display())).unwrap();
        }
    };
    let said = |reason: &str| assert!(reason.contains("was removed or replaced"), "{reason}");
    for replaced in [false, true] {
        move_all(&path, &away);
        if replaced {
            std::fs::write(&path, "").unwrap();
        }
        for _ in 0..2 {
            for refused in [t.put(turn("second", "v", "b")).await, t.response("first").await.map(drop)] {
                match refused {
                    Err(Error::Unavailable(unavailable)) => said(unavailable.reason()),
                    other => panic!("{other:?}"),
                }
            }
            said(store.ping().await.unwrap_err().reason());
        }
        let left: Vec<u64> = std::fs::metadata(&path).iter().map(std::fs::Metadata::len).collect();
        assert_eq!(left, if replaced { vec![0] } else { vec![] });
        move_all(&away, &path);
        assert_eq!(history(&t, "first").await.unwrap(), "u a");
    }
    t.put(after("first", turn("second", "v", "b"))).await.unwrap();
    store.close().await;
    let store = open(&path).unwrap();
    assert_eq!(history(&tenant(&store, "t"), "second").await.unwrap(), "u a v b");
}

/// How many files of the folder have these bytes.
pub(crate) fn files_with(folder: &Path, needle: &str) -> usize {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    files.filter(|bytes| bytes.windows(needle.len()).any(|window| window == needle.as_bytes())).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_byte_of_an_erased_tenant_is_in_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = open(&path).unwrap();
    // In turns, so that both are on the same pages, and these are parted and joined.
    let (mine, others) = (["canaryone", "canarytwo", "canarysix"], ["neighboura", "neighbourb", "neighbourc"]);
    for (round, (canary, neighbour)) in mine.iter().zip(others).enumerate() {
        crate::holdings::fill(&store, &format!("tenant{canary}"), canary, 150 + round).await;
        crate::holdings::fill(&store, &format!("tenant{neighbour}"), neighbour, 150).await;
    }
    assert!(files_with(folder.path(), "canaryone") > 0);
    for canary in mine {
        store.delete_api_key(&format!("key_of tenant{canary}")).await.unwrap();
        store.set_tenant_terms(&store::Tenant::new(&format!("tenant{canary}")), None).await.unwrap();
        store.erase_tenant(&store::Tenant::new(&format!("tenant{canary}"))).await.unwrap();
        assert_eq!(files_with(folder.path(), canary), 0, "{canary}, while it is open");
    }
    for neighbour in others {
        assert!(files_with(folder.path(), neighbour) > 0, "{neighbour}");
    }
    store.close().await;
    for canary in mine {
        assert_eq!(files_with(folder.path(), canary), 0, "{canary}, after it was closed");
    }
    let store = open(&path).unwrap();
    for neighbour in others {
        let response = tenant(&store, &format!("tenant{neighbour}")).response(&format!("resp_{neighbour}149")).await;
        assert_eq!(response.unwrap().output.len(), 1);
    }
}
