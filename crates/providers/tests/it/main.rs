//! The goldens: recorded answers through the dialect of their spec, as data under `tests/golden`.
#![forbid(unsafe_code)]

#[cfg(test)]
mod compact;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod gist;
#[cfg(test)]
mod goldens;
#[cfg(test)]
mod pretty;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod run;
#[cfg(test)]
mod seed;
