// The list of more turns than it shows at once: those that come faster than it asks, those that are older, and the way back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { focused, press, size, until, wait } from "./page-tools.mjs";

const numbers = (page) => page.evaluate(() => [...document.querySelectorAll(".turns tbody tr[data-number]")].map((row) => Number(row.dataset.number)));
const told = (page) => page.evaluate(() => document.querySelector(".head .told").textContent);
const count = (page, wanted) => until(page, "(wanted) => document.querySelectorAll('.turns tbody tr[data-number]').length === wanted", wanted);
const down = (from, length) => Array.from({ length }, (_, index) => from - index);

/// Presses it where it is visible, by its words.
const push = (page, words) => page.evaluate((words) => {
  const found = [...document.querySelectorAll("main button, main a")].find((one) => one.textContent.startsWith(words) && one.offsetParent);
  if (!found) throw new Error(`there is no ${words}`);
  found.click();
}, words);

async function more(page, times) {
  for (let all = (await numbers(page)).length + 50; times > 0; times -= 1, all += 50) {
    await push(page, "Older ones");
    await count(page, all);
  }
}

export function many({ open, clean, state }) {
  test("those that come faster than it asks: the newest are on top, and what is between is told and can be had", async () => {
    const page = await open();
    state().count += 170;
    await until(page, "() => document.querySelector('.turns tbody tr').dataset.number === '360'");
    assert.deepEqual(await numbers(page), [...down(360, 50), ...down(190, 50)]);
    const gap = () => page.evaluate(() => {
      const row = document.querySelector(".turns .gap");
      return row && [row.previousElementSibling.dataset.number, row.querySelector("span").textContent, row.nextElementSibling.dataset.number];
    });
    assert.deepEqual(await gap(), ["311", "Not shown here: 120 that came meanwhile.", "190"]);
    await page.evaluate(() => document.querySelector(".gap button").focus());
    await press(page, "Enter");
    await count(page, 150);
    assert.deepEqual(await gap(), ["261", "Not shown here: 70 that came meanwhile.", "190"]);
    assert.equal(await focused(page), "Show more of them");
    for (const all of [200, 220]) {
      await press(page, "Enter");
      await count(page, all);
    }
    assert.deepEqual([await gap(), await numbers(page)], [null, down(360, 220)]);
    assert.equal(await page.evaluate(() => document.activeElement.closest("tr").dataset.number), "191");
    await more(page, 1);
    assert.deepEqual(await numbers(page), down(360, 270));
    await clean();
  });

  test("of those that fit filters nobody knows how many are between", async () => {
    const page = await open("#/turns?model=glm-5");
    state().count += 400;
    await until(page, "() => document.querySelector('.turns .gap')");
    assert.match(await page.evaluate(() => document.querySelector(".gap").textContent), /^Not shown here: some that came meanwhile/);
    await push(page, "Show more of them");
    await until(page, "() => !document.querySelector('.gap')");
    const shown = await numbers(page);
    assert.deepEqual(shown, shown.map((_, index) => 590 - 4 * index));
    await clean();
  });

  test("older ones go on for as long as there are any, in an address that can be kept", async () => {
    state().count = 1130;
    const page = await open();
    await more(page, 9);
    assert.deepEqual(await numbers(page), down(1130, 500));
    assert.equal(await page.evaluate(() => [...document.querySelectorAll(".more > *")].filter((one) => one.offsetParent).map((one) => one.textContent).join()), "500 are shown at once. Go on with older ones");
    await push(page, "Go on with older ones");
    await until(page, "() => location.hash === '#/turns?before=631' && document.querySelector('.turns tbody tr')?.dataset.number === '630'");
    assert.match(await told(page), /50 shown · before turn 631/);
    assert.equal(await page.evaluate(() => document.querySelector(".live").offsetParent), null);
    await more(page, 9);
    await push(page, "Go on with older ones");
    await until(page, "() => document.querySelector('.turns tbody tr')?.dataset.number === '130'");
    await more(page, 1);
    await push(page, "Older ones");
    await count(page, 130);
    assert.equal(await page.evaluate(() => [...document.querySelectorAll(".more > *")].filter((one) => one.offsetParent).length), 0, "that is the end");
    await push(page, "The newest");
    await until(page, "() => location.hash === '#/turns' && document.querySelector('.turns tbody tr')?.dataset.number === '1130'");
    await clean();
  });

  test("what is dropped for new ones can be had again, and is not dropped while one looks at it", async () => {
    state().count = 900;
    const page = await open();
    await more(page, 9);
    await page.evaluate(() => scrollTo(0, 0));
    state().count += 20;
    await until(page, "() => document.querySelector('.turns tbody tr').dataset.number === '920'");
    assert.deepEqual(await numbers(page), down(920, 500));
    assert.equal(await page.evaluate(() => document.querySelector(".more a").getAttribute("href")), "#/turns?before=421");
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    state().count += 20;
    await until(page, "() => document.querySelector('.live').getAttribute('aria-pressed') === 'false'");
    assert.match(await told(page), /not live any more, so that the rows you look at stay/);
    assert.deepEqual(await numbers(page), down(920, 500));
    await page.evaluate(() => {
      scrollTo(0, 0);
      document.querySelector(".live").click();
    });
    await until(page, "() => document.querySelector('.turns tbody tr').dataset.number === '940'");
    await clean();
  });

  test("back from a turn, the list is as it was left", async () => {
    state().count = 600;
    const page = await open();
    await more(page, 3);
    await page.evaluate(() => document.querySelectorAll(".turns tbody tr a")[120].focus());
    await press(page, "Enter");
    await until(page, "() => document.querySelector('.compare .pair')");
    state().count += 3;
    await page.evaluate(() => history.back());
    await until(page, "() => document.activeElement.closest('tr')?.dataset.number === '480'");
    assert.ok(await page.evaluate(() => {
      const { top, bottom } = document.activeElement.getBoundingClientRect();
      return top > 60 && bottom < innerHeight;
    }));
    await until(page, "() => document.querySelector('.turns tbody tr').dataset.number === '603'");
    assert.deepEqual(await numbers(page), down(603, 203));
    await more(page, 1);
    // Who comes from elsewhere has a new one.
    await page.evaluate(() => { location.hash = "#/keys"; });
    await until(page, "() => document.querySelector('.totals')");
    await page.evaluate(() => { location.hash = "#/turns"; });
    await count(page, 50);
    await clean();
  });

  test("between rows, the place of those not shown fits narrow screens", async () => {
    const page = await open();
    await size(page, 400, 800);
    state().count += 170;
    await until(page, "() => document.querySelector('.turns .gap')");
    await wait(50);
    assert.ok(await page.evaluate(() => document.querySelector(".gap td").getBoundingClientRect().width > 300 && document.documentElement.scrollWidth <= innerWidth));
    await clean();
  });
}
