//! What each client is told: one column for each, beside each other. A client that is not known gets the API as it is
//! written; Codex, of two generations, what it can act on.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use server::config::Config;
use testkit::{Answer, Script};

use crate::chat;
use crate::rig::{Rig, Settings, error, object_now, stream};
use crate::websocket::client::Client as Socket;

pub(crate) type Headers = &'static [(&'static str, &'static str)];

const OTHER: Headers = &[("content-type", "application/json"), ("user-agent", "OpenAI/Python 2.1.0")];
pub(crate) const CODEX: Headers = &[
    ("content-type", "application/json"),
    ("originator", "codex_exec"),
    ("user-agent", "codex_exec/0.166.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.166.0)"),
];
const BEFORE: Headers = &[
    ("content-type", "application/json"),
    ("originator", "codex_cli_rs"),
    ("user-agent", "codex_cli_rs/0.149.0 (Debian 12.0.0; x86_64) unknown"),
];

const CLIENTS: [(&str, Headers); 3] = [("other", OTHER), ("codex", CODEX), ("codex before", BEFORE)];

async fn post(rig: &Rig, headers: Headers, body: &Value) -> Answer {
    rig.client.request(Method::POST, &rig.url("/v1/responses"), headers, body.to_string()).await.unwrap()
}

fn request() -> Value {
    json!({"model": "m", "input": "Hello", "stream": true, "store": false})
}

/// `STATUS CODE[, after SECONDS]`, or how the stream ended, with its code or reason and the wait that Codex reads.
fn told(answer: &Answer) -> String {
    if answer.status != 200 {
        let found = error(answer);
        let wait = answer.header("retry-after").map(|seconds| format!(", after {}", seconds.parse::<u32>().unwrap()));
        return format!("{} {}{}", found.status, found.code, wait.unwrap_or_default());
    }
    let stream = stream(answer);
    let response = &stream.response;
    let why = response["error"]["code"].as_str().or_else(|| response["incomplete_details"]["reason"].as_str());
    let words = response["error"]["message"].as_str().unwrap_or_default().to_lowercase();
    let wait = words.split_once("try again in ").map(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        format!(", after {}", &rest[..end])
    });
    format!("{} {}{}", response["status"].as_str().unwrap(), why.unwrap_or_default(), wait.unwrap_or_default())
}

fn said(status: u16, message: &str) -> Script {
    Script::json(status, &json!({"error": {"message": message, "type": "x", "code": null}}))
}

async fn check(name: &str, script: Script, expected: [&str; 3]) {
    let settings = Settings { resilience: "retries: 0, breaker_failures: 0", ..Settings::default() };
    let rig = Rig::with(script, settings).await;
    for ((client, headers), expected) in CLIENTS.into_iter().zip(expected) {
        assert_eq!(told(&post(&rig, headers, &request()).await), expected, "{name}, {client}");
    }
}

/// Codex retries a turn five times unless it is told in its own words that it will not help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_before_the_stream() {
    let no = |status| said(status, "no");
    let coded = |status: u16, code: &str| Script::json(status, &json!({"error": {"message": "no", "code": code}}));
    let same = |told| [told; 3];
    let mended = |other, codex| [other, codex, codex];
    for (name, script, expected) in [
        ("400", no(400), same("400 upstream_invalid_request")),
        ("401", no(401), mended("502 provider_auth", "400 provider_auth")),
        ("403", no(403), mended("502 provider_auth", "400 provider_auth")),
        ("402", no(402), ["429 insufficient_quota", "429 insufficient_quota", "failed insufficient_quota"]),
        ("404, a page", Script::body(404, "text/html", "<html>"), same("502 upstream_protocol")),
        (
            "404, the model",
            said(404, "The model `m` does not exist"),
            ["404 model_not_found", "404 model_not_found", "400 model_not_found"],
        ),
        ("413", no(413), same("400 upstream_invalid_request")),
        ("422", no(422), same("400 upstream_invalid_request")),
        ("filtered", coded(400, "content_filter"), same("400 upstream_content_policy")),
        ("quota", coded(429, "insufficient_quota").header("retry-after", "7"), {
            ["429 insufficient_quota, after 7", "429 insufficient_quota", "failed insufficient_quota"]
        }),
        ("429", no(429), {
            let limited = "429 rate_limit_exceeded, after 1";
            [limited, limited, "failed rate_limit_exceeded, after 1"]
        }),
        ("429 for a moment", no(429).header("retry-after", "7"), {
            let limited = "429 rate_limit_exceeded, after 7";
            [limited, limited, "failed rate_limit_exceeded, after 7"]
        }),
        (
            "429 for a day",
            no(429).header("retry-after", "86400"),
            [
                "429 rate_limit_exceeded, after 120",
                "429 rate_limit_exceeded, after 60",
                "failed rate_limit_exceeded, after 60",
            ],
        ),
        ("overflow", coded(400, "context_length_exceeded"), same("failed context_length_exceeded")),
        ("500", no(500), same("502 upstream_error")),
        ("503", no(503), mended("503 upstream_overloaded", "503 server_is_overloaded")),
        (
            "503 for long",
            no(503).header("retry-after", "100"),
            mended("503 upstream_overloaded, after 100", "503 server_is_overloaded, after 60"),
        ),
        ("504", no(504), same("504 upstream_timeout")),
        ("hung up", Script::hang_up(), same("502 upstream_unreachable")),
    ] {
        check(name, script, expected).await;
    }
}

