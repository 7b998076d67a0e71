//! `keys`: API keys that the configuration declares, beside those that are made with `godex keys`. Each is there as its
//! hash; what a variable or the file itself holds is hashed when it is read, and kept nowhere.

use std::fmt::Write;

use aws_lc_rs::digest::{SHA256, digest};
use providers::yaml::{Field, Section};

use super::{Secret, print, units};
use crate::terms::{Budget, MOST_TPM, Terms};

/// Shorter ones could be guessed, or be found from their hashes.
const SHORTEST: usize = 20;
const PREFIX: &str = "sha256:";
const DAY: u64 = 24 * 60 * 60;

/// A key of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyConfig {
    /// No other one has the same.
    pub name: String,
    pub tenant: String,
    pub hash: KeyHash,
    pub terms: Terms,
    /// Unix seconds.
    pub expires_at: Option<u64>,
}

/// SHA-256 of a key: what it is known by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    pub fn of(key: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, key.as_bytes()).as_ref());
        Self(hash)
    }

    fn from_hex(hex: &str) -> Option<Self> {
        let mut hash = [0; 32];
        let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
        if pairs.len() != hash.len() || !rest.is_empty() {
            return None;
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
        }
        Some(Self(hash))
    }
}

/// Of a key that was too short to be one it could be guessed.
impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<redacted>")
    }
}

impl KeyConfig {
    /// A key of this name for the tenant `default`, without limits.
    pub fn new(name: &str, key: &Secret) -> Self {
        Self {
            name: name.to_owned(),
            tenant: DEFAULT.to_owned(),
            hash: KeyHash::of(key.expose()),
            terms: Terms::default(),
            expires_at: None,
        }
    }
}

/// The tenant that owns what was stored before there were keys.
const DEFAULT: &str = "default";

/// Whether keys and tenants may be called so: it is in logs, addresses and shells.
pub(crate) fn is_name(name: &str) -> bool {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    // What paths take for something else is no name.
    (1..=64).contains(&name.len()) && name.bytes().all(part) && !matches!(name, "." | "..")
}

pub(crate) const NAME: &str = "1 to 64 letters, digits, `-`, `_` and `.`";

pub(super) fn read(field: &Field<'_>) -> Vec<KeyConfig> {
    let mut all: Vec<KeyConfig> = Vec::new();
    for field in field.list().unwrap_or_default() {
        let place = field.clone();
        let Some(key) = key(field) else { continue };
        if all.iter().any(|other| other.name == key.name) {
            place.problem(format!("there is another key named `{}`", key.name), None);
        }
        if all.iter().any(|other| other.hash == key.hash) {
            place.problem("this is the same key as another one", None);
        }
        all.push(key);
    }
    all
}

fn key(field: Field<'_>) -> Option<KeyConfig> {
    let mut section = field.section()?;
    let name = section.read("name", name);
    if name.is_none() && section.field("name").is_none() {
        section.problem("needs `name`", None);
    }
    let tenant = section.read("tenant", self::name).unwrap_or_else(|| DEFAULT.to_owned());
    let (hash, plain) = (section.field("hash"), section.field("key"));
    let hash = match (hash, plain) {
        (Some(hash), None) => from_hash(&hash),
        (None, Some(plain)) => from_key(&plain),
        (Some(_), Some(plain)) => {
            plain.problem("is there beside `hash`: one of the two says which key it is", None);
            None
        }
        (None, None) => {
            let help = "`printf %s KEY | sha256sum` prints a hash; or `key: ${VARIABLE}`";
            section.problem("needs `hash` or `key`", Some(help.to_owned()));
            None
        }
    };
    let terms = terms(&mut section);
    let expires_at = section.read("expires", expires);
    section.finish();
    Some(KeyConfig { name: name?, tenant, hash: hash?, terms, expires_at })
}

fn name(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    if is_name(&name) { Some(name) } else { field.expected(NAME) }
}

/// Says nothing of what was found: it may be the key itself.
fn from_hash(field: &Field<'_>) -> Option<KeyHash> {
    let text = field.text()?;
    let hash = text.strip_prefix(PREFIX).and_then(KeyHash::from_hex);
    if hash.is_none() {
        let help = "`printf %s KEY | sha256sum` prints the digits";
        field.problem("expected `sha256:` and 64 hexadecimal digits", Some(help.to_owned()));
    }
    hash
}

