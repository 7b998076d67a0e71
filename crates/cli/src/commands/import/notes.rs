//! What has no equal, each said once with all the lines that it is about.

use std::fmt;

use providers::yaml::Node;

#[derive(Default)]
pub(super) struct Notes(Vec<Note>);

pub(super) struct Note {
    lines: Vec<usize>,
    text: String,
}

impl Notes {
    pub(super) fn add(&mut self, at: &Node, text: impl Into<String>) {
        self.add_at(at.position.line, text);
    }

    pub(super) fn add_at(&mut self, line: usize, text: impl Into<String>) {
        let text = text.into();
        match self.0.iter_mut().find(|note| note.text == text) {
            Some(note) if note.lines.contains(&line) => {}
            Some(note) => note.lines.push(line),
            None => self.0.push(Note { lines: vec![line], text }),
        }
    }

    /// In the order of the file.
    pub(super) fn finish(mut self) -> Vec<Note> {
        self.0.iter_mut().for_each(|note| note.lines.sort_unstable());
        self.0.sort_by_key(|note| note.lines.first().copied());
        self.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.lines.iter().map(usize::to_string).collect();
        write!(f, "{}: {}", lines.join(","), self.text)
    }
}
