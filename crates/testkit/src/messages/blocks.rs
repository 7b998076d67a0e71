//! One block at a time: which there are, for whom, and what must be in them.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{demand, is_name, object, only, words};

const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Content as blocks: a string is one of text.
pub(super) fn list<'v>(content: &'v Value, at: &str) -> Result<Vec<&'v Value>, String> {
    match content {
        // What is in it is looked at here: there is no block to look at.
        Value::String(_) => words(Some(content), at).map(|()| Vec::new()),
        Value::Array(blocks) if !blocks.is_empty() => Ok(blocks.iter().collect()),
        _ => Err(format!("{at}: neither a text nor blocks: {content}")),
    }
}

/// Content that may only be text.
pub(super) fn texts(content: &Value, at: &str) -> Result<(), String> {
    list(content, at)?.into_iter().try_for_each(|block| {
        demand(block["type"] == "text", || format!("{at}: only text: {block}"))?;
        text(block, at)
    })
}

pub(super) fn of_user(block: &Value, at: &str) -> Result<(), String> {
    match block["type"].as_str().unwrap_or_default() {
        "tool_result" => result(block, at),
        _ => shown(block, at),
    }
}

pub(super) fn of_assistant(block: &Value, at: &str) -> Result<(), String> {
    let members = object(block, at)?;
    match block["type"].as_str().unwrap_or_default() {
        "text" => text(block, at),
        "thinking" => {
            only(members, &["type", "thinking", "signature"], at)?;
            let signed = members.get("signature").is_none_or(Value::is_string);
            demand(block["thinking"].is_string() && signed, || format!("{at}: {block}"))
        }
        "redacted_thinking" => {
            only(members, &["type", "data"], at)?;
            demand(block["data"].is_string(), || format!("{at}: {block}"))
        }
        "tool_use" => {
            only(members, &["type", "id", "name", "input", "cache_control"], at)?;
            for name in ["id", "name"] {
                let value = block[name].as_str().unwrap_or_default();
                demand(is_name(value), || format!("{at}: the {name} {value:?}"))?;
            }
            demand(block["input"].is_object(), || format!("{at}: the input must be an object: {block}"))
        }
        // What the server's own tools did.
        "server_tool_use" => {
            let good = block["id"].is_string() && block["name"].is_string() && block["input"].is_object();
            demand(good, || format!("{at}: {block}"))
        }
        other if other.ends_with("_tool_result") => {
            let good = block["tool_use_id"].is_string() && block.get("content").is_some();
            demand(good, || format!("{at}: {block}"))
        }
        other => Err(format!("{at}: no such block of the assistant: {other:?}")),
    }
}

fn text(block: &Value, at: &str) -> Result<(), String> {
    only(object(block, at)?, &["type", "text", "cache_control"], at)?;
    words(block.get("text"), at)
}

/// What a person, or a tool, can show.
fn shown(block: &Value, at: &str) -> Result<(), String> {
    let members = object(block, at)?;
    match block["type"].as_str().unwrap_or_default() {
        "text" => text(block, at),
        "image" => {
            only(members, &["type", "source", "cache_control"], at)?;
            source(&block["source"], IMAGES, at)
        }
        "document" => {
            only(members, &["type", "source", "title", "context", "citations", "cache_control"], at)?;
            source(&block["source"], &["application/pdf"], at)
        }
        other => Err(format!("{at}: no such block of the user: {other:?}")),
    }
}

fn source(source: &Value, media: &[&str], at: &str) -> Result<(), String> {
    let members = object(source, at)?;
    let kind = source["type"].as_str().unwrap_or_default();
    match kind {
        "base64" => {
            only(members, &["type", "media_type", "data"], at)?;
            let known = source["media_type"].as_str().is_some_and(|kind| media.contains(&kind));
            demand(known, || format!("{at}: the media type {}", source["media_type"]))?;
            let base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
            let good = source["data"].as_str().is_some_and(|data| !data.is_empty() && data.chars().all(base64));
            demand(good, || format!("{at}: the data is no base64: {source}"))
        }
        "url" => {
            only(members, &["type", "url"], at)?;
            // `Only HTTPS URLs are supported.`
            let is_https = |url: &str| url.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
            let good = source["url"].as_str().is_some_and(is_https);
            demand(good, || format!("{at}: the address {}", source["url"]))
        }
        "text" => {
            only(members, &["type", "media_type", "data"], at)?;
            demand(source["media_type"] == "text/plain", || format!("{at}: {source}"))?;
            words(source.get("data"), at)
        }
        other => Err(format!("{at}: no such source: {other:?}")),
    }
}

fn result(block: &Value, at: &str) -> Result<(), String> {
    only(object(block, at)?, &["type", "tool_use_id", "content", "is_error", "cache_control"], at)?;
    let failed = block.get("is_error");
    demand(failed.is_none_or(Value::is_boolean), || format!("{at}: is_error {failed:?}"))?;
    let content: Cow<'_, Value> = block.get("content").map_or_else(|| Cow::Owned(json!("")), Cow::Borrowed);
    list(&content, at)?.into_iter().try_for_each(|block| shown(block, at))
}
