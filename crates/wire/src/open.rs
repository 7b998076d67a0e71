//! Two macros for inbound shapes. serde cannot derive them: what is unknown must survive as it was written,
//! and an error must name the path to the value.

use crate::json::{FromRaw, Invalid, Raw, Text};

/// The members of an object that its type does not name, in wire order, byte for byte.
pub type Extra<'a> = Vec<(Text<'a>, Raw<'a>)>;

/// An optional member: `null` is the same as absent, as on OpenAI's API.
pub(crate) fn optional<'a, T: FromRaw<'a>>(raw: Raw<'a>, name: &str) -> Result<Option<T>, Invalid> {
    if raw.is_null() { Ok(None) } else { T::from_raw(raw).map(Some).map_err(|invalid| invalid.at(name)) }
}

/// An object with known optional members and whatever else came with it.
macro_rules! open_struct {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fmeta:meta])* $field:ident : $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name<'a> {
            $($(#[$fmeta])* pub $field: Option<$type>,)*
            /// What this type does not name.
            pub extra: $crate::open::Extra<'a>,
        }

        impl<'a> $crate::json::FromRaw<'a> for $name<'a> {
            fn from_raw(raw: $crate::json::Raw<'a>) -> Result<Self, $crate::json::Invalid> {
                let $crate::json::Object(raw) = $crate::json::Object::from_raw(raw)?;
                let mut out = Self::default();
                for (key, value) in raw.fields() {
                    match &*key.decode() {
                        // The tag: `tagged!` has read it.
                        "type" => {}
                        $(stringify!($field) => {
                            out.$field = $crate::open::optional(value, stringify!($field))?;
                        })*
                        _ => out.extra.push((key, value)),
                    }
                }
                Ok(out)
            }
        }
    };
}

/// A union told apart by `type`, wherever it stands in the object; unknown kinds stay whole.
macro_rules! tagged {
    (
        $(#[$meta:meta])* pub enum $name:ident { $($variant:ident($inner:ident) = $($tag:literal)|+),* $(,)? }
        untagged: $untagged:expr
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name<'a> {
            $($variant($inner<'a>),)*
            /// A kind that is not known here, whole.
            Other { kind: Option<$crate::json::Text<'a>>, raw: $crate::json::Raw<'a> },
        }

        impl $name<'_> {
            /// The tags known here.
            pub const KINDS: &'static [&'static str] = &[$($($tag),+),*];
        }

        impl<'a> $crate::json::FromRaw<'a> for $name<'a> {
            fn from_raw(raw: $crate::json::Raw<'a>) -> Result<Self, $crate::json::Invalid> {
                let $crate::json::Object(raw) = $crate::json::Object::from_raw(raw)?;
                let kind: Option<$crate::json::Text<'a>> = match raw.get("type") {
                    Some(tag) => $crate::open::optional(tag, "type")?,
                    None => None,
                };
                let name = kind.map(|kind| kind.decode());
                let untagged: fn($crate::json::Raw<'_>) -> &'static str = $untagged;
                match name.as_deref().unwrap_or_else(|| untagged(raw)) {
                    $($($tag)|+ => $inner::from_raw(raw).map(Self::$variant),)*
                    _ => Ok(Self::Other { kind, raw }),
                }
            }
        }
    };
}

pub(crate) use {open_struct, tagged};
