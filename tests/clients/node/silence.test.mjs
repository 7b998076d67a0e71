// A provider that is silent for 20 seconds: godex shows that it is alive, and no client trips over that. The
// provider is scripted, and the name of the model says where it is silent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";

globalThis.AI_SDK_LOG_WARNINGS = false;

const baseURL = `${process.env.GODEX_URL}/v1`;
const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0 });
const vercel = createOpenAI({ baseURL, apiKey: "unused" });

const parameters = { type: "object", properties: {} };
const tools = [{ type: "function", name: "get_weather", parameters, strict: false }];
const texts = { "quiet-start": "after a long silence", "quiet-text": "before and after a long silence" };

async function helper(model) {
  const stream = client.responses.stream({ model: `scripted/${model}`, input: "Hi", tools });
  const types = [];
  for await (const event of stream) types.push(event.type);
  assert.equal(types.filter((type) => type === "response.in_progress").length, 2);
  return stream.finalResponse();
}

async function ai(model) {
  const get_weather = tool({ inputSchema: jsonSchema(parameters), execute: async () => "18 degrees" });
  const errors = [];
  const onError = ({ error }) => errors.push(error);
  const result = streamText({
    model: vercel.responses(`scripted/${model}`),
    prompt: "Hi",
    tools: { get_weather },
    maxRetries: 0,
    onError,
  });
  const text = await result.text;
  assert.deepEqual(errors, []);
  return { text, calls: await result.toolCalls };
}

// All at once: one silence is long enough.
test("silence", { concurrency: true, timeout: 60_000 }, async (t) => {
  const running = [];
  const check = (name, body) => running.push(t.test(name, body));
  for (const [model, text] of Object.entries(texts)) {
    check(`${model}, the stream helper`, async () => assert.equal((await helper(model)).output_text, text));
    check(`${model}, Vercel`, async () => assert.equal((await ai(model)).text, text));
  }
  check("quiet-thought, the stream helper", async () => {
    const [thought, message] = (await helper("quiet-thought")).output;
    assert.equal(thought.content[0].text, "let me think for long");
    assert.equal(message.content[0].text, "after a long silence");
  });
  check("quiet-thought, Vercel", async () => assert.equal((await ai("quiet-thought")).text, "after a long silence"));
  check("quiet-call, the stream helper", async () => {
    const [call] = (await helper("quiet-call")).output;
    assert.deepEqual([call.name, call.call_id, call.arguments], ["get_weather", "call_1", '{"city": "Paris"}']);
  });
  check("quiet-call, Vercel", async () => assert.deepEqual((await ai("quiet-call")).calls[0].input, { city: "Paris" }));
  await Promise.all(running);
});
