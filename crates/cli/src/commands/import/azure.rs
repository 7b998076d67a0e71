//! Where Azure's servers are, and how each is asked: deployments of OpenAI's models below their names, and what Foundry
//! (`azure_ai/`) has of others by its inference API, or of Claude by the Messages API.

use providers::Wire;
use providers::yaml::Node;

use super::deployment::{Provider, tidy};
use super::notes::Notes;
use super::source::Text;
use super::vendors::Vendor;

/// Where deployments were reached before Azure's newer address.
const DEPLOYMENTS: &str = "/openai/deployments/{model}/chat/completions";
const VERSION: &str = "api-version";
/// What is used where none is said.
const OF_DEPLOYMENTS: &str = "2024-10-21";
const OF_INFERENCE: &str = "2024-05-01-preview";
/// Hosts that take a key as `api-key`. Others, of one model each, take a bearer.
const FOUNDRY: &str = ".services.ai.azure.com";
const OPENAI: &str = ".openai.azure.com";
/// Where Foundry has its two APIs.
const MODELS: &str = "/models";
const CLAUDE: &str = "/anthropic";

/// Whether addresses of this vendor's are Azure's.
pub(super) fn is_azure(vendor: &Vendor) -> bool {
    vendor.prefix == "azure" || vendor.prefix == "azure_ai"
}

/// Whether LiteLLM asks for this model of `azure_ai/` as it asks for one of `azure/`.
pub(super) fn is_openai(model: &str) -> bool {
    let numbered = model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    numbered || model.starts_with("chatgpt-") || (model.starts_with("gpt-") && !model.starts_with("gpt-oss"))
}

/// Without the way that LiteLLM takes to it.
pub(super) fn routed(model: &str) -> &str {
    ["model_router/", "model-router/"].iter().find_map(|way| model.strip_prefix(way)).unwrap_or(model)
}

/// What becomes of an address, and of what is said beside it.
pub(super) struct Site<'a> {
    pub(super) provider: &'a mut Provider,
    pub(super) vendor: &'a Vendor,
    pub(super) version: Option<Text>,
    pub(super) entry: &'a Node,
    pub(super) notes: &'a mut Notes,
}

impl Site<'_> {
    /// The base URL, with what comes after it. What else such a server needs is put into the provider.
    pub(super) fn place(mut self, given: Text) -> (Text, &'static str) {
        let url = match &given {
            Text::Literal(url) => self.without_query(url),
            Text::Variable(name) => {
                if self.vendor.prefix == "azure_ai" {
                    let taken = "is taken for https://NAME.services.ai.azure.com, without a path";
                    let note = format!("{name} {taken}: for another host, correct `spec` and `endpoint`");
                    self.notes.add(self.entry, note);
                }
                String::new()
            }
        };
        let (url, end) = match self.vendor.spec {
            "anthropic" => self.of_claude(&url),
            "azure" => self.of_deployments(&url),
            _ => self.of_inference(&url),
        };
        self.provider.query.extend(self.version.map(|version| (VERSION.to_owned(), version)));
        let given = if matches!(given, Text::Literal(_)) { Text::Literal(url.to_owned()) } else { given };
        (given, end)
    }

    /// What is after a question mark is no part of a base URL. A version there comes first, as in LiteLLM.
    fn without_query(&mut self, whole: &str) -> String {
        let (url, query) = whole.split_once('?').unwrap_or((whole, ""));
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let value = Text::Literal(value.to_owned());
            if name == VERSION {
                self.version = Some(value);
            } else {
                self.provider.query.push((name.to_owned(), value));
            }
        }
        url.trim_end_matches('/').to_owned()
    }

    fn version_is_known(&mut self, usual: &str) {
        if self.version.is_none() {
            self.notes.add(self.entry, format!("there is no api_version: {usual} is used"));
            self.version = Some(Text::Literal(usual.to_owned()));
        }
    }

    fn of_claude<'u>(&mut self, url: &'u str) -> (&'u str, &'static str) {
        if self.version.take().is_some() {
            self.notes.add(self.entry, "`api_version` is left out: the Messages API has none");
        }
        let to = url.find(CLAUDE).and_then(|at| url.get(..at + CLAUDE.len()));
        (to.unwrap_or_else(|| tidy(url, Wire::Messages)), if to.is_some() { "" } else { CLAUDE })
    }

    fn of_deployments<'u>(&mut self, url: &'u str) -> (&'u str, &'static str) {
        let url = tidy(url, Wire::Chat);
        if url.contains("/openai/v1") {
            self.version = None;
            return (url, "");
        }
        self.provider.path = Some(DEPLOYMENTS);
        // There is no Responses API at that address.
        self.provider.over.push(("wire", "chat"));
        self.version_is_known(OF_DEPLOYMENTS);
        let url = url.find("/openai/deployments/").and_then(|at| url.get(..at)).unwrap_or(url);
        (if self.vendor.prefix == "azure_ai" { url.trim_end_matches(MODELS) } else { url }, "")
    }

    fn of_inference<'u>(&mut self, url: &'u str) -> (&'u str, &'static str) {
        let (url, host) = (tidy(url, Wire::Chat), host(url));
        let is_foundry = url.is_empty() || host.ends_with(FOUNDRY);
        if is_foundry || host.ends_with(OPENAI) {
            self.provider.over.push(("auth", "api-key-header"));
        }
        if !is_foundry || url.contains("/openai/") {
            return (url, "");
        }
        self.version_is_known(OF_INFERENCE);
        (url, if url.ends_with(MODELS) { "" } else { MODELS })
    }
}

/// Of a URL, without a port.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    authority.split(':').next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_openai_are_known_by_their_names() {
        for (model, expected) in [
            ("gpt-4o", true),
            ("o3-mini", true),
            ("chatgpt-4o-latest", true),
            ("gpt-oss-120b", false),
            ("Phi-4", false),
            ("olmo-2", false),
        ] {
            assert_eq!(is_openai(model), expected, "{model}");
        }
    }

    #[test]
    fn a_host_is_without_port_and_case() {
        for (url, expected) in [
            ("https://Foo.Services.ai.azure.com/models", "foo.services.ai.azure.com"),
            ("https://a.b:8443", "a.b"),
            ("a.b/c", "a.b"),
            ("", ""),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
