// The core of the other tests once more, with a provider that speaks Messages: text, tools, thoughts, chains.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0 });
const weather = {
  type: "function", name: "get_weather", strict: true,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
};

const whole = (request) => client.responses.create(request);
const streamed = async (request) => {
  let last;
  for await (const event of await client.responses.create({ ...request, stream: true })) last = event;
  assert.equal(last.type, "response.completed");
  return last.response;
};
const helper = (request) => client.responses.stream(request).finalResponse();

for (const [name, way] of Object.entries({ whole, streamed, helper })) {
  test(`a chain, ${name}`, async () => {
    const first = await way({ model: "messages/history", input: "My name is Alice." });
    const second = await way({ model: "messages/history", input: "Who am I?", previous_response_id: first.id });
    const { messages } = JSON.parse(text(second));
    assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "user"]);
    assert.deepEqual([messages[0].content, messages[1].content], ["My name is Alice.", text(first)]);
  });

  test(`a tool, its result and the thoughts before it, ${name}`, async () => {
    const more = { model: "messages/mirror", tools: [weather], store: false, include: ["reasoning.encrypted_content"] };
    const asked = { role: "user", content: "Hi" };
    const first = await way({ ...more, input: [asked] });
    assert.deepEqual(first.output.map(({ type }) => type), ["reasoning", "message", "function_call"]);
    const call = first.output.at(-1);
    assert.deepEqual(JSON.parse(call.arguments), { city: "Paris" });
    const output = { type: "function_call_output", call_id: call.call_id, output: "18 degrees in Paris" };
    const again = await way({ ...more, input: [asked, ...first.output, output] });
    const [called, result] = JSON.parse(text(again)).messages.slice(-2);
    assert.deepEqual([called.content, called.tool_calls[0].id], ["I look it up.", call.call_id]);
    assert.deepEqual([result.role, result.content], ["tool", "18 degrees in Paris"]);
  });
}

const text = (response) => response.output.filter(({ type }) => type === "message").flatMap(({ content }) => content).map(({ text }) => text).join("");
