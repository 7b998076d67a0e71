//! `web_search` of one response: the operator's search services are asked, pages are opened and looked through. Whatever
//! goes wrong is for the model to read, in words that hold no key and no address of a service.

mod arguments;
mod services;
mod told;
mod wishes;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bridge::{HostedEnd, SearchFunctions, Source, ToolKind};
use futures_util::future::join_all;
use wire::responses::WebSearchTool;

use super::pages::{self, Page};
use super::{HostedOutput, Running};
use crate::config::{Config, WebSearchConfig};
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::shown::{self, Shown};
pub(crate) use services::{Services, searched};
pub(crate) use wishes::Wishes;

/// How long a page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(15);
/// How many pages of one response are kept, for what is looked up in them.
const MOST_PAGES: usize = 8;

/// The search of one response, with the pages that it has opened.
#[derive(Debug, Clone)]
pub(crate) struct WebSearch(Arc<State>);

#[derive(Debug)]
struct State {
    services: Services,
    wishes: Wishes,
    pages: bool,
    only_shown: bool,
    max_calls: Option<u32>,
    with_sources: bool,
    calls: AtomicU32,
    shown: Arc<Mutex<Shown>>,
    /// By what their addresses have in common.
    opened: Mutex<Vec<(String, Arc<Page>)>>,
}

impl WebSearch {
    /// The search that this tool asks for; the number is its place in `tools`. None where the operator has none.
    /// `with_sources`: the client wants `web_search_call.action.sources`.
    pub(crate) fn of(
        index: usize,
        tool: &WebSearchTool<'_>,
        with_sources: bool,
        context: &RequestContext,
    ) -> Result<Option<Self>, ApiError> {
        let config = &context.snapshot.config.tools.web_search;
        if config.services.is_empty() {
            return Ok(None);
        }
        let wishes = Wishes::of(tool).map_err(|invalid| invalid.at_index(index).at("tools"))?;
        Ok(Some(Self::new(config, wishes, with_sources, Services::of(context), Arc::default())))
    }

    /// The search of a client that runs its own tools: it has shown so much before.
    pub(crate) fn standalone(wishes: Wishes, shown: Arc<Mutex<Shown>>, context: &RequestContext) -> Option<Self> {
        let config = &context.snapshot.config.tools.web_search;
        let is_there = !config.services.is_empty();
        is_there.then(|| Self::new(config, wishes, false, Services::of(context), shown))
    }

    fn new(
        config: &WebSearchConfig,
        wishes: Wishes,
        with_sources: bool,
        services: Services,
        shown: Arc<Mutex<Shown>>,
    ) -> Self {
        Self(Arc::new(State {
            services,
            pages: config.pages && wishes.pages,
            only_shown: config.only_shown,
            max_calls: config.max_calls,
            wishes,
            with_sources,
            calls: AtomicU32::new(0),
            shown,
            opened: Mutex::default(),
        }))
    }

    /// What the model is offered.
    pub(crate) fn functions(&self) -> SearchFunctions {
        SearchFunctions { pages: self.0.pages }
    }

    /// The conversation has this text in it: the model may open the addresses that it names.
    pub(crate) fn shown(&self, text: &str) {
        if self.0.pages && self.0.only_shown {
            self.0.known().read(text);
        }
    }

    /// Runs one of the three functions. `arguments` as the model wrote them. Whatever goes wrong is for the model to read.
    pub(crate) fn call(&self, function: ToolKind, arguments: &str) -> Running<HostedOutput> {
        let (state, arguments) = (Arc::clone(&self.0), arguments.to_owned());
        Box::pin(async move {
            match function {
                ToolKind::OpenPage => state.open_page(&arguments).await,
                ToolKind::FindInPage => state.find_in_page(&arguments).await,
                _ => state.search(&arguments).await,
            }
        })
    }
}

