//! A client of MCP servers, of both eras of the protocol: which tools they have, and calls of them. It opens no connection
//! itself: HTTP goes through whoever it is given, and a process that speaks over its standard streams is started by
//! somebody else. What a server sends is bounded in size and time, and is never trusted.
#![forbid(unsafe_code)]

mod client;
mod failure;
mod http;
mod lines;
mod result;

pub use client::{CallTimes, Client, Endpoint, Opening, Tool, ToolList};
pub use failure::Failure;
pub use http::{ByteStream, HttpClient, NotSent, Sending};
pub use result::CallResult;

/// The most of one answer, or of one event of it, that is read.
const LARGEST: usize = 8 << 20;
