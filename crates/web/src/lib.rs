//! The web, without touching it: search services as data (what a request to one is, what its answer says), and pages as
//! text that a model can read.
#![forbid(unsafe_code)]

pub mod page;
pub mod search;
