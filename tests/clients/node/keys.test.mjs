// A godex that wants keys, met by the official client and by Codex.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import OpenAI from "openai";

const GOOD = "gdx-declared-for-the-tests-of-node";
const OTHER = "gdx-declared-for-somebody-else";

const CONFIGURATION = `
default_provider: demo
keys:
  - {name: good, tenant: good, key: "\${GOOD_KEY}"}
  - {name: other, tenant: other, key: "\${OTHER_KEY}", rpm: 1}
`;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

describe("keys", () => {
  let home, url, godex, environment;

  before(async () => {
    home = await mkdtemp(join(tmpdir(), "godex-keys-"));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    await writeFile(join(home, "godex.yaml"), CONFIGURATION, { mode: 0o600 });
    environment = { HOME: home, PATH: process.env.PATH, GOOD_KEY: GOOD, OTHER_KEY: OTHER };
    godex = spawn(process.env.GODEX_BINARY, ["serve", "--port", String(port)], { cwd: home, env: environment, stdio: "ignore" });
    for (let tries = 0; ; tries++) {
      const healthy = await fetch(`${url}/health`).then((answer) => answer.ok, () => false);
      if (healthy) break;
      assert.ok(tries < 300 && godex.exitCode === null, "it does not begin to serve");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });

  after(async () => {
    godex.kill("SIGTERM");
    if (godex.exitCode === null) await once(godex, "exit");
    await rm(home, { recursive: true });
  });

  const client = (apiKey, options = {}) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, ...options });

  test("a key that is none is an authentication error", async () => {
    for (const key of ["wrong", `${GOOD}x`, GOOD.slice(0, -1)]) {
      await assert.rejects(client(key).responses.create({ model: "demo", input: "Hi" }), (error) => {
        assert.ok(error instanceof OpenAI.AuthenticationError);
        assert.equal(error.code, "invalid_api_key");
        assert.ok(!error.message.includes(key) || key.length < 8, error.message);
        return true;
      });
    }
  });

  test("a key is its tenant's", async () => {
    const response = await client(GOOD).responses.create({ model: "demo", input: "Hi" });
    assert.equal((await client(GOOD).responses.retrieve(response.id)).id, response.id);
    await assert.rejects(client(OTHER).responses.retrieve(response.id), OpenAI.NotFoundError);
  });

  test("a limit is a rate limit error, which says when to come again", async () => {
    await client(OTHER).responses.create({ model: "demo", input: "Hi" });
    await assert.rejects(client(OTHER).responses.create({ model: "demo", input: "Hi", stream: true }), (error) => {
      assert.ok(error instanceof OpenAI.RateLimitError);
      assert.equal(error.code, "rate_limit_exceeded");
      assert.match(error.headers.get("retry-after"), /^[1-9][0-9]*$/);
      assert.equal(error.headers.get("x-ratelimit-remaining-requests"), "0");
      return true;
    });
  });

  test("godex's own commands show the key of GODEX_API_KEY", async () => {
    const run = (env) => promisify(execFile)(process.env.GODEX_BINARY, ["env", "--shell", "sh"], { cwd: home, env });
    const { stdout } = await run({ ...environment, GODEX_API_KEY: GOOD });
    assert.match(stdout, new RegExp(`OPENAI_API_KEY='?${GOOD}`));
  });
});
