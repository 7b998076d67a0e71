//! The requests of the MCP client, over the guarded connections.

use std::sync::Arc;

use ::mcp::{HttpClient, NotSent, Sending};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http::Request;
use http_body_util::BodyDataStream;

use crate::outbound::{Outbound, OutboundError, Reach};

/// Carries requests to addresses within its reach. At which ports they may be was decided with the address.
pub(super) struct Carrier {
    pub(super) outbound: Arc<Outbound>,
    pub(super) reach: Reach,
}

impl HttpClient for Carrier {
    fn send(&self, request: Request<Bytes>) -> Sending {
        let (outbound, reach) = (Arc::clone(&self.outbound), self.reach);
        Box::pin(async move {
            let response = outbound.send_to_any_port(request, reach).await.map_err(|error| not_sent(&error))?;
            Ok(response.map(|body| BodyDataStream::new(body).map_err(|error| not_sent(&error)).boxed()))
        })
    }
}

fn not_sent(error: &OutboundError) -> NotSent {
    NotSent(format!("The server cannot be reached: {error}."))
}