/// What goes wrong here, before anybody is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_our_own() {
    let settings = Settings { server: "max_body_bytes: 4096", ..Settings::default() };
    let rig = Rig::with(chat::answer(true), settings).await;
    let large = json!({"model": "m", "input": "x".repeat(5000), "stream": true}).to_string();
    for (name, path, body, expected) in [
        ("path", "/responses", "{}", ["404 not_found", "400 not_found"]),
        ("method", "/v1/models", "{}", ["405 method_not_supported", "400 method_not_supported"]),
        ("size", "/v1/responses", &*large, ["413 request_too_large", "400 request_too_large"]),
        ("JSON", "/v1/responses", "{", ["400 invalid_json", "400 invalid_json"]),
        ("model", "/v1/responses", "{}", ["400 missing_required_parameter", "400 missing_required_parameter"]),
    ] {
        for (headers, expected) in [OTHER, CODEX].into_iter().zip(expected) {
            let answer = rig.client.request(Method::POST, &rig.url(path), headers, body.to_owned()).await.unwrap();
            assert_eq!(told(&answer), expected, "{name}");
        }
    }
    // Whoever only looks is told what is there.
    let looked = rig.client.request(Method::GET, &rig.url("/models"), CODEX, "").await.unwrap();
    assert_eq!(told(&looked), "404 not_found");
}

/// Each stream ends with its failure although the provider's goes on: Codex acts on nothing before the body's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_inside_the_stream() {
    let begun = || Script::event_stream().event(&chat::text("Hel"));
    let failed = |message: &str, code: Value| {
        let error = json!({"error": {"message": message, "code": code}});
        begun().event(&error).delay(Duration::from_millis(1)).stall()
    };
    let ended = |reason| begun().event(&chat::chunk(&json!({}), Some(reason))).done();
    let same = |told| [told; 3];
    let mended = |other, codex| [other, codex, codex];
    for (name, script, expected) in [
        ("limit", failed("slow down", json!(429)), {
            mended("failed rate_limit_exceeded", "failed rate_limit_exceeded, after 1")
        }),
        ("limit for an hour", failed("Please try again in 3600s.", json!(429)), {
            mended("failed rate_limit_exceeded, after 3600", "failed rate_limit_exceeded, after 60")
        }),
        ("overloaded", failed("busy", json!(503)), mended("failed server_is_overloaded", "failed server_error")),
        ("key", failed("bad key", json!(401)), mended("failed server_error", "failed invalid_prompt")),
        ("quota", failed("pay", json!("insufficient_quota")), same("failed insufficient_quota")),
        ("overflow", failed("long", json!("context_length_exceeded")), same("failed context_length_exceeded")),
        ("model", failed("gone", json!("model_not_found")), same("failed model_not_found")),
        ("request", failed("bad", json!(400)), same("failed invalid_prompt")),
        ("server", failed("oops", json!(500)), same("failed server_error")),
        ("cut", begun().cut(), same("failed server_error")),
        ("filtered", ended("content_filter"), mended("incomplete content_filter", "failed invalid_prompt")),
        ("limit of tokens", ended("length"), {
            let incomplete = "incomplete max_output_tokens";
            [incomplete, incomplete, "failed invalid_prompt"]
        }),
        ("fine", ended("stop"), same("completed ")),
    ] {
        check(name, script, expected).await;
    }
}

