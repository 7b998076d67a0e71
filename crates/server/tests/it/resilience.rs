//! Several keys, several targets, what is learned from a refusal, and when to leave a provider alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Received, Script, Upstream};

use crate::chat;
use crate::rig::{QUICK, Rig, error, object, parse, stream};
use crate::socket::Socket;

fn asked() -> Value {
    json!({"model": "x", "input": "Hello"})
}

fn said(status: u16, message: &str) -> Script {
    Script::json(status, &json!({"error": {"message": message}}))
}

fn answer(request: &Received) -> Script {
    chat::answer(request.json()["stream"] == json!(true))
}

async fn good() -> Upstream {
    Upstream::start_with(answer).await.unwrap()
}

/// A provider's entry: its address, and more lines.
fn provider(name: &str, upstream: &Upstream, more: &str) -> String {
    format!("  {name}:\n    spec: openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    {more}\n", upstream.url())
}

async fn rig(upstream: Upstream, aliases: &str, resilience: &str, providers: &str) -> Rig {
    let text = format!(
        "session: {{backend: memory}}\nresilience: {{{resilience}}}\nmodels: {{aliases: {{x: {aliases}}}}}\nproviders:\n\
         {providers}"
    );
    Rig::serving(upstream, parse(&text)).await.unwrap()
}

// === keys ===

const KEYS: [&str; 3] = ["sk-key-one-0001", "sk-key-two-0002", "sk-key-three-03"];

async fn with_keys(choose: impl Fn(&str) -> Option<Script> + Send + Sync + 'static) -> Rig {
    let upstream = Upstream::start_with(move |request| {
        let key = request.header("authorization").unwrap().strip_prefix("Bearer ").unwrap();
        choose(key).unwrap_or_else(|| answer(request))
    });
    let upstream = upstream.await.unwrap();
    let entry = provider("a", &upstream, &format!("credentials: {{api_keys: [{}]}}", KEYS.join(", ")));
    rig(upstream, "a/m", QUICK, &entry).await
}

fn keys(rig: &Rig) -> Vec<usize> {
    let number = |request: &Received| {
        let key = request.header("authorization").unwrap().to_owned();
        KEYS.iter().position(|known| key.ends_with(known)).unwrap()
    };
    rig.upstream.requests().iter().map(number).collect()
}

#[tokio::test]
async fn a_conversation_keeps_its_key_and_others_have_the_others() {
    let rig = with_keys(|_| None).await;
    for _ in 0..6 {
        object(&rig.post(&asked()).await);
    }
    assert_eq!(keys(&rig), [ASKED; 6]);
    for number in 0..24 {
        object(&rig.post(&json!({"model": "x", "input": format!("Hello {number}")})).await);
    }
    let used = keys(&rig);
    assert!((0..KEYS.len()).all(|key| used.contains(&key)), "{used:?}");
}

/// The key of the conversation that begins as [`asked`] does, by its hash.
const ASKED: usize = 1;

#[tokio::test]
async fn a_key_that_is_refused_rests_and_the_next_takes_over() {
    for status in [401, 403, 429] {
        let refuses = move |key: &str| (key == KEYS[ASKED]).then(|| said(status, "no").header("retry-after", "60"));
        let rig = with_keys(refuses).await;
        for _ in 0..4 {
            object(&rig.post(&asked()).await);
        }
        let used = keys(&rig);
        assert_eq!((used[0], used.len()), (ASKED, 5), "{status}: refused once, and left alone: {used:?}");
        assert_eq!(used.iter().filter(|key| **key == ASKED).count(), 1, "{status}: {used:?}");
    }
}

#[tokio::test]
async fn when_every_key_is_refused_the_client_is_told_and_no_key_is_shown() {
    for (status, code) in [(401, "provider_auth"), (429, "upstream_rate_limit")] {
        let rig = with_keys(move |key| Some(said(status, &format!("bad key {key}")).header("retry-after", "60"))).await;
        let (whole, streamed) =
            (rig.post(&asked()).await, rig.post(&json!({"model": "x", "input": "Hello", "stream": true})).await);
        for answer in [whole, streamed] {
            assert_eq!(error(&answer).domain, code);
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(KEYS.iter().all(|key| !text.contains(key)) && text.contains("[redacted]"), "{text}");
        }
        let mut used = keys(&rig)[..3].to_vec();
        used.sort_unstable();
        assert_eq!(used, [0, 1, 2], "each once");
    }
}

