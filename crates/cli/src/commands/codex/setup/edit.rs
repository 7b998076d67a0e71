//! Codex's `config.toml`, changed so that the change can be taken back exactly: `toml_edit` says where things are, and the
//! text is cut and joined there, so that every other byte stays (comments, order, line ends).
//!
//! What is ours has lines that begin with `# godex>` directly above it. It ends where TOML says that it ends, not at a line
//! of ours: Codex itself writes into this file, and what it adds must not be taken for ours.

use std::fmt::Write;
use std::ops::Range;

use anyhow::{Context, bail, ensure};
use toml_edit::{Document, InlineTable, Item, Table, TableLike, Value};

use super::super::{KEY_VARIABLE, PROVIDER};

/// Above each table of ours.
pub(super) const UNDO: &str = "# godex> written by `godex codex setup`; undo: godex codex setup --remove";
/// Above each key at the root.
const SET: &str = "# godex> set by `godex codex setup --default`";
/// Which entry of the inline table below is ours.
const ENTRY: &str = "# godex> its entry ";
/// A line that had to make room.
const WAS: &str = "# godex> was: ";
/// The line above was the last, and had no line end.
const JOINED: &str = "# godex> the line above had no end";
/// Some editors write it before the text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Keys and their values, in order.
pub(super) type Settings = Vec<(&'static str, Value)>;

/// A TOML file, or where it is broken.
pub(in super::super) fn parse(text: &str) -> anyhow::Result<Document<&str>> {
    Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        anyhow::anyhow!("line {line}: this is not TOML: {}", error.message().trim())
    })
}

/// Makes `[section.name]` hold these settings. It is refused if somebody else wrote a table of that name.
pub(super) fn set_table(text: &str, section: &str, name: &str, settings: &Settings) -> anyhow::Result<String> {
    let text = match find(text, section, name)? {
        Some(found) if found.holds(settings) => return Ok(text.to_owned()),
        Some(_) => unset_table(text, section, name)?,
        None => text.to_owned(),
    };
    let out = match parse(&text)?.get(section) {
        Some(Item::Value(Value::InlineTable(table))) => inlined(&text, section, table, name, settings)?,
        _ => appended(&text, section, name, settings),
    };
    let same = find(&out, section, name).ok().flatten().is_some_and(|found| found.holds(settings));
    ensure!(
        same,
        "`{section}.{name}` cannot be added to it as it is written; add it by hand:\n{}",
        table(section, name, settings, "\n")
    );
    Ok(out)
}

/// Takes `[section.name]` out, if it is ours.
pub(super) fn unset_table(text: &str, section: &str, name: &str) -> anyhow::Result<String> {
    let Ok(Some(found)) = find(text, section, name) else { return Ok(text.to_owned()) };
    let mut out = text.to_owned();
    match found.place {
        Place::Inline { entry, marks } => {
            out.replace_range(entry, "");
            out.replace_range(marks, "");
        }
        Place::Header { mut extents } => {
            extents.sort_by_key(|extent| std::cmp::Reverse(extent.start));
            for extent in extents {
                out.replace_range(with_room(&out, extent), "");
            }
        }
    }
    parse(&out).context("after godex's part was taken out")?;
    Ok(out)
}

/// Whether `[section.name]` is ours and holds more than we write, or something else: keys, tables below it, comments.
/// `is_ours` knows what we write.
pub(super) fn is_edited(text: &str, section: &str, name: &str, is_ours: &dyn Fn(&str, &Value) -> bool) -> bool {
    let Ok(Some(found)) = find(text, section, name) else { return false };
    let more = match &found.place {
        Place::Inline { .. } => false,
        Place::Header { extents } => {
            let lines = || extents.iter().flat_map(|extent| text[extent.clone()].lines());
            let comments = lines().filter(|line| line.contains('#')).filter(|line| !is_mark(line)).count();
            extents.len() > 1 || comments > 0
        }
    };
    more || !found.settings.iter().all(|(key, value)| is_ours(key, value))
}

