// Vercel's AI SDK on godex: text, a tool that runs in several steps, objects, reasoning, failures.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { generateObject, generateText, isStepCount, jsonSchema, Output, streamObject, streamText, tool } from "ai";
import { z } from "zod";

import { history, providerGotARoundTrip } from "./mirror.mjs";

// It warns of its older functions, and of thoughts that it does not send back.
globalThis.AI_SDK_LOG_WARNINGS = false;

const openai = createOpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused" });
const model = openai.responses("demo");

// With `store` this SDK sends earlier items as references only; tests of that are below.
const providerOptions = { openai: { store: false } };
// No retries: a test wants to see the first answer.
const ask = (prompt, more = {}) => ({ model, prompt, maxRetries: 0, providerOptions, ...more });

// A tool, and the cities it was called with.
function weather() {
  const calls = [];
  const get_weather = tool({
    description: "The weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      calls.push(city);
      return `${17 + calls.length} degrees in ${city}`;
    },
  });
  return { calls, tools: { get_weather } };
}

const question = 'call get_weather {"city": "Paris"}';
const person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });

// Reads a stream to its end; its errors are given, not printed.
async function read(options) {
  const errors = [];
  const result = streamText({ ...options, onError: ({ error }) => errors.push(error) });
  const parts = [];
  for await (const part of result.fullStream) parts.push(part);
  return { result, parts, errors };
}

const kinds = (parts) => [...new Set(parts.map((part) => part.type))];

test("generateText", async () => {
  const { text, finishReason, usage, response } = await generateText(ask("echo naïve 日本語", { system: "Be brief." }));
  assert.equal(text, "naïve 日本語");
  assert.equal(finishReason, "stop");
  assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
  assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
  assert.match(response.id, /^resp_/);
});

test("several messages", async () => {
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello." },
    { role: "user", content: [{ type: "text", text: "echo And again" }] },
  ];
  assert.equal((await generateText(ask(undefined, { messages }))).text, "And again");
});

test("streamText", async () => {
  const { result, parts, errors } = await read(ask("long 30"));
  assert.deepEqual(errors, []);
  const words = Array.from({ length: 30 }, (_, n) => `word${n + 1}`).join(" ");
  assert.equal(await result.text, words);
  const deltas = parts.filter((part) => part.type === "text-delta");
  assert.ok(deltas.length > 1);
  assert.equal(deltas.map((part) => part.text).join(""), words);
  assert.equal(await result.finishReason, "stop");
  const usage = await result.usage;
  assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
});

test("a tool runs in several steps", async () => {
  const { calls, tools } = weather();
  const { text, steps, totalUsage } = await generateText(ask(question, { tools, stopWhen: isStepCount(5) }));
  assert.deepEqual(calls, ["Paris"]);
  assert.match(text, /18 degrees in Paris/);
  assert.deepEqual(steps.map((step) => step.finishReason), ["tool-calls", "stop"]);
  assert.deepEqual(steps[0].toolCalls[0].input, { city: "Paris" });
  assert.equal(totalUsage.inputTokens, steps[0].usage.inputTokens + steps[1].usage.inputTokens);
});

test("a tool runs in a stream", async () => {
  const { calls, tools } = weather();
  const { result, parts, errors } = await read(ask(question, { tools, stopWhen: isStepCount(5) }));
  assert.deepEqual(errors, []);
  assert.deepEqual(calls, ["Paris"]);
  assert.match(await result.text, /18 degrees in Paris/);
  const streamed = parts.filter((part) => part.type === "tool-input-delta").map((part) => part.delta).join("");
  assert.deepEqual(JSON.parse(streamed), { city: "Paris" });
  const expected = ["tool-input-start", "tool-input-end", "tool-call", "tool-result", "text-start", "text-end", "finish"];
  assert.deepEqual(expected.filter((kind) => !kinds(parts).includes(kind)), []);
});

test("parallel calls", async () => {
  for (const go of [generateText, async (options) => (await read(options)).result]) {
    const { calls, tools } = weather();
    const prompt = `${question}\ncall get_weather {"city": "Oslo"}`;
    const result = await go(ask(prompt, { tools, stopWhen: isStepCount(5) }));
    assert.deepEqual(calls, ["Paris", "Oslo"]);
    assert.match(await result.text, /18 degrees in Paris.*19 degrees in Oslo/);
  }
});

