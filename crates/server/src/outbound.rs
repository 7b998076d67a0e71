//! Requests to whoever is no provider: MCP servers, search services, pages. One connection for each, to an address that was
//! checked when its name was resolved; dropped with whoever waits for it.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;

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

/// Opens connections.
#[derive(Debug, Default)]
pub(crate) struct Outbound {}

impl Outbound {
    /// Sends one request, to the very address that its host's name was resolved to and checked. Redirects are not followed.
    /// Has no deadline of its own: whoever waits has one.
    pub(crate) async fn send(
        &self,
        _request: Request<Bytes>,
        _reach: Reach,
    ) -> Result<Response<OutboundBody>, OutboundError> {
        Err(OutboundError::Refused("nothing is sent yet"))
    }
}
