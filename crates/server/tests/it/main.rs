//! The whole server over real sockets, in front of a scripted provider.
#![forbid(unsafe_code)]

#[cfg(test)]
mod access;
#[cfg(test)]
mod account;
#[cfg(test)]
mod admin;
#[cfg(test)]
mod affinity;
#[cfg(test)]
mod any_json;
#[cfg(test)]
mod background;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bodies;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod codex;
#[cfg(test)]
mod compaction;
#[cfg(test)]
mod costs;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod disconnects;
#[cfg(test)]
mod drains;
#[cfg(test)]
mod endless;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod explain;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod files;
#[cfg(test)]
mod flap;
#[cfg(test)]
mod format;
#[cfg(feature = "grammar")]
#[cfg(test)]
mod grammar;
#[cfg(test)]
mod happy;
#[cfg(test)]
mod hidden;
#[cfg(test)]
mod hosted;
#[cfg(test)]
mod images;
#[cfg(test)]
mod lessons;
#[cfg(test)]
mod limits;
mod loris;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod models;
#[cfg(test)]
mod native;
#[cfg(test)]
mod otel;
#[cfg(test)]
mod page;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod resilience;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod search;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod socket;
#[cfg(test)]
mod specs;
#[cfg(test)]
mod stalls;
#[cfg(test)]
mod stops;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod token_command;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod traces;
#[cfg(test)]
mod transport;
#[cfg(test)]
mod trouble;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod websocket;
