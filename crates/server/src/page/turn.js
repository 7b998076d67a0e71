// One turn: what was asked, what was sent, what came back; where the time went; what it belongs to.

import { Failed, get } from "./api.js";
import { compare } from "./compare.js";
import { chip, el, empty, facts, json, long, replace, svg, table } from "./dom.js";
import { bytes, clock, count, day, dollars, ending, ms, outcome, percent, pick, severity, target } from "./format.js";
import { tree } from "./tree.js";

const list = (value) => (Array.isArray(value) ? value : []);

function section(id, title, ...content) {
  return el("section", { class: "panel", "aria-labelledby": id }, el("h2", { id, tabindex: -1 }, title), content);
}

/// What a captured body says, if it is there and whole.
function parsed(payload) {
  try {
    return payload?.text ? JSON.parse(payload.text) : undefined;
  } catch {
    return undefined;
  }
}

/// The stretches of time, one after the other, from what was measured.
function stretches(times, took) {
  const known = (value) => (Number.isFinite(value) ? value : undefined);
  const { opened_ms: opened = 0, planning_ms: planning = 0, connecting_ms: connecting = 0 } = times;
  const asked = (known(opened) ?? 0) + (known(planning) ?? 0);
  const connected = asked + (known(connecting) ?? 0);
  const [firstByte, firstToken, lastByte] = [times.first_byte_ms, times.first_token_ms, times.last_byte_ms].map(known);
  const steps = [
    // Nearly all of it is the client's, where it was waited for.
    ["Reading the request", 0, known(opened), known(times.client_ms) ? "client" : "ours"],
    ["Planning", known(opened) ?? 0, asked, "ours"],
    ["Connecting", asked, connected, "theirs"],
    ["Waiting for the first byte", connected, firstByte, "theirs"],
    ["Until the first token", firstByte, firstToken, "theirs"],
    ["The answer comes", firstToken ?? firstByte, lastByte, "stream"],
    ["Storing", lastByte, lastByte === undefined || !known(times.committing_ms) ? undefined : lastByte + times.committing_ms, "ours"],
  ];
  const end = Math.max(known(took) ?? 0, ...steps.map(([, , to]) => to ?? 0), 0.001);
  return { end, steps: steps.filter(([, from, to]) => from !== undefined && to !== undefined && to > from) };
}

/// Round steps of an axis: of 1, 2 or 5, and from a minute on of what clocks have.
const STEPS = [-3, -2, -1, 0, 1, 2, 3, 4].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power)).filter((step) => step < 30_000)
  .concat([30, 60, 120, 300, 600, 1200, 1800, 3600].map((step) => step * 1000));

/// At most five, from 0 on.
function ticks(end) {
  const step = STEPS.find((step) => end / step < 5) ?? end / 4;
  return Array.from({ length: Math.floor(end / step) + 1 }, (_, index) => index * step);
}

/// A tick of an axis that ends there, exactly.
function tick(at, end) {
  const round = (value) => String(Number(value.toPrecision(6)));
  if (at === 0) return "0";
  if (end < 1000) return `${round(at)} ms`;
  if (at < 60_000) return `${round(at / 1000)} s`;
  const rest = Math.round(at / 1000) % 60;
  return [`${Math.floor(at / 60_000)} min`, rest > 0 && `${rest} s`].filter(Boolean).join(" ");
}

const share = (part, whole) => `${(100 * part) / whole}%`;

function bar(from, to, end, color) {
  return svg("svg", { class: "bar-line", "aria-hidden": "true", focusable: "false" },
    ticks(end).map((at) => svg("line", { x1: share(at, end), x2: share(at, end), y1: 0, y2: "100%", class: "grid" })),
    svg("rect", { x: share(from, end), width: `${Math.max((100 * (to - from)) / end, 0.4)}%`, y: "20%", height: "60%", rx: 2, class: color }));
}

function axis(end) {
  // What stands at an edge does not go beyond it.
  const side = (at) => (at === 0 ? "start" : at > end * 0.92 ? "end" : "middle");
  return svg("svg", { class: "ticks", focusable: "false" },
    ticks(end).map((at) => svg("text", { x: share(at, end), y: "75%", "text-anchor": side(at) }, tick(at, end))));
}

