// Charts over time, drawn here: small ones above the list of turns, larger ones on a view of their own.

import { Failed, get } from "./api.js";
import { el, empty, replace, svg, table } from "./dom.js";
import { clock, count, day, dollars, ms, short } from "./format.js";

/// How far back, and how wide a step is then.
export const SPANS = [
  ["15m", "15 minutes", 15 * 60_000, 15_000],
  ["1h", "1 hour", 3_600_000, 60_000],
  ["6h", "6 hours", 6 * 3_600_000, 5 * 60_000],
  ["24h", "24 hours", 24 * 3_600_000, 20 * 60_000],
  ["7d", "7 days", 7 * 24 * 3_600_000, 2 * 3_600_000],
];

export const PARAMETERS = ["span"];

/// The one of this name; one hour if none is named.
export function span(name) {
  const found = name ? SPANS.find(([known]) => known === name) : SPANS[1];
  if (!found) throw new Failed(400, "invalid_request", `\`span\` is one of ${SPANS.map(([known]) => known).join(", ")}.`);
  return found;
}

/// As the list and the series take moments.
export function moment(at) {
  return new Date(at).toISOString();
}

const sum = (values) => values.reduce((all, value) => all + (Number(value) || 0), 0);
const worst = (values) => Math.max(0, ...values.filter((value) => value !== null));
const peak = (values) => (values.some((value) => value !== null) ? worst(values) : null);
const of = (points, name) => points.map((point) => (point[name] === null || point[name] === undefined ? null : Number(point[name])));

/// What is drawn: bars stand on each other, lines do not.
const CHARTS = [
  { title: "Requests", text: count, bars: [["requests", "answered", "c1"]], total: sum },
  { title: "Errors", text: count, bars: [["errors", "errors", "c4"]], total: sum },
  { title: "Tokens", text: short, bars: [["input_tokens", "input", "c1"], ["output_tokens", "output", "c2"]], total: sum },
  { title: "Duration", text: ms, lines: [["took_p95_ms", "95th percentile", "c3"], ["took_p50_ms", "median", "c1"]], total: peak, label: "p95, highest" },
  { title: "First token", text: ms, lines: [["first_token_p50_ms", "median", "c2"]], total: peak, label: "median, highest" },
  { title: "Cost", text: dollars, bars: [["cost_usd", "cost", "c5"]], total: sum },
];

/// A round number that is not below.
function ceiling(value) {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * unit).find((step) => step >= value * 0.999);
}

/// The series has only the steps in which something was; the others are made here.
function fillSteps(data, step, since, until) {
  const found = new Map(data.map((point) => [Math.floor(new Date(point.at).getTime() / step), point]));
  const points = [];
  for (let at = Math.floor(since / step); at <= Math.floor(until / step) && points.length < 600; at += 1) {
    const nothing = { requests: 0, errors: 0, input_tokens: 0, cached_tokens: 0, output_tokens: 0, cost_usd: 0 };
    points.push({ ...nothing, ...found.get(at), at: at * step });
  }
  return points;
}

const H = 100;

