// The app server, which editors use: JSON-RPC over stdio, a thread with two turns, a tool and what is shown meanwhile.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { assertPrefixes, scenario, VERSIONS } from "./scenario.mjs";
import { call, say, think } from "./upstream.mjs";

// Sends requests to a codex, and gives what it answers and notifies of.
function client(child) {
  const waiting = new Map();
  const notified = [];
  const listeners = new Set();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    if (message.method === undefined) waiting.get(message.id)?.(message);
    else {
      notified.push(message);
      for (const listener of listeners) listener();
    }
  });
  let ids = 0;
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const request = async (method, params) => {
    const id = ++ids;
    send({ id, method, params });
    const answer = await new Promise((resolve) => waiting.set(id, resolve));
    assert.equal(answer.error, undefined, `${method}: ${JSON.stringify(answer.error)}`);
    return answer.result;
  };
  // The first notification after the others that fits.
  const until = (fits, from) => new Promise((resolve) => {
    const look = () => {
      const found = notified.slice(from).find(fits);
      if (found === undefined) return;
      listeners.delete(look);
      resolve(found);
    };
    listeners.add(look);
    look();
  });
  return { request, send, until, notified };
}

describe("the app server", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    test(`codex ${version.name}`, { timeout: 60_000 }, () => {
      const script = (request) => {
        const asked = request.texts.filter((text) => text.startsWith("Please")).length;
        if (request.results.length < asked) return [think("A tool."), call(request.tool(/^exec_command$/), { cmd: `echo turn-$((${asked} + 40))` })];
        return [say("It printed "), say(request.results.at(-1).match(/turn-\d+/)?.[0] ?? "nothing")];
      };
      return scenario({ version, script }, async ({ start, folder, upstream }) => {
        const { request, send, until, notified } = client(start("app-server"));
        await request("initialize", { clientInfo: { name: "test", title: "Test", version: "1.0.0" } });
        send({ method: "initialized" });
        const { thread } = await request("thread/start", { cwd: folder, approvalPolicy: "never", sandbox: "danger-full-access" });
        for (const number of [41, 42]) {
          const from = notified.length;
          await request("turn/start", { threadId: thread.id, input: [{ type: "text", text: `Please run it, ${number}.` }] });
          const { params } = await until((message) => message.method === "turn/completed", from);
          assert.equal(params.turn.status, "completed", JSON.stringify(params));
          const shown = notified.slice(from).filter((message) => message.method === "item/agentMessage/delta").map((message) => message.params.delta);
          assert.deepEqual(shown, ["It printed ", `turn-${number}`]);
        }
        assert.equal(upstream.requests.length, 4);
        assertPrefixes(upstream.requests);
      });
    });
  }
});