function timeline(turn) {
  const { end, steps } = stretches(turn.times ?? {}, turn.took_ms);
  if (steps.length === 0) return el("p", { class: "quiet-text" }, "No times were measured.");
  const row = ([name, from, to, color]) => el("li", null, el("span", { class: "stretch" }, name), bar(from, to, end, color), el("span", { class: "number" }, ms(to - from)));
  return el("div", null, el("ol", { class: "timeline" }, steps.map(row),
    el("li", { class: "axis", "aria-hidden": "true" }, el("span"), axis(end), el("span"))),
    el("ul", { class: "legend" }, [["ours", "godex"], ["client", "waiting for the client"], ["theirs", "waiting for the provider"], ["stream", "the answer streams"]].map(([color, name]) => el("li", { class: color }, name))));
}

function notes(all) {
  if (all.length === 0) return el("p", { class: "quiet-text" }, "Everything was done as asked.");
  return el("ul", { class: "note-list" }, all.map((one) => (typeof one === "string" ? el("li", null, chip(one)) : el("li", null,
    chip(String(one.code ?? ""), severity(one.severity)), one.action && el("span", { class: "action" }, String(one.action)),
    one.path && el("span", { class: "path" }, String(one.path)), el("span", { class: "detail" }, String(one.detail ?? ""))))));
}

const ATTEMPTS = [
  { title: "Target", cell: ({ target, replica }) => [el("b", null, String(target ?? "")), replica ? ` at ${replica}` : ""] },
  { title: "Wire", cell: ({ wire }) => String(wire ?? "") },
  { title: "End", cell: ({ outcome }) => chip(String(outcome ?? "not answered").replaceAll("_", " "), outcome === "accepted" ? "good" : "bad") },
  { title: "Status", number: true, cell: ({ status }) => (status === undefined || status === null ? "" : String(status)) },
  { title: "Sent", number: true, cell: (one) => bytes(one.bytes) },
  { title: "Took", number: true, cell: (one) => ms(one.took_ms) },
];

const CALLS = [
  { title: "Tool", cell: ({ name }) => el("b", null, String(name ?? "")) },
  { title: "Kind", cell: ({ kind }) => String(kind ?? "") },
  { title: "End", cell: ({ outcome }) => String(outcome ?? "") },
  { title: "Took", number: true, cell: (one) => ms(one.took_ms) },
];

/// Events by their types, in the order in which each came first, and the captured ones themselves.
function events(turn) {
  const { upstream, sent } = turn.events ?? {};
  const text = turn.payloads?.events?.text;
  const found = [];
  for (const line of String(text ?? "").split("\n")) {
    const data = line.startsWith("data:") ? line.slice(5).trim() : line.startsWith("{") ? line : undefined;
    if (!data) continue;
    try {
      found.push(JSON.parse(data));
    } catch {
      // The last one may be cut.
    }
  }
  const shown = found.slice(0, 400);
  return el("div", null,
    facts([["Chunks from the provider", upstream === undefined ? undefined : count(upstream)], ["Events to the client", sent === undefined ? undefined : count(sent)]]),
    shown.length > 0 ? el("ol", { class: "event-list" }, shown.map((event) => el("li", null,
      el("details", null, el("summary", null, el("span", { class: "number" }, String(event.sequence_number ?? "")), " ", String(event.type ?? "event")), long(json(event), 2000)))))
      : el("p", { class: "quiet-text" }, without(turn)));
}

/// Why there are no events to show.
function without({ events, payloads, request }) {
  if (request?.stream === false && !events?.sent) return "The answer was not streamed: the client was sent no events.";
  if (payloads?.request) return "None were captured.";
  if (request?.store === false) return "Of a request with store: false the events themselves are kept with trace.capture_payload: true and trace.capture_unstored: true.";
  return "The events themselves are kept with trace.capture_payload: true.";
}

