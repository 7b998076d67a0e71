// What was asked beside what was sent: each item in one row with the messages that it became.

import { chip, el, json, long } from "./dom.js";
import { pick, severity } from "./format.js";

const TEXT_PARTS = ["input_text", "output_text", "text", "summary_text", "reasoning_text", "refusal"];

/// What an item or a message says, as plain text.
export function words(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(words).filter(Boolean).join("\n");
  if (TEXT_PARTS.includes(value.type)) return words(value.text ?? value.refusal);
  switch (value.type) {
    case "function_call": return `${value.name}(${json(value.arguments ?? "")})`;
    case "custom_tool_call": return `${value.name}(${json(value.input ?? "")})`;
    case "function_call_output": case "custom_tool_call_output": case "local_shell_call_output": return words(value.output);
    case "reasoning": return words([...(value.summary ?? []), ...(value.content ?? [])]) || (value.encrypted_content ? "(sealed)" : "");
    default:
  }
  if (value.role !== undefined || value.content !== undefined) {
    const calls = (value.tool_calls ?? []).map((call) => `${call.function?.name ?? call.custom?.name ?? call.name}(${json(call.function?.arguments ?? call.custom?.input ?? "")})`);
    return [words(value.reasoning_content), words(value.content), ...calls].filter(Boolean).join("\n");
  }
  if (value.name !== undefined || value.function !== undefined) return tool(value);
  return json(value);
}

function tool(value) {
  const of = value.function ?? value.custom ?? value;
  return [of.name, of.description && `  ${of.description}`, of.parameters && json(of.parameters)].filter(Boolean).join("\n");
}

/// What kind of thing it is, in a word or two.
function kind(value) {
  if (typeof value !== "object" || value === null) return "text";
  if (value.role) return value.tool_call_id ? "tool result" : `${value.role}${value.tool_calls?.length ? " with calls" : ""}`;
  if (value.type === "message") return "message";
  return String(value.type ?? "item").replaceAll("_", " ");
}

/// The parts of both sides under the names that links have: `input[0]`, `messages[1]`, `tools[0]`; an input that is a text is
/// `input`.
function parts(request, past, chat) {
  const left = new Map();
  const right = new Map();
  if (request.instructions) left.set("instructions", request.instructions);
  (past ?? []).forEach((item, index) => left.set(`past[${index}]`, item));
  if (typeof request.input === "string") left.set("input", { role: "user", content: request.input });
  else (request.input ?? []).forEach((item, index) => left.set(`input[${index}]`, item));
  (Array.isArray(request.tools) ? request.tools : []).forEach((item, index) => left.set(`tools[${index}]`, item));
  // A provider with a Responses API of its own is sent items, one with a Messages API instructions of their own.
  for (const name of ["system", "messages", "input", "tools"]) {
    const list = chat?.[name];
    (Array.isArray(list) ? list : []).forEach((item, index) => right.set(`${name}[${index}]`, item));
  }
  if (typeof chat?.instructions === "string") right.set("instructions", chat.instructions);
  return { left, right };
}

/// Rows of what belongs together: items that share a message are in one row.
function align(request, past, chat, links) {
  const { left, right } = parts(request, past, chat);
  const rows = [];
  const byRight = new Map();
  const linked = new Map();
  const reasons = new Map();
  const own = new Set();
  for (const { item, to, left_out: why, by_godex: how } of links ?? []) {
    linked.set(item, [...(linked.get(item) ?? []), ...(to ?? [])]);
    if (why || how) reasons.set(item, String(why ?? how));
    if (how) own.add(item);
  }
  // What is linked and nobody has the text of is shown by its name.
  for (const name of linked.keys()) if (!left.has(name)) left.set(name, undefined);
  for (const name of left.keys()) {
    const to = linked.get(name) ?? [];
    let row = to.map((other) => byRight.get(other)).find(Boolean);
    if (!row) {
      row = { left: [], right: [] };
      rows.push(row);
    }
    row.left.push(name);
    for (const other of to) {
      if (!row.right.includes(other)) row.right.push(other);
      byRight.set(other, row);
    }
  }
  for (const name of right.keys()) {
    if (byRight.has(name)) continue;
    const row = { left: [], right: [name] };
    byRight.set(name, row);
    // After the row of what is sent before it.
    const before = [...right.keys()].slice(0, [...right.keys()].indexOf(name)).reverse().map((other) => byRight.get(other)).find(Boolean);
    rows.splice(before ? rows.indexOf(before) + 1 : 0, 0, row);
  }
  return { rows, left, right, reasons, own };
}

