//! Light repairs of patches: what models put around a patch, or leave out at its ends. What is between the marks is not
//! touched, but for line ends. Nothing is decided here: these are candidates, and who knows the grammar takes the first
//! that fits.

/// The marks around a patch, and those that begin a part of it. A grammar that has the first two is one of patches.
const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
/// What they all begin with.
const MARK: &str = "*** ";
const PARTS: [&str; 3] = ["*** Add File: ", "*** Delete File: ", "*** Update File: "];

/// Longer inputs are not worth several tries.
const MOST: usize = 256 << 10;

const FENCE: &str = "the code fence around the patch was taken off";
const HEREDOC: &str = "the shell command around the patch was taken off";
const PROSE: &str = "text around the patch was left out";
const BLANKS: &str = "blanks around the patch were left out";
const BEGUN: &str = "the line that begins the patch was added";
const ENDED: &str = "the line that ends the patch was added";
const LINE_ENDS: &str = "line ends were changed to the usual ones";
const LAST_LINE: &str = "the last line end was added";
const NO_LAST_LINE: &str = "the last line end was left out";

/// An input that was mended, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    pub input: String,
    pub how: Vec<&'static str>,
}

pub(crate) fn is_patch(definition: &str) -> bool {
    definition.contains(BEGIN) && definition.contains(END)
}

/// What the input may have been meant to be, the nearest first.
pub fn repairs(input: &str) -> Vec<Repaired> {
    if input.len() > MOST {
        return Vec::new();
    }
    // Lines of a file may end as they like; the marks tell how those of the patch do.
    let is_other = input.split('\n').any(|line| line.ends_with('\r') && line.trim_start().starts_with(MARK));
    let whole = if is_other { whole(&input.replace("\r\n", "\n"), vec![LINE_ENDS]) } else { whole(input, Vec::new()) };
    let Some(whole) = whole else { return Vec::new() };
    let (last, change) = match whole.input.strip_suffix('\n') {
        Some(without) => (without.to_owned(), NO_LAST_LINE),
        None => (format!("{}\n", whole.input), LAST_LINE),
    };
    let other = Repaired { input: last, how: whole.how.iter().copied().chain([change]).collect() };
    [whole, other].into_iter().filter(|repaired| repaired.input != input).collect()
}

/// The patch from mark to mark, with the marks where they are missing.
fn whole(text: &str, mut how: Vec<&'static str>) -> Option<Repaired> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_mark = |line: &str, mark: &str| line.trim() == mark;
    let begin = lines.iter().position(|line| is_mark(line, BEGIN));
    let first = begin.or_else(|| lines.iter().position(|line| PARTS.iter().any(|part| line.starts_with(part))))?;
    let end = lines.iter().rposition(|line| is_mark(line, END)).filter(|&end| end > first);
    let last = end.map_or_else(|| first + trailing(&lines[first..], &lines[..first]), |end| end + 1);
    around(&lines[..first], &lines[last..], &mut how)?;
    let inside = &lines[first + usize::from(begin.is_some())..last - usize::from(end.is_some())];
    let marks = begin.into_iter().chain(end).map(|line| lines[line].trim_end_matches('\n'));
    if marks.into_iter().any(|line| line != BEGIN && line != END) {
        note(&mut how, BLANKS);
    }
    if begin.is_none() {
        how.push(BEGUN);
    }
    if end.is_none() {
        how.push(ENDED);
    }
    let mut input = format!("{BEGIN}\n{}", inside.concat());
    if !input.ends_with('\n') {
        input.push('\n');
    }
    input.push_str(END);
    if end.is_none_or(|end| lines[end].ends_with('\n')) {
        input.push('\n');
    }
    Some(Repaired { input, how })
}

/// How many lines are the patch's, where it has no end mark: what closes a wrapper that was opened before it is not.
fn trailing(lines: &[&str], before: &[&str]) -> usize {
    let closes = |line: &str| {
        let line = line.trim();
        let fenced = line.starts_with("```") && before.iter().any(|line| is_fence(line));
        line.is_empty() || fenced || heredoc(before).is_some_and(|word| line == word)
    };
    lines.iter().rposition(|line| !closes(line)).map_or(0, |last| last + 1)
}

/// Says what is left out; nothing, where that may be more than words: parts of a patch that are outside of its marks, or
/// commands, which would be carried out before or after it, or somewhere else.
fn around(before: &[&str], after: &[&str], how: &mut Vec<&'static str>) -> Option<()> {
    let commands = before.iter().filter(|line| command(line).is_some()).count();
    let word = heredoc(before);
    let mut closes = word;
    for (at, line) in before.iter().chain(after).enumerate() {
        let is_before = at < before.len();
        let what = match line.trim() {
            "" => BLANKS,
            text if is_fence(text) => FENCE,
            text if is_before && commands == 1 && command(text).is_some() => HEREDOC,
            text if !is_before && closes.take_if(|word| *word == text).is_some() => HEREDOC,
            // Beside a command, words may be another one.
            _ if word.is_none() && is_prose(line) => PROSE,
            _ => return None,
        };
        note(how, what);
    }
    Some(())
}

/// Whether a line is words, and nothing else that it could be.
fn is_prose(line: &str) -> bool {
    let text = line.trim_end();
    let signs = ["***", "@@", "&&", "<<", ";", "|", ">", "=", "$", "\\"];
    let begins = text.chars().next().is_some_and(|c| c.is_alphabetic() && !c.is_lowercase());
    let ends = text.ends_with(['.', ':', '!', '?', '。', '：', '！', '？']);
    let is_line_of_patch = text.starts_with(['+', '-', ' ', '\t']);
    (begins || ends) && !is_line_of_patch && signs.into_iter().all(|sign| !text.contains(sign))
}

fn note(how: &mut Vec<&'static str>, what: &'static str) {
    if !how.contains(&what) {
        how.push(what);
    }
}

fn is_fence(line: &str) -> bool {
    let after = line.trim().strip_prefix("```").or_else(|| line.trim().strip_prefix("~~~"));
    after.is_some_and(|language| language.trim().chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '`')))
}

/// The word that ends the document of the shell command before a patch.
fn heredoc<'t>(before: &[&'t str]) -> Option<&'t str> {
    before.iter().rev().find_map(|line| command(line))
}

/// The word of a command that does nothing but apply the patch after it, as in `apply_patch <<'EOF'`.
fn command(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("apply_patch")?.trim_start().strip_prefix("<<")?;
    let word = rest.trim_start_matches('-').trim().trim_end_matches(['\'', '"']).trim_start_matches(['\'', '"', '\\']);
    (!word.is_empty() && word.chars().all(|c| c == '_' || c.is_alphanumeric())).then_some(word)
}
