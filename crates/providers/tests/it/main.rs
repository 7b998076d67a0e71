//! The specs as they are: which goldens they have, what is known of four of them, and recorded answers through them.
#![forbid(unsafe_code)]

#[cfg(test)]
mod complete;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod corrections;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod read;
#[cfg(test)]
mod recorded;
#[cfg(test)]
#[path = "../support/specs.rs"]
mod specs;
#[cfg(test)]
#[path = "../support/turn.rs"]
mod turn;
