// Makes elements. What others wrote goes in as text nodes and nothing else: there is no way from a string to markup here.

const SVG = "http://www.w3.org/2000/svg";

/// What does something instead of being seen, such as turning the order in which the rest is read, or is not seen at all.
const ACTS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/// Others' text with that as escapes, as the commands show it: `\u{202e}`.
export function seen(text) {
  return String(text).replace(ACTS, (act) => `\\u{${act.codePointAt(0).toString(16)}}`);
}

const shown = (children) =>
  children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false).map((child) => (child instanceof Node ? child : seen(child)));

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name === "href" && !String(value).startsWith("#")) throw new Error("links stay within the page");
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...shown(children));
  return node;
}

/// An element: `el("p", { class: "quiet", click: () => … }, "text", el("b", null, "more"))`.
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function replace(node, ...children) {
  node.replaceChildren(...shown(children));
  return node;
}

/// Says something to those who listen instead of looking.
export function say(text) {
  document.getElementById("said").textContent = text;
}

/// A table with explicit roles: narrow screens show rows as cards, and the roles must outlive that.
/// A column is `{ title, heard, number, class, cell(row) }`; one without a title has a name for those who listen.
export function table(caption, columns, rows, attributes) {
  const head = columns.map(({ title, heard, number }) =>
    el("th", { scope: "col", role: "columnheader", class: number && "number" }, title || el("span", { class: "unseen" }, heard)));
  const body = el("tbody", { role: "rowgroup" }, rows.map((row) => line(columns, row)));
  return el("table", { role: "table", ...attributes },
    el("caption", { class: "unseen" }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
    body);
}

export function line(columns, row) {
  return el("tr", { role: "row" }, columns.map((column) => {
    const cell = column.cell(row);
    const empty = cell === "" || cell === undefined || cell === null;
    return el("td", { role: "cell", class: [column.number && "number", column.class, empty && "empty"].filter(Boolean).join(" ") || undefined,
      "data-title": column.title }, empty ? "" : cell);
  }));
}

/// Pairs of names and values.
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return el("dl", { class: "facts" }, known.map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value))));
}

export function empty(title, ...more) {
  return el("div", { class: "nothing" }, el("p", { class: "nothing-title" }, title), more.map((text) => el("p", null, text)));
}

export function chip(text, kind) {
  return el("span", { class: `chip ${kind ?? ""}` }, text);
}

/// A name in such an element: of one that is longer than names are, the beginning, and the whole where one points at it.
export function name(tag, attributes, text) {
  const [most, whole] = [64, seen(text)];
  return whole.length > most ? el(tag, { ...attributes, title: whole }, `${whole.slice(0, most)}…`) : el(tag, attributes, whole);
}

/// A long text: its beginning, and the rest when it is asked for. What is longer than anybody reads stays out of the document.
export function long(text, most = 700) {
  const node = el("pre", { class: "text" });
  const whole = seen(text);
  if (whole.length <= most) {
    node.textContent = whole;
    return node;
  }
  const LIMIT = 400_000;
  const begin = document.createTextNode(`${whole.slice(0, most)}…`);
  const more = el("button", { type: "button", class: "link", click: () => {
    begin.data = whole.length > LIMIT ? `${whole.slice(0, LIMIT)}…` : whole;
    more.remove();
  } }, `Show all (${whole.length.toLocaleString("en")} characters)`);
  node.append(begin, " ", more);
  return node;
}

export function json(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
}
