// Tools that godex runs, as a program written with the official Node client sees them.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

import { ADD, call, CITED, DELETE, kinds, MODEL, NORTH, roles, say, SEARCHED, SHOW, SOUTH, steps, toolTexts, URL } from "./hosted.mjs";

// No retries: a test wants to see the first answer.
const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });

const server = (require_approval) => ({ type: "mcp", server_label: "tools", server_url: URL, require_approval });

// The ways to ask, by name.
const ways = {
  whole: (request) => client.responses.create({ model: MODEL, ...request }),
  streamed: async (request) => {
    const events = [];
    for await (const event of await client.responses.create({ model: MODEL, stream: true, ...request })) events.push(event);
    assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, index) => index));
    const { response } = events.at(-1);
    const done = events.filter((event) => event.type === "response.output_item.done");
    assert.deepEqual(done.map((event) => event.output_index), done.map((_, index) => index));
    assert.deepEqual(done.map((event) => event.item), response.output);
    return response;
  },
  // It puts the response together from the events, and fails where one does not fit.
  helper: async (request) => {
    const stream = client.responses.stream({ model: MODEL, ...request });
    for await (const _ of stream);
    return stream.finalResponse();
  },
};

function forEachWay(name, body) {
  for (const [way, ask] of Object.entries(ways)) test(`${name}, ${way}`, () => body(ask));
}

const textOf = (response) => response.output.at(-1).content[0].text;

forEachWay("a tool of a server", async (ask) => {
  const tools = [server("never")];
  const first = await ask({ input: ADD, tools });
  assert.deepEqual(kinds(first.output), ["mcp_list_tools", "mcp_call", "message"]);
  const { server_label, name, arguments: given, output, status } = first.output[1];
  assert.deepEqual([server_label, name, given, output, status], ["tools", "add", '{"a":20,"b":22}', "42", "completed"]);
  assert.equal(textOf(first), "The sum is 42.");
  assert.equal(first.usage.total_tokens, 24);
  const stored = await client.responses.retrieve(first.id);
  assert.deepEqual(stored.output.slice(0, 2), first.output.slice(0, 2));

  const second = await ask({ input: steps(SHOW), tools, previous_response_id: first.id });
  assert.deepEqual(kinds(second.output), ["message"]);
  assert.deepEqual(roles(textOf(second)), ["user", "assistant", "tool", "assistant", "user"]);
  assert.deepEqual(toolTexts(textOf(second)), ["42"]);
});

forEachWay("an approval", async (ask) => {
  const tools = [server("always")];
  const first = await ask({ input: DELETE, tools });
  assert.deepEqual(kinds(first.output), ["mcp_list_tools", "mcp_approval_request"]);
  assert.equal(first.status, "completed");
  const answer = { type: "mcp_approval_response", approval_request_id: first.output[1].id, approve: true };
  const second = await ask({ input: [answer], tools, previous_response_id: first.id });
  assert.deepEqual(kinds(second.output), ["mcp_call", "message"]);
  assert.equal(second.output[0].approval_request_id, first.output[1].id);
  assert.equal(textOf(second), "It says: deleted /etc/hosts");
});

forEachWay("an approval that is not given, in a history of the client's own", async (ask) => {
  const tools = [server("always")];
  const first = await ask({ input: DELETE, tools, store: false });
  const answer = { type: "mcp_approval_response", approval_request_id: first.output[1].id, approve: false, reason: "too dangerous" };
  const second = await ask({ input: [{ role: "user", content: DELETE }, ...first.output, answer], tools, store: false });
  assert.deepEqual(kinds(second.output), ["message"]);
  assert.match(textOf(second), /too dangerous/);
});

forEachWay("a search", async (ask) => {
  const request = { input: SEARCHED, tools: [{ type: "web_search" }] };
  const { output } = await ask({ ...request, include: ["web_search_call.action.sources"] });
  assert.deepEqual(kinds(output), ["web_search_call", "message"]);
  assert.equal(output[0].status, "completed");
  assert.deepEqual(output[0].action.queries, ["foxes"]);
  const urls = output[0].action.sources.map((source) => source.url);
  assert.ok(urls.includes(NORTH) && urls.includes(SOUTH));
  const [{ text, annotations }] = output[1].content;
  assert.equal(text, CITED);
  assert.deepEqual(annotations.map(({ url, start_index, end_index }) => [url, text.slice(start_index, end_index)]), [
    [NORTH, `([foxes.example](${NORTH}))`],
    [SOUTH, `[large ears](${SOUTH})`],
  ]);
  assert.ok(annotations.every((cited) => cited.type === "url_citation" && cited.title.startsWith("Foxes of the")));
  assert.equal((await ask(request)).output[0].action.sources, undefined);
});

forEachWay("a failing tool and a page that may not be opened", async (ask) => {
  const script = steps([call("tools__fail", { message: "no such file" }), call("open_page", { url: "http://127.0.0.1/" })], say("$results"));
  const response = await ask({ input: script, tools: [server("never"), { type: "web_search" }] });
  assert.equal(response.status, "completed");
  const [, failed, opened] = response.output;
  assert.deepEqual([failed.status, failed.error.type, failed.output], ["failed", "mcp_tool_execution_error", null]);
  assert.deepEqual([opened.status, opened.action.type], ["failed", "open_page"]);
  assert.match(textOf(response), /no such file/);
});

test("a server that cannot be listed", async () => {
  const request = { model: MODEL, input: ADD, tools: [{ type: "mcp", server_label: "gone" }] };
  await assert.rejects(client.responses.create(request), (error) => {
    assert.equal(error.status, 424);
    assert.match(error.message, /'gone'/);
    return true;
  });
  const types = [];
  await assert.rejects(async () => {
    for await (const event of client.responses.stream(request)) types.push(event.type);
  }, /'gone'/);
  assert.ok(types.includes("response.mcp_list_tools.failed"), types.join());
});
