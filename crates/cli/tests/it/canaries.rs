//! Secrets, and what people say, go where they have to and nowhere else. Each kind has a word of its own that nothing else
//! has; the binary runs with all of them at its most talkative, is asked everything that can go well and wrong, and then all
//! that it has said and written is searched: its streams, its log, its files byte by byte, every answer with its headers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::mcp::{McpEra, McpOptions};
use testkit::{Answer, Client, McpServer, Received, Script, Upstream};

use crate::cli::{command, home};

/// A kind of secret: the variable that the configuration has it from, where it has, and the word.
struct Canary {
    name: &'static str,
    word: &'static str,
}

const fn canary(name: &'static str, word: &'static str) -> Canary {
    Canary { name, word }
}

const CLIENT_KEY: Canary = canary("CLIENT_KEY", "canary-client-key-5b1f90");
const WRONG_KEY: Canary = canary("WRONG_KEY", "canary-wrong-key-0c77de1");
const TOKEN: Canary = canary("TOKEN", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJjYW5hcnktand0LTllNDEifQ.Y2FuYXJ5LXNpZw");
const PROVIDER_KEY: Canary = canary("PROVIDER_KEY", "canary-provider-key-e02a");
const MCP_HEADER: Canary = canary("MCP_HEADER", "canary-mcp-header-77c3a0");
const MCP_PATH: Canary = canary("MCP_PATH", "canary-mcp-path-b8d2415");
const MCP_OF_CLIENT: Canary = canary("MCP_OF_CLIENT", "canary-mcp-of-client-31f");
const SEARCH_KEY: Canary = canary("SEARCH_KEY", "canary-search-key-a94e70");
const HOOK_SECRET: Canary = canary("HOOK_SECRET", "canary-hook-secret-6d0b2f");
/// Where a receiver is: kept with what it is still to be told, and shown by `config print`; nothing for a log or a client.
const HOOK_PATH: Canary = canary("HOOK_PATH", "canary-hook-path-1e5a99");
const SEAL_KEY: Canary = canary("SEAL_KEY", "canary-seal-key-4f8c1207-e6b0a9d35572");
const DATABASE_PASSWORD: Canary = canary("DATABASE_PASSWORD", "canary-database-pw-c3d9");
const ADMIN_TOKEN: Canary = canary("ADMIN_TOKEN", "canary-admin-token-8a3f51");
const STORE_KEY: Canary = canary("STORE_KEY", "c4a7e1d09b35f268c4a7e1d09b35f268ca7a3d15c0ffee00b0a7deadbeef5a1d");
/// Not secret to whoever says it, but nothing for a log.
const PROMPT: Canary = canary("PROMPT", "canary-prompt-208d7e44");
const TOOL_OUTPUT: Canary = canary("TOOL_OUTPUT", "canary-tool-output-95ba");

const SECRETS: [Canary; 13] = [
    CLIENT_KEY,
    WRONG_KEY,
    TOKEN,
    PROVIDER_KEY,
    MCP_HEADER,
    MCP_PATH,
    MCP_OF_CLIENT,
    SEARCH_KEY,
    HOOK_SECRET,
    SEAL_KEY,
    DATABASE_PASSWORD,
    ADMIN_TOKEN,
    STORE_KEY,
];
const WORDS: [Canary; 2] = [PROMPT, TOOL_OUTPUT];

/// What of a canary can be found: as it is, in base64 (without its ends, which depend on what is around it), and in hex.
fn forms(word: &str) -> Vec<Vec<u8>> {
    let hex = in_hex(word);
    let mut forms = vec![word.as_bytes().to_vec(), hex.to_uppercase().into_bytes(), hex.into_bytes()];
    for shift in 0..3 {
        let padded = [&vec![b' '; shift][..], word.as_bytes()].concat();
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded).into_bytes();
            forms.push(text[4..text.len() - 4].to_vec());
        }
    }
    // A cut key is still most of a key.
    forms.push(word.as_bytes()[..word.len() - 4].to_vec());
    forms
}

