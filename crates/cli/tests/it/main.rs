//! All integration tests of the command line, as one binary: each further one would link everything again.

#[cfg(test)]
#[cfg(unix)]
mod admin;
#[cfg(test)]
#[cfg(unix)]
mod backup;
#[cfg(test)]
#[cfg(unix)]
mod canaries;
#[cfg(test)]
mod cli;
#[cfg(test)]
#[cfg(unix)]
mod codex;
#[cfg(test)]
mod docs;
#[cfg(test)]
#[cfg(unix)]
mod doctor;
#[cfg(test)]
#[cfg(unix)]
mod encryption;
#[cfg(test)]
#[cfg(unix)]
mod explain;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod files;
#[cfg(test)]
#[cfg(unix)]
mod frozen;
#[cfg(test)]
mod import;
#[cfg(test)]
#[cfg(unix)]
mod init;
#[cfg(test)]
#[cfg(unix)]
mod log_files;
#[cfg(test)]
#[cfg(unix)]
mod mcp;
#[cfg(test)]
mod older_files;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod page;
#[cfg(test)]
#[cfg(all(target_os = "linux", feature = "pdf"))]
mod pdfs;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod search;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod signals;
#[cfg(test)]
#[cfg(unix)]
mod traces;
#[cfg(test)]
mod webhooks;
