//! A client of HTTP/1.1 on one kept connection: small, and honest about what came and what did not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Longer than anything here takes; who waits that long has found a hang.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Http {
    address: SocketAddr,
    connection: BufReader<TcpStream>,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// How the body of an answer ends.
enum Framing {
    Length(usize),
    Chunks,
}

impl Http {
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { address, connection: BufReader::new(stream) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn get(&mut self, path: &str) -> Result<Answer> {
        self.call("GET", path, "")
    }

    pub(super) fn delete(&mut self, path: &str) -> Result<Answer> {
        self.call("DELETE", path, "")
    }

    pub(super) fn post(&mut self, path: &str, body: &Value) -> Result<Answer> {
        self.call("POST", path, &body.to_string())
    }

    /// The answer, whole.
    pub(super) fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let (status, framing) = self.begin(method, path, body)?;
        let mut text = String::new();
        match framing {
            Framing::Length(length) => {
                let mut bytes = vec![0; length];
                self.connection.read_exact(&mut bytes)?;
                text = String::from_utf8(bytes)?;
            }
            Framing::Chunks => {
                Chunks::new(&mut self.connection).read_to_string(&mut text)?;
            }
        }
        let body = serde_json::from_str(&text).with_context(|| format!("{method} {path}: no JSON in {text:?}"))?;
        Ok(Answer { status, body })
    }

    /// The stream that is asked for with this body.
    pub(super) fn stream(&mut self, path: &str, body: &Value, see: impl FnMut(Value) -> Result<bool>) -> Result<u16> {
        self.events("POST", path, &body.to_string(), see)
    }

    /// A stream that is there already.
    pub(super) fn follow(&mut self, path: &str, see: impl FnMut(Value) -> Result<bool>) -> Result<u16> {
        self.events("GET", path, "", see)
    }

    /// Gives each event to `see` as it comes, until the end of the stream or until `see` has seen enough. An answer
    /// other than a stream is given back.
    fn events(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        mut see: impl FnMut(Value) -> Result<bool>,
    ) -> Result<u16> {
        let (status, framing) = self.begin(method, path, body)?;
        if let Framing::Length(length) = framing {
            std::io::copy(&mut (&mut self.connection).take(length as u64), &mut std::io::sink())?;
            return Ok(status);
        }
        for line in BufReader::new(Chunks::new(&mut self.connection)).lines() {
            if let Some(data) = line?.strip_prefix("data: ").filter(|data| *data != "[DONE]")
                && see(serde_json::from_str(data)?)?
            {
                // The rest is on its way: this connection is of no more use.
                *self = Self::connect(self.address)?;
                return Ok(status);
            }
        }
        Ok(status)
    }

    fn begin(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Framing)> {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        let length = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        self.connection.get_mut().write_all(format!("{head}{length}{body}").as_bytes())?;
        let mut line = String::new();
        self.connection.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("the server is gone: {line:?}"))?;
        let mut framing = Framing::Length(0);
        loop {
            line.clear();
            ensure!(self.connection.read_line(&mut line)? > 0, "the server is gone");
            let header = line.trim().to_ascii_lowercase();
            if header.is_empty() {
                return Ok((status, framing));
            }
            match header.split_once(": ") {
                Some(("content-length", length)) => framing = Framing::Length(length.parse()?),
                Some(("transfer-encoding", "chunked")) => framing = Framing::Chunks,
                _ => {}
            }
        }
    }
}

/// The bytes within the chunks. An end without the last chunk is an error.
struct Chunks<'a> {
    connection: &'a mut BufReader<TcpStream>,
    left: usize,
    ended: bool,
}

impl<'a> Chunks<'a> {
    fn new(connection: &'a mut BufReader<TcpStream>) -> Self {
        Self { connection, left: 0, ended: false }
    }

    fn next(&mut self) -> std::io::Result<()> {
        let mut line = String::new();
        while line.trim().is_empty() {
            line.clear();
            if self.connection.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.left = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        if self.left == 0 {
            self.ended = true;
            self.connection.read_line(&mut line)?;
        }
        Ok(())
    }
}

impl Read for Chunks<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.ended {
            self.next()?;
        }
        // Behind the last chunk not even a look: it would wait for the next answer.
        if self.left == 0 {
            return Ok(0);
        }
        let wanted = buffer.len().min(self.left);
        let read = self.connection.read(&mut buffer[..wanted])?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read;
        Ok(read)
    }
}
