// Codex with web search on: godex searches, in the same response, and what Codex keeps of it means the same later.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { scenario, VERSIONS } from "./scenario.mjs";
import { call, say } from "./upstream.mjs";

const NORTH = "https://foxes.example/north";
const ANSWER = `They are white ([foxes.example](${NORTH})).`;

// A search service that answers as SearXNG does, and the queries that it got.
async function searching(body) {
  const queries = [];
  const server = createServer((request, answer) => {
    queries.push(new URL(request.url, "http://localhost").searchParams.get("q"));
    answer.writeHead(200, { "content-type": "application/json" });
    answer.end(JSON.stringify({ query: queries.at(-1), results: [{ title: "Foxes", url: NORTH, content: "White in winter." }] }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const godex = `tools: {web_search: {spec: searxng, endpoint: {base_url: "http://127.0.0.1:${server.address().port}"}}}`;
  try {
    await body(godex, queries);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const searched = (request) => request.texts.some((text) => text.includes(NORTH));

describe("search", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    const name = `codex ${version.name}`;

    test(`${name}: a search and its answer`, () =>
      searching((godex, queries) => {
        const script = (request) => (request.results.length === 0 ? call(request.tool(/^web_search$/), { queries: ["foxes in winter"] }) : say(ANSWER));
        return scenario({ version, godex, search: "live", script }, async ({ task, codex, upstream }) => {
          const { code, messages, items, thread } = await task("What colour are foxes?");
          assert.deepEqual([code, messages.at(-1)], [0, ANSWER]);
          const [ran] = items.filter((item) => item.type === "web_search");
          assert.match(ran.query, /foxes in winter/);
          assert.deepEqual(queries, ["foxes in winter"]);
          assert.equal(upstream.requests.length, 2);
          assert.ok(searched(upstream.requests[1]));
          // In the next turn the search is a part of the history, in its place.
          const options = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
          const again = await codex("resume", ...options, thread, "Are you sure?");
          assert.deepEqual([again.code, again.messages.at(-1)], [0, ANSWER]);
          const { messages: sent } = upstream.requests[2].body;
          assert.ok(sent.some((message) => message.role === "tool"), JSON.stringify(sent.slice(-4)));
          assert.equal(sent.at(-1).content.includes?.("Are you sure?") ?? true, true);
        });
      }));

    // The model searches, then runs a command: when it hears of the command, it still knows what it has found.
    test(`${name}: a search before a command`, () =>
      searching((godex) => {
        const script = (request) => {
          if (request.results.length === 0) return call(request.tool(/^web_search$/), { queries: ["foxes"] });
          if (request.results.length === 1) return [say("I note it."), call(request.tool(/^exec_command$/), { cmd: "echo number-$((6 * 7))" })];
          return say(`${request.results.at(-1).match(/number-42/)} ${searched(request) ? "and foxes" : "and nothing else"}`);
        };
        return scenario({ version, godex, search: "live", script }, async ({ task, upstream }) => {
          const { code, messages } = await task("What colour are foxes?");
          assert.equal(code, 0);
          assert.equal(upstream.requests.length, 3);
          assert.equal(messages.at(-1), "number-42 and foxes");
        });
      }));
  }
});
