// A file is made by shell, patched and read back, with each of the forms in which Codex offers that to a model: the
// model's name decides.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assertPrefixes, NEWEST, requests, scenario, VERSIONS } from "./scenario.mjs";
import { call, say, think } from "./upstream.mjs";

const PATCH = `*** Begin Patch
*** Update File: notes.txt
@@
 first
-second
+second, "patched" with a \\ backslash
 third
*** End Patch
`;
const PATCHED = 'first\nsecond, "patched" with a \\ backslash\nthird\n';
const MAKE = "printf 'first\\nsecond\\nthird\\n' > notes.txt && ls";

// Each form as the tools that the model is offered, and its four steps.
const FORMS = {
  "some-model": {
    offered: ["exec_command", "write_stdin", "view_image", "multi_agent_v1__spawn_agent"],
    make: (request) => call(request.tool(/^exec_command$/), { cmd: MAKE }),
    patch: (request) => call(request.tool(/^exec_command$/), { cmd: `apply_patch <<'EOF'\n${PATCH}EOF\n` }),
    read: (request) => call(request.tool(/^exec_command$/), { cmd: "cat notes.txt" }),
  },
  "gpt-5.5": {
    offered: ["exec_command", "apply_patch", "tool_search"],
    make: (request) => call(request.tool(/^exec_command$/), { cmd: MAKE }),
    patch: (request) => call(request.tool(/^apply_patch$/), { input: PATCH }),
    read: (request) => call(request.tool(/^exec_command$/), { cmd: "cat notes.txt" }),
  },
  "gpt-6.1-sol": {
    // The older version does not know this name, but models of that kind.
    olderName: "gpt-5.6-sol",
    offered: ["exec", "wait", "collaboration__spawn_agent"],
    make: (request) => call(request.tool(/(^|__)exec$/), { input: `text(await tools.exec_command({cmd: ${JSON.stringify(MAKE)}}));` }),
    patch: (request) => call(request.tool(/(^|__)exec$/), { input: `text(await tools.apply_patch(${JSON.stringify(PATCH)}));` }),
    read: (request) => call(request.tool(/(^|__)exec$/), { input: 'text(await tools.exec_command({cmd: "cat notes.txt"}));' }),
  },
};

const steps = (form) => (request) => {
  const next = [form.make, form.patch, form.read][request.results.length];
  if (next !== undefined) return [think("I know what is next."), say("Now this."), next(request)];
  // The model can know it only from what it was sent.
  const { length, [length - 1]: last } = request.results;
  return say(/second, .*patched/.test(last) ? "The file says second, patched." : `I do not see it: ${last}`);
};

async function worksOn(version, model, form, websocket) {
  const provider = `supports_websockets = ${websocket}`;
  await scenario({ version, model, provider, script: steps(form) }, async ({ task, file, upstream, log }) => {
    const { code, messages, stderr } = await task("Make the notes, patch them, and read them back.");
    assert.equal(code, 0, stderr);
    assert.equal(messages.at(-1), "The file says second, patched.");
    assert.equal(await file("notes.txt"), PATCHED);
    assert.equal(upstream.requests.length, 4);
    assertPrefixes(upstream.requests);
    assert.equal(requests(log()).some((request) => request.status === 101), websocket);
    const offered = upstream.requests[0].body.tools.map((tool) => tool.function.name);
    for (const name of form.offered) assert.ok(offered.some((given) => given === name || given.endsWith(`__${name}`)), `${name} is not among ${offered}`);
  });
}

describe("a file is made, patched and read", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    for (const [name, form] of Object.entries(FORMS)) {
      const model = version === NEWEST ? name : (form.olderName ?? name);
      test(`codex ${version.name}, ${model}`, () => worksOn(version, model, form, false));
      test(`codex ${version.name}, ${model}, WebSocket`, () => worksOn(version, model, form, true));
    }
  }
});

test("both versions of the CLI are here", { skip: `${process.platform} ${process.arch}` !== "linux x64" && "the lock has the older one only for Linux on x64" }, () => {
  assert.equal(VERSIONS.length, 2);
});