fn from_key(field: &Field<'_>) -> Option<KeyHash> {
    let text = field.text()?;
    let key = text.trim();
    if key.len() < SHORTEST || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        let help = "`openssl rand -hex 32` makes one";
        field.problem(
            format!("expected at least {SHORTEST} visible ASCII characters without blanks"),
            Some(help.to_owned()),
        );
        return None;
    }
    Some(KeyHash::of(key))
}

/// What a key or a token may do, as members of an entry.
pub(super) fn terms(section: &mut Section<'_>) -> Terms {
    let number = |field: &Field<'_>| field.integer(1..=u64::from(u32::MAX));
    Terms {
        models: section.read("models", Field::texts),
        tools: section.read("tools", tools),
        rpm: section.read("rpm", number),
        tpm: section.read("tpm", |field| field.integer(1..=MOST_TPM)),
        concurrency: section.read("concurrency", number),
        queue: section.read("queue", |field| field.integer(0..=u64::from(u32::MAX))),
        body_bytes: section.read("body_bytes", |field| units::size(field, &(1..=1 << 44))),
        budget: section.read("budget", budget),
    }
}

fn tools(field: &Field<'_>) -> Option<Vec<String>> {
    let list = field.list()?;
    let tool = |field: &Field<'_>| {
        let tool = field.text()?;
        let known =
            matches!(tool.as_str(), "web_search" | "mcp") || tool.strip_prefix("mcp:").is_some_and(|l| !l.is_empty());
        if known { Some(tool) } else { field.expected("`web_search`, `mcp` or `mcp:LABEL`") }
    };
    Some(list.iter().filter_map(tool).collect())
}

fn budget(field: &Field<'_>) -> Option<Budget> {
    let text = field.text()?;
    text.parse().map_err(|error: crate::terms::NoBudget| field.problem(error.to_string(), None)).ok()
}

/// `2027-06-30`: to the end of that day, in UTC.
fn expires(field: &Field<'_>) -> Option<u64> {
    let text = field.text()?;
    match day(&text) {
        Some(day) => Some((day + 1) * DAY),
        None => field.expected("a date such as `2027-06-30`"),
    }
}

/// Days since 1970-01-01.
fn day(text: &str) -> Option<u64> {
    let mut parts = text.split('-').map(|part| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|_| digits)
    });
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = |month: u64| match month {
        2 => 28 + u64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if text.len() != 10 || !(1970..=9998).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    if !(1..=length(month)).contains(&day) || parts.next().is_some() {
        return None;
    }
    let years: u64 = (1970..year).map(|year| 365 + u64::from(leap(year))).sum();
    Some(years + (1..month).map(length).sum::<u64>() + day - 1)
}

