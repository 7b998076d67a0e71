// The list of turns: newest first, new ones come by themselves.

import { get } from "./api.js";
import { SPANS, moment, span, strip } from "./charts.js";
import { chip, el, empty, line, replace, say, table } from "./dom.js";
import { clock, count, day, dollars, ending, ms, outcome, percent, short, target } from "./format.js";

/// How many are asked for at once, and how many stay in the document.
const PAGE = 50;
const MOST = 500;
const PAUSE = 2000;

const OUTCOMES = ["completed", "incomplete", "failed", "cancelled", "late", "stopped", "client_left", "answered"];
/// What the address may have beside the span; each is a parameter of the list.
const FILTERS = ["model", "provider", "outcome", "errors", "note", "slower_ms", "tenant", "key", "id"];

export const link = (turn) => `#/turns/${encodeURIComponent(turn.number ?? turn.response_id ?? turn.request_id ?? "")}`;

function status(turn) {
  return el("span", { class: "status" }, chip(ending(turn) || "?", outcome(turn)), turn.error && el("span", { class: "error-code" }, turn.error));
}

const COLUMNS = [
  { title: "Time", class: "when", cell: (turn) => el("a", { href: link(turn), title: turn.began_at },
    day(turn.began_at) === day(Date.now()) ? null : el("span", { class: "quiet-text" }, `${day(turn.began_at).slice(5)} `), clock(turn.began_at)) },
  { title: "End", class: "end", cell: status },
  { title: "Model → target", class: "model", cell: (turn) => {
    const to = target(turn);
    return el("span", null, el("b", null, turn.model ?? turn.kind ?? "–"), to && to !== turn.model && [" → ", el("span", { class: "target" }, to)]);
  } },
  { title: "Input", number: true, cell: (turn) => short(turn.input_tokens) },
  { title: "Cached", number: true, cell: (turn) => percent(turn.cached_tokens, turn.input_tokens) },
  { title: "Output", number: true, cell: (turn) => short(turn.output_tokens) },
  { title: "First token", number: true, cell: (turn) => ms(turn.first_token_ms) },
  { title: "Took", number: true, cell: (turn) => ms(turn.took_ms) },
  { title: "Cost", number: true, cell: (turn) => dollars(turn.cost_usd) },
  { title: "Notes", class: "notes", cell: (turn) => {
    const notes = (turn.notes ?? []).map((note) => (typeof note === "string" ? note : note.code));
    if (notes.length === 0) return "";
    const shown = notes.slice(0, 2).map((note) => el("span", { class: "note-code" }, note));
    return el("span", { title: notes.join("\n") }, shown, notes.length > 2 && el("span", { class: "quiet-text" }, ` +${notes.length - 2}`));
  } },
];

function field(name, title, value, more) {
  return el("label", null, title, el("input", { name, value: value ?? "", autocomplete: "off", spellcheck: "false", ...more }));
}

function form(query, go) {
  const value = (name) => query.get(name) ?? "";
  const rare = ["tenant", "key", "id", "slower_ms"].some((name) => value(name));
  const node = el("form", { class: "filters", "aria-label": "Filters" },
    el("label", null, "Of the last", el("select", { name: "span" },
      SPANS.map(([name, title]) => el("option", { value: name, selected: (value("span") || "1h") === name }, title)),
      el("option", { value: "all", selected: value("span") === "all" }, "all there is"))),
    field("model", "Model", value("model"), { placeholder: "any" }),
    field("provider", "Provider", value("provider"), { placeholder: "any" }),
    el("label", null, "End", el("select", { name: "outcome" }, el("option", { value: "" }, "any"),
      OUTCOMES.map((name) => el("option", { value: name, selected: value("outcome") === name }, name.replaceAll("_", " "))))),
    field("note", "Note", value("note"), { placeholder: "any" }),
    el("label", { class: "check" }, el("input", { type: "checkbox", name: "errors", checked: value("errors") === "true" }), "Errors only"),
    el("details", { class: "rare", open: rare }, el("summary", null, "More"),
      el("div", null,
        field("tenant", "Tenant", value("tenant"), { placeholder: "any" }),
        field("key", "Key", value("key"), { placeholder: "any" }),
        field("id", "Request or response", value("id"), { placeholder: "resp_…" }),
        field("slower_ms", "Slower than (ms)", value("slower_ms"), { inputmode: "numeric", placeholder: "any" }))),
    el("div", { class: "buttons" }, el("button", { type: "submit", class: "primary" }, "Filter"),
      [...query.keys()].some((name) => name !== "span") && el("a", { href: "#/turns", class: "button" }, "Clear")));
  const apply = () => {
    const data = new FormData(node);
    const wanted = {};
    for (const name of ["span", ...FILTERS]) {
      const text = name === "errors" ? (data.get(name) ? "true" : "") : String(data.get(name) ?? "").trim();
      if (text && !(name === "span" && text === "1h")) wanted[name] = text;
    }
    go("turns", wanted);
  };
  node.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  node.addEventListener("change", (event) => {
    if (event.target.matches("select, [type=checkbox]")) apply();
  });
  return node;
}

