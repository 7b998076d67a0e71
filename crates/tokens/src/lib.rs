//! How many tokens a chat request has: counted with the model's own tokenizer where it is known, or estimated from the
//! text and from what the provider said of earlier requests. No I/O, no clock.
//!
//! A body is walked as text and never decoded as a whole. What is counted is what a model is shown: messages, tools and
//! formats, with the tokens that the chat form puts around them; not the parameters.
#![forbid(unsafe_code)]

mod body;
#[cfg(feature = "tokenizer")]
mod encode;
mod estimate;
mod image;
mod learned;
#[cfg(feature = "tokenizer")]
mod merge;
#[cfg(feature = "tokenizer")]
mod split;
#[cfg(feature = "tokenizer")]
mod typescript;
#[cfg(feature = "tokenizer")]
mod vocabulary;
mod window;

pub use learned::Learned;
pub use window::window_in;

/// A tokenizer that is known, with the form in which its models are shown a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    O200k,
    /// The same words, in the open form of the gpt-oss models.
    O200kHarmony,
    Cl100k,
}

/// How many tokens a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub tokens: u64,
    /// Counted with the model's tokenizer, all of it: no part had to be estimated.
    pub exact: bool,
}

/// Counts with that tokenizer. None where this build has none.
pub fn count(encoding: Encoding, body: &[u8]) -> Option<Count> {
    #[cfg(feature = "tokenizer")]
    return encode::count(encoding, body);
    #[cfg(not(feature = "tokenizer"))]
    {
        let _ = (encoding, body);
        None
    }
}

/// About how many tokens the request has for a model of which nothing is known. Cheap: one pass over the text.
pub fn estimate(body: &[u8]) -> u64 {
    estimate::body(body)
}
