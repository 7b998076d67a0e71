//! One request that was made, from top to bottom: what was asked and what each part of it became, what was not done as asked
//! and why, what came back.

use std::fmt::Write;

use serde_json::{Value, json};

use super::words::{self, Outcomes};
use crate::screen::{Screen, Tone, brief, wrapped};

/// Parts of a long past that are shown; the others are counted.
const MOST_PAST: usize = 20;

pub(super) fn shown(explained: &Value, id: &str, screen: Screen) -> String {
    let mut out = String::new();
    let page = Page { explained, outcomes: Outcomes::of(&explained["plan"]), screen };
    page.head(id, &mut out);
    let plan = &explained["plan"];
    if plan.is_object() {
        page.parameters(&mut out);
        page.parts(&mut out);
        page.own(&mut out);
    }
    page.notes(&mut out);
    page.way(&mut out);
    page.sent(&mut out);
    page.answer(&mut out);
    out
}

struct Page<'e> {
    explained: &'e Value,
    outcomes: Outcomes<'e>,
    screen: Screen,
}

impl Page<'_> {
    fn title(&self, title: &str, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "\n{}", self.screen.paint(Tone::Strong, title));
    }

    fn fact(&self, label: &str, value: &str, out: &mut String) {
        let width = self.screen.width.saturating_sub(12);
        for (nth, line) in wrapped(value, width).iter().enumerate() {
            let label = if nth == 0 { label } else { "" };
            let padded = format!("{label:<10}");
            let _ = writeln!(out, "{}  {line}", self.screen.paint(Tone::Faint, &padded));
        }
    }

    fn head(&self, id: &str, out: &mut String) {
        let (explained, trace) = (self.explained, &self.explained["trace"]);
        let (plan, response) = (&explained["plan"], &explained["response"]);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let id = text(&response["id"]).or_else(|| text(&trace["response_id"])).unwrap_or_else(|| id.to_owned());
        let status = text(&response["status"]).or_else(|| result(trace));
        let _ = writeln!(out, "{}", self.screen.paint(Tone::Strong, &brief(&id, self.screen.width)));
        let mut fact = |label: &str, value: Option<String>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                self.fact(label, &value, out);
            }
        };
        fact("status", status);
        fact("asked for", text(&explained["request"]["model"]).or_else(|| text(&trace["model"])));
        if let (Some(provider), Some(model)) = (text(&plan["provider"]), text(&plan["model"])) {
            let wire = text(&plan["wire"]).unwrap_or_default();
            fact("planned", Some(format!("for {model} of {provider}, over the {wire} API")));
        }
        for (label, name) in [("tenant", "tenant"), ("began", "began_at"), ("took", "took_ms"), ("cost", "cost_usd")] {
            let value = match &trace[name] {
                Value::Number(number) => Some(format!("{number} ms")),
                Value::String(dollars) if name == "cost_usd" => Some(format!("${dollars}")),
                value => text(value),
            };
            fact(label, value);
        }
        fact("made of", Some(source(explained)));
        fact("its trace", text(&explained["trace_unreadable"]));
        let gone = if was_asked(trace) { GONE } else { NOT_THERE };
        fact("past", (is_gone(explained) && plan.is_object()).then(|| gone.to_owned()));
        if let Some(message) = plan["error"]["message"].as_str() {
            fact("refused", Some(message.to_owned()));
        }
    }

    fn parameters(&self, out: &mut String) {
        let parameters = words::parameters(&self.explained["request"]);
        if parameters.is_empty() {
            return;
        }
        self.title("Parameters", out);
        let width = parameters.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(28);
        for (name, value) in parameters {
            let (word, tone) = match self.outcomes.notes(&name).first() {
                Some(note) => (note["action"].as_str().unwrap_or_default(), Tone::Warn),
                None if is_gone(self.explained) && CONTINUES.contains(&name.as_str()) => ("gone", Tone::Bad),
                None => words::unnoted(&self.explained["plan"], &name),
            };
            let left = self.screen.width.saturating_sub(width + 14);
            let padded = format!("{word:<9}");
            let value = brief(&words::value(value), left);
            let _ = writeln!(out, "  {:width$}  {} {value}", brief(&name, width), self.screen.paint(tone, &padded));
        }
    }

    /// Each part, and below it what it became.
    fn parts(&self, out: &mut String) {
        let (explained, plan) = (self.explained, &self.explained["plan"]);
        self.title("Asked, and what it became", out);
        let parts = words::parts(&explained["request"], &explained["past"]);
        let skipped = explained["past"].as_array().map_or(0, Vec::len).saturating_sub(MOST_PAST);
        self.skipped(skipped, out);
        for (part, what) in parts {
            let index = part.strip_prefix("past[").and_then(|rest| rest.trim_end_matches(']').parse::<usize>().ok());
            if index.is_some_and(|index| index < skipped) {
                continue;
            }
            self.part(&part, &what, out);
            let link = self.outcomes.link(&part);
            for place in link.and_then(|link| link["to"].as_array()).into_iter().flatten().filter_map(Value::as_str) {
                self.arrow(place, &words::sent(&plan["chat_request"], place), Tone::Good, out);
            }
            for (word, member, tone) in [("left out", "left_out", Tone::Bad), ("by godex", "by_godex", Tone::Faint)] {
                if let Some(why) = link.and_then(|link| link[member].as_str()) {
                    self.arrow(word, why, tone, out);
                }
            }
        }
    }

    /// What nobody has asked for.
    fn own(&self, out: &mut String) {
        let plan = &self.explained["plan"];
        for own in ["text.format", "godex"] {
            let Some(link) = self.outcomes.link(own) else { continue };
            let what = if own == "godex" { "what godex adds" } else { "the format, in words" };
            self.part(own, what, out);
            for place in link["to"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                self.arrow(place, &words::sent(&plan["chat_request"], place), Tone::Good, out);
            }
        }
    }

    fn arrow(&self, place: &str, what: &str, tone: Tone, out: &mut String) {
        let what = brief(what, self.screen.width.saturating_sub(20 + place.chars().count()));
        let _ = writeln!(out, "                → {}  {what}", self.screen.paint(tone, place));
    }

    fn notes(&self, out: &mut String) {
        let (plan, trace) = (&self.explained["plan"], &self.explained["trace"]);
        // What really happened knows more than a plan, unless that is for another model.
        let of = if trace["notes"].is_array() && !self.is_for_another_model() { trace } else { plan };
        let notes: Vec<&Value> = of["notes"].as_array().into_iter().flatten().collect();
        self.title("Not done as asked", out);
        if notes.is_empty() {
            // A request that was refused has a trace, and nobody was asked for it.
            let was_sent = was_asked(trace) || plan.is_object() && (trace.is_null() || self.is_for_another_model());
            let what = if was_sent { "nothing: all of it was sent as it was asked" } else { "nothing of it was sent" };
            let _ = writeln!(out, "  {what}");
        }
        for note in notes {
            let text = |member: &str| note[member].as_str().unwrap_or_default();
            let tone = if text("severity") == "info" { Tone::Faint } else { Tone::Warn };
            // Of what is not stored, reasons with words of the request are not kept.
            let why = if text("detail").is_empty() { "the reason was not kept" } else { text("detail") };
            let said = format!("{} {}: {why} ({})", text("path"), text("action"), text("code"));
            for (nth, line) in wrapped(&said, self.screen.width.saturating_sub(4)).iter().enumerate() {
                let _ = writeln!(out, "  {}{}", if nth == 0 { "" } else { "  " }, self.screen.paint(tone, line));
            }
        }
    }

    /// Whether the plan is for another one than the one that was asked.
    fn is_for_another_model(&self) -> bool {
        let (plan, trace) = (&self.explained["plan"], &self.explained["trace"]);
        [("provider", "provider"), ("model", "upstream_model")].into_iter().any(|(planned, asked)| {
            plan[planned].is_string() && trace[asked].is_string() && plan[planned] != trace[asked]
        })
    }

    /// Who was asked, and where the time went; only a trace knows.
    fn way(&self, out: &mut String) {
        let trace = &self.explained["trace"];
        let attempts = trace["attempts"].as_array().map_or(&[][..], Vec::as_slice);
        if attempts.is_empty() {
            return;
        }
        self.title("Attempts", out);
        for attempt in attempts {
            let text = |member: &str| attempt[member].as_str().unwrap_or("-");
            let took = attempt["took_ms"].as_f64().map(|took| format!(", {took} ms")).unwrap_or_default();
            let tone = if text("outcome") == "accepted" { Tone::Good } else { Tone::Warn };
            let said = format!("{}: {}{took}", text("target"), text("outcome"));
            let _ = writeln!(out, "  {}", self.screen.paint(tone, &brief(&said, self.screen.width.saturating_sub(2))));
        }
        let has_tools = trace["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        let upstream = if has_tools { "waited for the provider and tools" } else { "waited for the provider" };
        let time = |(label, time): (&str, &Value)| Some(format!("{label} {} ms", time.as_f64()?));
        let times = [
            ("first token after", &trace["first_token_ms"]),
            (upstream, &trace["upstream_ms"]),
            ("waited for the client", &trace["times"]["client_ms"]),
            ("godex itself", &trace["overhead_ms"]),
        ];
        let times: Vec<String> = times.into_iter().filter_map(time).collect();
        if !times.is_empty() {
            let said = brief(&times.join(", "), self.screen.width.saturating_sub(2));
            let _ = writeln!(out, "  {}", self.screen.paint(Tone::Faint, &said));
        }
    }

    /// What was sent the last time, where the plan is not that and bodies were captured.
    fn sent(&self, out: &mut String) {
        let (plan, trace) = (&self.explained["plan"], &self.explained["trace"]);
        let captured = trace["payloads"].as_object().into_iter().flatten();
        let number = |name: &str| name.strip_prefix("chat_request.")?.parse::<u32>().ok();
        let last =
            captured.filter_map(|(name, body)| Some((number(name)?, name, body))).max_by_key(|(number, ..)| *number);
        let Some((_, name, body)) = last else { return };
        if plan["chat_request"].is_object() && !is_gone(self.explained) {
            return;
        }
        self.title("As it was sent", out);
        let request = json_of(body);
        for name in ["instructions", "system"] {
            let said = words::content(&request[name]);
            if !said.is_empty() {
                self.part(name, &format!("\"{said}\""), out);
            }
        }
        for list in ["messages", "input", "tools"] {
            let items = request[list].as_array().map_or(0, Vec::len);
            let skipped = if list == "tools" { 0 } else { items.saturating_sub(MOST_PAST) };
            self.skipped(skipped, out);
            for at in skipped..items {
                let place = format!("{list}[{at}]");
                self.part(&place, &words::sent(&request, &place), out);
            }
        }
        let much = if request.is_null() { "only its beginning was captured" } else { "as a whole" };
        let where_from = format!("{much} ({name}): godex traces show {}", trace["number"]);
        let where_from = brief(&where_from, self.screen.width.saturating_sub(2));
        let _ = writeln!(out, "  {}", self.screen.paint(Tone::Faint, &where_from));
    }

    fn part(&self, place: &str, what: &str, out: &mut String) {
        let _ = writeln!(out, "  {place:<12}  {}", brief(what, self.screen.width.saturating_sub(16)));
    }

    fn skipped(&self, count: usize, out: &mut String) {
        if count > 0 {
            let _ = writeln!(out, "  {}", self.screen.paint(Tone::Faint, &format!("… {count} earlier items")));
        }
    }

    fn answer(&self, out: &mut String) {
        let (explained, trace) = (self.explained, &self.explained["trace"]);
        let captured = json_of(&trace["payloads"]["response"]);
        let response = if explained["response"].is_object() { &explained["response"] } else { &captured };
        self.title("Came back", out);
        let before = out.len();
        let error = if response["error"].is_null() { &trace["error"] } else { &response["error"] };
        // Of a request with `store: false` only the code is kept.
        let said: Vec<&str> = ["code", "message"].into_iter().filter_map(|member| error[member].as_str()).collect();
        if !said.is_empty() {
            for line in wrapped(&said.join(": "), self.screen.width.saturating_sub(2)) {
                let _ = writeln!(out, "  {}", self.screen.paint(Tone::Bad, &line));
            }
        }
        if !response.is_object() && error.is_null() {
            // Of an answer that broke off there is no object, but what had come.
            let parts = trace["payloads"].as_object().into_iter().flat_map(|parts| parts.keys());
            let mut parts: Vec<&str> = parts.map(String::as_str).filter(|part| is_of_answer(part)).collect();
            parts.sort_unstable();
            let what = match (parts.is_empty(), trace["number"].as_i64()) {
                (false, Some(number)) => {
                    format!("captured as far as it came ({}): godex traces show {number}", parts.join(", "))
                }
                _ => "it was not captured".to_owned(),
            };
            let _ = writeln!(out, "  it is not stored, and {what}");
        }
        for item in response["output"].as_array().into_iter().flatten() {
            let _ = writeln!(out, "  {}", brief(&words::item(item), self.screen.width.saturating_sub(2)));
        }
        if out.len() == before {
            out.push_str("  nothing\n");
        }
        if let Some(said) = usage(&response["usage"]) {
            let _ = writeln!(out, "  {}", self.screen.paint(Tone::Faint, &said));
        }
    }
}

