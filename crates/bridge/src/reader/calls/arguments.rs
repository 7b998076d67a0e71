//! The arguments of one call on their way in. Most servers send them in pieces; some send all so far with every delta,
//! some an empty object first and the real one after it, and some say the whole once more. Whatever cannot be one of
//! these is nobody's to guess: the turn fails.

use wire::json::{Kind, Raw, Text};

use super::super::balance::Balance;
use super::grammar::Grammar;
use crate::escaped::{Escaped, EscapedBuf, Pieces};

/// Longer values are the same only if they are written alike: comparing members takes time.
const COMPARED: usize = 16 * 1024;

#[derive(Debug, Clone, Default)]
pub(in crate::reader) struct Arguments {
    text: Pieces,
    balance: Balance,
    manner: Manner,
    /// Something comes after the value that the arguments should be.
    pub(in crate::reader) is_spoiled: bool,
    /// An object after the first one: the same once more, or another call's.
    pub(in crate::reader) second: Option<Box<Second>>,
}

/// How they come.
#[derive(Debug, Clone, Default)]
enum Manner {
    /// Of one delta nobody can tell.
    #[default]
    Unknown,
    Pieces,
    /// All so far with every delta.
    Cumulative,
    /// What came can be read as both.
    Either(Box<Either>),
}

/// Two ways to read the deltas after the first one.
#[derive(Debug, Clone)]
struct Either {
    /// All of them together.
    joined: EscapedBuf,
    /// The last one, which begins with the one before it.
    last: EscapedBuf,
    /// Whether they can be pieces of one value, with the first.
    grammar: Grammar,
}

#[derive(Debug, Clone, Default)]
pub(in crate::reader) struct Second {
    pub(in crate::reader) text: EscapedBuf,
    pub(in crate::reader) balance: Balance,
    /// The tool's name came with it, as if it were a call of its own.
    pub(in crate::reader) is_named: bool,
    /// It came under the call's own id.
    pub(in crate::reader) is_under_its_id: bool,
}

/// What is left of a delta.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::reader) enum Took<'e> {
    All,
    /// This comes after the value.
    After(Escaped<'e>),
    /// It is neither more of them nor the same again.
    Nonsense,
}

impl Arguments {
    /// Nothing yet, and it will come in pieces.
    pub(in crate::reader) fn in_pieces() -> Self {
        Self { manner: Manner::Pieces, ..Self::default() }
    }

