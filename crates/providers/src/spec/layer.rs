//! One layer of a provider: what a file says, and where in it.

use super::Spec;
use crate::yaml::Field;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// A spec of the library.
    BuiltIn,
    /// A spec of the user's.
    User,
    /// The provider's entry in the configuration.
    Entry,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) voice: Voice,
    pub(crate) spec: Spec,
    pub(crate) places: Places,
}

/// A value of a spec: the way to it, and how it is written.
pub(crate) type Setting = (String, String);

/// The line of every key of a mapping, by the way to it from there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Places {
    file: String,
    /// Where the mapping itself stands.
    pub(crate) line: usize,
    keys: Vec<(String, usize)>,
}

impl Places {
    pub(crate) fn of(field: &Field<'_>) -> Self {
        let keys = field.keys().into_iter().map(|(path, position)| (path, position.line)).collect();
        Self { file: field.file().to_owned(), line: field.position().line, keys }
    }

    /// `file:line` of a key, if it stands here.
    pub(crate) fn find(&self, path: &str) -> Option<String> {
        let (_, line) = self.keys.iter().find(|(known, _)| known == path)?;
        Some(format!("{}:{line}", self.file))
    }

    /// `file:line` of the mapping.
    pub(crate) fn start(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// What one spec says about a group of values; what it does not say stays.
macro_rules! layer {
    ($name:ident over $target:ident { $($field:ident: $type:ty = $read:expr),+ $(,)? }) => {
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub(super) struct $name { $($field: Option<$type>),+ }

        impl $name {
            /// The rest of the section's keys is somebody else's.
            pub(super) fn pick(section: &mut Section<'_>) -> Self {
                Self { $($field: section.read(stringify!($field), $read)),+ }
            }

            pub(super) fn apply(&self, to: &mut $target) {
                $(if let Some(value) = &self.$field {
                    to.$field = value.clone();
                })+
            }

            /// A layer that says everything.
            pub(super) fn whole(of: &$target) -> Self {
                Self { $($field: Some(of.$field.clone())),+ }
            }

            pub(super) fn said(&self, path: &str, out: &mut Vec<$crate::spec::layer::Setting>) {
                use $crate::spec::values::Yaml as _;
                $(if let Some(value) = &self.$field {
                    out.push((format!("{path}{}", stringify!($field)), value.yaml()));
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
