// A task that needs a sub-agent, for both of the families of tools that Codex has for it: an agent is started, waited
// for, asked again, and both of its answers come back.

import assert from "node:assert/strict";
import { call, contentText, say } from "./upstream.mjs";

const TASK = "Find the password of the day.";
const FOLLOW_UP = "Now spell it backwards.";
const RESULT = "The password of the day is swordfish.";
const SECOND = "Backwards it is hsifdrows.";

export const TOLD = "They said: swordfish and hsifdrows";

// What the sub-agent says: it can know its tasks only from what it is sent.
const child = (request) => say(request.texts.join("\n").includes(FOLLOW_UP) ? SECOND : RESULT);

const users = (request) => request.body.messages.filter((message) => message.role === "user").map(contentText);

// The agent's id, from the result of the call that started it.
const started = (request) => JSON.parse(request.results[0]).agent_id;

// Agents by id, whose tasks are messages of the user and whose answers are results of tools.
export function byId(request) {
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
export const byName = (fork_turns) => (request) => {
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

// With the tools that this request offers.
export const delegates = (request) => {
  const named = request.body.tools?.some((tool) => tool.function.name.endsWith("followup_task"));
  return (named ? byName("none") : byId)(request);
};
