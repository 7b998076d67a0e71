//! Requests to whoever is no provider: MCP servers, search services, pages, receivers of webhooks. One connection for each,
//! to an address that was checked when its name was resolved; driven by whoever reads the answer, and closed when that is
//! dropped. Knows no proxy: behind one, the address could not be checked. Follows no redirect, keeps no cookie.

mod dial;

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use crate::upstream::Link;

/// For names, connection and TLS.
const CONNECT: Duration = Duration::from_secs(5);

/// What is wrong with an address that a name leads to, or that is written instead of one.
pub(crate) const NOT_PUBLIC: &str = "it is not at a public address";

/// Which addresses may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only public ones: whoever named it is not trusted.
    Public,
    /// Wherever the operator said.
    Anywhere,
}

/// Why there is no answer, or no more of it. Never says more of an address than its host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutboundError {
    #[error("{0}")]
    Refused(&'static str),
    #[error("no connection: {0}")]
    Connect(String),
    #[error("the connection broke off: {0}")]
    Broken(String),
}

/// The body of an answer. Dropping it closes the connection.
pub(crate) type OutboundBody = BoxBody<Bytes, OutboundError>;

/// A network other than this machine's: tests have one, in which public addresses are at hand. Nothing that can be
/// configured leads here.
pub trait Network: std::fmt::Debug + Send + Sync {
    /// What a name leads to now.
    fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>>;
    /// Where it is connected to instead of this address, which has passed.
    fn reach(&self, address: SocketAddr) -> SocketAddr;
}

/// Opens connections.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    network: OnceLock<Arc<dyn Network>>,
    /// Made when it is needed: it reads the system's certificates.
    tls: OnceLock<Arc<rustls::ClientConfig>>,
}

impl Outbound {
    /// From now on in this network. Only the first one counts.
    pub(crate) fn among(&self, network: Arc<dyn Network>) {
        self.network.get_or_init(|| network);
    }

    /// Sends one request, to the very address that its host's name was resolved to and checked. The URI is absolute; the
    /// host's header is ours to say. Redirects are not followed. A connection is waited for for five seconds; beyond that
    /// there is no deadline: whoever waits has one.
    ///
    /// What is not trusted gets the ports of the web and no others: nobody else is to hear what it has to say.
    pub(crate) async fn send(
        &self,
        request: Request<Bytes>,
        reach: Reach,
    ) -> Result<Response<OutboundBody>, OutboundError> {
        if reach == Reach::Public && !matches!(request.uri().port_u16(), None | Some(80 | 443)) {
            return Err(OutboundError::Refused("only the ports 80 and 443 may be connected to"));
        }
        self.send_to_any_port(request, reach).await
    }

    /// The same, for addresses whose port the operator has written.
    pub(crate) async fn send_to_any_port(
        &self,
        mut request: Request<Bytes>,
        reach: Reach,
    ) -> Result<Response<OutboundBody>, OutboundError> {
        let to = std::mem::take(request.uri_mut());
        prepare(&mut request, &to)?;
        let connecting = Box::pin(self.connect(&to, reach));
        let stream = tokio::time::timeout(CONNECT, connecting).await.unwrap_or_else(|_| {
            Err(OutboundError::Connect(format!("there is none within {} seconds", CONNECT.as_secs())))
        })?;
        let broken = |error| OutboundError::Broken(dial::innermost(&error));
        let mut link = Link::open(stream).await.map_err(broken)?;
        let answer = link.exchange(request.map(Full::new)).await.map_err(broken)?;
        Ok(answer.map(|incoming| Answer { incoming, link }.boxed()))
    }
}

/// Makes it a request for the path at this host.
fn prepare(request: &mut Request<Bytes>, to: &Uri) -> Result<(), OutboundError> {
    let Some(authority) = to.authority() else {
        return Err(OutboundError::Refused("its address has no host"));
    };
    if authority.as_str().contains('@') {
        return Err(OutboundError::Refused("its address has a user in it"));
    }
    let host = HeaderValue::try_from(authority.as_str());
    let host = host.map_err(|_| OutboundError::Refused("its address has no host that can be asked for"))?;
    request.headers_mut().insert(header::HOST, host);
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let path = to.path_and_query().map_or("/", |path| path.as_str());
    // A path alone, or one with a query alone, is a URI.
    let path = if path.starts_with('/') { path.parse() } else { format!("/{path}").parse() };
    *request.uri_mut() = path.map_err(|_| OutboundError::Refused("its address has no path that can be asked for"))?;
    Ok(())
}

/// The body of an answer, and the connection that it comes by.
#[derive(Debug)]
struct Answer {
    incoming: Incoming,
    link: Link,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = OutboundError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, OutboundError>>> {
        let Self { incoming, link } = self.get_mut();
        link.poll_data(incoming, context).map(|data| match data {
            Ok(data) => data.map(|data| Ok(Frame::data(data))),
            Err(error) => Some(Err(OutboundError::Broken(dial::innermost(&error)))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

#[cfg(test)]
mod tests;