/// Whether a captured body is of what came back.
fn is_of_answer(name: &str) -> bool {
    matches!(name, "events" | "response") || name.starts_with("chat_response")
}

/// A captured body; null if it was cut.
fn json_of(body: &Value) -> Value {
    body["text"].as_str().and_then(|text| server::explain::read(text.as_bytes()).ok()).unwrap_or_default()
}

/// Whether anybody was asked.
fn was_asked(trace: &Value) -> bool {
    trace["attempts"].as_array().is_some_and(|attempts| !attempts.is_empty())
}

/// How a request ended of which there is no response, as lists of traces say it.
fn result(trace: &Value) -> Option<String> {
    let status = trace["status"].as_u64().filter(|status| *status >= 400).map(|status| status.to_string());
    let code = trace["error"]["code"].as_str().map(str::to_owned);
    let said: Vec<String> = [status, code].into_iter().flatten().collect();
    if said.is_empty() { trace["outcome"].as_str().map(str::to_owned) } else { Some(said.join(" ")) }
}

/// What is said where a part of the chain was deleted.
const GONE: &str = "gone: what this request continued, or referred to, is not stored any more. The plan below is of the \
                    request without it, and is not what was sent";

/// The same of a request that was refused, for that or for something else.
const NOT_THERE: &str =
    "not there: what this request continues, or refers to, is not stored. The plan below is of the request without it";

