// What pages in a real browser can do to a godex on the same machine: nothing, unless its configuration names them.
//
// GODEX is the program's path; CHROMIUM the browser's, where it is not on the path.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Chromium } from "./chromium.mjs";
import { PAGE, godex, naive, pages, provider } from "./servers.mjs";
import { WAYS, attempt } from "./ways.mjs";

// Names of other machines, as far as the browser knows.
const [EVIL, APP] = ["evil.example", "app.example"];

let browser, site, upstream, plain, configured;

before(async () => {
  [site, upstream] = [await pages(), await provider()];
  plain = await godex(upstream);
  browser = await Chromium.start([EVIL, APP]);
});

after(async () => {
  for (const one of [browser, plain, configured, site, upstream]) await one?.close();
});

// A request as a client that is no browser makes it.
async function ask(port, method, path, body) {
  const headers = body ? { "content-type": "application/json" } : {};
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: body && JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
}

// The equals sign is for forms.
const marked = (mark) => JSON.stringify({ model: "m", input: `${mark} =` });

// Tries all ways from this page on the server `at`; gives what each could read.
async function tryAll(page, at, id, mark) {
  const read = {};
  const own = `http://${EVIL}:${site.port}`;
  for (const [number, { name, run }] of WAYS.entries()) {
    read[name] = await page.evaluate(attempt(run), at, marked(`${mark} ${number}`), id, own);
  }
  await page.quiet();
  return read;
}

// All ways from this page come to nothing: no provider was asked, nothing is deleted, nothing was read.
async function comesToNothing(page, at, port) {
  const { status, body } = await ask(port, "POST", "/v1/responses", { model: "m", input: "a secret question" });
  assert.equal(status, 200);
  const before = upstream.asked.length;
  page.requests.clear();
  const read = await tryAll(page, at, body.id, "attack");
  const ours = [...page.requests.values()].filter(({ url }) => new URL(url).port === String(port));
  const wrong = [];
  for (const asked of upstream.asked.slice(before)) {
    const [, number] = /attack (\d+)/.exec(asked) ?? [];
    wrong.push(`${WAYS[number]?.name ?? asked}: the provider was asked`);
  }
  for (const { method, url, status } of ours) {
    if (method !== "OPTIONS" && status < 400) wrong.push(`${method} ${new URL(url).pathname}: ${status}`);
  }
  for (const [name, text] of Object.entries(read)) {
    // What says no may be read by who may read it.
    const refused = text.includes('"error"') && !text.includes("secret");
    if (text !== "" && !refused) wrong.push(`${name}: the page could read ${JSON.stringify(text.slice(0, 60))}`);
  }
  if ((await ask(port, "GET", `/v1/responses/${body.id}`)).status !== 200) wrong.push("the stored response is gone");
  assert.ok(ours.length > 20, `only ${ours.length} requests left the browser`);
  assert.deepEqual(wrong, []);
}

describe("pages", { concurrency: false }, () => {
  test("the ways that are tried do reach a server that takes everything", async () => {
    const server = await naive();
    const page = await browser.open(`http://${EVIL}:${site.port}/`);
    const missed = [];
    for (const [number, { name, run, arrives }] of WAYS.entries()) {
      const at = `http://127.0.0.1:${server.port}`;
      const before = server.heard.length;
      await page.evaluate(attempt(run), at, marked(`way ${number}`), "resp_1", `http://${EVIL}:${site.port}`);
      await page.quiet();
      const arrived = server.heard.slice(before).some(({ method }) => method !== "OPTIONS");
      if (arrived !== Boolean(arrives)) missed.push(`${name}: ${arrived ? "came" : "did not come"}`);
    }
    await page.close();
    await server.close();
    assert.deepEqual(missed, []);
  });

  // By address and by name; the last one is of the same machine as godex, but not of godex.
  for (const [from, to] of [
    [EVIL, "127.0.0.1"],
    [EVIL, "localhost"],
    ["127.0.0.1", "127.0.0.1"],
  ]) {
    test(`a page of ${from} does nothing to a godex at ${to}`, async () => {
      const page = await browser.open(`http://${from}:${site.port}/`);
      await comesToNothing(page, `http://${to}:${plain.port}`, plain.port);
      await page.close();
    });
  }

  test("a page whose name has become this machine's does nothing", async () => {
    const page = await browser.open(`http://${EVIL}:${plain.port}/`, PAGE);
    await comesToNothing(page, "", plain.port);
    await page.close();
  });

  test("a user may look at godex's health", async () => {
    for (const name of ["127.0.0.1", "localhost"]) {
      const page = await browser.open(`http://${name}:${plain.port}/health`);
      assert.match(await page.evaluate("() => document.body.textContent"), /"status":\s*"ok"/);
      await page.close();
    }
  });

  test("a page that the configuration names asks, reads streams and sees request ids", async () => {
    const origin = `http://${APP}:${site.port}`;
    configured ??= await godex(upstream, { cors: { origins: [origin] } });
    const page = await browser.open(`${origin}/`);
    const at = `http://127.0.0.1:${configured.port}/v1/responses`;
    const ask = async (at, more) => {
      const body = JSON.stringify({ model: "m", input: "Hello", ...more });
      const headers = { "content-type": "application/json", authorization: "Bearer unused" };
      const answer = await fetch(at, { method: "POST", headers, body });
      return { status: answer.status, id: answer.headers.get("x-request-id"), text: await answer.text() };
    };
    const whole = await page.evaluate(ask, at, {});
    assert.equal(whole.status, 200);
    assert.ok(whole.id);
    const response = JSON.parse(whole.text);
    assert.equal(response.output[0].content[0].text, "the answer");
    const streamed = await page.evaluate(ask, at, { stream: true });
    assert.ok(streamed.id);
    assert.match(streamed.text, /event: response\.output_text\.delta\n[^]*event: response\.completed\n/);
    const path = `${at}/${response.id}`;
    const plainly = async (path, method) => (await fetch(path, { method })).json();
    assert.equal((await page.evaluate(plainly, path, "GET")).id, response.id);
    assert.equal((await page.evaluate(plainly, path, "DELETE")).deleted, true);
    await page.close();
  });

  for (const from of [EVIL, "127.0.0.1"]) {
    test(`a page of ${from} does nothing to a godex that names another`, async () => {
      configured ??= await godex(upstream, { cors: { origins: [`http://${APP}:${site.port}`] } });
      const page = await browser.open(`http://${from}:${site.port}/`);
      await comesToNothing(page, `http://127.0.0.1:${configured.port}`, configured.port);
      await page.close();
    });
  }
});
