// What an admin listener would say, made up: enough turns for a list, one of each kind of end, a tree with branches.

const BASE = Date.parse("2026-03-04T10:00:00.000Z");

const MODELS = [["fast", "deepseek", "deepseek-chat"], ["deepseek/deepseek-reasoner", "deepseek", "deepseek-reasoner"], ["glm-5", "zhipu", "glm-5"], ["local", "ollama", "qwen3:8b"]];
const ENDS = [["completed", 200, null], ["completed", 200, null], ["completed", 200, null], ["incomplete", 200, null], ["failed", 502, "upstream_server_error"], ["client_left", 200, null], ["completed", 200, null], ["answered", 429, "rate_limit_exceeded"]];
const NOTES = [[], ["tool_degraded"], [], ["param_ignored", "history_repaired", "format_emulated"], []];

export function summary(number, at = BASE) {
  const [model, provider, upstream] = MODELS[number % MODELS.length];
  const [outcome, status, error] = ENDS[number % ENDS.length];
  const asked = status !== 429;
  return {
    number, began_at: new Date(at - (200 - number) * 7300 - ((number * 331) % 1000)).toISOString(), took_ms: 620 + ((number * 977) % 9000),
    first_token_ms: asked ? 180 + ((number * 97) % 900) : null, upstream_ms: asked ? 600 + ((number * 977) % 9000) : null, overhead_ms: 1.2 + (number % 7) / 10,
    tenant: number % 3 ? "default" : "team-a", key: number % 3 ? "" : "ci", request_id: `req_${number}a5f0c`, response_id: `resp_${String(number).padStart(4, "0")}b7c1d2`,
    previous_response_id: number % 4 ? `resp_${String(number - 1).padStart(4, "0")}b7c1d2` : null, conversation_id: null, kind: number % 2 ? "stream" : "sync", client: number % 2 ? "codex" : "openai-python",
    model, provider: asked ? provider : null, upstream_model: asked ? upstream : null, status, outcome, error, attempts: asked ? 1 + (number % 9 === 4 ? 1 : 0) : 0, rounds: asked ? 1 : 0,
    input_tokens: asked ? 1200 + ((number * 7919) % 90_000) : null, cached_tokens: asked ? (number * 5003) % 1100 : null, output_tokens: asked ? 40 + ((number * 331) % 4000) : null,
    reasoning_tokens: 0, cost_usd: provider === "ollama" || !asked ? null : ((number * 13) % 400 / 10_000).toFixed(6), notes: NOTES[number % NOTES.length],
  };
}

const NOTE = [
  { code: "tool_degraded", severity: "warning", action: "degraded", path: "tools[1]", detail: "The provider knows no custom tools: apply_patch is sent as a function with one argument." },
  { code: "param_ignored", severity: "info", action: "ignored", path: "service_tier", detail: "The provider has no service tiers." },
];

export function detail(number) {
  const events = ["response.created", "response.in_progress", "response.output_item.added", "response.output_text.delta", "response.completed"];
  return {
    ...summary(number),
    request: { stream: true, store: true, background: false, items: 4, tools: 2, bytes: 18_220 },
    attempts: [
      { target: "zhipu/glm-5", wire: "chat", outcome: "overloaded", status: 503, took_ms: 212, bytes: 17_010 },
      { target: "deepseek/deepseek-chat", wire: "chat", outcome: "accepted", status: 200, took_ms: 431, bytes: 16_920 },
    ],
    rounds: [{ provider: "deepseek" }, { provider: "deepseek" }],
    notes: NOTE,
    tool_calls: [{ name: "web_search", kind: "web_search", took_ms: 640, outcome: "completed" }],
    times: { opened_ms: 1.4, planning_ms: 0.6, connecting_ms: 38, first_byte_ms: 402, first_token_ms: 655, last_byte_ms: 3180, committing_ms: 2.3 },
    events: { upstream: 214, sent: 231 },
    usage: { input_tokens: 9120, output_tokens: 612 },
    charges: [{ provider: "deepseek", model: "deepseek-chat", input_tokens: 9120, cached_tokens: 8192, output_tokens: 612, cost_usd: "0.001930", estimated: false }, { provider: "search", model: "web_search", tool_calls: 1, cost_usd: "0.005" }],
    prefix: { bytes: 16_000, shared: 15_200 },
    error: null,
    payloads: {
      request: { text: JSON.stringify(REQUEST), cut_from: null },
      response: { text: JSON.stringify(RESPONSE), cut_from: null },
      events: { text: events.map((type, sequence_number) => `data: ${JSON.stringify({ type, sequence_number })}`).join("\n\n"), cut_from: 80_000 },
    },
  };
}

