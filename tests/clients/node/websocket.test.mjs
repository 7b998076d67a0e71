// WebSocket mode: the official Node client, the Agents SDK and the Codex CLI over one connection. The model is `demo`,
// or a provider that shows what it was sent.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Agent, setTracingDisabled, tool, withResponsesWebSocketSession } from "@openai/agents";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import WebSocket, { WebSocketServer } from "ws";
import { z } from "zod";

import { history } from "./mirror.mjs";

// Traces would go to OpenAI.
setTracingDisabled(true);

const url = process.env.GODEX_URL;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0, timeout: 30_000 });
const user = (content) => ({ role: "user", content });

// Runs `work(respond, next)` on one connection: `respond` gives the response of a request, `next` the next message.
async function connected(work) {
  const socket = new ResponsesWS(client);
  socket.on("error", () => {});
  const events = socket.stream();
  const next = async () => {
    for (;;) {
      const { value, done } = await events.next();
      assert.ok(!done, "the connection ended");
      if (value.type === "message") return value.message;
      // An error of the server's, or of the connection's.
      if (value.type === "error") return value.error.error ?? assert.fail(value.error);
    }
  };
  const respond = async (request) => {
    socket.send({ type: "response.create", model: "demo", store: false, ...request });
    for (let number = 0; ; number += 1) {
      const event = await next();
      assert.notEqual(event.type, "error", JSON.stringify(event));
      assert.equal(event.sequence_number, number);
      assert.equal(event.stream_id, request.stream_id);
      if (["response.completed", "response.incomplete", "response.failed"].includes(event.type)) return event.response;
    }
  };
  try {
    await work(respond, next, socket);
  } finally {
    await events.return?.();
    socket.close();
  }
}

const text = (response) => response.output.flatMap((item) => item.content ?? []).map((part) => part.text).join("");

test("responses one after the other", () =>
  connected(async (respond) => {
    for (const said of ["Hello", "naïve 世界 👩‍👩‍👧‍👦", "x".repeat(200_000)]) {
      const response = await respond({ input: `echo ${said}`, stream_id: "lane.1" });
      assert.deepEqual([response.status, text(response)], ["completed", said]);
    }
  }));

test("what is not stored goes on, and a warm-up does", () =>
  connected(async (respond) => {
    const model = "scripted/history";
    const warm = await respond({ model, input: "Base.", generate: false });
    assert.deepEqual(warm.output, []);
    const first = await respond({ model, input: "My name is Ada.", previous_response_id: warm.id });
    const second = await respond({ model, input: "Who am I?", previous_response_id: first.id });
    const said = { role: "assistant", content: text(first) };
    assert.deepEqual(history(text(second)), [user("Base."), user("My name is Ada."), said, user("Who am I?")]);
  }));

test("errors and steering leave the connection as it was", () =>
  connected(async (respond, next, socket) => {
    socket.send({ type: "response.create", model: "demo", store: false, input: "x", previous_response_id: "resp_none" });
    const error = await next();
    assert.deepEqual([error.type, error.status, error.error.code], ["error", 400, "previous_response_not_found"]);
    socket.send({ type: "response.steer", previous_response_id: "resp_none", input: "Stop" });
    const steer = await next();
    assert.deepEqual([steer.type, steer.error.code], ["response.steer.failed", "steering_not_supported"]);
    assert.equal(text(await respond({ input: "echo Hi" })), "Hi");
  }));

const weather = tool({
  name: "get_weather",
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `18 degrees in ${city}`,
});

const providerOptions = { apiKey: "unused", baseURL: `${url}/v1`, websocketBaseURL: `${url.replace(/^http/, "ws")}/v1` };

test("an agent over one connection", () =>
  withResponsesWebSocketSession(
    async ({ run }) => {
      const agent = new Agent({ name: "Tester", model: "demo", tools: [weather] });
      const whole = await run(agent, 'call get_weather {"city": "Oslo"}');
      assert.match(whole.finalOutput, /18 degrees in Oslo/);
      const streamed = await run(agent, 'call get_weather {"city": "Rome"}', { stream: true });
      for await (const _ of streamed);
      assert.match(streamed.finalOutput, /18 degrees in Rome/);
      const model = "scripted/history";
      const forgetful = new Agent({ name: "Tester", model, modelSettings: { store: false } });
      const first = await run(forgetful, "My name is Ada.");
      const second = await run(forgetful, "Who am I?", { previousResponseId: first.lastResponseId });
      const said = { role: "assistant", content: first.finalOutput };
      assert.deepEqual(history(second.finalOutput), [user("My name is Ada."), said, user("Who am I?")]);
    },
    { providerOptions, runnerConfig: { tracingDisabled: true } },
  ));

