//! The fault table: each way in which a provider fails asked without and with
//! `stream`, three times over: it fails every time; it fails once; it fails and another target would answer.

mod rows;

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use testkit::{Answer, Script, Upstream};

use crate::chat;
use crate::rig::{self, KEY, QUICK, Rig, error, object, parse};
use rows::{Fault, Found, Row, rows};

/// Rows at work at the same time: they wait more than they work.
const AT_ONCE: usize = 24;

/// What the client got.
#[derive(Debug, Clone, PartialEq)]
enum Outcome {
    /// A whole answer with this text.
    Answered(&'static str),
    /// An HTTP error: status, domain code, `Retry-After`.
    Refused(u16, &'static str, Option<&'static str>),
    /// A stream that ended with `response.failed` and this code.
    Failed(&'static str),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_ends_as_specified() {
    let rows = rows().await;
    let checked: Vec<_> = stream::iter(&rows).map(check).buffer_unordered(AT_ONCE).collect().await;
    let (cells, wrong): (Vec<usize>, Vec<Vec<String>>) = checked.into_iter().unzip();
    let (cells, wrong) = (cells.into_iter().sum::<usize>(), wrong.concat());
    println!("{} rows, {cells} cells", rows.len());
    assert!(wrong.is_empty(), "{} of {cells} cells:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cells >= 300, "{cells} cells: rows are missing");
}

/// The cells of one row: how many, and what is wrong with them.
async fn check(row: &Row) -> (usize, Vec<String>) {
    let (mut cells, mut wrong) = (0, Vec::new());
    let answered = Outcome::Answered("Hello");
    for streamed in [false, true] {
        let found = row.found(streamed);
        let persistent = (&found.outcome, found.sent);
        let healed = if found.heals { (&answered, 2) } else { (&found.outcome, found.sent) };
        let moved = if found.moves { &answered } else { &found.outcome };
        let mut cell = |when: &str, got: (Outcome, usize), expected: (&Outcome, usize)| {
            cells += 1;
            if got.0 != *expected.0 || got.1 != expected.1 {
                let what = if streamed { "streamed" } else { "whole" };
                wrong.push(format!("{}: {}, {what}, {when}: {got:?} instead of {expected:?}", row.group, row.name));
            }
        };
        cell("every time", row.run(streamed, Times::Ever).await, persistent);
        if matches!(row.fault, Fault::Script(_)) {
            cell("once", row.run(streamed, Times::Once).await, healed);
        }
        let (outcome, sent) = row.run(streamed, Times::Elsewhere).await;
        // Of the first target's requests there is one, if it is known to count; the other target's are not counted.
        let once = usize::from(matches!(row.fault, Fault::Script(_)));
        cell("with another target", (outcome, sent), (moved, once));
    }
    (cells, wrong)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Ever,
    Once,
    /// Ever, but there is another target.
    Elsewhere,
}

impl Row {
    fn found(&self, streamed: bool) -> &Found {
        if streamed { &self.streamed } else { &self.whole }
    }

    /// What a client gets, and how many requests the failing provider got.
    async fn run(&self, streamed: bool, times: Times) -> (Outcome, usize) {
        let good = || Upstream::start_with(|request| chat::answer(request.json()["stream"] == json!(true)));
        let failing = match (&self.fault, times) {
            (Fault::Script(script), Times::Once) => {
                let upstream = good().await.unwrap();
                upstream.queue(script.clone());
                upstream
            }
            (Fault::Script(script), _) => Upstream::start(script.clone()).await.unwrap(),
            (Fault::Address(_), _) => Upstream::start(Script::hang_up()).await.unwrap(),
        };
        let other = good().await.unwrap();
        let address = match &self.fault {
            Fault::Address(address) => address.clone(),
            Fault::Script(_) => failing.url(),
        };
        let targets = if times == Times::Elsewhere { "[bad/m, good/m]" } else { "bad/m" };
        let provider = |name: &str, address: &str, timeouts: &str| {
            format!(
                "  {name}:\n    spec: openai-compatible\n    endpoint: {{base_url: '{address}/v1'}}\n    credentials: \
                 {{api_key: {KEY}}}\n    timeouts: {{{timeouts}}}\n    models: [m]\n"
            )
        };
        let text = format!(
            "session: {{backend: memory}}\nresilience: {{{QUICK}}}\nmodels: {{aliases: {{x: {targets}}}}}\nproviders:\n{}{}",
            provider("bad", &address, self.timeouts),
            provider("good", &other.url(), "")
        );
        let rig = Rig::serving(failing, parse(&text)).await.unwrap();
        let request = json!({"model": "x", "input": "Hello", "stream": streamed});
        let answer = tokio::time::timeout(Duration::from_mins(1), rig.post(&request)).await.expect("it hangs");
        (outcome(&answer), rig.upstream.requests().len())
    }
}

/// Every answer is one of these, and keeps all laws: one terminal event, no key, both schemas.
fn outcome(answer: &Answer) -> Outcome {
    assert!(!String::from_utf8_lossy(&answer.body).contains(KEY));
    if answer.status != 200 {
        let error = error(answer);
        let retry_after = answer.header("retry-after").map(|value| leak(value.to_owned()));
        return Outcome::Refused(error.status, leak(error.domain), retry_after);
    }
    let response: Value = if answer.header("content-type") == Some("application/json") {
        object(answer)
    } else {
        rig::stream(answer).response
    };
    match response["status"].as_str() {
        Some("completed") => {
            let text = response["output"][0]["content"][0]["text"].as_str().unwrap_or_default();
            Outcome::Answered(leak(text.to_owned()))
        }
        _ => Outcome::Failed(leak(response["error"]["code"].as_str().unwrap_or_default().to_owned())),
    }
}

/// The table's words are static.
fn leak(text: String) -> &'static str {
    text.leak()
}
