// Keys, and what was used with them. It only looks: keys are made and revoked with `godex keys`.

import { Failed, get } from "./api.js";
import { chip, el, empty, replace, table } from "./dom.js";
import { count, dollars, percent, pick, seconds, short } from "./format.js";

const DAYS = [["1", "today"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"]];
export const PARAMETERS = ["days"];
const STATES = { active: "good", replaced: "careful", expired: "quiet", revoked: "quiet" };

function terms(all) {
  const parts = Object.entries(all ?? {}).map(([name, value]) => `${name.replaceAll("_", " ")} ${Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : value}`);
  return parts.join(" · ");
}

const KEYS = [
  { title: "Name", cell: (key) => [el("b", null, String(key.name ?? "")), key.hint && el("span", { class: "quiet-text code" }, ` …${key.hint}`)] },
  { title: "State", cell: (key) => [chip(String(key.state ?? ""), pick(STATES, key.state, "quiet")), key.declared && el("span", { class: "quiet-text" }, " in godex.yaml")] },
  { title: "Tenant", cell: (key) => String(key.tenant ?? "") },
  { title: "Made", cell: (key) => (key.created_at ? seconds(key.created_at) : "") },
  { title: "Ends", cell: (key) => (key.expires_at ? seconds(key.expires_at) : "") },
  { title: "Limits", cell: (key) => terms(key.terms) },
];

const USAGE = [
  { title: "Key", cell: (row) => String(row.key_name ?? row.key ?? "") || "–" },
  { title: "Model", cell: (row) => String(row.model ?? "") },
  { title: "Requests", number: true, cell: (row) => count(row.requests) },
  { title: "Input", number: true, cell: (row) => short(row.input_tokens) },
  { title: "Cached", number: true, cell: (row) => percent(row.cached_tokens, row.input_tokens) },
  { title: "Output", number: true, cell: (row) => short(row.output_tokens) },
  { title: "Reasoning", number: true, cell: (row) => short(row.reasoning_tokens) },
  { title: "Cost", number: true, cell: (row) => dollars(row.cost_usd) },
];

function total(rows) {
  const sum = (name) => rows.reduce((all, row) => all + (Number(row[name]) || 0), 0);
  const names = ["requests", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"];
  const priced = rows.some((row) => row.cost_usd !== null && row.cost_usd !== undefined);
  return { key: "All", model: "", ...Object.fromEntries(names.map((name) => [name, sum(name)])), cost_usd: priced ? sum("cost_usd") : null };
}

export async function show(main, { query, signal, go }) {
  const days = query.get("days") || "30";
  if (!DAYS.some(([value]) => value === days)) throw new Failed(400, "invalid_request", `\`days\` is one of ${DAYS.map(([value]) => value).join(", ")}.`);
  const choose = el("select", { change: () => go("keys", { days: choose.value }) },
    DAYS.map(([value, title]) => el("option", { value, selected: value === days }, title)));
  const since = Math.floor(Date.now() / 1000) - (Number(days) - 1) * 86_400;
  const [keys, usage] = await Promise.all([get("admin/keys", {}, signal), get("admin/usage", { by: "key,model", since }, signal)]);
  const rows = [...(usage.rows ?? [])].sort((one, other) => Number(other.cost_usd ?? 0) - Number(one.cost_usd ?? 0) || other.requests - one.requests);
  const unpriced = rows.reduce((all, row) => all + (Number(row.unpriced) || 0), 0);
  replace(main,
    el("div", { class: "head" }, el("h1", null, "Keys and usage")),
    el("section", { class: "panel flush", "aria-labelledby": "keys-title" }, el("h2", { id: "keys-title" }, "Keys"),
      (keys.data ?? []).length > 0 ? table("Keys", KEYS, keys.data, { class: "plain" })
        : empty("There are no keys: everybody who reaches the port may ask.", "godex keys create NAME makes the first one, and from then on every client needs one.")),
    el("section", { class: "panel flush", "aria-labelledby": "usage-title" },
      el("div", { class: "panel-head" }, el("h2", { id: "usage-title" }, "Usage"), el("label", null, "Of ", choose)),
      rows.length > 0 ? table("Usage by key and model", USAGE, [...rows, total(rows)], { class: "plain totals" })
        : empty("Nothing was used in this time.", "Choose a longer one."),
      unpriced > 0 && el("p", { class: "hint" }, `The price of ${count(unpriced)} of them is not known: their cost is in no sum.`)));
}
