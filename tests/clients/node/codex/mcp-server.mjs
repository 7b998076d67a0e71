// An MCP server over stdio. What its tools answer no model can guess.

import { createInterface } from "node:readline";

const text = (text) => ({ content: [{ type: "text", text }] });

const TOOLS = {
  add: {
    description: "Add two integers, and put the secret behind the sum.",
    inputSchema: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
    },
    run: ({ a, b }) => text(`the sum is ${a + b}, ${process.env.DEMO_SECRET}`),
  },
  // With the name of its server it is longer than any provider takes; and it has no parameters.
  show_the_picture_that_was_taken_most_recently_by_anybody: {
    description: "Shows the latest picture.",
    inputSchema: { type: "object" },
    run: () => ({ content: [{ type: "text", text: "taken at noon" }, { type: "image", data: process.env.DEMO_PICTURE, mimeType: "image/png" }] }),
  },
};

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "demo", version: "1.0.0" },
    instructions: "Demo arithmetic tools.",
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: Object.entries(TOOLS).map(([name, { description, inputSchema }]) => ({ name, description, inputSchema })) }),
  "tools/call": ({ name, arguments: args }) => TOOLS[name].run(args ?? {}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = METHODS[method]
    ? { result: METHODS[method](params ?? {}) }
    : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\n`);
}
