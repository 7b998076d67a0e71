// The tree of turns that a turn belongs to, as a picture: what continues what, and where it branches.

import { el, svg } from "./dom.js";
import { clock, dollars, ending, ms, outcome, short } from "./format.js";
import { link } from "./turns.js";

const [ROW, LANE, RADIUS] = [34, 16, 5];

/// The first that continues a turn stays in its lane, every other one gets its own.
function lanes(turns) {
  const ordered = [...turns].sort((one, other) => String(one.began_at).localeCompare(String(other.began_at)) || one.number - other.number);
  const rows = new Map();
  const continued = new Set();
  let used = 0;
  return ordered.map((turn, row) => {
    const parent = turn.previous_response_id ? rows.get(turn.previous_response_id) : undefined;
    let lane;
    if (parent && !continued.has(parent)) {
      continued.add(parent);
      lane = parent.lane;
    } else {
      lane = used;
      used += 1;
    }
    const placed = { turn, row, lane, parent };
    if (turn.response_id) rows.set(turn.response_id, placed);
    return placed;
  });
}

/// There is no room for more: these have a place at the edge, without a line, and the list leads to what they continue.
const LAST = 11;
const x = (lane) => 12 + Math.min(lane, LAST) * LANE;
const y = (row) => row * ROW + ROW / 2;

/// Of one that was refused only how.
function told(turn) {
  const was = turn.input_tokens !== null && turn.input_tokens !== undefined;
  return [ending(turn), turn.error, was && `${short(turn.input_tokens)} → ${short(turn.output_tokens)}`, ms(turn.took_ms), was && dollars(turn.cost_usd)].filter(Boolean).join(" · ");
}

export function tree(turns, current) {
  const placed = lanes(turns);
  const width = 24 + Math.min(Math.max(0, ...placed.map(({ lane }) => lane)), LAST) * LANE;
  const edges = placed.filter(({ lane, parent }) => parent && lane < LAST).map(({ row, lane, parent }) => {
    const [fromX, fromY, toX, toY] = [x(parent.lane), y(parent.row), x(lane), y(row)];
    const path = fromX === toX ? `M${fromX} ${fromY}V${toY}` : `M${fromX} ${fromY}C${fromX} ${fromY + ROW / 1.5} ${toX} ${fromY + ROW / 3} ${toX} ${fromY + ROW}V${toY}`;
    return svg("path", { d: path, class: "edge" });
  });
  const nodes = placed.map(({ turn, row, lane }) => svg("circle", { cx: x(lane), cy: y(row), r: turn.number === current ? RADIUS + 2 : RADIUS,
    class: `node ${outcome(turn)}${turn.number === current ? " here" : ""}` }));
  const picture = svg("svg", { width, height: placed.length * ROW, viewBox: `0 0 ${width} ${placed.length * ROW}`, role: "img",
    "aria-label": `The tree of ${placed.length} turns; the list beside it has them in the same order` }, edges, nodes);
  const entries = placed.map(({ turn, parent, lane }) => el("li", null,
    el("a", { href: link(turn), "aria-current": turn.number === current ? "true" : undefined },
      el("span", { class: "tree-time" }, clock(turn.began_at)),
      el("span", { class: "quiet-text number" }, String(turn.number ?? "")),
      el("span", { class: "tree-model" }, turn.model ?? ""),
      el("span", { class: "quiet-text" }, told(turn)),
      lane < LAST && lane !== (parent?.lane ?? lane) && el("span", { class: "unseen" }, "; a branch")),
    parent && lane >= LAST && el("a", { href: link(parent.turn), class: "tree-parent" }, `continues ${parent.turn.number}`)));
  return el("div", { class: "tree" }, picture, el("ol", null, entries));
}