/// What was incomplete is still in the output, and the reason in the words.
#[tokio::test]
async fn an_incomplete_response_that_failed_shows_what_there_is() {
    let rig = Rig::start(Script::sse(&[chat::text("Hel"), chat::chunk(&json!({}), Some("content_filter"))])).await;
    let response = stream(&post(&rig, CODEX, &request()).await).response;
    assert_eq!(response["output"][0]["content"][0]["text"], "Hel");
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("Incomplete response returned, reason: content_filter"), "{message}");
}

/// Codex leaves out a message with a refusal, and shows raw reasoning to nobody who does not ask for it.
#[tokio::test]
async fn refusals_and_reasoning_come_in_the_form_that_the_client_reads() {
    let script = [chat::chunk(&json!({"reasoning_content": "hm"}), None), chat::chunk(&json!({"refusal": "no"}), None)];
    let rig = Rig::start(Script::sse(&[script.as_slice(), &[chat::stop()]].concat())).await;
    for (headers, summary_asked, summary, raw, refusal) in [
        (OTHER, false, json!([]), json!([{"type": "reasoning_text", "text": "hm"}]), "refusal"),
        (OTHER, true, json!([{"type": "summary_text", "text": "hm"}]), json!([]), "refusal"),
        (CODEX, false, json!([{"type": "summary_text", "text": "hm"}]), json!([]), "output_text"),
        (CODEX, true, json!([{"type": "summary_text", "text": "hm"}]), json!([]), "output_text"),
        (BEFORE, false, json!([{"type": "summary_text", "text": "hm"}]), json!([]), "output_text"),
    ] {
        let mut request = request();
        if summary_asked {
            request["reasoning"] = json!({"summary": "auto"});
        }
        let answer = post(&rig, headers, &request).await;
        let output = &stream(&answer).response["output"];
        assert_eq!((&output[0]["summary"], &output[0]["content"]), (&summary, &raw), "{headers:?}");
        let part = &output[1]["content"][0];
        assert_eq!(part["type"], refusal, "{headers:?}");
        let member = if refusal == "refusal" { "refusal" } else { "text" };
        assert_eq!(part[member], "no", "{headers:?}");
    }
}

/// Comments do not reset Codex's timer, and are of no use to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sign_of_life_is_an_event() {
    let tweak: fn(&mut Config) = |config| config.server.heartbeat = Duration::from_millis(20);
    let settings = Settings { tweak: Some(tweak), ..Settings::default() };
    let rig = Rig::with(Script::event_stream().event(&chat::text("Hel")).stall(), settings).await;
    for (headers, commented) in [(OTHER, true), (CODEX, false)] {
        let url = rig.url("/v1/responses");
        let mut streaming = rig.client.open(Method::POST, &url, headers, request().to_string()).await.unwrap();
        let mut read = String::new();
        while read.matches("event: response.in_progress").count() < 4 {
            read += &String::from_utf8_lossy(&streaming.next().await.unwrap().unwrap());
        }
        assert_eq!(read.contains(": heartbeat"), commented, "{read}");
    }
}