// === answers that break off ===

/// A provider that begins each answer and breaks it off, however it does so, is left alone as one that answers nothing.
#[tokio::test]
async fn who_always_breaks_off_is_left_alone() {
    let text = json!({"choices": [{"index": 0, "delta": {"content": "Well, "}}]});
    let begun = Script::sse_bytes(format!("data: {text}\n\n"));
    let error = "data: {\"error\":{\"message\":\"gone\",\"code\":500}}\n\n";
    let failed = Script::sse_bytes(format!("data: {text}\n\n{error}"));
    for (way, script) in [("ends", begun.clone()), ("is cut", begun.cut()), ("fails", failed)] {
        let (bad, other) = (Upstream::start(script).await.unwrap(), good().await);
        let entries = [
            provider("a", &bad, "credentials: {api_key: none}"),
            provider("b", &other, "credentials: {api_key: none}"),
        ];
        let rig = rig(bad, "[a/m, b/m]", "retries: 0, breaker_failures: 3", &entries.concat()).await;
        let body = json!({"model": "x", "input": "Hello", "stream": true});
        let mut ends = Vec::new();
        for _ in 0..6 {
            ends.push(stream(&rig.post(&body).await).response["status"].as_str().unwrap_or_default().to_owned());
        }
        let expected = ["failed", "failed", "failed", "completed", "completed", "completed"];
        assert_eq!(ends, expected, "one that {way} after its first words");
    }
}

/// A response that its client cancels is no answer that broke off.
#[tokio::test]
async fn cancelled_responses_say_nothing_of_their_provider() {
    let text = json!({"choices": [{"index": 0, "delta": {"content": "Well, "}}]});
    let upstream = Upstream::start(Script::event_stream().event(&text).stall()).await.unwrap();
    let entry = provider("a", &upstream, "credentials: {api_key: none}");
    let rig = rig(upstream, "[a/m]", "retries: 0, breaker_failures: 2", &entry).await;
    for asked in 1..=4 {
        let response = rig.post(&json!({"model": "x", "input": "Hello", "background": true})).await.json();
        rig.upstream.arrived(asked).await;
        let path = format!("/v1/responses/{}/cancel", response["id"].as_str().unwrap());
        assert_eq!(rig.send(Method::POST, &path, &json!({})).await.json()["status"], "cancelled", "{asked}");
    }
}

// === targets ===

fn names(rig: &Rig, others: &[&Upstream]) -> Vec<usize> {
    std::iter::once(&rig.upstream).chain(others.iter().copied()).map(|upstream| upstream.requests().len()).collect()
}

#[tokio::test]
async fn targets_stand_in_for_each_other_in_order() {
    let (first, second, third) = (Upstream::start(said(503, "busy")).await.unwrap(), good().await, good().await);
    let entries = [
        provider("a", &first, "credentials: {api_key: none}"),
        provider("b", &second, "credentials: {api_key: none}"),
        provider("c", &third, "credentials: {api_key: none}"),
    ];
    let rig = rig(first, "[a/one, b/two/2, c/three]", QUICK, &entries.concat()).await;
    for streamed in [false, true] {
        let mut body = asked();
        body["stream"] = json!(streamed);
        let answer = rig.post(&body).await;
        assert_eq!(answer.header("x-godex-compat"), Some("model=degraded"));
        if streamed {
            assert_eq!(stream(&answer).response["model"], "x");
        } else {
            assert_eq!(object(&answer)["model"], "x");
        }
    }
    assert_eq!(names(&rig, &[&second, &third]), [2, 2, 0]);
    assert_eq!(second.requests()[0].json()["model"], "two/2", "planned for the target that answers");
}

