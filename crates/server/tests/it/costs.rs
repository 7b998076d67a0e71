//! What was used and what it cost, as the store has it when the server is gone.

use http::Method;
use serde_json::{Value, json};
use store::{SqliteOptions, Store, UsageBy, UsageQuery};
use testkit::{McpServer, Script, Upstream};

use crate::chat;
use crate::hosted;
use crate::rig::{Rig, error, object, parse};
use crate::socket::Socket;

/// For a million tokens: one dollar of input, two of output. So a token of input is a thousand nanodollars.
const PRICE: &str = "{input: 1, output: 2}";

/// What `chat::usage` costs: 5 tokens of input, 2 of output.
const ANSWER: u64 = 5 * 1000 + 2 * 2000;

struct Costs {
    rig: Rig,
    folder: tempfile::TempDir,
}

/// One row: provider, model, answers, unpriced, tokens of input and output, calls of tools, nanodollars.
type Row = (String, String, u64, u64, u64, u64, u64, u64);

impl Costs {
    async fn start(upstream: Upstream, prices: &str, more: &str) -> Self {
        Self::start_as("openai-compatible", upstream, prices, more).await
    }

    async fn start_as(spec: &str, upstream: Upstream, prices: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "session: {{sqlite: {{path: '{}'}}}}\nresilience: {{backoff_ms: 2, breaker_failures: 0}}\nproviders:\n  up:\n    spec: \
             {spec}\n    endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n    models: [m]\n    \
             prices: {prices}\n{more}",
            folder.path().join("s.db").display(),
            upstream.url()
        );
        Self { rig: Rig::serving(upstream, parse(&text)).await.unwrap(), folder }
    }

    async fn of(script: Script) -> Self {
        Self::start(Upstream::start(script).await.unwrap(), &format!("{{m: {PRICE}}}"), "").await
    }

    /// Ends the server, and reads what it has left.
    async fn rows(self) -> Vec<Row> {
        self.rig.stop().await;
        let store = Store::sqlite(&self.folder.path().join("s.db"), &SqliteOptions::default()).unwrap();
        let by = UsageBy { provider: true, model: true, ..UsageBy::default() };
        let rows = store.usage(UsageQuery { from: 0, to: 1 << 40, by, ..UsageQuery::default() }).await.unwrap();
        rows.into_iter()
            .map(|(key, sum)| {
                let (input, output) = (sum.input_tokens, sum.output_tokens);
                (key.provider, key.model, sum.requests, sum.unpriced, input, output, sum.tool_calls, sum.nanodollars)
            })
            .collect()
    }
}

fn row(model: &str, requests: u64, nanodollars: u64) -> Row {
    ("up".to_owned(), model.to_owned(), requests, 0, 5 * requests, 2 * requests, 0, nanodollars)
}

#[tokio::test]
async fn every_answer_is_charged_once() {
    let upstream = Upstream::start_with(|received| chat::answer(received.json()["stream"] == true)).await.unwrap();
    let costs = Costs::start(upstream, &format!("{{m: {PRICE}}}"), "").await;
    for body in [
        json!({"model": "m", "input": "Hi"}),
        json!({"model": "m", "input": "Hi", "store": false}),
        json!({"model": "m", "input": "Hi", "stream": true}),
    ] {
        assert_eq!(costs.rig.post(&body).await.status, 200);
    }
    assert_eq!(costs.rows().await, [row("m", 3, 3 * ANSWER)]);
}

#[tokio::test]
async fn a_price_that_is_not_known_is_none() {
    let upstream = Upstream::start(Script::json(200, &chat::completion())).await.unwrap();
    let costs = Costs::start(upstream, "{other: {input: 1, output: 1}}", "").await;
    object(&costs.rig.post(&json!({"model": "m", "input": "Hi"})).await);
    assert_eq!(costs.rows().await, [("up".to_owned(), "m".to_owned(), 1, 1, 5, 2, 0, 0)]);
}

