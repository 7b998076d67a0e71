// The catalogue that godex makes for Codex: a model of any name is worked with as it says there, and Codex knows it.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { delegates, TOLD } from "./delegation.mjs";
import { DONE, PATCHED, TASK, works } from "./forms.mjs";
import { GODEX, scenario, VERSIONS } from "./scenario.mjs";

const MODEL = "scripted/thinker";

const KEY_COMMAND = 'auth = { command = "echo", args = ["a-token"] }';

const print = (home) => promisify(execFile)(GODEX, ["codex", "catalog"], { cwd: join(home, "../godex"), env: { PATH: process.env.PATH, HOME: join(home, "../godex") } });

async function knows({ version, key, config, before = async () => {} }) {
  await scenario({ version, model: MODEL, settings: "models: [thinker]", key, config, script: works }, async (running) => {
    await before(running);
    const { code, messages, items } = await running.task(TASK);
    assert.equal(code, 0);
    assert.equal(messages.at(-1), DONE);
    assert.equal(await running.file("notes.txt"), PATCHED);
    // Else it says that it has no metadata of this model.
    assert.deepEqual(items.filter((item) => item.type === "error"), []);
    assert.equal(running.upstream.requests[0].body.model, "thinker");
  });
}

describe("the catalogue", { concurrency: 2 }, () => {
  for (const version of VERSIONS) {
    test(`codex ${version.name}: from a file`, () =>
      knows({
        version,
        config: 'model_catalog_json = "HOME/catalog.json"',
        before: async ({ home }) => writeFile(join(home, "catalog.json"), (await print(home)).stdout),
      }));

    test(`codex ${version.name}: sub-agents of a model from the server`, () =>
      scenario({ version, model: MODEL, settings: "models: [thinker]", key: KEY_COMMAND, script: delegates }, async ({ task }) => {
        const { code, messages } = await task("Let somebody find the password.");
        assert.equal(code, 0);
        assert.equal(messages.at(-1), TOLD);
      }));

    // Codex asks for it where a command gives it its key.
    test(`codex ${version.name}: from the server`, () =>
      knows({ version, key: KEY_COMMAND }));
  }
});
