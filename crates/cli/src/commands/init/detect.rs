//! What is there already: keys in the environment, and model servers on this machine.

use std::time::Duration;

use futures_util::future::join_all;
use probe::nearest;
use providers::{Auth, Library, Provider, TokenCommand, Wire, resolve_named};
use serde_json::Value;
use server::checkup::{self, Checkup, KeyTrial};
use server::config::{self, ProviderConfig, Secret};
use server::peer::Peer;

use crate::args::variable;

/// Where local servers are, unless somebody has moved them: the specs of these know.
const LOCAL: &[&str] = &["ollama", "lmstudio", "llamacpp", "vllm", "sglang"];
/// On one's own machine who is there answers at once.
const LOOK: Duration = Duration::from_millis(1500);
/// How long a provider may take to list its models.
pub(super) const ANSWER: Duration = Duration::from_secs(10);

/// A provider that can be chosen.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) spec: &'static str,
    pub(super) provider: Provider,
    pub(super) found: Option<Found>,
}

/// Why it is offered first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// The variable that holds its key.
    Key(String),
    /// It answers, and lists these.
    Server { url: String, models: Vec<String> },
}

impl Known {
    /// In the words of the list.
    pub(super) fn about(&self) -> String {
        let gaps = self.provider.address(&variable).err().unwrap_or_default();
        let open: Vec<&str> = gaps.iter().filter_map(|gap| gap.variables.first()).map(String::as_str).collect();
        let and = if open.is_empty() { String::new() } else { format!(" and {}", open.join(", ")) };
        match (&self.found, self.provider.key_env.first()) {
            (Some(Found::Key(variable)), _) => format!("key in {variable}"),
            (Some(Found::Server { url, models }), _) => {
                let count = models.len();
                format!("answers at {url} with {count} model{}", if count == 1 { "" } else { "s" })
            }
            (None, Some(variable)) => format!("needs a key ({variable}){and}"),
            (None, None) if self.provider.token.is_some() => {
                let program = self.provider.token.as_ref().map(TokenCommand::program).unwrap_or_default();
                format!("needs {program}{and}")
            }
            (None, None) if self.provider.base_url.is_none() => "any other server: asks for its address".to_owned(),
            (None, None) => "on this machine".to_owned(),
        }
    }

    /// The variable that should hold its key; None: at this address it needs none.
    pub(super) fn key_variable(&self, base_url: Option<&str>) -> Option<String> {
        if self.provider.auth == Auth::None {
            return None;
        }
        let private = base_url.is_some_and(|url| {
            config::ad_hoc("openai-compatible", Some(url), None, &|_| None).is_ok_and(|config| config.is_private())
        });
        let made = || {
            let public = base_url.is_some() && !private;
            public.then(|| format!("{}_API_KEY", self.spec.replace('-', "_").to_uppercase()))
        };
        let own = self.provider.key_variable(&variable).map(str::to_owned);
        own.or_else(made)
    }
}

/// All that can be chosen, those first that can be used at once.
pub(super) async fn all() -> Vec<Known> {
    let urls: Vec<String> = LOCAL.iter().filter_map(|spec| known(spec)?.provider.base_url).collect();
    let servers = local(&urls).await;
    let mut all: Vec<Known> = Library::BUILTIN.names().filter_map(known).collect();
    one_for_each_key(&mut all);
    for (spec, found) in servers {
        if let Some(known) = all.iter_mut().find(|known| known.spec == spec && known.found.is_none()) {
            known.found = Some(found);
        }
    }
    all.sort_by_key(|known| known.found.is_none());
    all
}

/// Of specs that share a key (regions and plans of one vendor), the first has it.
fn one_for_each_key(all: &mut [Known]) {
    let mut taken: Vec<Found> = Vec::new();
    for known in all {
        match known.found.take() {
            Some(found) if !taken.contains(&found) => {
                taken.push(found.clone());
                known.found = Some(found);
            }
            _ => {}
        }
    }
}