/// Makes a key at the root have this value. What was there is kept in a comment.
pub(super) fn set_root(text: &str, key: &str, value: &Value) -> anyhow::Result<String> {
    let text = match parse(text)?.get(key) {
        Some(found) if same(found, value) => return Ok(text.to_owned()),
        _ => unset_root(text, key)?,
    };
    let document = parse(&text)?;
    let nl = newline(&text);
    let mut out = text.clone();
    let line = format!("{key} = {value}");
    let set = format!("{SET}: {line}").lines().next().unwrap_or(SET).to_owned();
    if let Some(lines) = root_lines(&text, &document, key)? {
        let old = &text[lines.clone()];
        let was: String = old.split_inclusive('\n').flat_map(|line| [WAS, line]).collect();
        let (was, end) = if old.ends_with('\n') { (was, nl) } else { (was + nl, "") };
        out.replace_range(lines, &format!("{set}{nl}{was}{line}{end}"));
    } else {
        let last = last_of(document.as_table());
        let at = match last {
            Some(last) => line_end(&text, last),
            None if text.starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len_utf8(),
            None => 0,
        };
        let whole = last.is_none() || text[..at].ends_with('\n');
        let lines = if whole { format!("{set}{nl}{line}{nl}") } else { format!("{nl}{set}{nl}{JOINED}{nl}{line}") };
        out.insert_str(at, &lines);
    }
    let is_set = parse(&out).is_ok_and(|document| document.get(key).is_some_and(|found| same(found, value)));
    ensure!(is_set, "`{key}` cannot be set in it as it is written");
    Ok(out)
}

/// Takes a key at the root out, if it is ours, and puts back what was there. A value that somebody has changed since
/// stays, and only our comments go.
pub(super) fn unset_root(text: &str, key: &str) -> anyhow::Result<String> {
    let document = parse(text)?;
    let Some(lines) = root_lines(text, &document, key)? else { return Ok(text.to_owned()) };
    let marks = marks_above(text, lines.start);
    if !text[marks.clone()].starts_with(SET) {
        return Ok(text.to_owned());
    }
    if is_changed(text, &document, key, marks.clone()) {
        let mut out = text.to_owned();
        out.replace_range(marks, "");
        return Ok(out);
    }
    let whole = text[lines.clone()].ends_with('\n');
    let mut was: String = text[marks.clone()].split_inclusive('\n').filter_map(|line| line.strip_prefix(WAS)).collect();
    let mut range = marks.start..lines.end;
    if was.is_empty() && text[marks].contains(JOINED) {
        let nl = if whole { newline(text).len() } else { 0 };
        range = without_newline(text, range.start)..range.end - nl;
    } else if !whole {
        was.truncate(was.trim_end_matches('\n').trim_end_matches('\r').len());
    }
    let mut out = text.to_owned();
    out.replace_range(range, &was);
    parse(&out).context("after godex's part was taken out")?;
    Ok(out)
}

/// Whether a key at the root that we set has another value now.
pub(super) fn is_root_changed(text: &str, key: &str) -> bool {
    let Ok(document) = parse(text) else { return false };
    let Ok(Some(lines)) = root_lines(text, &document, key) else { return false };
    is_changed(text, &document, key, marks_above(text, lines.start))
}

fn is_changed(text: &str, document: &Document<&str>, key: &str, marks: Range<usize>) -> bool {
    let first = text[marks].lines().next().unwrap_or_default();
    let Some(set) = first.strip_prefix(SET).and_then(|rest| rest.strip_prefix(": ")) else { return false };
    let Ok(set) = parse(set) else { return false };
    let value = |document: &Document<&str>| document.get(key).and_then(Item::as_str).map(str::to_owned);
    value(&set) != value(document)
}

/// The names in a section whose tables are ours.
pub(in super::super) fn own_tables(text: &str, section: &str) -> anyhow::Result<Vec<String>> {
    let document = parse(text)?;
    let Some(section_table) = document.get(section).and_then(Item::as_table_like) else { return Ok(Vec::new()) };
    let names = section_table.iter().map(|(name, _)| name.to_owned());
    Ok(names.filter(|name| matches!(find(text, section, name), Ok(Some(_)))).collect())
}

/// A table of ours.
struct Found {
    place: Place,
    settings: Vec<(String, Value)>,
}

enum Place {
    /// Under headers: its own lines with the marks above them, and those of tables below it.
    Header { extents: Vec<Range<usize>> },
    /// As an entry of an inline table.
    Inline { entry: Range<usize>, marks: Range<usize> },
}

