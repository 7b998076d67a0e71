//! Connections to one origin: names, TCP, proxies and TLS by the crates that know them.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::config::{Proxy, TransportConfig};

/// A connected socket, encrypted or not.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

type Fault = Box<dyn Error + Send + Sync>;

/// Opens connections to one origin. TLS is set up only for those that speak it.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    /// Where a connection leads; for a proxy that forwards plain HTTP, the proxy.
    origin: Uri,
    deadline: Duration,
    road: Road,
    http2: bool,
}

#[derive(Clone)]
enum Road {
    Http(HttpConnector),
    Https(HttpsConnector<HttpConnector>),
    /// TLS through a tunnel that a proxy opened.
    Tunnelled(HttpsConnector<Tunnel<HttpConnector>>),
}

impl std::fmt::Debug for Road {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Http(_) => "http",
            Self::Https(_) => "https",
            Self::Tunnelled(_) => "https through a proxy",
        })
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("no connection within {0:?}")]
    TooSlow(Duration),
    #[error(transparent)]
    Failed(Fault),
    #[error("it does not speak HTTP/2, which `http2: true` asks for")]
    NotHttp2,
}

impl Connector {
    pub(super) fn new(origin: Uri, deadline: Duration, transport: &TransportConfig) -> Result<Self, Fault> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(Duration::from_secs(30)));
        let http2 = transport.http2;
        let (origin, road) = match (origin.scheme_str(), &transport.proxy) {
            (Some("https"), None) => (origin, Road::Https(over_tls(http, transport)?)),
            (Some("https"), Some(proxy)) => {
                let mut tunnel = Tunnel::new(address(proxy)?, http);
                if let Some(authorization) = &proxy.authorization {
                    tunnel = tunnel.with_auth(HeaderValue::try_from(authorization.expose())?);
                }
                (origin, Road::Tunnelled(over_tls(tunnel, transport)?))
            }
            (_, None) => (origin, Road::Http(http)),
            (_, Some(proxy)) => (address(proxy)?, Road::Http(http)),
        };
        Ok(Self { origin, deadline, road, http2 })
    }

    pub(super) async fn connect(&self) -> Result<Stream, ConnectError> {
        let connecting = async {
            match self.road.clone() {
                Road::Http(mut http) => match http.call(self.origin.clone()).await {
                    Ok(stream) => Ok(MaybeHttpsStream::Http(stream)),
                    Err(error) => Err(error.into()),
                },
                Road::Https(mut https) => https.call(self.origin.clone()).await,
                Road::Tunnelled(mut https) => https.call(self.origin.clone()).await,
            }
        };
        let stream = match tokio::time::timeout(self.deadline, connecting).await {
            Ok(connected) => connected.map_err(ConnectError::Failed)?,
            Err(_) => return Err(ConnectError::TooSlow(self.deadline)),
        };
        match &stream {
            MaybeHttpsStream::Https(tls) if self.http2 => match tls.inner().get_ref().1.alpn_protocol() {
                Some(b"h2") => Ok(stream),
                _ => Err(ConnectError::NotHttp2),
            },
            _ => Ok(stream),
        }
    }
}

fn address(proxy: &Proxy) -> Result<Uri, Fault> {
    Ok(format!("http://{}", proxy.authority).parse()?)
}

/// The system's roots and those of the configuration. Certificates are always checked.
pub(crate) fn tls_config(transport: &TransportConfig) -> Result<ClientConfig, Fault> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let extra = transport.ca.iter().flat_map(|roots| roots.certificates.iter().cloned());
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider))?;
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

fn over_tls<C>(connector: C, transport: &TransportConfig) -> Result<HttpsConnector<C>, Fault> {
    let config = tls_config(transport)?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_only();
    Ok(if transport.http2 {
        builder.enable_http2().wrap_connector(connector)
    } else {
        builder.enable_http1().wrap_connector(connector)
    })
}
