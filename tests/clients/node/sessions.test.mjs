// Sessions with the official Node client: chains, stored responses, conversations. The scripted provider remembers
// nothing and answers with what it was sent, so each test sees which history arrived.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

import { history, providerGotARoundTrip } from "./mirror.mjs";

// No retries: a test wants to see the first answer.
const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });

const model = "scripted/history";
const user = (content) => ({ role: "user", content });
const said = (response) => ({ role: "assistant", content: response.output_text });
const alice = user("My name is Alice.");
const who = user("What's my name?");

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", name: "get_weather", parameters, strict: false }];

const whole = (body) => client.responses.create({ model, ...body });

// The three ways to ask, by name.
const ways = {
  whole,
  "raw stream": async (body) => {
    let last;
    for await (const event of await whole({ ...body, stream: true })) last = event;
    assert.equal(last.type, "response.completed");
    const message = last.response.output.findLast((item) => item.type === "message");
    return { ...last.response, output_text: message.content[0].text };
  },
  "stream helper": (body) => client.responses.stream({ model, ...body }).finalResponse(),
};

function forEachWay(name, body) {
  for (const [way, ask] of Object.entries(ways)) test(`${name}, ${way}`, () => body(ask));
}

async function all(pages) {
  const items = [];
  for await (const item of pages) items.push(item);
  return items;
}

const ids = async (pages) => (await all(pages)).map((item) => item.id);

// Refused with this class of error and these fields.
async function refused(promise, kind, expected) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof kind, `${error}`);
    for (const [name, value] of Object.entries(expected)) assert.equal(error[name], value, `${error}`);
    return true;
  });
}

forEachWay("a chain", async (ask) => {
  const first = await ask({ input: alice.content });
  for (const askAgain of Object.values(ways)) {
    const second = await askAgain({ input: who.content, previous_response_id: first.id });
    assert.deepEqual(history(second.output_text), [alice, said(first), who]);
    assert.deepEqual([second.previous_response_id, second.store], [first.id, true]);
  }
});

forEachWay("a tool loop that sends only what is new", async (ask) => {
  const first = await ask({ model: "thinking/mirror", input: "Hi", tools });
  const output = { type: "function_call_output", call_id: first.output.at(-1).call_id, output: "18 degrees in Paris" };
  const body = { model: "thinking/mirror", input: [output], tools, previous_response_id: first.id };
  const { output_text } = await ask(body);
  providerGotARoundTrip(output_text);
  assert.equal(history(output_text).at(-2).reasoning_content, "a tool will know");
});

forEachWay("references to items", async (ask) => {
  const first = await ask({ model: "thinking/mirror", input: "Hi", tools });
  const references = first.output.map(({ id }) => ({ type: "item_reference", id }));
  const output = { type: "function_call_output", call_id: "call_1", output: "18 degrees in Paris" };
  const { output_text } = await ask({ model: "thinking/mirror", input: [user("Hi"), ...references, output], tools });
  providerGotARoundTrip(output_text);
  assert.equal(history(output_text).at(-2).reasoning_content, "a tool will know");
  const unknown = ask({ input: [{ type: "item_reference", id: "msg_unknown" }] });
  await refused(unknown, OpenAI.NotFoundError, { code: null, param: "input" });
});

forEachWay("an unknown previous response", async (ask) => {
  const hidden = await whole({ input: "Hi", store: false });
  assert.equal(hidden.store, false);
  for (const previous_response_id of ["resp_unknown", hidden.id]) {
    const expected = { code: "previous_response_not_found", param: "previous_response_id" };
    await refused(ask({ input: "Hi", previous_response_id }), OpenAI.BadRequestError, expected);
  }
});

test("a response is fetched and deleted", async () => {
  const made = await whole({ input: "Hi", instructions: "Be brief.", tools, metadata: { team: "blue" } });
  assert.deepEqual(await client.responses.retrieve(made.id, { include: ["reasoning.encrypted_content"] }), made);
  await refused(client.responses.cancel(made.id), OpenAI.BadRequestError, {
    message: "400 Cannot cancel a synchronous response.",
  });
  const next = await whole({ input: "Hi", previous_response_id: made.id });
  await client.responses.delete(made.id);
  for (const gone of [
    () => client.responses.retrieve(made.id),
    () => client.responses.delete(made.id),
    () => client.responses.cancel(made.id),
    () => client.responses.inputItems.list(made.id),
  ]) {
    await refused(gone, OpenAI.NotFoundError, { code: null });
  }
  // What continued it is still there, and cannot be continued: that would be a shorter history.
  assert.deepEqual(await client.responses.retrieve(next.id), next);
  const hole = whole({ input: "Hi", previous_response_id: next.id });
  await refused(hole, OpenAI.BadRequestError, { code: "previous_response_not_found" });
});

