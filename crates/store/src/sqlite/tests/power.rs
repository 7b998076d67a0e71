//! The power goes at any moment: what was acknowledged is there, what was deleted stays away.

use std::collections::BTreeSet;
use std::path::Path;

use super::chance::Chance;
use super::disk::{Cut, Disk};
use super::trace::Event;
use super::{Ledger, Run, Steps, world};

/// What was found at all cuts together.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) cuts: usize,
    /// Cuts after which something acknowledged was gone.
    pub(super) losing: usize,
    pub(super) wrong: Vec<String>,
}

/// Cuts the power at these moments, one after the other, and looks at what is left each time.
pub(super) async fn cut(
    events: Vec<Event>,
    moments: &BTreeSet<usize>,
    steps: Steps,
    how: &[Cut],
) -> (Findings, Ledger) {
    let (mut disk, mut ledger, mut findings) = (Disk::default(), Ledger::default(), Findings::default());
    for (moment, event) in events.into_iter().enumerate() {
        if let Event::Ledger(line) = &event {
            ledger.read(line, steps);
        }
        disk.apply(event);
        if !moments.contains(&moment) {
            continue;
        }
        let how = how[findings.cuts % how.len()];
        let folder = quick_folder();
        for (path, content) in disk.after(how, &mut Chance::new(moment as u64)) {
            let path = folder.path().join(path);
            match content {
                Some(content) => std::fs::write(path, content).unwrap(),
                None => std::fs::create_dir(path).unwrap(),
            }
        }
        findings.cuts += 1;
        let wrong = ledger.check(folder.path()).await;
        findings.losing += usize::from(wrong.iter().any(|wrong| wrong.contains(&format!(": {}, ", world::MISSING))));
        findings.wrong.extend(wrong.into_iter().map(|wrong| format!("{how:?} at {moment}: {wrong}")));
    }
    (findings, ledger)
}

/// In memory where there is such a place: the power of this one does not go.
fn quick_folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// So many moments of a trace, each once; a tenth of them while the file is made.
pub(super) fn moments(events: &[Event], count: usize) -> BTreeSet<usize> {
    let mut chance = Chance::new(events.len() as u64);
    let first = events.iter().position(|event| matches!(event, Event::Ledger(_))).unwrap_or(0);
    let mut moments: BTreeSet<usize> = (0..count / 10).map(|cut| first * cut * 10 / count).collect();
    while moments.len() < count {
        moments.insert(chance.below(events.len()));
    }
    moments
}

fn sized(ci: usize) -> usize {
    if std::env::var_os("GODEX_FULL").is_some() { ci * 10 } else { ci }
}

#[tokio::test]
async fn power_cuts_lose_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run { steps: [180, 60], ..Run::default() };
    let Some((events, status)) = run.trace(folder.path()) else { return };
    assert!(status.success(), "{status}");
    let (emptied, restarted) = checkpoints(&events);
    let moments = moments(&events, sized(200));
    let (findings, ledger) = cut(events, &moments, run.steps, &[Cut::Dropped, Cut::Scattered, Cut::Torn]).await;
    println!(
        "{} cuts, {} operations acknowledged, the log {restarted} times full and {emptied} times emptied",
        findings.cuts, ledger.acknowledged
    );
    assert!(findings.wrong.is_empty(), "{:#?}", findings.wrong);
    assert_eq!((ledger.acknowledged, ledger.failed), (240 * super::WORLDS, 0));
    assert!(emptied > 5 && restarted > 1, "{emptied} {restarted}");
}

/// The same test with less than full sync must fail, or it would prove nothing.
#[tokio::test]
async fn power_cuts_do_lose_what_was_not_synced() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run { steps: [100, 20], synchronous: Some("NORMAL"), ..Run::default() };
    let Some((events, status)) = run.trace(folder.path()) else { return };
    assert!(status.success(), "{status}");
    let moments = moments(&events, 40);
    let (findings, ledger) = cut(events, &moments, run.steps, &[Cut::Dropped]).await;
    println!("synchronous=NORMAL: {} of {} cuts lost what was acknowledged", findings.losing, findings.cuts);
    assert!(findings.losing * 3 > findings.cuts, "{findings:?}");
    assert_eq!(ledger.failed, 0);
}

/// How often the log was emptied, and how often it was begun anew over what was in it, because it was full.
fn checkpoints(events: &[Event]) -> (usize, usize) {
    let (mut emptied, mut restarted, mut empty) = (0, 0, true);
    for event in events {
        match event {
            Event::Resized { path, size: 0 } if path.ends_with("-wal") => (emptied, empty) = (emptied + 1, true),
            Event::Removed(path) if path.ends_with("-wal") => empty = true,
            Event::Written { path, at: 0, .. } if path.ends_with("-wal") => {
                restarted += usize::from(!empty);
                empty = false;
            }
            _ => {}
        }
    }
    (emptied, restarted)
}
