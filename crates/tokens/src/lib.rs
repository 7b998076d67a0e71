//! How many tokens a chat request has: counted with the model's own tokenizer where it is known, or estimated from the
//! text and from what the provider said of earlier requests. No I/O, no clock.
#![forbid(unsafe_code)]
