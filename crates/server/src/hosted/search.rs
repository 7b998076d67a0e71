//! `web_search` of one response: the operator's search service is asked, pages are opened and looked through.

use std::sync::Arc;

use bridge::{HostedEnd, SearchFunctions, ToolKind};
use wire::responses::WebSearchTool;

use super::{HostedOutput, Running};
use crate::error::ApiError;
use crate::request::RequestContext;

/// The search of one response, with the pages that it has opened.
#[derive(Debug, Clone)]
pub(crate) struct WebSearch {
    functions: SearchFunctions,
    _state: Arc<()>,
}

impl WebSearch {
    /// The search that this tool asks for; the number is its place in `tools`. None where the operator has none.
    /// `with_sources`: the client wants `web_search_call.action.sources`.
    pub(crate) fn of(
        _index: usize,
        _tool: &WebSearchTool<'_>,
        _with_sources: bool,
        _context: &RequestContext,
    ) -> Result<Option<Self>, ApiError> {
        Ok(None)
    }

    /// What the model is offered.
    pub(crate) const fn functions(&self) -> SearchFunctions {
        self.functions
    }

    /// The conversation has this text in it: the model may open the addresses that it names.
    pub(crate) fn shown(&self, _text: &str) {}

    /// Runs one of the three functions. `arguments` as the model wrote them. Whatever goes wrong is for the model to read.
    pub(crate) fn call(&self, _function: ToolKind, _arguments: &str) -> Running<HostedOutput> {
        let end = HostedEnd::NotSearched { action: "{}".to_owned() };
        let text = "There is no search.".to_owned();
        Box::pin(async move { HostedOutput { end, text, images: Vec::new(), sources: Vec::new() } })
    }
}
