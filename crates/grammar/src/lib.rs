//! Grammars of custom tools (`format: {type: grammar, syntax: lark | regex}`): whether an input fits, where it stops
//! fitting, and light repairs of patches. No I/O, no clock: everything is counted in steps and bytes.
#![forbid(unsafe_code)]
