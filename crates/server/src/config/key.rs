//! A key of the configuration as data, and the reader that takes such keys only: what is read, what is printed, what
//! is suggested for a misspelt key and what is documented cannot differ.

use providers::yaml::{Field, Section};

use super::kind::{Kind, Preset};

/// One key, of the file (`C` is the configuration) or of a provider's entry in it.
pub(super) struct Key<C, K: Kind> {
    /// From the root of the file; `providers.NAME.` for those of a provider's entry.
    pub(super) path: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: K,
    /// The default in words, where the kind does not know it; `{}` is the part of it that the kind knows.
    pub(super) otherwise: &'static str,
    pub(super) status: KeyStatus,
    /// The value that is in force; none: not printed.
    pub(super) value: fn(&C) -> Option<K::Value>,
}

/// Whether a key should still be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStatus {
    Current,
    /// Another key has taken its place; older files have it.
    Older,
    /// Read and checked, and nothing is done with it in this version.
    NoEffect,
}

/// What the documentation, the printer and the tests want to know of a key.
pub trait Described<C>: Sync {
    fn path(&self) -> &'static str;
    fn about(&self) -> &'static str;
    /// What it takes, in words.
    fn kind(&self) -> String;
    /// What holds if it is not there, in YAML or in words.
    fn default(&self) -> String;
    fn status(&self) -> KeyStatus;
    /// The value that is in force, as YAML.
    fn print(&self, config: &C) -> Option<String>;
    /// Reads a value only to check it.
    fn check(&self, field: &Field<'_>) -> bool;
}

impl<C, K: Kind + Sync> Described<C> for Key<C, K> {
    fn path(&self) -> &'static str {
        self.path
    }

    fn about(&self) -> &'static str {
        self.about.trim()
    }

    fn kind(&self) -> String {
        self.kind.describe()
    }

    fn default(&self) -> String {
        match self.kind.default() {
            Some(value) => format!("`{}`", self.kind.print(&value)),
            None => {
                let part = self.kind.fallback().map(|value| self.kind.print(&value)).unwrap_or_default();
                self.otherwise.replace("{}", &part)
            }
        }
    }

    fn status(&self) -> KeyStatus {
        self.status
    }

    fn print(&self, config: &C) -> Option<String> {
        (self.value)(config).map(|value| self.kind.print(&value))
    }

    fn check(&self, field: &Field<'_>) -> bool {
        self.kind.read(field).is_some()
    }
}

/// Declares keys, and the table of them. A key without a comment does not compile: the comment is what the
/// documentation says.
macro_rules! keys {
    ($table:ident of $config:ty { $(
        $(#[doc = $about:literal])+
        $name:ident = $path:literal, $kind:ty: $of:expr $(, otherwise $otherwise:literal)? $(; $status:ident)?
            => $value:expr;
    )+ }) => {
        $(
            $(#[doc = $about])+
            pub(super) static $name: Key<$config, $kind> = Key {
                path: $path,
                about: concat!($($about),+),
                kind: $of,
                otherwise: keys!(@otherwise $($otherwise)?),
                status: keys!(@status $($status)?),
                value: $value,
            };
        )+

        /// Every one, in the order in which they are printed and documented.
        pub static $table: &[&dyn Described<$config>] = &[$(&$name),+];
    };
    (@otherwise) => { "" };
    (@otherwise $text:literal) => { $text };
    (@status) => { KeyStatus::Current };
    (@status $status:ident) => { KeyStatus::$status };
}

pub(super) use keys;

/// A mapping of the file with the mappings below it, of which only declared keys can be asked for.
pub(super) struct Keys<'r> {
    /// What its keys' paths begin with.
    prefix: &'static str,
    /// By the way to them from here; the first is this mapping itself.
    sections: Vec<(&'static str, Section<'r>)>,
}

impl<'r> Keys<'r> {
    pub(super) fn new(section: Section<'r>, prefix: &'static str) -> Self {
        Self { prefix, sections: vec![("", section)] }
    }

    /// What the file says, as the key's kind reads it.
    pub(super) fn find<C, K: Kind>(&mut self, key: &Key<C, K>) -> Option<K::Value> {
        let field = self.field(key)?;
        key.kind.read(&field)
    }

    /// The same, or else the key's default.
    pub(super) fn get<C, K: Preset>(&mut self, key: &Key<C, K>) -> K::Value {
        self.find(key).unwrap_or_else(|| key.kind.preset())
    }

    /// Where the key is in the file.
    pub(super) fn field<C, K: Kind>(&mut self, key: &Key<C, K>) -> Option<Field<'r>> {
        self.at(key.path)
    }

    /// Where any key of a table is in the file.
    pub(super) fn at(&mut self, path: &'static str) -> Option<Field<'r>> {
        let path = path.strip_prefix(self.prefix).unwrap_or(path);
        let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
        self.section(section)?.field(name)
    }

    /// A mapping below this one, opened once.
    pub(super) fn section(&mut self, path: &'static str) -> Option<&mut Section<'r>> {
        if !self.sections.iter().any(|(open, _)| *open == path) {
            let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
            let opened = self.section(parent)?.section(name);
            self.sections.push((path, opened));
        }
        self.sections.iter_mut().find(|(open, _)| *open == path).map(|(_, section)| section)
    }

    /// Reports every key that is not declared.
    pub(super) fn finish(self) {
        for (_, section) in self.sections {
            section.finish();
        }
    }
}
