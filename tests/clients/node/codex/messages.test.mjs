// Codex with a provider that speaks Messages: a file is made, patched and read back in each form, several calls at once,
// a session that is resumed; and what the model thought comes back under its signature.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DONE, PATCHED, TASK, works } from "./forms.mjs";
import { assertMessagePrefixes } from "./messages.mjs";
import { NEWEST, scenario, VERSIONS } from "./scenario.mjs";
import { call, say, think } from "./upstream.mjs";

const WIRE = { spec: "messages-compatible", root: "", settings: "credentials: {api_key: unused}" };

// How many thoughts a request brings back; that they are valid the provider sees to.
const thoughts = ({ body }) => body.messages.flatMap((message) => message.content).filter((block) => block.type === "thinking").length;

describe("over Messages", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    const sol = version === NEWEST ? "gpt-6.1-sol" : "gpt-5.6-sol";
    for (const model of ["some-model", "gpt-5.5", sol]) {
      test(`codex ${version.name}, ${model}: a file is made, patched and read`, () =>
        scenario({ ...WIRE, version, model, script: works }, async ({ task, file, upstream }) => {
          const { code, messages } = await task(TASK);
          assert.equal(code, 0);
          assert.equal(messages.at(-1), DONE);
          assert.equal(await file("notes.txt"), PATCHED);
          assert.deepEqual(upstream.requests.map(thoughts), [0, 1, 2, 3]);
          assertMessagePrefixes(upstream.requests);
        }));
    }

    test(`codex ${version.name}: several calls at once`, () => {
      const run = (request, number) => call(request.tool(/^exec_command$/), { cmd: `echo number-$((${number} * 11))` });
      const script = (request) =>
        request.results.length === 0 ? [1, 2, 3].map((number) => run(request, number)) : say(request.results.map((result) => result.match(/number-\d+/)).join());
      return scenario({ ...WIRE, version, script }, async ({ task, upstream }) => {
        const { code, messages } = await task("Count.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), "number-11,number-22,number-33");
        assertMessagePrefixes(upstream.requests);
      });
    });

    test(`codex ${version.name}: a session is resumed`, () => {
      const script = (request) => [think("Hm."), say(`I have read ${request.texts.filter((text) => /fox/.test(text)).length}.`)];
      return scenario({ ...WIRE, version, script }, async ({ task, codex, upstream }) => {
        const { code, thread } = await task("Remember the fox.");
        assert.equal(code, 0);
        const options = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
        const again = await codex("resume", ...options, thread, "And the other fox.");
        assert.deepEqual([again.code, again.messages], [0, ["I have read 2."]]);
        assert.deepEqual(upstream.requests.map(thoughts), [0, 1]);
        assertMessagePrefixes(upstream.requests);
      });
    });
  }
});
