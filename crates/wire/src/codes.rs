//! Tables of codes: one line has the name in the program, the text that is sent, when it is sent and what to do
//! about it. The program reads the name and the text, the documentation is made of the rest; a code without a
//! description does not compile.

/// Declares an enum of codes. The comment of a code says when it is sent, the text after `=>` what to do then.
#[macro_export]
macro_rules! codes {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[doc = $when:literal])+ $code:ident = $text:literal => $remedy:literal;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[doc = $when])+ $code,)+
        }

        impl $name {
            /// Every one, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$code),+];

            /// The text that is sent: stable.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => $text,)+ }
            }

            /// When it is sent.
            pub const fn when(self) -> &'static str {
                match self { $(Self::$code => concat!($($when),+).trim_ascii(),)+ }
            }

            /// What to do about it.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$code => $remedy,)+ }
            }
        }
    };
}
