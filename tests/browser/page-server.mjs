// The page as its files are, in front of an admin listener that is made up: what it is asked is kept, what it says can be hostile.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

import { KEYS, PROVIDERS, STATUS, USAGE, answer, chain, detail, explained, fan, plain, series, summary } from "./page-data.mjs";

const FOLDER = new URL("../../crates/server/src/page/", import.meta.url);
const TYPES = { html: "text/html; charset=utf-8", css: "text/css; charset=utf-8", js: "text/javascript; charset=utf-8", svg: "image/svg+xml" };

/// As the server itself says it.
async function policy() {
  const source = await readFile(fileURLToPath(new URL("../../crates/server/src/page.rs", import.meta.url)), "utf8");
  return /POLICY: &str = "([^;]+;[\s\S]*?)";\n/.exec(source)[1].replace(/\\\n\s*/g, "");
}

/// Every string becomes this one; `kept` says which members stay as they are, so that the rest is looked at in its place.
export function hostile(value, payload, kept) {
  if (typeof value === "string") return payload;
  if (Array.isArray(value)) return value.map((one) => hostile(one, payload, kept));
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).map(([name, one]) => [name, kept.includes(name) ? one : hostile(one, payload, kept)]);
  // Names are others' words, too, where they are not the contract's.
  return Object.fromEntries([...entries, ...(kept.length === 0 ? [] : [[payload, payload]])]);
}

export async function pageServer() {
  const [csp, asked] = [await policy(), []];
  const state = { count: 190, asked, mangle: (value) => value, token: undefined, text: "Hello! Bonjour! Hallo!", fail: undefined, empty: false, plain: false, fans: false, silent: false, off: false };
  // Who asks meanwhile waits for it.
  const answered = new Promise((resolve) => { state.answer = () => resolve(state.silent = false); });
  const api = (url, method, body) => {
    const path = url.pathname;
    const number = Number(/\/admin\/traces\/(\d+)/.exec(path)?.[1] ?? 190);
    if (path === "/admin/status") return STATUS;
    if (path === "/admin/series") return series(Date.parse(url.searchParams.get("since")), Date.parse(url.searchParams.get("until")), parseInt(url.searchParams.get("step"), 10) * 1000);
    if (path === "/admin/providers") return PROVIDERS;
    if (path === "/admin/keys") return KEYS;
    if (path === "/admin/usage") return USAGE;
    if (path === "/admin/traces") return list(url.searchParams);
    if (/^\/admin\/traces\/[^/]+\/chain$/.test(path)) return { data: state.fans ? fan(number) : chain(number) };
    if (/^\/admin\/traces\/[^/]+\/explain$/.test(path)) return state.plain ? plain(number) : explained(number);
    if (/^\/admin\/traces\/[^/]+$/.test(path)) return path.endsWith("/99999") ? undefined : state.plain ? plain(number).trace : detail(number);
    if (path === "/admin/playground/responses" && method === "POST") return { body };
    return undefined;
  };
  const list = (query) => {
    if (state.empty) return { object: "list", data: [], has_more: false, dropped: 0 };
    const [before, after] = [Number(query.get("before") ?? Infinity), query.get("after")];
    let turns = Array.from({ length: state.count }, (_, index) => summary(index + 1, Date.now())).reverse();
    if (query.get("model")) turns = turns.filter(({ model }) => model === query.get("model"));
    if (query.get("errors") === "true") turns = turns.filter(({ error }) => error);
    if (query.get("outcome")) turns = turns.filter(({ outcome }) => outcome === query.get("outcome"));
    const limit = Number(query.get("limit") ?? 50);
    turns = after === null ? turns.filter(({ number }) => number < before) : turns.filter(({ number }) => number > Number(after)).reverse();
    return { object: "list", data: turns.slice(0, limit), has_more: turns.length > limit, dropped: 0 };
  };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    // `godex page` has the path of a session, and passes on no token.
    const [, session, rest] = /^(\/[\w-]{27})?(\/.*)$/.exec(request.url);
    const url = new URL(rest, "http://page");
    const file = url.pathname === "/" ? "index.html" : /^\/page\/([a-z]+\.[a-z]+)$/.exec(url.pathname)?.[1];
    if (file) {
      response.writeHead(200, { "content-type": TYPES[file.split(".")[1]], "content-security-policy": csp, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer" });
      return response.end(await readFile(fileURLToPath(new URL(file, FOLDER))));
    }
    const authorization = session ? undefined : request.headers.authorization;
    asked.push({ method: request.method, url: rest, body, authorization });
    const send = (status, value) => {
      response.writeHead(status, { "content-type": "application/json", "x-request-id": "req_0190b7c1d2" });
      response.end(JSON.stringify(value));
    };
    if (state.token && authorization !== `Bearer ${state.token}`) return send(401, { error: { code: "invalid_admin_token", message: "no" } });
    if (state.silent) await answered;
    if (state.fail) return send(500, { error: { code: "x", message: state.fail } });
    if (state.off && url.pathname.startsWith("/admin/traces")) return send(404, { error: { code: "traces_off", message: "No traces are kept: `trace.enabled` is false, or see the log." } });
    const found = api(url, request.method, body);
    if (!found) return send(404, { error: { code: "not_found", message: state.mangle("Nothing is there.") } });
    if (found.body === undefined) return send(200, state.mangle(found, url.pathname));
    const { events, done } = answer(state.text);
    if (!JSON.parse(body).stream) return send(200, state.mangle(done));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) {
      response.write(`event: ${event.type}\ndata: ${JSON.stringify({ ...state.mangle(event), type: event.type, output_index: event.output_index })}\n\n`);
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { ...state, state, url: `http://127.0.0.1:${server.address().port}/`, asked, close };
}
