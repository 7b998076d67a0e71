//! Tools that godex runs itself: the model's call is not the client's business, its result goes back to the model in another
//! round of the same response. This is what is known of them for one response: the servers and the search that its request
//! names, with the operator's policy over them. In which order they run and are shown is decided by `turn::rounds`.

pub(crate) mod approval;
pub(crate) mod mcp;
pub(crate) mod pages;
pub(crate) mod search;

use std::future::Future;
use std::pin::Pin;

use bridge::{HostedEnd, Source};

/// Something that runs by itself when it is waited for, and is stopped when it is dropped.
pub(crate) type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostedOutput {
    /// How its item ends.
    pub(crate) end: HostedEnd,
    /// What the model is told.
    pub(crate) text: String,
    /// What it is shown beside that, as data URLs.
    pub(crate) images: Vec<String>,
    /// The addresses that it is told: it may cite and open them.
    pub(crate) sources: Vec<Source>,
}
