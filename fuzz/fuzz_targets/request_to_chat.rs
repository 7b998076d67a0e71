#![no_main]

#[path = "../bodies/request_to_chat.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