/// Up and down go from row to row, as in any list.
function arrows(body) {
  body.addEventListener("keydown", (event) => {
    const links = [...body.querySelectorAll("td.when a")];
    const at = links.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    links[Math.min(Math.max(to, 0), links.length - 1)]?.focus();
  });
  body.addEventListener("click", (event) => {
    if (event.target.closest("a, button") || getSelection().toString()) return;
    event.target.closest("tr")?.querySelector("td.when a")?.click();
  });
}

function row(turn) {
  const node = line(COLUMNS, turn);
  node.dataset.number = turn.number;
  node.dataset.end = outcome(turn);
  return node;
}

export async function show(main, { query, signal, go, every }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]).filter(([, value]) => value));
  const spanName = query.get("span") ?? "1h";
  if (spanName !== "all") filters.since = moment(Date.now() - span(spanName)[2]);
  const live = el("button", { type: "button", class: "live", "aria-pressed": "true" }, "Live");
  const told = el("p", { class: "told" });
  const charts = el("section", { class: "strip", "aria-label": "Over time" });
  const list = table("Turns, newest first", COLUMNS, [], { class: "turns" });
  const body = list.tBodies[0];
  const nothing = el("div");
  const older = el("button", { type: "button", hidden: true }, "Older ones");
  const only = [...query.keys()].some((name) => name !== "span");
  replace(main, el("div", { class: "head" }, el("h1", null, "Turns"), told, live), charts,
    el("details", { class: "filter-box", open: only || matchMedia("(min-width: 761px)").matches }, el("summary", null, "Filters"), form(query, go)),
    el("div", { class: "panel flush" }, list, nothing), el("p", { class: "more" }, older));
  arrows(body);

  let newest = 0;
  let oldest;
  const tell = (answer) => {
    const dropped = Number(answer?.dropped) || 0;
    told.textContent = [`${count(body.rows.length)} shown`, dropped > 0 && `${count(dropped)} not kept, because the queue was full`].filter(Boolean).join(" · ");
    list.hidden = body.rows.length === 0;
    replace(nothing, body.rows.length === 0 && (only
      ? empty("No turn fits these filters.", el("a", { href: "#/turns" }, "Show all of them"))
      : empty("No turns yet.", "Point a client at godex, or send something in the playground. New turns appear here by themselves.",
        el("a", { href: "#/playground" }, "Open the playground"))));
  };
  const append = (answer) => {
    for (const turn of answer.data ?? []) {
      newest = Math.max(newest, Number(turn.number) || 0);
      oldest = Math.min(oldest ?? Infinity, Number(turn.number) || 0);
      body.append(row(turn));
    }
    older.hidden = !answer.has_more || body.rows.length >= MOST;
    tell(answer);
  };
  append(await get("admin/traces", { ...filters, limit: PAGE }, signal));
  const again = () => strip(charts, spanName === "all" ? "7d" : spanName, filters.since ? { ...filters, since: undefined } : filters, signal);
  again().catch(() => replace(charts));
  every(15_000, again);

  const poll = async () => {
    if (live.getAttribute("aria-pressed") !== "true") return;
    const answer = await get("admin/traces", { ...filters, limit: PAGE, after: newest }, signal);
    const fresh = (answer.data ?? []).filter((turn) => Number(turn.number) > newest).sort((one, other) => one.number - other.number);
    for (const turn of fresh) {
      newest = Math.max(newest, Number(turn.number));
      const node = row(turn);
      node.classList.add("fresh");
      body.prepend(node);
    }
    while (body.rows.length > MOST) body.lastChild.remove();
    if (fresh.length > 0) {
      tell(answer);
      say(`${fresh.length} new`);
      return;
    }
    // A godex that was started with an empty store counts from 1 again.
    const { data: [last] = [] } = await get("admin/traces", { limit: 1 }, signal);
    newest = Math.min(newest, Number(last?.number) || 0);
  };
  live.addEventListener("click", () => live.setAttribute("aria-pressed", String(live.getAttribute("aria-pressed") !== "true")));
  older.addEventListener("click", async () => {
    older.disabled = true;
    try {
      append(await get("admin/traces", { ...filters, limit: PAGE, before: oldest }, signal));
    } finally {
      older.disabled = false;
    }
  });
  every(PAUSE, poll);
}