/// None for what nobody chooses.
fn known(spec: &str) -> Option<Known> {
    let spec = Library::BUILTIN.names().find(|name| *name == spec)?;
    let provider = resolve_named(Library::BUILTIN, spec, &variable).ok()?;
    if provider.wire == Wire::Demo {
        return None;
    }
    let has = |name: &&str| matches!(provider.address(&variable), Ok(Some(_))) && is_set(name);
    let found = provider
        .key_variable(&variable)
        .filter(|_| provider.automatic)
        .filter(has)
        .map(|name| Found::Key(name.to_owned()));
    Some(Known { spec, provider, found })
}

/// Whether a provider's key is there.
pub(super) fn is_set(name: &str) -> bool {
    config::for_provider(&variable, name).is_some()
}

/// Who answers at these addresses, and which spec fits. Several kinds of server use the same port, so what a list of models
/// says of itself counts more than where it was found.
async fn local(urls: &[String]) -> Vec<(&'static str, Found)> {
    let ask = |url: &String| {
        let url = url.clone();
        async move {
            let config = config::ad_hoc("openai-compatible", Some(&url), None, &|_| None).ok()?;
            let answer = checkup::check(&config, LOOK).await.ok()?;
            if answer.status != 200 || answer.models.is_empty() || is_godex(&url).await {
                return None;
            }
            let by_owner = nearest(Library::BUILTIN, &url, &answer.body);
            let by_port =
                || LOCAL.iter().find(|spec| known(spec).is_some_and(|k| k.provider.base_url.as_ref() == Some(&url)));
            let spec = if by_owner == "openai-compatible" { by_port().copied()? } else { by_owner };
            Some((spec, Found::Server { url, models: answer.models }))
        }
    };
    join_all(urls.iter().map(ask)).await.into_iter().flatten().collect()
}

/// A godex that asks itself would never end.
async fn is_godex(base_url: &str) -> bool {
    let root = base_url.strip_suffix("/v1").unwrap_or(base_url);
    let Ok(peer) = Peer::new(root, None, &[], &variable) else { return false };
    let health = peer.get("/health", LOOK).await;
    let health: Value = health.ok().and_then(|answer| serde_json::from_slice(&answer.body).ok()).unwrap_or_default();
    health["name"] == "godex"
}

/// Asks a provider for its models, and says what that says of the key.
pub(super) async fn check(
    spec: &str,
    base_url: Option<&str>,
    key: Option<Secret>,
) -> Result<(Checkup, KeyTrial), String> {
    let config: ProviderConfig = config::ad_hoc(spec, base_url, key, &variable)?;
    let answer = checkup::check(&config, ANSWER).await?;
    let key = checkup::try_key(&config, &answer, ANSWER).await;
    Ok((answer, key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testkit::{Script, Upstream};

    use super::*;

    #[tokio::test]
    async fn servers_are_known_by_what_they_say_of_themselves() {
        let list = |owner: &str| json!({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner}]});
        let vllm = Upstream::start(Script::json(200, &list("vllm"))).await.unwrap();
        let other = Upstream::start(Script::json(200, &list("somebody"))).await.unwrap();
        let urls = [format!("{}/v1", vllm.url()), format!("{}/v1", other.url()), "http://127.0.0.1:9/v1".to_owned()];
        let found = local(&urls).await;
        let server = Found::Server { url: urls[0].clone(), models: vec!["m".to_owned()] };
        assert_eq!(found, [("vllm", server)]);
    }

    #[test]
    fn every_spec_can_be_chosen_and_says_what_it_needs() {
        let all: Vec<Known> = Library::BUILTIN.names().filter_map(known).collect();
        assert!(all.len() > 20 && all.iter().all(|known| !known.about().is_empty() && known.spec != "demo"));
        assert_eq!(all.iter().filter(|known| LOCAL.contains(&known.spec)).count(), LOCAL.len());
    }
}
