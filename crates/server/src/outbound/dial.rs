//! The connection: a name is resolved once, every address that it leads to is looked at, and one of these is connected to.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::{NOT_PUBLIC, Outbound, OutboundError, Reach};
use crate::config::{TransportConfig, is_public, unbracket};
use crate::upstream::tls_config;

pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

type Fault = Box<dyn Error + Send + Sync>;

/// So many of a name's addresses are of use.
const MOST_ADDRESSES: usize = 8;

impl Outbound {
    /// Connects to the host of an absolute URI.
    pub(super) async fn connect(&self, to: &Uri, reach: Reach) -> Result<Stream, OutboundError> {
        let (Some(scheme @ ("http" | "https")), Some(host)) = (to.scheme_str(), to.host()) else {
            return Err(OutboundError::Refused("its address must begin with https:// or http://"));
        };
        let port = to.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        let found = self.resolve(unbracket(host)).await.map_err(|error| failed(&error))?;
        // One of several that leads inside is a trap, or a mistake of the sort that traps are made of.
        if reach == Reach::Public && !found.iter().all(|address| is_public(*address)) {
            return Err(OutboundError::Refused(NOT_PUBLIC));
        }
        let addresses = found.into_iter().take(MOST_ADDRESSES).map(|address| self.way(address, port)).collect();
        let stream = tcp(addresses).await.map_err(|fault| failed(&*fault))?;
        if scheme == "http" {
            return Ok(MaybeHttpsStream::Http(stream));
        }
        let tls = self.tls().map_err(|fault| failed(&*fault))?;
        let builder = HttpsConnectorBuilder::new().with_tls_config(rustls::ClientConfig::clone(&tls));
        let mut https = builder.https_only().enable_http1().wrap_connector(Connected(Some(stream)));
        https.call(to.clone()).await.map_err(|fault| failed(&*fault))
    }

    /// All that a host leads to. Who writes an address needs no name resolved; in its odd spellings the resolver knows it.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let found: Vec<IpAddr> = match self.network.get() {
            Some(network) => network.resolve(host)?,
            None => tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect(),
        };
        if found.is_empty() { Err(io::Error::other("its name leads nowhere")) } else { Ok(found) }
    }

    fn way(&self, address: IpAddr, port: u16) -> SocketAddr {
        let address = SocketAddr::new(address, port);
        self.network.get().map_or(address, |network| network.reach(address))
    }

    fn tls(&self) -> Result<Arc<rustls::ClientConfig>, Fault> {
        if let Some(tls) = self.tls.get() {
            return Ok(Arc::clone(tls));
        }
        let made = Arc::new(tls_config(&TransportConfig::default())?);
        Ok(Arc::clone(self.tls.get_or_init(|| made)))
    }
}

/// Connects to whichever of them answers.
async fn tcp(addresses: Vec<SocketAddr>) -> Result<TokioIo<TcpStream>, Fault> {
    let mut http = HttpConnector::new_with_resolver(Resolved(addresses));
    http.set_nodelay(true);
    // The name is for nobody: what it leads to has been decided, ports included.
    Ok(http.call(Uri::from_static("http://resolved/")).await?)
}

/// What a name was resolved to.
#[derive(Clone)]
struct Resolved(Vec<SocketAddr>);

impl Service<Name> for Resolved {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _name: Name) -> Self::Future {
        std::future::ready(Ok(std::mem::take(&mut self.0).into_iter()))
    }
}

/// A connection that is there, for whoever would open one to speak TLS over it.
struct Connected(Option<TokioIo<TcpStream>>);

impl Service<Uri> for Connected {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _to: Uri) -> Self::Future {
        std::future::ready(self.0.take().ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}

fn failed(fault: &(dyn Error + 'static)) -> OutboundError {
    OutboundError::Connect(innermost(fault))
}

/// The cause at the bottom; what wraps it is about our own machinery.
pub(super) fn innermost(fault: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(fault), |&cause| cause.source()).last().unwrap_or(fault).to_string()
}
