// LangChain's ChatOpenAI for JavaScript on godex, with the Responses API.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";

import { history, providerGotARoundTrip } from "./mirror.mjs";

const chat = (model) =>
  new ChatOpenAI({
    model,
    apiKey: "unused",
    useResponsesApi: true,
    maxRetries: 0,
    timeout: 30_000,
    configuration: { baseURL: `${process.env.GODEX_URL}/v1` },
  });

const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "The weather.", parameters: schema } }];

// Both ways to ask, by name.
const ways = {
  whole: (model, messages, options) => model.invoke(messages, options),
  streamed: async (model, messages, options) => {
    let whole;
    for await (const chunk of await model.stream(messages, options)) whole = whole ? whole.concat(chunk) : chunk;
    return whole;
  },
};

function forEachWay(name, body) {
  for (const [way, ask] of Object.entries(ways)) test(`${name}, ${way}`, () => body(ask));
}

forEachWay("a model answers", async (ask) => {
  const answer = await ask(chat("demo"), [new HumanMessage("Hi"), new AIMessage("Hello."), new HumanMessage("echo naïve 日本語")]);
  assert.equal(answer.text, "naïve 日本語");
  assert.ok(answer.usage_metadata.total_tokens > 0);
});

forEachWay("what the provider gets", async (ask) => {
  const model = chat("scripted/mirror").bindTools(tools);
  const messages = [new HumanMessage("Hi")];
  const first = await ask(model, messages);
  assert.deepEqual(first.tool_calls.map(({ name, args }) => [name, args]), [["get_weather", { city: "Paris" }]]);
  const output = new ToolMessage({ content: "18 degrees in Paris", tool_call_id: first.tool_calls[0].id });
  providerGotARoundTrip((await ask(model, [...messages, first, output])).text);
});

forEachWay("a chain", async (ask) => {
  const model = chat("scripted/history");
  const first = await ask(model, "My name is Alice.");
  const previous_response_id = first.response_metadata.id;
  assert.match(previous_response_id, /^resp_/);
  const second = await ask(model, "What's my name?", { previous_response_id });
  assert.deepEqual(history(second.text), [
    { role: "user", content: "My name is Alice." },
    { role: "assistant", content: first.text },
    { role: "user", content: "What's my name?" },
  ]);
});

forEachWay("a chain with a tool sends only what is new", async (ask) => {
  const model = chat("thinking/mirror").bindTools(tools);
  const first = await ask(model, "Hi");
  const output = new ToolMessage({ content: "18 degrees in Paris", tool_call_id: first.tool_calls[0].id });
  const { text } = await ask(model, [output], { previous_response_id: first.response_metadata.id });
  providerGotARoundTrip(text);
  assert.equal(history(text).length, 3);
  assert.equal(history(text)[1].reasoning_content, "a tool will know");
});
