//! Histories outlive the process that made them: the binary, stopped and killed, alone and beside another on one
//! database.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Client, Postgres, Upstream, forgetful};

use crate::cli::{command, home};

/// A home with a provider that remembers nothing, and these sessions.
fn configured(upstream: &Upstream, session: &str) -> TempDir {
    let endpoint = format!("{{base_url: '{}/v1'}}", upstream.url());
    home(&format!(
        "session: {{{session}}}\nmodels: {{discover: off}}\nproviders: {{up: {{spec: openai-compatible, endpoint: {endpoint}, models: [m]}}}}\n"
    ))
}

/// A running godex; it dies with the test.
pub(crate) struct Godex {
    process: Child,
    pub(crate) url: String,
    pub(crate) client: Client,
}

impl Godex {
    fn start(home: &Path) -> Self {
        Self::logging_to(home, Stdio::null())
    }

    pub(crate) fn logging_to(home: &Path, log: impl Into<Stdio>) -> Self {
        Self::run(command(home, &["--port", "0"]), log)
    }

    pub(crate) fn run(mut command: Command, log: impl Into<Stdio>) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.strip_prefix("address:")?.trim().to_owned())).unwrap();
        // Read on, so that a full pipe never blocks it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, url, client: Client::new().unwrap() }
    }

    /// One turn, streamed or not: the finished response.
    async fn turn(&self, mut body: Value, streamed: bool) -> Value {
        body["model"] = json!("m");
        body["stream"] = json!(streamed);
        let answer = self.client.post_json(&format!("{}/v1/responses", self.url), &body).await.unwrap();
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        let response = if streamed {
            testkit::grammar::check(&answer.body).unwrap().events.pop().unwrap().1["response"].clone()
        } else {
            answer.json()
        };
        assert_eq!((&response["status"], &response["store"]), (&json!("completed"), &json!(true)), "{response}");
        response
    }

    async fn say(&self, text: &str, previous: Option<&Value>, streamed: bool) -> Value {
        let previous = previous.map_or(&Value::Null, |response| &response["id"]);
        self.turn(json!({"input": text, "previous_response_id": previous}), streamed).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.client.get(&format!("{}{path}", self.url)).await.unwrap();
        (answer.status, answer.json())
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// How it ends by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    /// Sends a signal: how it ended.
    pub(crate) fn end(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.process.wait().unwrap()
    }
}

impl Drop for Godex {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

/// "My name is Alice", the end of the process, "what's my name?".
async fn alice_is_remembered(signal: Signal, ended_well: bool) {
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    let home = configured(&upstream, "sqlite: {path: data/sessions.db}");
    let mut expected = 1;
    let (mut last, mut conversation): (Option<Value>, Option<Value>) = (None, None);
    for streamed in [false, true, false] {
        let godex = Godex::start(home.path());
        if let Some(last) = &last {
            assert_eq!(
                godex.get(&format!("/v1/responses/{}", last["id"].as_str().unwrap())).await,
                (200, last.clone())
            );
        }
        let said = if last.is_none() { "Hello, my name is Alice." } else { "What's my name?" };
        let answer = godex.say(said, last.as_ref(), streamed).await;
        assert_eq!(text(&answer), format!("Alice ({expected})"));
        last = Some(answer);
        if conversation.is_none() {
            let made = godex.client.post_json(&format!("{}/v1/conversations", godex.url), &json!({})).await.unwrap();
            conversation = Some(made.json()["id"].clone());
        }
        let answer = godex.turn(json!({"input": said, "conversation": conversation}), streamed).await;
        assert_eq!(text(&answer), format!("Alice ({expected})"));
        expected += 2;
        // At once: what was acknowledged is on disk.
        assert_eq!(godex.end(signal).success(), ended_well);
    }
    assert!(home.path().join("data/sessions.db").exists());
}

#[tokio::test]
async fn a_history_survives_sigterm() {
    alice_is_remembered(Signal::TERM, true).await;
}

#[tokio::test]
async fn a_history_survives_kill_9() {
    alice_is_remembered(Signal::KILL, false).await;
}

#[tokio::test]
async fn an_id_that_nobody_gave_out_is_a_clear_error() {
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    for (more, status) in [("", 400), (", unknown_previous_response_status: 404", 404)] {
        let home = configured(&upstream, &format!("backend: memory{more}"));
        let godex = Godex::start(home.path());
        let body = json!({"model": "m", "input": "What's my name?", "previous_response_id": "resp_nosuch"});
        let answer = godex.client.post_json(&format!("{}/v1/responses", godex.url), &body).await.unwrap();
        let error = &answer.json()["error"];
        assert_eq!((answer.status, &error["code"]), (status, &json!("previous_response_not_found")));
        assert_eq!(error["message"], "Previous response with id 'resp_nosuch' not found.");
    }
    assert_eq!(upstream.requests().len(), 0);
}

#[test]
fn a_file_that_another_process_uses_is_refused_in_one_line() {
    let home = home("session: {sqlite: {path: data/sessions.db}}");
    let first = Godex::start(home.path());
    let refused = command(home.path(), &["--port", "0"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(matches!(errors[..], [error] if error.contains("used by another process")), "{said}");
    assert!(first.end(Signal::TERM).success());
    assert!(Godex::start(home.path()).end(Signal::TERM).success());
}

#[tokio::test]
async fn two_processes_share_one_postgres() {
    let Some(postgres) = Postgres::start() else { return };
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    let session = format!("backend: postgres, postgres: {{url: '{}'}}", postgres.url());
    let homes = [configured(&upstream, &session), configured(&upstream, &session)];
    let mut processes = homes.each_ref().map(|home| Godex::start(home.path()));
    let mut last: Option<Value> = None;
    for round in 0..8 {
        // The other one each time, at once.
        let godex = &processes[round % 2];
        let said = if round == 0 { "my name is Alice." } else { "What's my name?" };
        let answer = godex.say(said, last.as_ref(), round % 3 == 0).await;
        assert_eq!(text(&answer), format!("Alice ({})", 2 * round + 1));
        let id = answer["id"].as_str().unwrap();
        let other = &processes[(round + 1) % 2];
        assert_eq!(other.get(&format!("/v1/responses/{id}")).await, (200, answer.clone()));
        last = Some(answer);
        // What it acknowledged last is there without it.
        if round == 3 {
            let killed = std::mem::replace(&mut processes[1], Godex::start(homes[1].path()));
            assert!(!killed.end(Signal::KILL).success());
        }
    }
    for process in processes {
        assert!(process.end(Signal::TERM).success());
    }
}
