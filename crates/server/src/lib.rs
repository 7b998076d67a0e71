//! HTTP: the accept loop, the endpoints, the turn driver, upstream calls.
#![forbid(unsafe_code)]

use std::future::Future;
use std::net::SocketAddr;

pub mod config;

/// Stands in for the server until it exists.
#[derive(Debug)]
pub struct Server {
    listener: tokio::net::TcpListener,
    address: SocketAddr,
}

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}")]
    Listen { address: String, source: std::io::Error },
}

impl Server {
    pub async fn bind(config: config::Config) -> Result<Self, StartError> {
        let address = config.server.address();
        let failed = |source| StartError::Listen { address: address.clone(), source };
        let listener = tokio::net::TcpListener::bind(&address).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address: local })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), StartError> {
        shutdown.await;
        drop(self.listener);
        Ok(())
    }
}
