// The page of a real godex, opened as its user opens it: with the link that `godex page` prints.
//
// GODEX is the program's path; CHROMIUM the browser's, where it is not on the path.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";

import { Chromium } from "./chromium.mjs";
import { until, wait } from "./page-tools.mjs";
import { godex, provider } from "./servers.mjs";

let browser, upstream, server, door, page;

/// `godex page` beside that server.
async function open({ home, env }) {
  const child = spawn(process.env.GODEX, ["page", "--no-open"], { cwd: home, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const link = await new Promise((resolve, reject) => {
    child.on("error", reject);
    ended.then((code) => reject(new Error(`godex page ended with ${code}`)));
    createInterface(child.stdout).once("line", resolve);
  });
  return { link, close: () => (child.kill("SIGINT"), ended) };
}

before(async () => {
  upstream = await provider();
  server = await godex(upstream, {}, { trace: { capture_payload: true } });
  door = await open(server);
  browser = await Chromium.start(["evil.example"]);
});

after(async () => {
  await browser?.close();
  assert.equal(await door?.close(), 0);
  for (const one of [server, upstream]) await one?.close();
});

describe("the page of a real godex", { concurrency: false }, () => {
  test("the link leads to it, once", async () => {
    page = await browser.open(door.link);
    // The link's own page leads on at once; what is asked of it meanwhile is lost.
    for (let tries = 0; tries < 100 && !(await page.evaluate(() => Boolean(document.getElementById("server"))).catch(() => false)); tries += 1) await wait(50);
    await until(page, "() => document.getElementById('server').textContent.includes('http://127.0.0.1')");
    assert.ok(!(await page.evaluate(() => location.href + document.cookie)).includes(door.link.split("/").at(-1)));
    // By such a path the page knows that it is behind `godex page`.
    assert.match(await page.evaluate(() => location.pathname), /^\/[\w-]{20,}\/$/);
    const second = await browser.open(door.link);
    assert.match(await second.evaluate(() => document.body.textContent), /works once/);
    await second.close();
  });

  // By another name, and by the same: the browser takes all ports of a machine for one site, and sends its cookies along.
  for (const host of ["evil.example", "127.0.0.1"]) {
    test(`another page, of ${host}, has no way in`, async () => {
      const { origin, pathname } = new URL(await page.evaluate(() => location.href));
      const other = await browser.open(`http://${host}:${server.port}/health`, "<!doctype html><title>other</title><body></body>");
      other.requests.clear();
      const read = await other.evaluate(async (base) => {
        const answers = [];
        const credentials = "include";
        for (const options of [{ credentials }, { mode: "no-cors", credentials }, { method: "POST", mode: "no-cors", credentials, body: "{}" }]) {
          for (const path of ["admin/status", "admin/playground/responses", ""]) {
            answers.push(await fetch(`${base}${path}`, options).then((answer) => answer.text(), () => ""));
          }
        }
        for (const tag of ["iframe", "script", "img"]) {
          const node = document.createElement(tag);
          node.src = `${base}${tag === "script" ? "page/app.js" : ""}`;
          document.body.append(node);
        }
        return answers.join("");
      }, `${origin}${pathname}`);
      await other.quiet();
      assert.equal(read, "");
      const statuses = [...other.requests.values()].filter(({ url }) => url.startsWith(origin)).map(({ status }) => status).filter(Boolean);
      assert.ok(statuses.length >= 6 && statuses.every((status) => status === 403), `${statuses}`);
      await other.close();
    });
  }

  test("the playground asks the provider and shows what it says", async () => {
    await page.evaluate(() => { location.hash = "#/playground"; });
    await until(page, "() => document.getElementById('p-model')");
    await page.evaluate(() => {
      document.getElementById("p-model").value = "up/m";
      document.querySelector(".ask").requestSubmit();
    });
    await until(page, "() => document.querySelector('.playground section').innerText.includes('the answer') && document.querySelector('.playground .chip.good')");
    assert.equal(upstream.asked.filter((body) => body.includes("three languages")).length, 1);
  });

  test("what was asked is in the list, with what became of it", async (context) => {
    const known = await page.evaluate(async () => (await fetch(new URL("admin/traces", location.href.split("#")[0]))).status);
    if (known === 404) return context.skip("this godex keeps no traces");
    await page.evaluate(() => { location.hash = "#/turns"; });
    await until(page, "() => document.querySelector('.turns tbody tr')?.innerText.includes('up/m')");
    await page.evaluate(() => document.querySelector(".turns tbody tr a").click());
    await until(page, "() => document.querySelector('.compare .pair:not(.titles)')");
    const text = await page.evaluate(() => document.getElementById("main").innerText);
    for (const expected of ["Say hello in three languages.", "the answer", "messages[0]", "Where the time went", "accepted"]) assert.ok(text.includes(expected), `${expected}: ${text}`);
    const pairs = await page.evaluate(() => [...document.querySelectorAll(".pair:not(.titles)")].map((pair) => pair.getAttribute("aria-label")));
    assert.deepEqual(pairs, ["input became messages[0]: as asked"]);
    for (const [hash, sign] of [["#/charts", ".charts .chart"], ["#/providers", ".cards .panel"], ["#/keys", ".panel"]]) {
      await page.evaluate((hash) => { location.hash = hash; }, hash);
      await until(page, "(sign) => document.querySelector(sign) && !document.querySelector('.nothing-title')?.textContent.includes('did not work')", sign);
    }
  });
});
