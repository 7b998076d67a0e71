//! What a provider lists of its own models: asked for over its connections, with its key, and read as its spec says.
//! Whatever comes back costs only so much: bytes, entries, the length of a name, time. Nothing of it is sent to the
//! provider unless a client asks for a model by its name.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, UNIX_EPOCH};

use http::{StatusCode, header};
use providers::DiscoveryRules;
use tokio::sync::Notify;
use tokio::time::Instant;
use wire::json::{Kind, Raw, Text};

use super::provider::Connections;
use super::{HttpBody, HttpClient, UpstreamClient};

/// The most of an answer that is read, and of the models in it that are taken.
const LARGEST: usize = 4 << 20;
const MOST: usize = 1000;
/// Names of models are shorter.
const LONGEST_NAME: usize = 256;
/// How long it may take to ask.
const PATIENCE: Duration = Duration::from_secs(10);

/// A provider's list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) models: Vec<ListedModel>,
}

/// What it says of one model; None: nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedModel {
    pub(crate) name: String,
    pub(crate) context_window: Option<u64>,
    pub(crate) images: Option<bool>,
}

impl Listing {
    pub(crate) fn find(&self, name: &str) -> Option<&ListedModel> {
        self.models.iter().find(|model| model.name == name)
    }
}

/// Whoever lists a window of fewer tokens does not know it.
const LEAST_WINDOW: u64 = 1024;

/// What is known of a provider's list.
#[derive(Debug, Default)]
pub(crate) struct KnownListing {
    state: RwLock<State>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The last that came.
    listing: Option<Arc<Listing>>,
    /// When to ask again; None: nobody has asked.
    due: Option<Instant>,
    /// Whether the last time of asking failed.
    failed: bool,
}

impl KnownListing {
    pub(crate) fn get(&self) -> Option<Arc<Listing>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).listing.clone()
    }

    /// When to ask (again).
    pub(crate) fn due(&self) -> Option<Instant> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).due
    }

    /// What came of asking. A failure leaves what was known before. Says whether it fails or works as it did not before.
    pub(crate) fn put(&self, listing: Option<Listing>, due: Instant) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.due = Some(due);
        let changed = std::mem::replace(&mut state.failed, listing.is_none()) != listing.is_none();
        state.listing = listing.map(Arc::new).or_else(|| state.listing.take());
        drop(state);
        self.asked.notify_waiters();
        changed
    }

    /// Ready when it has been asked for once.
    pub(crate) async fn was_asked(&self) {
        loop {
            // Made before the look: what happens in between is not missed.
            let asked = self.asked.notified();
            if self.due().is_some() {
                return;
            }
            asked.await;
        }
    }
}

impl Connections {
    /// Asks for the provider's list of models.
    pub(crate) async fn list_models(&self, rules: &DiscoveryRules) -> Result<Listing, String> {
        let (Some(UpstreamClient::Http(client)), Some(path)) = (self.client(), &rules.path) else {
            return Err("it has no list".to_owned());
        };
        let asking = async {
            let list = get(client, path).await?;
            // What holds for the server is worth having, and no more.
            let server = match &rules.server_path {
                Some(path) => get(client, path).await.unwrap_or_default(),
                None => Vec::new(),
            };
            read(&list, &server, rules).ok_or_else(|| "its answer is no list of models".to_owned())
        };
        tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
    }
}

async fn get(client: &HttpClient, path: &str) -> Result<Vec<u8>, String> {
    let response = client.get(path).await.map_err(|failure| failure.shown().into_owned())?;
    if response.status() != StatusCode::OK {
        return Err(format!("it answered {}", response.status().as_u16()));
    }
    whole(response.into_body()).await
}

