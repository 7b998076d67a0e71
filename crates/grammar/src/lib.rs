//! Grammars of custom tools (`format: {type: grammar, syntax: lark | regex}`): whether an input fits, where it stops
//! fitting, and light repairs of patches. No I/O, no clock: everything is counted in steps and bytes.
//!
//! Definitions and inputs come from outside. Neither may cost more than [`limits`] say, whatever it is made of; what
//! would cost more cannot be decided, and whoever asks is told so. A grammar that was compiled never changes: each input
//! is read by a copy of it, so what one input costs is no burden to the next.
#![forbid(unsafe_code)]

#[cfg(feature = "llguidance")]
mod engine;
#[cfg(not(feature = "llguidance"))]
#[path = "no_engine.rs"]
mod engine;
mod misfit;
mod outline;
mod repair;

use std::fmt;

pub use misfit::Misfit;
pub use repair::{Repaired, repairs};

use engine::{Compiled, Parser};

/// What a grammar and an input may cost.
pub mod limits {
    /// The longest definition, in bytes.
    pub const DEFINITION: usize = 64 << 10;
    /// Rules, terminals and brackets of a definition: how deep the compiler may have to go.
    pub const DEPTH: usize = 4_000;
    /// What the compiler may spend on terminals; one unit is about 100 ns.
    pub const COMPILE_FUEL: u64 = 500_000;
    /// Symbols in all rules together.
    pub const SYMBOLS: usize = 50_000;
    /// The longest input, in bytes. All of what follows together comes to less than 64 MiB for one input.
    pub const INPUT: usize = 1 << 20;
    /// What one input may make the lexer spend on states that it has not seen yet; one unit is about 100 ns.
    pub const FUEL: u64 = 500_000;
    /// States that the lexer may have while it reads one input.
    pub const STATES: usize = 20_000;
    /// Ways to go on at one place of the input.
    pub const WAYS: usize = 1_000;
    /// The same, of all places of one input together: of a short one, and for each of its bytes; one way is about 1 µs.
    pub const FEW_WAYS: usize = 40_000;
    pub const WAYS_PER_BYTE: usize = 2;
    /// The same, however long it is.
    pub const ALL_WAYS: usize = 600_000;
    /// The same for a grammar with right recursion, where all that was open may end at one place.
    pub const ALL_WAYS_RIGHT: usize = 20_000;
}

/// How a definition is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Syntax {
    Lark,
    Regex,
}

/// Why it cannot be said whether an input fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided(pub String);

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What can be said of the beginning of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It may become one that fits.
    Fits,
    /// It cannot.
    Misfit,
    Undecided,
}

/// What was found out about a whole input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Fits,
    Misfit(Misfit),
    Undecided(Undecided),
}

/// A compiled grammar.
#[derive(Clone)]
pub struct Grammar {
    compiled: Compiled,
    /// The marks of a patch are in it.
    is_patch: bool,
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammar")
            .field("bytes", &self.bytes())
            .field("is_patch", &self.is_patch)
            .finish_non_exhaustive()
    }
}

impl Grammar {
    /// Compiles a definition, on a thread with a stack for all that [`limits`] allow; this one waits.
    pub fn compile(syntax: Syntax, definition: &str) -> Result<Self, Undecided> {
        outline::check(syntax, definition)?;
        let compiled = Compiled::new(syntax, definition)?;
        Ok(Self { compiled, is_patch: repair::is_patch(definition) })
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.compiled.bytes()
    }

    /// Whether it is one of patches, of which some can be mended.
    pub const fn is_patch(&self) -> bool {
        self.is_patch
    }

    /// Begins to read an input.
    pub fn read(&self) -> Reading {
        Reading { parser: self.compiled.parser(), fits: 0, line: 1, column: 1, stopped: None }
    }

    /// Whether a whole input fits.
    pub fn check(&self, input: &str) -> Verdict {
        let mut reading = self.read();
        reading.push(input);
        reading.finish()
    }

    /// The input with as little mended as makes it fit: the grammar of a patch, and the marks, fences and line ends of
    /// the patch only. It begins with what was `sent` already.
    pub fn repair(&self, input: &str, sent: &str) -> Option<Repaired> {
        self.repair_counted(input, sent).0
    }

    /// The same, and how many ways to go on were looked at.
    pub fn repair_counted(&self, input: &str, sent: &str) -> (Option<Repaired>, usize) {
        let mut ways = 0;
        let candidates = if self.is_patch { repairs(input) } else { Vec::new() };
        let fits = candidates.into_iter().filter(|candidate| candidate.input.starts_with(sent)).find(|candidate| {
            let mut reading = self.read();
            reading.push(&candidate.input);
            ways += reading.ways();
            reading.finish() == Verdict::Fits
        });
        (fits, ways)
    }
}

/// An input that is being read.
#[derive(Clone)]
pub struct Reading {
    parser: Parser,
    /// How many bytes of the input fit.
    fits: usize,
    /// Where that is.
    line: usize,
    column: usize,
    stopped: Option<Stopped>,
}

/// Why nothing more is read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stopped {
    Misfit(Misfit),
    Undecided(Undecided),
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("fits", &self.fits).field("stopped", &self.stopped).finish_non_exhaustive()
    }
}

impl Reading {
    /// Reads on.
    pub fn push(&mut self, text: &str) -> Progress {
        if self.stopped.is_none() {
            self.read(text);
        }
        match self.stopped {
            None => Progress::Fits,
            Some(Stopped::Misfit(_)) => Progress::Misfit,
            Some(Stopped::Undecided(_)) => Progress::Undecided,
        }
    }

    fn read(&mut self, text: &str) {
        let room = limits::INPUT.saturating_sub(self.fits);
        let within = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        let (read, found) = self.parser.push(within.as_bytes());
        self.pass(text.get(..text.floor_char_boundary(read)).unwrap_or_default());
        self.stopped = match found {
            Err(undecided) => Some(Stopped::Undecided(undecided)),
            Ok(true) if within.len() < text.len() => {
                let why = format!("the input is longer than {} bytes", limits::INPUT);
                Some(Stopped::Undecided(Undecided(why)))
            }
            Ok(true) => None,
            Ok(false) => {
                let found = text.get(text.floor_char_boundary(read)..).unwrap_or_default().chars().next();
                Some(Stopped::Misfit(self.misfit(found)))
            }
        };
    }

    /// How many ways to go on were looked at so far: what it has cost.
    pub fn ways(&self) -> usize {
        self.parser.ways()
    }

    /// About how many there will be in so many bytes more, if they are like those so far.
    pub fn ways_ahead(&self, bytes: usize) -> usize {
        self.ways().saturating_mul(bytes) / (self.fits + 16)
    }

    /// Nothing more comes.
    pub fn finish(mut self) -> Verdict {
        match self.stopped.take() {
            Some(Stopped::Misfit(misfit)) => Verdict::Misfit(misfit),
            Some(Stopped::Undecided(undecided)) => Verdict::Undecided(undecided),
            None => match self.parser.may_end() {
                Ok(true) => Verdict::Fits,
                Ok(false) => Verdict::Misfit(self.misfit(None)),
                Err(undecided) => Verdict::Undecided(undecided),
            },
        }
    }

    fn pass(&mut self, text: &str) {
        self.fits += text.len();
        for c in text.chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
    }

    fn misfit(&mut self, found: Option<char>) -> Misfit {
        let expected = self.parser.expected();
        Misfit { at: self.fits, line: self.line, column: self.column, found, expected }
    }
}
