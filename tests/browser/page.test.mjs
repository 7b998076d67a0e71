// The operator's page in a real browser, in front of a made-up admin listener, so that everything can be shown. What is from
// others must stay text, whatever it is.
//
// CHROMIUM is the browser's path, where it is not on the path; AXE the file of axe-core; SHOTS a folder for pictures.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";

import { Chromium } from "./chromium.mjs";
import { pageServer, hostile } from "./page-server.mjs";
import { many } from "./page-many.mjs";
import { colours, focused, press, size, type, until, visit, wait } from "./page-tools.mjs";
import { PAYLOADS } from "./payloads.mjs";

let browser, server, page;

const VIEWS = [["#/turns", ".turns tbody tr"], ["#/turns/190", ".tree li"], ["#/charts", ".charts .chart"], ["#/providers", ".cards .panel"], ["#/keys", ".totals"], ["#/playground", ".ask"]];

// Counts whatever runs that is not the page's own, and whatever the browser has to stop.
const WATCH = `
  window.__count = { ran: 0, refused: [] };
  window.__ran = () => { window.__count.ran += 1; };
  for (const name of ["alert", "confirm", "prompt", "open", "print"]) window[name] = () => { window.__count.ran += 1; };
  addEventListener("securitypolicyviolation", (event) => window.__count.refused.push(event.violatedDirective + " " + event.blockedURI));
  addEventListener("error", (event) => window.__count.refused.push("error " + event.message));
  addEventListener("unhandledrejection", (event) => window.__count.refused.push("rejected " + event.reason));
`;

async function open(hash = "#/turns", sign = ".turns tbody tr") {
  page = await browser.open("about:blank");
  await page.send("Page.addScriptToEvaluateOnNewDocument", { source: WATCH });
  await size(page, 1360);
  await page.go(`${server.url}${hash}`);
  await until(page, "(sign) => document.querySelector(sign)", sign);
  return page;
}

// The page anew, in the same tab.
async function reload(hash) {
  await page.go("about:blank");
  await page.go(`${server.url}${hash}`);
}

const clean = async () => assert.deepEqual(await page.evaluate(() => window.__count), { ran: 0, refused: [] });
const rows = () => page.evaluate(() => document.querySelectorAll(".turns tbody tr").length);
const shot = async (name) => {
  if (!process.env.SHOTS) return;
  const { cssContentSize: { height } } = await page.send("Page.getLayoutMetrics");
  const { data } = await page.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: height < 5000 });
  await writeFile(join(process.env.SHOTS, `${name}.png`), Buffer.from(data, "base64"));
};

before(async () => {
  server = await pageServer();
  browser = await Chromium.start([]);
});

after(async () => {
  for (const one of [browser, server]) await one?.close();
});

afterEach(async () => {
  await page?.close();
  page = undefined;
  Object.assign(server.state, { mangle: (value) => value, token: undefined, fail: undefined, empty: false, plain: false, silent: false, off: false, count: 190, text: "Hello! Bonjour! Hallo!" });
});

// What acts instead of being seen is shown as an escape.
const visible = (text) =>
  text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu, (act) => `\\u{${act.codePointAt(0).toString(16)}}`);

