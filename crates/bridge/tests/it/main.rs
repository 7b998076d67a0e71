//! The laws of the kernel: any chunks give a lawful stream, any split gives the same bytes, streamed and not
//! streamed agree, recorded exchanges keep their text and usage.

mod allocations;
mod endings;
mod laws;
mod recordings;
mod run;
mod schemas;
