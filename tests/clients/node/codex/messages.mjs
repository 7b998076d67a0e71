// The same scripted model behind a Messages API: what a request of it says, what its server refuses, and what it streams.
// Written from that API's rules and not from godex's code, so that the two can disagree. Each thought is signed with a hash
// of all that was before it, and refused where it comes back to anything else.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";

const ID = /^[A-Za-z0-9_-]{1,64}$/;

// What scripts ask of a request.
export function readMessages(body) {
  const blocks = body.messages.flatMap((message) => (typeof message.content === "string" ? [] : message.content));
  return {
    results: blocks.filter((block) => block.type === "tool_result").map((block) => blockText(block.content)),
    texts: [...(body.system ?? []).map((block) => block.text), ...body.messages.map((message) => blockText(message.content))],
    names: (body.tools ?? []).map((tool) => tool.name),
  };
}

function blockText(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => block.text ?? "").join("\n");
}

// What is wrong with a request.
export function checkMessages(body, headers) {
  const problems = [];
  const demand = (good, problem) => good || problems.push(problem);
  demand(headers["x-api-key"] !== undefined || headers.authorization !== undefined, "no key");
  demand(/^\d{4}-\d\d-\d\d$/.test(headers["anthropic-version"]), "no anthropic-version");
  demand(body.max_tokens > 0, "max_tokens is required");
  demand(body.stream === true, "a request that is not streamed");
  for (const tool of body.tools ?? []) demand(ID.test(tool.name) && tool.input_schema?.type === "object", `the tool ${tool.name}`);
  const marks = JSON.stringify(body).match(/"cache_control":/g) ?? [];
  demand(marks.length <= 4, `${marks.length} blocks with cache_control`);
  turns(body, demand);
  thoughts(body, demand);
  return problems;
}

function turns({ messages }, demand) {
  const ids = new Set();
  let awaited = [];
  demand(messages[0]?.role === "user", "the first message is not the user's");
  demand(messages.at(-1)?.role !== "assistant", "the last message is the assistant's");
  for (const [at, message] of messages.entries()) {
    const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
    demand(message.role === "system" || blocks.length > 0, `messages.${at}: nothing`);
    const results = blocks.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id);
    demand(awaited.every((id) => results.includes(id)), `messages.${at}: tool_use ids were found without tool_result blocks: ${awaited}`);
    demand(results.every((id) => awaited.includes(id)), `messages.${at}: results of no call right before it: ${results}`);
    const first = blocks.findIndex((block) => block.type !== "tool_result");
    demand(first < 0 || blocks.slice(first).every((block) => block.type !== "tool_result"), `messages.${at}: results after something else`);
    awaited = [];
    for (const block of blocks) {
      if (block.type === "text") demand(block.text.trim() !== "", `messages.${at}: an empty text`);
      if (block.type !== "tool_use") continue;
      demand(message.role === "assistant" && ID.test(block.id) && !ids.has(block.id), `messages.${at}: the call ${block.id}`);
      demand(typeof block.input === "object" && block.input !== null && !Array.isArray(block.input), `messages.${at}: an input that is no object`);
      ids.add(block.id);
      awaited.push(block.id);
    }
  }
}

function thoughts(body, demand) {
  for (const [at, message] of body.messages.entries()) {
    for (const [number, block] of Array.from(message.content).entries()) {
      if (block.type !== "thinking") continue;
      const expected = signature(body, body.messages.slice(0, at), message.content.slice(0, number), block.thinking);
      demand(block.signature === expected, `messages.${at}.content.${number}: Invalid signature in thinking block. The block is bound to a different conversation.`);
    }
  }
}

const unmarked = (value) => JSON.stringify(value, (key, member) => (key === "cache_control" ? undefined : member));

function signature({ tools, system }, before, blocks, said) {
  return createHash("sha256").update(unmarked([tools ?? null, system ?? null, before, blocks, said])).digest("base64");
}

let made = 0;

// Streams what the model does: steps as scripts give them.
export function streamMessages(answer, { raw, body }, steps) {
  answer.writeHead(200, { "content-type": "text/event-stream", "request-id": "req_1" });
  const send = (type, rest) => answer.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`);
  let usage = { prompt_tokens: Math.ceil(raw.length / 4), completion_tokens: 10 };
  usage = steps.find((step) => step.usage !== undefined)?.usage ?? usage;
  const message = { id: `msg_${++made}`, type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, stop_sequence: null };
  send("message_start", { message: { ...message, usage: { input_tokens: usage.prompt_tokens, output_tokens: 1 } } });
  send("ping", {});
  const said = [];
  const block = (whole, start, deltas) => {
    const index = said.length;
    said.push(whole);
    send("content_block_start", { index, content_block: start });
    for (const delta of deltas) send("content_block_delta", { index, delta });
    send("content_block_stop", { index });
  };
  for (const step of steps) {
    if (step.content !== undefined) {
      const whole = { type: "text", text: step.content };
      block(whole, { type: "text", text: "" }, halves(step.content).map((text) => ({ type: "text_delta", text })));
    } else if (step.reasoning_content !== undefined) {
      const thinking = step.reasoning_content;
      const signed = signature(body, body.messages, said, thinking);
      const deltas = halves(thinking).map((piece) => ({ type: "thinking_delta", thinking: piece }));
      block({ type: "thinking", thinking, signature: signed }, { type: "thinking", thinking: "", signature: "" }, [...deltas, { type: "signature_delta", signature: signed }]);
    } else if (step.call !== undefined) {
      const { name, arguments: whole } = step.call;
      const id = `toolu_${++made}`;
      const deltas = ["", ...halves(whole)].map((partial_json) => ({ type: "input_json_delta", partial_json }));
      block({ type: "tool_use", id, name, input: parsed(whole) }, { type: "tool_use", id, name, input: {} }, deltas);
    }
  }
  const stop_reason = said.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn";
  send("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: usage.completion_tokens } });
  send("message_stop", {});
  answer.end();
}

const halves = (text) => [text.slice(0, Math.floor(text.length / 2)), text.slice(Math.floor(text.length / 2))];

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

// That each request extends the one before, so that thoughts stay valid and caches are read: the same tools and system,
// and all earlier messages as they were. Marks may move.
export function assertMessagePrefixes(requests) {
  for (const [at, { body }] of requests.entries()) {
    if (at === 0) continue;
    const before = requests[at - 1].body;
    assert.equal(unmarked(body.tools), unmarked(before.tools), `request ${at}: other tools`);
    assert.equal(unmarked(body.system), unmarked(before.system), `request ${at}: another system prompt`);
    const kept = before.messages.map(unmarked);
    assert.deepEqual(body.messages.slice(0, kept.length).map(unmarked), kept, `request ${at}: other messages`);
  }
}
