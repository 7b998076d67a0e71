//! A client of the socket, with manners; and how to begin without.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, HeaderName};
use serde_json::Value;
use testkit::grammar::{self, Stream};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::rig::Rig;
use crate::socket::Socket;

/// Nothing here takes as long; a test that waits for ever tells nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// What every request to become a WebSocket has.
const HEADERS: &[(&str, &str)] = &[
    ("host", "localhost"),
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

pub(crate) struct Client {
    pub(super) socket: WebSocketStream<TcpStream>,
}

impl Client {
    pub(crate) async fn connect(rig: &Rig) -> Self {
        Self::connect_to(rig.address).await
    }

    pub(crate) async fn connect_to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://{address}/v1/responses");
        let (socket, response) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        assert_eq!(response.status(), 101);
        Self { socket }
    }

    /// As a page of that origin does.
    pub(crate) async fn connect_from(rig: &Rig, origin: &str) -> Self {
        let stream = TcpStream::connect(rig.address).await.unwrap();
        let mut request = format!("ws://{}/v1/responses", rig.address).into_client_request().unwrap();
        request.headers_mut().insert("origin", origin.parse().unwrap());
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        Self { socket }
    }

    /// As a client that sends these headers; with those of the answer.
    pub(crate) async fn connect_as(rig: &Rig, headers: &[(&str, &str)]) -> (Self, HeaderMap) {
        let stream = TcpStream::connect(rig.address).await.unwrap();
        let mut request = format!("ws://{}/v1/responses", rig.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let (socket, response) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        (Self { socket }, response.headers().clone())
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.send(&message.to_string()).await;
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.send_message(Message::text(text)).await;
    }

    pub(crate) async fn send_message(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    /// The next text, as JSON.
    pub(crate) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.next_text().await).unwrap()
    }

    pub(crate) async fn next_text(&mut self) -> String {
        match self.receive().await {
            Some(Ok(Message::Text(text))) => text.to_string(),
            other => panic!("{other:?} instead of a text"),
        }
    }

    async fn receive(&mut self) -> Option<Result<Message, Error>> {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("nothing came");
            if !matches!(message, Some(Ok(Message::Ping(_) | Message::Pong(_)))) {
                return message;
            }
        }
    }

    /// How the server ended the connection; what it said before is skipped.
    pub(crate) async fn closed(&mut self) -> Option<(CloseCode, String)> {
        loop {
            match self.receive().await {
                Some(Ok(Message::Text(_))) => {}
                Some(Ok(Message::Close(frame))) => {
                    return frame.map(|frame| (frame.code, frame.reason.to_string()));
                }
                _ => return None,
            }
        }
    }

    /// One request, and its whole answer, which must keep the grammar.
    pub(crate) async fn respond(&mut self, message: &Value) -> Stream {
        self.say(message).await;
        self.stream().await
    }

    pub(crate) async fn stream(&mut self) -> Stream {
        let first = self.next().await;
        self.stream_after(first).await
    }

    /// The rest of a stream that began so.
    pub(crate) async fn stream_after(&mut self, first: Value) -> Stream {
        let mut events = vec![first];
        while !events.last().is_some_and(is_terminal) {
            events.push(self.next().await);
        }
        check(&events)
    }
}

pub(super) fn is_terminal(event: &Value) -> bool {
    let kind = event["type"].as_str().unwrap();
    assert!(kind != "error" || event.get("status").is_none(), "{event}");
    matches!(kind, "response.completed" | "response.failed" | "response.incomplete")
}

/// The events of one response, as the same stream over HTTP would have them.
pub(super) fn check(events: &[Value]) -> Stream {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let text: String = events.iter().map(event).collect();
    grammar::check(format!("{text}data: [DONE]\n\n").as_bytes()).unwrap_or_else(|problem| panic!("{problem}"))
}

/// Asks for a socket with these headers in place of the usual ones: the status, and the head of the answer.
pub(super) async fn handshake(rig: &Rig, changes: &[(&str, &str)]) -> (u16, String) {
    let (_, head) = raw(rig.address, changes).await;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{head}")), head)
}

/// The same, with the connection that it leaves.
pub(super) async fn raw(address: SocketAddr, changes: &[(&str, &str)]) -> (Socket, String) {
    let mut socket = Socket::connect(address).await;
    let kept = HEADERS.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let headers: Vec<String> = kept.chain(changes).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    socket.send(&format!("GET /v1/responses HTTP/1.1\r\n{}\r\n", headers.concat())).await;
    let answer = socket.read_until("\r\n\r\n").await;
    (socket, answer)
}
