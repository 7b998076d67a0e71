// The published Codex CLI on godex with the built-in model: a plain answer, a tool that really runs, a failure; and
// with a provider that is silent for long.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const codex = fileURLToPath(new URL("node_modules/@openai/codex/bin/codex.js", import.meta.url));

const config = `
model = "demo"
model_provider = "godex"
web_search = "disabled"

[model_providers.godex]
name = "godex"
base_url = "${process.env.GODEX_URL}/v1"
env_key = "GODEX_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
`;

// Runs one task in an empty folder; gives the events that Codex prints and what the folder holds.
async function run(prompt, look, model = "demo") {
  const home = await mkdtemp(join(tmpdir(), "codex-"));
  try {
    await writeFile(join(home, "config.toml"), config);
    const args = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    args.push("--model", model, prompt);
    const env = { ...process.env, CODEX_HOME: home, GODEX_API_KEY: "unused" };
    const { code, stdout, stderr } = await new Promise((resolve) => {
      const child = execFile(process.execPath, [codex, ...args], { cwd: home, env, timeout: 90_000 }, (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, stdout, stderr }));
      child.stdin.end();
    });
    const events = stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
    return { code, events, stderr, seen: await look?.(home) };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

const messages = (events) =>
  events.filter((e) => e.type === "item.completed" && e.item.type === "agent_message").map((e) => e.item.text);

test("codex answers", async () => {
  const { code, events, stderr } = await run("echo Hello from godex");
  assert.equal(code, 0, stderr);
  assert.deepEqual(messages(events), ["Hello from godex"]);
  const usage = events.find((e) => e.type === "turn.completed").usage;
  assert.ok(usage.input_tokens > 0 && usage.output_tokens > 0);
});

test("codex runs a tool that the model calls", async () => {
  const prompt = 'call exec_command {"cmd": "echo made-by-a-tool-$((6 * 7)) > proof.txt; cat proof.txt"}';
  const { code, events, stderr, seen } = await run(prompt, (home) => readFile(join(home, "proof.txt"), "utf8"));
  assert.equal(code, 0, stderr);
  assert.equal(seen, "made-by-a-tool-42\n");
  assert.match(messages(events).at(-1), /made-by-a-tool-42/);
});

test("codex shows why a turn failed", async () => {
  const { code, events } = await run("fail 400 the model will not have it");
  assert.notEqual(code, 0);
  assert.match(JSON.stringify(events), /the model will not have it/);
});

test("codex waits for a silent provider", async () => {
  const { code, events, stderr } = await run("Hi", undefined, "scripted/quiet-text");
  assert.equal(code, 0, stderr);
  assert.deepEqual(messages(events), ["before and after a long silence"]);
});

// Codex gives models of this name a freeform tool with a grammar, and drops calls that come back as anything else.
test("codex applies a patch from a freeform tool", async () => {
  const patch = "*** Begin Patch\n*** Add File: hello.txt\n+made by a patch, with \"quotes\" and a \\ backslash\n*** End Patch\n";
  const prompt = `call apply_patch ${JSON.stringify({ input: patch })}`;
  const look = (home) => readFile(join(home, "hello.txt"), "utf8");
  const { code, stderr, seen } = await run(prompt, look, "demo/gpt-5.5");
  assert.equal(code, 0, stderr);
  assert.equal(seen, 'made by a patch, with "quotes" and a \\ backslash\n');
});
