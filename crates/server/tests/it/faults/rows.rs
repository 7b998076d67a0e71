//! The rows of the fault table.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::Script;
use tokio::net::{TcpSocket, TcpStream};

use super::Outcome::{self, Answered, Failed, Refused};
use crate::chat;

/// One fault.
pub(super) struct Row {
    /// What kind of fault it is.
    pub(super) group: &'static str,
    pub(super) name: String,
    pub(super) fault: Fault,
    pub(super) timeouts: &'static str,
    pub(super) whole: Found,
    pub(super) streamed: Found,
}

pub(super) enum Fault {
    /// What the provider does with each request.
    Script(Script),
    /// Where nobody answers.
    Address(String),
}

/// What a client gets for it.
#[derive(Clone)]
pub(super) struct Found {
    /// If it happens every time.
    pub(super) outcome: Outcome,
    /// How many requests the provider gets then.
    pub(super) sent: usize,
    /// If it happens once, the client does not notice.
    pub(super) heals: bool,
    /// Another target takes over.
    pub(super) moves: bool,
}

/// Longer than the beginning of a stream is looked at.
const LATER: Duration = Duration::from_millis(700);

const SERVER: &str = "server_error";
const UNREACHABLE: Outcome = Refused(502, "upstream_unreachable", None);
const LATE: Outcome = Refused(504, "upstream_timeout", None);
const PROTOCOL: Outcome = Refused(502, "upstream_protocol", None);
const TRUNCATED: Outcome = Refused(502, "upstream_truncated", None);
const EMPTY: Outcome = Refused(502, "upstream_empty", None);
const HELLO: Outcome = Answered("Hello");

/// The request is refused, or was begun and is over: nobody is asked again.
fn fixed(outcome: Outcome) -> Found {
    Found { outcome, sent: 1, heals: false, moves: false }
}

/// Not again there, but elsewhere.
fn moves(outcome: Outcome) -> Found {
    Found { moves: true, ..fixed(outcome) }
}

/// It may pass.
fn heals(outcome: Outcome) -> Found {
    Found { sent: 3, heals: true, moves: true, ..fixed(outcome) }
}

struct Table(Vec<Row>);

impl Table {
    fn row(&mut self, group: &'static str, name: &str, script: Script, whole: Found, streamed: Found) -> &mut Row {
        let fault = Fault::Script(script);
        self.0.push(Row { group, name: name.to_owned(), fault, timeouts: "", whole, streamed });
        self.0.last_mut().unwrap()
    }

    /// The same for both.
    fn both(&mut self, group: &'static str, name: &str, script: Script, found: Found) -> &mut Row {
        self.row(group, name, script, found.clone(), found)
    }
}

pub(super) async fn rows() -> Vec<Row> {
    let mut table = Table(Vec::new());
    connecting(&mut table).await;
    silence(&mut table);
    limits(&mut table);
    statuses(&mut table);
    cuts(&mut table);
    nonsense(&mut table);
    endings(&mut table);
    errors_within(&mut table);
    table.0
}

async fn connecting(table: &mut Table) {
    // Bound, so that nobody else gets the port, and not listening, so that nobody is let in.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = socket.local_addr().unwrap();
    std::mem::forget(socket);
    // No label of a name is that long: it is refused without a question to anybody.
    let unknown = format!("http://{}.internal", "x".repeat(64));
    for (name, address) in [("connection refused", format!("http://{closed}")), ("no such name", unknown)] {
        let row = table.both("unreachable", name, Script::hang_up(), Found { sent: 0, ..moves(UNREACHABLE) });
        row.fault = Fault::Address(address);
    }
    let row =
        table.both("unreachable", "connecting takes too long", Script::hang_up(), Found { sent: 0, ..moves(LATE) });
    (row.fault, row.timeouts) = (Fault::Address(unanswered().await), "connect_ms: 200");
}

/// An address whose queue of connections is full: further ones are not answered, neither yes nor no.
async fn unanswered() -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        held.push(stream);
    }
    // For as long as the test runs.
    std::mem::forget((listener, held));
    format!("http://{address}")
}

fn begun() -> Script {
    Script::event_stream().event(&chat::text("Hel"))
}

/// What says that an answer begins, and nothing of it.
fn role() -> Script {
    Script::event_stream().event(&chat::chunk(&json!({"role": "assistant", "content": ""}), None))
}

fn comments(bytes: usize) -> String {
    ": wait\n\n".repeat(bytes / 8)
}

