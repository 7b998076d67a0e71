//! A build without the engine: no grammar can be used.

use crate::{Syntax, Undecided};

/// There is none.
#[derive(Clone)]
pub(crate) struct Compiled;

#[derive(Clone)]
pub(crate) struct Parser;

impl Compiled {
    pub(crate) fn new(_: Syntax, _: &str) -> Result<Self, Undecided> {
        Err(unavailable())
    }

    pub(crate) const fn bytes(&self) -> usize {
        size_of_val(self)
    }

    pub(crate) const fn parser(&self) -> Parser {
        let Self = self;
        Parser
    }
}

impl Parser {
    pub(crate) fn push(&mut self, _: &[u8]) -> (usize, Result<bool, Undecided>) {
        (0, self.may_end())
    }

    pub(crate) fn may_end(&mut self) -> Result<bool, Undecided> {
        let Self = self;
        Err(unavailable())
    }

    pub(crate) const fn ways(&self) -> usize {
        let Self = self;
        0
    }

    pub(crate) const fn expected(&mut self) -> Vec<String> {
        let Self = self;
        Vec::new()
    }
}

fn unavailable() -> Undecided {
    Undecided("this build of godex checks no grammars (feature `grammar`)".to_owned())
}
