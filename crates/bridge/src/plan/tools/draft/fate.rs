//! What becomes of a value, and what its schema says no more for that.

use std::borrow::Cow;

use wire::json::{Cursor, Raw};

/// What is not said any more. Each loses what those before it lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loss {
    /// The same is said in other words.
    Nothing,
    /// More is allowed.
    Limits,
    /// Nothing is said of some properties or elements any more: what is said of all others would forbid them.
    Places,
}

/// What becomes of a member, or of an element.
#[derive(Debug)]
pub(super) enum Fate {
    Stays,
    Goes(Loss),
    Becomes(Cow<'static, str>, Loss),
}

impl Fate {
    pub(super) const fn stays_if(good: bool, loss: Loss) -> Self {
        if good { Self::Stays } else { Self::Goes(loss) }
    }

    pub(super) const fn stays(&self) -> bool {
        matches!(self, Self::Stays)
    }

    pub(super) const fn loss(&self) -> Loss {
        match self {
            Self::Stays => Loss::Nothing,
            Self::Goes(loss) | Self::Becomes(_, loss) => *loss,
        }
    }

    /// Of a schema of parts of a value: which of their own parts it knows is nothing to the whole.
    pub(super) fn of_parts(self) -> Self {
        match self {
            Self::Becomes(text, loss) => Self::Becomes(text, loss.min(Loss::Limits)),
            Self::Stays | Self::Goes(_) => self,
        }
    }
}

/// Reads a list, with what becomes of each element.
pub(super) fn list<'s>(cursor: &mut Cursor<'s>, mut fate: impl FnMut(&mut Cursor<'s>) -> Fate) -> Fate {
    let mut elements: Vec<(Raw<'s>, Fate)> = Vec::new();
    cursor.enter();
    while cursor.more() {
        let start = cursor.start();
        let fate = fate(cursor);
        elements.push((cursor.since(start), fate));
    }
    if elements.iter().all(|(_, fate)| fate.stays()) {
        return Fate::Stays;
    }
    let loss = elements.iter().map(|(_, fate)| fate.loss()).max().unwrap_or(Loss::Nothing);
    let kept = elements.iter().filter_map(|(element, fate)| match fate {
        Fate::Stays => Some(element.as_str()),
        Fate::Goes(_) => None,
        Fate::Becomes(text, _) => Some(text),
    });
    Fate::Becomes(format!("[{}]", kept.collect::<Vec<_>>().join(",")).into(), loss)
}