impl Found {
    fn holds(&self, wanted: &Settings) -> bool {
        let has = |key: &str, value: &Value| {
            self.settings.iter().any(|(known, found)| known == key && same_value(found, value))
        };
        let is_wanted = |key: &str| wanted.iter().any(|(wanted, _)| *wanted == key);
        // A key that is asked for no more would stop Codex.
        let asks_for_key = |(key, value): &(String, Value)| key == "env_key" && value.as_str() == Some(KEY_VARIABLE);
        wanted.iter().all(|(key, value)| has(key, value))
            && !self.settings.iter().any(|setting| asks_for_key(setting) && !is_wanted(&setting.0))
    }
}

/// The table of that name, if it is ours; an error, if it is somebody else's.
fn find(text: &str, section: &str, name: &str) -> anyhow::Result<Option<Found>> {
    let document = parse(text)?;
    let Some((key, item)) = document.get_key_value(section) else { return Ok(None) };
    let at = |span: Option<Range<usize>>| span.map_or(1, |span| line_of(text, span.start));
    let Some(entries) = item.as_table_like() else {
        bail!("line {}: `{section}` is not a table", at(key.span().or(item.span())));
    };
    let Some((name_key, entry)) = entries.get_key_value(name) else { return Ok(None) };
    let settings = |table: &dyn TableLike| {
        table.iter().filter_map(|(key, item)| Some((key.to_owned(), item.as_value()?.clone()))).collect()
    };
    match (item, entry) {
        (Item::Table(_), Item::Table(table)) if !table.is_implicit() && !table.is_dotted() => {
            let header = table.span().unwrap_or_default();
            let marks = marks_above(text, line_start(text, header.start));
            if text[marks.clone()].starts_with(UNDO) {
                let own = marks.start..own_end(text, table, header.end);
                let mut extents = Vec::from([own]);
                below(text, table, &mut extents);
                return Ok(Some(Found { place: Place::Header { extents }, settings: settings(table) }));
            }
        }
        (Item::Value(_), Item::Value(Value::InlineTable(table))) => {
            let line = key.span().map_or(0, |span| line_start(text, span.start));
            let marks = marks_above(text, line);
            if text[marks.clone()].starts_with(UNDO)
                && entry_of(&text[marks.clone()]).unwrap_or(PROVIDER) == name
                && let (Some(key), Some(value)) = (name_key.span(), table.span())
            {
                let start = if text[..key.start].ends_with(' ') { key.start - 1 } else { key.start };
                let end = if text[value.end..].starts_with(',') { value.end + 1 } else { value.end };
                let place = Place::Inline { entry: start..end, marks };
                return Ok(Some(Found { place, settings: settings(table) }));
            }
        }
        _ => {}
    }
    bail!(
        "line {}: there is a `{section}.{name}` that `godex codex setup` did not write; rename it or take it out",
        at(name_key.span().or(entry.span()))
    )
}

/// The end of the last line of a table's own settings.
fn own_end(text: &str, table: &Table, header_end: usize) -> usize {
    line_end(text, last_of(table).unwrap_or(header_end).max(header_end))
}

/// Tables with headers of their own below this one: they go with it.
fn below(text: &str, table: &Table, extents: &mut Vec<Range<usize>>) {
    for (_, item) in table {
        let Item::Table(inner) = item else { continue };
        if !inner.is_implicit() && !inner.is_dotted() {
            let header = inner.span().unwrap_or_default();
            extents.push(line_start(text, header.start)..own_end(text, inner, header.end));
        }
        below(text, inner, extents);
    }
}

/// Where the last value ends that stands under a table's own header.
fn last_of(table: &Table) -> Option<usize> {
    let end = |(_, item): (&str, &Item)| match item {
        Item::Value(value) => value_end(value),
        Item::Table(inner) if inner.is_dotted() => last_of(inner),
        _ => None,
    };
    table.iter().filter_map(end).max()
}

fn value_end(value: &Value) -> Option<usize> {
    match value {
        Value::InlineTable(table) if table.is_dotted() => table.iter().filter_map(|(_, value)| value_end(value)).max(),
        _ => value.span().map(|span| span.end),
    }
}

