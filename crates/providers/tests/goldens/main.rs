//! The goldens: every page below `tests/golden` is a test of its own, `SPEC/CASE`, found when this starts. A runner
//! of its own (`libtest-mimic`) lists them, as the usual one does its functions.
//!
//! With `GODEX_STREAMS` in the environment, the streams and objects are also written to that folder, and the names of
//! all events: other programs check those (`tests/clients/types`).
#![forbid(unsafe_code)]

#[cfg(test)]
mod gist;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod run;
#[cfg(test)]
#[path = "../support/specs.rs"]
mod specs;
#[cfg(test)]
mod streams;
#[cfg(test)]
#[path = "../support/transparent_seal.rs"]
mod transparent_seal;
#[cfg(test)]
#[path = "../support/turn.rs"]
mod turn;

#[cfg(test)]
fn main() -> std::process::ExitCode {
    use libtest_mimic::{Arguments, Failed, Trial};
    use testkit::golden::{self, Page};

    fn test(page: &Page) -> Result<(), Failed> {
        let case = page.read().map_err(|problem| format!("{problem:#}"))?;
        case.settle(&gist::sections(&case)).map_err(|problem| format!("{problem:#}"))?;
        laws::check(&case);
        streams::keep(&case);
        Ok(())
    }

    let pages = golden::pages().unwrap_or_else(|problem| panic!("{problem:#}"));
    streams::name_events();
    let trials = pages.into_iter().map(|page| Trial::test(page.label(), move || test(&page))).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
