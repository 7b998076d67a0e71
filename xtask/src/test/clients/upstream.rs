//! A Chat Completions server for what the built-in model cannot play: a provider that is silent for longer than
//! godex waits with its sign of life, one that shows what it was sent (`history`), one that does what its user writes
//! (`steps`), and one that shows what it was sent after it has called a tool (any other name). The model's name says which.
//! It always streams: godex reads that also when it asked for a whole answer. To who asks at `/messages` it speaks that API.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{messages, steps};

/// More than the 15 seconds after which godex shows its client that it is alive.
const SILENCE: Duration = Duration::from_secs(20);

/// The configuration that puts godex in front of it as the provider `scripted`, as `thinking`, which wants its thoughts
/// back, as `limited`, which takes few tools, and as `messages`, which speaks another API.
pub(super) fn configuration() -> Result<String> {
    let address = start()?;
    let endpoint = format!("{{base_url: \"http://{address}/v1\"}}");
    let thinking = "{extends: openai-compatible, request: {reasoning: {replay: always}}}";
    let provider = |name, spec| format!("  {name}: {{spec: {spec}, endpoint: {endpoint}}}\n");
    let limited = "{extends: openai-compatible, request: {tools: {max: 128}}}";
    let providers = [("scripted", "openai-compatible"), ("thinking", thinking), ("limited", limited)];
    let messages = format!(
        "  messages: {{spec: messages-compatible, credentials: {{api_key: unused}}, endpoint: {{base_url: \"http://{address}\"}}}}\n"
    );
    Ok("providers:\n".to_owned() + &providers.map(|(name, spec)| provider(name, spec)).concat() + &messages)
}

/// Serves until this process ends.
fn start() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A peer that goes away is no failure of ours: its test says what it missed.
            thread::spawn(move || answer(stream).ok());
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> Result<()> {
    let (path, body) = request(&mut BufReader::new(stream.try_clone()?))?;
    if path.ends_with("/messages") {
        return answer_in_messages(stream, &body);
    }
    let script = match script(&body) {
        Ok(script) => script,
        Err(problem) => return refuse(&mut stream, &problem),
    };
    write!(stream, "{STREAM}")?;
    for step in script {
        match step {
            Step::Silence => thread::sleep(SILENCE),
            Step::Delta(delta) => choice(&mut stream, &delta, "null")?,
            Step::Stop(reason) => choice(&mut stream, "{}", &format!("{reason:?}"))?,
        }
    }
    let usage = r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}"#;
    write!(stream, "data: {{{HEAD},\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n")?;
    Ok(())
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn answer_in_messages(mut stream: TcpStream, body: &str) -> Result<()> {
    let request = serde_json::from_str(body)?;
    let script = match messages::to_chat(&request).and_then(|chat| script(&chat.to_string())) {
        Ok(script) => script,
        Err(problem) => return refuse(&mut stream, &problem),
    };
    write!(stream, "{STREAM}")?;
    let mut events = messages::Events::begin(stream, request)?;
    for step in script {
        match step {
            Step::Silence => thread::sleep(SILENCE),
            Step::Delta(delta) => events.delta(&delta)?,
            Step::Stop(reason) => return events.end(reason),
        }
    }
    Ok(())
}

/// The test that asked reads why.
fn refuse(stream: &mut TcpStream, problem: &str) -> Result<()> {
    let error = serde_json::json!({"error": {"message": problem, "type": "invalid_request_error"}}).to_string();
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n";
    Ok(write!(stream, "{head}content-length: {}\r\n\r\n{error}", error.len())?)
}

const HEAD: &str = r#""id":"scripted-1","object":"chat.completion.chunk","created":1,"model":"scripted""#;

fn choice(stream: &mut TcpStream, delta: &str, reason: &str) -> Result<()> {
    let choice = format!(r#"{{"index":0,"delta":{delta},"finish_reason":{reason}}}"#);
    write!(stream, "data: {{{HEAD},\"choices\":[{choice}]}}\n\n")?;
    Ok(stream.flush()?)
}

/// Reads one request and gives its path and its body.
fn request(stream: &mut impl BufRead) -> Result<(String, String)> {
    let mut length = None;
    let mut first = String::new();
    stream.read_line(&mut first)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse()?);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length.context("a request without content-length")?];
    stream.read_exact(&mut body)?;
    Ok((path, String::from_utf8(body)?))
}

pub(super) enum Step {
    Silence,
    /// The JSON of a `delta`.
    Delta(String),
    /// The end, with this `finish_reason`.
    Stop(&'static str),
}

fn script(body: &str) -> Result<Vec<Step>, String> {
    let asked = |model: &str| body.contains(&format!("\"{model}\""));
    let text = |text: &str| Step::Delta(format!(r#"{{"content":{}}}"#, quoted(text)));
    let thought = |text: &str| Step::Delta(format!(r#"{{"reasoning_content":{}}}"#, quoted(text)));
    let call = |id: &str, arguments: &str| {
        let function = format!(r#"{{"name":"get_weather","arguments":{}}}"#, quoted(arguments));
        Step::Delta(format!(r#"{{"tool_calls":[{{"index":0,{id}"function":{function}}}]}}"#))
    };
    if asked("steps") {
        return steps::script(body);
    }
    Ok(if asked("quiet-start") {
        vec![Step::Silence, text("after a "), text("long silence"), Step::Stop("stop")]
    } else if asked("quiet-text") {
        vec![text("before and "), Step::Silence, text("after a long silence"), Step::Stop("stop")]
    } else if asked("quiet-thought") {
        let (before, after) = (thought("let me think "), thought("for long"));
        vec![before, Step::Silence, after, text("after a long silence"), Step::Stop("stop")]
    } else if asked("quiet-call") {
        let (before, after) = (call(r#""id":"call_1","type":"function","#, r#"{"city": "#), call("", r#""Paris"}"#));
        vec![before, Step::Silence, after, Step::Stop("tool_calls")]
    } else if asked("history") || body.contains(r#""role":"tool""#) {
        vec![text(body), Step::Stop("stop")]
    } else {
        let call = call(r#""id":"call_1","type":"function","#, r#"{"city": "Paris"}"#);
        vec![thought("a tool will know"), text("I look it up."), call, Step::Stop("tool_calls")]
    })
}

/// As a JSON string; there are no control characters in what is said here.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}
