// Providers: what they are, whether their keys are there, and how their models do.

import { get } from "./api.js";
import { chip, el, empty, facts, replace, table } from "./dom.js";
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
  { title: "Model", cell: ({ model }) => el("b", null, String(model ?? "")) },
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

function provider(one) {
  const models = one.models ?? [];
  const key = one.key && chip(...pick(KEYS, one.key, [String(one.key), "quiet"]));
  const title = el("h2", null, String(one.name ?? ""));
  return el("section", { class: "panel", "aria-label": String(one.name ?? "") },
    el("div", { class: "provider-head" }, title, key),
    facts([["Spec", one.spec], ["Speaks", one.wire], ["Address", one.base_url && el("span", { class: "code" }, one.base_url)]]),
    (one.replicas ?? []).length > 0 && table(`Addresses of ${one.name}`, said(REPLICAS, one.replicas), one.replicas, { class: "plain" }),
    models.length > 0 ? table(`Models of ${one.name}`, said(COLUMNS, models), models, { class: "plain" }) : el("p", { class: "quiet-text" }, "No model of it was asked since the start."),
    one.key === "missing" && el("p", { class: "hint" }, "Set the variable that its api_key names, then run godex reload."));
}

export async function show(main, { signal, every }) {
  const list = el("div", { class: "cards" });
  replace(main, el("div", { class: "head" }, el("h1", null, "Providers"),
    el("p", { class: "told" }, "A model that fails again and again is left out for a while (its breaker is open).")), list);
  const update = async () => {
    const { data = [] } = await get("admin/providers", {}, signal);
    replace(list, data.length > 0 ? data.map(provider) : empty("No provider is configured.", "godex init writes a godex.yaml with one."));
  };
  await update();
  every(5000, update);
}
