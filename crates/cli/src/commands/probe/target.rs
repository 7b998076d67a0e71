//! Who is probed: a configured provider, a built-in spec, or a bare URL; and which of its models.

use std::time::Duration;

use anyhow::{Context, anyhow};
use probe::{Answer, nearest, no_list};
use providers::Library;
use serde_json::Value;
use server::config::{self, ProviderConfig, Secret};
use server::probe::Client;
use wire::json::without_mark;
use wire::visible::visible;

use crate::args::{Flags, ProbeArgs, variable};
use crate::output;

/// How long the list of models may take.
const LISTING: Duration = Duration::from_secs(20);
/// What a bare URL is until more is known.
const ROOT: &str = "openai-compatible";
/// What it is if it only answers that API.
const MESSAGES: &str = "messages-compatible";

pub(super) struct Target {
    pub(super) config: ProviderConfig,
    pub(super) model: String,
    /// The variable that held the key, if one was named.
    pub(super) key_env: Option<String>,
    /// A bare URL of which nothing is known, and its key.
    unknown: Option<(String, Option<Secret>)>,
}

impl Target {
    pub(super) async fn find(flags: &Flags, args: &ProbeArgs) -> anyhow::Result<Self> {
        let key = args.api_key_env.as_deref().map(key).transpose()?;
        let (mut listed, mut unknown) = (None, None);
        let config = match args.target.as_deref() {
            Some(url) if url.contains("://") => {
                let bare = ad_hoc(ROOT, Some(url), key.clone())?;
                let models = models(&bare, args.timeout).await?;
                if let Some(why) = no_list(&models).filter(|_| args.model.is_some()) {
                    output::tell(&format!("note: its models cannot be listed: {}\n", visible(&why)));
                }
                let spec = nearest(Library::BUILTIN, url, &models.body);
                listed = Some(models);
                unknown = (spec == ROOT).then(|| (url.to_owned(), key.clone()));
                let mut config = ad_hoc(spec, Some(url), key)?;
                url.trim_end_matches('/').clone_into(&mut config.name);
                config
            }
            name => configured(flags, name, key)?,
        };
        // What the entry itself lists is what it is for; what it has from its spec is not.
        let listed_by_entry = config.models.first().filter(|_| config.models != config.provider.models);
        let own = listed_by_entry.or(config.provider.default_model.as_ref()).or(config.models.first()).cloned();
        let own = if listed.is_some() { None } else { own };
        let model = match args.model.clone().or(own) {
            Some(model) => model,
            None => {
                let models = match listed {
                    Some(models) => models,
                    None => models(&config, args.timeout).await?,
                };
                first(&models).map_err(|why| anyhow!("its models cannot be listed ({why}): name one with --model"))?
            }
        };
        Ok(Self { config, model, key_env: args.api_key_env.clone(), unknown })
    }

    /// A bare URL that may be a Messages API's, as that; None for what is known to be something.
    pub(super) fn by_messages(&self) -> anyhow::Result<Option<Self>> {
        let Some((url, key)) = &self.unknown else { return Ok(None) };
        // Its path begins with the version.
        let url = url.trim_end_matches('/');
        let base = url.strip_suffix("/v1").unwrap_or(url);
        let mut config = ad_hoc(MESSAGES, Some(base), key.clone())?;
        config.name.clone_from(&self.config.name);
        Ok(Some(Self { config, model: self.model.clone(), key_env: self.key_env.clone(), unknown: None }))
    }

    /// As the user called it.
    pub(super) fn name(&self) -> &str {
        &self.config.name
    }
}

fn key(name: &str) -> anyhow::Result<Secret> {
    let key = variable(name).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    key.map(Secret::new).with_context(|| format!("the environment variable {name} is not set"))
}

/// A provider by name: that of the configuration first, then the built-in spec.
fn configured(flags: &Flags, name: Option<&str>, key: Option<Secret>) -> anyhow::Result<ProviderConfig> {
    let config = flags.load()?;
    let name = name.unwrap_or(&config.default_provider);
    if let Some(found) = config.provider(name) {
        let mut found = found.clone();
        if let Some(key) = key {
            found.api_keys = vec![key];
        }
        return Ok(found);
    }
    if Library::BUILTIN.contains(name) {
        return ad_hoc(name, None, key);
    }
    let configured: Vec<&str> = config.providers.iter().map(|provider| provider.name.as_str()).collect();
    let specs: Vec<&str> = Library::BUILTIN.names().collect();
    let (configured, specs) = (configured.join(", "), specs.join(", "));
    Err(anyhow!("there is no provider `{name}` (configured: {configured}; specs: {specs}); a URL begins with http"))
}

fn ad_hoc(spec: &str, url: Option<&str>, key: Option<Secret>) -> anyhow::Result<ProviderConfig> {
    config::ad_hoc(spec, url, key, &variable).map_err(|message| anyhow!(message))
}

async fn models(config: &ProviderConfig, most: Duration) -> anyhow::Result<Answer> {
    let most = LISTING.min(most);
    let mut client = Client::new(config, most, most, |_| {})?;
    client.models().await.map_err(|message| anyhow!(message))
}

/// The first model that is listed, or why there is none.
fn first(answer: &Answer) -> Result<String, String> {
    if let Some(why) = no_list(answer) {
        return Err(why);
    }
    let models: Value = serde_json::from_slice(without_mark(&answer.body)).unwrap_or_default();
    let name = models["data"][0]["id"].as_str();
    name.map(str::to_owned).ok_or_else(|| "its list has no names".to_owned())
}
