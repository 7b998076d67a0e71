// The Agents SDK for JavaScript on godex: a tool that really runs, and histories that godex keeps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, OpenAIConversationsSession, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

import { history, providerGotARoundTrip } from "./mirror.mjs";

// Traces would go to OpenAI.
setTracingDisabled(true);

// No retries: a test wants to see the first answer.
const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });
const runner = new Runner({ tracingDisabled: true });

const weather = tool({
  name: "get_weather",
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `18 degrees in ${city}`,
});

const agent = (model, more = {}) =>
  new Agent({ name: "Tester", model: new OpenAIResponsesModel(client, model), ...more });

// Both ways to run an agent, by name.
const ways = {
  whole: (...asked) => runner.run(...asked),
  streamed: async (asked, input, options) => {
    const result = await runner.run(asked, input, { ...options, stream: true });
    for await (const _ of result);
    await result.completed;
    return result;
  },
};

function forEachWay(name, body) {
  for (const [way, run] of Object.entries(ways)) test(`${name}, ${way}`, () => body(run));
}

const user = (content) => ({ role: "user", content });
const said = (result) => ({ role: "assistant", content: result.finalOutput });

forEachWay("an agent answers", async (run) => {
  assert.equal((await run(agent("demo"), "echo Hello from the agent")).finalOutput, "Hello from the agent");
});

forEachWay("what the provider gets", async (run) => {
  providerGotARoundTrip((await run(agent("scripted/mirror", { tools: [weather] }), "Hi")).finalOutput);
});

forEachWay("a chain", async (run) => {
  const first = await run(agent("scripted/history"), "My name is Alice.");
  const options = { previousResponseId: first.lastResponseId };
  const second = await run(agent("scripted/history"), "What's my name?", options);
  assert.deepEqual(history(second.finalOutput), [user("My name is Alice."), said(first), user("What's my name?")]);
});

forEachWay("a chain with a tool sends only what is new", async (run) => {
  const first = await run(agent("scripted/history"), "My name is Alice.");
  const options = { previousResponseId: first.lastResponseId };
  const second = await run(agent("thinking/mirror", { tools: [weather] }), "Hi", options);
  providerGotARoundTrip(second.finalOutput);
  const messages = history(second.finalOutput);
  assert.deepEqual(messages.slice(0, 3), [user("My name is Alice."), said(first), user("Hi")]);
  assert.equal(messages.length, 5);
  assert.equal(messages[3].reasoning_content, "a tool will know");
});

forEachWay("a conversation", async (run) => {
  const conversationId = (await client.conversations.create()).id;
  const first = await run(agent("scripted/history"), "My name is Alice.", { conversationId });
  const second = await run(agent("thinking/mirror", { tools: [weather] }), "Hi", { conversationId });
  providerGotARoundTrip(second.finalOutput);
  const messages = history(second.finalOutput);
  assert.deepEqual(messages.slice(0, 3), [user("My name is Alice."), said(first), user("Hi")]);
  assert.equal(messages.length, 5);
  const items = [];
  for await (const item of client.conversations.items.list(conversationId, { order: "asc", limit: 3 })) items.push(item.type);
  const turn = ["message", "reasoning", "message", "function_call", "function_call_output", "message"];
  assert.deepEqual(items, ["message", "message", ...turn]);
});

forEachWay("a session that is a conversation", async (run) => {
  const session = new OpenAIConversationsSession({ client });
  const first = await run(agent("scripted/history"), "My name is Alice.", { session });
  const second = await run(agent("thinking/mirror", { tools: [weather] }), "Hi", { session });
  providerGotARoundTrip(second.finalOutput);
  assert.deepEqual(history(second.finalOutput).slice(0, 3), [user("My name is Alice."), said(first), user("Hi")]);
  const third = await run(agent("scripted/history"), "What's my name?", { session });
  const messages = history(third.finalOutput);
  assert.deepEqual(messages.map((message) => message.role), ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]);
  assert.deepEqual(messages.at(-2), said(second));

  const items = await session.getItems();
  assert.equal((await session.getItems(3)).length, 3);
  assert.equal((await session.popItem()).content[0].text, third.finalOutput);
  assert.deepEqual(await session.getItems(), items.slice(0, -1));
  const { sessionId } = session;
  await session.clearSession();
  await assert.rejects(client.conversations.retrieve(sessionId), OpenAI.NotFoundError);
});
