// Sub-agents: an agent is started, gets a message while it works or after, is waited for, and its result comes back.
// Codex has two families of tools for that; the model's name decides.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { byId, byName, TOLD } from "./delegation.mjs";
import { NEWEST, scenario, VERSIONS } from "./scenario.mjs";
import { call, say } from "./upstream.mjs";

// What a reviewer must answer, as Codex asks for it.
const REVIEW = JSON.stringify({
  findings: [{ title: "A greeting is missing", body: "Nobody is greeted.", confidence_score: 0.9, priority: 1, code_location: { absolute_file_path: "/notes.txt", line_range: { start: 1, end: 1 } } }],
  overall_correctness: "patch is incorrect",
  overall_explanation: "It does not greet.",
  overall_confidence_score: 0.5,
});

describe("sub-agents", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    test(`codex ${version.name}, by id: started, waited for, asked again, closed`, () =>
      scenario({ version, script: byId }, async ({ task, upstream }) => {
        const { code, messages } = await task("Let somebody find the password.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), TOLD);
        // Both turns of the agent, and six of the one that started it.
        assert.equal(upstream.requests.length, 8);
      }));

    test(`codex ${version.name}: a review`, () => {
      const script = (request) => (request.results.length === 0 ? call(request.tool(/^exec_command$/), { cmd: "git diff --cached" }) : say(REVIEW));
      return scenario({ version, script }, async ({ codex, folder, upstream }) => {
        const git = (...args) => promisify(execFile)("git", args, { cwd: folder });
        await git("init", "--quiet");
        await writeFile(join(folder, "notes.txt"), "no greeting\n");
        await git("add", "notes.txt");
        const { code, messages } = await codex("review", "--json", "--uncommitted", "--dangerously-bypass-approvals-and-sandbox");
        assert.equal(code, 0);
        assert.match(messages.at(-1), /It does not greet\.[^]*A greeting is missing/);
        assert.match(upstream.requests[1].results[0], /\+no greeting/);
      });
    });

    for (const fork of ["none", "all"]) {
      const model = version === NEWEST ? "gpt-6.1-sol" : "gpt-5.6-sol";
      test(`codex ${version.name}, by name, with ${fork} of the history: started, waited for, asked again`, () =>
        scenario({ version, model, script: byName(fork) }, async ({ task }) => {
          const { code, messages } = await task("Let somebody find the password.");
          assert.equal(code, 0);
          assert.equal(messages.at(-1), TOLD);
        }));
    }
  }
});
