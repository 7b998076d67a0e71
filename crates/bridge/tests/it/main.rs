//! The laws of the kernel: any chunks give a lawful stream, any split gives the same bytes, any number of answers gives
//! one response, streamed and not streamed agree, recorded exchanges keep their text and usage.
#![forbid(unsafe_code)]

#[cfg(test)]
mod allocations;
#[cfg(test)]
mod background;
#[cfg(test)]
mod citations;
#[cfg(test)]
mod content;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod details;
#[cfg(test)]
mod endings;
#[cfg(test)]
mod hosted;
#[cfg(test)]
mod hosted_items;
#[cfg(test)]
mod inputs;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod native;
#[cfg(test)]
mod quirks;
#[cfg(test)]
mod recordings;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod rounds;
#[cfg(test)]
mod run;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod sinks;
#[cfg(test)]
mod strict_types;
