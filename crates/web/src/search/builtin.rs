//! The specs that are part of the binary: `specs/search/*.yaml` at the root of the workspace.

macro_rules! embed {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../specs/search/", $name, ".yaml")))),+]
    };
}

/// By name, each as YAML text.
pub(super) const SPECS: &[(&str, &str)] =
    embed!["searxng", "brave", "tavily", "exa", "serper", "perplexity", "firecrawl", "jina", "zhipu", "mock"];
