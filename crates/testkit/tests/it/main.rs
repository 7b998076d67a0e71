//! The laws of the project, as tests.
#![forbid(unsafe_code)]
