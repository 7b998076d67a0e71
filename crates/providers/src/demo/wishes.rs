//! Calls that a message asks for in plain words: it names a tool that is offered, or says what the tools of the web do.
//! Which calls, and in which round each, follows from the message and what is offered; so it ends, whatever tools answer.
//! A message that names none asks for none.

use serde_json::Value;

use super::request::{Request, Tool};
use super::{links, schema};

/// What a message can ask for where tools are offered, beside the commands.
pub const PLAIN_WORDS: &[(&str, &str)] = &[
    (
        "use NAME …",
        "call that tool, NAME as offered or without its server's label; arguments from {json}, from 'quoted' words and numbers, or made up",
    ),
    ("search the web for X, look up X", "call web_search"),
    ("open https://…, open the first result", "call open_page (also: read, visit)"),
    ("find 'X' in https://…", "call find_in_page"),
    ("use A, then use B", "one after the other, each in a round of its own"),
    ("… at the same time", "all of them in one round; a single one with two calls"),
    ("… twice, … 5 times", "again, in so many rounds (100 at most)"),
];

/// How much of a message is looked at.
const MOST_TEXT: usize = 8 << 10;
const MOST_CALLS: usize = 100;

/// The calls to make now: name and arguments of each.
pub(super) fn calls(request: &Request, message: &str) -> Vec<(String, String)> {
    let text = clipped(message);
    let wishes = wishes(text, request);
    let times = times(text);
    let together = ["at the same time", "in parallel", "side by side"].iter().any(|words| has(text, words));
    let times = if together && wishes.len() == 1 { times.max(2) } else { times };
    let all = std::iter::repeat_n(&wishes, times).flatten().take(MOST_CALLS);
    let call = |wish: &Wish<'_>| (wish.tool.name.clone(), wish.arguments(text, request));
    match (together && request.parallel_tool_calls, request.rounds) {
        (true, 0) => all.map(call).collect(),
        (true, _) => Vec::new(),
        (false, round) => all.skip(round).take(1).map(call).collect(),
    }
}

/// The arguments of a web tool that is to be called whatever the message says.
pub(super) fn web_arguments(tool: &Tool, request: &Request, message: &str) -> Option<String> {
    let what = Web::of(&tool.name)?;
    let text = clipped(message);
    Some(Wish { tool, at: 0, end: 0, until: text.len(), json: None, web: Some(what) }.arguments(text, request))
}

/// Whether a tool of this name is one of the web's.
pub(super) fn is_web(name: &str) -> bool {
    Web::of(name).is_some()
}

/// The tools of the web, whose arguments have a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Web {
    Search,
    Open,
    Find,
}

impl Web {
    /// Their names may have been lengthened, where the client has functions of the same ones.
    fn of(name: &str) -> Option<Self> {
        let known = [("web_search", Self::Search), ("open_page", Self::Open), ("find_in_page", Self::Find)];
        known.iter().find(|(known, _)| name.starts_with(known)).map(|(_, web)| *web)
    }
}

/// One call that the message asks for.
#[derive(Debug)]
struct Wish<'a> {
    tool: &'a Tool,
    /// Where it is named, from and to.
    at: usize,
    end: usize,
    /// What is said about it ends here: at the next one, or with the message.
    until: usize,
    json: Option<String>,
    web: Option<Web>,
}

fn wishes<'a>(text: &str, request: &'a Request) -> Vec<Wish<'a>> {
    let mut found: Vec<Wish<'a>> = Vec::new();
    for tool in &request.tools {
        for (at, end) in mentions(text, &tool.name) {
            found.push(Wish { tool, at, end, until: text.len(), json: None, web: Web::of(&tool.name) });
        }
    }
    for (web, place) in [Web::Search, Web::Open, Web::Find].map(|web| (web, said(text, web, request))) {
        let tool = request.tools.iter().find(|tool| Web::of(&tool.name) == Some(web));
        let named = found.iter().any(|wish| wish.web == Some(web));
        if let (Some(tool), Some((at, end)), false) = (tool, place, named) {
            found.push(Wish { tool, at, end, until: text.len(), json: None, web: Some(web) });
        }
    }
    found.sort_by_key(|wish| (wish.at, usize::MAX - wish.end));
    // `web_search` is not meant where `web_search_2` is written, nor is what is written inside of arguments.
    let mut next = 0;
    found.retain_mut(|wish| {
        let free = wish.at >= next;
        if free {
            let json = object(text, wish.end);
            next = json.as_ref().map_or(wish.end, |(_, end)| *end);
            wish.json = json.map(|(json, _)| json);
        }
        free
    });
    // Named once more, but with nothing of its own to do.
    let mut seen = Vec::new();
    found.retain(|wish| {
        let again = seen.contains(&wish.tool.name.as_str());
        seen.push(&wish.tool.name);
        !again || wish.json.is_some()
    });
    let starts: Vec<usize> = found.iter().skip(1).map(|wish| wish.at).collect();
    for (wish, start) in found.iter_mut().zip(starts) {
        wish.until = start.max(wish.end);
    }
    found
}

