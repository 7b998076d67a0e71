//! Why the server does not start, or does not take a new configuration.

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}")]
    Bind { address: String, source: std::io::Error },
    #[error("provider {name}: {message}")]
    Provider { name: String, message: String },
    #[error("cannot read or create the key {path}")]
    SealKey { path: std::path::PathBuf, source: std::io::Error },
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error("server.tls: {0}")]
    Tls(#[from] crate::config::TlsProblem),
    #[error("this process gets no name")]
    Worker(#[source] store::Error),
    #[error("the API keys cannot be read")]
    Access(#[source] store::Error),
    /// Beyond this machine without anything that says who may ask.
    #[error(
        "server.host {host}: without API keys, anybody who reaches this address could use the providers' keys; make one with \
         `godex keys create NAME`, or listen on 127.0.0.1, or set `server.allow_unauthenticated: true` if something else \
         guards the port"
    )]
    Unguarded { host: String },
    /// A running server was given a configuration that differs in what only a start reads.
    #[error("the section `{section}` cannot change while the server runs")]
    NeedsRestart { section: &'static str },
}