/// Who asks again by itself still has all targets asked, each once; and what passes is told, not what does not.
#[tokio::test]
async fn a_limited_target_has_others_stand_in_for_every_client() {
    for (then, status) in [(None, 200), (Some(401), 429)] {
        let limited = Upstream::start(said(429, "slow down")).await.unwrap();
        let second = match then {
            Some(status) => Upstream::start(said(status, "no")).await.unwrap(),
            None => good().await,
        };
        let entries = [provider("a", &limited, ""), provider("b", &second, "")].concat();
        let rig = rig(limited, "[a/m, b/m]", QUICK, &entries).await;
        let (url, body) = (rig.url("/v1/responses"), asked().to_string());
        let answer = rig.client.request(Method::POST, &url, crate::clients::CODEX, body).await.unwrap();
        assert_eq!((answer.status, names(&rig, &[&second])), (status, vec![1, 1]), "{then:?}");
    }
}

/// Answers that end before they begin: another takes over, as long as that may help.
#[tokio::test]
async fn an_answer_with_nothing_in_it_goes_to_the_next_target() {
    for (reason, stands_in) in [("stop", true), ("error", true), ("length", false), ("content_filter", false)] {
        let nothing = move |request: &Received| {
            let choice = json!({"index": 0, "finish_reason": reason});
            if request.json()["stream"] == json!(true) {
                let chunk = json!({"choices": [{"index": 0, "delta": {"role": "assistant"}}]});
                let mut last = choice;
                last["delta"] = json!({});
                Script::sse(&[chunk, json!({"choices": [last]})])
            } else {
                let mut whole = choice;
                whole["message"] = json!({"role": "assistant", "content": ""});
                Script::json(200, &json!({"choices": [whole]}))
            }
        };
        let (first, second) = (Upstream::start_with(nothing).await.unwrap(), good().await);
        let entries = [provider("a", &first, ""), provider("b", &second, "")].concat();
        let rig = rig(first, "[a/m, b/m]", "retries: 0, breaker_failures: 2", &entries).await;
        // Often: a client may ask for an empty answer, and that takes the target away from nobody.
        for streamed in [false, true, false, true] {
            let mut body = asked();
            body["stream"] = json!(streamed);
            let answer = rig.post(&body).await;
            let status =
                if streamed { stream(&answer).response["status"].clone() } else { object(&answer)["status"].clone() };
            assert_eq!(status, if stands_in { "completed" } else { "incomplete" }, "{reason} {streamed}");
        }
        assert_eq!(names(&rig, &[&second]), [4, if stands_in { 4 } else { 0 }], "{reason}");
    }
}

/// Longer than the beginning of a stream is looked at.
const LATER: Duration = Duration::from_millis(700);

