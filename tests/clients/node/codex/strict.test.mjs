// That the strict provider is strict: a request that is right, and all the ways in which it can be wrong.

import assert from "node:assert/strict";
import { test } from "node:test";
import { check } from "./strict.mjs";

const call = (id, rest = {}) => ({ id, type: "function", function: { name: "f", arguments: "{}" }, ...rest });
const result = (id) => ({ role: "tool", tool_call_id: id, content: "done" });
const user = { role: "user", content: "Hi" };
const parameters = { type: "object", properties: {} };
const good = {
  model: "m",
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "Look" }, { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "high" } }] },
    { role: "assistant", content: null, tool_calls: [call("a"), call("b")] },
    result("b"),
    result("a"),
    { role: "assistant", content: "Done." },
    user,
  ],
  tools: [{ type: "function", function: { name: "f", description: "d", parameters, strict: false } }],
  tool_choice: "auto",
  parallel_tool_calls: true,
  stream: true,
  stream_options: { include_usage: true },
  response_format: { type: "json_schema", json_schema: { name: "n", schema: parameters, strict: true } },
};

test("a good request passes", () => assert.deepEqual(check(good), []));

const messages = (...list) => ({ messages: list });
const tools = (...list) => ({ tools: list.map((rest) => ({ type: "function", function: { name: "f", parameters, ...rest } })) });
const calls = (...list) => ({ role: "assistant", tool_calls: list });
const BAD = {
  "no messages": { messages: [] },
  "an unknown member": { store: false },
  "a null": { temperature: null },
  "no tools in tools": { tools: [] },
  "a choice without tools": { tools: undefined, parallel_tool_calls: undefined },
  "parallel calls without tools": { tools: undefined, tool_choice: undefined },
  "options of no stream": { stream: undefined },
  "a format of another kind": { response_format: { type: "grammar" } },
  "an effort that is none": { reasoning_effort: "ultra" },
  "the role developer": messages({ role: "developer", content: "Be brief." }),
  "an unknown member of a message": messages({ ...user, id: "msg_1" }),
  "an empty text": messages({ role: "user", content: "" }),
  "no parts": messages({ role: "user", content: [] }),
  "an unknown part": messages({ role: "user", content: [{ type: "input_text", text: "Hi" }] }),
  "a detail that chat lacks": messages({ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "original" } }] }),
  "parts of a tool": messages(calls(call("a")), { ...result("a"), content: [{ type: "text", text: "x" }] }),
  "nothing said and nothing called": messages({ role: "assistant", content: null }),
  "no calls in tool_calls": messages({ role: "assistant", content: "x", tool_calls: [] }),
  "a result without its call": messages(user, result("a")),
  "a call without its result": messages(calls(call("a"))),
  "something between a call and its result": messages(calls(call("a")), user, result("a")),
  "two results of one call": messages(calls(call("a")), result("a"), result("a")),
  "an id twice": messages(calls(call("a")), result("a"), calls(call("a")), result("a")),
  "an id with a blank": messages(calls(call("a b")), result("a b")),
  "arguments that are no JSON": messages(calls(call("a", { function: { name: "f", arguments: '{"a' } })), result("a")),
  "arguments that are no object": messages(calls(call("a", { function: { name: "f", arguments: "[]" } })), result("a")),
  "a call of another kind": messages(calls(call("a", { type: "custom" })), result("a")),
  "a name with a dot": tools({ name: "a.b" }),
  "a name of 65": tools({ name: "a".repeat(65) }),
  "a name twice": tools({}, {}),
  "parameters without properties": tools({ parameters: { type: "object" } }),
  "no parameters": tools({ parameters: undefined }),
  "an unknown member of a function": tools({ defer_loading: true }),
  "a tool of another kind": { tools: [{ type: "web_search" }] },
};

for (const [name, wrong] of Object.entries(BAD)) {
  const body = JSON.parse(JSON.stringify({ ...good, ...wrong }));
  test(`refused: ${name}`, () => assert.notDeepEqual(check(body), []));
}
