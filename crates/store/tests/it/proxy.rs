//! A wire between the store and Postgres that can be cut at a message, and that knows what was said over it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Where the wire is cut, once for each that is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server never hears of the commit.
    BeforeCommit,
    /// The server has committed, and nobody is told.
    AfterCommit,
    /// After so many messages of the client.
    AfterMessages(usize),
}

#[derive(Default)]
struct State {
    planned: Vec<Cut>,
    /// The texts of all statements, and the names under which any were prepared.
    statements: Vec<String>,
    names: Vec<String>,
}

pub(crate) struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
    open: watch::Sender<bool>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, (open, opened)) = (Arc::<Mutex<State>>::default(), watch::channel(true));
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&state);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (state, mut opened) = (Arc::clone(&shared), opened.clone());
                connections.spawn(async move {
                    opened.wait_for(|open| *open).await.unwrap();
                    // However it ends, both sides are closed then.
                    let _ = Wire { state, buffer: Vec::new(), messages: 0, started: false }.carry(client, server).await;
                });
            }
        });
        Self { port, state, open, _tasks: tasks }
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://godex@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Cuts the wire at the next such place, as often as it is planned.
    pub(crate) fn plan(&self, cuts: &[Cut]) {
        self.state.lock().unwrap().planned = cuts.to_vec();
    }

    /// Cuts that are still planned.
    pub(crate) fn left(&self) -> usize {
        self.state.lock().unwrap().planned.len()
    }

    /// New connections wait while it is shut.
    pub(crate) fn set_open(&self, open: bool) {
        self.open.send_replace(open);
    }

    pub(crate) fn statements(&self) -> (Vec<String>, Vec<String>) {
        let state = self.state.lock().unwrap();
        (state.statements.clone(), state.names.clone())
    }
}

struct Wire {
    state: Arc<Mutex<State>>,
    /// What the client sent of a message that is not whole yet.
    buffer: Vec<u8>,
    messages: usize,
    /// The first message has no kind.
    started: bool,
}

impl Wire {
    async fn carry(mut self, mut client: TcpStream, server: SocketAddr) -> std::io::Result<()> {
        let mut server = TcpStream::connect(server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (mut asked, mut answered) = (vec![0; 8192], vec![0; 8192]);
        loop {
            tokio::select! {
                read = client.read(&mut asked) => {
                    let read = read?;
                    if read == 0 {
                        return Ok(());
                    }
                    self.buffer.extend_from_slice(&asked[..read]);
                    while let Some(message) = self.message() {
                        match self.cut(&message) {
                            None => server.write_all(&message).await?,
                            Some(Cut::AfterCommit) => {
                                server.write_all(&message).await?;
                                return server.read(&mut answered).await.map(drop);
                            }
                            Some(_) => return Ok(()),
                        }
                    }
                }
                read = server.read(&mut answered) => {
                    let read = read?;
                    if read == 0 {
                        return Ok(());
                    }
                    client.write_all(&answered[..read]).await?;
                }
            }
        }
    }

    /// The next whole message.
    fn message(&mut self) -> Option<Vec<u8>> {
        let kind = usize::from(self.started);
        let length = self.buffer.get(kind..kind + 4)?;
        let length = kind + u32::from_be_bytes(length.try_into().unwrap()) as usize;
        if self.buffer.len() < length {
            return None;
        }
        self.started = true;
        let rest = self.buffer.split_off(length);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    fn cut(&mut self, message: &[u8]) -> Option<Cut> {
        self.messages += 1;
        let mut state = self.state.lock().unwrap();
        let texts = || message[5..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
        let mut commits = false;
        match message[0] {
            b'Q' => {
                let text = texts().next().unwrap();
                commits = text == "COMMIT";
                state.statements.push(text);
            }
            b'P' => {
                let mut texts = texts();
                state.names.push(texts.next().unwrap());
                state.statements.push(texts.next().unwrap());
            }
            _ => {}
        }
        let now = match state.planned.first()? {
            Cut::AfterMessages(count) => self.messages > *count,
            Cut::BeforeCommit | Cut::AfterCommit => commits,
        };
        now.then(|| state.planned.remove(0))
    }
}
