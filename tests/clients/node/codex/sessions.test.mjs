// Sessions: continued in another process, and longer than the model's window.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { assertPrefixes, NEWEST, scenario, VERSIONS } from "./scenario.mjs";
import { call, say, think } from "./upstream.mjs";

const FACT = "the fox is called Reinhold";
const SUMMARY = `So far: ${FACT}.`;

const remembers = (request) => request.texts.some((text) => text.includes(FACT));

describe("sessions", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    test(`codex ${version.name}: a session is resumed, as the last one and by its id`, () => {
      const script = (request) => [think("Hm."), say(remembers(request) ? `I know, ${FACT}.` : "What fox?")];
      return scenario({ version, script }, async ({ task, codex, upstream }) => {
        const { code, thread, messages } = await task(`Remember that ${FACT}.`);
        assert.deepEqual([code, messages], [0, [`I know, ${FACT}.`]]);
        const options = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
        for (const which of ["--last", thread]) {
          const again = await codex("resume", ...options, which, "What is it called?");
          assert.deepEqual([again.code, again.thread, again.messages], [0, thread, [`I know, ${FACT}.`]]);
        }
        assert.equal(upstream.requests.length, 3);
        assertPrefixes(upstream.requests);
      });
    });

    // Codex asks the model itself for the summary, and puts that in the place of the history.
    test(`codex ${version.name}: Codex compacts`, () => {
      const config = "model_auto_compact_token_limit = 20000";
      return scenario({ version, config, script: compacted }, async ({ task, upstream }) => {
        const { code, messages } = await task(`Remember that ${FACT}, and look around.`);
        assert.equal(code, 0);
        assert.equal(messages.at(-1), `I know, ${FACT}.`);
        const [, asked, after] = upstream.requests;
        assert.match(asked.texts.at(-1), /CONTEXT CHECKPOINT COMPACTION/);
        assert.equal(asked.body.tools, undefined);
        assert.ok(after.texts.some((text) => text.includes(SUMMARY)), "the summary is not in the history");
        assert.equal(after.results.length, 0);
      });
    });
  }

  // godex makes the compaction, and reads it again.
  const compacts = (websocket) => {
    const config = "model_auto_compact_token_limit = 20000";
    const provider = `capabilities = { remote_compaction = "v2" }\nsupports_websockets = ${websocket}`;
    return scenario({ config, provider, script: compacted }, async ({ task, codex, upstream }) => {
      const { code, messages, thread } = await task(`Remember that ${FACT}, and look around.`);
      assert.equal(code, 0);
      assert.equal(messages.at(-1), `I know, ${FACT}.`);
      const [, asked, after] = upstream.requests;
      assert.ok(!/CONTEXT CHECKPOINT COMPACTION/.test(asked.texts.at(-1)), "Codex compacted itself");
      assert.ok(after.texts.some((text) => text.includes(SUMMARY)), "the summary is not in the history");
      // It is in Codex's history now, and means the same in every later turn.
      const options = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
      const again = await codex("resume", ...options, thread, "What is it called?");
      assert.deepEqual([again.code, again.messages], [0, [`I know, ${FACT}.`]]);
      assertPrefixes(upstream.requests.slice(2));
    });
  };
  test(`codex ${NEWEST.name}: godex compacts`, () => compacts(false));
  test(`codex ${NEWEST.name}, WebSocket: godex compacts`, () => compacts(true));
});

// A tool is called; then the context counts as full, and a summary is asked for.
function compacted(request) {
  if (request.number === 1) return [say(SUMMARY), { usage: { prompt_tokens: 21_000, completion_tokens: 20 } }];
  if (request.number === 0) {
    return [call(request.tool(/^exec_command$/), { cmd: "echo around" }), { usage: { prompt_tokens: 25_000, completion_tokens: 20 } }];
  }
  return [say(remembers(request) ? `I know, ${FACT}.` : "What fox?"), { usage: { prompt_tokens: 9_000, completion_tokens: 20 } }];
}
