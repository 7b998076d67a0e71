//! What a request cannot do without: looked at before it is sent to another target than the first.

use memchr::memmem;
use wire::responses::{CreateResponse, Input, InputItem};

use crate::dialect::{Dialect, ImageInput};

/// What a target must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    pub images: bool,
    pub audio: bool,
    pub tools: bool,
}

impl Needs {
    /// Of a request and what it continues.
    pub fn of(request: &CreateResponse<'_>, past: &[InputItem<'_>]) -> Self {
        let items = match &request.input {
            Some(Input::Items(items)) => items.as_slice(),
            _ => &[],
        };
        // A type's name in quotes cannot be inside of a JSON string: its quotes would be escaped.
        let any = |name: &str| {
            let finder = memmem::Finder::new(name);
            past.iter().chain(items).any(|item| finder.find(item.raw.as_str().as_bytes()).is_some())
        };
        Self {
            images: any("\"input_image\"") || any("\"computer_screenshot\""),
            audio: any("\"input_audio\""),
            tools: request.tools.as_ref().is_some_and(|tools| !tools.is_empty()),
        }
    }

    /// Whether this target has all of it.
    pub fn are_met_by(self, dialect: &Dialect) -> bool {
        let rules = &dialect.request;
        (!self.images || rules.content.images != ImageInput::None)
            && (!self.audio || rules.content.audio)
            && (!self.tools || rules.tools.max != Some(0))
    }
}

#[cfg(test)]
mod tests {
    use wire::json::{FromRaw, Raw};

    use super::*;

    #[test]
    fn needs_are_seen_and_compared() {
        let image = r#"{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:,"}]}]}"#;
        let words = r#"{"input":[{"role":"user","content":"say \"input_image\""}],"tools":[]}"#;
        let tools = r#"{"input":"x","tools":[{"type":"function","name":"f"}]}"#;
        let audio = r#"{"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}"#;
        let all = Dialect::default();
        let mut blind = Dialect::default();
        blind.request.content.images = ImageInput::None;
        let mut bare = Dialect::default();
        bare.request.tools.max = Some(0);
        let mut hearing = Dialect::default();
        hearing.request.content.audio = true;
        for (text, expected) in [
            (image, [true, false, true, true]),
            (words, [true, true, true, true]),
            (tools, [true, true, false, true]),
            (audio, [false, false, false, true]),
        ] {
            let request = CreateResponse::from_raw(Raw::parse(text).unwrap()).unwrap();
            let needs = Needs::of(&request, &[]);
            assert_eq!([&all, &blind, &bare, &hearing].map(|dialect| needs.are_met_by(dialect)), expected, "{text}");
        }
    }
}
