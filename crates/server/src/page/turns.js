// The list of turns: newest first, new ones come by themselves.

import { get } from "./api.js";
import { SPANS, moment, span, strip } from "./charts.js";
import { chip, el, empty, line, name, replace, say, table } from "./dom.js";
import { clock, count, day, dollars, ending, ms, outcome, percent, short, target } from "./format.js";

/// How many are asked for at once, and how many stay in the document.
const PAGE = 50;
const MOST = 500;
const PAUSE = 2000;

const OUTCOMES = ["completed", "incomplete", "failed", "cancelled", "late", "stopped", "client_left", "answered"];
/// What the address may have beside the span; each is a parameter of the list.
const FILTERS = ["model", "provider", "outcome", "errors", "note", "slower_ms", "tenant", "key", "id"];
export const PARAMETERS = ["span", "before", ...FILTERS];

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
    return el("span", null, name("b", null, turn.model ?? turn.kind ?? "–"), to && to !== turn.model && [" → ", name("span", { class: "target" }, to)]);
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

/// The same view, of those before this number; without one, of the newest.
function address(query, before) {
  const next = new URLSearchParams(query);
  next.delete("before");
  if (before !== undefined) next.set("before", before);
  return next.size > 0 ? `#/turns?${next}` : "#/turns";
}

/// The list as it is shown. It outlives its view: who comes back from a turn finds it as it was left.
class List {
  constructor(query, go) {
    const value = (name) => query.get(name) || undefined;
    const filters = Object.fromEntries(FILTERS.map((name) => [name, value(name)]).filter(([, is]) => is));
    const spanName = value("span") ?? "1h";
    const since = spanName === "all" ? undefined : moment(Date.now() - span(spanName)[2]);
    Object.assign(this, { hash: location.hash, query, filters, spanName, since, before: value("before"), newest: 0, oldest: undefined, more: false });
    this.told = el("p", { class: "told" });
    this.live = el("button", { type: "button", class: "live", "aria-pressed": String(!this.before), hidden: Boolean(this.before), click: () => {
      this.live.setAttribute("aria-pressed", String(!this.isLive()));
      this.tell();
    } }, "Live");
    this.charts = el("section", { class: "strip", "aria-label": "Over time" });
    this.table = table("Turns, newest first", COLUMNS, [], { class: "turns" });
    [this.body] = this.table.tBodies;
    this.nothing = el("div");
    this.older = el("button", { type: "button", hidden: true, click: () => this.press(() => this.load()) }, "Older ones");
    this.further = el("a", { href: "#/turns", class: "button" }, "Go on with older ones");
    this.bound = el("span", { class: "quiet-text", hidden: true }, `${MOST} are shown at once. `, this.further);
    const filtered = [...query.keys()].some((name) => name !== "span");
    this.nodes = [
      el("div", { class: "head" }, el("h1", null, "Turns"), this.told, this.before && el("a", { href: address(query), class: "button" }, "The newest"), this.live), this.charts,
      el("details", { class: "filter-box", open: filtered || matchMedia("(min-width: 761px)").matches }, el("summary", null, "Filters"), form(query, go)),
      el("div", { class: "panel flush" }, this.table, this.nothing), el("p", { class: "more" }, this.older, this.bound)];
    arrows(this.body);
    // Else it would be new again whenever the list comes back.
    this.body.addEventListener("animationend", ({ target }) => target.classList.remove("fresh"));
  }

  isLive() {
    return this.live.getAttribute("aria-pressed") === "true";
  }

  rows() {
    return [...this.body.querySelectorAll("tr[data-number]")];
  }

  async ask(part) {
    const answer = await get("admin/traces", { ...this.filters, since: this.since, limit: PAGE, ...part }, this.signal);
    this.dropped = Number(answer.dropped) || 0;
    return { data: answer.data ?? [], many: Boolean(answer.has_more) };
  }

  /// The newest, or those that follow the last row.
  async load() {
    const { data, many } = await this.ask({ before: this.oldest ?? this.before });
    this.body.append(...data.map(row));
    this.newest = Math.max(this.newest, ...data.map(({ number }) => Number(number) || 0));
    this.oldest = data.at(-1)?.number ?? this.oldest;
    this.more = many;
    this.tell();
  }