/// Codex estimates sealed reasoning once more unless it is told that the usage has it.
#[tokio::test]
async fn answers_to_codex_say_that_usage_counts_reasoning() {
    let rig = Rig::start(Script::sse(&chat::chunks())).await;
    for (client, headers) in CLIENTS {
        let answer = post(&rig, headers, &request()).await;
        let expected = (client != "other").then_some("true");
        assert_eq!(answer.header("x-reasoning-included"), expected, "{client}");
        assert_eq!(answer.header("openai-model"), None, "{client}");
        let response = stream(&answer).response;
        let usage = &response["usage"];
        assert!(usage["input_tokens_details"]["cached_tokens"].is_u64(), "{usage}");
        assert!(usage["output_tokens_details"]["reasoning_tokens"].is_u64(), "{usage}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("end_turn"));
        // Over a WebSocket only the handshake has headers.
        let (_, shaken) = Socket::connect_as(&rig, headers).await;
        let included = shaken.get("x-reasoning-included").map(|value| value.to_str().unwrap());
        assert_eq!(included, expected, "{client}, socket");
    }
}

/// The messages of a WebSocket say the same as the statuses of HTTP.
#[tokio::test]
async fn a_websocket_tells_the_same() {
    let settings = Settings { resilience: "retries: 0, breaker_failures: 0", ..Settings::default() };
    let rig = Rig::with(said(401, "no"), settings).await;
    for (headers, key, limited) in
        [(OTHER, 502, (Some("120"), "error")), (CODEX, 400, (Some("60"), "error")), (BEFORE, 400, (None, "failed"))]
    {
        let (mut socket, _) = Socket::connect_as(&rig, headers).await;
        let create = json!({"type": "response.create", "model": "m", "input": "Hello", "store": false});
        socket.say(&create).await;
        let refused = socket.next().await;
        assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(key)), "{refused}");
        assert_eq!(refused["error"]["code"], "provider_auth", "{refused}");
        rig.upstream.queue(said(429, "no").header("retry-after", "300"));
        socket.say(&create).await;
        let (wait, end) = limited;
        if end == "failed" {
            let response = socket.stream().await.response;
            assert_eq!(response["error"]["code"], "rate_limit_exceeded", "{response}");
        } else {
            let refused = socket.next().await;
            assert_eq!((&refused["status"], refused["headers"]["retry-after"].as_str()), (&json!(429), wait));
        }
    }
}

/// Codex asks again by itself when it is told to slow down: each of its tries is one request to a provider. What else may
/// pass is tried again as for everybody, and other targets have their turns.
#[tokio::test]
async fn who_retries_rate_limits_itself_is_not_helped() {
    for (client, headers) in CLIENTS {
        let alone = if client == "other" { 3 } else { 1 };
        for (status, stream, requests) in [(429, true, alone), (429, false, alone), (503, true, 3)] {
            let rig = Rig::start(said(status, "slow down")).await;
            post(&rig, headers, &json!({"model": "m", "input": "Hello", "stream": stream})).await;
            assert_eq!(rig.upstream.requests().len(), requests, "{client}: {status} {stream}");
        }
        // Nobody asks again for a background response.
        let rig = Rig::start(chat::answer(true)).await;
        rig.upstream.queue(said(429, "slow down"));
        let answer = post(&rig, headers, &json!({"model": "m", "input": "Hello", "background": true})).await;
        let id = object_now(&answer)["id"].as_str().unwrap().to_owned();
        assert_eq!(ended(&rig, &id).await["status"], "completed", "{client}");
    }
}

async fn ended(rig: &Rig, id: &str) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let response = object_now(&rig.get(&format!("/v1/responses/{id}")).await);
        if response["status"] != "queued" && response["status"] != "in_progress" {
            return response;
        }
        assert!(tokio::time::Instant::now() < deadline, "{response}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A background response is made for the client that asked for it, whoever asks for its object.
#[tokio::test]
async fn a_background_response_is_its_clients() {
    let rig = Rig::start(Script::sse(&[chat::text("Hel"), chat::chunk(&json!({}), Some("length"))])).await;
    for ((client, headers), status) in CLIENTS.into_iter().zip(["incomplete", "incomplete", "failed"]) {
        let answer = post(&rig, headers, &json!({"model": "m", "input": "Hello", "background": true})).await;
        let id = object_now(&answer)["id"].as_str().unwrap().to_owned();
        assert_eq!(ended(&rig, &id).await["status"], status, "{client}");
    }
}

/// `codex doctor` looks at both without a key.
#[tokio::test]
async fn whoever_only_looks_finds_the_endpoints() {
    let rig = Rig::start(chat::answer(true)).await;
    for (method, path, status) in [(Method::HEAD, "/v1/responses", 405), (Method::GET, "/v1/models", 200)] {
        let answer = rig.client.request(method, &rig.url(path), CODEX, "").await.unwrap();
        assert_eq!(answer.status, status, "{path}");
    }
}
