//! Two tenants with keys of their own: nobody reads, changes or harms what is another's, nor learns that it is there.

mod apart;
mod probes;
mod sockets;
mod timing;

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, McpServer, Received, Script, Upstream};

use crate::hosted::{answer, calls, says};
use crate::rig::{QUICK, Rig, parse};

/// The key of whoever owns everything, of whoever would like to have it, and of the tenant that was always there.
pub(crate) const OWNER: &str = "owner-key-of-the-test-000000001";
pub(crate) const OTHER: &str = "other-key-of-the-test-000000002";
pub(crate) const DEFAULT: &str = "default-key-of-the-test-0000003";

/// In everything that the owner says: nobody else may ever see it.
const SECRET: &str = "heron-4471";

/// The keys as the configuration has them.
const KEYS: [(&str, &str); 3] = [("owner", OWNER), ("other", OTHER), ("default", DEFAULT)];

/// A server with these sessions before a provider, with the inside of other sections.
async fn rig(upstream: Upstream, session: &str, more: &str) -> Rig {
    let keys: Vec<String> =
        KEYS.iter().map(|(name, key)| format!("- {{name: {name}, tenant: {name}, key: {key}}}\n")).collect();
    let text = format!(
        "session: {{{session}}}\nresilience: {{{QUICK}}}\nproviders:\n  up:\n    spec: {{extends: openai-compatible, drop: []}}\n    \
         endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n    models: [m]\n    \
         timeouts: {{first_byte_ms: 1d, total_ms: 1d}}\nkeys:\n{}{more}",
        upstream.url(),
        keys.concat(),
    );
    Rig::serving(upstream, parse(&text)).await.unwrap()
}

/// What somebody is answered.
async fn send(rig: &Rig, key: &str, method: Method, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    rig.client.request(method, &rig.url(path), &headers, body.to_owned()).await.unwrap()
}

async fn post(rig: &Rig, key: &str, path: &str, body: &Value) -> Answer {
    send(rig, key, Method::POST, path, &body.to_string()).await
}

async fn get(rig: &Rig, key: &str, path: &str) -> Answer {
    send(rig, key, Method::GET, path, "").await
}

