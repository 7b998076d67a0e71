//! All integration tests of the command line, as one binary: each further one would link everything again.

#[cfg(test)]
mod cli;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod seed;
