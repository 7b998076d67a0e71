//! A provider that does what the last message asks for, counts who asked what how often, and sees when connections end.
//! The message is words: `tag=T n=20 pause=5 end=ok`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::spawn;

/// One call of it.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The key that was sent: each instance has its own.
    pub(crate) instance: String,
    pub(crate) began: Instant,
    pub(crate) ended: Option<(End, Instant)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All was said.
    Whole,
    /// The peer hung up before that.
    HungUp,
}

#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    calls: Arc<Mutex<HashMap<String, Vec<Call>>>>,
}

/// What is asked for.
struct Wish {
    tag: String,
    deltas: usize,
    pause: Duration,
    end: String,
    streamed: bool,
    /// How many messages came.
    messages: usize,
    instance: String,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let upstream = Self { address: listener.local_addr().unwrap(), calls: Arc::default() };
        let shared = upstream.clone();
        spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                spawn(async move { drop(shared.serve(stream).await) });
            }
        });
        upstream
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Vec<Call>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls with this tag, in order.
    pub(crate) fn calls(&self, tag: &str) -> Vec<Call> {
        self.all().get(tag).cloned().unwrap_or_default()
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::new();
        loop {
            let Some(wish) = read(&mut stream, &mut buffer).await? else { return Ok(()) };
            let index = {
                let mut all = self.all();
                let calls = all.entry(wish.tag.clone()).or_default();
                calls.push(Call { instance: wish.instance.clone(), began: Instant::now(), ended: None });
                calls.len() - 1
            };
            let (mut reader, mut writer) = stream.split();
            let end = tokio::select! {
                biased;
                () = hung_up(&mut reader) => End::HungUp,
                said = wish.play(&mut writer) => if said.is_ok() { End::Whole } else { End::HungUp },
            };
            if let Some(call) = self.all().get_mut(&wish.tag).and_then(|calls| calls.get_mut(index)) {
                call.ended = Some((end, Instant::now()));
            }
            if end == End::HungUp || wish.end == "cut" {
                return Ok(());
            }
        }
    }
}

/// Nothing comes while an answer is on its way, but its end.
async fn hung_up(reader: &mut (impl AsyncRead + Unpin)) {
    let _ = reader.read(&mut [0]).await;
}

async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Wish>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            if buffer.len() >= end + 4 + length {
                // Who asks for its models sends none.
                let body: Value = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or_default();
                let instance = header("authorization").unwrap_or_default().replace("bearer ", "");
                buffer.drain(..end + 4 + length);
                return Ok(Some(Wish::new(&body, instance)));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

impl Wish {
    fn new(body: &Value, instance: String) -> Self {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let content = messages.last().map_or(&Value::Null, |message| &message["content"]);
        let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
        let word = |name: &str| text.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let number = |name| word(name).and_then(|number| number.parse().ok());
        Self {
            tag: word("tag").unwrap_or_default().to_owned(),
            deltas: number("n").map_or(3, |number: u64| usize::try_from(number).unwrap()),
            pause: Duration::from_millis(number("pause").unwrap_or(0)),
            end: word("end").unwrap_or("ok").to_owned(),
            streamed: body["stream"] == true,
            messages: messages.len(),
            instance,
        }
    }

    /// What is said: how many messages there were, and then words.
    fn deltas(&self) -> impl Iterator<Item = String> {
        let (messages, tag) = (self.messages, self.tag.clone());
        (0..self.deltas.max(1))
            .map(move |delta| if delta == 0 { format!("{messages}") } else { format!(" {tag}.{delta}") })
    }

    async fn play(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        if !self.streamed {
            tokio::time::sleep(self.pause * u32::try_from(self.deltas).unwrap()).await;
            if self.end == "stall" {
                std::future::pending::<()>().await;
            }
            let message = json!({"role": "assistant", "content": self.deltas().collect::<String>()});
            let choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason()});
            let body = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]});
            let body = body.to_string();
            let head = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
            return to.write_all(format!("HTTP/1.1 200 OK\r\n{head}{body}").as_bytes()).await;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        to.write_all(head.as_bytes()).await?;
        for delta in self.deltas() {
            send(to, &chunk(&json!({"content": delta}), None)).await?;
            tokio::time::sleep(self.pause).await;
        }
        match self.end.as_str() {
            "cut" => return Ok(()),
            "stall" => std::future::pending().await,
            _ => {}
        }
        send(to, &(chunk(&json!({}), Some(self.finish_reason())) + "data: [DONE]\n\n")).await?;
        to.write_all(b"0\r\n\r\n").await
    }

    fn finish_reason(&self) -> &str {
        if self.end == "length" { "length" } else { "stop" }
    }
}

fn chunk(delta: &Value, finish_reason: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
    format!("data: {chunk}\n\n")
}

async fn send(to: &mut (impl AsyncWrite + Unpin), text: &str) -> io::Result<()> {
    let mut framed = String::new();
    let _ = write!(framed, "{:x}\r\n{text}\r\n", text.len());
    to.write_all(framed.as_bytes()).await
}
