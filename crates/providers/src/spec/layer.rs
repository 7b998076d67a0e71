//! One layer of a provider: what a file says, and where in it.

use super::Spec;
use super::values::Yaml;
use crate::yaml::{Field, Filled};

/// Whose words a layer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerKind {
    /// A spec of the library.
    BuiltIn,
    /// A spec of the user's.
    User,
    /// The provider's entry in the configuration.
    Entry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) kind: LayerKind,
    pub(crate) spec: Spec,
    pub(crate) places: Places,
}

/// A value of a spec: its path, and how it is written.
pub(crate) type Setting = (String, String);

/// The line of every key of a mapping, by its path from there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    file: String,
    /// Where the mapping itself is.
    pub(crate) line: usize,
    keys: Vec<(String, usize)>,
    /// What came from variables.
    filled: Vec<Filled>,
}

/// Where something is said is no part of what is said: a line more at the top of a file makes no other provider.
impl PartialEq for Places {
    fn eq(&self, other: &Self) -> bool {
        self.filled == other.filled
    }
}

impl Eq for Places {}

/// How values with variables in them are written: with the file's own words, or without what the variables hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variables {
    Hidden,
    AsWritten,
}

/// Where a value was said, if that is known: it may be from a variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) places: Option<&'a Places>,
    pub(crate) variables: Variables,
}

impl<'a> Source<'a> {
    pub(crate) const UNKNOWN: Self = Self { places: None, variables: Variables::Hidden };

    pub(crate) const fn hiding(places: &'a Places) -> Self {
        Self { places: Some(places), variables: Variables::Hidden }
    }

    /// Whether a variable is in the text at this place.
    pub(crate) fn is_filled(self, path: &str) -> bool {
        self.places.is_some_and(|places| places.filled.iter().any(|filled| filled.path == path))
    }

    /// The text at this place in YAML, if a variable is in it.
    pub(super) fn filled(self, path: &str) -> Option<String> {
        let filled = self.places?.filled.iter().find(|filled| filled.path == path)?;
        Some(match self.variables {
            Variables::Hidden => filled.shown.yaml(),
            Variables::AsWritten => wire::visible::quoted(&filled.written),
        })
    }
}

/// The source of each value, by its path.
pub(crate) type Sources<'a> = &'a dyn Fn(&str) -> Source<'a>;

impl Places {
    pub(crate) fn of(field: &Field<'_>) -> Self {
        let keys = field.keys().into_iter().map(|(path, position)| (path, position.line)).collect();
        Self { file: field.file().to_owned(), line: field.position().line, keys, filled: field.filled() }
    }

    /// `file:line` of a key, if it is written here.
    pub(crate) fn find(&self, path: &str) -> Option<String> {
        let (_, line) = self.keys.iter().find(|(known, _)| known == path)?;
        Some(format!("{}:{line}", self.file))
    }

    /// What variables put into JSON objects here: it is sent to the provider.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.filled.iter().flat_map(|filled| &filled.secrets).map(String::as_str)
    }

    /// `file:line` of the mapping.
    pub(crate) fn start(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// What one spec says about a group of values; what it does not say stays. A key without a comment does not compile:
/// the comment is what the documentation says.
macro_rules! layer {
    ($name:ident over $target:ident { $($(#[doc = $about:literal])+ $field:ident: $type:ty = $read:expr),+ $(,)? }) => {
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub(super) struct $name { $($field: Option<$type>),+ }

        impl $name {
            /// The rest of the section's keys is somebody else's.
            pub(super) fn pick(section: &mut Section<'_>) -> Self {
                Self { $($field: section.read(stringify!($field), $read)),+ }
            }

            /// Its keys as documentation shows them.
            pub(super) fn described(path: &str) -> Vec<$crate::spec::SpecKey> {
                use $crate::spec::describe::key;
                vec![$(key::<$type>(format!("{path}{}", stringify!($field)), concat!($($about),+), true)),+]
            }

            pub(super) fn apply(&self, to: &mut $target) {
                use $crate::spec::values::Yaml as _;
                $(if let Some(value) = &self.$field {
                    to.$field = value.over(&to.$field);
                })+
            }

            /// A layer that says everything.
            pub(super) fn whole(of: &$target) -> Self {
                Self { $($field: Some(of.$field.clone())),+ }
            }

            pub(super) fn settings(
                &self,
                path: &str,
                from: $crate::spec::layer::Sources<'_>,
                out: &mut Vec<$crate::spec::layer::Setting>,
            ) {
                use $crate::spec::values::Yaml as _;
                $(if let Some(value) = &self.$field {
                    value.settings(format!("{path}{}", stringify!($field)), from, out);
                })+
            }
        }
    };
}

/// Reads one word of a vocabulary, or a list of them.
macro_rules! word {
    ($type:ident) => {
        |field| field.choice($type::ALL, $type::name)
    };
    ([$type:ident]) => {
        |field| Some(field.list()?.iter().filter_map(|word| word.choice($type::ALL, $type::name)).collect())
    };
}

pub(super) use {layer, word};
