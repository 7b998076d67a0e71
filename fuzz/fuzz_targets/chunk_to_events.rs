#![no_main]

#[path = "../bodies/chunk_to_events.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
