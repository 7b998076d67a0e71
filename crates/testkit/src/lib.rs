//! What the tests of every crate share: a scripted upstream on a real socket, a small client, the checker of
//! the event grammar, the published schemas, the golden runner and the recorded exchanges. A dev-dependency
//! only: nothing here is ever part of the binary.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a test tool: it spawns its own servers and measures real time")]

mod client;
mod codex_session;
mod fixtures;
mod forgetful;
pub mod golden;
pub mod grammar;
pub mod mcp;
pub mod messages;
pub mod messages_api;
pub mod pdf;
mod place;
mod pooler;
mod postgres;
mod recordings;
mod schema;
mod script;
mod skip;
pub mod table;
pub mod transcript;
mod upstream;

pub use client::{Answer, Client, Streaming};
pub use codex_session::{Offer, codex_session};
pub use fixtures::{Fixture, fixtures, native_fixtures};
pub use forgetful::forgetful;
pub use mcp::McpServer;
pub use place::{root, shared_files};
pub use pooler::Pooler;
pub use postgres::Postgres;
pub use recordings::{Recorded, Recording, recordings};
pub use schema::Schemas;
pub use script::Script;
pub use skip::skipped;
pub use upstream::{Fate, Received, Upstream};
