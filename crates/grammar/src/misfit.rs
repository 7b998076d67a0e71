//! Where an input stops fitting, in words that a model can act on.

use std::fmt;

/// The first place at which an input cannot go on as it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// How many bytes of the input fit.
    pub at: usize,
    /// Where that is, both from 1; columns are characters.
    pub line: usize,
    pub column: usize,
    /// What is there; none at the end of the input.
    pub found: Option<char>,
    /// What could be there instead, where that is little.
    pub expected: Vec<String>,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        match self.found {
            Some(found) => write!(f, "{found:?} does not fit")?,
            None => f.write_str("the input ends too early")?,
        }
        for (index, expected) in self.expected.iter().enumerate() {
            f.write_str(if index == 0 { "; expected " } else { " or " })?;
            write!(f, "{expected:?}")?;
        }
        Ok(())
    }
}
