// One task of the published Codex CLI: a fresh home and working folder, a godex of its own in the middle, and a
// scripted provider behind it. Everything is gone at the end; what a failure needs to be understood is in its message.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startUpstream } from "./upstream.mjs";

const require = createRequire(import.meta.url);
export const GODEX = process.env.GODEX_BINARY ?? fileURLToPath(new URL("../../../debug/godex", import.meta.url));
const LIMIT_MS = 60_000;

// The versions that are tested, newest first, each as it was published for this machine.
export const VERSIONS = ["@openai/codex", "codex-older"].map(installed).filter((version) => version !== undefined);
export const [NEWEST] = VERSIONS;

function installed(name) {
  const manifest = require.resolve(`${name}/package.json`);
  const program = join(dirname(manifest), "bin/codex.js");
  const native = `@openai/codex-${process.platform}-${process.arch}/package.json`;
  try {
    // Not of another version: a package whose own is missing would silently find its neighbour's.
    const { version } = require(createRequire(program).resolve(native));
    return version.startsWith(require(manifest).version) ? { name: require(manifest).version, program } : undefined;
  } catch {
    return undefined;
  }
}

// `script`: what the model does, and `knows`: what its provider takes beyond the strict (see upstream.mjs). `spec`,
// `settings` and `root`, its path: how godex speaks to it, `godex`: more of godex's configuration, as YAML. `key` and `provider`: of Codex's
// provider, `search`: its web search, `config` and `tables`: more of Codex's configuration, as TOML, in which HOME is
// Codex's home. `lost`: what godex must leave out, as its notes say.
export async function scenario(options, body) {
  const { script, knows, version = NEWEST, spec = "openai-compatible", root: path = "/v1", settings = "", godex = "", lost = [] } = options;
  const root = await mkdtemp(join(tmpdir(), "godex-codex-"));
  const closing = [() => rm(root, { recursive: true, force: true })];
  const trace = { said: "" };
  try {
    const folder = join(root, "work");
    const home = join(root, "codex");
    for (const made of [folder, home]) await mkdir(made);
    const upstream = await startUpstream(script, knows);
    closing.push(upstream.close);
    const server = await startGodex(root, `
providers:
  scripted: {spec: ${spec}, endpoint: {base_url: "${upstream.url}${path}"}, ${settings}}
${godex}`);
    closing.push(server.stop);
    trace.log = server.log;
    const toml = configuration(server.url, options);
    await writeFile(join(home, "config.toml"), toml.replaceAll("HOME/", `${home}/`));
    // Nothing of the user who runs the tests.
    const env = { ...process.env, HOME: root, CODEX_HOME: home, GODEX_API_KEY: "unused" };
    const start = (args) => spawn(process.execPath, [version.program, ...args], { cwd: folder, env, detached: true });
    const codex = (...args) => run(start(["exec", ...args]), trace);
    const task = (...args) => codex("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", ...args);
    const file = (name) => readFile(join(folder, name), "utf8");
    await body({ task, codex, start: (...args) => guarded(start(args), trace, closing), folder, home, file, upstream, url: server.url, log: server.log });
    // The line of a request comes when it is over, which Codex may be before.
    for (let tries = 0; tries < 200 && requests(server.log()).length === 0; tries += 1) await new Promise((resolve) => setTimeout(resolve, 25));
    assertLost(server.log(), lost);
    assert.deepEqual(upstream.problems, [], "requests that a strict provider refuses, or a script that did not expect them");
  } catch (error) {
    throw new Error(`${error.stack}\n--- codex\n${trace.said.slice(-6000)}\n--- godex\n${trace.log?.().slice(-4000)}`);
  } finally {
    for (const close of closing.reverse()) await close();
  }
}

const configuration = (url, { model = "some-model", search = "disabled", key = 'env_key = "GODEX_API_KEY"', provider = "", config = "", tables = "" }) => `
model = "${model}"
model_provider = "godex"
web_search = "${search}"
check_for_update_on_startup = false
${config}

[model_providers.godex]
name = "godex"
base_url = "${url}/v1"
${key}
wire_api = "responses"
${provider}

[analytics]
enabled = false

${tables}
`;

