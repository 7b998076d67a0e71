//! A provider, a database and the processes in front of them.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{Answer, Client, Pooler, Postgres, Streaming};
use tokio::task::JoinHandle;

use crate::upstream::Upstream;

/// How long anything may take that has no promise of its own; who waits that long has found a hang.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The size of what is tried: that of every run, or that of a release.
pub(crate) fn size(ci: usize, full: usize) -> usize {
    if std::env::var_os("GODEX_FULL").is_some() { full } else { ci }
}

pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(task)
}

/// Where sessions are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Postgres,
    /// The same through a pooler that lends connections for one transaction.
    Pooled,
    Sqlite,
}

pub(crate) struct World {
    pub(crate) upstream: Upstream,
    pub(crate) instances: Vec<Instance>,
    _pooler: Option<Pooler>,
    postgres: Mutex<Option<Postgres>>,
}

impl World {
    /// Two processes on one database, or one on a file. None, loudly, where what that needs is not installed.
    pub(crate) async fn new(name: &str, kept: Kept, session: &str) -> Option<Self> {
        let upstream = Upstream::start().await;
        let postgres = match kept {
            Kept::Sqlite => None,
            Kept::Postgres | Kept::Pooled => Some(Postgres::start()?),
        };
        let pooler = match (&postgres, kept) {
            (Some(postgres), Kept::Pooled) => Some(Pooler::start(postgres.port())?),
            _ => None,
        };
        let url = pooler.as_ref().map(Pooler::url).or_else(|| postgres.as_ref().map(Postgres::url));
        let backend = match url {
            Some(url) => format!("backend: postgres, postgres: {{url: '{url}'}}"),
            None => "sqlite: {path: data/sessions.db}".to_owned(),
        };
        let names: &[&str] = if kept == Kept::Sqlite { &["one"] } else { &["one", "two"] };
        let instance = |instance: &&str| {
            let endpoint = format!("{{base_url: 'http://{}/v1'}}", upstream.address);
            let provider = format!(
                "{{spec: openai-compatible, endpoint: {endpoint}, credentials: {{api_key: {instance}}}, models: [m]}}"
            );
            Instance::new(
                &format!("{name}/{instance}"),
                &format!(
                    "session: {{{backend}{session}}}\nproviders: {{up: {provider}}}\nlogging: {{format: human}}\n"
                ),
            )
        };
        let instances = names.iter().map(instance).collect();
        Some(Self { instances, upstream, _pooler: pooler, postgres: Mutex::new(postgres) })
    }

    /// The database crashes.
    pub(crate) fn database_down(&self) {
        self.postgres.lock().unwrap().as_mut().unwrap().crash();
    }

    pub(crate) fn database_up(&self) {
        self.postgres.lock().unwrap().as_mut().unwrap().up();
    }

    /// Any of them, by a random number.
    pub(crate) fn any(&self, number: usize) -> &Instance {
        &self.instances[number % self.instances.len()]
    }
}

/// A process; it dies with the test. Its files stay below `target/instances`.
pub(crate) struct Instance {
    folder: PathBuf,
    port: u16,
    process: Mutex<Option<Child>>,
    starts: AtomicUsize,
    pub(crate) client: Client,
}

impl Instance {
    fn new(name: &str, config: &str) -> Self {
        let folder = testkit::root().join("target/instances").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("godex.yaml"), config).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Streams of a frozen process are silent for long.
        let client = Client::with_patience(PATIENCE).unwrap();
        let instance = Self { folder, port, process: Mutex::default(), starts: AtomicUsize::new(0), client };
        instance.start();
        instance
    }

    /// Starts it, and waits until it takes connections.
    pub(crate) fn start(&self) {
        let start = self.starts.fetch_add(1, Ordering::Relaxed);
        let log = File::create(self.folder.join(format!("{start}.log"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_godex"));
        command.args(["--port", &self.port.to_string()]).env_clear().env("HOME", &self.folder);
        command.current_dir(&self.folder).stdout(log.try_clone().unwrap()).stderr(log);
        *self.process.lock().unwrap() = Some(command.stdin(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "it does not listen: see {}", self.folder.display());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.process.lock().unwrap().as_ref().unwrap()), signal).unwrap();
    }

    /// `kill -9`.
    pub(crate) fn kill(&self) {
        let mut process = self.process.lock().unwrap().take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.client.get(&self.url(path)).await.unwrap()
    }

    pub(crate) async fn post(&self, body: &Value) -> Answer {
        self.client.post_json(&self.url("/v1/responses"), body).await.unwrap()
    }

    pub(crate) async fn cancel(&self, id: &str) -> Answer {
        let url = self.url(&format!("/v1/responses/{id}/cancel"));
        self.client.request(Method::POST, &url, &[], "").await.unwrap()
    }

    pub(crate) async fn stream(&self, body: &Value) -> Streaming {
        self.client.post_stream(&self.url("/v1/responses"), body).await.unwrap()
    }

    /// The stream of a response after this event, once more.
    pub(crate) async fn resume(&self, id: &str, after: Option<u64>) -> Streaming {
        let after = after.map_or_else(String::new, |after| format!("&starting_after={after}"));
        let url = self.url(&format!("/v1/responses/{id}?stream=true{after}"));
        self.client.open(Method::GET, &url, &[], "").await.unwrap()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.lock().unwrap().take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A request for this from the provider.
pub(crate) fn request(tag: &str, wish: &str, more: Value) -> Value {
    let mut request = more;
    request["model"] = json!("m");
    request["input"] = json!(format!("tag={tag} {wish}"));
    request
}

/// The object of an answer that must be one.
pub(crate) fn object(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

pub(crate) fn id_of(response: &Value) -> String {
    response["id"].as_str().unwrap().to_owned()
}

pub(crate) fn is_final(response: &Value) -> bool {
    !["queued", "in_progress"].contains(&response["status"].as_str().unwrap())
}

/// Polls until the response has ended.
pub(crate) async fn ended(instance: &Instance, id: &str, patience: Duration) -> Value {
    let began = Instant::now();
    loop {
        let response = object(&instance.get(&format!("/v1/responses/{id}")).await);
        if is_final(&response) {
            return response;
        }
        assert!(began.elapsed() < patience, "{id} is still {} after {:?}", response["status"], began.elapsed());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Random choices.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: usize) -> Self {
        Self((seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 8) % limit.max(1) as u64).unwrap()
    }

    pub(crate) async fn pause(&mut self, most: usize) {
        let millis = u64::try_from(self.below(most)).unwrap();
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}