/// The lines of a key at the root; None if it is not there.
fn root_lines(text: &str, document: &Document<&str>, key: &str) -> anyhow::Result<Option<Range<usize>>> {
    match document.get_key_value(key) {
        None => Ok(None),
        Some((key, Item::Value(value))) => {
            let (key, value) = (key.span().unwrap_or_default(), value_end(value).unwrap_or_default());
            Ok(Some(line_start(text, key.start)..line_end(text, value)))
        }
        Some((found, _)) => {
            let line = found.span().map_or(1, |span| line_of(text, span.start));
            bail!("line {line}: `{key}` is a table")
        }
    }
}

/// The text with a new table at its end.
fn appended(text: &str, section: &str, name: &str, settings: &Settings) -> String {
    let nl = newline(text);
    let body = table(section, name, settings, nl);
    if text.is_empty() {
        return format!("{UNDO}{nl}{body}");
    }
    if text.ends_with('\n') {
        return format!("{text}{nl}{UNDO}{nl}{body}");
    }
    format!("{text}{nl}{nl}{UNDO}{nl}{JOINED}{nl}{body}")
}

/// The text with a new entry at the beginning of an inline table.
fn inlined(text: &str, section: &str, table: &InlineTable, name: &str, settings: &Settings) -> anyhow::Result<String> {
    let span = table.span().with_context(|| format!("`{section}` cannot be found in it"))?;
    let mut entry = InlineTable::new();
    for (key, value) in settings {
        entry.insert(*key, value.clone());
    }
    let comma = if table.is_empty() { "" } else { "," };
    let line = line_start(text, span.start);
    let mut out = text.to_owned();
    out.insert_str(span.start + 1, &format!(" {name} = {}{comma}", Value::from(entry)));
    let nl = newline(text);
    out.insert_str(line, &format!("{UNDO}{nl}{ENTRY}{name}{nl}"));
    Ok(out)
}

fn table(section: &str, name: &str, settings: &Settings, nl: &str) -> String {
    let mut out = format!("[{section}.{name}]{nl}");
    for (key, value) in settings {
        // Writing to a String cannot fail.
        let _ = write!(out, "{key} = {value}{nl}");
    }
    out
}

/// What was made room with before a table goes with it: an empty line, and the end of the line above if it had none.
fn with_room(text: &str, extent: Range<usize>) -> Range<usize> {
    let joined = text[extent.clone()].lines().take_while(|line| is_mark(line)).any(|line| line == JOINED);
    let once = without_newline(text, extent.start);
    let empty_line = once < extent.start && (once == 0 || text[..once].ends_with('\n'));
    let start = match (empty_line, joined) {
        (false, _) => extent.start,
        (true, false) => once,
        (true, true) => without_newline(text, once),
    };
    start..extent.end
}

/// Where the line end before this place begins; the place itself, if there is none.
fn without_newline(text: &str, at: usize) -> usize {
    let before = &text[..at];
    let less = before.strip_suffix("\r\n").or_else(|| before.strip_suffix('\n')).unwrap_or(before);
    less.len()
}

/// Whether a line is a comment of ours; whoever begins his own in the same way did not write one of these.
fn is_mark(line: &str) -> bool {
    is_first_mark(line) || line == JOINED || line.starts_with(WAS) || line.starts_with(ENTRY)
}

fn is_first_mark(line: &str) -> bool {
    line == UNDO || line.starts_with(SET)
}

/// The name of our entry in an inline table.
fn entry_of(marks: &str) -> Option<&str> {
    marks.lines().find_map(|line| line.strip_prefix(ENTRY))
}

/// The lines directly above this one that are our comments, from the one that we begin with; none, if that is not there.
fn marks_above(text: &str, line: usize) -> Range<usize> {
    let mut start = line;
    while text[..start].ends_with('\n') {
        let above = line_start(text, start - 1);
        let comment = text[above..start].trim_end_matches(['\r', '\n']);
        if is_first_mark(comment) {
            return above..line;
        }
        if !is_mark(comment) {
            break;
        }
        start = above;
    }
    line..line
}

fn line_start(text: &str, at: usize) -> usize {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    if start == 0 && text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8().min(at) } else { start }
}

/// After the line end of this line.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn same(item: &Item, value: &Value) -> bool {
    item.as_value().is_some_and(|found| same_value(found, value))
}

/// Whether two values mean the same; of those that we write: texts and truths.
fn same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one.value() == other.value(),
        (Value::Boolean(one), Value::Boolean(other)) => one.value() == other.value(),
        _ => false,
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
