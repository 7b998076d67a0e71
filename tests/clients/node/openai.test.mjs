// What a program written with the official Node client must be able to do against godex. The model is `demo`:
// built in, offline, deterministic; a command at the start of the last user message makes it do something
// particular.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

import { providerGotARoundTrip } from "./mirror.mjs";

// No retries: a test wants to see the first answer.
const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });

const weather = {
  type: "function",
  name: "get_weather",
  description: "The weather in a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
};

const ask = (input, more = {}) => client.responses.create({ model: "demo", input, ...more });

async function eventsOf(input, more = {}) {
  const events = [];
  for await (const event of await ask(input, { stream: true, ...more })) events.push(event);
  return events;
}

test("create", async () => {
  const response = await ask("The quick brown fox");
  assert.match(response.id, /^resp_/);
  assert.equal(response.status, "completed");
  assert.ok(response.output_text.includes("The quick brown fox"));
  assert.equal(response.usage.total_tokens, response.usage.input_tokens + response.usage.output_tokens);
});

test("instructions and several messages", async () => {
  const response = await ask(
    [
      { role: "user", content: "My name is Ada." },
      { role: "assistant", content: "Hello Ada." },
      { role: "user", content: [{ type: "input_text", text: "Say the word perihelion." }] },
    ],
    { instructions: "Be brief.", store: false },
  );
  assert.ok(response.output_text.includes("perihelion"));
  assert.equal(response.instructions, "Be brief.");
});

test("unicode", async () => {
  for (const text of ["naïve café", "日本語のテキスト", "👩‍👩‍👧‍👦 and 🇫🇷", 'quotes " and \\ back']) {
    assert.equal((await ask(`echo ${text}`)).output_text, text);
    const deltas = (await eventsOf(`echo ${text}`)).filter((event) => event.type === "response.output_text.delta");
    assert.equal(deltas.map((event) => event.delta).join(""), text);
  }
});

test("raw stream", async () => {
  const events = await eventsOf("Tell me of foxes");
  assert.deepEqual(events.slice(0, 2).map((event) => event.type), ["response.created", "response.in_progress"]);
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, index) => index));
  const final = events.at(-1);
  assert.equal(final.type, "response.completed");
  const text = events.filter((event) => event.type === "response.output_text.delta").map((event) => event.delta).join("");
  assert.equal(text, final.response.output.at(-1).content[0].text);
  assert.equal(final.response.id, events[0].response.id);
});

test("stream helper", async () => {
  const stream = client.responses.stream({ model: "demo", input: "A helper asks" });
  let text = "";
  stream.on("response.output_text.delta", (event) => {
    text += event.delta;
    assert.equal(event.snapshot, text);
  });
  const final = await stream.finalResponse();
  assert.equal(final.status, "completed");
  assert.equal(final.output_text, text);
  assert.ok(text.includes("A helper asks"));
});

test("reasoning with the stream helper", async () => {
  const stream = client.responses.stream({ model: "demo", input: "think it is so" });
  const events = [];
  for await (const event of stream) events.push(event);
  const [thought, message] = (await stream.finalResponse()).output;
  assert.deepEqual([thought.type, thought.status, thought.summary], ["reasoning", "completed", []]);
  assert.match(thought.id, /^rs_/);
  assert.equal(message.type, "message");
  const text = thought.content[0].text;
  assert.ok(text.includes("it is so"));

  const delta = "response.reasoning_text.delta";
  const ofThought = events.filter((event) => event.item_id === thought.id);
  assert.equal(ofThought.filter((event) => event.type === delta).map((event) => event.delta).join(""), text);
  assert.deepEqual(
    ofThought.map((event) => event.type).filter((type) => type !== delta),
    ["response.content_part.added", "response.reasoning_text.done", "response.content_part.done"],
  );
  assert.deepEqual(
    events.filter((event) => event.item?.id === thought.id).map((event) => event.type),
    ["response.output_item.added", "response.output_item.done"],
  );
});

test("a thought goes back", async () => {
  const first = await ask("think of foxes", { include: ["reasoning.encrypted_content"], store: false });
  const again = await ask([...first.output, { role: "user", content: "echo And again" }], { store: false });
  assert.equal(again.output_text, "And again");
});

test("refusal", async () => {
  const text = "I'm sorry, but I can't help with that.";
  assert.deepEqual((await ask("refuse")).output.at(-1).content, [{ type: "refusal", refusal: text }]);
  const deltas = (await eventsOf("refuse")).filter((event) => event.type === "response.refusal.delta");
  assert.equal(deltas.map((event) => event.delta).join(""), text);
});

