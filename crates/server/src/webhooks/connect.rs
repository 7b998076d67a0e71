//! Connections to receivers. Whatever name a webhook's URL has, only a public address is connected to, unless the
//! configuration says otherwise: it is checked on the very addresses that the name led to just now.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use http::Uri;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::config::{TransportConfig, is_public, unbracket};
use crate::upstream::tls_config;

pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

type Fault = Box<dyn Error + Send + Sync>;

const NOT_PUBLIC: &str = "it is not at a public address; `allow_private: true` lets it be";

/// Opens connections to receivers, encrypted or not.
#[derive(Default)]
pub(super) struct Connector {
    /// Made when it is needed: it reads the system's certificates.
    tls: OnceLock<rustls::ClientConfig>,
}

impl Connector {
    pub(super) async fn connect(&self, to: Uri, allow_private: bool) -> Result<Stream, Fault> {
        // Who writes an address needs no name resolved.
        let literal: Option<IpAddr> = to.host().and_then(|host| unbracket(host).parse().ok());
        if !allow_private && (to.scheme_str() != Some("https") || literal.is_some_and(|address| !is_public(address))) {
            return Err(NOT_PUBLIC.into());
        }
        let mut http = HttpConnector::new_with_resolver(Resolver { names: GaiResolver::new(), allow_private });
        http.enforce_http(false);
        http.set_nodelay(true);
        if to.scheme_str() == Some("http") {
            return Ok(MaybeHttpsStream::Http(http.call(to).await?));
        }
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.tls()?);
        builder.https_only().enable_http1().wrap_connector(http).call(to).await
    }

    fn tls(&self) -> Result<rustls::ClientConfig, Fault> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls.clone());
        }
        let made = tls_config(&TransportConfig::default())?;
        Ok(self.tls.get_or_init(|| made).clone())
    }
}

/// The system's names, without what may not be connected to.
#[derive(Clone)]
struct Resolver {
    names: GaiResolver,
    allow_private: bool,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.names.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (found, allow_private) = (self.names.call(name), self.allow_private);
        Box::pin(async move {
            let found = found.await?.filter(|address| allow_private || is_public(address.ip()));
            let found: Vec<SocketAddr> = found.collect();
            if found.is_empty() { Err(io::Error::other(NOT_PUBLIC)) } else { Ok(found.into_iter()) }
        })
    }
}
