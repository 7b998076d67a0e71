//! A request's body, walked: what the model will be shown of it goes to a [`Meter`].

use wire::json::{Kind, Raw, Text};

use crate::image;

/// Takes what a body has in it.
pub(crate) trait Meter {
    /// A string, still escaped.
    fn text(&mut self, text: Text<'_>);
    /// The schema of an answer.
    fn schema(&mut self, schema: Raw<'_>);
    fn tools(&mut self, tools: Raw<'_>);
    /// A message begins.
    fn message(&mut self);
    /// A call of a tool begins.
    fn call(&mut self);
    /// What is no text, and about how many tokens it takes.
    fn other(&mut self, tokens: u64);
}

/// Walks a chat request, or a request to a provider that has a Responses API, or a Messages API, of its own.
pub(crate) fn walk(body: &[u8], meter: &mut impl Meter) {
    // Whoever plans bodies writes JSON; of anything else there is nothing to count.
    let Ok(text) = str::from_utf8(body) else { return };
    for (key, value) in Raw::ours(text).fields() {
        match key.escaped() {
            "messages" => value.elements().for_each(|message| walk_message(message, meter)),
            "input" | "instructions" => walk_input(value, meter),
            "system" => walk_content(value, meter),
            "tools" => meter.tools(value),
            "response_format" => walk_format(value.get("json_schema"), meter),
            "text" | "output_config" => walk_format(value.get("format"), meter),
            _ => {}
        }
    }
}

fn walk_format(format: Option<Raw<'_>>, meter: &mut impl Meter) {
    if let Some(schema) = format.and_then(|format| format.get("schema")) {
        meter.schema(schema);
    }
}

fn walk_message(message: Raw<'_>, meter: &mut impl Meter) {
    meter.message();
    for (key, value) in message.fields() {
        match key.escaped() {
            "role" | "name" | "reasoning_content" | "reasoning" | "refusal" => string(value, meter),
            "content" => walk_content(value, meter),
            "tool_calls" => value.elements().for_each(|call| walk_call(call, meter)),
            // What a provider wants back with its reasoning: sealed, or the reasoning once more in parts.
            "reasoning_details" => walk_any(value, meter, 0),
            _ => {}
        }
    }
}

fn walk_call(call: Raw<'_>, meter: &mut impl Meter) {
    meter.call();
    let called = call.get("function").or_else(|| call.get("custom"));
    for (key, value) in called.into_iter().flat_map(Raw::fields) {
        match key.escaped() {
            "name" | "arguments" | "input" => string(value, meter),
            _ => {}
        }
    }
}

fn walk_content(content: Raw<'_>, meter: &mut impl Meter) {
    string(content, meter);
    for part in content.elements() {
        for (key, value) in part.fields() {
            match key.escaped() {
                "text" | "refusal" => string(value, meter),
                "thinking" => walk_any(value, meter, 0),
                // Blocks: a call, its result, an image or a document.
                "input" => {
                    meter.call();
                    walk_any(value, meter, 0);
                }
                "content" => walk_content(value, meter),
                "source" => walk_source(part, value, meter),
                "image_url" => {
                    let (url, detail) = match value.kind() {
                        Kind::Object => (value.get("url"), value.get("detail")),
                        _ => (Some(value), part.get("detail")),
                    };
                    meter.other(image::tokens(url.and_then(Raw::text), detail.and_then(Raw::text)));
                }
                "input_audio" => meter.other(data_tokens(value.get("data"), image::AUDIO_BYTES)),
                "file" => meter.other(data_tokens(value.get("file_data"), image::FILE_BYTES)),
                "file_data" => meter.other(data_tokens(Some(value), image::FILE_BYTES)),
                _ => {}
            }
        }
    }
}

/// What an image or a document of the Messages API takes.
fn walk_source(block: Raw<'_>, source: Raw<'_>, meter: &mut impl Meter) {
    let is_image = block.get("type").and_then(Raw::text).is_some_and(|kind| kind.is("image"));
    meter.other(if is_image {
        image::tokens_of(source.get("data").and_then(Raw::text).map(Text::escaped))
    } else {
        data_tokens(source.get("data"), image::FILE_BYTES)
    });
}

/// Items of the Responses API: every string that is not about the item itself.
fn walk_input(input: Raw<'_>, meter: &mut impl Meter) {
    string(input, meter);
    for item in input.elements() {
        match item.get("type").and_then(Raw::text).map(Text::escaped) {
            None | Some("message") => walk_message(item, meter),
            Some("function_call" | "custom_tool_call") => {
                meter.call();
                walk_any(item, meter, 0);
            }
            Some(_) => {
                meter.message();
                walk_any(item, meter, 0);
            }
        }
    }
}

fn walk_any(value: Raw<'_>, meter: &mut impl Meter, depth: usize) {
    // Bodies are not nested deeper; if one were, its inside would be shown to nobody.
    if depth > wire::json::MAX_DEPTH {
        return;
    }
    match value.kind() {
        Kind::String => string(value, meter),
        Kind::Array => value.elements().for_each(|element| walk_any(element, meter, depth + 1)),
        Kind::Object if value.get("type").and_then(Raw::text).is_some_and(|kind| kind.is("input_image")) => {
            let member = |name: &str| value.get(name).and_then(Raw::text);
            meter.other(image::tokens(member("image_url"), member("detail")));
        }
        Kind::Object => {
            for (key, value) in value.fields() {
                match key.escaped() {
                    "id" | "type" | "status" | "call_id" | "encrypted_content" | "signature" => {}
                    _ => walk_any(value, meter, depth + 1),
                }
            }
        }
        Kind::Null | Kind::Bool | Kind::Number => {}
    }
}

fn string(value: Raw<'_>, meter: &mut impl Meter) {
    if let Some(text) = value.text() {
        meter.text(text);
    }
}

/// What is sent as base64, at so many of its own bytes for a token.
fn data_tokens(data: Option<Raw<'_>>, bytes_per_token: u64) -> u64 {
    let base64 = data.and_then(Raw::text).map_or(0, |text| text.escaped().len() as u64);
    (base64 / 4 * 3).div_ceil(bytes_per_token)
}
