//! Several processes on one database, as operators run them: the binary, killed, frozen and asked on either side. What one
//! of them has told its client is true on all of them, and a response ends once.
//!
//! A binary of its own, because it runs for longer than all other tests: `cargo xtask instances`, where `--full` is the
//! size of a release.
#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "it starts tasks that end with the test, and measures real time")]

mod cancels;
mod frozen;
mod keys;
mod killed;
mod load;
mod outages;
mod resumes;
mod streams;
mod turns;
mod upstream;
mod world;
