// Webhooks of background responses, verified by the official Node client.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.env.GODEX_URL}/v1`,
  apiKey: "unused",
  maxRetries: 0,
  timeout: 30_000,
  webhookSecret: process.env.GODEX_WEBHOOK_SECRET,
});

const received = [];
const server = createServer(async (request, response) => {
  const chunks = await request.setEncoding("utf8").toArray();
  received.push({ body: chunks.join(""), headers: request.headers });
  response.writeHead(204).end();
  server.emit("received");
}).listen(Number(process.env.GODEX_WEBHOOK_PORT), "127.0.0.1");
after(() => server.close());

// The one about this response: other tests' responses end as well.
async function about(id) {
  for (;;) {
    const found = received.find(({ body }) => body.includes(id));
    if (found) return found;
    await once(server, "received", { signal: AbortSignal.timeout(30_000) });
  }
}

test("an end is told and verified", async () => {
  const { id } = await client.responses.create({ model: "demo", input: "echo done", background: true });
  const { body, headers } = await about(id);
  const event = await client.webhooks.unwrap(body, headers);
  assert.deepEqual([event.type, event.data.id, event.object], ["response.completed", id, "event"]);
  assert.equal((await client.responses.retrieve(event.data.id)).output_text, "done");
  for (const changed of [body.replace("completed", "cancelled"), `${body} `]) {
    await assert.rejects(client.webhooks.unwrap(changed, headers), OpenAI.InvalidWebhookSignatureError);
  }
});

test("a cancelled one is told", async () => {
  const { id } = await client.responses.create({ model: "demo", input: "slow 10000", background: true });
  assert.equal((await client.responses.cancel(id)).status, "cancelled");
  const { body, headers } = await about(id);
  const event = await client.webhooks.unwrap(body, headers);
  assert.deepEqual([event.type, event.data.id], ["response.cancelled", id]);
});
