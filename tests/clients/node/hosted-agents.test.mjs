// The hosted tools of the Agents SDK for JavaScript, run by godex.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, hostedMcpTool, OpenAIResponsesModel, Runner, setTracingDisabled, webSearchTool } from "@openai/agents";
import OpenAI from "openai";

import { ADD, CITED, DELETE, MODEL, NORTH, roles, SEARCHED, SHOW, steps, toolTexts, URL } from "./hosted.mjs";

// Traces would go to OpenAI.
setTracingDisabled(true);

const client = new OpenAI({ baseURL: `${process.env.GODEX_URL}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });
const runner = new Runner({ tracingDisabled: true });
const agent = (tools, more = {}) => new Agent({ name: "Tester", model: new OpenAIResponsesModel(client, MODEL), tools, ...more });
const server = (more = {}) => hostedMcpTool({ serverLabel: "tools", serverUrl: URL, ...more });

// Both ways to run an agent, by name.
const ways = {
  whole: (...asked) => runner.run(...asked),
  streamed: async (asked, input, options) => {
    const result = await runner.run(asked, input, { ...options, stream: true });
    for await (const _ of result);
    await result.completed;
    return result;
  },
};

function forEachWay(name, body) {
  for (const [way, run] of Object.entries(ways)) test(`${name}, ${way}`, () => body(run));
}

const names = (result) => result.newItems.map((item) => item.rawItem.name ?? item.rawItem.type);

forEachWay("a tool of a server", async (run) => {
  const tester = agent([server()]);
  const first = await run(tester, ADD);
  assert.equal(first.finalOutput, "The sum is 42.");
  // The items go back as they came, or are found.
  const again = [...first.history, { role: "user", content: steps(SHOW) }];
  for (const second of [await run(tester, again), await run(tester, steps(SHOW), { previousResponseId: first.lastResponseId })]) {
    assert.deepEqual(roles(second.finalOutput), ["user", "assistant", "tool", "assistant", "user"]);
    assert.deepEqual(toolTexts(second.finalOutput), ["42"]);
  }
});

for (const approve of [true, false]) {
  forEachWay(`a callback that says ${approve}`, async (run) => {
    const asked = [];
    const onApproval = async (_context, item) => {
      asked.push(item.rawItem.providerData.arguments);
      return approve ? { approve } : { approve, reason: "too dangerous" };
    };
    const result = await run(agent([server({ requireApproval: "always", onApproval })]), DELETE);
    assert.deepEqual(asked, ['{"path":"/etc/hosts"}']);
    assert.match(result.finalOutput, approve ? /deleted \/etc\/hosts/ : /too dangerous/);
  });

  for (const [name, options] of Object.entries({ history: {}, chain: { conversation: true } })) {
    forEachWay(`somebody who is asked says ${approve}, ${name}`, async (run) => {
      const tester = agent([server({ requireApproval: { never: { toolNames: ["add"] } } })]);
      const conversationId = options.conversation ? (await client.conversations.create()).id : undefined;
      let result = await run(tester, DELETE, { conversationId });
      const [interruption] = result.interruptions;
      assert.equal(result.interruptions.length, 1);
      if (approve) result.state.approve(interruption);
      else result.state.reject(interruption);
      result = await run(tester, result.state, { conversationId });
      assert.equal(/deleted \/etc\/hosts/.test(result.finalOutput), approve);
    });
  }
}

forEachWay("a search", async (run) => {
  const tester = agent([webSearchTool({ searchContextSize: "low", filters: { allowedDomains: ["foxes.example"] } })]);
  const first = await run(tester, SEARCHED);
  assert.equal(first.finalOutput, CITED);
  assert.ok(names(first).includes("web_search_call"), names(first).join());
  const message = first.newItems.at(-1).rawItem.content[0];
  const annotations = message.providerData?.annotations ?? message.annotations;
  assert.deepEqual(annotations.map((cited) => cited.url), [NORTH]);
  const second = await run(tester, [...first.history, { role: "user", content: steps(SHOW) }]);
  assert.ok(roles(second.finalOutput).includes("tool"));
});
