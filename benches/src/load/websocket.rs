//! Idle `WebSocket`s: the handshake and nothing else. What is measured is the server's side of them.

use anyhow::{Context, Result, bail};
use http::{StatusCode, Uri};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer heads are no answer to a handshake.
const MOST: usize = 16 * 1024;

pub(super) async fn hold(url: &str, count: usize) -> Result<()> {
    let uri: Uri = url.parse()?;
    let mut held = Vec::with_capacity(count);
    for number in 0..count {
        match open(&uri).await.with_context(|| format!("WebSocket {number}"))? {
            Ok(socket) => held.push(socket),
            // Not by the floor, nor by a godex of before.
            Err(_) if number == 0 => break,
            Err(status) => bail!("WebSocket {number}: status {status}"),
        }
    }
    super::keep(held).await
}

/// The socket after its handshake, or the status of the refusal.
async fn open(uri: &Uri) -> Result<Result<TcpStream, StatusCode>> {
    let authority = uri.authority().context("no host in the URL")?;
    let mut socket = TcpStream::connect(authority.as_str()).await?;
    let request = format!(
        "GET {} HTTP/1.1\r\nhost: {authority}\r\nauthorization: {bearer}\r\nconnection: Upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        uri.path(),
        bearer = super::BEARER,
    );
    socket.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = socket.read_buf(&mut head).await?;
        if read == 0 || head.len() > MOST {
            bail!("no answer to the handshake");
        }
    }
    let status = StatusCode::from_bytes(head.get(9..12).context("no status")?)?;
    Ok(if status == StatusCode::SWITCHING_PROTOCOLS { Ok(socket) } else { Err(status) })
}
