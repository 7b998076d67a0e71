//! A client of the WebSocket at `/v1/responses`: one response after the other.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// Longer than anything here takes; who waits that long has found a hang.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Socket(WebSocket<TcpStream>);

impl Socket {
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        match tungstenite::client(format!("ws://{address}/v1/responses"), stream) {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(error) => bail!("no WebSocket: {error}"),
        }
    }

    /// The response at its end, or the error instead of one.
    pub(super) fn create(&mut self, request: &Value) -> Result<Value> {
        let mut message = request.clone();
        message["type"] = json!("response.create");
        self.0.send(Message::text(message.to_string()))?;
        loop {
            let Message::Text(text) = self.0.read()? else { continue };
            let event: Value = serde_json::from_str(&text)?;
            match event["type"].as_str() {
                Some("response.completed" | "response.failed" | "response.incomplete") => {
                    return Ok(event["response"].clone());
                }
                // What fails before there is a response has no number.
                Some("error") if event.get("sequence_number").is_none() => return Ok(event),
                _ => {}
            }
        }
    }
}