async fn whole(mut body: HttpBody) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await.map_err(|_| "its answer broke off".to_owned())? {
        if bytes.len() + chunk.len() > LARGEST {
            return Err("its answer is too large".to_owned());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// What a provider answers to the question for its models, refusals included.
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// Its clock, in seconds since 1970.
    pub(crate) date: Option<u64>,
    pub(crate) body: Vec<u8>,
    /// The names in it; none where it is no list.
    pub(crate) models: Vec<String>,
}

/// Asks once, whatever it answers.
pub(crate) async fn ask(client: &HttpClient, rules: &DiscoveryRules) -> Result<Answered, String> {
    let path = rules.path.as_deref().unwrap_or("/models");
    let response = client.get(path).await.map_err(|failure| failure.shown().into_owned())?;
    let status = response.status().as_u16();
    let date =
        response.headers().get(header::DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    let date = date.and_then(|date| Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs()));
    let body = whole(response.into_body()).await?;
    let listing = read(&body, &[], rules).filter(|_| status == 200).unwrap_or_default();
    Ok(Answered { status, date, models: listing.models.into_iter().map(|model| model.name).collect(), body })
}

/// The list, with what the server says of all or of some of its models.
fn read(list: &[u8], server: &[u8], rules: &DiscoveryRules) -> Option<Listing> {
    let document = parse(list)?;
    let server = parse(server);
    let of_server = server.filter(|server| entries(*server, rules).is_none());
    let everywhere = of_server.and_then(|server| number(server, &rules.server_context_window));
    let loaded: Vec<Raw<'_>> = server.and_then(|server| entries(server, rules)).unwrap_or_default();
    let mut models: Vec<ListedModel> = Vec::new();
    let mut names = std::collections::HashSet::new();
    for entry in entries(document, rules)? {
        let Some(name) = name(entry, rules).filter(|_| says(entry, &rules.chat) != Some(false)) else { continue };
        if models.len() == MOST {
            break;
        }
        if !names.insert(name.clone()) {
            continue;
        }
        let of_loaded = || {
            let same = loaded.iter().take(MOST).find(|other| self::name(**other, rules).as_ref() == Some(&name));
            same.and_then(|other| number(*other, &rules.server_context_window))
        };
        let context_window = everywhere.or_else(of_loaded).or_else(|| number(entry, &rules.context_window));
        let context_window = context_window.filter(|window| *window >= LEAST_WINDOW);
        models.push(ListedModel { name, context_window, images: says(entry, &rules.images) });
    }
    Some(Listing { models })
}

fn parse(bytes: &[u8]) -> Option<Raw<'_>> {
    Raw::parse(str::from_utf8(bytes).ok()?).ok()
}

/// The elements of the member that is the list; the whole may be one.
fn entries<'a>(document: Raw<'a>, rules: &DiscoveryRules) -> Option<Vec<Raw<'a>>> {
    let list = |value: &Raw<'a>| value.kind() == Kind::Array;
    let members = rules.list.iter().filter_map(|member| at(document, member));
    let found = Some(document).into_iter().chain(members).find(list)?;
    Some(found.elements().take(8 * MOST).collect())
}

/// What a way of member names, with dots between them, leads to.
fn at<'a>(value: Raw<'a>, way: &str) -> Option<Raw<'a>> {
    way.split('.').try_fold(value, Raw::get)
}

fn name(entry: Raw<'_>, rules: &DiscoveryRules) -> Option<String> {
    let name = rules.name.iter().find_map(|way| at(entry, way)?.text().map(Text::decode))?;
    let name = name.trim();
    let fits = !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(wire::visible::acts) && name != "*";
    fits.then(|| name.to_owned())
}

fn number(entry: Raw<'_>, ways: &[String]) -> Option<u64> {
    let number = |way: &String| at(entry, way)?.as_str().parse().ok();
    ways.iter().filter_map(number).find(|tokens| (1..=1_000_000_000).contains(tokens))
}

/// Whether the first of these members that says something has one of its values, or is one.
fn says(entry: Raw<'_>, members: &[(String, Vec<String>)]) -> Option<bool> {
    members.iter().find_map(|(way, wanted)| has(at(entry, way)?, wanted))
}

/// None: it is of another kind than what is wanted, and no answer to that.
fn has(value: Raw<'_>, wanted: &[String]) -> Option<bool> {
    let is_truth = |word: &str| matches!(word, "true" | "false");
    let is = |text: Text<'_>| wanted.iter().any(|wanted| text.is(wanted));
    let (found, of_truth) = match value.kind() {
        Kind::Bool => (wanted.iter().any(|wanted| value.as_str() == wanted), true),
        Kind::String => value.text().map(|text| (is(text), is_truth(&text.decode())))?,
        Kind::Array => (value.elements().map(Raw::text).collect::<Option<Vec<_>>>()?.into_iter().any(is), false),
        Kind::Null | Kind::Number | Kind::Object => return None,
    };
    (wanted.iter().all(|word| is_truth(word)) == of_truth).then_some(found)
}

#[cfg(test)]
mod tests {
    use providers::{Library, resolve_named};

    use super::*;

    type Listed = (String, Option<u64>, Option<bool>);

    fn listed(spec: &str, list: &str, server: &str) -> Option<Vec<Listed>> {
        let provider = resolve_named(Library::BUILTIN, spec, &|_| None).unwrap();
        let listing = read(list.as_bytes(), server.as_bytes(), &provider.discovery)?;
        Some(listing.models.into_iter().map(|model| (model.name, model.context_window, model.images)).collect())
    }

