//! One file per command. Each prints to stdout what it was asked for and returns an error for stderr.

pub(crate) mod codex;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod env;
pub(crate) mod explain;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod page;
pub(crate) mod probe;
pub(crate) mod providers;
pub(crate) mod reload;
pub(crate) mod replay;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod store;
pub(crate) mod tenants;
mod terms;
pub(crate) mod traces;
pub(crate) mod usage;