fn silence(table: &mut Table) {
    let row = table.both("no answer begins", "no answer begins", Script::silent(), moves(LATE));
    row.timeouts = "first_byte_ms: 200";
    let row =
        table.both("no answer begins", "half a head", Script::raw().send("HTTP/1.1 200 OK\r\n").stall(), moves(LATE));
    row.timeouts = "first_byte_ms: 200";
    let row =
        table.row("no answer begins", "no answer within the whole time", Script::silent(), moves(LATE), moves(LATE));
    row.timeouts = "total_ms: 200";
    let late = |table: &mut Table, group, name: &str, script, timeouts| {
        table.row(group, name, script, fixed(LATE), fixed(Failed(SERVER))).timeouts = timeouts;
    };
    let no_json = Script::body(200, "application/json", "").stall().send("{}");
    for (name, script) in [("a head, no event", Script::event_stream().stall()), ("a head, no body", no_json)] {
        let row = table.row("no first event", name, script, moves(LATE), fixed(Failed(SERVER)));
        row.timeouts = "first_byte_ms: 900";
    }
    late(table, "silence", "silence between chunks", begun().stall(), "idle_ms: 200");
    late(table, "silence", "silence within a chunk", begun().send("data: {\"cho").stall(), "idle_ms: 200");
    let comments = (0..60).fold(begun(), |script, _| script.delay(Duration::from_millis(50)).send(": wait\n\n"));
    late(table, "no end in time", "comments for ever", comments.stall(), "total_ms: 1500, idle_ms: 10000");
    let drip = (0..200).fold(begun(), |script, _| script.delay(Duration::from_millis(20)).event(&chat::text(".")));
    late(table, "no end in time", "a drip", drip, "total_ms: 1500, idle_ms: 10000");
}

fn said(status: u16, message: &str) -> Script {
    Script::json(status, &json!({"error": {"message": message, "type": "x", "code": null}}))
}

fn limits(table: &mut Table) {
    let limited = |wait| Refused(429, "upstream_rate_limit", Some(wait));
    table.both("a limit", "429", said(429, "slow down"), heals(limited("1")));
    for (header, value, found) in [
        ("retry-after", "1", heals(limited("1"))),
        ("retry-after", "0", heals(limited("1"))),
        ("retry-after", "0.2", heals(limited("1"))),
        ("retry-after-ms", "250", heals(limited("1"))),
        ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", heals(limited("1"))),
        ("retry-after", "soon", heals(limited("1"))),
        ("retry-after", "-5", heals(limited("1"))),
        ("retry-after", "11", moves(limited("11"))),
        ("retry-after", "1000000000", moves(limited("120"))),
        ("retry-after", "1e30", moves(limited("120"))),
        ("retry-after-ms", "60000", moves(limited("60"))),
        ("retry-after", "Thu, 31 Dec 2099 23:59:59 GMT", moves(limited("120"))),
    ] {
        let script = said(429, "slow down").header(header, value);
        table.both("a limit", &format!("429, {header}: {value}"), script, found);
    }
    table.both("a limit", "429, in words", said(429, "Please try again in 20s."), moves(limited("20")));
    table.both(
        "a limit",
        "429, words and a header",
        said(429, "Try again in 20s.").header("retry-after", "1"),
        heals(limited("1")),
    );
    let quota = json!({"error": {"message": "pay", "code": "insufficient_quota"}});
    table.both("a limit", "429, no money", Script::json(429, &quota), moves(Refused(429, "provider_quota", None)));
}

fn statuses(table: &mut Table) {
    for (status, outcome) in [
        (500, Refused(502, "upstream_error", None)),
        (502, Refused(502, "upstream_error", None)),
        (503, Refused(503, "upstream_overloaded", None)),
        (504, LATE),
        (529, Refused(503, "upstream_overloaded", None)),
    ] {
        table.both("a server error", &status.to_string(), said(status, "no"), heals(outcome));
    }
    let busy = said(503, "no").header("retry-after", "1");
    table.both("a server error", "503 that says when", busy, heals(Refused(503, "upstream_overloaded", Some("1"))));
    let busy = said(503, "no").header("retry-after", "30");
    table.both(
        "a server error",
        "503 that says when, too late",
        busy,
        moves(Refused(503, "upstream_overloaded", Some("30"))),
    );
    let page = Script::body(502, "text/html", "<html>");
    table.both("a server error", "502, a balancer's page", page, heals(Refused(502, "upstream_error", None)));
    for (name, script) in [("hangs up", Script::hang_up()), ("resets", Script::raw().reset())] {
        table.both("a server error", name, script, heals(UNREACHABLE));
    }
    let invalid = Refused(400, "upstream_invalid_request", None);
    for (status, message, found) in [
        (400, "no", fixed(invalid.clone())),
        (413, "too large", fixed(invalid.clone())),
        (422, "no", fixed(invalid)),
        (401, "no", moves(Refused(502, "provider_auth", None))),
        (403, "no", moves(Refused(502, "provider_auth", None))),
        (402, "no", moves(Refused(429, "provider_quota", None))),
        (404, "There is no model m", moves(Refused(404, "model_not_found", None))),
        (400, "Content Exists Risk", fixed(Refused(400, "upstream_content_policy", None))),
    ] {
        table.both("a refusal", &format!("{status} {message}"), said(status, message), found);
    }
    let overflow = said(400, "This model's maximum context length is 10 tokens");
    let (whole, streamed) = (Refused(400, "context_length_exceeded", None), Failed("context_length_exceeded"));
    table.row("a refusal", "400, the prompt does not fit", overflow, fixed(whole), fixed(streamed));
    for status in [301, 302, 307, 308] {
        let script = said(status, "moved").header("location", "/elsewhere");
        table.both("a refusal", &format!("{status}, which is not followed"), script, moves(PROTOCOL));
    }
}

