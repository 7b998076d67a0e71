// A file is made by shell, patched and read back, in each of the forms in which Codex offers that to a model: the
// model's name decides.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DONE, offeredForm, PATCHED, TASK, works } from "./forms.mjs";
import { assertPrefixes, NEWEST, requests, scenario, VERSIONS } from "./scenario.mjs";

// What the model must be offered beside it.
const MODELS = [
  { model: "some-model", form: "shell", offered: ["write_stdin", "view_image", "multi_agent_v1__spawn_agent"] },
  { model: "gpt-5.5", form: "freeform", offered: ["write_stdin", "view_image", "tool_search"] },
  // The older version does not know this name, but models of that kind.
  { model: "gpt-6.1-sol", older: "gpt-5.6-sol", form: "code", offered: ["wait", "collaboration__spawn_agent"] },
];

async function worksOn({ version, model, form, offered, websocket }) {
  const provider = `supports_websockets = ${websocket}`;
  await scenario({ version, model, provider, script: works }, async ({ task, file, upstream, log }) => {
    const { code, messages } = await task(TASK);
    assert.equal(code, 0);
    assert.equal(messages.at(-1), DONE);
    assert.equal(await file("notes.txt"), PATCHED);
    assert.equal(upstream.requests.length, 4);
    assertPrefixes(upstream.requests);
    assert.equal(requests(log()).some((request) => request.status === 101), websocket);
    assert.equal(offeredForm(upstream.requests[0]), form);
    const names = upstream.requests[0].body.tools.map((tool) => tool.function.name);
    assert.deepEqual(offered.filter((name) => !names.includes(name)), [], `missing among ${names}`);
  });
}

describe("a file is made, patched and read", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    for (const row of MODELS) {
      const model = version === NEWEST ? row.model : (row.older ?? row.model);
      for (const websocket of [false, true]) {
        test(`codex ${version.name}, ${model}${websocket ? ", WebSocket" : ""}`, () => worksOn({ ...row, version, model, websocket }));
      }
    }
  }
});

// A provider that refuses a history without what the model thought before its calls.
test("thoughts come back", async () => {
  const script = (request) => {
    const calling = request.body.messages.filter((message) => message.tool_calls !== undefined);
    for (const message of calling) assert.equal(message.reasoning_content, "I know what is next.");
    return works(request);
  };
  const knows = { request: ["thinking"], assistant: ["reasoning_content"] };
  const config = 'model_reasoning_effort = "high"';
  const settings = "credentials: {api_key: unused}";
  await scenario({ spec: "deepseek", model: "deepseek-v4-pro", settings, knows, config, script }, async ({ task, file, upstream }) => {
    const { code, messages } = await task(TASK);
    assert.equal(code, 0);
    assert.equal(messages.at(-1), DONE);
    assert.equal(await file("notes.txt"), PATCHED);
    assertPrefixes(upstream.requests);
  });
});

const here = `${process.platform} ${process.arch}`;
test("both versions of the CLI are here", { skip: here !== "linux x64" && `the lock has the older one only for Linux on x64, not for ${here}` }, () => {
  assert.equal(VERSIONS.length, 2);
});
