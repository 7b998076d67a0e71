//! What godex sends in the cases, for programs that check it against the types of the official SDKs.

use std::fs;
use std::path::PathBuf;

use bridge::Events;
use testkit::golden::Case;
use wire::responses::EventKind;

use crate::run::whole;

fn folder() -> Option<PathBuf> {
    std::env::var_os("GODEX_STREAMS").map(PathBuf::from)
}

/// Every name that an event can have.
pub(crate) fn name_events() {
    let Some(folder) = folder() else { return };
    let names: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
    fs::write(folder.join("events.txt"), names.join("\n")).unwrap();
}

/// The case's stream and object.
pub(crate) fn keep(case: &Case) {
    let Some(folder) = folder().filter(|_| case.status < 400) else { return };
    let name = case.page.label().replace('/', "--");
    fs::write(folder.join(format!("{name}.sse")), whole(case, Events::sse()).out).unwrap();
    fs::write(folder.join(format!("{name}.json")), whole(case, Events::silent()).out).unwrap();
}
