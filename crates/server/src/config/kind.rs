//! The kinds of values that keys take: how each is read, printed and described.

use std::ops::RangeInclusive;
use std::time::Duration;

use providers::yaml::Field;

use super::print::quote;
use super::units::{self, Bare};

/// What a key takes.
pub(super) trait Kind {
    type Value;

    /// The value in the file; a problem is reported there.
    fn read(&self, field: &Field<'_>) -> Option<Self::Value>;

    /// As YAML that reads back as the same.
    fn print(&self, value: &Self::Value) -> String;

    /// In the words of the documentation.
    fn describe(&self) -> String;

    /// What holds when the file does not say; none where that is nothing, or depends on other things.
    fn default(&self) -> Option<Self::Value> {
        None
    }

    /// What is part of the default where that depends on other things.
    fn fallback(&self) -> Option<Self::Value> {
        self.default()
    }
}

/// A kind that always has a default.
pub(super) trait Preset: Kind {
    fn preset(&self) -> Self::Value;
}

/// `true` or `false`.
pub(super) struct Flag(pub(super) bool);

impl Kind for Flag {
    type Value = bool;

    fn read(&self, field: &Field<'_>) -> Option<bool> {
        field.boolean()
    }

    fn print(&self, value: &bool) -> String {
        value.to_string()
    }

    fn describe(&self) -> String {
        "`true` or `false`".to_owned()
    }

    fn default(&self) -> Option<bool> {
        Some(self.0)
    }
}

impl Preset for Flag {
    fn preset(&self) -> bool {
        self.0
    }
}

/// A whole number.
pub(super) struct Number {
    pub(super) range: RangeInclusive<u64>,
    pub(super) default: u64,
}

impl Kind for Number {
    type Value = u64;

    fn read(&self, field: &Field<'_>) -> Option<u64> {
        field.integer(self.range.clone())
    }

    fn print(&self, value: &u64) -> String {
        value.to_string()
    }

    fn describe(&self) -> String {
        match *self.range.end() {
            u64::MAX => format!("number, at least {}", self.range.start()),
            end => format!("number from {} to {end}", self.range.start()),
        }
    }

    fn default(&self) -> Option<u64> {
        Some(self.default)
    }
}

impl Preset for Number {
    fn preset(&self) -> u64 {
        self.default
    }
}

/// A duration.
pub(super) struct Time {
    pub(super) bare: Bare,
    pub(super) range: RangeInclusive<Duration>,
    pub(super) default: Duration,
}

impl Kind for Time {
    type Value = Duration;

    fn read(&self, field: &Field<'_>) -> Option<Duration> {
        units::duration(field, self.bare, &self.range)
    }

    fn print(&self, value: &Duration) -> String {
        // Such keys say the unit in their names.
        if self.bare == Bare::Milliseconds { value.as_millis().to_string() } else { units::print_duration(*value) }
    }

    fn describe(&self) -> String {
        let (low, high) = (units::print_duration(*self.range.start()), units::print_duration(*self.range.end()));
        let bare = units::bare_name(self.bare).map(|name| format!("; a bare number is {name}")).unwrap_or_default();
        format!("duration from `{low}` to `{high}`{bare}")
    }

    fn default(&self) -> Option<Duration> {
        Some(self.default)
    }
}

impl Preset for Time {
    fn preset(&self) -> Duration {
        self.default
    }
}

/// A number of bytes.
pub(super) struct Size {
    pub(super) range: RangeInclusive<u64>,
    pub(super) default: u64,
}

impl Kind for Size {
    type Value = u64;

    fn read(&self, field: &Field<'_>) -> Option<u64> {
        units::size(field, &self.range)
    }

    fn print(&self, value: &u64) -> String {
        units::print_size(*value)
    }

    fn describe(&self) -> String {
        format!("size from `{}` to `{}`", units::print_size(*self.range.start()), units::print_size(*self.range.end()))
    }