    /// Each server in its own words, as its documentation has them.
    #[test]
    fn lists_read_as_their_specs_say() {
        let model = |name: &str, window, images| Some(vec![(name.to_owned(), window, images)]);
        let cases = [
            (
                "openai",
                r#"{"object":"list","data":[{"id":"gpt-4.1","object":"model","created":1,"owned_by":"o"}]}"#,
                "",
                model("gpt-4.1", None, None),
            ),
            (
                "vllm",
                r#"{"object":"list","data":[{"id":"Qwen/Qwen3-8B","root":"/m","max_model_len":40960}]}"#,
                "",
                model("Qwen/Qwen3-8B", Some(40_960), None),
            ),
            ("sglang", r#"{"data":[{"id":"m","max_model_len":8192}]}"#, "", model("m", Some(8192), None)),
            (
                "llamacpp",
                r#"{"models":[{"name":"m.gguf","capabilities":["completion"]}],"data":[{"id":"m.gguf","meta":{"n_ctx_train":131072}}]}"#,
                r#"{"default_generation_settings":{"n_ctx":16384},"modalities":{"vision":false}}"#,
                model("m.gguf", Some(16_384), None),
            ),
            (
                "llamacpp",
                r#"{"data":[{"id":"m.gguf","meta":{"n_ctx_train":131072}}]}"#,
                "",
                model("m.gguf", Some(131_072), None),
            ),
            (
                "lmstudio",
                r#"{"data":[{"id":"a","type":"vlm","state":"loaded","max_context_length":131072,"loaded_context_length":8192},{"id":"e","type":"embeddings"}]}"#,
                "",
                model("a", Some(8192), Some(true)),
            ),
            (
                "ollama",
                r#"{"object":"list","data":[{"id":"qwen3:8b","object":"model"}]}"#,
                r#"{"models":[{"name":"other","context_length":1},{"name":"qwen3:8b","model":"qwen3:8b","context_length":4096}]}"#,
                model("qwen3:8b", Some(4096), None),
            ),
            (
                "openrouter",
                r#"{"data":[{"id":"z-ai/glm-5.2","context_length":204800,"architecture":{"input_modalities":["text","image"]}}]}"#,
                "",
                model("z-ai/glm-5.2", Some(204_800), Some(true)),
            ),
            (
                "openrouter",
                r#"{"data":[{"id":"a/b","context_length":null,"architecture":{"input_modalities":["text"]}}]}"#,
                "",
                model("a/b", None, Some(false)),
            ),
            (
                "groq",
                r#"{"data":[{"id":"m","active":true,"context_window":131072}]}"#,
                "",
                model("m", Some(131_072), None),
            ),
            (
                "mistral",
                r#"{"data":[{"id":"m","capabilities":{"completion_chat":true,"vision":false},"max_context_length":262144},{"id":"e","capabilities":{"completion_chat":false}}]}"#,
                "",
                model("m", Some(262_144), Some(false)),
            ),
            (
                "together",
                r#"[{"id":"m","type":"chat","context_length":8192},{"id":"i","type":"image"}]"#,
                "",
                model("m", Some(8192), None),
            ),
            // What is of another kind than it should be is no word against anything.
            (
                "mistral",
                r#"{"data":[{"id":"m","capabilities":{"completion_chat":"no","vision":"yes"}}]}"#,
                "",
                model("m", None, None),
            ),
            (
                "openrouter",
                r#"{"data":[{"id":"m","architecture":{"input_modalities":{"image":true}},"capabilities":{"vision":1},"supports_image_in":true}]}"#,
                "",
                model("m", None, Some(true)),
            ),
            (
                "openrouter",
                r#"{"data":[{"id":"m","architecture":{"input_modalities":[1]},"capabilities":{"vision":null}}]}"#,
                "",
                model("m", None, None),
            ),
            ("openai", r#"{"error":"no"}"#, "", None),
            ("openai", "<html>", "", None),
            ("openai", r#"{"data":{}}"#, "", None),
        ];
        for (spec, list, server, expected) in cases {
            assert_eq!(listed(spec, list, server), expected, "{spec}: {list}");
        }
    }

    #[test]
    fn what_is_hostile_is_left_out() {
        let long = "x".repeat(LONGEST_NAME + 1);
        let list = format!(
            r#"{{"data":[{{"id":""}},{{"id":7}},{{"id":"*"}},{{"id":"a\u001b[31m"}},{{"id":"a\nb"}},{{"id":"{long}"}},null,[],
            {{"id":"ok","max_model_len":-1}},{{"id":"ok","max_model_len":5}},{{"id":" b ","max_model_len":99999999999}}]}}"#
        );
        let found = listed("vllm", &list, "").unwrap();
        assert_eq!(found, [("ok".to_owned(), None, None), ("b".to_owned(), None, None)]);
        let many: Vec<String> = (0..MOST + 10).map(|number| format!(r#"{{"id":"m{number}"}}"#)).collect();
        assert_eq!(listed("vllm", &format!("[{}]", many.join(",")), "").unwrap().len(), MOST);
    }
}
