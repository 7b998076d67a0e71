//! What a look at the whole file finds.

use std::path::Path;

use crate::Encryption;
use crate::sqlite::check::{MOST, RULES, bodies, file, findings};
use crate::sqlite::open;

/// A row of each kind, as they would be after a turn.
const GOOD: &str = "
    INSERT INTO segment VALUES ('t', 1, NULL, 0, NULL), ('t', 2, 1, 1, NULL);
    INSERT INTO item VALUES ('t', 1, 0, 'i0', NULL, x'007b7d', NULL), ('t', 1, 1, 'i1', NULL, x'007b7d', NULL),
        ('t', 2, 1, 'i2', NULL, x'007b7d', NULL);
    INSERT INTO settings VALUES ('t', x'01', x'00');
    INSERT INTO response VALUES ('t', 'r1', 1, 0, 1, 2, NULL, NULL, NULL, 2, 1, 0, 0, NULL, 0, x'01', x'00');
    INSERT INTO response VALUES ('t', 'r2', 2, 1, 2, 2, NULL, 'r1', NULL, 2, 2, 0, 0, NULL, 0, NULL, x'00');
    INSERT INTO conversation VALUES ('t', 'c', 1, 2, 0, 0, NULL, NULL, x'00');
    INSERT INTO event VALUES ('t', 'r1', 0, 2, x'00'), ('t', 'r1', 2, 3, x'00');
    INSERT INTO job (tenant, response, background, state, attempt, created) VALUES ('t', 'r1', 1, 0, 0, 0);";

fn found(change: &str) -> Vec<String> {
    let opened = open::memory().unwrap();
    opened.writer.execute_batch(GOOD).unwrap();
    opened.writer.execute_batch(change).unwrap();
    findings(&opened.writer).unwrap()
}

#[test]
fn each_rule_finds_what_breaks_it() {
    assert_eq!(found(""), Vec::<String>::new());
    for (change, expected) in [
        ("INSERT INTO item VALUES ('t', 9, 0, 'i9', NULL, NULL, NULL)", "an item is in no segment: i9 of tenant t"),
        ("INSERT INTO segment VALUES ('t', 3, 9, 0, NULL)", "a segment continues one that is not there: 3"),
        ("INSERT INTO segment VALUES ('t', 3, 1, 7, NULL)", "a segment begins after the end of the one"),
        ("DELETE FROM item WHERE id = 'i0'", "a segment has a gap between its items: 1"),
        ("UPDATE response SET segment = 9 WHERE id = 'r2'", "a response is in no segment: r2"),
        ("UPDATE response SET own = 2 WHERE id = 'r1'", "a response has places that do not fit each other: r1"),
        ("UPDATE response SET upto = 9 WHERE id = 'r2'", "a response ends after its segment: r2"),
        ("DELETE FROM settings", "a response is without its settings: r1"),
        (
            "UPDATE response SET head = x'' WHERE id = 'r2'",
            "a response, or its settings, or a conversation is empty: r2",
        ),
        ("UPDATE settings SET body = x''", "a response, or its settings, or a conversation is empty: r1"),
        ("UPDATE conversation SET metadata = x''", "a response, or its settings, or a conversation is empty: c"),
        ("UPDATE conversation SET upto = 9", "a conversation is in no segment, or ends after it: c"),
        ("UPDATE conversation SET segment = 9", "a conversation is in no segment, or ends after it: c"),
        ("UPDATE event SET first = 4, next = 5 WHERE first = 2", "an event log has a gap: r1"),
        ("INSERT INTO event VALUES ('t', 'r9', 0, 1, x'00')", "an event log is of no response: r9"),
        ("UPDATE job SET response = 'r9'", "a job is of no response: r9"),
        ("PRAGMA user_version = 900", "newer version"),
        ("DELETE FROM migration WHERE number = 2", "a migration that is not ours"),
    ] {
        let found = found(change);
        assert!(found.iter().any(|line| line.contains(expected)), "{change}: {found:?}");
    }
    let rules = RULES.split("\n--- ").count() - 1;
    assert_eq!(rules, 13, "a case above for each");
}

/// What is in the rows of each table, whatever is between them.
#[test]
fn what_is_in_the_rows_is_read() {
    let sound = "UPDATE settings SET body = x'007b7d'; UPDATE response SET head = x'007b7d';
        UPDATE conversation SET metadata = x'007b7d'; UPDATE event SET body = x'00020000007b7d';
        INSERT INTO notice VALUES ('t', 'n', 'e', 0, 0, x'00');";
    for (change, expected) in [
        ("", vec![]),
        // What was erased, and what was taken out of a conversation.
        ("UPDATE item SET body = NULL WHERE id = 'i0'; UPDATE item SET body = x'' WHERE id = 'i1'", vec![]),
        ("UPDATE response SET gone = 1, head = x'' WHERE id = 'r2'", vec![]),
        ("UPDATE item SET body = x'00ff00ff' WHERE id <> 'i2'", vec!["item i0 of", "item i1 of"]),
        (
            "UPDATE item SET body = x'02ff' WHERE id = 'i2'",
            vec!["item i2 of tenant t cannot be read: a stored body is enc"],
        ),
        ("UPDATE response SET head = x'0000000000'", vec!["response r1 of", "response r2 of"]),
        ("UPDATE settings SET body = x'005b5d'", vec!["settings 01 of tenant t cannot be read: it is no JSON object"]),
        ("UPDATE conversation SET metadata = x'01'", vec!["conversation c of"]),
        ("UPDATE event SET body = x'00ff' WHERE first = 2", vec!["the events of r1 from 2 on of"]),
        ("UPDATE job SET request = x'09'", vec!["the job of r1 of"]),
        ("UPDATE notice SET body = x'09'", vec!["notice n of"]),
    ] {
        let opened = open::memory().unwrap();
        for batch in [GOOD, sound, change] {
            opened.writer.execute_batch(batch).unwrap();
        }
        let found = bodies(&opened.writer, &Encryption::default()).unwrap();
        assert_eq!(found.count(), expected.len() as u64, "{change}: {found:?}");
        for (line, expected) in found.lines().iter().zip(expected) {
            assert!(line.starts_with(expected), "{change}: {line}");
        }
    }
}

#[test]
fn findings_are_bounded() {
    let many = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 999) \
        INSERT INTO item SELECT 't', 9, n, 'x' || n, NULL, NULL, NULL FROM n";
    assert_eq!(found(many).len(), MOST);
}

#[test]
fn a_torn_file_is_found_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    drop(open::file(&path, &crate::SqliteOptions::default(), &Encryption::default()).unwrap());
    let file = |path: &Path| file(path, &Encryption::default());
    assert_eq!(file(&path).unwrap().lines(), Vec::<String>::new());
    let whole = std::fs::read(&path).unwrap();
    // Without its end, and with a page of nonsense.
    let mut torn = whole.clone();
    torn[32_768..32_800].fill(0xa5);
    for bytes in [&whole[..whole.len() - 16_384], &torn[..], &b"not a database at all, but long enough to be read"[..]]
    {
        std::fs::write(&path, bytes).unwrap();
        let found = file(&path);
        assert!(!matches!(&found, Ok(found) if found.is_empty()), "{} bytes: {found:?}", bytes.len());
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}
