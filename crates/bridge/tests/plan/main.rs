//! The request side: tables of what each thing becomes on each dialect, and laws that hold for any of them.
#![forbid(unsafe_code)]
#![cfg_attr(test, expect(clippy::needless_pass_by_value, reason = "`json!` literals are handed over"))]

#[cfg(test)]
mod building;
#[cfg(test)]
mod codex;
#[cfg(test)]
mod compaction;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod forward;
#[cfg(test)]
mod growth;
#[cfg(test)]
mod hosted;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod links;
#[cfg(test)]
mod make;
#[cfg(test)]
mod marks;
#[cfg(test)]
mod prefix;
#[cfg(test)]
mod reasoning;
#[cfg(test)]
mod run;
#[cfg(test)]
mod switched;
#[cfg(test)]
mod tables;
