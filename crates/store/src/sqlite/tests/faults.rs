//! The disk says no, or the process is gone in the middle of a call.

use std::os::unix::process::ExitStatusExt;
use std::thread;

use super::disk::Cut;
use super::power::{cut, moments};
use super::trace::Event;
use super::{Run, Said, open};
use crate::OpenError;

/// A sync that fails counts as a failed commit. The system may have thrown away what it was to write, and later syncs
/// say nothing about that: so the power is cut afterwards, on a disk that behaves so.
#[tokio::test]
async fn failed_syncs_lose_nothing_and_are_got_over() {
    // Once, at each of the first calls of every thread; then again and again, when a start has had its chance.
    let once = (1..=16).map(|n| n.to_string());
    let often = ["12+11", "9+13"].map(str::to_owned);
    for when in once.chain(often) {
        let folder = tempfile::tempdir().unwrap();
        let inject = Some(format!("fsync,fdatasync:error=EIO:when={when}"));
        let run = Run { steps: [16, 16], synchronous: None, inject };
        let Some((events, status)) = run.trace(folder.path()) else { return };
        assert!(status.success(), "{when}: {status}");
        let failed = |event: &Event| matches!(event, Event::SyncEnded { done: false, .. });
        let acknowledged = |event: &&Event| matches!(event, Event::Said(line) if line.starts_with('!'));
        let Some(first) = events.iter().position(failed) else { panic!("no sync failed for {when}") };
        assert!(events[first..].iter().any(|event| acknowledged(&event)), "{when}: nothing worked afterwards");
        let moments = moments(&events, 12);
        let (findings, said) = cut(events, &moments, run.steps, &[Cut::Dropped, Cut::Scattered, Cut::Torn]).await;
        assert!(findings.wrong.is_empty(), "{when}: {:#?}", findings.wrong);
        // Without a power cut, too.
        let wrong = said.check(folder.path()).await;
        assert!(wrong.is_empty(), "{when}: {wrong:#?}");
        println!("EIO at {when}: {} acknowledged, {} failed", said.acknowledged, said.failed);
    }
}

/// Also in the middle of a migration: the next start goes on where it was.
#[tokio::test]
async fn a_start_may_be_killed_at_any_call() {
    let again = tempfile::tempdir().unwrap();
    for n in 1.. {
        let fresh = tempfile::tempdir().unwrap();
        let inject = Some(format!("mkdir,pwrite64,ftruncate,unlink,fsync,fdatasync:signal=KILL:when={n}"));
        let run = Run { steps: [0, 0], synchronous: None, inject };
        // In a new folder, and in one where all starts so far were killed.
        let Some((_, status)) = run.trace(fresh.path()) else { return };
        run.trace(again.path());
        for folder in [&fresh, &again] {
            let wrong = Said::default().check(folder.path()).await;
            assert!(wrong.is_empty(), "killed at call {n}: {wrong:#?}");
        }
        if status.success() {
            assert!(n > 20, "only {n} calls");
            return;
        }
        // strace ends as its child did.
        assert!(status.signal() == Some(9) || status.code() == Some(137), "{status}");
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
        assert!(Said::default().check(folder.path()).await.is_empty());
    }
}
