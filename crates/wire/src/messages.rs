//! The Messages API: what we send (closed).

mod block;
mod request;

pub use block::{Block, Content, Media, Message, Role};
pub use request::{CacheMark, Function, Request, Tool};
