//! Grammars from outside: what fits, what is mended, what it costs.
#![cfg(feature = "llguidance")]

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod definitions;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod patch;

/// As without a pattern as can be: every state of a lexer is seen sooner or later.
#[cfg(test)]
fn noise(length: usize) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & 1 == 0 { 'a' } else { 'b' }
    };
    std::iter::repeat_with(next).take(length).collect()
}
