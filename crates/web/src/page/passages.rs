//! What a model is shown of a page: a part of it from some place on, or the passages in which some words are. Places are
//! counted in bytes of the page's text; a place inside a character is the one before it.

use std::fmt::Write;

use super::Page;

/// The most that a model is shown at once, all told.
pub const MOST_AT_ONCE: usize = 32 << 10;

/// What is left for the page beside the words around it.
const MOST_TEXT: usize = MOST_AT_ONCE - 3 * 1024;
const LONGEST_TITLE: usize = 600;
const LONGEST_URL: usize = 1024;

/// Around words that were found.
const AROUND: usize = 300;
const MOST_PASSAGES: usize = 20;
const LONGEST_PATTERN: usize = 200;

/// The page from this place on, as much as is shown at once, and how to ask for what follows.
pub fn part(page: &Page, start: usize) -> String {
    let start = page.text.floor_char_boundary(start);
    let mut out = head(page);
    let rest = page.text.get(start..).unwrap_or_default();
    if rest.is_empty() {
        out.push_str(if page.text.is_empty() {
            "[The page has no text.]"
        } else {
            "[The page has no more text: it ends before this place.]"
        });
        return out;
    }
    let shown = beginning(rest, MOST_TEXT);
    out.push_str(shown);
    let (end, all) = (start + shown.len(), page.text.len());
    if end < all {
        // Writing to a String cannot fail.
        let _ = write!(out, "\n\n[{start} to {end} of {all}. The next part: open_page with \"start\": {end}]");
    } else if page.is_cut {
        out.push_str("\n\n[The page goes on, but it is too large: no more of it was read.]");
    }
    out
}

fn head(page: &Page) -> String {
    let mut out = String::new();
    if !page.title.is_empty() {
        let _ = writeln!(out, "{}", beginning(&page.title, LONGEST_TITLE));
    }
    let _ = writeln!(out, "{}\n", beginning(&page.url, LONGEST_URL));
    out
}

/// At most so much of a text, to the end of a line if that is not far.
fn beginning(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let cut = &text[..text.floor_char_boundary(most)];
    let line = cut.rfind('\n').filter(|end| *end > most / 4 * 3);
    line.map_or(cut, |end| &cut[..=end])
}

/// The passages in which the pattern is, in whichever case, with what is around them and where they are.
pub fn find(page: &Page, pattern: &str) -> String {
    let wanted = folded(&pattern.split_whitespace().collect::<Vec<_>>().join(" "));
    let shown = pattern.get(..pattern.floor_char_boundary(LONGEST_PATTERN)).unwrap_or_default();
    let mut out = head(page);
    if wanted.is_empty() {
        out.push_str("[There is nothing to find: the pattern is empty.]");
        return out;
    }
    let text = folded(&page.text);
    let (mut count, mut passages) = (0_usize, Vec::<(usize, usize)>::new());
    for (at, found) in text.match_indices(&wanted) {
        count += 1;
        let start = page.text.floor_char_boundary(at.saturating_sub(AROUND));
        let end = page.text.ceil_char_boundary((at + found.len() + AROUND).min(page.text.len()));
        if let Some((_, last)) = passages.last_mut().filter(|(_, last)| start <= *last) {
            *last = end;
        } else if passages.len() < MOST_PASSAGES {
            passages.push((start, end));
        }
    }
    if count == 0 {
        let _ = write!(out, "[\"{shown}\" is not on this page, which has {} bytes of text.]", page.text.len());
        return out;
    }
    let _ = writeln!(out, "[\"{shown}\" is on this page {count} times.]");
    let mut left = MOST_TEXT;
    for (start, end) in passages {
        let passage = beginning(page.text.get(start..end).unwrap_or_default(), left).trim();
        if passage.is_empty() {
            break;
        }
        left -= passage.len().min(left);
        let _ = write!(out, "\n[at {start}]\n{passage}\n");
        left = left.saturating_sub(32);
    }
    let _ = write!(out, "\n[More around a passage: open_page with \"start\" at its place.]");
    out
}

