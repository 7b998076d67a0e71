// A provider that fails: the task is done all the same, or Codex says why not; and nobody asks more often than it
// can help.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NEWEST, scenario, VERSIONS } from "./scenario.mjs";
import { cut, refuse, say, silence } from "./upstream.mjs";

const error = (message, code = null, type = "server_error") => ({ message, type, code });
const LIMITED = error("Slow down, please.", "rate_limit_exceeded", "requests");
const OVERFLOW = error("This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "context_length_exceeded", "invalid_request_error");
const QUOTA = error("You exceeded your current quota.", "insufficient_quota", "insufficient_quota");
const NO_MODEL = error("The model `some-model` does not exist.", "model_not_found", "invalid_request_error");
const NO_KEY = error("Incorrect API key provided: sk-secret-0123456789abcdef.", "invalid_api_key", "invalid_request_error");
const NO_EFFORT = error("Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model.", "unsupported_value", "invalid_request_error");
const BAD = error("temperature has no business here", null, "invalid_request_error");

// Codex tries a stream again twice, and a refused request once.
const CODEX = "stream_max_retries = 2\nrequest_max_retries = 1";
// godex tries nothing again, and gives no provider a rest.
const ONCE = "resilience: {retries: 0, breaker_failures: 0}\n";
// godex waits no longer than this for a provider.
const IMPATIENT = (which) => `timeouts: {${which}: 1s}`;
// godex has a key, which nobody else may see.
const KEYED = "credentials: {api_key: sk-secret-0123456789abcdef}";

// What the provider does with one request after the other; afterwards it answers, unless the last one is for ever.
// Then: how many requests reach it in all, and either how often Codex itself tried again until it had its answer, or
// what it prints in the end. `overWebSocket`: requests, where Codex goes on over HTTP after its tries.
const CASES = [
  // What godex gets over by itself, Codex never hears of.
  { name: "500, once", faults: [refuse(500, error("The server stumbled."))], requests: 2, retries: 0 },
  { name: "503, twice", faults: Array(2).fill(refuse(503, error("Overloaded.", "overloaded_error"))), requests: 3, retries: 0 },
  { name: "silence before the answer, once", faults: [silence()], settings: IMPATIENT("first_byte_ms"), requests: 2, retries: 0 },
  { name: "a cut before the answer, once", faults: [(answer) => answer.destroy()], requests: 2, retries: 0 },
  { name: "an effort that the model lacks", faults: [refuse(400, NO_EFFORT)], config: 'model_reasoning_effort = "xhigh"', lost: ["reasoning.effort"], requests: 2, retries: 0 },
  // What it must leave to Codex, since something was sent already.
  { name: "a cut in the answer, once", faults: [cut("I begin")], requests: 2, retries: 1 },
  { name: "silence in the answer, once", faults: [cut("I begin", silence())], settings: IMPATIENT("idle_ms"), requests: 2, retries: 1 },
  { name: "a cut in the answer, for ever", faults: [cut("I begin")], forever: true, requests: 3, overWebSocket: 6, reason: /disconnected before completion: The provider/ },
  // What it leaves to Codex, which would ask again in any case: each of its tries is one request.
  { name: "429 with Retry-After, once", faults: [refuse(429, LIMITED, { "retry-after": "1" })], requests: 2, retries: 1 },
  { name: "429 without Retry-After, once", faults: [refuse(429, LIMITED)], requests: 2, retries: 1 },
  { name: "429, for ever", faults: [refuse(429, LIMITED, { "retry-after": "1" })], forever: true, requests: 3, overWebSocket: 6, reason: /429 Too Many Requests/, only: NEWEST },
  // It will not heal: one request, and the provider's own words.
  { name: "the context overflows", faults: [refuse(400, OVERFLOW)], forever: true, requests: 1, reason: /ran out of room in the model's context window/ },
  { name: "the quota is used up", faults: [refuse(429, QUOTA)], forever: true, requests: 1, reason: /^Quota exceeded\. Check your plan and billing details\.$/ },
  { name: "no such model", faults: [refuse(404, NO_MODEL)], forever: true, requests: 1, reason: /some-model/ },
  { name: "the provider's key is refused", faults: [refuse(401, NO_KEY)], forever: true, settings: KEYED, requests: 1, reason: /^(?!.*secret).*key/i },
  { name: "403 of the provider", faults: [refuse(403, error("Your country is not served.", "forbidden"))], forever: true, requests: 1, reason: /Your country is not served/ },
  { name: "422 of the provider", faults: [refuse(422, BAD)], forever: true, requests: 1, reason: /temperature has no business here/ },
  { name: "400 of the provider", faults: [refuse(400, BAD)], forever: true, requests: 1, reason: /temperature has no business here/ },
  // Codex sends a 5xx once more, and that as a stream twice more; over a WebSocket three times, and then as all that.
  { name: "500, for ever", faults: [refuse(500, error("The server stumbled."))], forever: true, godex: ONCE, requests: 6, overWebSocket: 9, reason: /The server stumbled/ },
];

const DONE = "Here is the answer.";

async function run({ faults, forever, settings, godex, config, lost, requests, overWebSocket, retries, reason }, version, websocket) {
  const provider = `${CODEX}\nsupports_websockets = ${websocket}`;
  const script = ({ number }) => faults[forever ? Math.min(number, faults.length - 1) : number] ?? say(DONE);
  await scenario({ version, settings, godex, config, lost, provider, script }, async ({ task, upstream }) => {
    const done = await task("Do it.");
    if (reason === undefined) {
      assert.equal(done.code, 0);
      assert.equal(done.messages.at(-1), DONE);
      // On a WebSocket the first one is silent.
      if (!websocket) assert.equal(done.errors.filter((message) => message.startsWith("Reconnecting")).length, retries);
    } else {
      assert.notEqual(done.code, 0);
      assert.match(done.reason, reason);
    }
    assert.equal(upstream.requests.length, (websocket ? overWebSocket : undefined) ?? requests);
  });
}

describe("failures", { concurrency: 3 }, () => {
  for (const version of VERSIONS) {
    for (const row of CASES.filter(({ only }) => only === undefined || only === version)) {
      test(`codex ${version.name}: ${row.name}`, () => run(row, version, false));
      if (version === NEWEST) test(`codex ${version.name}, WebSocket: ${row.name}`, () => run(row, version, true));
    }
  }
});