/// As comments: without its hash, which is not printed, a key cannot be read again.
pub(super) fn print(keys: &[KeyConfig]) -> Option<String> {
    let line = |key: &KeyConfig| {
        let mut line = format!(
            "\n# - {{name: {}, tenant: {}, hash: <redacted>",
            print::quote(&key.name),
            print::quote(&key.tenant)
        );
        let _ = write!(line, ", terms: {}}}", key.terms.to_json());
        line
    };
    (!keys.is_empty()).then(|| keys.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use providers::yaml::{Document, Reader};

    use super::*;

    const KEY: &str = "a-key-of-20-characters";

    fn read_text(text: &str) -> (Vec<KeyConfig>, Vec<String>) {
        let document = Document::parse("godex.yaml", text).unwrap();
        let env = |name: &str| (name == "KEY").then(|| format!("{KEY}\n"));
        let reader = Reader::new(&document, &env);
        let mut root = reader.root();
        let keys = root.field("keys").map(|field| read(&field)).unwrap_or_default();
        root.finish();
        (keys, reader.finish().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn keys_are_declared_by_hash_or_by_a_variable() {
        let text = "keys:\n- {name: team-a, hash: 'sha256:\
                    E3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}\n- name: team.b\n  tenant: b\n  key: \
                    ${KEY}\n  models: [fast, 'deepseek/*']\n  tools: [web_search, 'mcp:clock']\n  rpm: 600\n  tpm: 2000000\n  \
                    concurrency: 50\n  queue: 0\n  body_bytes: 64MiB\n  budget: 50usd/month\n  expires: 2027-06-30\n";
        let (keys, problems) = read_text(text);
        assert_eq!(problems, Vec::<String>::new());
        let [first, second] = &keys[..] else { panic!("{keys:?}") };
        let empty = KeyHash::of("");
        assert_eq!((first.name.as_str(), first.tenant.as_str(), first.hash), ("team-a", "default", empty));
        assert_eq!((&first.terms, first.expires_at), (&Terms::default(), None));
        assert_eq!((second.tenant.as_str(), second.hash), ("b", KeyHash::of(KEY)));
        // 2027-07-01T00:00:00Z
        assert_eq!(second.expires_at, Some(1_814_400_000));
        let terms = r#"{"models":["fast","deepseek/*"],"tools":["web_search","mcp:clock"],"rpm":600,"tpm":2000000,"concurrency":50,"queue":0,"body_bytes":67108864,"budget":"50usd/month"}"#;
        assert_eq!(second.terms.to_json(), terms);
        let shown = format!("{keys:?}{}", print(&keys).unwrap());
        assert!(!shown.contains(KEY) && !shown.contains("e3b0c4"), "{shown}");
        assert_eq!(print(&[]), None);
    }

    #[test]
    fn mistakes_are_told_with_their_line_and_without_the_key() {
        for (entry, expected) in [
            ("{name: a}", "keys[0]: needs `hash` or `key`"),
            ("{key: '${KEY}'}", "keys[0]: needs `name`"),
            ("{name: 'a b', key: '${KEY}'}", "keys[0].name: expected 1 to 64 letters"),
            ("{name: a, tenant: a/b, key: '${KEY}'}", "keys[0].tenant: expected 1 to 64 letters"),
            ("{name: a, key: too-short}", "keys[0].key: expected at least 20 visible ASCII characters"),
            ("{name: a, key: too-short with a blank in it}", "keys[0].key: expected at least 20"),
            ("{name: a, key: [too-short]}", "keys[0].key: expected a string"),
            ("{name: a, key: '${NOT_SET}'}", "keys[0].key: the environment variable NOT_SET is not set"),
            ("{name: a, hash: too-short}", "keys[0].hash: expected `sha256:` and 64 hexadecimal digits"),
            ("{name: a, hash: 'sha256:too-short'}", "keys[0].hash: expected `sha256:`"),
            ("{name: a, hash: 'sha256:00', key: '${KEY}'}", "keys[0].key: is there beside `hash`"),
            ("{name: a, key: '${KEY}', rpm: 0}", "keys[0].rpm: expected a whole number"),
            ("{name: a, key: '${KEY}', budget: 50}", "keys[0].budget: expected a budget such as `50usd/month`"),
            ("{name: a, key: '${KEY}', tools: [shell]}", "keys[0].tools[0]: expected `web_search`, `mcp` or"),
            ("{name: a, key: '${KEY}', expires: 90d}", "keys[0].expires: expected a date such as"),
            ("{name: a, key: '${KEY}', rph: 1}", "keys[0]: unknown key `rph`; did you mean `rpm`?"),
            (KEY, "keys[0]: expected a mapping, found a string"),
        ] {
            let (_, problems) = read_text(&format!("keys:\n- {entry}\n"));
            assert!(problems.len() == 1 && problems[0].contains(expected), "{entry}: {problems:?}");
            assert!(problems[0].starts_with("godex.yaml:2:"), "{problems:?}");
            assert!(!problems[0].contains("too-short") && !problems[0].contains(KEY), "{problems:?}");
        }
        let (_, twice) = read_text("keys:\n- {name: a, key: '${KEY}'}\n- {name: a, key: '${KEY}'}\n");
        assert_eq!(twice.len(), 2, "{twice:?}");
    }

    #[test]
    fn dates_are_days() {
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("2000-02-29", Some(11_016)),
            ("2100-02-29", None),
            ("2026-11-16", Some(20_773)),
            ("2026-11-31", None),
            ("2026-13-01", None),
            ("2026-00-01", None),
            ("2026-1-1", None),
            ("2026-11-16-", None),
            ("+026-11-16", None),
            ("1969-12-31", None),
            ("soon", None),
        ] {
            assert_eq!(day(text), expected, "{text}");
        }
    }
}
