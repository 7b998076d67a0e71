//! Responses of several answers: any number of them, of any wire, sane and insane, with what godex ran between them and
//! after them, and some answers taken back, give one lawful stream. What each answer is alone is what the laws of
//! single answers say; here it is what they come to together.

use std::collections::BTreeSet;

use bridge::{
    End, Events, Flow, Frame, HeldCall, HostedEnd, HostedStart, OfferedTool, ResponseWriter, RoundEnd, ToolKind,
};
use serde_json::{Value, json};
use wire::id::IdKind;

use crate::hosted::show;
use crate::laws::{Chance, for_all};
use crate::run::{Run, delta, finish, object};

/// The tool that godex runs, where it runs one.
const HOSTED: &str = "g";

/// One answer, and what is done around it.
struct Round {
    run: Run,
    chunks: Vec<String>,
    end: End,
    /// Items before it.
    items: usize,
    /// Nothing of it is sent, and it is forgotten.
    discarded: bool,
}

impl Round {
    fn any(chance: &mut Chance, hosted: bool) -> Self {
        let number = chance.next();
        let (items, discarded) = (chance.below(4).saturating_sub(2), chance.below(5) == 0);
        let (mut run, chunks, end) = match chance.below(8) {
            0 => {
                let answer = crate::native::laws::answer(number);
                (answer.run, answer.chunks, answer.end)
            }
            1 | 2 => {
                let answer = crate::laws::answer(number);
                (answer.run, answer.chunks, answer.end)
            }
            3 | 4 => (crate::native::native(), calm_native(chance), End::Eof),
            _ => (Run::default(), calm_chat(chance), End::Eof),
        };
        run.context.tools.retain(|tool| !hosted || tool.provider_name != HOSTED);
        if hosted {
            let (provider_name, name) = (HOSTED.to_owned(), HOSTED.to_owned());
            run.context.tools.push(OfferedTool {
                provider_name,
                kind: ToolKind::Mcp,
                name,
                namespace: Some("s".to_owned()),
            });
        }
        Self { run, chunks, end, items, discarded }
    }

    /// What it is alone: its items, with those of what it has godex run, and what it costs.
    fn alone(&self) -> (Vec<Value>, Option<u64>) {
        let (mut response, mut out, mut whole) = (self.run.response(), Events::silent(), Vec::new());
        response.open(&mut out);
        let (end, held) = self.answer(&mut response, &mut out);
        show(&held, &mut response, &mut out);
        response.finish(end);
        response.object(1_700_000_001, true, &mut whole);
        let mut response = object(&whole);
        let tokens = response["usage"]["total_tokens"].as_u64();
        (response["output"].as_array_mut().map(std::mem::take).unwrap_or_default(), tokens)
    }

    /// Reads the answer: how it ends, and what is to be run and shown after it.
    fn answer(&self, response: &mut ResponseWriter, out: &mut Events) -> (RoundEnd, Vec<HeldCall>) {
        let mut reader = self.run.reader();
        let over = self.chunks.iter().any(|data| reader.chunk(data.as_bytes(), response, out) == Flow::Over);
        let end = reader.end(if over { End::Done } else { self.end.clone() }, response, out);
        let held = match &end {
            RoundEnd::Hosted(calls) => calls.iter().cloned().map(HeldCall::Hosted).collect(),
            _ => reader.take_hosted(),
        };
        (end, held)
    }
}

/// Whom a calm answer calls, if anybody.
fn called(chance: &mut Chance) -> Vec<&'static str> {
    (0..chance.below(4).saturating_sub(1)).map(|_| chance.one_of(&[HOSTED, HOSTED, HOSTED, "f"])).collect()
}

/// An answer of which nothing is odd: text, calls or both.
fn calm_chat(chance: &mut Chance) -> Vec<String> {
    let calls = called(chance);
    let call = |(index, name): (usize, &&str)| json!({"index": index, "id": format!("c{index}"), "function": {"name": name, "arguments": "{}"}});
    let entries: Vec<Value> = calls.iter().enumerate().map(call).collect();
    let mut chunks: Vec<String> =
        (0..chance.below(3).max(usize::from(calls.is_empty()))).map(|_| delta(&json!({"content": "a b"}))).collect();
    chunks.extend(entries.iter().map(|entry| delta(&json!({"tool_calls": [entry]}))));
    let usage = json!({"prompt_tokens": chance.below(100), "completion_tokens": 1 + chance.below(50)});
    chunks.extend([finish("stop"), json!({"choices": [], "usage": usage}).to_string()]);
    chunks
}

