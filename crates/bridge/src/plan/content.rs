//! Content parts → chat content.

use wire::chat;
use wire::responses::{Content, Output, Part};

use crate::note::{Action, Note};

/// A message's content for the far side: a string where all of it is text.
pub(super) fn content<'a>(content: &Content<'a>, path: &str, notes: &mut Vec<Note>) -> chat::Content<'a> {
    match content {
        Content::Text(text) => chat::Content::Text(vec![(*text).into()]),
        Content::Parts(parts) => from_parts(parts, path, notes),
    }
}

/// A tool's output for the far side.
pub(super) fn output<'a>(output: &Output<'a>, path: &str, notes: &mut Vec<Note>) -> chat::Content<'a> {
    match output {
        Output::Text(text) => chat::Content::Text(vec![(*text).into()]),
        Output::Json(raw) => chat::Content::Text(vec![chat::Str::Ours(raw.as_str().into())]),
        Output::Parts(parts) => match from_parts(parts, path, notes) {
            chat::Content::Parts(parts) => chat::Content::Text(texts_of(parts, path, notes)),
            text @ chat::Content::Text(_) => text,
        },
    }
}

fn from_parts<'a>(parts: &[Part<'a>], path: &str, notes: &mut Vec<Note>) -> chat::Content<'a> {
    let converted: Vec<chat::Part<'a>> =
        parts.iter().enumerate().filter_map(|(i, part)| convert(part, path, i, notes)).collect();
    if converted.iter().all(|part| matches!(part, chat::Part::Text(_))) {
        let texts = converted.into_iter().map(|part| match part {
            chat::Part::Text(text) => text,
            chat::Part::ImageUrl { url, .. } => url.into(),
        });
        return chat::Content::Text(texts.collect());
    }
    chat::Content::Parts(converted)
}

fn convert<'a>(part: &Part<'a>, path: &str, index: usize, notes: &mut Vec<Note>) -> Option<chat::Part<'a>> {
    let text = match part {
        Part::InputText(part) => part.text,
        Part::OutputText(part) => part.text,
        Part::Refusal(part) => part.refusal,
        Part::ReasoningText(part) => part.text,
        Part::InputImage(image) if image.image_url.is_some() => {
            return image.image_url.map(|url| chat::Part::ImageUrl { url, detail: image.detail });
        }
        Part::InputImage(_) | Part::InputFile(_) | Part::InputAudio(_) | Part::Screenshot(_) | Part::Other { .. } => {
            let path = format!("{path}.content[{index}]");
            notes.push(Note::new(Action::Ignored, path, "this kind of content cannot be sent to this provider"));
            return None;
        }
    };
    text.map(|text| chat::Part::Text(text.into()))
}

/// Tool messages carry text only.
fn texts_of<'a>(parts: Vec<chat::Part<'a>>, path: &str, notes: &mut Vec<Note>) -> Vec<chat::Str<'a>> {
    let mut texts = Vec::new();
    for part in parts {
        match part {
            chat::Part::Text(text) => texts.push(text),
            chat::Part::ImageUrl { .. } => {
                notes.push(Note::new(Action::Ignored, format!("{path}.output"), "an image in a tool's output"));
                texts.push(chat::Str::Ours("[image omitted]".into()));
            }
        }
    }
    texts
}
