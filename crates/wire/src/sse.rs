//! Server-sent events, without I/O: a decoder with hard caps, and the two frames that we write ourselves.

mod decode;

pub use decode::{Decoder, Event, TooLarge};

/// The end of every stream.
pub const DONE: &[u8] = b"data: [DONE]\n\n";
