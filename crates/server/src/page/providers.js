// Providers: what they are, whether their keys are there, and how their models do.

import { get } from "./api.js";
import { chip, el, empty, facts, name, replace, table } from "./dom.js";
import { count, ms, pick } from "./format.js";

const STATES = { closed: ["works", "good"], half_open: ["tried again", "careful"], open: ["left out", "bad"], unknown: ["not asked yet", "quiet"] };

/// How a model does: an open breaker says it all, a closed one says nothing of a model that was not asked, or fails.
function state({ state, sent, failures }) {
  if (state === "closed" && failures > 0) return ["failing", "careful"];
  if (state === "closed" && sent === 0) return STATES.unknown;
  return pick(STATES, state, [String(state ?? "unknown"), "quiet"]);
}

const KEYS = { set: ["key set", "good"], missing: ["key missing", "bad"], none: ["no key", "quiet"] };

const COLUMNS = [
  { title: "Model", cell: ({ model }) => name("b", null, model ?? "") },
  { title: "State", cell: (model) => chip(...state(model)) },
  { title: "Asked", number: true, cell: ({ sent }) => (sent === undefined ? "" : count(sent)) },
  { title: "Answered", number: true, cell: ({ accepted }) => (accepted === undefined ? "" : count(accepted)) },
  { title: "Failures in a row", number: true, cell: ({ failures }) => count(failures) },
  { title: "Latency", number: true, cell: ({ latency_ms: latency }) => (latency === undefined ? "" : ms(latency)) },
];

const UPS = { up: ["up", "good"], starting: ["starting", "careful"], draining: ["draining", "careful"], down: ["down", "bad"] };

const REPLICAS = [
  { title: "Address", cell: ({ base_url: url }) => el("span", { class: "code" }, String(url ?? "")) },
  { title: "State", cell: ({ state }) => chip(...pick(UPS, state, [String(state ?? "unknown"), "quiet"])) },
  { title: "Open", number: true, cell: ({ open_requests: open }) => (open === undefined ? "" : count(open)) },
  { title: "Own", number: true, cell: ({ own }) => (own === undefined ? "" : count(own)) },
  { title: "Guests", number: true, cell: ({ guests }) => (guests === undefined ? "" : count(guests)) },
];

/// Columns that have something to say.
const said = (columns, rows) => columns.filter((column) => rows.some((row) => column.cell(row) !== ""));

/// How many models are shown at first: clients can name any, and each that they name is one.
const SHOWN = 20;

/// What to look at first: what is configured or has answered and is in trouble, the rest of these, and last what only
/// clients have named.
function rank(model) {
  const { listed, accepted, failures, state } = model;
  const trouble = failures > 0 || state === "open" || state === "half_open";
  if (listed || accepted > 0) return trouble ? 0 : listed ? 1 : 2;
  return trouble ? 3 : 4;
}

const ordered = (models) => [...models].sort((one, other) => rank(one) - rank(other) || (other.sent ?? 0) - (one.sent ?? 0));

/// Shows one. The buttons for the rest of its models outlive what is shown: with them, what was chosen and the focus.
function provider(one, buttons, draw) {
  const title = String(one.name ?? "");
  const models = ordered(one.models ?? []);
  let button = buttons.get(title);
  if (!button) {
    button = el("button", { type: "button", "aria-expanded": "false", click: () => {
      button.setAttribute("aria-expanded", String(button.getAttribute("aria-expanded") !== "true"));
      draw();
    } });
    buttons.set(title, button);
  }
  const all = button.getAttribute("aria-expanded") === "true";
  button.textContent = all ? `Show ${SHOWN}` : `Show all ${count(models.length)}`;
  const shown = all ? models : models.slice(0, SHOWN);
  const key = one.key && chip(...pick(KEYS, one.key, [String(one.key), "quiet"]));
  return el("section", { class: "panel", "aria-label": title },
    el("div", { class: "provider-head" }, el("h2", null, title), key),
    facts([["Spec", one.spec], ["Speaks", one.wire], ["Address", one.base_url && el("span", { class: "code" }, one.base_url)]]),
    (one.replicas ?? []).length > 0 && table(`Addresses of ${title}`, said(REPLICAS, one.replicas), one.replicas, { class: "plain" }),
    models.length > 0 ? table(`Models of ${title}`, said(COLUMNS, models), shown, { class: "plain" }) : el("p", { class: "quiet-text" }, "No model of it was asked since the start."),
    models.length > SHOWN && el("p", { class: "more" }, button),
    one.key === "missing" && el("p", { class: "hint" }, "Set the variable that its api_key names, then run godex reload."));
}

export async function show(main, { signal, every }) {
  const list = el("div", { class: "cards" });
  replace(main, el("div", { class: "head" }, el("h1", null, "Providers"),
    el("p", { class: "told" }, "A model that fails again and again is left out for a while (its breaker is open).")), list);
  const buttons = new Map();
  let data = [];
  const draw = () => {
    const at = document.activeElement;
    replace(list, data.length > 0 ? data.map((one) => provider(one, buttons, draw)) : empty("No provider is configured.", "godex init writes a godex.yaml with one."));
    if (list.contains(at)) at.focus({ preventScroll: true });
  };
  const update = async () => {
    ({ data = [] } = await get("admin/providers", {}, signal));
    draw();
  };
  await update();
  every(5000, update);
}
