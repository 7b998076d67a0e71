// Background responses, and streams that are taken up again, with the official client.

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });
const TEXT = "One two three four five six seven eight";
const SLOW = `slow 8\n${TEXT}`;

async function wait(response) {
  for (let round = 0; round < 300; round += 1) {
    if (!["queued", "in_progress"].includes(response.status)) return response;
    await new Promise((resume) => setTimeout(resume, 100));
    response = await client.responses.retrieve(response.id);
  }
  throw new Error(`${response.id} is still ${response.status}`);
}

test("polling", async () => {
  const queued = await client.responses.create({ model: "demo", input: SLOW, background: true });
  assert.deepEqual([queued.status, queued.background, queued.output], ["queued", true, []]);
  const done = await wait(queued);
  assert.deepEqual([done.id, done.status], [queued.id, "completed"]);
  assert.ok(done.output_text.includes(TEXT));
});

test("a stream is taken up where it stopped", async () => {
  const seen = [];
  for await (const event of await client.responses.create({ model: "demo", input: SLOW, background: true, stream: true })) {
    seen.push(event);
    if (event.type === "response.output_text.delta") break;
  }
  const { id } = seen[0].response;
  const rest = [];
  const resumed = await client.responses.retrieve(id, { stream: true, starting_after: seen.at(-1).sequence_number });
  for await (const event of resumed) rest.push(event);
  const all = [...seen, ...rest];
  assert.deepEqual(all.map((event) => event.sequence_number), [...all.keys()]);
  assert.equal(rest.at(-1).type, "response.completed");
  const whole = [];
  for await (const event of await client.responses.retrieve(id, { stream: true })) whole.push(event);
  assert.deepEqual(whole, all);
});

test("the stream helper takes a response up", async () => {
  const first = client.responses.stream({ model: "demo", input: SLOW, background: true });
  let id;
  for await (const event of first) {
    id = event.response.id;
    break;
  }
  const final = await client.responses.stream({ response_id: id }).finalResponse();
  assert.equal(final.id, id);
  assert.ok(final.output_text.includes(TEXT));
});

test("cancelling", async () => {
  const queued = await client.responses.create({ model: "demo", input: "slow 100\nHi", background: true });
  const cancelled = await client.responses.cancel(queued.id);
  assert.deepEqual([cancelled.id, cancelled.status], [queued.id, "cancelled"]);
  const found = await client.responses.retrieve(queued.id);
  assert.deepEqual([found.status, found.output], [cancelled.status, cancelled.output]);
  const done = await wait(await client.responses.create({ model: "demo", input: "Hi", background: true }));
  await assert.rejects(client.responses.cancel(done.id), /Cannot cancel a completed response\./);
});
