// The app server, which editors use: JSON-RPC over stdio, threads of several turns, and what is shown meanwhile.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { assertPrefixes, scenario, VERSIONS } from "./scenario.mjs";
import { call, refuse, say, think } from "./upstream.mjs";

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

// A thread of a running app server, and how to take a turn in it: gives how that ended, and what was shown of it.
async function opened({ start, folder }) {
  const { request, send, until, notified } = client(start("app-server"));
  await request("initialize", { clientInfo: { name: "test", title: "Test", version: "1.0.0" } });
  send({ method: "initialized" });
  const { thread } = await request("thread/start", { cwd: folder, approvalPolicy: "never", sandbox: "danger-full-access" });
  return async (text) => {
    const from = notified.length;
    await request("turn/start", { threadId: thread.id, input: [{ type: "text", text }] });
    const { params } = await until((message) => message.method === "turn/completed", from);
    const deltas = notified.slice(from).filter((message) => message.method === "item/agentMessage/delta");
    return { ...params.turn, shown: deltas.map((message) => message.params.delta) };
  };
}

describe("the app server", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    test(`codex ${version.name}: two turns with a tool`, { timeout: 60_000 }, () => {
      const script = (request) => {
        const asked = request.texts.filter((text) => text.startsWith("Please")).length;
        if (request.results.length < asked) return [think("A tool."), call(request.tool(/^exec_command$/), { cmd: `echo turn-$((${asked} + 40))` })];
        return [say("It printed "), say(request.results.at(-1).match(/turn-\d+/)?.[0] ?? "nothing")];
      };
      return scenario({ version, script }, async (running) => {
        const turn = await opened(running);
        for (const number of [41, 42]) {
          const { status, shown } = await turn(`Please run it, ${number}.`);
          assert.deepEqual([status, shown], ["completed", ["It printed ", `turn-${number}`]]);
        }
        assert.equal(running.upstream.requests.length, 4);
        assertPrefixes(running.upstream.requests);
      });
    });

    // Codex knows then that the context is full, and compacts before the next turn.
    test(`codex ${version.name}: a turn that overflows the context, and the next`, { timeout: 60_000 }, () => {
      const overflow = { message: "This model's maximum context length is 8192 tokens.", type: "invalid_request_error", code: "context_length_exceeded" };
      const summary = "So far: somebody greeted.";
      const script = ({ number, texts }) => {
        if (number === 0) return say("Hello.");
        if (number === 1) return refuse(400, overflow);
        if (/CONTEXT CHECKPOINT COMPACTION/.test(texts.at(-1))) return say(summary);
        return say(texts.some((text) => text.includes(summary)) ? "I have the summary." : "I have no summary.");
      };
      return scenario({ version, script }, async (running) => {
        const turn = await opened(running);
        assert.equal((await turn("Hello.")).status, "completed");
        const failed = await turn("Do something large.");
        assert.equal(failed.status, "failed");
        assert.match(failed.error.message, /ran out of room in the model's context window/);
        const next = await turn("Do something small.");
        assert.deepEqual([next.status, next.shown], ["completed", ["I have the summary."]]);
        assert.equal(running.upstream.requests.length, 4);
      });
    });
  }
});