    pub(in crate::reader) fn text(&self) -> Escaped<'_> {
        self.text.get()
    }

    /// How many bytes there are of them, in whatever way they are read.
    pub(in crate::reader) fn held(&self) -> usize {
        let either = match &self.manner {
            Manner::Either(either) => either.joined.get().len() + either.last.get().len(),
            Manner::Unknown | Manner::Pieces | Manner::Cumulative => 0,
        };
        self.text.len() + either + self.second.as_ref().map_or(0, |second| second.text.get().len())
    }

    pub(in crate::reader) const fn first(&self) -> Option<u8> {
        self.balance.first()
    }

    /// Nothing more is needed, as far as can be seen.
    pub(in crate::reader) fn is_whole(&self) -> bool {
        self.balance.is_whole() && self.second.is_none()
    }

    /// Nothing more may come: an empty object may be no more than a place for the real one.
    pub(in crate::reader) fn is_finished(&self) -> bool {
        self.is_whole() && !self.is_blank()
    }

    /// An object with nothing in it so far.
    pub(in crate::reader) fn is_blank(&self) -> bool {
        self.first() == Some(b'{')
            && self.text.len() < 64
            && self.text().decode().chars().all(|c| c.is_whitespace() || matches!(c, '{' | '}'))
    }

    /// An empty object was not the arguments yet.
    pub(in crate::reader) fn restart(&mut self) {
        *self = Self::default();
    }

    /// More of them.
    pub(in crate::reader) fn take<'e>(&mut self, piece: Escaped<'e>) -> Took<'e> {
        if piece.is_empty() {
            return Took::All;
        }
        if self.balance.is_whole() {
            return Took::After(piece);
        }
        match &mut self.manner {
            Manner::Pieces => self.append(piece),
            Manner::Unknown if self.text.is_empty() => self.append(piece),
            Manner::Unknown => self.second_delta(piece),
            Manner::Cumulative => match self.after_all_so_far(piece) {
                Some(rest) => self.append(rest),
                None if self.text().starts_with(piece) => Took::All,
                None => Took::Nonsense,
            },
            Manner::Either(either) => {
                let repeats = piece.starts_with(either.last.get());
                either.joined.push(piece);
                match (repeats, either.grammar.push(piece)) {
                    (true, true) => {
                        either.last = piece.into();
                        Took::All
                    }
                    (true, false) => {
                        self.manner = Manner::Cumulative;
                        self.take(piece)
                    }
                    (false, _) => {
                        let joined = std::mem::take(&mut either.joined);
                        self.manner = Manner::Pieces;
                        // What comes after the value then is the end of this delta.
                        match self.append(joined.get()) {
                            Took::After(rest) => Took::After(piece.after(piece.len().saturating_sub(rest.len()))),
                            Took::All | Took::Nonsense => Took::All,
                        }
                    }
                }
            }
        }
    }

    /// The second delta tells how they come: only what begins with the first can be all so far.
    fn second_delta<'e>(&mut self, piece: Escaped<'e>) -> Took<'e> {
        let is_json = matches!(self.first(), Some(b'{' | b'[' | b'"'));
        if !is_json || self.after_all_so_far(piece).is_none() {
            self.manner = Manner::Pieces;
            return self.append(piece);
        }
        let mut grammar = Grammar::new();
        if grammar.push(self.text()) && grammar.push(self.text.half()) && grammar.push(piece) {
            let (joined, last) = (piece.into(), piece.into());
            self.manner = Manner::Either(Box::new(Either { joined, last, grammar }));
            return Took::All;
        }
        self.manner = Manner::Cumulative;
        self.take(piece)
    }

    /// Nothing more will come: what can be read in two ways is read in the one that gives a whole value. Says whether
    /// that turned out to be all so far with every delta.
    pub(in crate::reader) fn decide_manner(&mut self) -> bool {
        let Manner::Either(either) = std::mem::take(&mut self.manner) else { return false };
        let Either { joined, last, .. } = *either;
        let is_whole = Raw::parse(&last.get().decode()).is_ok();
        let rest = if is_whole { self.after_all_so_far(last.get()).unwrap_or_default().into() } else { joined };
        self.manner = if is_whole { Manner::Cumulative } else { Manner::Pieces };
        let _ = self.append(rest.get());
        is_whole
    }

    /// Whether every delta repeats what was before it.
    pub(in crate::reader) const fn is_cumulative(&self) -> bool {
        matches!(self.manner, Manner::Cumulative)
    }

    fn after_all_so_far<'e>(&self, piece: Escaped<'e>) -> Option<Escaped<'e>> {
        piece.strip_prefix(self.text())?.strip_prefix(self.text.half())
    }

    fn append<'e>(&mut self, piece: Escaped<'e>) -> Took<'e> {
        match self.balance.push(piece) {
            Some(end) if end < piece.len() => {
                self.push(piece.up_to(end));
                Took::After(piece.after(end))
            }
            _ => {
                self.push(piece);
                Took::All
            }
        }
    }

    /// Adds text as it is.
    pub(in crate::reader) fn push(&mut self, piece: Escaped<'_>) {
        self.text.push(piece);
    }

    /// Half a character has no more to wait for.
    pub(in crate::reader) fn release(&mut self) {
        self.text.finish();
    }
}

/// Whether two texts are the same value, whatever the white space and the order of members.
pub(in crate::reader) fn same(a: &str, b: &str) -> bool {
    if a.trim() == b.trim() {
        return true;
    }
    let both = Raw::parse(a).ok().zip(Raw::parse(b).ok());
    both.is_some_and(|(a, b)| a.as_str().len().max(b.as_str().len()) <= COMPARED && same_value(a, b))
}

fn same_value(a: Raw<'_>, b: Raw<'_>) -> bool {
    match (a.kind(), b.kind()) {
        (Kind::Object, Kind::Object) => {
            a.fields().count() == b.fields().count()
                && a.fields().all(|(name, value)| b.get(&name.decode()).is_some_and(|other| same_value(value, other)))
        }
        (Kind::Array, Kind::Array) => {
            a.elements().count() == b.elements().count()
                && a.elements().zip(b.elements()).all(|(a, b)| same_value(a, b))
        }
        (Kind::String, Kind::String) => a.text().map(Text::decode) == b.text().map(Text::decode),
        _ => a.as_str() == b.as_str(),
    }
}

/// Whether an object has all of another one, and more: a call that is still being written, shown whole each time.
pub(in crate::reader) fn has_grown(before: &str, after: &str) -> bool {
    let Some((before, after)) = Raw::parse(before).ok().zip(Raw::parse(after).ok()) else { return false };
    let grows = |a: Raw<'_>, b: Raw<'_>| match (a.text(), b.text()) {
        (Some(a), Some(b)) => b.decode().starts_with(&*a.decode()),
        _ => same_value(a, b),
    };
    after.as_str().len() <= COMPARED
        && before.fields().all(|(name, value)| after.get(&name.decode()).is_some_and(|later| grows(value, later)))
}
