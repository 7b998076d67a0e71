//! The client against servers of both eras.
#![forbid(unsafe_code)]

#[cfg(test)]
mod calls;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod help;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod streams;
