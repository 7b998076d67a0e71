//! Finds the links in a text while it comes, and says which of them cite a known address: `[title](address)`, the same in
//! parentheses, `<address>`, and the bare address.
//!
//! ```text
//!        `[`: an opener            `]`              `(`                     `)`
//! Text ──────────────▶ Text ────────────▶ Closed ────────▶ Target ──────────────▶ Text, or Parenthesis after `([`
//!   ▲ │                                     │ else            │ no target: read again, as text
//!   │ ├ `<` ▶ Angle ── `>`, or no address ──┤                 │
//!   │ └ `h` ▶ Bare ─── its end ─────────────┤                 │
//!   └───────────────────────────────────────┴─────────────────┘
//! ```
//!
//! What may become a link is held back, so that it leaves in one piece; never more than [`MOST_HELD`] bytes of it. It is
//! read character by character: what is found never depends on the pieces in which the text came. Each character is read
//! at most a few times, whatever the text is.

mod target;

use std::sync::Arc;

use crate::reader::Sources;
use target::{Read, Target, may_be_address};

/// More than any link has.
const MOST_HELD: usize = 2048;

/// More than stands after an address at the end of a sentence.
const MOST_AFTER: usize = 8;

/// Brackets inside of brackets, beyond which the outermost is none of a link.
const MOST_OPEN: usize = 32;

#[derive(Debug, Clone)]
pub(super) struct Citing {
    sources: Arc<Sources>,
    /// What came and was not given out.
    held: String,
    /// How many bytes were given out.
    given: usize,
    /// The next character to be read.
    at: Place,
    /// The character before it; a space at the beginning.
    before: char,
    /// A backslash stood before it.
    is_escaped: bool,
    /// There is nothing but space on its line so far.
    is_blank: bool,
    /// Brackets that are open, the outermost first.
    openers: Vec<Opener>,
    state: State,
}

/// A place in the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    bytes: usize,
    characters: usize,
}

#[derive(Debug, Clone, Copy)]
struct Opener {
    /// The bracket.
    bracket: Place,
    /// The parenthesis directly before it.
    parenthesis: Option<Place>,
    /// It begins an image.
    is_image: bool,
}

#[derive(Debug, Clone)]
enum State {
    Text,
    /// After the `]` of this one.
    Closed(Opener),
    /// In its address; if that is none, what comes after `](` is text.
    Target {
        opener: Opener,
        again: Place,
        target: Target,
    },
    /// After a link that has a parenthesis before it.
    Parenthesis {
        opener: Opener,
        url: String,
    },
    Angle {
        start: Place,
    },
    Bare {
        start: Place,
        /// Parentheses that are open in it.
        depth: u8,
    },
}

/// A piece of the text, and what its last characters cite.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cited {
    pub(super) text: String,
    pub(super) citation: Option<Citation>,
}

/// Characters of the text, and the address that they name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Citation {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) url: String,
    pub(super) title: String,
}

impl Place {
    const fn after(self, c: char) -> Self {
        Self { bytes: self.bytes + c.len_utf8(), characters: self.characters + 1 }
    }
}

impl Opener {
    fn start(self) -> Place {
        self.parenthesis.unwrap_or(self.bracket)
    }
}

impl Citing {
    pub(super) const fn new(sources: Arc<Sources>) -> Self {
        Self {
            sources,
            held: String::new(),
            given: 0,
            at: Place { bytes: 0, characters: 0 },
            before: ' ',
            is_escaped: false,
            is_blank: true,
            openers: Vec::new(),
            state: State::Text,
        }
    }

    /// What is held back.
    pub(super) fn held(&self) -> &str {
        &self.held
    }

    /// More text; what of it can go on.
    pub(super) fn push(&mut self, text: &str) -> Vec<Cited> {
        let mut out = Vec::new();
        self.held.push_str(text);
        self.read(&mut out);
        self.give(self.settled().bytes, None, &mut out);
        out
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) -> Vec<Cited> {
        let mut out = Vec::new();
        loop {
            match std::mem::replace(&mut self.state, State::Text) {
                State::Parenthesis { opener, url } => self.cite(opener.bracket, self.at, url, &mut out),
                State::Bare { start, .. } => self.end_bare(start, &mut out),
                State::Target { again, .. } => self.go_back(again, ']'),
                State::Angle { start } => self.go_back(start.after('<'), '<'),
                State::Text | State::Closed(_) => break,
            }
            self.read(&mut out);
        }
        self.openers.clear();
        self.give(self.given + self.held.len(), None, &mut out);
        out
    }

