//! The disk says no, or the process is gone in the middle of a call.

use std::thread;

use super::disk::Cut;
use super::power::{cut, moments};
use super::trace::Event;
use super::{Ledger, Run, open};
use crate::OpenError;

/// Runs the writer while calls fail. Nothing acknowledged is lost, and it goes on without a restart; also if the power is
/// cut afterwards, on a disk that has thrown away what a failed sync was to keep. None where strace does not work.
async fn endure(calls: &str, when: &str) -> Option<Ledger> {
    let folder = tempfile::tempdir().unwrap();
    let inject = Some(format!("{calls}:when={when}"));
    let run = Run { steps: [16, 16], inject, ..Run::default() };
    let (events, status) = run.trace(folder.path())?;
    assert!(status.success(), "{calls} {when}: {status}");
    let last = events.iter().rposition(|event| matches!(event, Event::Ledger(line) if line.starts_with('!')));
    let failed = events.iter().position(|event| matches!(event, Event::Ledger(line) if line.starts_with('x')));
    assert!(failed < last, "{calls} {when}: nothing worked afterwards");
    let moments = moments(&events, 12);
    let (findings, ledger) = cut(events, &moments, run.steps, &[Cut::Dropped, Cut::Scattered, Cut::Torn]).await;
    assert!(findings.wrong.is_empty(), "{calls} {when}: {:#?}", findings.wrong);
    // Without a power cut, too.
    let wrong = ledger.check(folder.path()).await;
    assert!(wrong.is_empty(), "{calls} {when}: {wrong:#?}");
    println!("{calls} at {when}: {} acknowledged, {} failed", ledger.acknowledged, ledger.failed);
    Some(ledger)
}

#[tokio::test]
async fn failed_syncs_lose_nothing_and_are_got_over() {
    // Once, at each of the first calls of every thread; then again and again, when a start has had its chance.
    let once = (1..=16).map(|n| n.to_string());
    let mut failed = 0;
    for when in once.chain(["12+11", "9+13"].map(str::to_owned)) {
        let Some(ledger) = endure("fsync,fdatasync:error=EIO", &when).await else { return };
        failed += ledger.failed;
    }
    assert!(failed > 20, "{failed} operations heard of a failure");
}

/// The sync of a commit fails, and what it was to keep is still there to be read, and to be taken for kept: by the next
/// connection, when closing cannot empty the log either, and by the next process.
#[tokio::test]
async fn nothing_is_built_upon_what_failed_syncs_left_in_the_log() {
    for (when, mortal) in [("2..3", false), ("3..4", false), ("5..6", false), ("16+", true), ("21+", true)] {
        let folder = tempfile::tempdir().unwrap();
        // Opening is to work: the first syncs of its thread are spared.
        let mut run = Run { steps: [24, 0], mortal, ..Run::default() };
        run.inject = Some(format!("fsync,fdatasync:error=EIO:when={when}"));
        let Some((mut events, status)) = run.trace(folder.path()) else { return };
        assert_eq!(status.success(), !mortal, "{when}: {status}");
        let failed = events.iter().rposition(|event| matches!(event, Event::SyncEnded { done: false, .. })).unwrap();
        if mortal {
            run = Run { steps: [24, 0], ..Run::default() };
            let (more, status) = run.trace(folder.path()).unwrap();
            assert!(status.success(), "{when}: {status}");
            events.extend(more);
        }
        let mut moments = moments(&events, 20);
        moments.extend((failed..events.len()).filter(|moment| changes(&events[*moment])).take(80));
        let (findings, _) = cut(events, &moments, run.steps, &[Cut::Dropped, Cut::Scattered, Cut::Torn]).await;
        assert!(findings.wrong.is_empty(), "{when}: {:#?}", findings.wrong);
    }
}

/// Whether a power cut right after it is another one than before it.
fn changes(event: &Event) -> bool {
    matches!(event, Event::Written { .. } | Event::SyncEnded { .. } | Event::Ledger(_))
}

#[tokio::test]
async fn failed_writes_lose_nothing_and_are_got_over() {
    let mut failed = 0;
    for (error, when) in
        [("ENOSPC", "3"), ("ENOSPC", "40"), ("ENOSPC", "90"), ("ENOSPC", "130+70"), ("EIO", "25"), ("EIO", "110+90")]
    {
        let Some(ledger) = endure(&format!("pwrite64:error={error}"), when).await else { return };
        failed += ledger.failed;
    }
    assert!(failed > 10, "{failed} operations heard of a failure");
}

/// Also in the middle of a migration: the next start goes on where it was.
#[tokio::test]
async fn a_start_may_be_killed_at_any_call() {
    let again = tempfile::tempdir().unwrap();
    for n in 1.. {
        let fresh = tempfile::tempdir().unwrap();
        let inject = Some(format!("mkdir,pwrite64,ftruncate,unlink,fsync,fdatasync:signal=KILL:when={n}"));
        let run = Run { inject, ..Run::default() };
        // In a new folder, and in one where all starts so far were killed.
        let Some((_, status)) = run.trace(fresh.path()) else { return };
        run.trace(again.path());
        for folder in [&fresh, &again] {
            let wrong = Ledger::default().check(folder.path()).await;
            assert!(wrong.is_empty(), "killed at call {n}: {wrong:#?}");
        }
        if status.success() {
            assert!(n > 20, "only {n} calls");
            return;
        }
        // strace ends as its child did: by the signal.
        assert!(status.code().is_none(), "{status}");
    }
}

#[tokio::test]
async fn of_those_who_start_at_once_one_migrates_and_owns_it() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let opened: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| open(folder.path()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let refused = |result: &&Result<_, OpenError>| matches!(result, Err(OpenError::Locked { .. }));
        assert_eq!(opened.iter().filter(refused).count(), 5);
        for store in opened.into_iter().flatten() {
            assert!(store.ping().await.is_ok());
            store.close().await;
        }
        assert!(Ledger::default().check(folder.path()).await.is_empty());
    }
}
