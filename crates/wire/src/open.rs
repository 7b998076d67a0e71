//! Two macros for inbound shapes. serde cannot derive them: what is unknown must survive as it was written,
//! and an error must name the path to the value.

use crate::json::{Cursor, FromRaw, Invalid, InvalidCode, Kind, Raw, Text};

/// The members of an object that its type does not name, in wire order, byte for byte.
pub type Extra<'a> = Vec<(Text<'a>, Raw<'a>)>;

/// An optional member: `null` is the same as absent, as on OpenAI's API.
pub(crate) fn optional<'a, T: FromRaw<'a>>(raw: Raw<'a>, name: &str) -> Result<Option<T>, Invalid> {
    if raw.is_null() { Ok(None) } else { T::from_raw(raw).map(Some).map_err(|invalid| invalid.at(name)) }
}

/// The same, read in place.
pub(crate) fn optional_at<'a, T: FromRaw<'a>>(cursor: &mut Cursor<'a>, name: &str) -> Result<Option<T>, Invalid> {
    if cursor.kind() == Kind::Null {
        cursor.raw();
        return Ok(None);
    }
    T::from_cursor(cursor).map(Some).map_err(|invalid| invalid.at(name))
}

/// The tag of the object at the cursor: its first `type`, which nearly always is its first member.
pub(crate) fn tag(mut cursor: Cursor<'_>) -> Result<Option<Text<'_>>, Invalid> {
    cursor.enter();
    while let Some(key) = cursor.key() {
        if key.is("type") {
            return optional_at(&mut cursor, "type");
        }
        cursor.raw();
    }
    Ok(None)
}

/// What is passed on as it came must be one thing to everybody: some readers take the first `type`, others the last.
pub(crate) fn repeated_tag() -> Invalid {
    Invalid::rule(InvalidCode::InvalidValue, "it is given more than once.").at("type")
}

/// An object of a kind that is not known, if it is of one kind only.
pub(crate) fn of_one_kind(raw: Raw<'_>) -> Result<Raw<'_>, Invalid> {
    let tags = raw.fields().filter(|(key, _)| key.is("type")).count();
    if tags > 1 { Err(repeated_tag()) } else { Ok(raw) }
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
                Self::from_cursor(&mut $crate::json::Cursor::new(raw))
            }

            fn from_cursor(cursor: &mut $crate::json::Cursor<'a>) -> Result<Self, $crate::json::Invalid> {
                if cursor.kind() != $crate::json::Kind::Object {
                    return Err($crate::json::Invalid::expected("an object", cursor.raw()));
                }
                let (mut out, mut has_tag) = (Self::default(), false);
                cursor.enter();
                while let Some(key) = cursor.key() {
                    match &*key.decode() {
                        // The tag: `tagged!` has read it.
                        "type" if has_tag => return Err($crate::open::repeated_tag()),
                        "type" => {
                            has_tag = true;
                            cursor.raw();
                        }
                        $(stringify!($field) => {
                            out.$field = $crate::open::optional_at(cursor, stringify!($field))?;
                        })*
                        _ => out.extra.push((key, cursor.raw())),
                    }
                }
                Ok(out)
            }
        }
    };
}

/// A union told apart by `type`, wherever it is in the object; unknown kinds stay whole.
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
                Self::from_cursor(&mut $crate::json::Cursor::new(raw))
            }

            fn from_cursor(cursor: &mut $crate::json::Cursor<'a>) -> Result<Self, $crate::json::Invalid> {
                if cursor.kind() != $crate::json::Kind::Object {
                    return Err($crate::json::Invalid::expected("an object", cursor.raw()));
                }
                let kind = $crate::open::tag(cursor.clone())?;
                let name = kind.map(|kind| kind.decode());
                let untagged: fn($crate::json::Raw<'_>) -> &'static str = $untagged;
                match name.as_deref().unwrap_or_else(|| untagged(cursor.clone().raw())) {
                    $($($tag)|+ => $inner::from_cursor(cursor).map(Self::$variant),)*
                    _ => Ok(Self::Other { kind, raw: $crate::open::of_one_kind(cursor.raw())? }),
                }
            }
        }
    };
}

pub(crate) use {open_struct, tagged};
