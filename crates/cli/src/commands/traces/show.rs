//! One trace with all that is kept of it: what was asked, where it went, what it used, its events, what went wrong.

use std::fmt::Write;

use serde_json::Value;
use wire::visible::{visible, visible_lines};

use super::table::{duration, text};

/// Shown of a body on a terminal; the rest is in `--json`.
const BODY: usize = 4000;

pub(super) fn all(trace: &Value) -> String {
    let mut out = Sections(String::new());
    out.head(trace);
    out.request(trace);
    out.attempts(trace);
    out.times(trace);
    out.usage(trace);
    out.events(trace);
    out.notes(trace);
    out.error(trace);
    out.bodies(trace);
    out.0
}

fn list<'v>(trace: &'v Value, name: &str) -> &'v [Value] {
    trace[name].as_array().map_or(&[], Vec::as_slice)
}

struct Sections(String);

impl Sections {
    fn section(&mut self, name: &str) {
        self.0.extend(["\n", name, "\n"]);
    }

    /// A line with a name, if there is something to say.
    fn line(&mut self, name: &str, said: &str) {
        if !said.is_empty() {
            let _ = writeln!(self.0, "  {name:<12} {}", visible(said));
        }
    }

    fn head(&mut self, trace: &Value) {
        let status = trace["status"].as_u64().map(|status| format!(", status {status}")).unwrap_or_default();
        let took = duration(&trace["took_ms"]);
        let outcome = text(&trace["outcome"]);
        self.0.push_str(&visible(&format!("trace {}: {outcome}{status}, in {took}", trace["number"])));
        self.0.push('\n');
        self.line("began", &text(&trace["began_at"]));
        for name in ["response_id", "request_id", "previous_response_id", "conversation_id"] {
            self.line(name.trim_end_matches("_id").trim_end_matches("_response"), &text(&trace[name]));
        }
    }

    fn request(&mut self, trace: &Value) {
        self.section("request");
        let request = &trace["request"];
        self.line("path", &format!("{} {}", text(&request["method"]), text(&request["path"])));
        for name in ["kind", "model", "tenant", "key", "client"] {
            self.line(name, &text(&trace[name]));
        }
        self.line("address", &text(&request["address"]));
        let flags: Vec<&str> =
            ["stream", "store", "background"].into_iter().filter(|name| request[*name] == true).collect();
        self.line("with", &flags.join(", "));
        let sizes = ["items", "tools", "bytes", "bytes_sent"].into_iter();
        let sizes: Vec<String> =
            sizes.filter_map(|name| Some(format!("{} {}", request[name].as_u64()?, name.replace('_', " ")))).collect();
        self.line("size", &sizes.join(", "));
    }

    fn attempts(&mut self, trace: &Value) {
        if list(trace, "attempts").is_empty() {
            return;
        }
        self.section("attempts");
        for (at, attempt) in list(trace, "attempts").iter().enumerate() {
            let status = attempt["status"].as_u64().map(|status| format!(" {status}")).unwrap_or_default();
            let place =
                attempt["replica"].as_str().map(|_| format!(" at {}", text(&attempt["replica"]))).unwrap_or_default();
            let said = format!(
                "{}{place} ({}): {}{status} in {}, {} bytes sent",
                text(&attempt["target"]),
                text(&attempt["wire"]),
                text(&attempt["outcome"]),
                duration(&attempt["took_ms"]),
                attempt["bytes"],
            );
            self.line(&(at + 1).to_string(), &said);
        }
        for (at, round) in list(trace, "rounds").iter().enumerate() {
            let usage = &round["usage"];
            let tokens = match usage {
                Value::Null => String::new(),
                usage => format!(", {} tokens in, {} out", usage["input_tokens"], usage["output_tokens"]),
            };
            let said = format!("answer to attempt {}: {}{tokens}", round["attempt"], text(&round["end"]));
            self.line(&format!("round {}", at + 1), &said);
        }
        for call in list(trace, "tool_calls") {
            let took = duration(&call["took_ms"]);
            let said =
                format!("{} ({}): {} in {took}", text(&call["name"]), text(&call["kind"]), text(&call["outcome"]));
            self.line("tool", &said);
        }
    }