// Stands between Codex and godex and keeps what Codex says: the requests over HTTP, and the messages of each connection.
async function listening(work) {
  const requests = [];
  const connections = [];
  const server = createServer(async (request, response) => {
    requests.push(`${request.method} ${request.url.split("?")[0]}`);
    const answer = await fetch(url + request.url, { method: request.method });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket, request) => {
    const messages = [];
    connections.push(messages);
    const { originator } = request.headers;
    const upstream = new WebSocket(url.replace(/^http/, "ws") + request.url, { headers: { originator } });
    const open = new Promise((resolve) => upstream.once("open", resolve));
    socket.on("message", async (data) => {
      messages.push(JSON.parse(data.toString()));
      await open;
      upstream.send(data.toString());
    });
    upstream.on("message", (data) => socket.send(data.toString()));
    upstream.on("close", () => socket.close());
    upstream.on("error", () => socket.terminate());
    socket.on("close", () => upstream.close());
    socket.on("error", () => upstream.close());
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await work(`http://127.0.0.1:${server.address().port}`, requests, connections);
  } finally {
    for (const socket of sockets.clients) socket.terminate();
    sockets.close();
    server.close();
    server.closeAllConnections();
  }
}

const cli = fileURLToPath(new URL("node_modules/@openai/codex/bin/codex.js", import.meta.url));

const config = (base) => `
model = "demo"
model_provider = "godex"
web_search = "disabled"

[model_providers.godex]
name = "godex"
base_url = "${base}/v1"
env_key = "GODEX_API_KEY"
wire_api = "responses"
supports_websockets = true
request_max_retries = 1
stream_max_retries = 1
`;

async function codex(home, ...args) {
  const env = { ...process.env, CODEX_HOME: home, GODEX_API_KEY: "unused" };
  const { code, stdout, stderr } = await new Promise((resolve) => {
    const child = execFile(process.execPath, [cli, ...args], { cwd: home, env, timeout: 90_000 }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }));
    child.stdin.end();
  });
  assert.equal(code, 0, `${stdout}\n${stderr}`);
  const events = stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  const messages = events.filter((e) => e.type === "item.completed" && e.item.type === "agent_message");
  return messages.map((e) => e.item.text);
}

test("codex warms up, runs a tool and goes on over one connection", () =>
  listening(async (base, requests, connections) => {
    const home = await mkdtemp(join(tmpdir(), "codex-"));
    try {
      await writeFile(join(home, "config.toml"), config(base));
      const exec = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
      const prompt = 'call exec_command {"cmd": "echo made-by-a-tool-$((6 * 7)) > proof.txt; cat proof.txt"}';
      assert.match((await codex(home, ...exec, prompt)).at(-1), /made-by-a-tool-42/);
      assert.equal(await readFile(join(home, "proof.txt"), "utf8"), "made-by-a-tool-42\n");
      const [warmUp, turn, output] = connections[0];
      assert.deepEqual([warmUp.generate, turn.generate, output.generate], [false, undefined, undefined]);
      assert.match(turn.previous_response_id, /^resp_/);
      assert.match(output.previous_response_id, /^resp_/);
      assert.notEqual(turn.previous_response_id, output.previous_response_id);
      // Only what is new is sent.
      assert.deepEqual(output.input.map((item) => item.type), ["function_call_output"]);
      // A second turn, in another process: everything is sent again, and the whole thread is there.
      assert.deepEqual(await codex(home, ...exec, "resume", "--last", "echo the second turn"), ["the second turn"]);
      const said = JSON.stringify(connections.slice(1));
      assert.ok(said.includes("made-by-a-tool") && said.includes("the second turn"), said.slice(0, 2000));
      assert.deepEqual(requests.filter((request) => request.startsWith("POST")), [], "codex fell back to HTTP");
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  }));
