// What a person does with the page, for a test.

export const wait = (time) => new Promise((resolve) => setTimeout(resolve, time));

/// Waits until it is so, within the page; says what was not if it never is.
export async function until(page, what, ...values) {
  const result = await page.evaluate(`async (...values) => {
    for (let tries = 0; tries < 400; tries += 1) {
      const value = await (${what})(...values);
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return null;
  }`, ...values);
  if (result === null) throw new Error(`never: ${what}`);
  return result;
}

const KEYS = { Tab: 9, Enter: 13, Escape: 27, Space: 32, End: 35, Home: 36, ArrowUp: 38, ArrowDown: 40 };

export async function press(page, key, modifiers = 0) {
  const text = { Enter: "\r", Space: " " }[key];
  const named = { key: key === "Space" ? " " : key, code: key, windowsVirtualKeyCode: KEYS[key], modifiers };
  await page.send("Input.dispatchKeyEvent", { type: text && !modifiers ? "keyDown" : "rawKeyDown", text: modifiers ? undefined : text, ...named });
  await page.send("Input.dispatchKeyEvent", { type: "keyUp", ...named });
}

export const type = (page, text) => page.send("Input.insertText", { text });

/// The text of what has the focus.
export const focused = (page) => page.evaluate(() => {
  const { activeElement: at } = document;
  return at === document.body ? "" : (at.getAttribute("aria-label") ?? (at.labels?.[0]?.textContent || at.textContent)).trim().slice(0, 60);
});

export async function size(page, width, height = 900) {
  await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
}

export const colours = (page, value) => page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });

/// To a view, without loading the page anew, until it is there.
export async function visit(page, hash, sign) {
  await page.evaluate((hash) => { location.hash = hash; }, hash);
  await until(page, "(sign) => !document.getElementById('main').hasAttribute('aria-busy') && document.querySelector(sign)", sign).then(() => {});
}
