//! A change as people read it: a unified diff.

use std::fmt::Write;

/// Lines around a change.
const AROUND: usize = 3;
/// Beyond so many lines on both sides together, what differs is shown as replaced.
const LARGEST: usize = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// The difference of two texts; empty if there is none. A missing text is a file that is not there.
pub(crate) fn unified(name: &str, before: Option<&str>, after: Option<&str>) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(before), lines(after));
    if before == after {
        return String::new();
    }
    let edits = edits(&old, &new);
    let side = |text: Option<&str>| if text.is_some() { name.to_owned() } else { "/dev/null".to_owned() };
    let mut out = format!("--- {}\n+++ {}\n", side(before), side(after));
    for hunk in hunks(&edits) {
        let count = |unless: Edit| edits[hunk.edits.clone()].iter().filter(|edit| **edit != unless).count();
        let (olds, news) = (count(Edit::Add), count(Edit::Remove));
        let first = |at: usize, count: usize| if count == 0 { at } else { at + 1 };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "@@ -{},{olds} +{},{news} @@", first(hunk.old, olds), first(hunk.new, news));
        let (mut at_old, mut at_new) = (hunk.old, hunk.new);
        for edit in &edits[hunk.edits] {
            let (sign, line) = match edit {
                Edit::Add => ('+', new[at_new]),
                Edit::Remove => ('-', old[at_old]),
                Edit::Keep => (' ', old[at_old]),
            };
            at_old += usize::from(*edit != Edit::Add);
            at_new += usize::from(*edit != Edit::Remove);
            let _ = writeln!(out, "{sign}{}", line.trim_end_matches('\n').trim_end_matches('\r'));
            if !line.ends_with('\n') {
                out.push_str("\\ No newline at end of file\n");
            }
        }
    }
    out
}

fn lines(text: Option<&str>) -> Vec<&str> {
    text.unwrap_or_default().split_inclusive('\n').collect()
}

/// Keeps what both have in common, as much as there is.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut edits = vec![Edit::Keep; head];
    if old.len().saturating_mul(new.len()) > LARGEST {
        edits.extend(old.iter().map(|_| Edit::Remove).chain(new.iter().map(|_| Edit::Add)));
    } else {
        middle(old, new, &mut edits);
    }
    edits.extend(std::iter::repeat_n(Edit::Keep, tail));
    edits
}

/// By the longest common subsequence.
fn middle(old: &[&str], new: &[&str], edits: &mut Vec<Edit>) {
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let edit = if i < old.len() && j < new.len() && old[i] == new[j] {
            Edit::Keep
        } else if i < old.len() && (j == new.len() || common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            Edit::Remove
        } else {
            Edit::Add
        };
        i += usize::from(edit != Edit::Add);
        j += usize::from(edit != Edit::Remove);
        edits.push(edit);
    }
}

struct Hunk {
    edits: std::ops::Range<usize>,
    /// The lines before it.
    old: usize,
    new: usize,
}

/// Changes with the lines around them; those that touch are one.
fn hunks(edits: &[Edit]) -> Vec<Hunk> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for at in (0..edits.len()).filter(|at| edits[*at] != Edit::Keep) {
        let (start, end) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(edits.len()));
        match ranges.last_mut() {
            Some(last) if start <= last.end => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    let before = |at: usize, unless: Edit| edits[..at].iter().filter(|edit| **edit != unless).count();
    let hunk = |edits: std::ops::Range<usize>| Hunk {
        old: before(edits.start, Edit::Add),
        new: before(edits.start, Edit::Remove),
        edits,
    };
    ranges.into_iter().map(hunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten";
        let expected = "--- f\n+++ f\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+ten\n\\ No newline at end of file\n";
        assert_eq!(unified("f", Some(before), Some(after)), expected);
        assert_eq!(unified("f", None, Some("a\n")), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified("f", Some("a\n"), None), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
        assert_eq!(unified("f", Some("a\n"), Some("a\n")), "");
        let far = (1..30).map(|n| n.to_string() + "\n").collect::<String>();
        let changed = far.replacen("1\n", "one\n", 1).replacen("29\n", "", 1);
        let diff = unified("f", Some(&far), Some(&changed));
        assert_eq!(diff.matches("@@ -").count(), 2, "{diff}");
        assert!(diff.contains("@@ -26,4 +26,3 @@"), "{diff}");
    }
}