/// Where a tool is named: by its whole name, or by the one that its server gave it. A word of everyday language is a name
/// only in `backticks` or after "use", "call", "run".
fn mentions(text: &str, name: &str) -> Vec<(usize, usize)> {
    let bare = name.rsplit_once("__").map(|(_, bare)| bare).filter(|bare| !bare.is_empty());
    let mut found = Vec::new();
    for name in std::iter::once(name).chain(bare) {
        let everyday = name.bytes().all(|byte| byte.is_ascii_alphabetic());
        for (at, _) in text.match_indices(name) {
            let (before, after) = (&text[..at], &text[at + name.len()..]);
            let whole = !before.ends_with(is_part_of_name) && !after.starts_with(is_part_of_name);
            if whole && (!everyday || is_ordered(before) || (before.ends_with('`') && after.starts_with('`'))) {
                found.push((at, at + name.len()));
            }
        }
    }
    found
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

fn is_ordered(before: &str) -> bool {
    let mut words = before.split_whitespace().rev().map(str::to_ascii_lowercase);
    let is_verb = |word: String| matches!(word.as_str(), "use" | "call" | "run" | "using");
    match words.next() {
        Some(word) if word == "the" => words.next().is_some_and(is_verb),
        word => word.is_some_and(is_verb),
    }
}

/// Where the message says what a tool of the web does.
fn said(text: &str, web: Web, request: &Request) -> Option<(usize, usize)> {
    let phrases: &[&str] = match web {
        Web::Search => &["search the web for", "search the web", "search for", "look up"],
        Web::Open => &["open", "read", "visit"],
        Web::Find => &["find"],
    };
    let place = phrases.iter().find_map(|phrase| word(text, phrase));
    let has_page = || links::addresses(text).next().is_some() || opens_a_result(text, request);
    place.filter(|_| web == Web::Search || has_page()).filter(|_| web != Web::Find || quoted(text).next().is_some())
}

/// "Open the first result": its address is in what has come back, or will be.
fn opens_a_result(text: &str, request: &Request) -> bool {
    has(text, "result") && (said(text, Web::Search, request).is_some() || !request.tool_outputs.is_empty())
}

impl Wish<'_> {
    fn arguments(&self, text: &str, request: &Request) -> String {
        if let Some(json) = &self.json {
            return json.clone();
        }
        let about = text.get(self.end..self.until).unwrap_or_default();
        match self.web {
            Some(Web::Search) => self.with(&["queries", "query"], &query(about)),
            Some(Web::Open) => self.with(&["url"], &page(about, text, request)),
            Some(Web::Find) => {
                let pattern = quoted(text).next().unwrap_or_default().to_owned();
                let url = page(about, text, request);
                serde_json::json!({"url": url, "pattern": pattern}).to_string()
            }
            None => schema::from_words(&self.tool.parameters, &Words::of(about, text)),
        }
    }

    /// One argument, under the first of these names that the tool knows, as the tool wants it.
    fn with(&self, names: &[&str], value: &str) -> String {
        let properties = &self.tool.parameters["properties"];
        let name = names.iter().find(|name| !properties[**name].is_null()).or(names.first()).unwrap_or(&"");
        let is_list = properties[*name]["type"] == "array";
        let value = if is_list { serde_json::json!([value]) } else { serde_json::json!(value) };
        serde_json::json!({ *name: value }).to_string()
    }
}

