//! Outputs of all kinds → the text of a tool's message, and the images in it.

use std::borrow::Cow;

use wire::chat::{self, Str};
use wire::json::{FromRaw, Invalid, Kind, Raw, Text};
use wire::responses::{InputImage, Item, Tool};

use super::pairs::Link;
use super::{Builder, ToolResult};
use crate::context::ToolKind;
use crate::dialect::ImageInput;
use crate::plan::content::clean;
use crate::plan::item_path::ItemPath;

impl<'a> Builder<'_, 'a, '_> {
    /// The result that begins with the output at `index`.
    pub(super) fn result(&mut self, index: usize) -> ToolResult<'a> {
        let mut result = ToolResult::default();
        let mut next = Some(index);
        while let Some((item, path)) = next.and_then(|index| self.items.sent.get(index).copied()) {
            let ToolResult { texts, media } = self.one_result(item, path);
            result.texts.extend(texts);
            result.media.extend(media);
            next = match next.map(|index| self.pairs.link(index)) {
                Some(Link::Result { more }) => more,
                _ => None,
            };
        }
        result
    }

    fn one_result(&mut self, item: &Item<'a>, path: ItemPath) -> ToolResult<'a> {
        let output = match item {
            Item::FunctionCallOutput(item) => &item.output,
            Item::CustomToolCallOutput(item) => &item.output,
            Item::LocalShellCallOutput(item) => &item.output,
            Item::ApplyPatchCallOutput(item) => {
                let mut result =
                    item.output.as_ref().map(|output| self.renderer().output(output, path)).unwrap_or_default();
                result.texts.splice(0..0, item.status.map(|status| Str::Pieces(vec![status.decode(), ":".into()])));
                return result;
            }
            Item::ShellCallOutput(item) => return shell(item.output),
            Item::ToolSearchOutput(item) => return self.found(item.tools.as_deref().unwrap_or_default()),
            Item::ComputerCallOutput(item) => {
                let image = item.output.map(InputImage::from_raw).and_then(Result::ok).unwrap_or_default();
                return self.renderer().picture(&image, path);
            }
            Item::ProgramOutput(item) => {
                return ToolResult { texts: item.result.map(Str::Wire).into_iter().collect(), media: Vec::new() };
            }
            _ => return ToolResult::default(),
        };
        output.as_ref().map(|output| self.renderer().output(output, path)).unwrap_or_default()
    }

    /// Outputs without an output are refused as on OpenAI's API.
    pub(super) fn check_output(&mut self, item: &Item<'a>, path: ItemPath) -> Result<(), Invalid> {
        let missing = match item {
            Item::FunctionCallOutput(item) => item.output.is_none(),
            Item::CustomToolCallOutput(item) => item.output.is_none(),
            _ => false,
        };
        if missing { self.demand("output", path) } else { Ok(()) }
    }

    /// What a search for tools loaded, by the names under which they can be called now.
    fn found(&self, tools: &[Tool<'a>]) -> ToolResult<'a> {
        let mut texts = vec!["Tools that can be called now:".into()];
        for tool in tools {
            match tool {
                Tool::Namespace(space) => {
                    let inner = space.tools.iter().flatten();
                    texts.extend(inner.filter_map(|tool| self.found_name(tool, space.name)));
                }
                tool => texts.extend(self.found_name(tool, None)),
            }
        }
        if texts.len() == 1 {
            return ToolResult::text("No tools were found.");
        }
        ToolResult { texts, media: Vec::new() }
    }

    fn found_name(&self, tool: &Tool<'a>, space: Option<Text<'a>>) -> Option<Str<'a>> {
        match tool {
            Tool::Function(function) => Some(self.catalog.call_name(ToolKind::Function, space, function.name?)),
            Tool::Custom(custom) => Some(self.catalog.call_name(ToolKind::Custom, space, custom.name?)),
            _ => None,
        }
    }

    /// An image that the model made.
    pub(super) fn generated(&self, result: Option<Text<'a>>) -> ToolResult<'a> {
        let seen = self.dialect.request.content.images != ImageInput::None;
        let Some(result) = result.filter(|result| seen && !result.is_empty()) else {
            return ToolResult::text("[an image was generated]");
        };
        let url = Str::Pieces(vec!["data:image/png;base64,".into(), result.decode()]);
        let media = vec![chat::Part::ImageUrl { url, detail: None }];
        ToolResult { texts: vec!["[an image was generated: in the next message]".into()], media }
    }
}

/// The outcome of each command, then what it wrote.
fn shell(output: Option<Raw<'_>>) -> ToolResult<'_> {
    let Some(output) = output else { return ToolResult::default() };
    if output.kind() != Kind::Array {
        let text = output.text().map_or_else(|| Str::Ours(clean(output.as_str())), Str::Wire);
        return ToolResult { texts: vec![text], media: Vec::new() };
    }
    let mut texts = Vec::new();
    for command in output.elements() {
        texts.push(Str::Ours(outcome(command.get("outcome"))));
        let written = |name: &str| command.get(name).and_then(Raw::text).filter(|text| !text.is_empty());
        texts.extend(written("stdout").map(Str::Wire));
        if let Some(stderr) = written("stderr") {
            texts.extend(["[stderr]".into(), Str::Wire(stderr)]);
        }
    }
    ToolResult { texts, media: Vec::new() }
}

fn outcome(outcome: Option<Raw<'_>>) -> Cow<'static, str> {
    let exit = outcome.and_then(|outcome| outcome.get("exit_code")).map(Raw::as_str);
    let timeout = outcome.and_then(|outcome| outcome.get("type")).is_some_and(|kind| kind.as_str() == "\"timeout\"");
    match exit {
        _ if timeout => "[timeout]".into(),
        Some(code) => format!("[exit {code}]").into(),
        None => "[no outcome]".into(),
    }
}
