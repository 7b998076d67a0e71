//! What the response says back about its request.

use wire::json::{Invalid, Kept, ObjectWriter, Text};
use wire::responses::{CreateResponse, Echo, FunctionTool, Tail, TextFormat, Tool, ToolChoice};

use crate::shown::shown_tool;

/// What each snapshot of the response repeats: it depends on the request only.
pub fn tail(request: &CreateResponse<'_>) -> Result<Tail, Invalid> {
    let model = request.model.ok_or_else(|| Invalid::missing().at("model"))?;
    let reasoning = request.reasoning.as_ref();
    let echo = Echo {
        model,
        instructions: request.instructions,
        previous_response_id: request.previous_response_id,
        conversation: request.conversation.map(|conversation| conversation.id),
        background: request.background.unwrap_or(false),
        tools: &tools(request.tools.as_deref().unwrap_or_default()),
        tool_choice: &tool_choice(request.tool_choice.as_ref()),
        parallel_tool_calls: request.parallel_tool_calls.unwrap_or(true),
        max_tool_calls: request.max_tool_calls,
        max_output_tokens: request.max_output_tokens,
        temperature: request.temperature,
        top_p: request.top_p,
        top_logprobs: request.top_logprobs.unwrap_or(0),
        presence_penalty: request.presence_penalty,
        frequency_penalty: request.frequency_penalty,
        text: &text(request),
        reasoning_effort: reasoning.and_then(|reasoning| reasoning.effort),
        reasoning_summary: reasoning.and_then(|reasoning| reasoning.summary.or(reasoning.generate_summary)),
        truncation: request.truncation,
        metadata: request.metadata.map(|metadata| metadata.0),
        safety_identifier: request.safety_identifier,
        prompt_cache_key: request.prompt_cache_key,
        prompt: request.prompt.map(|prompt| prompt.0),
        user: request.user,
    };
    Ok(echo.tail())
}

fn tool_choice(choice: Option<&ToolChoice<'_>>) -> Vec<u8> {
    let mut out = Vec::new();
    match choice {
        None | Some(ToolChoice::Auto) => out.extend_from_slice(b"\"auto\""),
        Some(ToolChoice::None) => out.extend_from_slice(b"\"none\""),
        Some(ToolChoice::Required) => out.extend_from_slice(b"\"required\""),
        Some(ToolChoice::Object { raw, .. }) => shown_tool(*raw, &mut out),
    }
    out
}

/// Functions with all their members present; other tools as they were sent, without the keys in them.
fn tools(tools: &[Kept<'_, Tool<'_>>]) -> Vec<u8> {
    let mut out = vec![b'['];
    for (i, tool) in tools.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match &tool.value {
            Tool::Function(tool) => function(tool, &mut out),
            _ => shown_tool(tool.raw, &mut out),
        }
    }
    out.push(b']');
    out
}

fn function(tool: &FunctionTool<'_>, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    object.text("type", "function");
    object.raw_or_null("name", tool.name.map(Text::raw));
    object.raw_or_null("description", tool.description.map(Text::raw));
    object.raw_or_null("parameters", tool.parameters.map(|parameters| parameters.0));
    object.bool("strict", tool.strict.unwrap_or(true));
    // How it is called is the client's business: nothing is done otherwise.
    if let Some((_, is_async)) = tool.extra.iter().rfind(|(key, value)| key.is("async") && !value.is_null()) {
        object.raw("async", *is_async);
    }
    object.end();
}

/// `text` with its defaults filled in.
fn text(request: &CreateResponse<'_>) -> Vec<u8> {
    let config = request.text.as_ref();
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    let mut format = ObjectWriter::new(object.key("format"));
    match config.and_then(|config| config.format.as_ref()) {
        None | Some(TextFormat::Text) => {
            format.text("type", "text");
        }
        Some(TextFormat::JsonObject) => {
            format.text("type", "json_object");
        }
        Some(TextFormat::JsonSchema { name, schema, description, strict }) => {
            format.text("type", "json_schema").raw("name", name.raw());
            format.raw_or_null("description", description.map(Text::raw));
            format.raw("schema", schema.0).bool("strict", strict.unwrap_or(false));
        }
    }
    format.end();
    let verbosity = config.and_then(|config| config.verbosity).or(request.verbosity);
    object.json("verbosity", verbosity.map_or("\"medium\"", |text| text.raw().as_str()).as_bytes());
    object.end();
    out
}
