//! What a process writes, a message to a line. One that is longer than may be read is left out by whoever reads lines, and
//! the call that waits for it would wait for ever: so an error with its id follows it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// So much of a line is looked through for its id.
const HEAD: usize = 512;

#[derive(Debug)]
pub(crate) struct Lines<R> {
    read: R,
    largest: usize,
    /// Of the line that is being read: how it begins, and how long it is so far.
    head: Vec<u8>,
    length: usize,
    /// What is to be given on, and how much of it was.
    out: Vec<u8>,
    given: usize,
}

impl<R> Lines<R> {
    pub(crate) const fn new(read: R, largest: usize) -> Self {
        Self { read, largest, head: Vec::new(), length: 0, out: Vec::new(), given: 0 }
    }

    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.out.extend_from_slice(piece);
            self.length += piece.len();
            let room = HEAD.saturating_sub(self.head.len()).min(piece.len());
            self.head.extend_from_slice(&piece[..room]);
            if piece.ends_with(b"\n") {
                if self.length > self.largest
                    && let Some(id) = id(&self.head)
                {
                    self.out.extend_from_slice(refusal(&id, self.largest).as_bytes());
                }
                self.head.clear();
                self.length = 0;
            }
        }
    }
}

/// The id of a message that begins so, as JSON.
fn id(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let rest = head.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    if let Some(text) = rest.strip_prefix('"') {
        let (text, _) = text.split_once('"')?;
        return (!text.contains('\\')).then(|| format!("\"{text}\""));
    }
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

fn refusal(id: &str, largest: usize) -> String {
    let message = format!("The answer of the server is larger than {largest} bytes.");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":\"{message}\"}}}}\n")
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.given == this.out.len() {
            this.out.clear();
            this.given = 0;
            let mut bytes = [0; 8 << 10];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.read).poll_read(context, &mut read))?;
            this.take(read.filled());
        }
        let rest = &this.out[this.given..];
        let given = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..given]);
        this.given += given;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_follows_what_is_too_long() {
        let error = |id: &str| refusal(id, 40);
        for (written, more) in [
            ("{\"id\":1,\"result\":{}}\n", String::new()),
            ("{\"jsonrpc\":\"2.0\", \"id\" : 7,\"result\":\"aaaaaaaaaaaaaaaa\"}\n", error("7")),
            ("{\"id\":\"a-b\",\"result\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}\n", error("\"a-b\"")),
            ("{\"method\":\"notifications/x\",\"params\":\"aaaaaaaaaaaaaaaaaaaaaaa\"}\n", String::new()),
        ] {
            for cut in 0..written.len() {
                let mut lines = Lines::new(io::empty(), 40);
                lines.take(&written.as_bytes()[..cut]);
                lines.take(&written.as_bytes()[cut..]);
                lines.take(b"{\"id\":2}\n");
                assert_eq!(String::from_utf8(lines.out).unwrap(), format!("{written}{more}{{\"id\":2}}\n"), "{cut}");
            }
        }
    }
}
