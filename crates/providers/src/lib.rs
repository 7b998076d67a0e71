//! Provider specs as data: YAML text becomes a [`Provider`] (endpoint, auth, dialect). Also the YAML reader
//! that finds every mistake of a file with its line, and the offline demo model.
//!
//! No I/O: text comes in as `&str`, the environment as a function. Nothing here opens a file or a socket.
#![forbid(unsafe_code)]

pub mod demo;
pub mod yaml;

mod builtin;
mod resolve;
mod show;
mod spec;

pub use builtin::Library;
pub use resolve::{INLINE, resolve_inline, resolve_named};
pub use spec::{
    ApplyPatch, Auth, CatalogRules, DiscoveryRules, Endpoint, HeaderSource, HeaderText, Matches, ModelSpec, Price,
    Provider, SpecKey, SubAgents, Taken, Wire, price_per_call, spec_keys,
};
