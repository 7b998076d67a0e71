// Sub-agents: an agent is started, gets a message while it works or after, is waited for, and its result comes back.
// Codex has two families of tools for that; the model's name decides.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { NEWEST, scenario, VERSIONS } from "./scenario.mjs";
import { call, contentText, say } from "./upstream.mjs";

const TASK = "Find the password of the day.";
const FOLLOW_UP = "Now spell it backwards.";
const RESULT = "The password of the day is swordfish.";
const SECOND = "Backwards it is hsifdrows.";

// What the sub-agent says: it can know its tasks only from what it is sent.
const child = (request) => say(request.texts.join("\n").includes(FOLLOW_UP) ? SECOND : RESULT);

const users = (request) => request.body.messages.filter((message) => message.role === "user").map(contentText);

// The agent's id, from the result of the call that started it.
const started = (request) => JSON.parse(request.results[0]).agent_id;

// Agents by id, whose tasks are messages of the user and whose answers are results of tools.
function first(request) {
  if (users(request).includes(TASK)) return child(request);
  switch (request.results.length) {
    case 0:
      return call(request.tool(/spawn_agent$/), { message: TASK });
    case 1:
      return call(request.tool(/wait_agent$/), { targets: [started(request)], timeout_ms: 60_000 });
    case 2:
      assert.ok(request.results[1].includes(RESULT), request.results[1]);
      return call(request.tool(/send_input$/), { target: started(request), message: FOLLOW_UP });
    case 3:
      return call(request.tool(/wait_agent$/), { targets: [started(request)], timeout_ms: 60_000 });
    case 4:
      return call(request.tool(/close_agent$/), { target: started(request) });
    default:
      return say(`They said: ${request.results[1].match(/swordfish/)} and ${request.results[3].match(/hsifdrows/)}`);
  }
}

// Agents by name, whose tasks and answers are items of their own in the history.
const second = (fork_turns) => (request) => {
  const told = users(request).filter((text) => text.includes("Payload:"));
  if (told.some((text) => text.includes("Task name: /root/finder") && text.includes(TASK))) return child(request);
  const heard = (text) => told.some((message) => message.includes("Sender: /root/finder") && message.includes(text));
  // What a waiting agent does next depends on what it has heard: messages come when they come.
  if (heard(SECOND)) return say(`They said: ${told.join().match(/swordfish/)} and ${told.join().match(/hsifdrows/)}`);
  const calls = request.body.messages.flatMap((message) => message.tool_calls ?? []).map((called) => called.function.name);
  const did = (pattern) => calls.some((name) => pattern.test(name));
  if (!did(/spawn_agent$/)) return call(request.tool(/spawn_agent$/), { task_name: "finder", message: TASK, fork_turns });
  if (heard(RESULT) && !did(/followup_task$/)) return call(request.tool(/followup_task$/), { target: "/root/finder", message: FOLLOW_UP });
  if (request.number > 20) throw new Error(`nothing is heard: ${users(request)}`);
  return call(request.tool(/wait_agent$/), { timeout_ms: 60_000 });
};

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
      scenario({ version, script: first }, async ({ task, upstream }) => {
        const { code, messages } = await task("Let somebody find the password.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), "They said: swordfish and hsifdrows");
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
        scenario({ version, model, script: second(fork) }, async ({ task }) => {
          const { code, messages } = await task("Let somebody find the password.");
          assert.equal(code, 0);
          assert.equal(messages.at(-1), "They said: swordfish and hsifdrows");
        }));
    }
  }
});