describe("the page", { concurrency: false }, () => {
  test("lists turns, with new ones by themselves and older ones when asked", async () => {
    await open();
    assert.equal(await rows(), 50);
    const first = await page.evaluate(() => document.querySelector(".turns tbody tr").innerText);
    for (const expected of ["completed", "glm-5", "zhipu/glm-5", "$", "ms"]) assert.ok(first.includes(expected), `${expected}: ${first}`);
    await until(page, "() => document.querySelectorAll('.strip .chart').length === 6");
    server.state.count += 2;
    await until(page, "() => document.querySelectorAll('.turns tbody tr').length === 52");
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".turns tbody tr")].slice(0, 3).map((row) => row.dataset.number)), ["192", "191", "190"]);
    // Nobody looks for more while it is not live.
    await page.evaluate(() => document.querySelector(".live").click());
    const before = server.asked.filter(({ url }) => url.includes("after=")).length;
    server.state.count += 1;
    await wait(2600);
    assert.equal(server.asked.filter(({ url }) => url.includes("after=")).length, before);
    await page.evaluate(() => [...document.querySelectorAll("button")].find((one) => one.textContent === "Older ones").click());
    await until(page, "() => document.querySelectorAll('.turns tbody tr').length === 102");
    await clean();
  });

  test("goes on where numbers begin anew, and says that nobody answers", async () => {
    await open();
    server.state.count = 3;
    // It is asked for the newest, and then for those after that.
    await until(page, "() => performance.getEntriesByType('resource').some(({ name }) => name.endsWith('after=3'))");
    server.state.count = 5;
    await until(page, "() => document.querySelectorAll('.turns tbody tr').length === 52");
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".turns tbody tr")].slice(0, 3).map((row) => row.dataset.number)), ["5", "4", "190"]);
    server.state.silent = true;
    const live = () => page.evaluate(() => getComputedStyle(document.querySelector(".live"), "::after").content);
    assert.equal(await live(), "none");
    await until(page, "() => document.body.classList.contains('lost')");
    assert.ok((await live()).includes("no answer"));
    // What is waited for is not shown as if it were there.
    await page.evaluate(() => document.querySelector(".turns tbody tr a").click());
    await until(page, "() => document.getElementById('main').hasAttribute('aria-busy') && getComputedStyle(document.getElementById('main'), '::before').visibility === 'visible'");
    server.state.answer();
    await until(page, "() => document.querySelector('.compare .pair') && !document.body.classList.contains('lost')");
    await clean();
  });

  test("back in the list, the turn one comes from has the focus", async () => {
    await open();
    await page.evaluate(() => [...document.querySelectorAll(".turns tbody tr a")][7].click());
    await until(page, "() => document.querySelector('.compare .pair')");
    const number = await page.evaluate(() => location.hash.split("/").at(-1));
    await page.evaluate(() => history.back());
    await until(page, "(number) => document.activeElement.closest('tr')?.dataset.number === number", number);
    await page.evaluate(() => { location.hash = "#/turns/7"; });
    await until(page, "() => document.querySelector('.compare .pair')");
    await page.evaluate(() => document.querySelector(".back a").click());
    await until(page, "() => document.querySelector('.turns tbody tr') && document.activeElement.id === 'main'");
    await clean();
  });

  many({ open: (...what) => open(...what), clean: () => clean(), state: () => server.state });

  test("what the address says and nobody reads is told", async () => {
    await open();
    for (const [hash, expected] of [
      ["#/turns?since=1h", "There is no `since` in the address of this view: span, before, model"], ["#/turns/190?x=1", "There is no `x` in the address of this view."],
      ["#/turns?span=2h", "`span` is one of 15m, 1h"], ["#/charts?model=fast", "There is no `model`"], ["#/charts?span=all", "`span` is one of"],
      ["#/keys?days=2", "`days` is one of 1, 7, 30, 90"], ["#/providers?days=2", "There is no `days`"],
    ]) {
      await page.evaluate((hash) => { location.hash = hash; }, hash);
      await until(page, "(expected) => document.querySelector('.nothing')?.textContent.includes(expected)", expected);
    }
    await page.evaluate(() => { location.hash = "#/turns?since=1h"; });
    await until(page, "() => document.querySelector('.nothing a')?.getAttribute('href') === '#/turns'");
    await page.evaluate(() => document.querySelector(".nothing a").click());
    await until(page, "() => document.querySelector('.turns tbody tr')");
    await clean();
  });

  test("filters, in an address that can be kept", async () => {
    await open();
    await page.evaluate(() => document.querySelector("[name=errors]").click());
    await until(page, "() => location.hash.includes('errors=true') && !document.getElementById('main').hasAttribute('aria-busy')");
    assert.ok(await page.evaluate(() => [...document.querySelectorAll(".turns tbody tr")].every((row) => row.querySelector(".error-code"))));
    await page.evaluate(() => {
      document.querySelector("[name=model]").value = "glm-5";
      document.querySelector("form.filters").requestSubmit();
    });
    await until(page, "() => location.hash.includes('model=glm-5') && !document.getElementById('main').hasAttribute('aria-busy') && document.querySelector('.turns tbody tr, .nothing')");
    assert.ok(server.asked.some(({ url }) => url.includes("errors=true") && url.includes("model=glm-5") && url.includes("since=")));
    await page.evaluate(() => { location.hash = "#/turns?model=nobody"; });
    await until(page, "() => document.querySelector('.nothing')?.textContent.includes('No turn fits')");
    server.state.empty = true;
    await page.evaluate(() => { location.hash = "#/turns"; });
    await until(page, "() => document.querySelector('.nothing')?.textContent.includes('No turns yet')");
    await clean();
  });

  test("a turn: what was asked beside what was sent and what came back", async () => {
    await open("#/turns/190", ".compare .pair");
    const pairs = await page.evaluate(() => [...document.querySelectorAll(".pair:not(.titles)")].map((pair) => pair.getAttribute("aria-label")));
    assert.deepEqual(pairs, [
      "instructions became messages[0]: as asked", "past[0] became messages[1]: as asked", "past[1] became messages[2]: as asked", "input[0] became messages[3]: as asked",
      "input[1] became messages[4]: as asked", "input[2] became messages[5]: as asked", "nothing became messages[6]: godex's own", "input[3] became nothing: left out",
      "tools[0] became tools[0]: as asked", "tools[1] became tools[1]: changed",
    ]);
    // Both sides of a pair are at the same height.
    const apart = await page.evaluate(() => [...document.querySelectorAll(".pair:not(.titles)")].map((pair) => {
      const [one, other] = [".asked .block", ".sent .block"].map((sign) => pair.querySelector(sign)?.getBoundingClientRect().top);
      return one === undefined || other === undefined ? 0 : Math.abs(one - other);
    }));
    assert.ok(apart.every((distance) => distance < 1), `${apart}`);
    const text = await page.evaluate(() => document.getElementById("main").innerText);
    for (const expected of ["macOS has no libstdc++", "tool_degraded", "the reasoning is of another provider", "Waiting for the first byte", "zhipu/glm-5", "overloaded", "response.output_text.delta", "web_search", "service_tier", "$0.0019"]) {
      assert.ok(text.includes(expected), expected);
    }
    assert.ok(await page.evaluate(() => document.querySelectorAll(".timeline rect").length >= 7));
    await visit(page, "#/turns/99999", ".nothing");
    await clean();
  });

  test("an input that is a text is one row, sent as asked, and a turn without a stream has no events", async () => {
    server.state.plain = true;
    await open("#/turns/190", ".compare .pair");
    const pairs = await page.evaluate(() => [...document.querySelectorAll(".pair:not(.titles)")].map((pair) => pair.getAttribute("aria-label")));
    assert.deepEqual(pairs, ["instructions became system[0]: as asked", "input became messages[0]: as asked"]);
    const text = await page.evaluate(() => document.getElementById("main").innerText);
    for (const wrong of ["left out", "is not known here", "Chat Completions", "are kept with trace.capture_payload"]) assert.ok(!text.includes(wrong), `${wrong}: ${text}`);
    assert.ok(text.includes("The answer was not streamed"), text);
    await clean();
  });

  test("the axis of times has round steps, and what it says is where it stands", async () => {
    for (const [took, expected] of [
      [6.2, ["0", "2 ms", "4 ms", "6 ms"]], [5, ["0", "2 ms", "4 ms"]], [0.7, ["0", "0.2 ms", "0.4 ms", "0.6 ms"]], [2400, ["0", "0.5 s", "1 s", "1.5 s", "2 s"]],
      [95_000, ["0", "20 s", "40 s", "1 min", "1 min 20 s"]], [400_000, ["0", "2 min", "4 min", "6 min"]],
    ]) {
      server.state.mangle = (value) => (value?.payloads ? { ...value, took_ms: took, times: { opened_ms: took / 10, first_byte_ms: took / 2, last_byte_ms: took } } : value);
      await open("#/turns/190", ".timeline .axis");
      const seen = await page.evaluate(() => {
        const [axis, line] = [".timeline .axis svg", ".timeline .bar-line"].map((sign) => document.querySelector(sign));
        return { said: [...axis.querySelectorAll("text")].map((text) => text.textContent), places: [...axis.querySelectorAll("text")].map((text) => text.getAttribute("x")), lines: [...line.querySelectorAll("line")].map((one) => one.getAttribute("x1")) };
      });
      assert.deepEqual(seen.said, expected, `${took}`);
      assert.deepEqual(seen.places, seen.lines);
      assert.equal(Number(seen.places[1].slice(0, -1)).toFixed(3), ((100 * { ms: 1, s: 1000, min: 60_000 }[expected[1].split(" ")[1]] * parseFloat(expected[1])) / took).toFixed(3));
      await clean();
      await page.close();
    }
    page = undefined;
  });

  test("a tree of turns, with branches and the way to each", async () => {
    await open("#/turns/190", ".tree li");
    const tree = await page.evaluate(() => ({
      nodes: document.querySelectorAll(".tree circle").length, edges: document.querySelectorAll(".tree path").length, lanes: new Set([...document.querySelectorAll(".tree circle")].map((node) => node.getAttribute("cx"))).size,
      here: document.querySelector(".tree [aria-current]").getAttribute("href"), links: document.querySelectorAll(".tree a").length,
    }));
    assert.deepEqual(tree, { nodes: 8, edges: 7, lanes: 3, here: "#/turns/190", links: 8 });
    await page.evaluate(() => document.querySelector(".tree a").click());
    await until(page, "() => location.hash === '#/turns/187' && document.querySelector('h1')?.textContent.includes('187')");
    await clean();
  });

  test("of more branches than there is room for, each says what it continues", async () => {
    server.state.fans = true;
    await open("#/turns/190", ".tree li");
    server.state.fans = false;
    const tree = await page.evaluate(() => ({
      nodes: document.querySelectorAll(".tree circle").length, edges: document.querySelectorAll(".tree path").length,
      said: [...document.querySelectorAll(".tree-parent")].map((link) => `${link.textContent} ${link.getAttribute("href")}`),
      refused: document.querySelector(".tree li:nth-child(2)").textContent,
    }));
    assert.deepEqual(tree, { nodes: 19, edges: 11, said: Array(7).fill("continues 190 #/turns/190"), refused: tree.refused });
    assert.match(tree.refused, /191local429 · rate_limit_exceeded · [\d.]+ m?s$/);
    await size(page, 400, 800);
    assert.ok(await page.evaluate(() => [...document.querySelectorAll(".tree-parent")].every((link) => {
      const { left, right, width } = link.getBoundingClientRect();
      return width > 50 && left >= 0 && right <= innerWidth;
    })));
    assert.ok(await page.evaluate(() => [...document.querySelectorAll(".tree .number")].every((number) => number.scrollWidth <= number.clientWidth && number.clientWidth > 20)));
    await clean();
  });

  test("the playground sends, streams, stops and says what is wrong", async () => {
    await open("#/playground", ".ask");
    await until(page, "() => document.getElementById('p-model').value !== ''");
    assert.equal(await page.evaluate(() => document.getElementById("p-model").value), "deepseek/deepseek-chat");
    await page.evaluate(() => document.getElementById("p-input").focus());
    await press(page, "Enter", 2);
    await until(page, "() => document.querySelector('.playground section').innerText.includes('Hello! Bonjour! Hallo!') && document.querySelector('.playground .chip.good')");
    const sent = JSON.parse(server.asked.findLast(({ url }) => url.includes("playground")).body);
    assert.deepEqual([sent.model, sent.stream, sent.store], ["deepseek/deepseek-chat", true, true]);
    // It can go on from there.
    await page.evaluate(() => [...document.querySelectorAll(".ask .check")].at(-1).click());
    await page.evaluate(() => document.querySelector(".ask").requestSubmit());
    await until(page, "() => document.querySelector('.playground .chip.good') && document.querySelector('.ask [type=submit]:not(:disabled)')");
    assert.equal(JSON.parse(server.asked.findLast(({ url }) => url.includes("playground")).body).previous_response_id, "resp_0190b7c1d2");
    for (const [more, expected] of [["{", "not sent"], ["[1]", "an object is wanted"]]) {
      await page.evaluate((more) => {
        document.getElementById("p-more").value = more;
        document.querySelector(".ask").requestSubmit();
      }, more);
      await until(page, "(expected) => document.querySelector('.playground .told').textContent.includes(expected)", expected);
    }
    server.state.text = "x".repeat(20_000);
    await page.evaluate(() => {
      document.getElementById("p-more").value = "";
      document.querySelector(".ask").requestSubmit();
    });
    await until(page, "() => document.querySelector('.playground pre')?.textContent.length > 60");
    await page.evaluate(() => [...document.querySelectorAll(".ask button")].at(-1).click());
    await until(page, "() => document.querySelector('.playground .told').textContent.includes('stopped')");
    server.state.fail = "the provider is <b>gone</b>";
    await page.evaluate(() => document.querySelector(".ask").requestSubmit());
    await until(page, "() => document.querySelector('.playground .told').textContent.includes('is <b>gone</b>')");
    // Also what failed has a trace.
    assert.equal(await page.evaluate(() => document.querySelector(".playground .told a")?.getAttribute("href")), "#/turns/req_0190b7c1d2");
    await clean();
  });

  test("providers, keys, usage and charts say what there is", async () => {
    await open();
    for (const [hash, sign, expected] of [
      ["#/providers", ".cards .panel", ["deepseek-reasoner", "tried again", "failing", "not asked yet", "left out", "key missing", "http://127.0.0.1:11434/v1"]],
      ["#/keys", ".totals", ["…x9Qd", "revoked", "50usd/month", "$7.41", "The price of 118"]],
      ["#/charts", ".charts .chart", ["Requests", "First token", "95th percentile", "The same as a table"]],
    ]) {
      await visit(page, hash, sign);
      const text = await page.evaluate(() => document.getElementById("main").innerText);
      for (const part of expected) assert.ok(text.includes(part), `${hash}: ${part}`);
    }
    assert.ok(await page.evaluate(() => document.querySelectorAll(".charts svg rect").length > 50));
    await clean();
  });

  test("names that clients make up take little room, and what matters comes first", async () => {
    const junk = (number) => ({ model: `junk-${String(number).padStart(4, "0")}-${"x".repeat(5000)}`, listed: false, state: number % 2 ? "open" : "closed", failures: number % 3, sent: 1, accepted: 0 });
    server.state.mangle = (value) => (value?.data?.[0]?.models ? { data: [{ ...value.data[0], models: [...Array.from({ length: 512 }, (_, index) => junk(index)), ...value.data[0].models.slice(1),
      { model: "answers", listed: false, state: "closed", failures: 0, sent: 9, accepted: 9 }] }, ...value.data.slice(1)] } : value);
    await open("#/providers", ".cards .panel");
    await size(page, 400, 800);
    const look = () => page.evaluate(() => {
      const [card] = document.querySelectorAll(".cards .panel");
      const names = [...card.querySelectorAll("tbody b")];
      return { names: names.map((one) => one.textContent), longest: Math.max(...names.map((one) => one.title.length)), high: document.documentElement.scrollHeight, button: card.querySelector("button").textContent };
    });
    const first = await look();
    assert.deepEqual(first.names.slice(0, 3), ["deepseek-reasoner", "deepseek-chat", "answers"]);
    assert.deepEqual([first.names.length, first.button, first.longest], [20, "Show all 515", 5010]);
    assert.ok(first.names.every((one) => one.length < 100) && first.high < 6000, `${first.high}`);
    await page.evaluate(() => document.querySelector(".cards button").focus());
    await press(page, "Enter");
    assert.equal((await look()).names.length, 515);
    // What is asked anew meanwhile takes neither that nor the focus away.
    const before = server.asked.filter(({ url }) => url.includes("providers")).length;
    for (let tries = 0; tries < 100 && server.asked.filter(({ url }) => url.includes("providers")).length === before; tries += 1) await wait(100);
    await wait(200);
    assert.deepEqual([(await look()).names.length, await focused(page)], [515, "Show 20"]);
    await press(page, "Enter");
    assert.equal((await look()).names.length, 20);
    // Nor are they offered.
    await visit(page, "#/playground", ".ask");
    await until(page, "() => document.getElementById('p-model').value !== ''");
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("#models option")].map((one) => one.value).filter((one) => one.startsWith("deepseek/"))), ["deepseek/deepseek-chat", "deepseek/deepseek-reasoner", "deepseek/answers"]);
    await clean();
  });

  test("without traces it is said, of a turn as well", async () => {
    server.state.off = true;
    await open("#/playground", ".ask");
    await until(page, "() => document.getElementById('p-model').value !== ''");
    await page.evaluate(() => document.querySelector(".ask").requestSubmit());
    await until(page, "() => document.querySelector('.playground .told a')");
    await page.evaluate(() => document.querySelector(".playground .told a").click());
    for (const hash of [undefined, "#/turns"]) {
      if (hash) await page.evaluate((hash) => { location.hash = hash; }, hash);
      await until(page, "() => document.querySelector('.nothing')?.textContent.startsWith('Traces are off.No traces are kept')");
    }
    await clean();
  });

  test("one value alone is seen in a chart, and its headline is the highest", async () => {
    server.state.mangle = (value) => (value?.step_ms ? { ...value, data: [3, 30, 31].map((at, index) => ({ ...value.data[at], took_p50_ms: 10 + index, took_p95_ms: 400 - index })) } : value);
    await open("#/charts", ".charts .chart");
    const [duration, token] = await page.evaluate(() => [3, 4].map((at) => {
      const chart = document.querySelectorAll(".charts .chart")[at];
      const lengths = [...chart.querySelectorAll(".line")].map((line) => [line.classList.contains("dots"), line.getAttribute("d").split("M").length - 1]);
      return { text: chart.querySelector(".readout").textContent, lengths, top: chart.querySelectorAll(".grid[d^='M0 0H']").length };
    }));
    assert.deepEqual(duration, { text: "400 ms p95, highest", lengths: [[false, 1], [true, 1], [false, 1], [true, 1]], top: 1 });
    assert.match(token.text, /^\d+ ms median, highest$/);
    await clean();
  });

  test("what has to be set to compare is said as it is", async () => {
    for (const [store, expected] of [[false, "trace.capture_payload: true and trace.capture_unstored: true"], [true, "With trace.capture_payload: true later turns can be."]]) {
      server.state.mangle = (value) => {
        if (value?.source) value.source = "none";
        if (value?.request) value.request = { ...value.request, store };
        return value;
      };
      await open("#/turns/190", ".tree li");
      await until(page, "(expected) => document.getElementById('main').innerText.includes(expected)", expected);
      await clean();
      await page.close();
    }
    page = undefined;
  });

  test("a port's token is asked for once, and stays in the tab", async () => {
    server.state.token = "the-token-of-the-operator";
    await open("", "dialog[open]");
    for (const [given, sign] of [["wrong-token", "#door-problem:not([hidden])"], ["the-token-of-the-operator", ".turns tbody tr"]]) {
      await page.evaluate(() => document.getElementById("door-token").focus());
      await type(page, given);
      await press(page, "Enter");
      await until(page, "(sign) => document.querySelector(sign)", sign);
    }
    await reload("#/keys");
    await until(page, "() => document.querySelector('.totals')");
    assert.ok(!(await page.evaluate(() => JSON.stringify({ ...localStorage }) + document.cookie + location.href)).includes("the-token"));
    await clean();
  });

  test("behind `godex page` no token is asked for that could not help", async () => {
    await open();
    await page.go("about:blank");
    await page.go(`${server.url}${"s".repeat(27)}/#/turns`);
    await until(page, "() => document.querySelector('.turns tbody tr')");
    server.state.token = "the-token-of-the-operator";
    await until(page, "() => document.querySelector('dialog[open]')");
    assert.match(await page.evaluate(() => document.querySelector("dialog[open]").innerText), /another admin token[^]*End it with Ctrl-C, start it again/);
    await press(page, "Enter");
    await until(page, "() => document.querySelector('#stale[open]')");
    server.state.token = undefined;
    await press(page, "Enter");
    await wait(300);
    assert.equal(await page.evaluate(() => document.querySelector("dialog[open]")), null);
    server.state.count += 1;
    await until(page, "() => document.querySelector('.turns tbody tr').dataset.number === '191'");
    await clean();
  });

  test("everything can be reached with the keyboard alone", async () => {
    await open();
    await press(page, "Tab");
    assert.equal(await focused(page), "Skip to the content");
    assert.ok(await page.evaluate(() => document.activeElement.getBoundingClientRect().top >= 0));
    await press(page, "Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    const names = [];
    for (let tabs = 0; tabs < 40 && !(await page.evaluate(() => document.activeElement.closest(".turns tbody"))); tabs += 1) {
      await press(page, "Tab");
      names.push(await focused(page));
      const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
      assert.notEqual(ring, "none", `no focus is seen on ${names.at(-1)}`);
    }
    for (const expected of ["Live", "Model", "Errors only", "Filter"]) assert.ok(names.some((name) => name.startsWith(expected)), `${expected}: ${names}`);
    const at = () => page.evaluate(() => document.activeElement.closest("tr")?.dataset.number);
    const [first] = [await at()];
    await press(page, "ArrowDown");
    await press(page, "ArrowDown");
    assert.equal(Number(await at()), Number(first) - 2);
    await press(page, "ArrowUp");
    assert.equal(Number(await at()), Number(first) - 1);
    await press(page, "End");
    await press(page, "Home");
    assert.equal(await at(), first);
    await press(page, "Enter");
    await until(page, "() => location.hash.startsWith('#/turns/') && document.querySelector('.compare .pair')");
    // Pairs can be looked at one after the other, and the rest is reached behind them.
    const seen = [];
    for (let tabs = 0; tabs < 60; tabs += 1) {
      await press(page, "Tab");
      seen.push(await focused(page));
    }
    for (const expected of ["Asked, sent, answered", "instructions became messages[0]", "As JSON"]) assert.ok(seen.some((name) => name.startsWith(expected)), `${expected}: ${seen}`);
    await clean();
  });

  test("light and dark follow the system, or the user's choice", async () => {
    await open();
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const seen = [];
    for (const [system, choice] of [["light", "auto"], ["dark", "auto"], ["dark", "light"], ["light", "dark"]]) {
      await colours(page, system);
      await page.evaluate((choice) => {
        const select = document.getElementById("theme");
        select.value = choice;
        select.dispatchEvent(new Event("change"));
      }, choice);
      seen.push(await ground());
    }
    assert.notEqual(seen[0], seen[1]);
    assert.deepEqual([seen[2], seen[3]], [seen[0], seen[1]]);
    await reload("#/turns");
    assert.equal(await ground(), seen[1], "the choice stays");
    await page.evaluate(() => localStorage.clear());
    await clean();
  });

  test("a name without an end stays in its table, and short values are in one piece", async () => {
    server.state.mangle = (value) => {
      if (value?.request) value.request = { ...value.request, store: false, ["x".repeat(100)]: "y".repeat(100) };
      return value;
    };
    await open("#/turns/190", ".parameters");
    for (const width of [1280, 400]) {
      await size(page, width, 800);
      const { wanted, shown, lines } = await page.evaluate(() => {
        const value = [...document.querySelectorAll(".parameters .code")].find((one) => one.textContent === "false");
        return { wanted: document.documentElement.scrollWidth, shown: document.documentElement.clientWidth, lines: value.getClientRects().length };
      });
      assert.ok(wanted <= shown, `${wanted} of ${shown}`);
      assert.equal(lines, 1);
    }
    await clean();
  });

  for (const width of [400, 320, 768, 1360]) {
    test(`nothing is wider than a screen of ${width}`, async () => {
      await open();
      await size(page, width, 800);
      for (const [hash, sign] of VIEWS) {
        await visit(page, hash, sign);
        const [shown, wanted] = await page.evaluate(() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
        assert.ok(wanted <= shown, `${hash} wants ${wanted} of ${shown}`);
      }
      await clean();
    });
  }

  for (const [theme, width] of [["light", 1360], ["dark", 1360], ["light", 400]]) {
    test(`axe finds nothing serious in ${theme}, at ${width}`, async () => {
      const axe = await readFile(process.env.AXE, "utf8");
      await open();
      await colours(page, theme);
      await size(page, width);
      for (const [hash, sign] of VIEWS) {
        await visit(page, hash, sign);
        await wait(150);
        await shot(`${theme}-${width}-${hash.replace(/\W+/g, "-")}`);
        const found = await page.evaluate(`async () => {
          if (!window.axe) { ${axe} }
          const { violations } = await axe.run(document, { resultTypes: ["violations"] });
          return violations.filter(({ id, impact }) => ["serious", "critical"].includes(impact) || id === "empty-table-header").map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).join(" | "));
        }`);
        assert.deepEqual(found, [], hash);
      }
    });
  }

  // First with every string another's, then with those kept that decide where the others are shown.
  for (const [name, kept] of [["every text", []], ["every text in its place", ["type", "role", "item", "to", "source", "began_at", "object", "outcome", "state", "at"]]]) {
    test(`${name} that others wrote stays text`, async () => {
      assert.ok(PAYLOADS.length >= 60);
      await open();
      let payload = "";
      server.state.mangle = (value) => hostile(value, payload, kept);
      const foreign = "main script, main img, main iframe, main object, main embed, main base, main style, main link, main meta, main video, main audio, main marquee, main svg a, main svg script, main foreignObject, main [onerror], main [onload], main [onfocus], main [style], main a:not([href^='#'])";
      for (payload of PAYLOADS) {
        for (const [hash, sign] of VIEWS) {
          await visit(page, hash, sign);
          if (hash === "#/playground") {
            await page.evaluate(() => {
              document.getElementById("p-model").value = "m";
              document.querySelector(".ask").requestSubmit();
            });
            await until(page, "() => document.querySelector('.ask [type=submit]:not(:disabled)') && document.querySelector('.event-list li')");
          }
          const seen = await page.evaluate((foreign) => {
            // Whatever can be opened and pointed at.
            for (const one of document.querySelectorAll("main details")) one.open = true;
            for (const one of document.querySelectorAll("main td, main .plot, main .pair")) one.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
            return { count: window.__count, foreign: [...document.querySelectorAll(foreign)].map((one) => one.outerHTML.slice(0, 120)), title: document.title };
          }, foreign);
          assert.deepEqual(seen.count, { ran: 0, refused: [] }, `${hash}: ${payload}`);
          assert.deepEqual(seen.foreign, [], `${hash}: ${payload}`);
          if (kept.length > 0 && hash === "#/turns/190") {
            const shown = await page.evaluate(() => document.getElementById("main").textContent);
            assert.ok(shown.includes(visible(payload)), `it is shown as it is: ${payload}`);
          }
        }
      }
      // An address is others' text, too.
      for (payload of PAYLOADS) {
        for (const hash of [`#/turns/${payload}`, `#/turns/${encodeURIComponent(payload)}`, `#/turns?model=${encodeURIComponent(payload)}`, `#/${payload}`]) {
          await page.evaluate((hash) => { location.hash = hash; }, hash);
          await until(page, "() => !document.getElementById('main').hasAttribute('aria-busy')");
        }
      }
      await clean();
    });
  }

  test("the hostile texts do run where markup is made of them", async () => {
    await open();
    // Without a policy, as innerHTML: what the page never does.
    const bare = await browser.open("about:blank");
    await bare.evaluate(`() => { ${WATCH} }`);
    const ran = await bare.evaluate(async (payloads) => {
      const worked = [];
      for (const payload of payloads) {
        const before = window.__count.ran;
        const node = document.createElement("div");
        document.body.append(node);
        node.innerHTML = payload;
        await new Promise((resolve) => setTimeout(resolve, 15));
        if (window.__count.ran > before) worked.push(payload);
        node.remove();
      }
      return worked.length;
    }, PAYLOADS.filter((payload) => !/refresh|base href|frameset/.test(payload)));
    await bare.close();
    assert.ok(ran >= 15, `only ${ran} did anything`);
  });
});