test("what the provider gets", async () => {
  // The scripted provider calls a tool, then shows what it was sent.
  const more = () => ({ model: openai.responses("scripted/mirror"), tools: weather().tools, stopWhen: isStepCount(5) });
  providerGotARoundTrip((await generateText(ask("Hi", more()))).text);
  providerGotARoundTrip(await (await read(ask("Hi", more()))).result.text);
});

// The SDK's default: `store` is on, and what the model said and thought goes back as references to items.
const kept = (prompt, more = {}) => ask(prompt, { providerOptions: {}, ...more });

const bothWays = {
  generateText,
  streamText: async (options) => {
    const { result, errors } = await read(options);
    assert.deepEqual(errors, []);
    return { text: await result.text, steps: await result.steps, response: await result.response };
  },
};

function forEachWay(name, body) {
  for (const [way, go] of Object.entries(bothWays)) test(`${name}, ${way}`, () => body(go));
}

const user = (content) => ({ role: "user", content });
// The kinds of items that a step referred to.
const referred = ({ request }) =>
  request.body.input.filter((item) => item.type === "item_reference").map((item) => item.id.split("_")[0]);

forEachWay("a tool runs in several steps that refer to items", async (go) => {
  const { calls, tools } = weather();
  const thinking = { model: openai.responses("thinking/mirror"), tools, stopWhen: isStepCount(5), include: { requestBody: true } };
  // So that the SDK sees the thought, and refers to it, too.
  const providerOptions = { openai: { reasoningSummary: "auto" } };
  const { text, steps } = await go(kept("Hi", { ...thinking, providerOptions }));
  assert.deepEqual(calls, ["Paris"]);
  assert.deepEqual(referred(steps[1]), ["rs", "msg"]);
  providerGotARoundTrip(text);
  assert.equal(history(text)[1].reasoning_content, "a tool will know");
});

forEachWay("a conversation over several calls refers to items", async (go) => {
  const messages = [user("think of foxes")];
  const providerOptions = { openai: { reasoningSummary: "auto" } };
  const first = await go(kept(undefined, { messages, providerOptions }));
  messages.push(...first.response.messages, user("echo And again"));
  const second = await go(kept(undefined, { messages, providerOptions }));
  assert.equal(second.text, "And again");
  messages.push(...second.response.messages, user("What did I say?"));
  const third = await go(kept(undefined, { messages, model: openai.responses("scripted/history"), include: { requestBody: true } }));
  assert.deepEqual(referred(third.steps[0]), ["rs", "msg", "msg"]);
  assert.deepEqual(history(third.text), [
    user("think of foxes"),
    { role: "assistant", content: first.text },
    user("echo And again"),
    { role: "assistant", content: "And again" },
    user("What did I say?"),
  ]);
});

test("a reference to nothing is refused in plain words", async () => {
  const text = { type: "text", text: "Hello", providerOptions: { openai: { itemId: "msg_unknown" } } };
  const messages = [user("Hi"), { role: "assistant", content: [text] }, user("Hi")];
  await assert.rejects(generateText(kept(undefined, { messages })), (error) => {
    assert.equal(error.statusCode, 404);
    assert.equal(error.data.error.code, null);
    assert.match(error.message, /msg_unknown/);
    return true;
  });
});

forEachWay("a chain", async (go) => {
  const model = openai.responses("scripted/history");
  const first = await go(kept("My name is Alice.", { model }));
  const providerOptions = { openai: { previousResponseId: first.response.id } };
  const second = await go(kept("What's my name?", { model, providerOptions }));
  const past = [user("My name is Alice."), { role: "assistant", content: first.text }];
  assert.deepEqual(history(second.text), [...past, user("What's my name?")]);
  // A loop of steps in a chain.
  const more = { model: openai.responses("thinking/mirror"), tools: weather().tools, stopWhen: isStepCount(5) };
  const { text } = await go(kept("Hi", { ...more, providerOptions }));
  providerGotARoundTrip(text);
  assert.deepEqual(history(text).slice(0, 3), [...past, user("Hi")]);
});

