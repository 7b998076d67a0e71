// A Chromium of the test's own, driven over its debugging pipe: no package is needed for that.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = [
  "--headless",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--no-default-browser-check",
  "--no-proxy-server",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // It lets a page go to 200 places in ten seconds, which a test on a fast machine does.
  "--disable-ipc-flooding-protection",
  "--disable-popup-blocking",
  // The names below are those of machines elsewhere. What the browser itself has against pages that reach for this machine is
  // no merit of godex's, and not every browser has it.
  "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,HttpsUpgrades,HttpsFirstBalancedMode",
  "--remote-debugging-pipe",
];

export class Chromium {
  // All of these names are this machine.
  static async start(names) {
    const program = process.env.CHROMIUM ?? "chromium";
    const home = await mkdtemp(join(tmpdir(), "godex-browser-"));
    const rules = names.map((name) => `MAP ${name} 127.0.0.1`).join(", ");
    const own = [`--user-data-dir=${home}`, `--host-resolver-rules=${rules}`];
    if (process.getuid() === 0) own.push("--no-sandbox");
    const stdio = ["ignore", "ignore", "pipe", "pipe", "pipe"];
    const child = spawn(program, [...FLAGS, ...own, "about:blank"], { stdio, env: { ...process.env, HOME: home } });
    const browser = new Chromium(child, home);
    await browser.send("Browser.getVersion");
    return browser;
  }

  constructor(child, home) {
    Object.assign(this, { child, home, said: "", last: 0, waiting: new Map(), sessions: new Map() });
    child.stderr.on("data", (data) => (this.said = (this.said + data).slice(-4000)));
    child.on("error", (error) => this.gone(error));
    child.on("exit", (code) => this.gone(new Error(`Chromium ended with ${code}: ${this.said}`)));
    child.stdio[3].on("error", (error) => this.gone(error));
    let rest = "";
    child.stdio[4].setEncoding("utf8").on("data", (data) => {
      const messages = (rest + data).split("\0");
      rest = messages.pop();
      for (const message of messages) this.hear(JSON.parse(message));
    });
  }

  gone(error) {
    this.ended = error;
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  hear({ id, result, error, method, params, sessionId }) {
    if (id === undefined) return this.sessions.get(sessionId)?.event(method, params);
    const { resolve, reject } = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) reject(new Error(JSON.stringify(error)));
    else resolve(result);
  }

  send(method, params = {}, sessionId = undefined) {
    if (this.ended) return Promise.reject(this.ended);
    const id = ++this.last;
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  // A new tab with this address; with `content`, that is what it shows, whoever has the address by now.
  async open(url, content) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId, targetId);
    this.sessions.set(sessionId, page);
    for (const domain of ["Page", "Runtime", "Network"]) await page.send(`${domain}.enable`);
    await page.go(url, content);
    return page;
  }

  async close() {
    if (!this.ended) {
      const exit = once(this.child, "exit");
      this.child.kill("SIGKILL");
      await exit;
    }
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  constructor(browser, session, target) {
    Object.assign(this, { browser, session, target, requests: new Map(), loaded: () => {} });
  }

  send(method, params) {
    return this.browser.send(method, params, this.session);
  }

  event(method, params) {
    const request = this.requests.get(params.requestId);
    if (method === "Page.loadEventFired") this.loaded();
    if (method === "Network.requestWillBeSent") {
      const { url, method } = params.request;
      // The browser says nothing of the end of what it has from itself, such as a worker's script.
      if (url.startsWith("http")) this.requests.set(params.requestId, { url, method, open: true });
    }
    if (method === "Network.responseReceived" && request) request.status = params.response.status;
    const ends = ["Network.responseReceived", "Network.loadingFinished", "Network.loadingFailed"];
    if (ends.includes(method) && request) request.open = false;
    if (method === "Fetch.requestPaused") this.paused(params);
  }

  async go(url, content) {
    const loaded = new Promise((resolve) => (this.loaded = resolve));
    this.content = content;
    if (content !== undefined) await this.send("Fetch.enable", { patterns: [{ urlPattern: url }] });
    const { errorText } = await this.send("Page.navigate", { url });
    if (errorText) throw new Error(`${url}: ${errorText}`);
    await loaded;
    if (content !== undefined) await this.send("Fetch.disable");
  }

  paused({ requestId }) {
    const body = Buffer.from(this.content).toString("base64");
    const responseHeaders = [{ name: "content-type", value: "text/html" }];
    this.send("Fetch.fulfillRequest", { requestId, responseCode: 200, responseHeaders, body }).catch(() => {});
  }

  // What the function gives, called within the page.
  async evaluate(what, ...values) {
    const expression = `(${what})(...${JSON.stringify(values)})`;
    const options = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  // When nothing that the page sent is still under way.
  async quiet() {
    const pause = () => new Promise((resolve) => setTimeout(resolve, 100));
    await pause();
    for (let tries = 0; tries < 100 && [...this.requests.values()].some((request) => request.open); tries += 1) {
      await pause();
    }
  }

  close() {
    this.browser.sessions.delete(this.session);
    return this.browser.send("Target.closeTarget", { targetId: this.target });
  }
}