function shapes({ bars = [], lines = [] }, points, most) {
  const width = points.length;
  const y = (value) => H - (Math.min(value, most) / most) * H;
  const drawn = [];
  for (const [index] of points.entries()) {
    let below = 0;
    for (const [name, , color] of bars) {
      const value = Number(points[index][name]) || 0;
      if (value <= 0) continue;
      const top = y(below + value);
      // What is there can be seen.
      const height = Math.max(y(below) - top, 1.5);
      drawn.push(svg("rect", { x: index + 0.1, width: 0.8, y: Math.min(top, H - height), height, class: color }));
      below += value;
    }
  }
  for (const [name, , color] of lines) {
    const values = of(points, name);
    let [path, dots] = ["", ""];
    values.forEach((value, index) => {
      if (value === null) return;
      const is = (other) => values[other] !== null && values[other] !== undefined;
      const at = `${index + 0.5} ${y(value).toFixed(2)}`;
      // One alone is no line: its round ends make a dot of it.
      if (is(index - 1)) path += `L${at}`;
      else if (is(index + 1)) path += `M${at}`;
      else dots += `M${at}h0.001`;
    });
    if (path) drawn.push(svg("path", { d: path, class: `line ${color}` }));
    if (dots) drawn.push(svg("path", { d: dots, class: `line dots ${color}` }));
  }
  return svg("svg", { viewBox: `0 0 ${width} ${H}`, preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" },
    [0, 0.25, 0.5, 0.75].map((part) => svg("path", { d: `M0 ${H * part}H${width}`, class: "grid" })), drawn);
}

function figure(chart, points, small) {
  const series = [...(chart.bars ?? []), ...(chart.lines ?? [])];
  const stacked = points.map((point) => sum((chart.bars ?? []).map(([name]) => point[name])));
  const highest = Math.max(worst(stacked), ...(chart.lines ?? []).map(([name]) => worst(of(points, name))));
  const most = small ? highest || 1 : ceiling(highest);
  const totals = series.map(([name]) => chart.total(of(points, name)));
  const headline = chart.bars ? chart.text(sum(totals)) : chart.text(totals[0]);
  const readout = el("span", { class: "readout" }, headline, chart.label && el("small", null, ` ${chart.label}`));
  const picture = shapes(chart, points, most);
  const plot = el("div", { class: "plot" }, picture);
  const tell = (event) => {
    const box = plot.getBoundingClientRect();
    const index = Math.min(points.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * points.length)));
    const point = points[index];
    if (!point) return;
    const values = series.map(([name, label]) => `${chart.text(point[name])}${series.length > 1 ? ` ${label}` : ""}`);
    readout.textContent = `${clock(point.at).slice(0, 5)} · ${values.join(", ")}`;
  };
  plot.addEventListener("pointermove", tell);
  plot.addEventListener("pointerleave", () => replace(readout, headline, chart.label && el("small", null, ` ${chart.label}`)));
  const words = series.map(([name, label]) => `${label} ${chart.text(chart.total(of(points, name)))}`).join(", ");
  const label = `${chart.title}: ${words}; highest step ${chart.text(chart.bars ? worst(stacked) : worst(of(points, series[0][0])))}`;
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", label);
  const when = (at) => (points.length && points.at(-1).at - points[0].at > 36 * 3_600_000 ? day(at).slice(5) : clock(at).slice(0, 5));
  return el("figure", { class: small ? "chart small" : "chart" },
    el("figcaption", null, el("span", { class: "chart-title" }, chart.title), readout),
    small ? plot : el("div", { class: "axes" }, el("span", { class: "top" }, chart.text(most)), plot,
      el("span", { class: "first" }, points.length ? when(points[0].at) : ""), el("span", { class: "last" }, points.length ? when(points.at(-1).at) : "")),
    !small && series.length > 1 && el("ul", { class: "legend" }, series.map(([, name, color]) => el("li", { class: color }, name))));
}

async function load(name, filters, signal) {
  const [, , back, step] = span(name);
  const until = Date.now();
  const since = until - back;
  const answer = await get("admin/series", { ...filters, since: moment(since), until: moment(until), step: `${step / 1000}s` }, signal);
  return fillSteps(answer.data ?? [], Number(answer.step_ms) || step, since, until);
}

/// The strip of small charts; it is left out where there are no series.
export async function strip(node, name, filters, signal) {
  const points = await load(name, filters, signal);
  replace(node, CHARTS.map((chart) => figure(chart, points, true)));
}

export async function show(main, { query, signal, go, every }) {
  const name = span(query.get("span"))[0];
  const choose = el("select", { id: "span", change: () => go("charts", { span: choose.value }) },
    SPANS.map(([value, title]) => el("option", { value, selected: value === name }, title)));
  const charts = el("div", { class: "charts" });
  const numbers = el("details", { class: "panel" }, el("summary", null, "The same as a table"));
  const problem = el("div");
  replace(main,
    el("div", { class: "head" }, el("h1", null, "Charts"), el("label", null, "The last ", choose)),
    problem, charts, numbers);
  const update = async () => {
    const points = await load(name, {}, signal);
    const any = points.some((point) => point.requests > 0);
    replace(problem, !any && empty("Nothing in this time.", "Choose a longer one, or send a request in the playground."));
    replace(charts, CHARTS.map((chart) => figure(chart, points, false)));
    const columns = [
      { title: "From", cell: ({ at }) => `${day(at).slice(5)} ${clock(at).slice(0, 5)}` },
      ...CHARTS.flatMap((chart) => [...(chart.bars ?? []), ...(chart.lines ?? [])].map(([field, label]) => ({
        title: label === chart.title.toLowerCase() || label === "answered" ? chart.title : `${chart.title}, ${label}`,
        number: true, cell: (point) => chart.text(point[field]) }))),
    ];
    const rows = points.filter((point) => point.requests > 0).reverse();
    replace(numbers, numbers.firstChild, el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Values over time" },
      table("Values over time", columns, rows, { class: "plain" })));
  };
  await update();
  every(15_000, update);
}