/// Where two texts differ, if only in the middle: both with the rest marked.
function difference(one, other) {
  let from = 0;
  while (from < one.length && from < other.length && one[from] === other[from]) from += 1;
  let end = 0;
  while (end < one.length - from && end < other.length - from && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  return { from, end };
}

function marked(text, { from, end }) {
  if (text.length > 4000) return long(text);
  const middle = text.slice(from, text.length - end);
  return el("pre", { class: "text" }, text.slice(0, from), middle && el("mark", null, middle), text.slice(text.length - end));
}

function block(name, value, shared) {
  const text = value === undefined ? "" : words(value);
  return el("div", { class: "block" },
    el("p", { class: "block-head" }, el("span", { class: "path" }, name), value !== undefined && el("span", { class: "quiet-text" }, kind(value))),
    value === undefined ? el("p", { class: "quiet-text" }, "Its text is not known here.") : shared ? marked(text, shared) : long(text || json(value)));
}

function note(one) {
  return el("p", { class: "note" }, chip(String(one.code ?? ""), severity(one.severity)), " ", String(one.detail ?? ""));
}

/// What became of a row, in a word.
function fate(row, left, right, own) {
  if (row.left.length === 0) return ["godex's own", "quiet"];
  if (row.left.every((name) => own.has(name))) return ["by godex", "quiet"];
  if (row.right.length === 0) return ["left out", "bad"];
  if (row.left.length !== 1 || row.right.length !== 1) return [row.left.length > 1 ? "merged" : "split", "careful"];
  const [one, other] = [left.get(row.left[0]), right.get(row.right[0])];
  if (one === undefined || other === undefined) return ["sent", "quiet"];
  return words(one) === words(other) ? ["as asked", "good"] : ["changed", "careful"];
}

const belongs = (path, name) => path === name || path?.startsWith(`${name}.`) || path?.startsWith(`${name}[`);

function parameters(request, chat, notes) {
  const without = (value, names) => Object.fromEntries(Object.entries(value ?? {}).filter(([name]) => !names.includes(name)));
  const asked = without(request, ["input", "instructions", "tools"]);
  const sent = without(chat, ["system", "messages", "input", "instructions", "tools"]);
  const names = [...new Set([...Object.keys(asked), ...Object.keys(sent)])];
  if (names.length === 0) return null;
  const cell = (value) => (value === undefined ? el("span", { class: "quiet-text" }, "–") : el("span", { class: "code" }, JSON.stringify(value).slice(0, 2000)));
  return el("table", { class: "plain parameters" }, el("caption", { class: "unseen" }, "Parameters"),
    el("thead", null, el("tr", null, ["Parameter", "Asked", "Sent"].map((title) => el("th", { scope: "col" }, title)))),
    el("tbody", null, names.map((name) => {
      const same = JSON.stringify(asked[name]) === JSON.stringify(sent[name]);
      const said = notes.filter(({ path }) => belongs(path, name));
      return el("tr", { class: same ? "same" : "differs" }, el("th", { scope: "row" }, name), el("td", null, cell(asked[name])),
        el("td", null, cell(sent[name]), said.map(note)));
    })));
}

const WIRES = { chat: "Sent: Chat Completions", messages: "Sent: Messages", responses: "Sent: Responses" };

/// Both sides and, beside them, what came back.
export function compare({ request, past, chat, wire, links, notes, response }) {
  const { rows, left, right, reasons, own } = align(request ?? {}, past, chat ?? {}, links);
  const used = new Set();
  const shown = rows.map((row) => {
    const said = (notes ?? []).filter((one) => row.left.some((name) => belongs(one.path, name)));
    said.forEach((one) => used.add(one));
    const [word, color] = fate(row, left, right, own);
    const changed = word === "changed" ? difference(words(left.get(row.left[0])), words(right.get(row.right[0]))) : undefined;
    return el("div", { class: "pair", tabindex: 0, role: "group", "aria-label": `${row.left.join(", ") || "nothing"} became ${row.right.join(", ") || "nothing"}: ${word}` },
      el("div", { class: "asked" }, row.left.map((name) => block(name, left.get(name), changed))),
      el("div", { class: "link-mark" }, chip(word, color)),
      el("div", { class: "sent" }, row.right.map((name) => block(name, right.get(name), changed)), 
        row.left.map((name) => reasons.get(name)).filter(Boolean).map((why) => el("p", { class: "note" }, why)), said.map(note)));
  });
  const rest = (notes ?? []).filter((one) => !used.has(one));
  const output = Array.isArray(response?.output) ? response.output : [];
  return el("div", { class: "compare" },
    el("div", { class: "translation" },
      el("div", { class: "pair titles", "aria-hidden": "true" }, el("p", null, "Asked: Responses"), el("p"), el("p", null, pick(WIRES, wire, "Sent"))),
      shown, parameters(request, chat, rest)),
    el("section", { class: "answer", "aria-label": "The answer" }, el("h3", null, "Answered"),
      response?.error && el("p", { class: "problem" }, String(response.error.message ?? response.error.code ?? "")),
      output.map((item, index) => block(`output[${index}]`, item)),
      output.length === 0 && el("p", { class: "quiet-text" }, "The answer was not captured. What was stored of it clients can retrieve by its id.")));
}
