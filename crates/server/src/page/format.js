// Numbers, times and names as people read them. Everything here gives text.

const DASH = "–";

const known = (value) => value !== undefined && value !== null && value !== "" && Number.isFinite(Number(value));

export function count(value) {
  return known(value) ? Number(value).toLocaleString("en") : DASH;
}

/// 1234567 is 1.23M.
export function short(value) {
  if (!known(value)) return DASH;
  const number = Number(value);
  const size = Math.abs(number);
  if (size < 10_000) return Number.isInteger(number) ? number.toLocaleString("en") : String(Number(number.toPrecision(3)));
  if (size < 999_500) return `${(number / 1000).toPrecision(3)}k`;
  if (size < 999_500_000) return `${(number / 1e6).toPrecision(3)}M`;
  return `${(number / 1e9).toPrecision(3)}G`;
}

export function ms(value) {
  if (!known(value)) return DASH;
  const number = Number(value);
  if (number < 1) return number === 0 ? "0 ms" : "<1 ms";
  if (number < 999.5) return `${Math.round(number)} ms`;
  if (number < 59_950) return `${(number / 1000).toFixed(number < 9995 ? 2 : 1)} s`;
  return `${Math.floor(number / 60_000)} min ${Math.round((number % 60_000) / 1000)} s`;
}

export function bytes(value) {
  if (!known(value)) return DASH;
  const number = Number(value);
  if (number < 1024) return `${number} B`;
  if (number < 1024 ** 2) return `${(number / 1024).toFixed(1)} KiB`;
  return `${(number / 1024 ** 2).toFixed(1)} MiB`;
}

/// A cost that nobody knows is a dash, and no 0.
export function dollars(value) {
  if (!known(value)) return DASH;
  const number = Number(value);
  if (number === 0) return "$0";
  if (number < 0.0001) return "<$0.0001";
  return `$${number.toFixed(number < 0.1 ? 4 : 2)}`;
}

export function percent(part, whole) {
  return known(part) && Number(whole) > 0 ? `${Math.round((100 * part) / whole)}%` : DASH;
}

const pad = (number, digits = 2) => String(number).padStart(digits, "0");

export function clock(value, exact) {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return DASH;
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return exact ? `${time}.${pad(date.getMilliseconds(), 3)}` : time;
}

export function day(value) {
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? DASH : `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

export function seconds(value) {
  return known(value) ? `${day(value * 1000)} ${clock(value * 1000)}` : DASH;
}

/// What a table of ours has under a name that is others': nothing that every object has.
export const pick = (known, name, otherwise) => (Object.hasOwn(known, name) ? known[name] : otherwise);

/// How it ended, in a word; of what is only answered, such as a refusal, its status.
export function ending({ outcome, status }) {
  return outcome && outcome !== "answered" ? String(outcome).replaceAll("_", " ") : String(status ?? "");
}

/// How an end looks: good, careful, bad or quiet.
export function outcome({ outcome, status }) {
  if (outcome === "completed" || (outcome === "answered" && status < 400)) return "good";
  if (outcome === "incomplete") return "careful";
  if (outcome === "client_left" || outcome === "cancelled" || outcome === "stopped") return "quiet";
  return outcome || status ? "bad" : "quiet";
}

export function severity(name) {
  return pick({ error: "bad", warning: "careful", warn: "careful", info: "quiet" }, name, "quiet");
}

/// Where it went: the model as asked, and the target if that is another.
export function target({ provider, upstream_model: model }) {
  return provider ? `${provider}/${model ?? ""}` : "";
}
