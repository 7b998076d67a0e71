// Tools of an MCP server, offered at once and found by search; several calls at once, and calls that are none; pictures
// that the user attaches and that tools show; an answer in a format.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deflateSync } from "node:zlib";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { assertPrefixes, NEWEST, scenario, VERSIONS } from "./scenario.mjs";
import { call, say } from "./upstream.mjs";

const mcp = (name) => `
[mcp_servers.${name}]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(fileURLToPath(new URL("mcp-server.mjs", import.meta.url)))}]
env = { DEMO_SECRET = "behind seven seals", DEMO_PICTURE = "${png().toString("base64")}" }
`;

// The model says the sum that it was sent, and nothing that it was not.
const sum = (request) => say(request.results.at(-1).match(/the sum is 42, [a-z ]+/)?.[0] ?? `no sum: ${request.results.at(-1)}`);

describe("tools", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    const name = `codex ${version.name}`;

    test(`${name}: a tool of an MCP server`, () => {
      const script = (request) => (request.results.length === 0 ? call(request.tool(/add$/), { a: 20, b: 22 }) : sum(request));
      return scenario({ version, tables: mcp("demo"), script }, async ({ task, upstream }) => {
        const { code, messages, items } = await task("Add 20 and 22.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), "the sum is 42, behind seven seals");
        const [ran] = items.filter((item) => item.type === "mcp_tool_call");
        assert.deepEqual([ran.server, ran.tool, ran.arguments, ran.status], ["demo", "add", { a: 20, b: 22 }, "completed"]);
        assertPrefixes(upstream.requests);
      });
    });

    // The tools of the server are not offered: the model searches for them, and may call what was found.
    test(`${name}: a tool that is found by search`, () => {
      const script = (request) => {
        if (request.results.length === 0) {
          assert.throws(() => request.tool(/add$/), /0 tools/);
          return call(request.tool(/^tool_search$/), { query: "add two integers", limit: 3 });
        }
        return request.results.length === 1 ? call(request.tool(/add$/), { a: 20, b: 22 }) : sum(request);
      };
      return scenario({ version, model: "gpt-5.5", tables: mcp("demo"), script }, async ({ task, upstream }) => {
        const { code, messages, items } = await task("Add 20 and 22.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), "the sum is 42, behind seven seals");
        assert.equal(items.filter((item) => item.type === "mcp_tool_call").length, 1);
        assert.equal(upstream.requests.length, 3);
      });
    });

    test(`${name}: a tool with a name that is too long, which shows a picture`, () => {
      const script = (request) =>
        request.results.length === 0 ? call(request.tool(/show_the_picture/), {}) : say(`${request.results[0].match(/taken at noon/)}: ${seen(request).join()}`);
      return scenario({ version, tables: mcp("the_server_with_pictures"), script }, async ({ task, upstream }) => {
        const { code, messages, items } = await task("Show me the latest picture.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), `taken at noon: ${PNG_SIGNATURE}`);
        const [ran] = items.filter((item) => item.type === "mcp_tool_call");
        assert.deepEqual([ran.server, ran.tool], ["the_server_with_pictures", "show_the_picture_that_was_taken_most_recently_by_anybody"]);
        assertPrefixes(upstream.requests);
      });
    });

    test(`${name}: several calls at once`, () => {
      const run = (request, number) => call(request.tool(/^exec_command$/), { cmd: `echo number-$((${number} * 11))` });
      const script = (request) =>
        request.results.length === 0 ? [1, 2, 3].map((number) => run(request, number)) : say(request.results.map((result) => result.match(/number-\d+/)).join());
      return scenario({ version, script }, async ({ task, upstream }) => {
        const { code, messages } = await task("Count.");
        assert.equal(code, 0);
        // Each result with its call.
        assert.equal(messages.at(-1), "number-11,number-22,number-33");
        assert.equal(upstream.requests.length, 2);
      });
    });

    // The script goes on while the model is told of it, and each thing that it is told is an output of the same call.
    test(`${name}: code that says something on its way`, () => {
      const model = version === NEWEST ? "gpt-6.1-sol" : "gpt-5.6-sol";
      const source = 'notify("first"); text("second"); yield_control(); await tools.exec_command({cmd: "sleep 0.3"}); text("third");';
      const script = (request) => {
        const [first, second] = request.results;
        if (first === undefined) return call(request.tool(/^exec$/), { input: source });
        if (second === undefined) return call(request.tool(/^wait$/), { cell_id: first.match(/cell ID (\S+)/)[1] });
        return say([/first/, /second/, /third/].map((word) => request.results.findIndex((result) => word.test(result))).join());
      };
      return scenario({ version, model, script }, async ({ task }) => {
        const { code, messages } = await task("Run the code.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), "0,0,1");
      });
    });

    // Codex tells the model so, and sends the call with the history: where it must be JSON.
    test(`${name}: arguments that are no JSON`, () => {
      const script = (request) => {
        if (request.results.length === 0) return { call: { name: request.tool(/^exec_command$/), arguments: '{"cmd": "echo unfinished' } };
        return request.results.length === 1 ? call(request.tool(/^exec_command$/), { cmd: "echo $((6 * 7))" }) : say(request.results.at(-1).match(/42/)?.[0] ?? "nothing");
      };
      return scenario({ version, script }, async ({ task, upstream }) => {
        const { code, messages } = await task("Multiply.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), "42");
        assert.match(upstream.requests[1].results[0], /parse|JSON/i);
      });
    });

    test(`${name}: a picture that the user attaches`, () => {
      const script = (request) => say(`I see ${seen(request).join()}`);
      return scenario({ version, script }, async ({ task, folder }) => {
        await writeFile(join(folder, "red.png"), png());
        const { code, messages } = await task("What is in it?", "-i", "red.png");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), `I see ${PNG_SIGNATURE}`);
      });
    });

    test(`${name}: a picture that the model opens`, () => {
      const script = (request) =>
        request.results.length === 0 ? call(request.tool(/^view_image$/), { path: "red.png" }) : say(`I see ${seen(request).join()}`);
      return scenario({ version, script }, async ({ task, folder, upstream }) => {
        await writeFile(join(folder, "red.png"), png());
        const { code, messages } = await task("Open red.png.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), `I see ${PNG_SIGNATURE}`);
        assertPrefixes(upstream.requests);
      });
    });

    test(`${name}: an answer in the format of a schema`, () => {
      const schema = {
        type: "object",
        properties: { title: { type: "string" }, words: { type: "integer" } },
        required: ["title", "words"],
        additionalProperties: false,
      };
      const answer = { title: "Notes", words: 3 };
      const script = (request) => {
        assert.deepEqual(request.body.response_format?.json_schema.schema, schema);
        return say(JSON.stringify(answer));
      };
      return scenario({ version, script }, async ({ task, folder }) => {
        await writeFile(join(folder, "schema.json"), JSON.stringify(schema));
        const { code, messages } = await task("--output-schema", "schema.json", "Give me the title.");
        assert.equal(code, 0);
        assert.deepEqual(JSON.parse(messages.at(-1)), answer);
      });
    });
  }
});

const PNG_SIGNATURE = "89504e470d0a1a0a";

// The first bytes of each picture in the history.
const seen = (request) =>
  request.body.messages
    .flatMap((message) => (Array.isArray(message.content) ? message.content : []))
    .filter((part) => part.type === "image_url")
    .map((part) => Buffer.from(part.image_url.url.replace(/^data:image\/png;base64,/, ""), "base64").toString("hex", 0, 8));

// A red square of 8 by 8.
function png() {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(8, 0);
  head.writeUInt32BE(8, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.from([0, ...Array(8).fill([255, 0, 0]).flat()]);
  const pixels = deflateSync(Buffer.concat(Array(8).fill(row)));
  return Buffer.concat([Buffer.from(PNG_SIGNATURE, "hex"), chunk("IHDR", head), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

function crc(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
}
