//! The kernel knows no vendor and touches nothing outside itself.

use std::fs;

use crate::source::{self, has_word};

/// Spec names that are words of their own: the API, the generic spec, and the built-in model.
const GENERIC: &[&str] = &["openai", "openai-compatible", "demo", "mock"];

/// Time, chance, the outside world, and maps whose order differs from run to run.
const BANNED: &[&str] = &[
    "SystemTime",
    "Instant::now",
    "std::net",
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "HashMap",
    "HashSet",
];

#[test]
fn the_kernel_names_no_vendor() {
    let folders = ["specs", "specs/search"].map(|folder| fs::read_dir(testkit::root().join(folder)).unwrap());
    let files = folders.into_iter().flatten().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let stems = files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned());
    let vendors: Vec<String> = stems.filter(|stem| !GENERIC.contains(&stem.as_str())).collect();
    for file in source::below("crates/bridge/src") {
        for (number, code) in file.code() {
            for vendor in &vendors {
                assert!(!has_word(code, vendor), "{} names {vendor}: say it in its spec", file.at(number));
            }
        }
    }
}

#[test]
fn the_kernel_is_pure() {
    for file in source::below("crates/bridge/src") {
        for (number, code) in file.code() {
            for banned in BANNED {
                assert!(!code.contains(banned), "{} uses {banned}", file.at(number));
            }
            assert!(!has_word(code, "rand"), "{} uses rand", file.at(number));
        }
    }
}
