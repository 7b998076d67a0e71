// Codex searches the web by itself, over godex.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NEWEST, scenario } from "./scenario.mjs";
import { call, say } from "./upstream.mjs";

const standalone = {
  version: NEWEST,
  search: "live",
  provider: "supports_standalone_web_search = true",
  tables: "[features]\nstandalone_web_search = true\n",
};

describe("web search", () => {
  test(`codex ${NEWEST.name} asks for results, and its model gets them`, () => {
    const script = (request) =>
      request.results.length === 0
        ? call(request.tool(/run$/), { search_query: [{ q: "rust news", recency: 7 }], weather: [{ location: "Paris" }] })
        : say(request.results.at(-1));
    return scenario({ ...standalone, godex: "tools: {web_search: mock}", script }, async ({ task }) => {
      const { code, messages, items } = await task("What is new in Rust?");
      assert.equal(code, 0);
      assert.match(messages.at(-1), /1\. Mock result for rust news\nhttps:\/\/example\.com\/search\/rust-news\n/);
      assert.match(messages.at(-1), /`weather` is not available here\./);
      assert.deepEqual(items.filter((item) => item.type === "web_search").map((item) => item.query), ["rust news"]);
    });
  });
});