/// The same in the other API.
fn calm_native(chance: &mut Chance) -> Vec<String> {
    let content = json!([{"type": "output_text", "text": "a b", "annotations": []}]);
    let mut output =
        vec![json!({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content})];
    for (index, name) in called(chance).into_iter().enumerate() {
        output.push(json!({
            "type": "function_call", "id": format!("f{index}"), "call_id": format!("c{index}"), "name": name,
            "arguments": "{}", "status": "completed",
        }));
    }
    let done = output.iter().map(|item| json!({"type": "response.output_item.done", "item": item}).to_string());
    let usage = json!({"input_tokens": chance.below(100), "output_tokens": 1 + chance.below(50)});
    let response = json!({"status": "completed", "output": output, "usage": usage});
    done.chain([json!({"type": "response.completed", "response": response}).to_string()]).collect()
}

/// What came of a whole response.
struct Told {
    bytes: Vec<u8>,
    frames: Vec<(Frame, Vec<u8>)>,
    response: ResponseWriter,
    whole: Vec<u8>,
    object: Value,
    notes: usize,
    /// How each answer ended, up to the first one after which there can be no other.
    ends: Vec<RoundEnd>,
    /// What was run and shown after each of them.
    held: Vec<Vec<HeldCall>>,
}

fn tell(rounds: &[Round], sink: fn() -> Events) -> Told {
    let mut response = rounds[0].run.response();
    let (mut out, mut ends, mut shown) = (sink(), Vec::new(), Vec::new());
    let (mut bytes, mut frames) = (Vec::new(), Vec::new());
    let mut keep = |out: &mut Events| {
        frames.extend(out.iter().map(|(frame, event)| (frame, event.to_vec())));
        bytes.extend(out.take());
    };
    response.open(&mut out);
    for round in rounds {
        for number in 0..round.items {
            item(number + ends.len(), &mut response, &mut out);
        }
        keep(&mut out);
        let (end, held) = round.answer(&mut response, &mut out);
        if round.discarded {
            response.discard();
            out.clear();
            shown.push(Vec::new());
        } else {
            show(&held, &mut response, &mut out);
            shown.push(held);
        }
        let may_go_on = round.discarded || matches!(end, RoundEnd::Completed | RoundEnd::Hosted(_));
        ends.push(end);
        if !may_go_on {
            break;
        }
    }
    response.finish(ends.last().unwrap().clone());
    let mut whole = Vec::new();
    response.object(1_700_000_001, true, &mut whole);
    response.terminal(&whole, &mut out);
    keep(&mut out);
    let (object, notes) = (object(&whole), response.notes().len());
    Told { bytes, frames, response, whole, object, notes, ends, held: shown }
}

/// Any response of several answers, and its object.
pub(crate) fn told(number: u64) -> (ResponseWriter, Vec<u8>) {
    let Told { response, whole, .. } = tell(&conversation(number).0, Events::silent);
    (response, whole)
}

/// The events of any response of several answers, one by one.
pub(crate) fn frames(number: u64) -> Vec<(Frame, Vec<u8>)> {
    tell(&conversation(number).0, Events::frames).frames
}

/// What a tool did, of every kind that godex runs.
fn item(number: usize, response: &mut ResponseWriter, out: &mut Events) {
    let label = || "s".to_owned();
    let call = || HostedStart::McpCall {
        server_label: label(),
        name: "t".to_owned(),
        arguments: "{\"a\":1}".to_owned(),
        approval_request_id: None,
    };
    let action = json!({"type": "search", "query": "q", "queries": ["q"]}).to_string();
    let error = json!({"type": "mcp_protocol_error", "code": 1, "message": "m"}).to_string();
    let (start, end) = match number % 6 {
        0 => (HostedStart::WebSearch, HostedEnd::Searched { action }),
        1 => (HostedStart::WebSearch, HostedEnd::NotSearched { action }),
        2 => (HostedStart::ListTools { server_label: label() }, HostedEnd::Tools("[]".to_owned())),
        3 => (call(), HostedEnd::Output("o".to_owned())),
        4 => (call(), HostedEnd::Failed { error }),
        _ => {
            let id = response.make_id(IdKind::McpApprovalRequest);
            return response.approval_request(&id, "s", "t", "{}", out);
        }
    };
    let item = response.open_hosted(start, out);
    response.heartbeat(out);
    response.close_hosted(&item, &end, out);
}

/// The same item, as the object has it.
fn item_alone(number: usize) -> Value {
    let (mut response, mut out, mut whole) = (Run::plain().response(), Events::silent(), Vec::new());
    item(number, &mut response, &mut out);
    response.object(1_700_000_001, true, &mut whole);
    object(&whole)["output"][0].clone()
}