fn in_hex(word: &str) -> String {
    word.bytes()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

fn has(bytes: &[u8], word: &str) -> bool {
    forms(word).iter().any(|form| bytes.windows(form.len()).any(|window| window == form.as_slice()))
}

/// What was said or written, and where.
type Places = Vec<(String, Vec<u8>)>;

/// Where which canary was found.
fn hits(places: &[(String, Vec<u8>)], canaries: &[Canary]) -> Vec<String> {
    let found = places.iter().flat_map(|(place, bytes)| {
        let here = canaries.iter().filter(|canary| has(bytes, canary.word));
        here.map(move |canary| format!("{} in {place}", canary.name))
    });
    found.collect()
}

/// All files below a folder, with what is in them.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let nested = entries.map(|path: PathBuf| {
        if path.is_dir() {
            return files(&path);
        }
        vec![(path.display().to_string(), fs::read(&path).unwrap_or_default())]
    });
    nested.flatten().collect()
}

/// A provider that does as it is told; when it refuses, it repeats everything that it was sent, keys and all.
fn provider(received: &Received) -> Script {
    let body = received.json();
    let said =
        body["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default().to_string();
    let echo = format!(
        "You sent {:?} and {} with {}",
        received.headers,
        String::from_utf8_lossy(&received.body),
        PROVIDER_KEY.word
    );
    let error =
        |status| Script::json(status, &json!({"error": {"message": echo, "code": "bad", "type": PROVIDER_KEY.word}}));
    let chunk = |delta: Value, end: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}]})
    };
    let streamed = body["stream"] == true;
    let statuses = [400, 401, 403, 404, 413, 422, 429, 500, 503];
    if let Some(status) = statuses.into_iter().find(|status| said.contains(&format!("refuse {status}"))) {
        return error(status);
    }
    let call = said.contains("use the tool").then(|| {
        json!([{"id": "c1", "index": 0, "type": "function", "function": {"name": "a__echo",
            "arguments": json!({"text": TOOL_OUTPUT.word}).to_string()}}])
    });
    match said {
        said if said.contains("no json") => Script::body(200, "application/json", format!("{{{echo}")),
        said if said.contains("html") => Script::body(502, "text/html", format!("<html>{echo}</html>")),
        said if said.contains("break off") => {
            Script::event_stream().event(&chunk(json!({"content": "a"}), Value::Null)).cut()
        }
        said if said.contains("fail late") => Script::event_stream()
            .event(&chunk(json!({"content": "a"}), Value::Null))
            .event(&json!({"error": {"message": echo, "code": 500}})),
        said if said.contains("hang up") => Script::hang_up(),
        _ if streamed => {
            let delta = call.map_or(json!({"content": "Hello."}), |call| json!({"tool_calls": call}));
            let reason = if delta.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
            Script::sse(&[chunk(delta, Value::Null), chunk(json!({}), json!(reason))])
        }
        _ => {
            let message = call.map_or(
                json!({"role": "assistant", "content": "Hello."}),
                |call| json!({"role": "assistant", "content": null, "tool_calls": call}),
            );
            let reason = if message["tool_calls"].is_array() { "tool_calls" } else { "stop" };
            Script::json(
                200,
                &json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}]}),
            )
        }
    }
}

/// A search service that refuses its key, and repeats it.
fn search_service(received: &Received) -> Script {
    Script::json(401, &json!({"detail": {"error": format!("{:?} {}", received.headers, received.path)}}))
}

struct World {
    home: tempfile::TempDir,
    process: Child,
    url: String,
    client: Client,
    /// Everything that it has answered.
    answers: Vec<(String, Vec<u8>)>,
}

/// The command, with all secrets in its environment.
fn with_secrets(home: &Path, arguments: &[&str]) -> Command {
    let mut command = command(home, arguments);
    command.envs(SECRETS.iter().chain([&HOOK_PATH]).map(|canary| (canary.name, canary.word)));
    command
}

