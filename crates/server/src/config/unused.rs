//! Keys that are known and checked, but that this version does nothing with: older files load, and the user is
//! told what has no effect instead of guessing.

use providers::yaml::{Field, Section};

use super::logging;

const POSITIVE: std::ops::RangeInclusive<u64> = 1..=u64::MAX;

/// Checks the values of a section and notes which keys were given.
struct Noting<'r, 'n> {
    section: Section<'r>,
    noted: &'n mut Vec<String>,
}

impl<'r> Noting<'r, '_> {
    fn key<T>(&mut self, key: &'static str, read: impl FnOnce(&Field<'r>) -> Option<T>) {
        if self.section.read(key, read).is_some() {
            self.noted.push(format!("{}.{key}", self.section.path()));
        }
    }

    fn one_of(&mut self, key: &'static str, names: &[&'static str]) {
        self.key(key, |field| field.choice(names, |name| name));
    }
}

pub(super) fn log_file(section: Section<'_>, noted: &mut Vec<String>) {
    let mut keys = Noting { section, noted };
    keys.key("enabled", Field::boolean);
    keys.key("dir", Field::text);
    keys.key("filename", Field::text);
    keys.key("level", logging::level);
    keys.key("max_size", |field| field.integer(POSITIVE));
    keys.key("max_files", |field| field.integer(POSITIVE));
    keys.section.finish();
}

pub(super) fn trace(section: Section<'_>, noted: &mut Vec<String>) {
    let mut keys = Noting { section, noted };
    keys.key("enabled", Field::boolean);
    keys.key("path", Field::text);
    keys.key("max_queue_size", |field| field.integer(POSITIVE));
    keys.key("flush_interval_ms", |field| field.integer(POSITIVE));
    keys.key("batch_size", |field| field.integer(POSITIVE));
    keys.key("capture_payload", Field::boolean);
    keys.key("payload_max_bytes", |field| field.integer(POSITIVE));
    keys.section.finish();
}

pub(super) fn web_search(section: Section<'_>, noted: &mut Vec<String>) {
    let mut keys = Noting { section, noted };
    keys.key("enabled", Field::boolean);
    keys.one_of("mode", &["auto", "provider_native", "godex_managed", "disabled"]);
    keys.one_of("provider", &["none", "mock", "zhipu"]);
    keys.one_of("on_unavailable", &["client_tool_call", "fail", "ignore"]);
    keys.key("max_iterations", |field| field.integer(POSITIVE));
    keys.key("timeout_ms", |field| field.integer(POSITIVE));
    keys.section.finish();
}