    fn times(&mut self, trace: &Value) {
        let times = &trace["times"];
        let steps = ["opened", "planning", "connecting", "first_byte", "first_token", "last_byte", "committing"];
        let mut known: Vec<(&str, String)> =
            steps.into_iter().map(|step| (step, duration(&times[format!("{step}_ms")]))).collect();
        known.push(("upstream", duration(&trace["upstream_ms"])));
        known.push(("client", duration(&times["client_ms"])));
        known.push(("overhead", duration(&trace["overhead_ms"])));
        known.retain(|(_, time)| !time.is_empty());
        if known.is_empty() {
            return;
        }
        self.section("times");
        for (step, time) in known {
            self.line(&step.replace('_', " "), &time);
        }
    }

    fn usage(&mut self, trace: &Value) {
        if trace["usage"].is_null() && list(trace, "charges").is_empty() {
            return;
        }
        self.section("usage");
        for name in ["input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"] {
            self.line(name.trim_end_matches("_tokens"), &text(&trace["usage"][name]));
        }
        let prefix = &trace["prefix"];
        if prefix.is_object() {
            self.line("prefix", &format!("{} of {} bytes as before", prefix["shared"], prefix["bytes"]));
        }
        for charge in list(trace, "charges") {
            let usage = &charge["usage"];
            let cost = charge["cost_usd"].as_str().map_or("price not known".to_owned(), |cost| format!("${cost}"));
            let estimated = if charge["estimated"] == true { ", estimated" } else { "" };
            let model = format!("{}/{}", text(&charge["provider"]), text(&charge["model"]));
            let tokens = format!("{} in, {} out", usage["input_tokens"], usage["output_tokens"]);
            self.line("charged", &format!("{model}: {tokens}: {cost}{estimated}"));
        }
        self.line("cost", &trace["cost_usd"].as_str().map(|cost| format!("${cost}")).unwrap_or_default());
    }

    fn events(&mut self, trace: &Value) {
        let events = &trace["events"];
        self.section("events");
        self.line("upstream", &text(&events["upstream"]));
        self.line("sent", &text(&events["sent"]));
    }

    fn notes(&mut self, trace: &Value) {
        if list(trace, "notes").is_empty() {
            return;
        }
        self.section("notes");
        for note in list(trace, "notes") {
            let detail = note["detail"].as_str().map(|detail| format!(": {detail}")).unwrap_or_default();
            let said = format!("{} {} ({}){detail}", text(&note["path"]), text(&note["action"]), text(&note["code"]));
            self.line(&text(&note["severity"]), &said);
        }
    }

    fn error(&mut self, trace: &Value) {
        if trace["error"].is_null() {
            return;
        }
        self.section("error");
        for name in ["code", "deadline", "message"] {
            self.line(name, &text(&trace["error"][name]));
        }
    }

    fn bodies(&mut self, trace: &Value) {
        for (name, body) in trace["payloads"].as_object().into_iter().flatten() {
            let body_text = body["text"].as_str().unwrap_or_default();
            let cut = body["cut_from"].as_u64().map(|whole| format!(", cut from {whole} bytes")).unwrap_or_default();
            self.section(&format!("body {} ({} bytes{cut})", visible(name), body_text.len()));
            let shown = &body_text[..body_text.floor_char_boundary(BODY)];
            self.0.push_str(&visible_lines(shown));
            self.0.push_str(if shown.len() < body_text.len() { "\n… (all of it: --json)\n" } else { "\n" });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_record_has_its_section_and_nothing_acts() {
        let evil = "x\u{1b}[2J\u{202e}";
        let trace = json!({
            "number": 3, "began_at": "2026-11-16T16:33:12.345Z", "took_ms": 5, "outcome": "failed", "status": 502,
            "request": {"method": "POST", "path": "/v1/responses", "stream": true, "items": 2, "bytes": 10},
            "model": evil, "attempts": [{"target": evil, "wire": "chat", "outcome": "server", "took_ms": 1, "bytes": 3}],
            "rounds": [{"attempt": 1, "end": "failed"}], "tool_calls": [{"name": evil, "kind": "mcp", "outcome": "failed"}],
            "times": {"opened_ms": 0.5}, "usage": {"input_tokens": 1}, "events": {"upstream": 4, "sent": 9},
            "notes": [{"severity": "warn", "path": evil, "action": "ignored", "code": "c", "detail": evil}],
            "error": {"code": "e", "message": evil}, "payloads": {"request": {"text": format!("{evil}\nb"), "cut_from": 99}},
        });
        let shown = all(&trace);
        for section in ["\nrequest\n", "\nusage\n", "\nevents\n", "\nerror\n", "\nattempts\n", "\nnotes\n", "\ntimes\n"]
        {
            assert!(shown.contains(section), "{section}: {shown}");
        }
        assert!(shown.contains("body request (10 bytes, cut from 99 bytes)"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }
}