/// What may name that.
const CONTINUES: [&str; 2] = ["previous_response_id", "conversation"];

fn is_gone(explained: &Value) -> bool {
    explained["past_is_gone"] == true
}

/// Why a captured body does not say what was asked: `{"bytes": …, "of": …}`, if some of it is there.
pub(in crate::commands) fn captured(cut: &Value) -> String {
    match (cut["bytes"].as_u64(), cut["of"].as_u64()) {
        (Some(bytes), Some(of)) => {
            format!("only the beginning of the body was captured ({bytes} of {of} bytes, trace.payload_max_bytes)")
        }
        _ => "no body was captured".to_owned(),
    }
}

fn source(explained: &Value) -> String {
    match explained["source"].as_str().unwrap_or_default() {
        "captured" => "the request as it was captured, planned again now".to_owned(),
        "stored" => {
            let body = &explained["trace"]["payloads"]["request"];
            let much = captured(&json!({"bytes": body["text"].as_str().map(str::len), "of": body["cut_from"]}));
            format!(
                "the stored items, planned again now: {much}, so what the client left at its default is not told from what \
                 it asked for"
            )
        }
        _ => {
            let is_cut = explained["trace"]["payloads"]["request"]["cut_from"].is_u64();
            let much = if is_cut { "only the beginning" } else { "nothing" };
            let why = if is_gone(explained) { "what it continued was deleted" } else { "it is not stored" };
            format!("its trace alone: {much} of it was captured, and {why}")
        }
    }
}