/// In small letters and with spaces only, each character as long as before.
fn folded(text: &str) -> String {
    let fold = |c: char| {
        if c.is_ascii_whitespace() {
            return ' ';
        }
        let mut lower = c.to_lowercase();
        let one = lower.next().filter(|one| one.len_utf8() == c.len_utf8());
        one.filter(|_| lower.next().is_none()).unwrap_or(c)
    };
    text.chars().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        let (url, title) = ("https://a.example/x".to_owned(), "Title".to_owned());
        Page { url, title, text: text.to_owned(), ..Page::default() }
    }

    /// The numbers in a note are those that the next call needs: all parts together are the page.
    #[test]
    fn parts_add_up_to_the_page() {
        let lines = (0..20_000).map(|number| format!("Zeile {number} – ü\n")).collect::<Vec<_>>().concat();
        for text in [lines, "é".repeat(100_000), "x".repeat(MOST_TEXT), "x".repeat(MOST_TEXT + 1)] {
            let (page, mut start, mut all) = (page(&text), 0, String::new());
            loop {
                let part = part(&page, start);
                assert!(part.len() <= MOST_AT_ONCE, "{}", part.len());
                let shown = part.strip_prefix("Title\nhttps://a.example/x\n\n").unwrap();
                match shown.rsplit_once("\n\n[") {
                    Some((shown, note)) => {
                        all.push_str(shown);
                        let next = note.rsplit_once(' ').unwrap().1.trim_end_matches(']').parse().unwrap();
                        assert!(next > start);
                        start = next;
                    }
                    None => {
                        all.push_str(shown);
                        break;
                    }
                }
            }
            assert!(all == text);
        }
    }

    #[test]
    fn the_end_of_a_page_is_told() {
        for (text, start, cut, expected) in [
            ("", 0, false, "[The page has no text.]"),
            ("abc", 3, false, "[The page has no more text: it ends before this place.]"),
            ("abc", usize::MAX, false, "[The page has no more text: it ends before this place.]"),
            ("éa", 1, false, "éa"),
            ("abc", 1, true, "bc\n\n[The page goes on, but it is too large: no more of it was read.]"),
        ] {
            let page = Page { is_cut: cut, ..page(text) };
            assert_eq!(part(&page, start), format!("Title\nhttps://a.example/x\n\n{expected}"));
        }
    }

    #[test]
    fn passages_are_found_with_what_is_around_them() {
        let text = format!("{}The Quick\nbrown fox.{}É end", "a ".repeat(1000), " b".repeat(1000));
        for (pattern, expected) in [
            ("quick  BROWN", "[\"quick  BROWN\" is on this page 1 times.]"),
            ("é", "[\"é\" is on this page 1 times.]"),
            ("wolf", "[\"wolf\" is not on this page, which has"),
            (" \n", "[There is nothing to find"),
            ("a a a", "is on this page 333 times.]"),
        ] {
            let found = find(&page(&text), pattern);
            assert!(found.contains(expected) && found.len() <= MOST_AT_ONCE, "{pattern}: {found}");
        }
        let found = find(&page(&text), "quick brown");
        let (at, passage) = found.split_once("[at ").unwrap().1.split_once("]\n").unwrap();
        let at: usize = at.parse().unwrap();
        assert!(text[at..].trim_start().starts_with(passage.split('\n').next().unwrap()), "{at} {passage}");
        assert!(passage.contains("a a The Quick\nbrown fox. b b"), "{passage}");
    }

    #[test]
    fn any_number_of_matches_fits() {
        let text = format!("needle{}", "x".repeat(1000)).repeat(2000);
        let found = find(&page(&text), "needle");
        assert!(found.contains("2000 times") && found.len() <= MOST_AT_ONCE, "{}", found.len());
        let found = find(&page(&"needle ".repeat(100_000)), "needle");
        assert!(found.contains("100000 times") && found.len() <= MOST_AT_ONCE, "{}", found.len());
        let found = find(&page(&"İ".repeat(1000)), "i");
        assert!(found.contains("is not on this page"), "{found}");
    }
}