impl World {
    async fn start(config: &str) -> Self {
        let home = home(config);
        let file = |name: &str| File::create(home.path().join(name)).unwrap();
        let mut process = with_secrets(home.path(), &["--port", "0", "--log-level", "trace"]);
        let process = process.stdout(file("stdout")).stderr(file("stderr")).spawn().unwrap();
        let mut world = Self { home, process, url: String::new(), client: Client::new().unwrap(), answers: Vec::new() };
        for _ in 0..1000 {
            let said = fs::read_to_string(world.home.path().join("stdout")).unwrap();
            if let Some(url) = said.lines().find_map(|line| line.strip_prefix("address:")) {
                url.trim().clone_into(&mut world.url);
                return world;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it does not start: {}", fs::read_to_string(world.home.path().join("stderr")).unwrap());
    }

    async fn ask(&mut self, key: &str, method: Method, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let answer =
            self.client.request(method.clone(), &format!("{}{path}", self.url), &headers, body.to_owned()).await;
        let answer = answer.unwrap();
        let seen = format!("{:?}\n{}", answer.headers, String::from_utf8_lossy(&answer.body));
        let asked: String = body.chars().take(120).collect();
        self.answers.push((format!("the answer to {method} {path} {asked}"), seen.into_bytes()));
        answer
    }

    async fn respond(&mut self, body: &Value) -> Answer {
        self.ask(CLIENT_KEY.word, Method::POST, "/v1/responses", &body.to_string()).await
    }

    /// Ends it, with all that it has said and written.
    fn end(mut self) -> (Places, Places) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        self.process.wait().unwrap();
        (files(self.home.path()), std::mem::take(&mut self.answers))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(upstream: &Upstream, search: &Upstream, hook: &Upstream, mcp: &McpServer) -> String {
    format!(
        "logging: {{format: json}}\nmodels: {{discover: off}}\nresilience: {{backoff_ms: 1, breaker_failures: 0}}\n\
         session: {{sqlite: {{path: data/sessions.db}}, seal_key: '${{SEAL_KEY}}', encryption: {{key: '${{STORE_KEY}}'}}}}\n\
         admin: {{token: '${{ADMIN_TOKEN}}'}}\ntrace: {{capture_payload: true, flush_interval_ms: 10}}\n\
         keys:\n- {{name: team, tenant: team, key: '${{CLIENT_KEY}}'}}\n\
         providers:\n  up:\n    spec: openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    \
         credentials: {{api_key: '${{PROVIDER_KEY}}'}}\n    models: [m]\n\
         tools:\n  mcp:\n    clients: open\n    servers:\n      a: {{url: '{}?token=${{MCP_PATH}}', headers: {{authorization: \
         'Bearer ${{MCP_HEADER}}'}}, require_approval: never}}\n      gone: {{url: 'http://127.0.0.1:9/${{MCP_PATH}}'}}\n  \
         web_search: {{spec: tavily, endpoint: {{base_url: '{}'}}, credentials: {{api_key: '${{SEARCH_KEY}}'}}}}\n\
         webhooks:\n- {{url: '{}/${{HOOK_PATH}}', secret: '${{HOOK_SECRET}}', allow_private: true}}\n",
        upstream.url(),
        mcp.url(),
        search.url(),
        hook.url(),
    )
}

/// Every way that a turn can end, streamed and not, stored or not. What is stored is not the canaries.
async fn turns(world: &mut World) {
    let refusals = ["refuse 400", "refuse 401", "refuse 403", "refuse 404", "refuse 413", "refuse 422", "refuse 429"];
    let others = ["refuse 500", "refuse 503", "no json", "html", "break off", "fail late", "hang up", "hello"];
    for what in refusals.into_iter().chain(others) {
        for stream in [false, true] {
            let prompt = format!("{} {what}", PROMPT.word);
            world.respond(&json!({"model": "m", "input": prompt, "store": false, "stream": stream})).await;
            world.respond(&json!({"model": "m", "input": what, "stream": stream})).await;
        }
    }
    let output = json!([
        {"role": "user", "content": PROMPT.word}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": TOOL_OUTPUT.word}]);
    let called = world.respond(&json!({"model": "m", "input": output, "store": false})).await;
    assert_eq!(called.status, 200, "{}", called.json());
    let body = json!({"model": "m", "input": PROMPT.word});
    for path in ["/v1/responses/input_tokens", "/v1/responses/compact"] {
        world.ask(CLIENT_KEY.word, Method::POST, path, &body.to_string()).await;
    }
}

/// Tools of all kinds: those that work, those that do not, those that may not.
async fn tools(world: &mut World, mcp: &McpServer) {
    let tool = |label: &str| json!({"type": "mcp", "server_label": label});
    let mut theirs = json!({"type": "mcp", "server_label": "b", "server_url": format!("https://mcp.invalid/{}", MCP_OF_CLIENT.word)});
    theirs["authorization"] = json!(MCP_OF_CLIENT.word);
    theirs["headers"] = json!({"x-key": MCP_OF_CLIENT.word});
    for stream in [false, true] {
        for (tool, what) in [
            (tool("a"), "use the tool"),
            (tool("gone"), "hello"),
            (theirs.clone(), "hello"),
            (json!({"type": "web_search"}), "hello"),
        ] {
            world
                .respond(&json!({"model": "m", "input": what, "tools": [tool], "store": false, "stream": stream}))
                .await;
        }
    }
    assert!(!mcp.calls().is_empty(), "no tool was called");
    // What may be stored is traced with its bodies; keys are not among them.
    world.respond(&json!({"model": "m", "input": "hello", "tools": [theirs]})).await;
    let search = json!({"id": "s", "commands": {"search_query": [{"q": PROMPT.word}]}});
    world.ask(CLIENT_KEY.word, Method::POST, "/v1/alpha/search", &search.to_string()).await;
}

/// What is wrong before anybody is asked.
async fn mistakes(world: &mut World) {
    let good = json!({"model": "m", "input": PROMPT.word, "store": false}).to_string();
    for key in [WRONG_KEY.word, TOKEN.word, "", "x"] {
        let refused = world.ask(key, Method::POST, "/v1/responses", &good).await;
        assert_eq!(refused.status, 401, "{}", refused.json());
    }
    let truncated = &good[..good.len() - 3];
    let no_such = json!({"model": "", "input": PROMPT.word, "store": false}).to_string();
    let wrong = json!({"model": "m", "input": {"secret": PROMPT.word}, "temperature": PROMPT.word}).to_string();
    for body in [truncated, &no_such, &wrong] {
        let refused = world.ask(CLIENT_KEY.word, Method::POST, "/v1/responses", body).await;
        assert!(refused.status >= 400, "{body}");
    }
    let query = format!("/v1/responses/resp_1?api_key={}&token={}", CLIENT_KEY.word, TOKEN.word);
    for path in ["/v1/responses/resp_1", "/v1/nothing", "/health", "/ready", "/v1/models", &query] {
        world.ask(CLIENT_KEY.word, Method::GET, path, "").await;
    }
    world.ask(WRONG_KEY.word, Method::GET, "/health", "").await;
}

/// A background response, of which a receiver is told that repeats what it was told.
async fn told(world: &mut World, hook: &Upstream) {
    let made = world.respond(&json!({"model": "m", "input": "hello", "background": true})).await;
    assert_eq!(made.status, 200, "{}", made.json());
    tokio::time::timeout(Duration::from_mins(1), hook.arrived(1)).await.unwrap();
}

/// Every trace with all that is kept of it. Bodies are encrypted in the file: so they are looked at as they are shown.
fn traces(world: &World) -> Places {
    let godex = |arguments: &[&str]| {
        let output = with_secrets(world.home.path(), arguments).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let list = godex(&["traces", "--json", "--limit", "1000"]);
    let mut places = vec![("traces".to_owned(), list.clone())];
    for line in String::from_utf8(list).unwrap().lines() {
        let number = serde_json::from_str::<Value>(line).unwrap()["number"].to_string();
        places.push((format!("trace {number}"), godex(&["traces", "show", &number, "--json"])));
    }
    let bodies = places.iter().filter(|(_, bytes)| String::from_utf8_lossy(bytes).contains("chat_request.1")).count();
    assert!(bodies > 10 && places.len() > 60, "{bodies} of {}", places.len());
    places
}

#[tokio::test]
async fn no_secret_is_in_anything_that_is_said_or_written() {
    let upstream = Upstream::start_with(provider).await.unwrap();
    let search = Upstream::start_with(search_service).await.unwrap();
    let hook =
        Upstream::start_with(|told| Script::json(500, &json!({"you": format!("{:?}", told.headers)}))).await.unwrap();
    let options =
        McpOptions { authorization: Some(format!("Bearer {}", MCP_HEADER.word)), ..McpOptions::new(McpEra::Modern) };
    let mcp = McpServer::start(options).await.unwrap();
    let mut world = World::start(&configuration(&upstream, &search, &hook, &mcp)).await;
    turns(&mut world).await;
    tools(&mut world, &mcp).await;
    let before = world.answers.len();
    mistakes(&mut world).await;
    assert_eq!(hits(&world.answers[before..], &WORDS), Vec::<String>::new());
    told(&mut world, &hook).await;
    let mut said = Vec::new();
    for arguments in [
        &["config", "print"][..],
        &["config", "check"],
        &["keys", "list"],
        &["keys", "show", "team"],
        &["tenants", "list"],
        &["usage", "--by", "tenant,key,model"],
        &["reload"],
        &["mcp", "check"],
        &["models"],
        &["search", "x"],
    ] {
        let output = with_secrets(world.home.path(), arguments).stdin(Stdio::null()).output().unwrap();
        said.push((format!("{arguments:?}"), [output.stdout, output.stderr].concat()));
    }
    said.extend(traces(&world));
    // What a client sends as its key is nobody else's business.
    let sent: Vec<(String, Vec<u8>)> = [&upstream, &search, &hook]
        .into_iter()
        .flat_map(Upstream::requests)
        .map(|sent| {
            (
                "a request that was sent on".to_owned(),
                format!("{:?}{}", sent.headers, String::from_utf8_lossy(&sent.body)).into_bytes(),
            )
        })
        .collect();
    assert_eq!(hits(&sent, &[CLIENT_KEY, WRONG_KEY, TOKEN, SEAL_KEY, HOOK_SECRET]), Vec::<String>::new());
    assert!(!hits(&sent, &[PROVIDER_KEY]).is_empty() && !hits(&sent, &[SEARCH_KEY]).is_empty(), "nothing was tried");
    let (files, answers) = world.end();
    let log = files.iter().find(|(name, _)| name.ends_with("stderr")).unwrap();
    assert!(String::from_utf8_lossy(&log.1).contains("\"level\":\"DEBUG\""), "it was to be talkative");
    assert!(
        files.iter().any(|(name, _)| name.ends_with("sessions.db")),
        "{:?}",
        files.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    assert!(files.iter().any(|(name, _)| name.ends_with("trace.db")), "nothing was traced");
    for places in [&files, &answers, &said] {
        assert_eq!(hits(places, &SECRETS), Vec::<String>::new());
    }
    assert_eq!(hits(&answers, &[HOOK_PATH]), Vec::<String>::new());
    assert!(!has(&log.1, HOOK_PATH.word));
    // Nothing of what was said is in the log or in the files: none of it was to be stored.
    assert_eq!(hits(&files, &WORDS), Vec::<String>::new());
    assert_eq!(hits(&said, &WORDS), Vec::<String>::new());
}

/// A database that cannot be reached is told without its password.
#[test]
fn a_password_of_a_database_is_not_told() {
    let home = home(
        "session: {backend: postgres, postgres: {url: 'postgres://godex:${DATABASE_PASSWORD}@127.0.0.1:9/godex'}}",
    );
    let mut places = Vec::new();
    for arguments in [&["--port", "0", "--log-level", "trace"][..], &["config", "print"], &["config", "check"]] {
        let output = with_secrets(home.path(), arguments).output().unwrap();
        places.push((format!("{arguments:?}"), [output.stdout, output.stderr].concat()));
    }
    assert!(String::from_utf8_lossy(&places[0].1).contains("error"), "it started");
    places.extend(files(home.path()));
    assert_eq!(hits(&places, &SECRETS), Vec::<String>::new());
}

/// The search finds what it is to find, however it is written.
#[test]
fn a_canary_that_is_there_is_found() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("deep")).unwrap();
    for canary in SECRETS.iter().chain(&WORDS) {
        let word = canary.word;
        for text in [
            word.to_owned(),
            format!("x{word}y"),
            word[..word.len() - 2].to_owned(),
            STANDARD.encode(format!("user:{word}")),
            STANDARD.encode(format!("a{word}")),
            URL_SAFE_NO_PAD.encode(format!("ab{word}c")),
            in_hex(word),
        ] {
            fs::write(folder.path().join("deep/file"), [&[0, 255], text.as_bytes(), &[7]].concat()).unwrap();
            assert_eq!(hits(&files(folder.path()), &[canary_of(canary)]).len(), 1, "{}: {text}", canary.name);
        }
        fs::write(folder.path().join("deep/file"), &word[..word.len() / 2]).unwrap();
        assert_eq!(hits(&files(folder.path()), &[canary_of(canary)]), Vec::<String>::new(), "{}", canary.name);
    }
}

fn canary_of(other: &Canary) -> Canary {
    canary(other.name, other.word)
}