fn cuts(table: &mut Table) {
    let pause = Duration::from_millis(50);
    let half = || Script::body(200, "application/json", "{\"choi").delay(pause);
    for (group, name, script) in [
        ("cut off", "FIN in mid-stream", begun().cut()),
        ("cut off", "the end in mid-stream", begun()),
        ("cut off", "FIN within a chunk", begun().send("data: {\"cho").cut()),
        ("cut off", "RST in mid-stream", begun().delay(pause).reset()),
    ] {
        table.row(group, name, script, fixed(TRUNCATED), fixed(Failed(SERVER)));
    }
    for (group, name, script) in [
        ("cut off", "FIN in a JSON body", half().cut().send("ces\": []}")),
        ("cut off", "RST in a JSON body", half().reset().send("ces\": []}")),
        ("cut off", "the end after a role", role()),
        ("cut off", "FIN after a role", role().cut()),
        ("cut off", "RST after a role", role().delay(pause).reset()),
    ] {
        table.both(group, name, script, heals(TRUNCATED));
    }
    table.both("cut off", "RST before the body", Script::event_stream().delay(pause).reset(), heals(TRUNCATED));
    for (name, script) in [
        ("FIN long after a role", role().delay(LATER).cut()),
        ("RST long before the body", Script::event_stream().delay(LATER).reset()),
    ] {
        table.row("cut off", name, script, heals(TRUNCATED), fixed(Failed(SERVER)));
    }
}

fn nonsense(table: &mut Table) {
    for (name, script) in [
        ("a broken chunk", begun().send("data: {oops\n\n").done()),
        ("a chunk of another type", begun().send("data: 17\n\n").done()),
    ] {
        table.row("not an answer", name, script, fixed(PROTOCOL), fixed(Failed(SERVER)));
    }
    for (name, script) in [
        ("half a JSON", Script::body(200, "application/json", "{\"choices\": [")),
        ("JSON of something else", Script::body(200, "application/json", "[1, 2]")),
        ("a page that says it is JSON", Script::body(200, "application/json", "<html>")),
        ("a page that says it is text", Script::body(200, "text/plain", "\n<!DOCTYPE html><html>")),
        ("words that say they are text", Script::body(200, "text/plain", "no healthy upstream")),
        ("words that say they are a stream", Script::sse_bytes("no healthy upstream")),
        ("an empty body", Script::body(200, "application/json", "")),
        ("an empty body of no type", Script::respond(200)),
        ("white space", Script::body(200, "text/plain", " \n\n")),
        ("an empty stream", Script::event_stream()),
        ("comments alone", Script::sse_bytes(": hi\n\n: hi\n\n")),
        ("a broken chunk first", Script::sse_bytes("data: {oops\n\n")),
        ("a broken chunk after a role", role().send("data: {oops\n\n").done()),
        ("a page", Script::body(200, "text/html", "<html>login</html>")),
        ("another protocol", Script::garbage("SSH-2.0-OpenSSH_9.6\r\n\r\n")),
        ("an absurd status", Script::garbage("HTTP/1.1 9999 What\r\n\r\n")),
        ("a compressed stream", begun().header("content-encoding", "gzip").done()),
    ] {
        table.both("not an answer", name, script, moves(PROTOCOL));
    }
}