/// What is searched for: up to the end of the sentence, or to what is to be done next.
fn query(about: &str) -> String {
    let stops = [
        "\n",
        ". ",
        "? ",
        "! ",
        " and open",
        " and read",
        " then ",
        ", and",
        " at the same time",
        " in parallel",
        " twice",
    ];
    let lower = about.to_ascii_lowercase();
    let end = stops.iter().filter_map(|stop| lower.find(stop)).min().unwrap_or(about.len());
    let query = about[..end].trim().trim_end_matches(['.', '?', '!', ',', ':']).trim_matches(['"', '\'', '`', ' ']);
    if query.is_empty() { "example".to_owned() } else { query.to_owned() }
}

/// The page that is meant: the one that is named, or else the first that a tool has come back with.
fn page(about: &str, text: &str, request: &Request) -> String {
    let returned = || request.tool_outputs.iter().flat_map(|output| links::addresses(&output.text)).next();
    let named = links::addresses(about).next().or_else(|| links::addresses(text).next());
    named.or_else(returned).unwrap_or("https://example.com/").to_owned()
}

/// What a message says that arguments can be made of.
#[derive(Debug, Default)]
pub(super) struct Words<'a> {
    pub(super) quoted: Vec<&'a str>,
    pub(super) numbers: Vec<Value>,
    pub(super) address: Option<&'a str>,
    pub(super) text: &'a str,
}

impl<'a> Words<'a> {
    fn of(about: &'a str, text: &'a str) -> Self {
        let fillers = ["the", "tool", "with", "for", "in", "of", "on", "about", "to", "and", "then"];
        let mut said = about.trim_start_matches([' ', '`', ':', ',']);
        while let Some((_, rest)) = said.split_once(' ').filter(|(word, _)| fillers.contains(word)) {
            said = rest.trim_start();
        }
        let said = said.trim_matches([' ', '\n', '.', '?', '!', ',', '`']);
        Words {
            quoted: quoted(about).collect(),
            numbers: numbers(about),
            address: links::addresses(about).next().or_else(|| links::addresses(text).next()),
            text: if said.is_empty() || fillers.contains(&said) { text.trim() } else { said },
        }
    }
}

/// What stands between quotation marks of one kind.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(['"', '\''])?;
            let before = rest[..start].chars().next_back();
            let mark = if rest[start..].starts_with('"') { '"' } else { '\'' };
            let inside = &rest[start + 1..];
            // As in "what's": no quotation begins within a word.
            let Some(end) = inside.find(mark).filter(|_| !before.is_some_and(char::is_alphanumeric)) else {
                rest = inside;
                continue;
            };
            rest = &inside[end + 1..];
            if end > 0 {
                return Some(&inside[..end]);
            }
        }
    })
}

fn numbers(text: &str) -> Vec<Value> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')));
    let number = |word: &str| {
        let word = word.trim_end_matches('.');
        word.parse::<i64>().map(Value::from).or_else(|_| word.parse::<f64>().map(Value::from)).ok()
    };
    words.filter(|word| word.contains(|c: char| c.is_ascii_digit())).filter_map(number).collect()
}

/// The first JSON object after this place, and where it ends, if nothing but a few words lie between.
fn object(text: &str, from: usize) -> Option<(String, usize)> {
    let start = from + text.get(from..)?.find('{')?;
    let close = !text[from..start].contains(['\n', '.']) && start - from <= 80;
    let mut values = serde_json::Deserializer::from_str(text.get(start..).filter(|_| close)?).into_iter::<Value>();
    values.next()?.ok().filter(Value::is_object)?;
    let end = start + values.byte_offset();
    Some((text[start..end].to_owned(), end))
}

/// How often all of it is wanted.
fn times(text: &str) -> usize {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let counted = words.windows(2).find(|pair| pair[1] == "times").and_then(|pair| match pair[0] {
        "two" => Some(2),
        "three" => Some(3),
        "four" => Some(4),
        "five" => Some(5),
        number => number.parse().ok(),
    });
    let twice = words.contains(&"twice").then_some(2);
    counted.or(twice).unwrap_or(1).clamp(1, MOST_CALLS)
}

fn has(text: &str, words: &str) -> bool {
    word(text, words).is_some()
}

/// Where these words stand as words, in capitals or not.
fn word(text: &str, words: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let mut found = lower.match_indices(words).map(|(at, _)| (at, at + words.len()));
    found.find(|(at, end)| {
        !lower[..*at].ends_with(is_part_of_name)
            && !lower[*end..].starts_with(|c: char| is_part_of_name(c) && words != "result")
    })
}

fn clipped(text: &str) -> &str {
    let end = (0..=MOST_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
#[path = "wishes_tests.rs"]
mod tests;