  /// What stands around the rows. `why` is why it is not live any more.
  tell(why) {
    const shown = this.rows().length;
    this.told.textContent = [`${count(shown)} shown`, this.before && `before turn ${this.before}`, why,
      this.dropped > 0 && `${count(this.dropped)} not kept, because the queue was full`].filter(Boolean).join(" · ");
    this.table.hidden = shown === 0;
    const narrow = Object.keys(this.filters).length > 0 || this.before;
    replace(this.nothing, shown === 0 && (narrow
      ? empty("No turn fits these filters.", el("a", { href: "#/turns" }, "Show all of them"))
      : empty("No turns yet.", "Point a client at godex, or send something in the playground. New turns appear here by themselves.",
        el("a", { href: "#/playground" }, "Open the playground"))));
    const [full, had] = [shown >= MOST, document.activeElement === this.older];
    this.older.hidden = !this.more || full;
    this.bound.hidden = !this.more || !full;
    this.further.setAttribute("href", address(this.query, this.oldest));
    if (had && !this.bound.hidden) this.further.focus();
  }

  /// Does what a button is for, once at a time; the button keeps the focus meanwhile.
  async press(work) {
    if (this.busy) return;
    this.busy = true;
    try {
      await work();
    } catch (error) {
      if (error.name !== "AbortError") this.told.textContent = error.message;
    } finally {
      this.busy = false;
    }
  }

  async poll() {
    if (!this.isLive()) return;
    if (this.oldest === undefined) {
      await this.load();
      return;
    }
    let { data, many } = await this.ask({ after: this.newest });
    // Those are the oldest of the new ones. Who looks wants the newest, however fast they come.
    if (many) ({ data } = await this.ask({}));
    const fresh = data.filter(({ number }) => number > this.newest).sort((one, other) => other.number - one.number);
    if (fresh.length > 0) {
      this.take(fresh, many);
      return;
    }
    // A godex that was started with an empty store counts from 1 again.
    const { data: [last] = [] } = await get("admin/traces", { limit: 1 }, this.signal);
    this.newest = Math.min(this.newest, Number(last?.number) || 0);
  }

  /// Puts new ones on top, and what stands for those between if not all came.
  take(fresh, many) {
    const going = this.rows()[MOST - fresh.length];
    if (going && going.getBoundingClientRect().top < innerHeight) {
      this.live.setAttribute("aria-pressed", "false");
      this.tell("not live any more, so that the rows you look at stay");
      return;
    }
    const lowest = fresh.at(-1).number;
    if (many && lowest > this.newest + 1) this.body.prepend(this.gap(lowest, this.newest));
    const nodes = fresh.map(row);
    for (const node of nodes) node.classList.add("fresh");
    this.body.prepend(...nodes);
    this.newest = fresh[0].number;
    this.trim();
    this.tell();
    say(`${fresh.length} new`);
  }

  /// A row for those between two numbers, with the way to them.
  gap(above, below) {
    const said = el("span");
    const node = el("tr", { role: "row", class: "gap" }, el("td", { role: "cell", colspan: COLUMNS.length }, said, " ",
      el("button", { type: "button", class: "link", click: () => this.press(() => fill()) }, "Show more of them")));
    const tell = () => {
      // Of those that fit filters the numbers do not say how many they are.
      const missing = Object.keys(this.filters).length > 0 ? "some" : count(above - below - 1);
      said.textContent = `Not shown here: ${missing} that came meanwhile.`;
    };
    const fill = async () => {
      // One more says whether more are between.
      const { data } = await this.ask({ before: above, limit: PAGE + 1 });
      const between = data.filter(({ number }) => number > below);
      const found = between.slice(0, PAGE);
      node.before(...found.map(row));
      if (between.length <= PAGE) {
        if (node.contains(document.activeElement)) node.previousElementSibling.querySelector("a").focus();
        node.remove();
      } else {
        above = found.at(-1).number;
        tell();
      }
      this.trim();
      this.tell();
    };
    tell();
    return node;
  }

  /// Drops the oldest rows beyond the most; older ones go on from the last that stays.
  trim() {
    const rows = this.rows();
    if (rows.length <= MOST) return;
    while (this.body.lastElementChild !== rows[MOST - 1]) this.body.lastElementChild.remove();
    this.oldest = Number(rows[MOST - 1].dataset.number);
    this.more = true;
  }

  /// Shows it, and goes on with it.
  async open(main, signal, every) {
    this.signal = signal;
    replace(main, this.nodes);
    if (this.oldest === undefined) await this.load();
    const again = () => strip(this.charts, this.spanName === "all" ? "7d" : this.spanName, this.filters, signal);
    again().catch(() => replace(this.charts));
    every(15_000, again);
    every(PAUSE, () => this.poll());
  }
}

let last;

export async function show(main, { query, signal, go, every, from }) {
  const back = from.startsWith("#/turns/") && last?.hash === location.hash;
  const list = back ? last : new List(query, go);
  await list.open(main, signal, every);
  last = list;
}