const REQUEST = {
  model: "fast", instructions: "You are a careful engineer. Answer in short sentences.", temperature: 0.3, service_tier: "flex", max_output_tokens: 4096, stream: true,
  input: [
    { type: "message", role: "user", content: [{ type: "input_text", text: "Why does the build fail on macOS?" }] },
    { type: "function_call", call_id: "call_1", name: "read_file", arguments: "{\"path\": \"build.rs\"}" },
    { type: "function_call_output", call_id: "call_1", output: "fn main() {\n    println!(\"cargo:rustc-link-lib=stdc++\");\n}" },
    { type: "item_reference", id: "rs_1" },
  ],
  tools: [
    { type: "function", name: "read_file", description: "Reads a file", parameters: { type: "object", properties: { path: { type: "string" } } } },
    { type: "custom", name: "apply_patch", description: "Applies a patch" },
  ],
};
const PAST = [{ type: "message", role: "user", content: "Earlier: set up the workspace." }, { type: "message", role: "assistant", content: [{ type: "output_text", text: "Done: two crates." }] }];
const CHAT = {
  model: "deepseek-chat", stream: true, stream_options: { include_usage: true }, max_tokens: 4096, temperature: 0.3,
  tools: [
    { type: "function", function: { name: "read_file", description: "Reads a file", parameters: { type: "object", properties: { path: { type: "string" } } } } },
    { type: "function", function: { name: "apply_patch", description: "Applies a patch", parameters: { type: "object", properties: { input: { type: "string" } } } } },
  ],
  messages: [
    { role: "system", content: "You are a careful engineer. Answer in short sentences." },
    { role: "user", content: "Earlier: set up the workspace." },
    { role: "assistant", content: "Done: two crates." },
    { role: "user", content: "Why does the build fail on macOS?" },
    { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: { name: "read_file", arguments: "{\"path\": \"build.rs\"}" } }] },
    { role: "tool", tool_call_id: "call_1", content: "fn main() {\n    println!(\"cargo:rustc-link-lib=stdc++\");\n}" },
    { role: "system", content: "Keep to the tools that are declared." },
  ],
};
const RESPONSE = {
  id: "resp_0190b7c1d2", status: "completed", output: [
    { type: "reasoning", summary: [{ type: "summary_text", text: "The linker flag names GNU's C++ library." }] },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "macOS has no libstdc++.\nLink `c++` there instead: look at CARGO_CFG_TARGET_OS in build.rs." }] },
    { type: "function_call", name: "apply_patch", arguments: "{\"input\": \"*** Begin Patch\"}" },
  ],
};

export function explained(number) {
  return {
    trace: detail(number), source: "captured", request: REQUEST, past: PAST, response: RESPONSE,
    plan: {
      provider: "deepseek", model: "deepseek-chat", wire: "chat", notes: NOTE, chat_request: CHAT,
      links: [
        { item: "instructions", to: ["messages[0]"] }, { item: "past[0]", to: ["messages[1]"] }, { item: "past[1]", to: ["messages[2]"] },
        { item: "input[0]", to: ["messages[3]"] }, { item: "input[1]", to: ["messages[4]"] }, { item: "input[2]", to: ["messages[5]"] },
        { item: "input[3]", to: [], left_out: "the reasoning is of another provider" }, { item: "tools[0]", to: ["tools[0]"] }, { item: "tools[1]", to: ["tools[1]"] },
      ],
    },
  };
}

/// The same turn with a plain text as its input, of a provider with a Messages API, not streamed: all of it was captured.
export function plain(number) {
  const request = { model: "fast", instructions: "Be brief.", input: "second check" };
  const chat = { model: "deepseek-chat", system: [{ type: "text", text: "Be brief." }], messages: [{ role: "user", content: [{ type: "text", text: "second check" }] }] };
  const trace = detail(number);
  trace.request = { ...trace.request, stream: false, items: 1, tools: 0 };
  trace.events = { upstream: 1, sent: 0 };
  delete trace.payloads.events;
  trace.payloads.request.text = JSON.stringify(request);
  return {
    trace, source: "captured", request, past: [], response: RESPONSE,
    plan: { provider: "deepseek", model: "deepseek-chat", wire: "messages", notes: [], chat_request: chat, links: [{ item: "instructions", to: ["system[0]"] }, { item: "input", to: ["messages[0]"] }] },
  };
}

