//! A client without manners: bytes on a socket.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::net::TcpStream;

pub(crate) struct Socket(TcpStream);

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self(stream)
    }
}

impl Socket {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    pub(crate) async fn post(address: SocketAddr, body: &Value) -> Self {
        let mut socket = Self::connect(address).await;
        socket.send_post(body).await;
        socket
    }

    pub(crate) fn into_inner(self) -> TcpStream {
        self.0
    }

    /// A request to the endpoint, sent whole.
    pub(crate) async fn send_post(&mut self, body: &Value) {
        let body = body.to_string();
        let head = "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        self.send(&format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await;
    }

    /// Sends as much as the peer takes; a peer that has closed takes nothing.
    pub(crate) async fn send(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            self.0.writable().await.unwrap();
            match self.0.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// What arrives up to and with `needle`, or all of it when the peer closes before.
    pub(crate) async fn read_until(&mut self, needle: &str) -> String {
        let mut read = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&read);
            if text.contains(needle) {
                return text.into_owned();
            }
            self.0.readable().await.unwrap();
            match self.0.try_read_buf(&mut read) {
                Ok(0) => return String::from_utf8_lossy(&read).into_owned(),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return String::from_utf8_lossy(&read).into_owned();
                }
                _ => {}
            }
        }
    }

    /// What arrives until the peer closes.
    pub(crate) async fn read_to_end(&mut self) -> String {
        self.read_until("\u{0}never").await
    }
}
