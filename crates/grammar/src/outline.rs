//! A look at a definition before it is compiled: whether it is within its limits, and uses nothing that the engine knows
//! and the API does not. The engine's extensions speak of a model's tokens, and of other languages in the same grammar;
//! an input that is text only cannot be judged by the first, and the second would have no bounds of ours.

use crate::{Syntax, Undecided, limits};

/// Directives of the engine.
const DIRECTIVES: [&str; 4] = ["%json", "%llguidance", "%regex", "%lark"];
/// Attributes of a rule, as in `rule[max_tokens=3]:`, that count or choose tokens.
const ATTRIBUTES: [&str; 5] = ["max_tokens", "stop", "stop_capture", "suffix", "temperature"];

pub(crate) fn check(syntax: Syntax, definition: &str) -> Result<(), Undecided> {
    if definition.len() > limits::DEFINITION {
        return Err(Undecided(format!("the definition is longer than {} bytes", limits::DEFINITION)));
    }
    if definition.trim().is_empty() {
        return Err(Undecided("the definition is empty".to_owned()));
    }
    match syntax {
        Syntax::Regex => Ok(()),
        Syntax::Lark => Outline::of(definition)?.check(),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outline {
    /// Rules and terminals, or so: each has a colon.
    colons: usize,
    brackets: usize,
}

impl Outline {
    /// Passes over strings, regular expressions and comments.
    fn of(definition: &str) -> Result<Self, Undecided> {
        let mut outline = Self::default();
        let mut rest = definition;
        while let Some(first) = rest.chars().next() {
            rest = match first {
                '"' => after_quoted(rest, '"'),
                '/' if rest.starts_with("//") => after_line(rest),
                '/' => after_quoted(rest, '/'),
                '#' => after_line(rest),
                '%' => {
                    if let Some(name) = DIRECTIVES.into_iter().find(|name| rest.starts_with(name)) {
                        return Err(Undecided(format!("`{name}` is not in the Lark syntax of the API")));
                    }
                    &rest[1..]
                }
                '<' | '@' => return Err(Undecided(format!("`{first}` is not in the Lark syntax of the API"))),
                '(' | '[' | '{' => {
                    outline.brackets += 1;
                    let inside = rest[1..].trim_start();
                    let word =
                        &inside[..inside.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(inside.len())];
                    if first == '[' && ATTRIBUTES.contains(&word) && inside[word.len()..].trim_start().starts_with('=')
                    {
                        return Err(Undecided(format!("`{word}` is not in the Lark syntax of the API")));
                    }
                    &rest[1..]
                }
                ':' => {
                    outline.colons += 1;
                    &rest[1..]
                }
                other => &rest[other.len_utf8()..],
            };
        }
        Ok(outline)
    }

    fn check(&self) -> Result<(), Undecided> {
        if self.colons + self.brackets > limits::DEPTH {
            return Err(Undecided(format!("the grammar has more than {} rules and brackets", limits::DEPTH)));
        }
        Ok(())
    }
}

/// What follows a text between two of these; it ends with the line, too.
fn after_quoted(text: &str, quote: char) -> &str {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return &text[index + 1..],
            '\n' if quote == '"' => return &text[index..],
            _ => {}
        }
    }
    ""
}

fn after_line(text: &str) -> &str {
    text.find('\n').map_or("", |end| &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_strings_is_not_looked_at() {
        for (definition, colons, brackets) in [
            ("start: a\na: \"(:[\" | /[:(]\\/(/ // (((\n# :::\nb: (a)", 3, 1),
            ("start: \"a\\\"(\" [b] ~ 2", 1, 1),
            ("start: \"é", 1, 0),
            ("start: /é", 1, 0),
            ("", 0, 0),
        ] {
            assert_eq!(Outline::of(definition), Ok(Outline { colons, brackets }), "{definition}");
        }
    }

    #[test]
    fn what_the_api_has_not_is_refused() {
        for (definition, why) in [
            ("start: %json {\"type\":\"object\"}", "%json"),
            ("%llguidance {}\nstart: \"a\"", "%llguidance"),
            ("start: <[12]>", "<"),
            ("start: @other", "@"),
            ("start[max_tokens=3]: \"a\"", "max_tokens"),
            ("start[ temperature = 0.1 ]: \"a\"", "temperature"),
        ] {
            let found = check(Syntax::Lark, definition).unwrap_err().to_string();
            assert!(found.contains(&format!("`{why}`")), "{definition}: {found}");
        }
        for definition in ["start: \"<@%json\"", "start: [stop] \"a\"\nstop: \"b\"", "start[lazy]: /a*/"] {
            assert_eq!(check(Syntax::Lark, definition), Ok(()), "{definition}");
        }
        assert_eq!(check(Syntax::Regex, "<[@%json"), Ok(()));
    }

    #[test]
    fn what_is_too_much_is_refused() {
        for (syntax, definition, why) in [
            (Syntax::Lark, " ".to_owned(), "empty"),
            (Syntax::Regex, "a".repeat(limits::DEFINITION + 1), "longer"),
            (Syntax::Lark, format!("start: {}a", "(".repeat(limits::DEPTH)), "rules and brackets"),
            (Syntax::Lark, "a:b\n".repeat(limits::DEPTH + 1), "rules and brackets"),
        ] {
            let found = check(syntax, &definition).unwrap_err().to_string();
            assert!(found.contains(why), "{found}");
        }
    }
}