function usage(turn) {
  const charges = list(turn.charges);
  const columns = [
    { title: "Model or tool", cell: (one) => el("b", null, [one.provider, one.model].filter(Boolean).join("/")) },
    { title: "Input", number: true, cell: (one) => count(one.input_tokens ?? one.usage?.input_tokens) },
    { title: "Cached", number: true, cell: (one) => count(one.cached_tokens ?? one.usage?.cached_tokens) },
    { title: "Output", number: true, cell: (one) => count(one.output_tokens ?? one.usage?.output_tokens) },
    { title: "Calls", number: true, cell: (one) => (one.tool_calls ? count(one.tool_calls) : "") },
    { title: "Cost", number: true, cell: (one) => dollars(one.cost_usd) },
    { title: "", heard: "Remark", cell: (one) => (one.estimated ? chip("estimated", "careful") : "") },
  ];
  const prefix = turn.prefix ?? {};
  return el("div", null, facts([
    ["Input", `${count(turn.input_tokens)} tokens`], ["Cached", `${count(turn.cached_tokens)} (${percent(turn.cached_tokens, turn.input_tokens)})`],
    ["Output", `${count(turn.output_tokens)} tokens`], ["Reasoning", count(turn.reasoning_tokens)], ["Cost", dollars(turn.cost_usd)],
    ...Object.entries(prefix).map(([name, value]) => [`Prefix: ${name.replaceAll("_", " ")}`, typeof value === "number" ? count(value) : json(value)]),
  ]), charges.length > 0 && table("What was charged", columns, charges, { class: "plain" }));
}

function captured(turn) {
  const payloads = Object.entries(turn.payloads ?? {});
  if (payloads.length === 0) return el("p", { class: "quiet-text" }, turn.request?.store === false
    ? "No bodies were captured: the request said store: false, and trace.capture_unstored or trace.capture_payload is off." : "No bodies were captured: trace.capture_payload is off.");
  return payloads.map(([name, { text, cut_from: cut } = {}]) => el("details", null,
    el("summary", null, name, cut ? el("span", { class: "quiet-text" }, ` the beginning; it had ${bytes(cut)}`) : null), long(text ?? "", 5000)));
}

const SOURCES = {
  captured: "From the bodies that were captured.",
  cut: "Only the beginning of the request was captured (trace.payload_max_bytes): this is planned again, with the configuration of now, from what is stored of the response.",
  stored: "The bodies were not captured: this is planned again, with the configuration of now, from what is stored of the response.",
  none: "Neither the bodies nor the response are there, so there is nothing to compare.",
};

/// What has to be set so that later ones can be compared.
const wanted = ({ request }) => (request?.store === false
  ? " With trace.capture_payload: true and trace.capture_unstored: true later turns with store: false can be." : " With trace.capture_payload: true later turns can be.");