test("input items page by page", async () => {
  const given = Array.from({ length: 9 }, (_, n) => `number ${n}`);
  const first = await whole({ input: given.map(user) });
  const second = await whole({ input: "last", previous_response_id: first.id });
  const expected = [...given, first.output_text, "last"];
  for (const limit of [1, 4, 5, 100]) {
    for (const [order, texts] of [["asc", expected], ["desc", expected.toReversed()]]) {
      const items = await all(client.responses.inputItems.list(second.id, { order, limit }));
      assert.deepEqual(items.map((item) => item.content[0].text), texts);
    }
  }
  const listed = await ids(client.responses.inputItems.list(second.id, { order: "asc" }));
  const after = client.responses.inputItems.list(second.id, { order: "asc", after: listed[2], limit: 3 });
  assert.deepEqual(await ids(after), listed.slice(3));
  const nowhere = client.responses.inputItems.list(second.id, { after: "msg_unknown" });
  await refused(nowhere, OpenAI.BadRequestError, { param: "after" });
});

test("conversations", async () => {
  const { conversations } = client;
  const made = await conversations.create({ metadata: { topic: "foxes" }, items: [{ type: "message", ...alice }] });
  assert.match(made.id, /^conv_/);
  assert.deepEqual(await conversations.retrieve(made.id), made);
  const changed = await conversations.update(made.id, { metadata: { topic: "bears" } });
  assert.deepEqual(changed, { ...made, metadata: { topic: "bears" } });
  assert.deepEqual(await conversations.retrieve(made.id), changed);
  assert.deepEqual({ ...(await conversations.delete(made.id)) }, { id: made.id, object: "conversation.deleted", deleted: true });
  for (const gone of [
    () => conversations.retrieve(made.id),
    () => conversations.update(made.id, { metadata: {} }),
    () => conversations.delete(made.id),
    () => conversations.items.list(made.id),
    () => conversations.items.create(made.id, { items: [alice] }),
    () => whole({ input: "Hi", conversation: made.id }),
  ]) {
    await refused(gone, OpenAI.NotFoundError, { code: null });
  }
});

test("items of a conversation", async () => {
  const conversation_id = (await client.conversations.create()).id;
  const { items } = client.conversations;
  const given = Array.from({ length: 50 }, (_, n) => ({ type: "message", ...user(`number ${n}`) }));
  const added = [];
  for (let start = 0; start < 50; start += 20) {
    added.push(...(await items.create(conversation_id, { items: given.slice(start, start + 20) })).data);
  }
  const expected = added.map((item) => item.id);
  assert.equal(new Set(expected).size, 50);
  for (const limit of [7, 20, 50]) {
    assert.deepEqual(await ids(items.list(conversation_id, { order: "asc", limit })), expected);
    assert.deepEqual(await ids(items.list(conversation_id, { limit })), expected.toReversed());
  }
  assert.deepEqual(await items.retrieve(expected[2], { conversation_id }), added[2]);
  assert.equal((await items.delete(expected[2], { conversation_id })).id, conversation_id);
  for (const method of ["retrieve", "delete"]) {
    const gone = items[method](expected[2], { conversation_id });
    await refused(gone, OpenAI.NotFoundError, { code: null });
  }
  assert.deepEqual(await ids(items.list(conversation_id, { order: "asc" })), expected.toSpliced(2, 1));
  const tooMany = items.create(conversation_id, { items: given.slice(0, 21) });
  await refused(tooMany, OpenAI.BadRequestError, { param: "items" });
});

forEachWay("turns in a conversation", async (ask) => {
  const { id } = await client.conversations.create({ items: [alice] });
  const listed = () => all(client.conversations.items.list(id, { order: "asc", limit: 2 }));
  const first = await ask({ input: who.content, conversation: id });
  assert.deepEqual(history(first.output_text), [alice, who]);
  assert.equal(first.conversation.id, id);
  const second = await ask({ input: "Sure?", conversation: { id } });
  const past = [alice, who, said(first), user("Sure?")];
  assert.deepEqual(history(second.output_text), past);
  const items = await listed();
  assert.deepEqual(items.map((item) => item.role), ["user", "user", "assistant", "user", "assistant"]);
  assert.deepEqual([items[2].id, items[4].id], [first.output[0].id, second.output[0].id]);
  // Read, and left as it is.
  const hidden = await ask({ input: "Really?", conversation: id, store: false });
  assert.deepEqual(history(hidden.output_text), [...past, said(second), user("Really?")]);
  assert.deepEqual(await listed(), items);
  const both = ask({ input: "Hi", conversation: id, previous_response_id: first.id });
  await refused(both, OpenAI.BadRequestError, { code: "mutually_exclusive_parameters" });
});

test("a conversation is locked while a turn runs", async () => {
  const { id } = await client.conversations.create();
  const running = await whole({ model: "demo", input: "slow 100", conversation: id, stream: true });
  for await (const event of running) {
    assert.equal(event.type, "response.created");
    const locked = { code: "conversation_locked", param: "conversation" };
    await refused(whole({ input: "Hi", conversation: id }), OpenAI.BadRequestError, locked);
    await refused(client.conversations.items.create(id, { items: [alice] }), OpenAI.BadRequestError, locked);
    break;
  }
});
