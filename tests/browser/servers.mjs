// The servers around the browser: a provider that counts, one that takes whatever it is sent, one with pages, and godex.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

async function listen(answer) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    answer(request, body, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { server, port: server.address().port, close };
}

// A provider that keeps what it was asked, and answers with a word.
export async function provider() {
  const asked = [];
  const { port, close } = await listen((request, body, response) => {
    // Its models are asked for without one, whenever there is time.
    if (body !== "") asked.push(body);
    const chunk = (choice) => ({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [choice] });
    const text = chunk({ index: 0, delta: { role: "assistant", content: "the answer" }, finish_reason: null });
    const end = chunk({ index: 0, delta: {}, finish_reason: "stop" });
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end([text, end].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + "data: [DONE]\n\n");
  });
  return { url: `http://127.0.0.1:${port}/v1`, asked, close };
}

// What godex must not be: it takes everything, except that it allows nothing when asked first.
export async function naive() {
  const heard = [];
  const { server, port, close } = await listen((request, body, response) => {
    heard.push({ method: request.method, url: request.url, body });
    response.writeHead(request.method === "OPTIONS" ? 403 : 200, { "content-type": "text/plain" });
    response.end("heard");
  });
  server.on("upgrade", (request, socket) => {
    heard.push({ method: "UPGRADE", url: request.url, body: "" });
    socket.destroy();
  });
  return { port, heard, close };
}

export const PAGE = "<!doctype html><title>a page</title><body></body>";

// Pages of whatever name it is called by.
export async function pages() {
  const { port, close } = await listen((request, body, response) => {
    const url = new URL(request.url, "http://page");
    if (url.pathname === "/redirect") {
      response.writeHead(307, { location: url.searchParams.get("to"), "access-control-allow-origin": "*" });
      return response.end();
    }
    response.writeHead(200, { "content-type": "text/html" });
    response.end(PAGE);
  });
  return { port, close };
}

// godex in front of the provider, with `server` and other sections as they are in a configuration.
export async function godex(provider, server = {}, others = {}) {
  const home = await mkdtemp(join(tmpdir(), "godex-browser-"));
  const up = { spec: "openai-compatible", endpoint: { base_url: provider.url }, models: ["m"] };
  const configuration = { server, providers: { up }, session: { backend: "memory" }, ...others };
  await writeFile(join(home, "godex.yaml"), JSON.stringify(configuration, null, 1));
  const env = { HOME: home, PATH: process.env.PATH };
  const child = spawn(process.env.GODEX, ["serve", "--port", "0"], { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (data) => (said += data));
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const address = new Promise((resolve, reject) => {
    child.on("error", reject);
    ended.then((code) => reject(new Error(`godex ended with ${code}: ${said}`)));
    const lines = createInterface(child.stdout);
    lines.on("line", (line) => line.startsWith("address:") && resolve(line.slice("address:".length).trim()));
  });
  const close = async () => {
    child.kill("SIGKILL");
    await ended;
    await rm(home, { recursive: true, force: true });
  };
  return { port: new URL(await address).port, home, env, close };
}
