//! Connections to one origin: names, TCP and TLS by the crates that know them.

use std::error::Error;
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// A connected socket, encrypted or not.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens connections to one origin. TLS is set up only for those that speak it.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    origin: Uri,
    deadline: Duration,
    scheme: Scheme,
}

#[derive(Clone)]
enum Scheme {
    Http(HttpConnector),
    Https(HttpsConnector<HttpConnector>),
}

impl std::fmt::Debug for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Http(_) => "http",
            Self::Https(_) => "https",
        })
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("no connection within {0:?}")]
    TooSlow(Duration),
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl Connector {
    pub(super) fn new(origin: Uri, deadline: Duration) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(Duration::from_secs(30)));
        let scheme = match origin.scheme_str() {
            Some("https") => {
                let tls = HttpsConnectorBuilder::new().try_with_platform_verifier()?;
                Scheme::Https(tls.https_only().enable_http1().wrap_connector(http))
            }
            _ => Scheme::Http(http),
        };
        Ok(Self { origin, deadline, scheme })
    }

    pub(super) async fn connect(&self) -> Result<Stream, ConnectError> {
        let connecting = async {
            match self.scheme.clone() {
                Scheme::Http(mut http) => match http.call(self.origin.clone()).await {
                    Ok(stream) => Ok(MaybeHttpsStream::Http(stream)),
                    Err(error) => Err(error.into()),
                },
                Scheme::Https(mut https) => https.call(self.origin.clone()).await,
            }
        };
        match tokio::time::timeout(self.deadline, connecting).await {
            Ok(connected) => connected.map_err(ConnectError::Failed),
            Err(_) => Err(ConnectError::TooSlow(self.deadline)),
        }
    }
}