    fn read(&mut self, out: &mut Vec<Cited>) {
        while let Some(c) = self.since(self.at).chars().next() {
            self.step(c, out);
            while self.at.bytes - self.settled().bytes > MOST_HELD {
                self.give_up();
            }
        }
    }

    /// The held text from there on.
    fn since(&self, place: Place) -> &str {
        self.held.get(place.bytes - self.given..).unwrap_or_default()
    }

    fn between(&self, start: Place, end: Place) -> &str {
        self.since(start).get(..end.bytes - start.bytes).unwrap_or_default()
    }

    /// Before this nothing can become a link any more.
    fn settled(&self) -> Place {
        let open = self.openers.first().map(|opener| opener.start());
        let begun = match &self.state {
            // A bracket may follow.
            State::Text => self.parenthesis(),
            State::Closed(opener) | State::Target { opener, .. } | State::Parenthesis { opener, .. } => {
                Some(opener.start())
            }
            State::Angle { start } | State::Bare { start, .. } => Some(*start),
        };
        [open, begun].into_iter().flatten().min_by_key(|place| place.bytes).unwrap_or(self.at)
    }

    /// The place of the parenthesis before the next character.
    fn parenthesis(&self) -> Option<Place> {
        let is_one = self.before == '(' && self.at.bytes > self.given;
        is_one.then(|| Place { bytes: self.at.bytes - 1, characters: self.at.characters - 1 })
    }

    /// What began first has become too long for a link.
    fn give_up(&mut self) {
        if !self.openers.is_empty() {
            self.openers.remove(0);
            return;
        }
        match std::mem::replace(&mut self.state, State::Text) {
            State::Target { again, .. } => self.go_back(again, ']'),
            State::Text | State::Closed(_) | State::Parenthesis { .. } | State::Angle { .. } | State::Bare { .. } => {}
        }
    }

    /// Reads again from there: it was no link. `before`: the character before that place.
    fn go_back(&mut self, place: Place, before: char) {
        (self.at, self.before, self.is_escaped, self.is_blank) = (place, before, false, false);
        self.state = State::Text;
    }

    fn pass(&mut self, c: char) {
        self.at = self.at.after(c);
        self.before = if self.is_escaped { ' ' } else { c };
        self.is_escaped = c == '\\' && !self.is_escaped;
        self.is_blank = c == '\n' || self.is_blank && c.is_whitespace();
    }

