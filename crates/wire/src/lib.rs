//! What goes over the network: the types of both APIs, server-sent events, ids.
//!
//! Inbound types are open: a field, item, tool or number that nobody here has heard of survives byte for
//! byte. Outbound types are closed. Nothing in this crate decides anything and nothing does I/O.
#![forbid(unsafe_code)]

pub mod chat;
mod codes;
pub mod id;
pub mod json;
pub mod message_event;
pub mod messages;
mod open;
pub mod responses;
pub mod sse;
pub mod visible;

pub use open::Extra;