#[tokio::test]
async fn an_answer_that_is_asked_for_twice_costs_twice() {
    let mut wrong = chat::completion();
    wrong["choices"][0]["message"]["content"] = json!("seven");
    let upstream = Upstream::start(Script::json(200, &wrong)).await.unwrap();
    let costs = Costs::start(upstream, &format!("{{m: {PRICE}}}"), "output: {repair: reask}\n").await;
    let format = json!({"type": "json_schema", "name": "n", "strict": true, "schema": {"type": "object"}});
    let refused = costs.rig.post(&json!({"model": "m", "input": "Hi", "text": {"format": format}})).await;
    // Both were no JSON: the failure is paid for, too.
    assert_eq!(error(&refused).key(), (502, "server_error", "invalid_output_format", None));
    assert_eq!(costs.rows().await, [row("m", 2, 2 * ANSWER)]);
}

#[tokio::test]
async fn who_answers_is_paid_and_who_refuses_is_not() {
    let broken = Upstream::start(Script::respond(503)).await.unwrap();
    let upstream = Upstream::start(Script::json(200, &chat::completion())).await.unwrap();
    let more = format!(
        "  broken:\n    spec: openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n    prices: \
         {{'*': {{input: 100, output: 100}}}}\nmodels: {{aliases: {{both: [broken/m, up/m]}}}}\n",
        broken.url()
    );
    let costs = Costs::start(upstream, &format!("{{m: {PRICE}}}"), &more).await;
    object(&costs.rig.post(&json!({"model": "both", "input": "Hi"})).await);
    assert_eq!(costs.rows().await, [row("m", 1, ANSWER)]);
}

/// What a provider counts of an answer that comes to nothing is paid, though another answers.
#[tokio::test]
async fn an_answer_that_came_to_nothing_costs_what_was_counted() {
    let chunks = chat::chunks();
    let empty = Script::sse(&[&chunks[..1], &chunks[3..]].concat());
    let mut whole = chat::completion();
    whole["choices"][0]["message"]["content"] = json!("");
    for (stream, script) in [(true, empty), (false, Script::json(200, &whole))] {
        let upstream = Upstream::start_with(move |received| match received.json()["model"].as_str() {
            Some("m") => script.clone(),
            _ => chat::answer(received.json()["stream"] == true),
        });
        let prices = format!("{{m: {PRICE}, n: {PRICE}}}");
        let both = "models: {aliases: {both: [up/m, up/n]}}\n";
        let costs = Costs::start(upstream.await.unwrap(), &prices, both).await;
        let answer = costs.rig.post(&json!({"model": "both", "input": "Hi", "stream": stream})).await;
        assert_eq!(answer.status, 200);
        assert_eq!(costs.rows().await, [row("m", 1, ANSWER), row("n", 1, ANSWER)], "{stream}");
    }
}

#[tokio::test]
async fn a_summary_is_paid_for() {
    let costs = Costs::of(Script::sse(&chat::chunks())).await;
    let input = json!([{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}, {"role": "user", "content": "Three"}]);
    let answer = costs.rig.send(Method::POST, "/v1/responses/compact", &json!({"model": "m", "input": input})).await;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let asked = costs.rig.upstream.requests().len() as u64;
    assert_eq!(costs.rows().await, [row("m", asked, asked * ANSWER)]);
}