    fn step(&mut self, c: char, out: &mut Vec<Cited>) {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Text => self.text(c),
            State::Closed(opener) if c == '(' => {
                let again = self.at;
                self.pass(c);
                self.state = State::Target { opener, again, target: Target::default() };
            }
            State::Closed(_) => {}
            State::Target { opener, again, mut target } => match target.read(c) {
                Read::More => {
                    self.pass(c);
                    self.state = State::Target { opener, again, target };
                }
                Read::Whole => {
                    self.pass(c);
                    self.link(opener, target.url, out);
                }
                Read::None => self.go_back(again, ']'),
            },
            State::Parenthesis { opener, url } => {
                let link = self.at;
                let (start, end) = match opener.parenthesis.filter(|_| c == ')') {
                    Some(parenthesis) => {
                        self.pass(c);
                        (parenthesis, self.at)
                    }
                    None => (opener.bracket, link),
                };
                self.cite(start, end, url, out);
            }
            State::Angle { start } => self.angle(start, c, out),
            State::Bare { start, depth } => self.bare(start, depth, c, out),
        }
    }

    fn text(&mut self, c: char) {
        let here = self.at;
        let is_word = self.before.is_alphanumeric();
        match c {
            _ if self.is_escaped => {}
            '[' => {
                let parenthesis = self.parenthesis();
                if self.openers.len() >= MOST_OPEN {
                    self.openers.remove(0);
                }
                self.openers.push(Opener { bracket: here, parenthesis, is_image: self.before == '!' });
            }
            ']' => self.state = self.openers.pop().map_or(State::Text, State::Closed),
            // A paragraph is over, and no link goes on in the next.
            '\n' if self.is_blank => self.openers.clear(),
            '<' if self.openers.is_empty() => self.state = State::Angle { start: here },
            'h' | 'H' if self.openers.is_empty() && !is_word => self.state = State::Bare { start: here, depth: 0 },
            _ => {}
        }
        self.pass(c);
    }

    /// A link is whole.
    fn link(&mut self, opener: Opener, url: String, out: &mut Vec<Cited>) {
        if opener.is_image {
            return;
        }
        // There are no links in links.
        self.openers.clear();
        if self.sources.title(&url).is_none() {
            return;
        }
        if opener.parenthesis.is_some() {
            self.state = State::Parenthesis { opener, url };
        } else {
            self.cite(opener.bracket, self.at, url, out);
        }
    }

    fn angle(&mut self, start: Place, c: char, out: &mut Vec<Cited>) {
        let inside = start.after('<');
        let url = self.between(inside, self.at);
        if c == '>' {
            let url = url.to_owned();
            self.pass(c);
            if self.sources.title(&url).is_some() {
                self.cite(start, self.at, url, out);
            }
        } else if c == '<' || c.is_whitespace() || c.is_control() || !may_be_address(url) {
            self.go_back(inside, '<');
        } else {
            self.pass(c);
            self.state = State::Angle { start };
        }
    }

    fn bare(&mut self, start: Place, depth: u8, c: char, out: &mut Vec<Cited>) {
        if !may_be_address(self.between(start, self.at)) {
            return;
        }
        let depth = match c {
            '(' => depth.saturating_add(1),
            ')' if depth == 0 => return self.end_bare(start, out),
            ')' => depth - 1,
            c if ends_bare(c) => return self.end_bare(start, out),
            _ => depth,
        };
        self.pass(c);
        // In an address a backslash escapes nothing.
        self.is_escaped = false;
        self.state = State::Bare { start, depth };
    }

    /// The longest beginning of it that is known; only what can be the end of a sentence may follow.
    fn end_bare(&mut self, start: Place, out: &mut Vec<Cited>) {
        let whole = self.between(start, self.at);
        let ends = |length: &usize| whole[*length..].chars().all(|c| ".,;:!?'*_~)".contains(c));
        let lengths = (0..=whole.len()).rev().take(MOST_AFTER + 1).filter(|length| whole.is_char_boundary(*length));
        let known = |length: &usize| self.sources.title(&whole[..*length]).is_some();
        let Some(length) = lengths.take_while(ends).find(known) else { return };
        let url = &whole[..length];
        let end = Place { bytes: start.bytes + url.len(), characters: start.characters + url.chars().count() };
        let url = url.to_owned();
        // What follows it is read as text.
        let before = url.chars().next_back().unwrap_or(' ');
        self.cite(start, end, url, out);
        self.go_back(end, before);
    }

    fn cite(&mut self, start: Place, end: Place, url: String, out: &mut Vec<Cited>) {
        let title = self.sources.title(&url).unwrap_or_default().to_owned();
        let citation = Citation { start: start.characters, end: end.characters, url, title };
        self.give(end.bytes, Some(citation), out);
    }

    /// Gives out what is before that byte.
    fn give(&mut self, end: usize, citation: Option<Citation>, out: &mut Vec<Cited>) {
        let text: String = self.held.drain(..end - self.given).collect();
        self.given = end;
        if !text.is_empty() || citation.is_some() {
            out.push(Cited { text, citation });
        }
    }
}

/// Whether a bare address ends before it. What is left of other scripts belongs to it: addresses are written in them, too.
fn ends_bare(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || "<>\"`|[]{}\\^".contains(c)
        || "。，、；：？！（）【】「」『』《》“”‘’…".contains(c)
}

#[cfg(test)]
mod tests;