fn endings(table: &mut Table) {
    let hello = || Script::event_stream().event(&chat::text("Hello"));
    let last = json!({"choices": [], "usage": chat::usage()});
    table.both("no [DONE]", "no [DONE]", hello().event(&chat::stop()), fixed(HELLO));
    table.both("no [DONE]", "no [DONE], and cut", hello().event(&chat::stop()).cut(), fixed(HELLO));
    table.both("no [DONE]", "no [DONE], and no end", hello().event(&chat::stop()).stall(), fixed(HELLO));
    table.both("no finish reason", "no finish reason", hello().done(), fixed(HELLO));
    table.both("no finish reason", "[DONE] alone", Script::event_stream().done(), moves(EMPTY));
    table.both("no finish reason", "[DONE] after a role", role().done(), moves(EMPTY));
    table.both("no finish reason", "no choices", Script::json(200, &json!({"choices": []})), moves(EMPTY));
    let nothing = Script::event_stream().event(&chat::stop()).done();
    table.row("no finish reason", "a finish reason alone", nothing, moves(EMPTY), moves(Failed(SERVER)));
    let endless = Script::event_stream().event(&chat::stop()).stall();
    let failed = fixed(Failed(SERVER));
    table.row("no finish reason", "a finish reason alone, and no end", endless, moves(EMPTY), failed);
    let both = |text: &str| chat::chunk(&json!({"content": text}), Some("stop"));
    table.both(
        "text after the finish reason",
        "text after the finish reason",
        begun().event(&chat::stop()).event(&chat::text("lo")).done(),
        fixed(HELLO),
    );
    table.both(
        "text after the finish reason",
        "a finish reason with every chunk",
        Script::sse(&[both("Hel"), both("lo")]),
        fixed(HELLO),
    );
    table.both("the other form", "one JSON", Script::json(200, &chat::completion()), fixed(HELLO));
    table.both("the other form", "a stream", Script::sse(&chat::chunks()), fixed(HELLO));
    let without = |mut chunk: Value| {
        chunk.as_object_mut().unwrap().remove("usage");
        chunk
    };
    table.both("usage", "no usage", Script::json(200, &without(chat::completion())), fixed(HELLO));
    table.both("usage", "no usage in the stream", hello().event(&chat::stop()).done(), fixed(HELLO));
    let twice = hello().event(&chat::stop()).event(&last).event(&last).done();
    table.both("usage", "usage twice", twice, fixed(HELLO));
    let mut wrong = chat::completion();
    wrong["usage"] = json!({"prompt_tokens": "many", "completion_tokens": -1});
    table.both("usage", "wrong usage", Script::json(200, &wrong), fixed(HELLO));
}

fn errors_within(table: &mut Table) {
    let busy = json!({"error": {"message": "busy", "code": 503}});
    let slow = json!({"error": {"message": "slow down", "code": 429}});
    let wrong = json!({"error": {"message": "no", "code": 400}});
    let overloaded = Refused(503, "upstream_overloaded", None);
    let limited = Refused(429, "upstream_rate_limit", Some("1"));
    table.both("an error in a 200", "an error as the body", Script::json(200, &busy), heals(overloaded.clone()));
    table.both(
        "an error in a 200",
        "an error as the stream",
        Script::event_stream().event(&busy),
        heals(overloaded.clone()),
    );
    table.both("an error in a 200", "a limit as the stream", Script::event_stream().event(&slow), heals(limited));
    let later = Script::event_stream().delay(Duration::from_millis(50)).event(&busy);
    table.both("an error in a 200", "an error as the stream, a bit later", later, heals(overloaded.clone()));
    let pause = Duration::from_millis(50);
    for (name, script) in [
        ("an error after a role", role().event(&busy)),
        ("an error after a role, a bit later", role().delay(pause).event(&busy)),
        ("an error after comments", role().send(": wait\n\n").delay(pause).send(": wait\n\n").event(&busy)),
        ("an error after no choices", Script::event_stream().event(&json!({"choices": []})).event(&busy)),
        ("an error in pieces", role().event(&busy).split_every(5)),
    ] {
        table.both("an error in a 200", name, script, heals(overloaded.clone()));
    }
    let streamed = fixed(Failed("server_is_overloaded"));
    for (name, script, whole) in [
        ("an error long after a role", role().delay(LATER).event(&busy), heals(overloaded.clone())),
        ("an error after endless comments", role().send(comments(70 << 10)).event(&busy), fixed(overloaded.clone())),
    ] {
        table.row("an error in a 200", name, script, whole, streamed.clone());
    }
    let odd = Script::event_stream().event(&json!({"code": 503, "msg": "busy"})).done();
    table.both("an error in a 200", "an error of a shape of its own", odd, heals(overloaded.clone()));
    let named = Script::sse_bytes("event: error\ndata: {\"reason\": \"no\"}\n\n");
    table.both(
        "an error in a 200",
        "an event that is called error",
        named,
        heals(Refused(502, "upstream_error", None)),
    );
    let later = begun().event(&json!({"code": 503, "msg": "busy"})).done();
    table.row(
        "an error in a 200",
        "an error of a shape of its own in mid-stream",
        later,
        fixed(overloaded.clone()),
        fixed(Failed("server_is_overloaded")),
    );
    let refused = Refused(400, "upstream_invalid_request", None);
    table.both("an error in a 200", "a refusal as the stream", Script::event_stream().event(&wrong), fixed(refused));
    table.row("an error in a 200", "an error in mid-stream", begun().event(&busy), fixed(overloaded), streamed);
}