forEachWay("a tool loop in a conversation", async (go) => {
  const made = await fetch(`${process.env.GODEX_URL}/v1/conversations`, { method: "POST" });
  const providerOptions = { openai: { conversation: (await made.json()).id } };
  const { calls, tools } = weather();
  const model = openai.responses("thinking/mirror");
  const { text } = await go(kept("Hi", { model, tools, providerOptions, stopWhen: isStepCount(5) }));
  assert.deepEqual(calls, ["Paris"]);
  // The SDK sends the question with every step: the result still comes after its call.
  const messages = history(text);
  assert.deepEqual(messages.map((message) => message.role), ["user", "assistant", "tool", "user"]);
  providerGotARoundTrip(JSON.stringify({ messages: messages.slice(0, 3) }));
  assert.equal(messages[1].reasoning_content, "a tool will know");
});

forEachWay("a conversation", async (go) => {
  const made = await fetch(`${process.env.GODEX_URL}/v1/conversations`, { method: "POST" });
  const providerOptions = { openai: { conversation: (await made.json()).id } };
  const model = openai.responses("scripted/history");
  const first = await go(kept("My name is Alice.", { model, providerOptions }));
  const second = await go(kept("What's my name?", { model, providerOptions }));
  const past = [user("My name is Alice."), { role: "assistant", content: first.text }];
  assert.deepEqual(history(second.text), [...past, user("What's my name?")]);
});

test("the model must call", async () => {
  const { calls, tools } = weather();
  const { toolCalls } = await generateText(ask("Paris?", { tools, toolChoice: "required" }));
  assert.equal(toolCalls[0].toolName, "get_weather");
  assert.equal(calls.length, 1);
});

test("generateObject", async () => {
  const { object } = await generateObject(ask("Ada", { schema: person }));
  assert.equal(person.parse(object).name, "Ada");

  const properties = { name: { type: "string" }, kind: { enum: ["cat", "dog"] } };
  const schema = { type: "object", properties, required: ["name", "kind"], additionalProperties: false };
  const pet = await generateObject(ask("Rex", { schema: jsonSchema(schema) }));
  assert.deepEqual(pet.object, { name: "Rex", kind: "cat" });
});

test("streamObject", async () => {
  const result = streamObject(ask("Ada", { schema: person }));
  let last;
  for await (const partial of result.partialObjectStream) last = partial;
  assert.equal(person.parse(await result.object).name, "Ada");
  assert.deepEqual(last, await result.object);
});

test("an object from generateText", async () => {
  const { output } = await generateText(ask("Ada", { output: Output.object({ schema: person }) }));
  assert.equal(person.parse(output).name, "Ada");
});

test("a model that reasons", async () => {
  const { result, errors } = await read(ask("think of foxes"));
  assert.deepEqual(errors, []);
  const { text, response } = await generateText(ask("think of foxes"));
  assert.match(text, /of foxes/);
  assert.equal(await result.text, text);
  // What it thought goes back with the next question.
  for (const earlier of [response.messages, (await result.response).messages]) {
    const messages = [{ role: "user", content: "Hi" }, ...earlier, { role: "user", content: "echo And again" }];
    assert.equal((await generateText(ask(undefined, { messages }))).text, "And again");
  }
});

test("length", async () => {
  assert.equal((await generateText(ask("length"))).finishReason, "length");
  assert.equal(await (await read(ask("length"))).result.finishReason, "length");
});

test("a failure is thrown with its status and message", async () => {
  await assert.rejects(generateText(ask("fail 429 too fast")), (error) => {
    assert.equal(error.statusCode, 429);
    assert.match(error.message, /too fast/);
    assert.equal(error.isRetryable, true);
    return true;
  });
  const { errors } = await read(ask("fail 429 too fast"));
  assert.equal(errors[0].statusCode, 429);
});

test("a failure in the middle is not a short answer", async () => {
  for (const command of ["fail cut", "fail stream"]) {
    const { parts, errors } = await read(ask(command));
    assert.equal(errors.length, 1, command);
    assert.ok(kinds(parts).includes("error"));
    assert.equal(parts.findLast((part) => part.type === "finish")?.finishReason, "error");
  }
});