test("length is incomplete", async () => {
  const response = await ask("length");
  assert.equal(response.status, "incomplete");
  assert.equal(response.incomplete_details.reason, "max_output_tokens");
});

test("function call round trip", async () => {
  const question = { role: "user", content: 'call get_weather {"city":"Paris"}' };
  const first = await ask([question], { tools: [weather], store: false });
  const call = first.output.at(-1);
  assert.equal(call.type, "function_call");
  assert.equal(call.name, "get_weather");
  assert.deepEqual(JSON.parse(call.arguments), { city: "Paris" });
  const answer = { type: "function_call_output", call_id: call.call_id, output: "18 degrees, sunny" };
  const second = await ask([question, ...first.output, answer], { tools: [weather], store: false });
  assert.equal(second.output.at(-1).type, "message");
});

test("function call with the stream helper", async () => {
  const input = 'call get_weather {"city":"Oslo"}';
  const stream = client.responses.stream({ model: "demo", input, tools: [weather] });
  let deltas = "";
  for await (const event of stream) {
    if (event.type === "response.function_call_arguments.delta") deltas += event.delta;
  }
  const { output } = await stream.finalResponse();
  const [call] = output;
  assert.equal(output.length, 1);
  assert.deepEqual([call.type, call.name, call.status], ["function_call", "get_weather", "completed"]);
  assert.match(call.id, /^fc_/);
  assert.ok(call.call_id);
  assert.equal(call.arguments, deltas);
  assert.deepEqual(JSON.parse(deltas), { city: "Oslo" });
});

test("parallel calls with the stream helper", async () => {
  const input = 'call get_weather {"city":"Oslo"}\ncall get_weather {"city":"Rome"}';
  const { output } = await client.responses.stream({ model: "demo", input, tools: [weather] }).finalResponse();
  assert.deepEqual(output.map((call) => JSON.parse(call.arguments).city), ["Oslo", "Rome"]);
  assert.equal(new Set(output.map((call) => call.call_id)).size, 2);
});

test("what the provider gets", async () => {
  // The scripted provider calls a tool, then shows what it was sent.
  const send = (input) => client.responses.create({ model: "scripted/mirror", input, tools: [weather], store: false });
  const question = { role: "user", content: "Hi" };
  const { output } = await send([question]);
  assert.deepEqual(output.map((item) => item.type), ["reasoning", "message", "function_call"]);
  const answer = { type: "function_call_output", call_id: output.at(-1).call_id, output: "18 degrees in Paris" };
  providerGotARoundTrip((await send([question, ...output, answer])).output_text);
});

test("structured output", async () => {
  const schema = {
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer" } },
    required: ["name", "age"],
    additionalProperties: false,
  };
  const format = { type: "json_schema", name: "person", schema, strict: true };
  const response = await client.responses.parse({ model: "demo", input: "Who is it?", text: { format } });
  const person = JSON.parse(response.output_text);
  assert.equal(typeof person.name, "string");
  assert.ok(Number.isInteger(person.age));
});

test("structured output with zod", async () => {
  const person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });
  const text = { format: zodTextFormat(person, "person") };
  const whole = await client.responses.parse({ model: "demo", input: "Ada", text });
  const streamed = await client.responses.stream({ model: "demo", input: "Ada", text }).finalResponse();
  for (const { output_parsed } of [whole, streamed]) assert.equal(person.parse(output_parsed).name, "Ada");
});

test("unknown model", async () => {
  await assert.rejects(client.responses.create({ model: "demo/", input: "Hi" }), (error) => {
    assert.ok([400, 404].includes(error.status));
    assert.equal(error.code, "model_not_found");
    return true;
  });
});

test("wrong type", async () => {
  await assert.rejects(ask("Hi", { temperature: "hot" }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, "temperature");
    return true;
  });
});

test("rate limit", async () => {
  await assert.rejects(ask("fail 429"), OpenAI.RateLimitError);
  await assert.rejects(eventsOf("fail 429"), OpenAI.RateLimitError);
});

test("failure in the middle of a stream", async () => {
  for (const command of ["fail cut", "fail stream"]) {
    // The client throws at the `error` event, so the raw text is read.
    const response = await ask(command, { stream: true }).asResponse();
    assert.equal(response.status, 200);
    const types = [...(await response.text()).matchAll(/^event: (.*)$/gm)].map((match) => match[1]);
    assert.deepEqual(types.slice(-2), ["error", "response.failed"]);
  }
});

test("models", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes("demo"));
  assert.equal((await client.models.retrieve("demo")).id, "demo");
});

test("request id", async () => {
  const { data, response } = await ask("Hi").withResponse();
  assert.ok(response.headers.get("x-request-id"));
  assert.equal(data._request_id, response.headers.get("x-request-id"));
});
