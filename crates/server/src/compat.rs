//! `x-godex-compat`: what was not done as asked, in short. All that is known before the first byte of the answer is in
//! it, the gravest first; what does not fit is counted. The log has the same of every request, and with `level: debug` the
//! reason for each.

use std::collections::BTreeSet;

use bridge::Note;
use http::{HeaderMap, HeaderValue};

const NAME: &str = "x-godex-compat";

/// Proxies and clients have limits for all headers together.
const LIMIT: usize = 1024;

/// What `, +99999 more` takes.
const REST: usize = 16;

/// The longest place that is named in full.
const PLACE: usize = 96;

pub(crate) fn insert<'n>(headers: &mut HeaderMap, notes: impl Iterator<Item = &'n Note>) {
    if let Some(value) = HeaderValue::try_from(short(notes)).ok().filter(|value| !value.is_empty()) {
        headers.insert(NAME, value);
    }
}

/// `truncation=ignored, tools[1]=degraded, +3 more`.
pub(crate) fn short<'n>(notes: impl Iterator<Item = &'n Note>) -> String {
    let mut notes: Vec<&Note> = notes.collect();
    notes.sort_by_key(|note| std::cmp::Reverse(note.severity));
    let mut seen = BTreeSet::new();
    let mut entries = notes.into_iter().map(entry).filter(|entry| seen.insert(entry.clone())).peekable();
    let mut text = String::new();
    while let Some(next) = entries.next_if(|entry| text.len() + entry.len() + REST < LIMIT) {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&next);
    }
    match entries.count() {
        0 => text,
        more => format!("{text}, +{more} more"),
    }
}

/// A place may repeat what a client wrote: nothing in it may look like another entry, or end the header.
fn entry(note: &Note) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']');
    let place: String = note.path.chars().take(PLACE).map(|c| if plain(c) { c } else { '?' }).collect();
    format!("{place}={}", note.action.name())
}

#[cfg(test)]
mod tests {
    use bridge::{Action, Severity};

    use super::*;

    fn note(path: &str, severity: Severity) -> Note {
        Note::new(Action::Ignored, path.to_owned(), "why").with_severity(severity)
    }

    #[test]
    fn warnings_come_first_and_nothing_twice() {
        let notes = [
            note("tools[0]", Severity::Info),
            note("foo", Severity::Warn),
            note("tools[0]", Severity::Info),
            note("text.format", Severity::Error),
            note("bar", Severity::Warn),
        ];
        let expected = "text.format=ignored, foo=ignored, bar=ignored, tools[0]=ignored";
        assert_eq!(short(notes.iter()), expected);
        assert_eq!(short([].iter()), "");
    }

    #[test]
    fn what_a_client_wrote_makes_no_entry_and_no_header() {
        for path in ["a, b=ignored", "a\r\nset-cookie: x", "a\u{e9}\0", "a;q=1, +9 more"] {
            let mut headers = HeaderMap::new();
            insert(&mut headers, [note(path, Severity::Warn)].iter());
            let value = headers[NAME].to_str().unwrap();
            assert_eq!((headers.len(), value.matches([',', ' ', ';', '+']).count()), (1, 0), "{value}");
            assert_eq!(value.matches('=').count(), 1, "{value}");
        }
    }

    #[test]
    fn it_is_cut_between_entries_and_the_rest_is_counted() {
        for length in [1, 7, 90, 200] {
            for count in [1, 10, 100, 3000] {
                let path = |n: usize| format!("{}{n:04}", "x".repeat(length.min(PLACE - 4)));
                let notes: Vec<Note> = (0..count).map(|n| note(&path(n), Severity::Warn)).collect();
                let text = short(notes.iter());
                assert!(text.len() <= LIMIT, "{}", text.len());
                let mut entries: Vec<&str> = text.split(", ").collect();
                let more = entries.last().and_then(|last| last.strip_prefix('+')?.strip_suffix(" more")?.parse().ok());
                entries.truncate(entries.len() - usize::from(more.is_some()));
                assert_eq!(entries.len() + more.unwrap_or(0), count);
                for (n, entry) in entries.iter().enumerate() {
                    assert_eq!(*entry, format!("{}=ignored", path(n)));
                }
            }
        }
    }
}