    fn default(&self) -> Option<u64> {
        Some(self.default)
    }
}

impl Preset for Size {
    fn preset(&self) -> u64 {
        self.default
    }
}

/// One of a closed vocabulary.
pub(super) struct Word<T: 'static> {
    pub(super) all: &'static [T],
    pub(super) name: fn(T) -> &'static str,
    pub(super) default: T,
}

impl<T: Copy> Kind for Word<T> {
    type Value = T;

    fn read(&self, field: &Field<'_>) -> Option<T> {
        field.choice(self.all, self.name)
    }

    fn print(&self, value: &T) -> String {
        quote_word((self.name)(*value))
    }

    fn describe(&self) -> String {
        let names: Vec<String> = self.all.iter().map(|value| format!("`{}`", (self.name)(*value))).collect();
        match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, head)) => format!("{} or {last}", head.join(", ")),
            None => String::new(),
        }
    }

    fn default(&self) -> Option<T> {
        Some(self.default)
    }
}

impl<T: Copy> Preset for Word<T> {
    fn preset(&self) -> T {
        self.default
    }
}

/// Statuses are words that look like numbers, and are written without quotes.
fn quote_word(word: &str) -> String {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.to_owned() } else { quote(word) }
}

/// Text that is not empty.
pub(super) struct Text(pub(super) &'static str);

impl Kind for Text {
    type Value = String;

    fn read(&self, field: &Field<'_>) -> Option<String> {
        field.text()
    }

    fn print(&self, value: &String) -> String {
        quote(value)
    }

    fn describe(&self) -> String {
        "text".to_owned()
    }

    fn default(&self) -> Option<String> {
        Some(self.0.to_owned())
    }
}

impl Preset for Text {
    fn preset(&self) -> String {
        self.0.to_owned()
    }
}

/// A kind without its default: what is not said is not known.
pub(super) struct Unset<K>(pub(super) K);

impl<K: Kind> Kind for Unset<K> {
    type Value = K::Value;

    fn read(&self, field: &Field<'_>) -> Option<K::Value> {
        self.0.read(field)
    }

    fn print(&self, value: &K::Value) -> String {
        self.0.print(value)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn fallback(&self) -> Option<K::Value> {
        self.0.fallback()
    }
}

/// How long something is kept: a duration, or `never` for one without an end.
pub(super) struct Lifetime(pub(super) Duration);

impl Lifetime {
    /// Up to a century.
    const RANGE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(36_525 * 24);
}

impl Kind for Lifetime {
    type Value = Option<Duration>;

    /// A bare number could mean days as well as seconds.
    fn read(&self, field: &Field<'_>) -> Option<Option<Duration>> {
        let text = field.text()?;
        if text == "never" {
            return Some(None);
        }
        let life = units::parse_duration(&text, Bare::Refused).filter(|life| Self::RANGE.contains(life));
        if life.is_none() {
            return field.expected("a time such as `30d`, `12h` or `never`");
        }
        Some(life)
    }

    fn print(&self, value: &Option<Duration>) -> String {
        value.map_or_else(|| "never".to_owned(), units::print_duration)
    }

    fn describe(&self) -> String {
        let (low, high) = (units::print_duration(*Self::RANGE.start()), units::print_duration(*Self::RANGE.end()));
        format!("duration from `{low}` to `{high}`, or `never`")
    }

    fn default(&self) -> Option<Option<Duration>> {
        Some(Some(self.0))
    }
}

impl Preset for Lifetime {
    fn preset(&self) -> Option<Duration> {
        Some(self.0)
    }
}

/// Something with a reader of its own, described in words. Its value is YAML already.
pub(super) struct Special(pub(super) &'static str);

impl Kind for Special {
    type Value = String;

    /// Never used: whoever reads such a key has the field.
    fn read(&self, _: &Field<'_>) -> Option<String> {
        None
    }

    fn print(&self, value: &String) -> String {
        value.clone()
    }

    fn describe(&self) -> String {
        self.0.to_owned()
    }
}