/// Tokens, in a line.
pub(crate) fn usage(usage: &Value) -> Option<String> {
    let count = |member: &str| usage.pointer(member).and_then(Value::as_u64);
    let (input, output) = (count("/input_tokens")?, count("/output_tokens")?);
    let cached = count("/input_tokens_details/cached_tokens").filter(|cached| *cached > 0);
    let thought = count("/output_tokens_details/reasoning_tokens").filter(|thought| *thought > 0);
    let cached = cached.map(|cached| format!(" ({cached} cached)")).unwrap_or_default();
    let thought = thought.map(|thought| format!(" ({thought} of reasoning)")).unwrap_or_default();
    Some(format!("{input} tokens in{cached}, {output} out{thought}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_shown_from_top_to_bottom() {
        let explained = json!({
            "trace": null, "source": "stored",
            "request": {"model": "m", "temperature": 0.5, "instructions": "Be brief.", "input": [{"role": "user", "content": "Hi\u{1b}"}]},
            "past": [{"type": "reasoning", "summary": []}],
            "plan": {"provider": "up", "model": "x", "wire": "chat",
                "chat_request": {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi\u{1b}"}]},
                "notes": [{"code": "bridge.param.ignored", "severity": "warn", "action": "ignored", "path": "temperature", "detail": "no"}],
                "links": [{"item": "instructions", "to": ["messages[0]"]}, {"item": "past[0]", "to": [], "left_out": "never"},
                    {"item": "input[0]", "to": ["messages[1]"]}]},
            "response": {"id": "resp_1", "status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}],
                "usage": {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 1}},
        });
        let expected = "resp_1
status      completed
asked for   m
planned     for x of up, over the chat API
made of     the stored items, planned again now: no body was captured, so what the client left at
            its default is not told from what it asked for

Parameters
  temperature  ignored   0.5

Asked, and what it became
  instructions  \"Be brief.\"
                → messages[0]  system \"Be brief.\"
  past[0]       reasoning
                → left out  never
  input[0]      user \"Hi\\u{1b}\"
                → messages[1]  user \"Hi\\u{1b}\"

Not done as asked
  temperature ignored: no (bridge.param.ignored)

Came back
  assistant \"Hello\"
  7 tokens in (2 cached), 1 out
";
        assert_eq!(shown(&explained, "resp_1", Screen { width: 100, colours: false }), expected);
    }

    /// What was noted of the model that was asked is not what another one would do without.
    #[test]
    fn a_plan_for_another_model_has_its_own_notes() {
        let note = |detail: &str| json!([{"code": "c", "severity": "warn", "action": "ignored", "path": "p", "detail": detail}]);
        let mut explained = json!({
            "trace": {"provider": "up", "upstream_model": "x", "notes": note("as it was"), "attempts": [{}]},
            "request": {"model": "m"}, "response": null, "source": "stored",
            "plan": {"provider": "up", "model": "x", "wire": "chat", "notes": note("as it would be"), "links": []},
        });
        let screen = Screen { width: 100, colours: false };
        assert!(shown(&explained, "1", screen).contains("p ignored: as it was (c)"));
        explained["plan"]["model"] = "other".into();
        assert!(shown(&explained, "1", screen).contains("p ignored: as it would be (c)"));
        explained["plan"]["notes"][0]["detail"] = Value::Null;
        assert!(shown(&explained, "1", screen).contains("p ignored: the reason was not kept (c)"));
    }

    #[test]
    fn whose_time_it_was_is_told() {
        let explained = json!({"source": "none", "trace": {"attempts": [{"target": "up/m", "outcome": "accepted"}],
            "upstream_ms": 5.5, "times": {"client_ms": 2000}, "overhead_ms": 1.25}});
        let said = "waited for the provider 5.5 ms, waited for the client 2000 ms, godex itself 1.25 ms";
        let shown = shown(&explained, "1", Screen { width: 200, colours: false });
        assert!(shown.contains(said), "{shown}");
    }

    /// Of a request that was refused nothing was sent, and of an answer that broke off there is what had come.
    #[test]
    fn what_was_not_sent_and_what_came_of_a_part_is_said() {
        let screen = Screen { width: 100, colours: false };
        let refused = json!({"trace": {"number": 3, "attempts": [], "notes": [], "error": {"code": "invalid_json", "message": "no"}}});
        assert!(shown(&refused, "3", screen).contains("\n  nothing of it was sent\n"));
        let left = json!({"trace": {"number": 4, "attempts": [{"target": "a/b"}], "notes": [], "error": null,
            "payloads": {"request": {}, "events": {}, "chat_response.1": {}}}});
        let expected = "and captured as far as it came (chat_response.1, events): godex traces show 4\n";
        assert!(shown(&left, "4", screen).contains(expected), "{}", shown(&left, "4", screen));
    }

    /// The plan is not what was sent: that is shown as well, if it was captured.
    #[test]
    fn what_was_sent_is_shown_where_the_plan_is_something_else() {
        let tools = json!([{"type": "function", "name": "f"}]);
        let chat = |text: &str| json!({"messages": [{"role": "user", "content": text}], "tools": tools});
        let body = |chat: &Value| json!({"text": chat.to_string(), "cut_from": null});
        let mut explained = json!({
            "trace": {"number": 7, "attempts": [{}, {}], "notes": [], "error": null, "payloads": {
                "chat_request.9": body(&chat("first")), "chat_request.10": body(&chat("One"))}},
            "source": "captured", "request": {"model": "m", "input": "Two", "previous_response_id": "resp_1"},
            "past": null, "past_is_gone": true, "response": null,
            "plan": {"chat_request": chat("Two"), "notes": [], "links": []},
        });
        let screen = Screen { width: 200, colours: false };
        let sent = "
As it was sent
  messages[0]   user \"One\"
  tools[0]      function f
  as a whole (chat_request.10): godex traces show 7
";
        let gone = shown(&explained, "7", screen);
        assert!(gone.contains(sent) && gone.contains(GONE), "{gone}");
        assert!(gone.contains("  previous_response_id  gone      resp_1"), "{gone}");
        explained["past_is_gone"] = json!(false);
        assert!(!shown(&explained, "7", screen).contains("As it was sent"));
        // There is no plan, and all that was captured is a part.
        (explained["plan"], explained["source"]) = (Value::Null, json!("none"));
        explained["trace"]["payloads"] = json!({"chat_request.1": {"text": "{\"messages\": [", "cut_from": 99},
            "request": {"text": "{", "cut_from": 99}});
        let cut = shown(&explained, "7", screen);
        assert!(cut.contains("\n  only its beginning was captured (chat_request.1): godex traces show 7\n"), "{cut}");
        assert!(cut.contains("its trace alone: only the beginning of it was captured, and it is not stored"), "{cut}");
        let many: Vec<Value> = (0..25).map(|at| json!({"role": "user", "content": at.to_string()})).collect();
        explained["trace"]["payloads"] = json!({"chat_request.1": body(&json!({"system": "Be.", "messages": many})),
            "response": body(&json!({"output": [{"type": "message", "role": "assistant", "content": "Hello"}]}))});
        let long = shown(&explained, "7", screen);
        assert!(long.contains("  system        \"Be.\"\n  … 5 earlier items\n  messages[5]   user \"5\"\n"), "{long}");
        assert!(long.contains("Came back\n  assistant \"Hello\"\n"), "{long}");
    }

    /// As `godex traces` has it; of a request with `store: false` there is no more of its error than the code.
    #[test]
    fn a_refusal_has_its_status_and_its_code() {
        let screen = Screen { width: 100, colours: false };
        let refused = |status: u64, error: Value| {
            let trace = json!({"number": 3, "outcome": "answered", "status": status, "attempts": [], "notes": [],
                "error": error, "cost_usd": "0.0123"});
            shown(&json!({"trace": trace, "source": "none", "plan": null}), "3", screen)
        };
        for (status, error, expected, came) in [
            (400, json!({"code": "invalid_value"}), "400 invalid_value", "  invalid_value\n"),
            (404, json!({"code": "c", "message": "No."}), "404 c", "  c: No.\n"),
            (200, json!({"code": "invalid_output_format"}), "invalid_output_format", "  invalid_output_format\n"),
            (429, Value::Null, "429", "  it is not stored, and it was not captured\n"),
            (200, Value::Null, "answered", "  it is not stored, and it was not captured\n"),
        ] {
            let shown = refused(status, error);
            assert!(shown.contains(&format!("\nstatus      {expected}\n")), "{shown}");
            assert!(
                shown.ends_with(&format!("\nCame back\n{came}")) && shown.contains("\ncost        $0.0123\n"),
                "{shown}"
            );
        }
        // It can be planned without what it continues, and was not sent for all that.
        let trace = json!({"attempts": [], "notes": [], "error": {"code": "session.chain.not_found"}});
        let unknown = json!({"trace": trace, "source": "captured", "past_is_gone": true,
            "plan": {"notes": [], "links": []}, "request": {"input": "Hi"}});
        let shown = shown(&unknown, "3", screen);
        assert!(shown.contains("past        not there: ") && shown.contains("\n  nothing of it was sent\n"), "{shown}");
    }

    /// It is stored, and only what it continued is not.
    #[test]
    fn what_is_missing_is_named() {
        let gone = json!({"trace": {"outcome": "completed"}, "source": "none", "plan": null, "past_is_gone": true});
        let shown_gone = shown(&gone, "resp_2", Screen { width: 200, colours: false });
        assert!(shown_gone.contains("nothing of it was captured, and what it continued was deleted"), "{shown_gone}");
        assert!(!shown_gone.contains("The plan below"), "{shown_gone}");
        let mut none = gone;
        none["past_is_gone"] = json!(false);
        let shown_none = shown(&none, "resp_2", Screen { width: 200, colours: false });
        assert_eq!(shown_none.matches("it is not stored").count(), 2, "{shown_none}");
    }

    #[test]
    fn little_is_known_and_nothing_breaks() {
        let trace = json!({"outcome": "failed", "error": {"code": "c", "message": "m"}, "overhead_ms": 0.3,
            "attempts": [{"target": "up/m", "outcome": "timeout", "took_ms": 12.5}, 5], "notes": ["code", {}]});
        for explained in [json!({}), json!({"trace": trace, "source": "none"})] {
            let shown = shown(&explained, "42", Screen { width: 40, colours: true });
            assert!(shown.contains("Came back"), "{shown}");
        }
    }
}
