//! The laws of the project, as tests: who may use whom, what the kernel may reach, and tidiness.
#![forbid(unsafe_code)]

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod kernel;
#[cfg(test)]
mod modules;
#[cfg(test)]
mod references;
#[cfg(test)]
mod source;
#[cfg(test)]
mod tidy;