async function startGodex(root, configuration) {
  const home = join(root, "godex");
  await mkdir(home);
  await writeFile(join(home, "godex.yaml"), configuration);
  assert.ok(existsSync(GODEX), `${GODEX} is not built`);
  const env = { PATH: process.env.PATH, HOME: home };
  const child = spawn(GODEX, ["serve", "--port", "0"], { cwd: home, env });
  let said = "";
  const url = await new Promise((resolve, reject) => {
    const hear = (chunk) => {
      said += chunk;
      const address = said.match(/http:\/\/127\.0\.0\.1:\d+/);
      if (address !== null) resolve(address[0]);
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`godex ended with ${code}:\n${said}`)));
  });
  const stop = () => new Promise((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.on("exit", resolve);
    child.kill("SIGKILL");
  });
  return { url, stop, log: () => said };
}

// Runs to the end; gives the events that it printed, and how it ended.
function run(child, trace) {
  child.stdin.end();
  return new Promise((resolve, reject) => {
    let stdout = "";
    let stderr = "";
    const timer = setTimeout(() => {
      kill(child);
      reject(new Error(`codex did not end within ${LIMIT_MS} ms`));
    }, LIMIT_MS);
    child.stdout.on("data", (chunk) => (stdout += chunk, trace.said += chunk));
    child.stderr.on("data", (chunk) => (stderr += chunk, trace.said += chunk));
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      const events = stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
      resolve({ code, stdout, stderr, events, ...read(events) });
    });
  });
}

// What most scenarios ask of the events.
function read(events) {
  const items = events.filter((event) => event.type === "item.completed").map((event) => event.item);
  const failed = events.find((event) => event.type === "turn.failed");
  return {
    items,
    messages: items.filter((item) => item.type === "agent_message").map((item) => item.text),
    thread: events.find((event) => event.type === "thread.started")?.thread_id,
    // Why the turn failed, as users read it.
    reason: failed?.error.message,
    // What it printed on the way: each "Reconnecting" is a request that Codex sent again.
    errors: events.filter((event) => event.type === "error").map((event) => event.message),
  };
}

// That godex left nothing out of a request but this, and what only some providers know.
function assertLost(log, expected) {
  const notes = requests(log).flatMap((request) => request.notes?.split(", ") ?? []);
  const lost = notes.filter((note) => note.endsWith("=ignored") && !/^(prompt_cache_key|verbosity)=/.test(note));
  assert.deepEqual([...new Set(lost)], expected.map((path) => `${path}=ignored`), "notes of godex");
}

// What godex logged of each request.
export const requests = (log) =>
  log.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line)).filter((line) => line.message === "request");

// For who talks to a running codex: it ends with its scenario.
function guarded(child, trace, closing) {
  child.stderr.on("data", (chunk) => (trace.said += chunk));
  child.stdout.on("data", (chunk) => (trace.said += chunk));
  closing.push(() => kill(child));
  return child;
}

// The launcher has started the program itself: both are in a group of their own.
function kill(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has just ended.
  }
}

// That each request extends the one before, so that the provider can use what it has computed: same head (tools,
// parameters), and all earlier messages as they were, to the byte.
export function assertPrefixes(requests) {
  for (const [at, { raw }] of requests.entries()) {
    if (at === 0) continue;
    const before = requests[at - 1].raw;
    const shared = before.slice(0, before.lastIndexOf("]"));
    assert.ok(raw.startsWith(shared), `request ${at} does not extend the one before: ${difference(shared, raw)}`);
  }
}

function difference(shared, raw) {
  let at = 0;
  while (shared[at] === raw[at]) at += 1;
  return `${JSON.stringify(shared.slice(at - 60, at + 200))} became ${JSON.stringify(raw.slice(at - 60, at + 200))}`;
}