/// A response that was made.
async fn made(rig: &Rig, key: &str, body: Value) -> Value {
    let mut body = body;
    body["model"] = json!("m");
    let answer = post(rig, key, "/v1/responses", &body).await;
    assert_eq!(answer.status, 200, "{body}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("no id: {value}")).to_owned()
}

/// A provider that does what the last message says.
fn provider(received: &Received) -> Script {
    let body = received.json();
    let (streamed, messages) = (body["stream"] == true, body["messages"].as_array().cloned().unwrap_or_default());
    let last = messages.last().cloned().unwrap_or_default();
    let said = last["content"].to_string();
    let message = match said {
        _ if last["role"] == "tool" => says("It is done."),
        said if said.contains("wait") => return Script::silent(),
        said if said.contains("think") => {
            json!({"role": "assistant", "content": "I see.", "reasoning_content": format!("thoughts of {SECRET}")})
        }
        said if said.contains("call") => calls(&[("c1", "f", json!({"of": SECRET}))]),
        said if said.contains("patch") => calls(&[("c1", "p", json!({"input": SECRET}))]),
        said if said.contains("remote") => calls(&[("c1", "a__echo", json!({"text": SECRET}))]),
        _ => says("Hello."),
    };
    answer(&message, streamed)
}

/// Everything that the owner has: made by its own requests, as anybody's is.
struct World {
    rig: Rig,
    mcp: McpServer,
    /// The ids of responses that have ended, of the one that runs, of conversations, and of items.
    responses: Vec<String>,
    running: String,
    conversations: Vec<String>,
    items: Vec<String>,
    /// An approval that waits for its answer: the response, and the items of its output.
    approval: Value,
    /// Items that clients carry for us: sealed reasoning, and a compaction.
    sealed: Vec<Value>,
}

impl World {
    async fn new(session: &str) -> Self {
        let mcp = McpServer::modern().await.unwrap();
        let upstream = Upstream::start_with(provider).await.unwrap();
        let more = format!("tools: {{mcp: {{servers: {{a: {{url: '{}'}}}}}}}}\n", mcp.url());
        let rig = rig(upstream, session, &more).await;
        let say = |what: &str| json!({"input": format!("{what} {SECRET}")});
        let tools = json!([
            {"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "custom", "name": "p"}]);
        let remote = json!([{"type": "mcp", "server_label": "a"}]);
        let mut free = remote.clone();
        free[0]["require_approval"] = json!("never");
        let with = |mut body: Value, name: &str, value: Value| {
            body[name] = value;
            body
        };
        let mut made_here = Vec::new();
        for body in [
            say("hello"),
            with(say("call"), "tools", tools.clone()),
            with(say("patch"), "tools", tools.clone()),
            with(say("remote"), "tools", free),
        ] {
            made_here.push(made(&rig, OWNER, body).await);
        }
        let continued = with(say("hello again"), "previous_response_id", made_here[0]["id"].clone());
        made_here.push(made(&rig, OWNER, continued).await);
        let thinks = with(say("think"), "include", json!(["reasoning.encrypted_content"]));
        let thinks = made(&rig, OWNER, thinks).await;
        let approval = made(&rig, OWNER, with(say("remote"), "tools", remote)).await;
        let item = json!({"role": "user", "content": SECRET, "id": "note-000000000001"});
        let conversation =
            post(&rig, OWNER, "/v1/conversations", &json!({"items": [item], "metadata": {"of": SECRET}})).await.json();
        let in_it = made(&rig, OWNER, with(say("hello"), "conversation", conversation["id"].clone())).await;
        let logged = with(with(say("hello"), "background", json!(true)), "stream", json!(true));
        let logged = post(&rig, OWNER, "/v1/responses", &with(logged, "model", json!("m"))).await;
        let logged = testkit::grammar::check(&logged.body).unwrap().response;
        let running = made(&rig, OWNER, with(say("wait"), "background", json!(true))).await;
        // What it is must not change by itself while others look.
        while send(&rig, OWNER, Method::GET, &format!("/v1/responses/{}", id(&running)), "").await.json()["status"]
            == "queued"
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let compacted = json!({"model": "m", "input": [{"role": "user", "content": format!("hello {SECRET}")}]});
        let compacted = post(&rig, OWNER, "/v1/responses/compact", &compacted).await.json();
        let sealed = [&thinks, &compacted].into_iter().flat_map(|made| made["output"].as_array().unwrap().clone());
        let sealed: Vec<Value> = sealed.filter(|item| item["encrypted_content"].is_string()).collect();
        assert_eq!(sealed.len(), 2, "reasoning and a summary: {thinks} {compacted}");
        made_here.extend([thinks, approval.clone(), in_it, logged]);
        let mut world = Self {
            rig,
            mcp,
            responses: made_here.iter().map(id).collect(),
            running: id(&running),
            conversations: vec![id(&conversation)],
            items: Vec::new(),
            approval,
            sealed,
        };
        world.items = world.all_items().await;
        world
    }

    /// The ids of all items that the owner can list.
    async fn all_items(&self) -> Vec<String> {
        let mut items = Vec::new();
        for path in self.lists() {
            let list = get(&self.rig, OWNER, &format!("{path}?limit=100")).await.json();
            items.extend(list["data"].as_array().unwrap().iter().map(id));
        }
        for response in &self.responses {
            let response = get(&self.rig, OWNER, &format!("/v1/responses/{response}")).await.json();
            items.extend(response["output"].as_array().unwrap().iter().map(id));
        }
        items.sort();
        items.dedup();
        items
    }

    fn lists(&self) -> Vec<String> {
        let of_responses = self.responses.iter().map(|id| format!("/v1/responses/{id}/input_items"));
        of_responses.chain(self.conversations.iter().map(|id| format!("/v1/conversations/{id}/items"))).collect()
    }

    /// Every id of the owner, of every kind.
    fn ids(&self) -> Vec<String> {
        let all = self.responses.iter().chain([&self.running]).chain(&self.conversations).chain(&self.items);
        all.cloned().collect()
    }

    /// All that the owner sees of what is its own.
    async fn seen_by_the_owner(&self) -> Vec<String> {
        let mut paths = self.lists();
        paths.extend(self.responses.iter().chain([&self.running]).map(|id| format!("/v1/responses/{id}")));
        paths.extend(self.responses.iter().map(|id| format!("/v1/responses/{id}?stream=true")));
        paths.extend(self.conversations.iter().map(|id| format!("/v1/conversations/{id}")));
        let mut seen = Vec::new();
        for path in paths {
            let answer = get(&self.rig, OWNER, &path).await;
            let text = String::from_utf8_lossy(&answer.body);
            let is_there = answer.status == 200 || path.ends_with("stream=true") && answer.status == 400;
            assert!(is_there, "{path}: {} {text}", answer.status);
            seen.push(format!("{path} {} {text}", answer.status));
        }
        seen
    }
}

/// An id of the same kind that nobody has.
fn unknown(id: &str, chance: &mut Chance) -> String {
    let (prefix, rest) = id.split_at(id.find(['_', '-']).unwrap() + 1);
    rest.chars().fold(prefix.to_owned(), |id, c| {
        let digit = if c.is_ascii_hexdigit() { char::from_digit(chance.below(16), 16).unwrap() } else { c };
        id + digit.encode_utf8(&mut [0; 4])
    })
}

/// Numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: u32) -> u32 {
        u32::try_from(self.next() >> 33).unwrap() % most
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(u32::try_from(all.len()).unwrap()) as usize]
    }
}