async function translation(node, id, turn, signal) {
  let explained;
  try {
    explained = await get(`admin/traces/${id}/explain`, {}, signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    replace(node, el("p", { class: "quiet-text" }, error instanceof Failed ? error.message : "It cannot be compared."));
    return;
  }
  const plan = explained.plan ?? {};
  const request = explained.request ?? parsed(turn.payloads?.request);
  const chat = typeof plan.chat_request === "string" ? parsed({ text: plan.chat_request }) : plan.chat_request;
  const response = explained.response ?? parsed(turn.payloads?.response);
  replace(node,
    el("p", { class: "hint" }, pick(SOURCES, explained.source === "stored" && turn.payloads?.request?.cut_from ? "cut" : explained.source, ""), explained.source === "none" && wanted(turn)),
    explained.past_is_gone && el("p", { class: "problem" }, "What this request continued was deleted. The plan is of the request without it, and is not what was sent."),
    plan.error && el("p", { class: "problem" }, typeof plan.error === "string" ? plan.error : String(plan.error.message ?? "")),
    explained.source !== "none" && compare({ request, past: explained.past, chat, wire: plan.wire, links: plan.links, notes: list(plan.notes), response }));
}

async function chain(node, id, turn, signal) {
  try {
    const { data = [] } = await get(`admin/traces/${id}/chain`, {}, signal);
    replace(node, data.length > 1 ? tree(data, turn.number) : el("p", { class: "quiet-text" }, "It continues nothing, and nothing continues it."));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    replace(node, el("p", { class: "quiet-text" }, "The tree cannot be had."));
  }
}

function head(turn) {
  const to = target(turn);
  const request = turn.request ?? {};
  const told = Object.entries(request).filter(([, value]) => value !== null && typeof value !== "object").map(([name, value]) => [
    name.replaceAll("_", " "), name.includes("bytes") ? bytes(value) : typeof value === "number" ? count(value) : String(value)]);
  return [
    el("div", { class: "head" },
      el("h1", null, el("span", { class: "quiet-text" }, `Turn ${turn.number ?? ""} `), turn.model ?? "", to && to !== turn.model && [" → ", el("span", { class: "target" }, to)]),
      chip(ending(turn), outcome(turn))),
    turn.error && el("p", { class: "problem" }, typeof turn.error === "string" ? turn.error : [turn.error.code, turn.error.message].filter(Boolean).join(": ")),
    el("div", { class: "panel" },
      el("div", { class: "figures" }, [["Took", ms(turn.took_ms)], ["First token", ms(turn.first_token_ms)], ["Of it godex", ms(turn.overhead_ms)],
        turn.times?.client_ms && ["Waited for the client", ms(turn.times.client_ms)],
        ["Input", count(turn.input_tokens)], ["Cached", percent(turn.cached_tokens, turn.input_tokens)], ["Output", count(turn.output_tokens)], ["Cost", dollars(turn.cost_usd)],
      ].filter(Boolean).map(([name, value]) => el("p", null, el("span", null, name), el("b", null, value)))),
      facts([
        ["Began", `${day(turn.began_at)} ${clock(turn.began_at, true)}`], ["Kind", turn.kind], ["Client", turn.client], ["Tenant", turn.tenant], ["Key", turn.key],
        ["Response", turn.response_id && el("span", { class: "code" }, turn.response_id)], ["Request", turn.request_id && el("span", { class: "code" }, turn.request_id)],
        ["Continues", turn.previous_response_id && el("a", { href: `#/turns/${encodeURIComponent(turn.previous_response_id)}`, class: "code" }, turn.previous_response_id)],
        ["Conversation", turn.conversation_id && el("span", { class: "code" }, turn.conversation_id)], ...told,
      ])),
  ];
}

export async function show(main, { parameter, signal }) {
  const id = encodeURIComponent(parameter);
  let turn;
  try {
    turn = await get(`admin/traces/${id}`, {}, signal);
  } catch (error) {
    if (error.status !== 404 || error.code === "traces_off") throw error;
    replace(main, el("div", { class: "head" }, el("h1", null, "Turn")), empty("There is no such turn.", "It may be older than what is kept (trace.ttl, trace.max_bytes).", el("a", { href: "#/turns" }, "All turns")));
    return;
  }
  const [translated, linked] = [el("div", null, el("p", { class: "quiet-text" }, "Comparing…")), el("div")];
  const attempts = list(turn.attempts);
  const calls = list(turn.tool_calls);
  const sections = [
    section("s-compare", "Asked, sent, answered", translated),
    section("s-time", "Where the time went", timeline(turn)),
    section("s-notes", "Notes", notes(list(turn.notes))),
    section("s-attempts", "Attempts", attempts.length > 0 ? table("Attempts", ATTEMPTS, attempts, { class: "plain" }) : el("p", { class: "quiet-text" }, "No provider was asked."),
      calls.length > 0 && [el("h3", null, "Tools that godex ran"), table("Tool calls", CALLS, calls, { class: "plain" })],
      list(turn.rounds).length > 1 && el("p", { class: "hint" }, `The model was asked in ${turn.rounds.length} rounds.`)),
    section("s-events", "Events", events(turn)),
    section("s-usage", "Usage and cost", usage(turn)),
    section("s-chain", "The tree of turns", linked),
    section("s-bodies", "Captured bodies", captured(turn)),
    section("s-record", "The record", el("details", null, el("summary", null, "As JSON"), long(json(turn), 20_000))),
  ];
  const jump = sections.map((node) => {
    const title = node.querySelector("h2");
    return el("li", null, el("button", { type: "button", class: "link", click: () => {
      title.scrollIntoView({ block: "start" });
      title.focus({ preventScroll: true });
    } }, title.textContent));
  });
  replace(main, el("p", { class: "back" }, el("a", { href: "#/turns" }, "← All turns")), head(turn),
    el("nav", { class: "jump", "aria-label": "Parts of this turn" }, el("ul", null, jump)), sections);
  await Promise.all([translation(translated, id, turn, signal), chain(linked, id, turn, signal)]);
}