/// Of a whole answer, also in the background, nobody is told before it is there: however late a provider fails without
/// a word of it, another takes over. A stream has been told that it begins.
#[tokio::test]
async fn who_fails_late_without_a_word_is_replaced_for_clients_that_have_heard_nothing() {
    let event = |name: &str, data: &Value| format!("event: {name}\ndata: {data}\n\n");
    let begun = json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}});
    let ping = event("ping", &json!({"type": "ping"}));
    let busy = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let messages = Script::event_stream().send(event("message_start", &begun)).send(ping.clone());
    let messages = messages.delay(LATER).send(ping).send(event("error", &busy));
    let begun = Script::event_stream().event(&chat::chunk(&json!({"role": "assistant"}), None));
    let stopped = begun.clone().delay(LATER).event(&chat::stop());
    let silent = "timeouts: {first_byte_ms: 900, idle_ms: 900}";
    for (way, spec, more, script) in [
        ("sends an error", "messages-compatible", "", messages),
        ("says nothing and ends", "openai-compatible", "", stopped.clone().done()),
        ("says nothing and does not end", "openai-compatible", "", stopped.stall()),
        ("hangs up", "openai-compatible", "", begun.clone().delay(LATER).reset()),
        ("hangs up before any byte", "openai-compatible", "", Script::event_stream().delay(LATER).cut()),
        ("falls silent", "openai-compatible", silent, begun.stall()),
        ("is silent", "openai-compatible", silent, Script::event_stream().stall()),
    ] {
        let (late, spare) = (Upstream::start(script).await.unwrap(), good().await);
        let entry = provider("a", &late, more).replace("spec: openai-compatible", &format!("spec: {spec}"));
        let entries = [entry, provider("b", &spare, "")].concat();
        let rig = rig(late, "[a/m, b/m]", QUICK, &entries).await;
        let (whole, streamed) = rig.both(&asked()).await;
        assert_eq!(object(&whole)["status"], "completed", "{way}");
        assert_eq!(whole.header("x-godex-compat"), Some("model=degraded"), "{way}");
        assert_eq!(stream(&streamed).response["status"], "failed", "{way}");
        let response = rig.post(&json!({"model": "x", "input": "Hello", "background": true})).await.json();
        let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
        let ended = loop {
            let response = rig.get(&path).await.json();
            if !matches!(response["status"].as_str(), Some("queued" | "in_progress")) {
                break response;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_eq!(ended["status"], "completed", "{way}: {ended}");
        assert_eq!(names(&rig, &[&spare]), [3, 2], "{way}");
    }
}

/// Who could not answer in time is not asked, and has not failed.
#[tokio::test]
async fn nobody_is_asked_when_no_time_is_left() {
    let (late, spare) = (Upstream::start(Script::event_stream().stall()).await.unwrap(), good().await);
    let hasty = "timeouts: {total_ms: 600}";
    let entries = [provider("a", &late, hasty), provider("b", &spare, hasty)].concat();
    let rig = rig(late, "[a/m, b/m]", QUICK, &entries).await;
    let answer = rig.post(&asked()).await;
    assert_eq!((answer.status, error(&answer).domain.as_str()), (504, "upstream_timeout"));
    assert_eq!(names(&rig, &[&spare]), [1, 0]);
}

/// The same at the addresses of one provider: one is killed after it has begun an answer and before its first word.
#[tokio::test]
async fn an_address_that_is_killed_before_the_first_word_is_replaced() {
    let killed = Arc::new(AtomicBool::new(false));
    let start = || {
        let killed = Arc::clone(&killed);
        Upstream::start_with(move |request| match request.method.as_str() {
            "GET" => Script::json(200, &json!({"object": "list", "data": [{"id": "m", "object": "model"}]})),
            _ if killed.swap(true, Ordering::SeqCst) => answer(request),
            _ => Script::respond(200).header("content-type", "application/json").delay(LATER).reset(),
        })
    };
    let (one, other) = (start().await.unwrap(), start().await.unwrap());
    let text = format!(
        "session: {{backend: memory}}\nresilience: {{{QUICK}}}\nproviders:\n  farm:\n    spec: vllm\n    endpoint: \
         {{base_urls: ['{}/v1', '{}/v1']}}\n    models: [m]\n",
        one.url(),
        other.url()
    );
    let rig = Rig::serving(one, parse(&text)).await.unwrap();
    object(&rig.post(&json!({"model": "m", "input": "Hello"})).await);
    let posts = |upstream: &Upstream| upstream.requests().iter().filter(|asked| asked.method == "POST").count();
    assert_eq!((posts(&rig.upstream), posts(&other)), (1, 1));
}

/// Who leaves while the first word is waited for leaves nobody at work, and nobody else is asked.
#[tokio::test]
async fn nobody_waits_for_the_first_word_of_an_answer_that_nobody_wants() {
    let (late, spare) = (Upstream::start(Script::event_stream().stall()).await.unwrap(), good().await);
    let entries = [provider("a", &late, ""), provider("b", &spare, "")].concat();
    let rig = rig(late, "[a/m, b/m]", QUICK, &entries).await;
    let socket = Socket::post(rig.address, &asked()).await;
    rig.upstream.arrived(1).await;
    tokio::time::sleep(LATER).await;
    drop(socket);
    rig.upstream.closed_after(0).await;
    assert_eq!(names(&rig, &[&spare]), [1, 0]);
}

#[tokio::test]
async fn a_request_does_not_fall_to_a_target_that_cannot_serve_it() {
    let image = json!({"model": "x", "input": [{"role": "user", "content": [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
    ]}]});
    let tools = json!({"model": "x", "input": "Hello", "tools": [{"type": "function", "name": "f", "parameters": {}}]});
    let blind = "spec: {extends: openai-compatible, request: {content: {images: none}}}";
    let bare = "spec: {extends: openai-compatible, request: {tools: {max: 0}}}";
    for (body, spec, expected) in [
        (asked(), blind, [1, 1, 0]),
        (image.clone(), blind, [1, 0, 1]),
        (image, bare, [1, 1, 0]),
        (tools.clone(), bare, [1, 0, 1]),
        (tools, blind, [1, 1, 0]),
    ] {
        let (first, second, third) = (Upstream::start(said(503, "busy")).await.unwrap(), good().await, good().await);
        let entries = [
            provider("a", &first, ""),
            provider("b", &second, "").replace("spec: openai-compatible", spec),
            provider("c", &third, ""),
        ];
        let rig = rig(first, "[a/m, b/m, c/m]", QUICK, &entries.concat()).await;
        object(&rig.post(&body).await);
        assert_eq!(names(&rig, &[&second, &third]), expected, "{spec}: {body}");
    }
}

#[tokio::test]
async fn weights_share_requests_out_and_the_rest_stands_in() {
    let (first, second) = (good().await, good().await);
    let entries = [provider("a", &first, ""), provider("b", &second, "")].concat();
    let weights = "{targets: [{model: a/m, weight: 3}, {model: b/m, weight: 1}]}";
    let rig = rig(first, weights, QUICK, &entries).await;
    for _ in 0..40 {
        object(&rig.post(&asked()).await);
    }
    let shares = names(&rig, &[&second]);
    assert!((29..=31).contains(&shares[0]) && shares[0] + shares[1] == 40, "{shares:?}");
    for _ in 0..20 {
        second.queue(said(500, "oops"));
    }
    for _ in 0..20 {
        object(&rig.post(&asked()).await);
    }
}

// === what is learned ===

/// Takes no `temperature`, and wants the limit under its newer name.
fn picky(request: &Received) -> Script {
    let body = request.json();
    let refused = |member: &str| {
        let message = format!("Unsupported parameter: '{member}' is not supported with this model.");
        let code = "unsupported_parameter";
        Script::json(400, &json!({"error": {"message": message, "param": member, "code": code}}))
    };
    match ["temperature", "max_tokens"].into_iter().find(|member| body.get(member).is_some()) {
        Some(member) => refused(member),
        None => answer(request),
    }
}

#[tokio::test]
async fn what_a_model_does_not_take_is_left_out_and_remembered() {
    let upstream = Upstream::start_with(picky).await.unwrap();
    let entry = provider("a", &upstream, "");
    let rig = rig(upstream, "a/m", QUICK, &entry).await;
    let ask = |member: &str, value: Value| {
        let mut body = asked();
        body[member] = value;
        body
    };
    let warm = ask("temperature", json!(0.5));
    let answer = rig.post(&warm).await;
    object(&answer);
    assert_eq!(answer.header("x-godex-compat"), Some("temperature=ignored"));
    assert_eq!(rig.upstream.requests().len(), 2, "refused, and sent without");
    assert_eq!(rig.post(&warm).await.header("x-godex-compat"), Some("temperature=ignored"));
    assert_eq!(rig.upstream.requests().len(), 3, "it is known now");
    let limited = rig.post(&ask("max_output_tokens", json!(64))).await;
    assert_eq!(limited.header("x-godex-compat"), Some("max_tokens=repaired"));
    assert_eq!(rig.upstream.requests()[4].json()["max_completion_tokens"], 64);
    // Another model of the same provider is another matter.
    let other = json!({"model": "a/other", "input": "Hello", "temperature": 0.5});
    object(&rig.post(&other).await);
    assert_eq!(rig.upstream.requests().len(), 7);
}

#[tokio::test]
async fn a_request_is_mended_once_and_only_where_it_is_wrong() {
    let always = Upstream::start(said(400, "`temperature` is not supported")).await.unwrap();
    let entry = provider("a", &always, "");
    let rig = rig(always, "a/m", QUICK, &entry).await;
    let mut body = asked();
    assert_eq!(error(&rig.post(&body).await).status, 400);
    assert_eq!(rig.upstream.requests().len(), 1, "there was no temperature in it");
    body["temperature"] = json!(0.5);
    assert_eq!(error(&rig.post(&body).await).status, 400);
    assert_eq!(rig.upstream.requests().len(), 3);
}

// === time and mercy ===

#[tokio::test]
async fn a_provider_that_keeps_failing_is_left_alone_until_it_works() {
    let upstream = Upstream::start(said(500, "what another client has said")).await.unwrap();
    let entry = provider("a", &upstream, "");
    let rig = rig(upstream, "a/m", "retries: 0, breaker_failures: 3", &entry).await;
    let mut last = None;
    for _ in 0..20 {
        last = Some(rig.post(&asked()).await);
    }
    let last = last.unwrap();
    // Between failing in a row and one probe per second, whatever the machine's pace.
    let failed = rig.upstream.requests().len();
    assert!((3..20).contains(&failed), "{failed}");
    assert_eq!((error(&last).domain.as_str(), last.header("retry-after")), ("upstream_error", Some("1")));
    // Not in the words that were said of another's request, which may be in them.
    assert!(error(&last).message.ends_with("is left alone for a moment."), "{}", error(&last).message);
    // Whatever fails no more is found out by a probe.
    for _ in 0..100 {
        rig.upstream.queue(chat::answer(false));
        if rig.post(&asked()).await.status == 200 {
            object(&rig.post(&asked()).await);
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it never came back");
}

#[tokio::test]
async fn a_target_that_is_left_alone_is_passed_over() {
    let (first, second) = (Upstream::start(said(500, "oops")).await.unwrap(), good().await);
    let entries = [provider("a", &first, ""), provider("b", &second, "")].concat();
    let rig = rig(first, "[a/m, b/m]", "retries: 0, breaker_failures: 2", &entries).await;
    for _ in 0..12 {
        object(&rig.post(&asked()).await);
    }
    let counts = names(&rig, &[&second]);
    assert!(counts[0] < 12 && counts[1] == 12, "{counts:?}");
}

/// Many who fail together do not all come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_have_a_budget() {
    let upstream = Upstream::start(said(503, "busy").header("retry-after", "1")).await.unwrap();
    let entry = provider("a", &upstream, "");
    let rig = rig(upstream, "a/m", "breaker_failures: 0", &entry).await;
    let body = asked();
    let answers = futures_util::future::join_all((0..100).map(|_| rig.post(&body))).await;
    assert!(answers.iter().all(|answer| error(answer).status == 503));
    let sent = rig.upstream.requests().len();
    // All once; at most a fifth of them, or three, at any time a second and a third time.
    assert!((100..=100 + 2 * 20).contains(&sent), "{sent}");
    assert!(sent > 100, "some were tried again");
}

/// Who leaves while we wait to ask again has nobody ask for them.
#[tokio::test]
async fn nobody_is_asked_again_for_a_client_that_has_left() {
    let upstream = Upstream::start(said(503, "busy").header("retry-after", "1")).await.unwrap();
    let entry = provider("a", &upstream, "");
    let rig = rig(upstream, "a/m", QUICK, &entry).await;
    for streamed in [false, true] {
        let before = rig.upstream.requests().len();
        let mut body = asked();
        body["stream"] = json!(streamed);
        let socket = Socket::post(rig.address, &body).await;
        rig.upstream.arrived(before + 1).await;
        drop(socket);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(rig.upstream.requests().len(), before + 1);
    }
}
