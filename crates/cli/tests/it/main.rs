//! All integration tests of the command line, as one binary: each further one would link everything again.

#[cfg(test)]
mod cli;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod seed;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod signals;
