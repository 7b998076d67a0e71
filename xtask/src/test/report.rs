//! What is printed after the steps: how long each took, each suite of the tests by itself, and which tests did not
//! happen for want of something.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Where nextest writes what it ran (`.config/nextest.toml`).
fn junit() -> PathBuf {
    crate::root().join("target/nextest/default/junit.xml")
}

/// Where tests write that they were skipped.
fn skips() -> PathBuf {
    crate::root().join("target/skipped.txt")
}

/// Before the tests: nothing of an earlier run may be reported.
pub(super) fn clear() {
    fs::remove_file(junit()).ok();
    fs::remove_file(skips()).ok();
}

/// One step that was run: its name, how it ended, how long it took.
pub(super) type Taken = (&'static str, &'static str, Duration);

pub(super) fn print(taken: &[Taken]) {
    println!("\n{:<28} {:<8} {:>9}", "suite", "", "seconds");
    for (name, mark, duration) in taken {
        println!("{name:<28} {mark:<8} {:>9.1}", duration.as_secs_f64());
        if *name == "tests" {
            // Several run at the same time: these add up to more than the step took.
            for (suite, (count, seconds)) in suites(&fs::read_to_string(junit()).unwrap_or_default()) {
                println!("  {suite:<26} {count:>8} {seconds:>9.1}");
            }
        }
    }
    let total: Duration = taken.iter().map(|(_, _, duration)| *duration).sum();
    println!("{:<28} {:<8} {:>9.1}", "all", "", total.as_secs_f64());
    print!("{}", skipped(&fs::read_to_string(skips()).unwrap_or_default()));
}

/// How many tests each suite of nextest's report has, and the sum of their seconds.
fn suites(xml: &str) -> BTreeMap<&str, (usize, f64)> {
    let mut suites = BTreeMap::new();
    for case in xml.split("<testcase ").skip(1) {
        let head = case.split('>').next().unwrap_or_default();
        let value = |name: &str| head.split_once(&format!("{name}=\""))?.1.split('"').next();
        let (count, seconds) = suites.entry(value("classname").unwrap_or_default()).or_default();
        *count += 1;
        *seconds += value(" time").and_then(|time| time.parse::<f64>().ok()).unwrap_or_default();
    }
    suites
}

/// The tests that did nothing, and those that left something out, by what they lacked.
fn skipped(lines: &str) -> String {
    let mut by_lack: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for line in lines.lines() {
        if let [how, lacking, test] = line.split('\t').collect::<Vec<_>>()[..] {
            by_lack.entry((how, lacking)).or_default().insert(test);
        }
    }
    let mut text = String::new();
    for ((how, lacking), tests) in by_lack {
        let what = if how == "skipped" { "Skipped" } else { "Checked in part" };
        let head = format!("\n{what} without {lacking}: {}\n", tests.len());
        text.extend([head].into_iter().chain(tests.iter().map(|test| format!("  {test}\n"))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_added_up() {
        let xml = "<testsuite name=\"a\" time=\"9\"><testcase name=\"x\" classname=\"a::it\" time=\"0.5\">\
                   </testcase><testcase name=\"y\" classname=\"a::it\" timestamp=\"t\" time=\"1.25\"/>";
        assert_eq!(suites(xml), BTreeMap::from([("a::it", (2, 1.75))]));
        assert_eq!(suites(""), BTreeMap::new());
    }

    #[test]
    fn skips_are_named_once_under_what_is_lacking() {
        let lines = "skipped\tpostgresql\tb two\nskipped\tpostgresql\ta one\nskipped\tpostgresql\ta one\nin part\t../shared\tc\n";
        let text = "\nChecked in part without ../shared: 1\n  c\n\nSkipped without postgresql: 2\n  a one\n  b two\n";
        assert_eq!(skipped(lines), text);
        assert_eq!(skipped(""), "");
    }
}
