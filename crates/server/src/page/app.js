// The frame: which view is shown, the colours, and what is said when godex does not answer.

import { Failed, get } from "./api.js";
import { el, replace } from "./dom.js";
import * as charts from "./charts.js";
import * as keys from "./keys.js";
import * as playground from "./playground.js";
import * as providers from "./providers.js";
import * as turn from "./turn.js";
import * as turns from "./turns.js";

const VIEWS = { turns: [turns, "Turns"], charts: [charts, "Charts"], providers: [providers, "Providers"], keys: [keys, "Keys and usage"], playground: [playground, "Playground"] };

const main = document.getElementById("main");
let current;

function go(view, values) {
  const text = new URLSearchParams(values).toString();
  location.hash = text ? `#/${view}?${text}` : `#/${view}`;
}

/// What the address says: a view, what it is about, and how.
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [view, parameter] = path.split("/", 2);
  let decoded = parameter ?? "";
  try {
    decoded = decodeURIComponent(decoded);
  } catch {
    // As it is.
  }
  return { view: Object.hasOwn(VIEWS, view) ? view : "turns", parameter: decoded, query: new URLSearchParams(query) };
}

/// What nobody reads was meant to be something: the view would be taken for what it is not.
function check(module, query) {
  const known = module.PARAMETERS ?? [];
  const odd = [...query.keys()].find((name) => !known.includes(name));
  if (odd === undefined) return;
  throw new Failed(400, "invalid_request", `There is no \`${odd}\` in the address of this view${known.length > 0 ? `: ${known.join(", ")}` : ""}.`);
}

function failed(error) {
  if (error.name === "AbortError") return;
  const title = error.code === "traces_off" ? "Traces are off." : error.status === 404 ? "This godex does not have that." : "That did not work.";
  const [plain, more] = location.hash.split("?", 2);
  replace(main, el("div", { class: "nothing" }, el("p", { class: "nothing-title" }, title),
    el("p", null, error.message), el("p", null, el("button", { type: "button", click: () => show(false) }, "Try again")),
    error.status === 400 && more && el("p", null, el("a", { href: plain }, "Show it without that"))));
}

/// Longer than an answer takes: who waits is told that there is none.
const SILENCE = 4000;

/// Does it, and says meanwhile if there is no answer.
async function awaited(work) {
  const silent = setTimeout(() => document.body.classList.add("lost"), SILENCE);
  try {
    await work();
  } finally {
    clearTimeout(silent);
  }
}

/// Does it again and again while the view is there and somebody looks; a failure is said and tried again.
function repeat(signal) {
  return (pause, work) => {
    const next = async () => {
      if (signal.aborted) return;
      if (!document.hidden) {
        try {
          await awaited(work);
          document.body.classList.remove("lost");
        } catch (error) {
          if (error.name === "AbortError") return;
          document.body.classList.toggle("lost", error.status === 0 || error.status === 502);
        }
      }
      setTimeout(next, pause);
    };
    setTimeout(next, pause);
  };
}

/// The row of the turn from which one came back to the list.
function left(hash) {
  return [...main.querySelectorAll(".turns td.when a")].find((link) => hash.startsWith("#/turns/") && link.getAttribute("href") === hash);
}

let before = "";

async function show(focus) {
  const from = before;
  before = location.hash;
  current?.abort();
  current = new AbortController();
  const { signal } = current;
  const { view, parameter, query } = address();
  const [module, title] = view === "turns" && parameter ? [turn, `Turn ${parameter}`] : VIEWS[view];
  document.title = `${title} · godex`;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.setAttribute("aria-busy", "true");
  try {
    check(module, query);
    await awaited(() => module.show(main, { parameter, query, signal, go, every: repeat(signal), from }));
    if (!signal.aborted) document.body.classList.remove("lost");
  } catch (error) {
    if (!signal.aborted) failed(error);
  }
  if (signal.aborted) return;
  main.removeAttribute("aria-busy");
  if (focus) {
    window.scrollTo(0, 0);
    const row = left(from);
    if (row) {
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: "center" });
    } else main.focus({ preventScroll: true });
  }
}

function colours() {
  const choice = document.getElementById("theme");
  const apply = (value) => {
    if (value === "auto") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset.theme = value;
  };
  choice.value = ["light", "dark"].includes(localStorage.getItem("godex-theme")) ? localStorage.getItem("godex-theme") : "auto";
  apply(choice.value);
  choice.addEventListener("change", () => {
    localStorage.setItem("godex-theme", choice.value);
    apply(choice.value);
  });
}

async function server() {
  const node = document.getElementById("server");
  const status = await get("admin/status");
  node.textContent = `${status.version ?? ""} at ${status.address ?? ""}${status.draining ? ", draining" : ""}`;
}

colours();
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
window.addEventListener("hashchange", () => show(true));
repeat(new AbortController().signal)(30_000, server);
server().catch(() => {});
show(false);