/// A root, two that continue it, and what continues these.
export function chain(number) {
  const at = (offset, previous) => ({ ...summary(number + offset), response_id: `resp_t${number + offset}`, previous_response_id: previous === null ? null : `resp_t${number + previous}` });
  return [at(-3, null), at(-2, -3), at(-1, -2), at(0, -1), at(1, 0), at(2, -2), at(3, 2), at(4, -2)];
}

/// One turn that eighteen others continue.
export function fan(number) {
  return Array.from({ length: 19 }, (_, index) => ({ ...summary(number + index), response_id: `resp_t${index}`, previous_response_id: index === 0 ? null : "resp_t0" }));
}

export function series(since, until, step) {
  const data = [];
  for (let at = Math.floor(since / step) * step, index = 0; at <= until; at += step, index += 1) {
    const requests = Math.max(0, Math.round(14 + 10 * Math.sin(index / 5) + ((index * 37) % 7)));
    data.push({ at: new Date(at).toISOString(), requests, errors: index % 11 === 3 ? 2 : 0, input_tokens: requests * 5200, cached_tokens: requests * 3000, output_tokens: requests * 420,
      cost_usd: (requests * 0.0021).toFixed(6), took_p50_ms: 1400 + 300 * Math.sin(index / 4), took_p95_ms: 4200 + 900 * Math.cos(index / 6), first_token_p50_ms: 380 + 60 * Math.sin(index / 3) });
  }
  return { step_ms: step, data };
}

export const PROVIDERS = { data: [
  { name: "deepseek", default: true, spec: "deepseek", wire: "chat", base_url: "https://api.deepseek.com/v1", key: "set", models: [{ model: "!most-expensive", listed: false, state: "closed", failures: 7, sent: 7, accepted: 0 }, { model: "deepseek-chat", listed: true, state: "closed", failures: 0, sent: 412, accepted: 411 }, { model: "deepseek-reasoner", listed: true, state: "half_open", failures: 3, sent: 31, accepted: 22 }] },
  { name: "zhipu", default: false, spec: "zhipu", wire: "chat", base_url: "https://open.bigmodel.cn/api/paas/v4", key: "set", models: [{ model: "glm-5", listed: true, state: "open", failures: 9 }, { model: "glm-4", listed: true, state: "closed", failures: 0, sent: 0, accepted: 0 }] },
  { name: "ollama", spec: "ollama", wire: "chat", base_url: "http://127.0.0.1:11434/v1", key: "none", models: [{ model: "qwen3:8b", listed: true, state: "unknown", failures: 0 }] },
  { name: "openai", spec: "openai", wire: "responses", base_url: "https://api.openai.com/v1", key: "missing", models: [] },
] };

export const KEYS = { object: "list", data: [
  { id: "key_1", name: "ci", tenant: "team-a", hint: "x9Qd", created_at: 1_770_000_000, expires_at: 1_790_000_000, revoked_at: null, replaced_by: null, terms: { models: ["fast", "deepseek/*"], rpm: 600, budget: "50usd/month" }, state: "active", declared: false },
  { id: "key_2", name: "old-laptop", tenant: "default", hint: "aa01", created_at: 1_760_000_000, expires_at: null, revoked_at: 1_765_000_000, replaced_by: null, terms: {}, state: "revoked", declared: false },
] };

export const USAGE = { rows: [
  { key: "key_1", model: "deepseek/deepseek-chat", key_name: "ci", requests: 4211, input_tokens: 38_120_000, cached_tokens: 30_500_000, output_tokens: 2_100_000, reasoning_tokens: 0, tool_calls: 12, unpriced: 0, cost_usd: "7.412" },
  { key: "", model: "ollama/qwen3:8b", requests: 118, input_tokens: 410_000, cached_tokens: 0, output_tokens: 61_000, reasoning_tokens: 9000, tool_calls: 0, unpriced: 118, cost_usd: null },
] };

export const STATUS = { name: "godex", version: "0.1.0", pid: 7, draining: false, address: "http://127.0.0.1:5678", store: "memory" };

/// The events of an answer that says this.
export function answer(text) {
  const id = "resp_0190b7c1d2";
  const base = { id, object: "response", status: "in_progress", output: [] };
  const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
  const done = { ...base, status: "completed", output: [item], usage: { input_tokens: 12, output_tokens: 9 } };
  const events = [
    { type: "response.created", response: base }, { type: "response.in_progress", response: base },
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [], status: "in_progress" } },
    ...text.match(/[\s\S]{1,6}/g).map((delta) => ({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta })),
    { type: "response.output_item.done", output_index: 0, item }, { type: "response.completed", response: done },
  ];
  return { events: events.map((event, sequence_number) => ({ ...event, sequence_number })), done };
}
