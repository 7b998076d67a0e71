//! Probes of scripted providers over real sockets: what each of them does is known, so the report must say it.
#![forbid(unsafe_code)]

#[cfg(test)]
mod ends;
#[cfg(test)]
mod judged;
#[cfg(test)]
mod listed;
#[cfg(test)]
mod model;
#[cfg(test)]
mod native;
#[cfg(test)]
mod rig;
