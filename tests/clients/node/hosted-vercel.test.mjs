// Vercel's AI SDK with tools that godex runs: `openai.tools.mcp`, with approvals, and `openai.tools.webSearch`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText } from "ai";

import { ADD, call, CITED, DELETE, MODEL, NORTH, RESULTS, roles, say, SEARCHED, SHOW, SOUTH, steps, toolTexts, URL } from "./hosted.mjs";

const openai = createOpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused" });
const user = (content) => ({ role: "user", content });
const server = (requireApproval) => ({ mcp: openai.tools.mcp({ serverLabel: "tools", serverUrl: URL, requireApproval }) });

// Both ways to ask, by name; each gives the same things.
const ways = {
  generateText: async (asked) => {
    const { text, content, sources, response, finishReason } = await generateText(asked);
    return { text, content, sources, response, finishReason };
  },
  streamText: async (asked) => {
    const errors = [];
    const result = streamText({ ...asked, onError: ({ error }) => errors.push(error) });
    for await (const _ of result.fullStream);
    assert.deepEqual(errors, []);
    const { text, content, sources, response, finishReason } = result;
    return { text: await text, content: await content, sources: await sources, response: await response, finishReason: await finishReason };
  },
};

function forEachWay(name, body, stores = [true, false]) {
  for (const [way, ask] of Object.entries(ways)) {
    for (const store of stores) {
      const settings = { model: openai.responses(MODEL), maxRetries: 0, providerOptions: { openai: { store } } };
      test(`${name}, ${way}, ${store ? "stored" : "not stored"}`, () => body((messages, tools) => ask({ ...settings, messages, tools })));
    }
  }
}

const parts = (content, type) => content.filter((part) => part.type === type);

forEachWay("a tool of a server", async (ask) => {
  const messages = [user(ADD)];
  const first = await ask(messages, server("never"));
  assert.equal(first.text, "The sum is 42.");
  assert.equal(first.finishReason, "stop");
  const [called] = parts(first.content, "tool-call");
  assert.deepEqual([called.toolName, called.input, called.providerExecuted], ["mcp.add", { a: 20, b: 22 }, true]);
  const [{ output }] = parts(first.content, "tool-result");
  assert.deepEqual([output.serverLabel, output.name, output.output], ["tools", "add", "42"]);
  messages.push(...first.response.messages, user(steps(SHOW)));
  const second = await ask(messages, server("never"));
  assert.ok(second.text.includes("The sum is 42."));
});

const byReference = async (ask) => {
  const messages = [user(ADD)];
  const first = await ask(messages, server("never"));
  messages.push(...first.response.messages, user(steps(SHOW)));
  const { text } = await ask(messages, server("never"));
  assert.deepEqual(roles(text), ["user", "assistant", "tool", "assistant", "user"]);
  assert.deepEqual(toolTexts(text), ["42"]);
};
forEachWay("what was stored is found by its references", byReference, [true]);

forEachWay("a failing tool", async (ask) => {
  const script = steps(call("tools__fail", { message: "no such file" }), RESULTS);
  const { text, content } = await ask([user(script)], server("never"));
  assert.match(text, /no such file/);
  assert.equal(parts(content, "tool-result")[0].output.error.type, "mcp_tool_execution_error");
});

for (const approved of [true, false]) {
  const answered = async (ask) => {
    const messages = [user(DELETE)];
    const first = await ask(messages, server("always"));
    const [request] = parts(first.content, "tool-approval-request");
    assert.equal(request.toolCall.toolName, "mcp.delete");
    const response = { type: "tool-approval-response", approvalId: request.approvalId, approved, providerExecuted: true };
    messages.push(...first.response.messages, { role: "tool", content: [response] });
    const second = await ask(messages, server("always"));
    assert.equal(/deleted \/etc\/hosts/.test(second.text), approved, second.text);
    messages.push(...second.response.messages, user(steps(SHOW)));
    const third = await ask(messages, server("always"));
    assert.ok(third.text.includes(JSON.stringify(second.text).slice(1, -1)));
  };
  forEachWay(`an approval: ${approved}`, answered, [true]);
}

// The SDK sends the answer alone: there is nothing to be found that it answers.
test("an approval of what is not stored is refused in plain words", async () => {
  const settings = { model: openai.responses(MODEL), maxRetries: 0, providerOptions: { openai: { store: false } }, tools: server("always") };
  const messages = [user(DELETE)];
  const first = await generateText({ ...settings, messages });
  const [{ approvalId }] = parts(first.content, "tool-approval-request");
  const response = { type: "tool-approval-response", approvalId, approved: true, providerExecuted: true };
  messages.push(...first.response.messages, { role: "tool", content: [response] });
  await assert.rejects(generateText({ ...settings, messages }), (error) => {
    assert.equal(error.statusCode, 400);
    assert.match(error.message, /approval/);
    return true;
  });
});

forEachWay("a search", async (ask) => {
  const tools = { web_search: openai.tools.webSearch({ searchContextSize: "low" }) };
  const messages = [user(SEARCHED)];
  const first = await ask(messages, tools);
  assert.equal(first.text, CITED);
  const [{ output }] = parts(first.content, "tool-result");
  assert.deepEqual([output.action.type, output.action.queries], ["search", ["foxes"]]);
  assert.ok(output.sources.some((source) => source.url === NORTH));
  const urls = first.sources.map((source) => source.url);
  assert.ok(urls.includes(NORTH) && urls.includes(SOUTH), urls.join());
  messages.push(...first.response.messages, user(steps(SHOW)));
  const second = await ask(messages, tools);
  assert.ok(second.text.includes(NORTH));
});

forEachWay("a page that may not be opened", async (ask) => {
  const tools = { web_search: openai.tools.webSearch({}) };
  const script = steps(call("web_search", { queries: ["foxes"] }), call("open_page", { url: process.env.GODEX_PAGE_URL }), say("I could not."));
  const { text, content } = await ask([user(script)], tools);
  assert.equal(text, "I could not.");
  assert.equal(parts(content, "tool-result").length + parts(content, "tool-error").length, 2);
});