impl State {
    fn known(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one call more is too many, and what is said then.
    fn beyond(&self) -> Option<String> {
        let most = self.max_calls?;
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        (before >= most).then(|| {
            format!("Skipped: no more than {most} searches may be made for one answer. Answer with what you have.")
        })
    }

    async fn search(&self, arguments: &str) -> HostedOutput {
        let queries = arguments::queries(arguments);
        let action = |found: &[Source]| told::search_action(&queries, self.with_sources.then_some(found));
        if let Some(text) = self.beyond() {
            return failed(action(&[]), text);
        }
        if queries.is_empty() {
            let text = "Nothing was searched: give `queries`, a list of one to four search queries.";
            return failed(action(&[]), text.to_owned());
        }
        let asked = join_all(queries.iter().map(|query| self.services.search(query, &self.wishes))).await;
        let (mut found, mut failures) = (Vec::new(), Vec::new());
        for (query, answer) in queries.iter().zip(asked) {
            match answer {
                Ok(results) => found.push(results),
                Err(failure) => failures.push(format!("The search for \"{query}\" failed: {failure}.")),
            }
        }
        if found.is_empty() {
            return failed(action(&[]), failures.join("\n"));
        }
        let found = searched(found);
        let text = told::results(&queries, &found, &failures, &self.wishes);
        let sources: Vec<Source> =
            found.iter().map(|found| Source { url: found.url.clone(), title: found.title.clone() }).collect();
        for source in &sources {
            self.known().add(&source.url);
        }
        HostedOutput { end: HostedEnd::Searched { action: action(&sources) }, text, images: Vec::new(), sources }
    }

    async fn open_page(&self, arguments: &str) -> HostedOutput {
        let (url, start) = (arguments::url(arguments), arguments::start(arguments));
        let action = told::open_action(&url);
        match self.page(&url).await {
            Ok(page) => {
                let text = told::page(&pages::part(&page, start));
                opened(HostedEnd::Searched { action }, text, &page)
            }
            Err(text) => failed(action, text),
        }
    }

    async fn find_in_page(&self, arguments: &str) -> HostedOutput {
        let (url, pattern) = (arguments::url(arguments), arguments::pattern(arguments));
        let action = told::find_action(&url, &pattern);
        if pattern.trim().is_empty() {
            return failed(action, "Nothing was looked for: give `pattern`, the text to find.".to_owned());
        }
        match self.page(&url).await {
            Ok(page) => {
                let text = told::page(&pages::find(&page, &pattern));
                opened(HostedEnd::Searched { action }, text, &page)
            }
            Err(text) => failed(action, text),
        }
    }

    /// The page, opened once for a response; or why it is not.
    async fn page(&self, url: &str) -> Result<Arc<Page>, String> {
        if let Some(text) = self.beyond() {
            return Err(text);
        }
        if !self.pages {
            return Err("Pages cannot be opened here; search instead.".to_owned());
        }
        let Some(key) = shown::page(url) else {
            return Err("No page was opened: give `url`, an address that begins with https://.".to_owned());
        };
        if !self.wishes.allows(url) {
            return Err("This page was not opened: it is in none of the domains that may be looked at.".to_owned());
        }
        let kept = |(known, page): &(String, Arc<Page>)| (*known == key).then(|| Arc::clone(page));
        if let Some(page) = self.opened.lock().unwrap_or_else(PoisonError::into_inner).iter().find_map(kept) {
            return Ok(page);
        }
        if self.only_shown && !self.known().has(url) {
            return Err(
                "This page was not opened: only addresses that this conversation has shown may be opened, exactly \
                        as they were shown. Search first."
                    .to_owned(),
            );
        }
        let opening = Box::pin(pages::open(self.services.outbound(), url, &self.wishes.domains));
        let page = tokio::time::timeout(PAGE_TIMEOUT, opening).await;
        let page = page.unwrap_or_else(|_| Err("The page could not be opened: it took too long.".to_owned()))?;
        // Where it led to may be no domain that is wanted, or one that is not.
        if !self.wishes.allows(&page.url) {
            return Err("This page was not opened: it leads to a domain that may not be looked at.".to_owned());
        }
        let page = Arc::new(page);
        let mut known = self.known();
        for url in std::iter::once(&page.url).chain(&page.links) {
            known.add(url);
        }
        drop(known);
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.len() >= MOST_PAGES {
            opened.remove(0);
        }
        opened.push((key, Arc::clone(&page)));
        Ok(page)
    }
}

fn opened(end: HostedEnd, text: String, page: &Page) -> HostedOutput {
    let sources = vec![Source { url: page.url.clone(), title: page.title.clone() }];
    HostedOutput { end, text, images: Vec::new(), sources }
}

fn failed(action: String, text: String) -> HostedOutput {
    HostedOutput { end: HostedEnd::NotSearched { action }, text, images: Vec::new(), sources: Vec::new() }
}

/// Searches as a model would, once: for people who want to see whether it works.
///
/// # Errors
/// That there is no service, or what each of them said.
pub async fn search(config: &Config, query: &str) -> Result<Vec<web::search::Found>, String> {
    let config = &config.tools.web_search;
    if config.services.is_empty() {
        return Err("there is no search service: name one in `tools.web_search`".to_owned());
    }
    let services = Services::new(config.services.clone(), Arc::default(), None);
    Ok(searched(vec![services.search(query, &Wishes::default()).await?]))
}

#[cfg(test)]
mod tests;