/// An item without what differs from response to response.
fn gist(item: &Value) -> Value {
    let mut item = item.clone();
    for member in ["id", "call_id", "encrypted_content"] {
        item.as_object_mut().unwrap().remove(member);
    }
    item
}

fn conversation(number: u64) -> (Vec<Round>, bool) {
    let mut chance = Chance(number ^ 0x5eed);
    let hosted = chance.below(2) == 0;
    let mut rounds: Vec<Round> = (0..=chance.below(4)).map(|_| Round::any(&mut chance, hosted)).collect();
    // Somebody must have the last word.
    rounds.last_mut().unwrap().discarded = false;
    (rounds, hosted)
}

fn check(number: u64) -> Result<(), String> {
    let (rounds, hosted) = conversation(number);
    let told = tell(&rounds, Events::sse);
    let stream = testkit::grammar::check(&told.bytes)?;
    let silent = tell(&rounds, Events::silent).object;
    if silent != told.object || silent != stream.response {
        return Err(format!("not streamed: {silent}\nstreamed: {}", stream.response));
    }
    let (mut expected, mut tokens) = (Vec::new(), None);
    for (number, round) in rounds[..told.ends.len()].iter().enumerate() {
        let (items, cost) = round.alone();
        expected.extend((number..number + round.items).map(|number| gist(&item_alone(number))));
        if !round.discarded {
            expected.extend(items.iter().map(gist));
        }
        tokens = cost.map(|cost| cost + tokens.unwrap_or(0)).or(tokens);
    }
    let output = silent["output"].as_array().unwrap();
    let found: Vec<Value> = output.iter().map(gist).collect();
    if found != expected {
        return Err(format!("together: {}\nalone: {}", json!(found), json!(expected)));
    }
    if silent["usage"]["total_tokens"].as_u64() != tokens {
        return Err(format!("{} is not the sum, {tokens:?}", silent["usage"]));
    }
    let is_call = |item: &&Value| item["type"] == "function_call" || item["type"] == "custom_tool_call";
    let calls: Vec<&str> = output.iter().filter(is_call).filter_map(|item| item["call_id"].as_str()).collect();
    if calls.iter().collect::<BTreeSet<_>>().len() != calls.len() {
        return Err(format!("two calls under one id: {calls:?}"));
    }
    if hosted && output.iter().any(|item| item["type"] == "function_call" && item["name"] == HOSTED) {
        return Err(format!("a hosted call was shown: {}", silent["output"]));
    }
    for (end, held) in told.ends.iter().zip(&told.held) {
        let is_mixed = matches!(end, RoundEnd::Completed | RoundEnd::Hosted(_));
        if !held.is_empty() && (!is_mixed || !matches!(held[0], HeldCall::Hosted(_))) {
            return Err(format!("{end:?} leaves {held:?}"));
        }
    }
    if told.notes > 32 { Err(format!("{} notes", told.notes)) } else { Ok(()) }
}

#[test]
fn any_rounds_give_one_lawful_response() {
    for_all(10_000, |number| check(number).map_err(|problem| format!("conversation {number}: {problem}")));
}

/// The law is worth what the conversations reach.
#[test]
fn the_conversations_reach_everything() {
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for number in 0..2000 {
        let (rounds, _) = conversation(number);
        let told = tell(&rounds, Events::silent);
        let rounds = &rounds[..told.ends.len()];
        let kept = rounds.iter().filter(|round| !round.discarded).count();
        let mut words = vec![format!("{kept} kept"), told.object["status"].to_string()];
        words.extend(rounds.iter().filter(|round| round.discarded).map(|_| "discarded".to_owned()));
        let is_mixed = |held: &&Vec<HeldCall>| held.iter().any(|call| matches!(call, HeldCall::Client(_)));
        words.extend(told.held.iter().filter(is_mixed).map(|_| "mixed".to_owned()));
        words.extend(told.ends.iter().map(|end| match end {
            RoundEnd::Hosted(calls) => format!("{} hosted", calls.len().min(2)),
            RoundEnd::Failed(_) => "a failed answer".to_owned(),
            end => format!("{end:?}"),
        }));
        for word in words {
            *seen.entry(word).or_default() += 1;
        }
    }
    for word in [
        "1 kept",
        "4 kept",
        "discarded",
        "mixed",
        "1 hosted",
        "2 hosted",
        "Completed",
        "Incomplete(MaxOutputTokens)",
        "a failed answer",
        "\"completed\"",
        "\"incomplete\"",
        "\"failed\"",
    ] {
        assert!(seen.get(word).is_some_and(|count| *count >= 3), "{word}: {seen:#?}");
    }
}
