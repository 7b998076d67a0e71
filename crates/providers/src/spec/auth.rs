//! How a provider knows who asks: a key in a header, or a token that a command prints and that lasts for a while.

use std::time::Duration;

use super::layer::Source;
use super::values::Yaml;
use crate::yaml::Field;

bridge::vocabulary! {
    /// How the key is sent.
    pub enum Auth {
        /// `Authorization: Bearer KEY`.
        Bearer = "bearer",
        /// `api-key: KEY`.
        ApiKeyHeader = "api-key-header",
        /// `x-api-key: KEY`.
        XApiKey = "x-api-key",
        /// Not at all.
        None = "none",
    }
}

/// A program that prints a token, which is sent as `Authorization: Bearer TOKEN`.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenCommand {
    /// The program and its arguments; there is no shell.
    pub command: Vec<String>,
    /// How long a token lasts.
    pub ttl: Duration,
}

impl TokenCommand {
    /// What people call it.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }
}

/// Without the arguments: one may be from a variable.
impl std::fmt::Debug for TokenCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenCommand").field("program", &self.program()).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// What one spec says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SaidAuth {
    Key(Auth),
    Command(TokenCommand),
}

const UNITS: &[(char, u64)] = &[('h', 3600), ('m', 60), ('s', 1)];
const SHORTEST: u64 = 10;
const LONGEST: u64 = 24 * 3600;
/// What most tokens outlast.
const USUAL: Duration = Duration::from_mins(15);

impl SaidAuth {
    /// A word, or `{command: [PROGRAM, …], ttl: 45m}`.
    pub(super) fn read(field: &Field<'_>) -> Option<Self> {
        if !field.is_mapping() {
            return field.choice(Auth::ALL, Auth::name).map(Self::Key);
        }
        let mut section = field.clone().section()?;
        let command = section.field("command");
        let ttl = section.field("ttl");
        if command.is_none() {
            section
                .problem("a token needs a `command`", Some("such as `[gcloud, auth, print-access-token]`".to_owned()));
        }
        section.finish();
        let command = command?;
        let words = command.texts()?;
        if words.is_empty() {
            return command.expected("a program and its arguments");
        }
        let ttl = ttl.map_or(Some(USUAL), |field| duration(&field))?;
        Some(Self::Command(TokenCommand { command: words, ttl }))
    }

    pub(super) fn shown(&self, from: Source<'_>) -> String {
        match self {
            Self::Key(auth) => auth.yaml(),
            Self::Command(TokenCommand { command, ttl }) => {
                format!("{{command: {}, ttl: {}}}", command.shown("auth.command", from), print(*ttl))
            }
        }
    }
}

fn duration(field: &Field<'_>) -> Option<Duration> {
    let text = field.text()?;
    let parse =
        |(unit, seconds): &(char, u64)| text.strip_suffix(*unit)?.trim_end().parse::<u64>().ok()?.checked_mul(*seconds);
    let seconds = UNITS.iter().find_map(parse).filter(|seconds| (SHORTEST..=LONGEST).contains(seconds));
    match seconds {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => field.expected("a duration from `10s` to `24h`, such as `45m`"),
    }
}

/// In the largest unit that divides it.
fn print(ttl: Duration) -> String {
    let seconds = ttl.as_secs();
    let (unit, length) = UNITS.iter().find(|(_, length)| seconds.is_multiple_of(*length)).unwrap_or(&('s', 1));
    format!("{}{unit}", seconds / length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{Document, Problems, Reader};
    use crate::{Library, Provider, resolve_inline};

    fn inline(text: &str) -> (Option<Provider>, String) {
        let env = |name: &str| (name == "SECRET").then(|| "sk-very-secret".to_owned());
        let document = Document::parse("mine.yaml", text).unwrap();
        let reader = Reader::new(&document, &env);
        let provider = resolve_inline(Library::BUILTIN, &reader.root_field(), &env);
        (provider, Problems(reader.finish()).to_string())
    }

    #[test]
    fn a_command_is_read_and_shown_and_hides_what_came_from_variables() {
        let text = "auth: {command: [gcloud, auth, '--key=${SECRET}'], ttl: 120m}\nendpoint: {base_url: 'https://x'}";
        let (provider, problems) = inline(text);
        assert_eq!(problems, "");
        let provider = provider.unwrap();
        let token = provider.token.clone().unwrap();
        assert_eq!((token.command[2].as_str(), token.ttl), ("--key=sk-very-secret", Duration::from_hours(2)));
        assert!(!format!("{provider:?}{token:?}").contains("secret"));
        let shown = provider.show(None);
        assert!(shown.contains("auth: {command: [gcloud, auth, '--key=redacted'], ttl: 2h}  # mine.yaml:1"), "{shown}");
        // A key that is asked for again takes its place, and a new address does not get the old one's token.
        for more in ["auth: bearer", "endpoint: {base_url: 'https://y'}"] {
            let (provider, problems) = inline(more);
            assert_eq!((provider.unwrap().token, problems.as_str()), (None, ""));
        }
    }

    #[test]
    fn mistakes_are_found() {
        for (text, expected) in [
            ("auth: {ttl: 5m}", "mine.yaml:1:1: auth: a token needs a `command`; such as"),
            ("auth: {command: []}", "auth.command: expected a program and its arguments, found a list"),
            ("auth: {command: gcloud}", "auth.command: expected a list, found `gcloud`"),
            (
                "auth: {command: [a], ttl: 5}",
                "auth.ttl: expected a duration from `10s` to `24h`, such as `45m`, found `5`",
            ),
            ("auth: {command: [a], ttl: 9s}", "auth.ttl: expected a duration"),
            ("auth: {command: [a], tll: 9m}", "auth: unknown key `tll`; did you mean `ttl`?"),
            ("auth: basic", "auth: expected one of `bearer`, `api-key-header`, `x-api-key`, `none`, found `basic`"),
        ] {
            let (_, problems) = inline(text);
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
