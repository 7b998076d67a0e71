//! Pages of the web, fetched for a model: only from public addresses, only so much, only text.

use crate::outbound::Outbound;

/// A page that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// Where it was in the end.
    pub(crate) url: String,
    pub(crate) title: String,
    /// As Markdown.
    pub(crate) text: String,
    pub(crate) links: Vec<String>,
}

/// Fetches a page. `allowed`: the only domains that it may be in, and be redirected to.
pub(crate) async fn open(_outbound: &Outbound, _url: &str, _allowed: &[String]) -> Result<Page, String> {
    Err("pages cannot be opened yet".to_owned())
}

/// What a model is shown of it, from this character on, and how it asks for more.
pub(crate) fn part(page: &Page, _start: usize) -> String {
    page.text.clone()
}

/// The passages that have this text.
pub(crate) fn find(_page: &Page, _pattern: &str) -> String {
    String::new()
}
