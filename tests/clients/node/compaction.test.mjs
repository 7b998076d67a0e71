// Long conversations with the official Node client: compacted on demand, or when they have grown too long.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

// No retries: a test wants to see the first answer.
const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });

const history = [
  { role: "user", content: "My name is Ada." },
  { role: "assistant", content: "Hello Ada." },
  { role: "user", content: "Remember it." },
];

test("compact, and a new chain from it", async () => {
  const compacted = await client.responses.compact({ model: "demo", input: history });
  assert.equal(compacted.object, "response.compaction");
  assert.deepEqual(compacted.output.map((item) => item.type), ["message", "message", "compaction"]);
  assert.match(compacted.output.at(-1).id, /^cmp_/);
  assert.ok(compacted.usage.total_tokens > 0);
  const input = [...compacted.output, { role: "user", content: "Who am I?" }];
  const response = await client.responses.create({ model: "demo", input });
  assert.match(response.output_text, /Who am I\?/);
});

test("compact needs a model", async () => {
  await assert.rejects(client.responses.compact({ input: "x" }), { status: 400, param: "model" });
});

test("a context that has grown is compacted in the stream", async () => {
  const input = [{ role: "user", content: "Much ado about nothing. ".repeat(400) }, ...history];
  const context_management = [{ type: "compaction", compact_threshold: 1000 }];
  const done = [];
  for await (const event of await client.responses.create({ model: "demo", input, context_management, stream: true })) {
    if (event.type === "response.output_item.done") done.push(event.item.type);
  }
  assert.deepEqual(done, ["compaction", "message"]);
});
