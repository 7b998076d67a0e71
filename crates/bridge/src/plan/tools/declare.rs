//! One declared tool → the function by which the model sees it, or the custom tool where the chat API has those.
//!
//! Kinds that the chat API lacks are lowered to functions; what the reader needs to raise their calls again is
//! in the identity map. The schemas are those of the tool's own call items.

use wire::chat::{Custom, Declared, Function, Grammar, Json, Str};
use wire::json::{ObjectWriter, Raw, Text, escape_into, sanitize_into};
use wire::responses::{CustomTool, FunctionTool, ToolSearchTool};

use super::schema::{self, Changes};
use crate::context::InputSyntax;
use crate::dialect::{CustomForm, SchemaRule, ToolRules};

/// What a shell command is called with.
const SHELL: &[u8] = br#"{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},"minItems":1,"description":"Shell commands, run one after the other."},"timeout_ms":{"type":"number","minimum":1},"max_output_length":{"type":"number","minimum":1}},"required":["commands"],"additionalProperties":false}"#;

const LOCAL_SHELL: &[u8] = br#"{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"minItems":1,"description":"The program and its arguments; no shell parses them."},"env":{"type":"object","additionalProperties":{"type":"string"}},"timeout_ms":{"type":"number","minimum":1},"user":{"type":"string"},"working_directory":{"type":"string"}},"required":["command"],"additionalProperties":false}"#;

const APPLY_PATCH: &[u8] = br#"{"type":"object","properties":{"operation":{"oneOf":[{"type":"object","properties":{"type":{"const":"create_file"},"path":{"type":"string","minLength":1},"diff":{"type":"string","minLength":1,"description":"The new file as a V4A diff."}},"required":["type","path","diff"],"additionalProperties":false},{"type":"object","properties":{"type":{"const":"update_file"},"path":{"type":"string","minLength":1},"diff":{"type":"string","minLength":1,"description":"The change as a V4A diff."}},"required":["type","path","diff"],"additionalProperties":false},{"type":"object","properties":{"type":{"const":"delete_file"},"path":{"type":"string","minLength":1}},"required":["type","path"],"additionalProperties":false}]}},"required":["operation"],"additionalProperties":false}"#;

const TOOL_SEARCH: &[u8] =
    br#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"number"}},"required":["query"],"additionalProperties":false}"#;

/// A function, and what had to change in its schema.
pub(super) fn function<'a>(tool: &FunctionTool<'a>, name: String, rules: &ToolRules) -> (Function<'a>, Changes) {
    let (parameters, changes) = schema::parameters(tool.parameters.map(|object| object.0), &rules.schema);
    let strict = tool.strict.filter(|_| !rules.schema.contains(&SchemaRule::NoStrict));
    (Function { name, description: paragraph(tool.description), parameters, strict }, changes)
}

/// A free-form tool: as it is where the provider has such tools, with this form of input; else as a function.
pub(super) fn custom<'a>(tool: &CustomTool<'a>, name: String, rules: &ToolRules) -> Declared<'a> {
    let definition = format_member(tool, "definition");
    let form = match (definition, format_member(tool, "syntax")) {
        (None, _) => CustomForm::Text,
        (Some(_), Some(syntax)) if syntax.is(CustomForm::Regex.name()) => CustomForm::Regex,
        (Some(_), _) => CustomForm::Lark,
    };
    if !rules.custom.contains(&form) {
        return Declared::Function(lowered_custom(tool, name));
    }
    let grammar = definition.map(|definition| Grammar { syntax: form.name(), definition });
    Declared::Custom(Custom { name, description: paragraph(tool.description), grammar })
}

/// The grammar of its input, where it has one that is known.
pub(super) fn grammar<'a>(tool: &CustomTool<'a>) -> Option<(InputSyntax, Text<'a>)> {
    let syntax = match format_member(tool, "syntax") {
        Some(syntax) if syntax.is("lark") => InputSyntax::Lark,
        Some(syntax) if syntax.is("regex") => InputSyntax::Regex,
        _ => return None,
    };
    Some((syntax, format_member(tool, "definition")?))
}

/// Its whole input becomes one string, its grammar goes with it.
fn lowered_custom<'a>(tool: &CustomTool<'a>, name: String) -> Function<'a> {
    let mut description = paragraph(tool.description);
    description.push("Call this as a function: the whole input goes into the one string `input`, as it is.".into());
    let mut parameters = Vec::new();
    let mut object = ObjectWriter::new(&mut parameters);
    object.text("type", "object");
    let mut properties = ObjectWriter::new(object.key("properties"));
    let mut input = ObjectWriter::new(properties.key("input"));
    input.text("type", "string");
    format_note(tool, input.key("description"));
    input.end();
    properties.end();
    object.json("required", br#"["input"]"#).bool("additionalProperties", false);
    object.end();
    Function { name, description, parameters: Json::Ours(parameters), strict: None }
}

/// A member of the tool's format; chat's own form nests them once more.
fn format_member<'a>(tool: &CustomTool<'a>, name: &str) -> Option<Text<'a>> {
    let format = tool.format?.0;
    let nested = || format.get("grammar").and_then(|grammar| grammar.get(name)).and_then(Raw::text);
    format.get(name).and_then(Raw::text).or_else(nested)
}

fn format_note(tool: &CustomTool<'_>, out: &mut Vec<u8>) {
    out.push(b'"');
    match format_member(tool, "definition") {
        Some(definition) => {
            let kind = match format_member(tool, "syntax") {
                Some(syntax) if syntax.is("regex") => "regular expression",
                _ => "Lark grammar",
            };
            escape_into(out, &format!("The input. It must match this {kind}:\n"));
            if !sanitize_into(out, definition.escaped()).is_empty() {
                out.extend_from_slice(b"\\ufffd");
            }
        }
        None => escape_into(out, "The input: any text."),
    }
    out.push(b'"');
}

pub(super) fn shell<'a>(name: String) -> Function<'a> {
    lowered(name, "Runs shell commands and returns their output.", SHELL)
}

pub(super) fn local_shell<'a>(name: String) -> Function<'a> {
    lowered(name, "Runs one program on the user's machine and returns its output.", LOCAL_SHELL)
}

pub(super) fn apply_patch<'a>(name: String) -> Function<'a> {
    let description = "Creates, updates or deletes one file. Changes are given as a diff in the V4A format.";
    lowered(name, description, APPLY_PATCH)
}

pub(super) fn tool_search<'a>(tool: &ToolSearchTool<'a>, name: String, rules: &ToolRules) -> Function<'a> {
    let mut description = paragraph(tool.description);
    if description.is_empty() {
        description.push("Finds further tools by what they do; those found can be called afterwards.".into());
    }
    let parameters = match tool.parameters {
        Some(object) => schema::parameters(Some(object.0), &rules.schema).0,
        None => Json::Ours(TOOL_SEARCH.to_vec()),
    };
    Function { name, description, parameters, strict: None }
}

fn lowered<'a>(name: String, description: &'static str, parameters: &[u8]) -> Function<'a> {
    Function { name, description: vec![description.into()], parameters: Json::Ours(parameters.to_vec()), strict: None }
}

fn paragraph(text: Option<Text<'_>>) -> Vec<Str<'_>> {
    text.filter(|text| !text.is_empty()).map(Str::Wire).into_iter().collect()
}
