//! `POST /v1/alpha/search`: the search of clients that run their own tools, Codex with `supports_standalone_web_search`.
//! Each request has commands, as its model wrote them, and the answer is text for the model. What a session has been shown
//! is remembered between its requests, so that its model can open what it has found.

use std::sync::PoisonError;

use bridge::ToolKind;
use http::{Request, Response};
use hyper::body::Incoming;
use web::search::ContextSize;
use wire::json::{FromRaw, Invalid, Kind, Object, ObjectWriter, Raw, Text};

use crate::api::json;
use crate::body::{self, Body};
use crate::error::{ApiError, Code};
use crate::hosted::search::{WebSearch, Wishes};
use crate::request::RequestContext;

/// The most commands of each kind.
const MOST: usize = 4;
/// About as many bytes as a token has.
const BYTES_PER_TOKEN: u64 = 4;
const MOST_BYTES: u64 = 128 << 10;
/// What Codex's tool offers beyond what search services have.
const LACKING: &[&str] = &["image_query", "click", "screenshot", "finance", "weather", "sports", "time"];

pub(crate) async fn search(context: &RequestContext, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    if context.caller.grant().is_some_and(|grant| !grant.allows_tool("web_search")) {
        return Err(ApiError::tool_not_allowed("web_search"));
    }
    let (parts, incoming) = request.into_parts();
    let bytes = context.read_json(&parts.headers, incoming).await?;
    let Object(request) = body::parse(&bytes)?;
    let get = |name: &str| request.get(name).filter(|value| !value.is_null());
    let commands = match get("commands") {
        Some(commands) => Object::from_raw(commands).map_err(|invalid| invalid.at("commands"))?.0,
        None => return Err(Invalid::missing().at("commands").into()),
    };
    let settings = get("settings").unwrap_or(Raw::NULL);
    let mut wishes = Wishes::of_settings(settings).map_err(|invalid| invalid.at("settings"))?;
    wishes.size = length(commands).unwrap_or(wishes.size);
    let session = get("id").and_then(Raw::text).map(Text::decode).unwrap_or_default();
    let shown = match &*session {
        // Nobody can be told apart by it.
        "" => std::sync::Arc::default(),
        session => context.app.runtime.shown.of(context.caller.tenant().name(), session),
    };
    if let Some(input) = get("input") {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = |text: &str| shown.read(text);
        match input.kind() {
            Kind::Array => input.elements().filter(|item| is_of_people(*item)).for_each(|item| texts(item, &mut read)),
            _ => texts(input, &mut read),
        }
    }
    let Some(search) = WebSearch::standalone(wishes.clone(), shown.clone(), context) else {
        let message = "There is no search service: the operator names one in `tools.web_search`.";
        return Err(ApiError::new(Code::NotFound, message));
    };
    context.account.counted_by(&context.app.runtime.spending);
    let output = run(&search, commands, &wishes, &shown, context).await;
    let most = get("max_output_tokens").and_then(|tokens| tokens.as_str().parse::<u64>().ok());
    let most = most.map_or(MOST_BYTES, |tokens| tokens.saturating_mul(BYTES_PER_TOKEN).min(MOST_BYTES));
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    let mut object = ObjectWriter::new(&mut body);
    object.text("output", &output[..output.floor_char_boundary(most)]);
    object.end();
    Ok(json(body))
}

/// Runs the commands one after the other; what each came to, in their order.
async fn run(
    search: &WebSearch,
    commands: Raw<'_>,
    wishes: &Wishes,
    shown: &std::sync::Arc<std::sync::Mutex<crate::shown::Shown>>,
    context: &RequestContext,
) -> String {
    let mut told: Vec<String> = Vec::new();
    for (kind, command) in each(commands, "search_query").map(|query| (ToolKind::WebSearch, query)).chain(
        each(commands, "open")
            .map(|open| (ToolKind::OpenPage, open))
            .chain(each(commands, "find").map(|find| (ToolKind::FindInPage, find))),
    ) {
        // A query may have domains of its own; those of the settings bound them.
        let own = command.get("domains").filter(|domains| !domains.is_null());
        let narrowed = match own.map(|domains| wishes.narrowed(domains)) {
            None => None,
            Some(Ok(wishes)) => WebSearch::standalone(wishes, std::sync::Arc::clone(shown), context),
            Some(Err(why)) => {
                told.push(why);
                continue;
            }
        };
        let arguments = arguments(command);
        let output = narrowed.as_ref().unwrap_or(search).call(kind, &arguments).await;
        told.push(output.text);
        if command.get("recency").is_some_and(|days| !days.is_null()) {
            told.push("(Results are of any age: look at their dates.)".to_owned());
        }
    }
    for name in LACKING.iter().filter(|name| commands.get(name).is_some_and(|list| list.elements().next().is_some())) {
        told.push(format!("`{name}` is not available here. Use `search_query`, and `open` and `find` with addresses."));
    }
    if told.is_empty() {
        return "Nothing was asked.".to_owned();
    }
    told.push("Give the address of a page as `ref_id` to open it.".to_owned());
    told.join("\n\n")
}

fn each<'a>(commands: Raw<'a>, name: &str) -> impl Iterator<Item = Raw<'a>> {
    commands.get(name).into_iter().flat_map(Raw::elements).take(MOST)
}

/// A command in the words of the functions that models are offered elsewhere.
fn arguments(command: Raw<'_>) -> String {
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    for (from, to) in [("q", "query"), ("ref_id", "url"), ("pattern", "pattern")] {
        if let Some(text) = command.get(from).and_then(Raw::text) {
            object.raw(to, text.raw());
        }
    }
    object.end();
    String::from_utf8(out).unwrap_or_default()
}

fn length(commands: Raw<'_>) -> Option<ContextSize> {
    match &*commands.get("response_length")?.text()?.decode() {
        "short" => Some(ContextSize::Low),
        "medium" => Some(ContextSize::Medium),
        "long" => Some(ContextSize::High),
        _ => None,
    }
}

/// Every text in what was said.
/// Whether an item is something that people said, and not the model or one of its tools.
fn is_of_people(item: Raw<'_>) -> bool {
    item.kind() == Kind::String || item.get("role").and_then(Raw::text).is_some_and(|role| !role.is("assistant"))
}

fn texts(value: Raw<'_>, each: &mut impl FnMut(&str)) {
    match value.kind() {
        Kind::String => value.text().into_iter().for_each(|text| each(&text.decode())),
        Kind::Array => value.elements().for_each(|element| texts(element, each)),
        Kind::Object => value.fields().for_each(|(_, member)| texts(member, each)),
        Kind::Null | Kind::Bool | Kind::Number => {}
    }
}
