// Counting the input of a request with the official Node client.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });

const count = async (request) => {
  const counted = await client.responses.inputTokens.count(request);
  assert.equal(counted.object, "response.input_tokens");
  return counted.input_tokens;
};

test("everything counts", async () => {
  const short = await count({ model: "demo", input: "Hi" });
  const long = await count({ model: "demo", input: "Tell me about the sea. ".repeat(50) });
  const instructed = await count({ model: "demo", input: "Tell me about the sea. ".repeat(50), instructions: "Be brief." });
  assert.ok(0 < short && short < 20 && 20 < long && long < instructed, `${short} ${long} ${instructed}`);
});

test("nothing is required", async () => {
  assert.ok((await count({})) > 0);
});

test("what is continued counts", async () => {
  const first = await client.responses.create({ model: "demo", input: "The quick brown fox. ".repeat(40) });
  const alone = await count({ model: "demo", input: "Go on." });
  assert.ok((await count({ model: "demo", input: "Go on.", previous_response_id: first.id })) > alone + 100);
});

test("estimates say so", async () => {
  const { response } = await client.responses.inputTokens.count({ model: "demo", input: "Hi" }).withResponse();
  assert.match(response.headers.get("x-godex-compat"), /input_tokens=degraded/);
});

test("what is wrong is refused", async () => {
  await assert.rejects(count({ model: "demo", input: "Hi", previous_response_id: `resp_${"0".repeat(48)}` }), OpenAI.BadRequestError);
});