#[tokio::test]
async fn usage_that_nobody_says_is_estimated() {
    let costs = Costs::of(Script::sse(&[chat::text(&"word ".repeat(80)), chat::stop()])).await;
    object(&costs.rig.post(&json!({"model": "m", "input": "x".repeat(4000)})).await);
    let rows = costs.rows().await;
    let [(_, _, 1, 0, input, 100, 0, nanodollars)] = rows.as_slice() else { panic!("{rows:?}") };
    assert!((1000..1200).contains(input), "{rows:?}");
    assert_eq!(*nanodollars, input * 1000 + 100 * 2000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_has_cost_what_came() {
    let costs = Costs::of(Script::event_stream().event(&chat::text(&"word ".repeat(80))).stall()).await;
    let body = json!({"model": "m", "input": "x".repeat(4000), "stream": true});
    let mut socket = Socket::post(costs.rig.address, &body).await;
    let read = socket.read_until("word word").await;
    assert!(read.contains("word word"), "{read}");
    drop(socket);
    costs.rig.upstream.closed_after(0).await;
    let rows = costs.rows().await;
    let [(_, _, 1, 0, 1000..1200, 100, 0, nanodollars)] = rows.as_slice() else { panic!("{rows:?}") };
    assert!(*nanodollars > 1_000_000 + 200_000, "{rows:?}");
}

/// A provider that has the request works on it, though nobody waits for its answer any more: what was sent is paid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_before_the_answer_has_cost_what_was_asked() {
    for stream in [false, true] {
        let costs = Costs::of(Script::silent()).await;
        let body = json!({"model": "m", "input": "x".repeat(4000), "stream": stream});
        let socket = Socket::post(costs.rig.address, &body).await;
        costs.rig.upstream.arrived(1).await;
        drop(socket);
        costs.rig.upstream.closed_after(0).await;
        let rows = costs.rows().await;
        let [(_, _, 1, 0, input, 0, 0, nanodollars)] = rows.as_slice() else { panic!("{rows:?}") };
        assert!((1000..1200).contains(input) && *nanodollars == input * 1000, "{rows:?}");
    }
}

/// So does one whose answer breaks off before there is anything in it, each time that it is asked again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_off_at_once_has_cost_what_was_asked() {
    let first = json!({"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]});
    for script in [Script::event_stream(), Script::event_stream().event(&first)] {
        let costs = Costs::of(script.cut()).await;
        let answer = costs.rig.post(&json!({"model": "m", "input": "x".repeat(4000), "stream": true})).await;
        assert_eq!(answer.status, 502);
        let asked = costs.rig.upstream.requests().len() as u64;
        let rows = costs.rows().await;
        let [(_, _, requests, 0, input, _, _, _)] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!(*requests, asked, "{rows:?}");
        assert!((1000 * asked..1200 * asked).contains(input), "{rows:?}");
    }
}

/// Nor is one that refuses paid, though it takes its time to say why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_refusal_costs_nothing() {
    let costs = Costs::of(Script::respond(400).header("content-length", "100").stall()).await;
    let socket = Socket::post(costs.rig.address, &json!({"model": "m", "input": "Hi"})).await;
    costs.rig.upstream.arrived(1).await;
    // The head is on its way.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    drop(socket);
    costs.rig.upstream.closed_after(0).await;
    assert_eq!(costs.rows().await, []);
}

/// Who never had it is not paid.
#[tokio::test]
async fn a_provider_that_is_not_reached_is_not_paid() {
    let upstream = Upstream::start(Script::silent()).await.unwrap();
    let more = "  gone:\n    spec: openai-compatible\n    endpoint: {base_url: 'http://127.0.0.1:9/v1'}\n    \
                credentials: {api_key: k}\n    prices: {'*': {input: 100, output: 100}}\n";
    let costs = Costs::start(upstream, &format!("{{m: {PRICE}}}"), more).await;
    assert_eq!(costs.rig.post(&json!({"model": "gone/m", "input": "Hi"})).await.status, 502);
    assert_eq!(costs.rows().await, []);
}

#[tokio::test]
async fn hosted_tools_cost_what_the_operator_says() {
    let search = hosted::calls(&[("c1", "web_search", json!({"queries": ["one", "two"]}))]);
    let upstream = hosted::model(vec![search, hosted::says("Done.")]).await;
    let tools = "tools: {web_search: {spec: mock, price_per_call: 0.005}}\n";
    let costs = Costs::start(upstream, &format!("{{m: {PRICE}}}"), tools).await;
    let answer = costs.rig.post(&json!({"model": "m", "input": "Go", "tools": [{"type": "web_search"}]})).await;
    assert_eq!(object(&answer)["output"][0]["type"], "web_search_call");
    let search = ("mock".to_owned(), "web_search".to_owned(), 0, 0, 0, 0, 2, 2 * 5_000_000);
    assert_eq!(costs.rows().await, [search, row("m", 2, 2 * ANSWER)]);
}

#[tokio::test]
async fn calls_of_mcp_servers_are_counted_with_or_without_a_price() {
    for (price, unpriced, nanodollars) in [(", price_per_call: 0.01", 0, 10_000_000), ("", 1, 0)] {
        let server = McpServer::start(testkit::mcp::McpOptions::new(testkit::mcp::McpEra::Modern)).await.unwrap();
        let call = hosted::calls(&[("c1", "clock__echo", json!({"text": "x"}))]);
        let upstream = hosted::model(vec![call, hosted::says("Done.")]).await;
        let tools = format!(
            "tools: {{mcp: {{servers: {{clock: {{url: '{}', require_approval: never{price}}}}}}}}}\n",
            server.url()
        );
        let costs = Costs::start(upstream, &format!("{{m: {PRICE}}}"), &tools).await;
        let body: Value = json!({"model": "m", "input": "Go", "tools": [hosted::mcp("clock")]});
        object(&costs.rig.post(&body).await);
        let rows = costs.rows().await;
        let [(clock, _, 0, no_price, 0, 0, 1, cost), answers] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((clock.as_str(), *no_price, *cost), ("clock", unpriced, nanodollars));
        assert_eq!(*answers, row("m", 2, 2 * ANSWER));
    }
}

/// What a provider runs itself is in no usage: it is counted, and its cost is not known.
#[tokio::test]
async fn tools_that_a_provider_runs_are_counted_without_a_price() {
    let item = |kind: &str, id: &str| json!({"type": kind, "id": id, "status": "completed"});
    let output = json!([
        item("web_search_call", "ws_1"),
        item("web_search_call", "ws_2"),
        item("code_interpreter_call", "ci_1"),
        {"type": "shell_call", "id": "sh_1", "call_id": "c", "status": "completed", "action": {"commands": ["ls"]}},
    ]);
    let usage = json!({"input_tokens": 5, "output_tokens": 2, "total_tokens": 7});
    let whole = json!({"id": "r", "object": "response", "status": "completed", "output": output, "usage": usage});
    let events = |whole: &Value| {
        let mut script = Script::event_stream();
        for item in output.as_array().unwrap() {
            for name in ["added", "done"] {
                script = script.event(&json!({"type": format!("response.output_item.{name}"), "item": item}));
            }
        }
        script.event(&json!({"type": "response.completed", "response": whole}))
    };
    let (plain, streamed) = (Script::json(200, &whole), events(&whole));
    let upstream = Upstream::start(plain).await.unwrap();
    let (spec, prices) = ("{extends: openai-compatible, wire: responses}", format!("{{m: {PRICE}}}"));
    let costs = Costs::start_as(spec, upstream, &prices, "").await;
    assert_eq!(costs.rig.post(&json!({"model": "m", "input": "Hi"})).await.status, 200);
    costs.rig.upstream.queue(streamed);
    let streamed = costs.rig.post(&json!({"model": "m", "input": "Hi", "stream": true})).await;
    assert_eq!(streamed.status, 200);
    let tool = |name: &str, calls: u64| ("up".to_owned(), name.to_owned(), 0, calls, 0, 0, calls, 0);
    let mut rows = costs.rows().await;
    rows.sort();
    assert_eq!(rows, [tool("code_interpreter", 2), row("m", 2, 2 * ANSWER), tool("web_search", 4)]);
}
