// LangChain's ChatOpenAI for JavaScript with tools that godex runs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HumanMessage } from "@langchain/core/messages";
import { ChatOpenAI, tools as openaiTools } from "@langchain/openai";

import { ADD, CITED, DELETE, kinds, MODEL, NORTH, roles, SEARCHED, SHOW, steps, toolTexts, URL } from "./hosted.mjs";

const chat = (tools) =>
  new ChatOpenAI({
    model: MODEL,
    apiKey: "unused",
    useResponsesApi: true,
    maxRetries: 0,
    timeout: 30_000,
    configuration: { baseURL: `${process.env.GODEX_URL}/v1` },
  }).bindTools(tools);

const server = (require_approval) => ({ type: "mcp", server_label: "tools", server_url: URL, require_approval });

// Both ways to ask, by name.
const ways = {
  whole: (model, messages, options) => model.invoke(messages, options),
  streamed: async (model, messages, options) => {
    let whole;
    for await (const chunk of await model.stream(messages, options)) whole = whole ? whole.concat(chunk) : chunk;
    return whole;
  },
};

function forEachWay(name, body) {
  for (const [way, ask] of Object.entries(ways)) test(`${name}, ${way}`, () => body(ask));
}

const outputs = (message) => message.additional_kwargs.tool_outputs ?? [];

forEachWay("a tool of a server", async (ask) => {
  const model = chat([server("never")]);
  const messages = [new HumanMessage(ADD)];
  const first = await ask(model, messages);
  assert.equal(first.text, "The sum is 42.");
  assert.deepEqual(kinds(outputs(first)), ["mcp_list_tools", "mcp_call"]);
  assert.equal(outputs(first)[1].output, "42");
  const more = new HumanMessage(steps(SHOW));
  const second = await ask(model, [...messages, first, more]);
  assert.ok(toolTexts(second.text).includes("42"), second.text);
  const third = await ask(model, [more], { previous_response_id: first.response_metadata.id });
  assert.deepEqual(roles(third.text), ["user", "assistant", "tool", "assistant", "user"]);
});

forEachWay("an approval", async (ask) => {
  const model = chat([server("always")]);
  const first = await ask(model, [new HumanMessage(DELETE)]);
  const request = outputs(first).find((item) => item.type === "mcp_approval_request");
  assert.deepEqual([request.name, request.arguments], ["delete", '{"path":"/etc/hosts"}']);
  const answer = { type: "mcp_approval_response", approval_request_id: request.id, approve: true };
  const second = await ask(model, [new HumanMessage({ content: [answer] })], { previous_response_id: first.response_metadata.id });
  assert.equal(second.text, "It says: deleted /etc/hosts");
});

forEachWay("a search", async (ask) => {
  const model = chat([openaiTools.webSearch({ search_context_size: "low" })]);
  const messages = [new HumanMessage(SEARCHED)];
  const first = await ask(model, messages);
  assert.equal(first.text, CITED);
  assert.deepEqual(kinds(outputs(first)), ["web_search_call"]);
  const [block] = first.content.filter((part) => part.type === "text");
  assert.equal(block.annotations[0].url, NORTH);
  const second = await ask(model, [...messages, first, new HumanMessage(steps(SHOW))]);
  assert.ok(second.text.includes(NORTH));
});
