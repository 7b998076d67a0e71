// Asks the admin listener. Behind `godex page` a cookie says who asks, on a port the token that the user gave to this tab.

const BASE = new URL(".", location.href.split("#")[0]);
const TOKEN = "godex-admin-token";
/// The page is below the path of a session: `godex page` shows the token itself, and passes none of the browser's on.
const BEHIND = /^\/[\w-]{20,}\/$/.test(BASE.pathname);

export class Failed extends Error {
  constructor(status, code, message, request) {
    super(message);
    Object.assign(this, { status, code, request });
  }
}

let asking;

/// Has the user give the token, once for all who wait for it.
function token(wrong) {
  asking ??= new Promise((resolve) => {
    const [door, form, field, problem] = ["door", "door-form", "door-token", "door-problem"].map((id) => document.getElementById(id));
    problem.hidden = !wrong;
    problem.textContent = wrong ? "That is not the token." : "";
    field.value = "";
    form.onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem(TOKEN, field.value);
      field.value = "";
      door.close();
      asking = undefined;
      resolve();
    };
    door.oncancel = (event) => event.preventDefault();
    if (!door.open) door.showModal();
    field.focus();
  });
  return asking;
}

/// Says that `godex page` has another token than the server, once to all who wait; no token given here would help.
function stale() {
  asking ??= new Promise((resolve) => {
    const told = document.getElementById("stale");
    told.onclose = () => {
      asking = undefined;
      resolve();
    };
    told.showModal();
  });
  return asking;
}

async function send(method, path, body, signal) {
  for (;;) {
    const headers = { accept: "application/json, text/event-stream" };
    const known = sessionStorage.getItem(TOKEN);
    // No header can carry anything else, so it is not the token.
    if (/[^\x21-\x7e]/.test(known ?? "")) {
      sessionStorage.removeItem(TOKEN);
      await token(true);
      continue;
    }
    if (known) headers.authorization = `Bearer ${known}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    let answer;
    try {
      answer = await fetch(new URL(path, BASE), {
        method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", redirect: "error",
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Failed(0, "unreachable", "godex does not answer. Is it running, and is `godex page`?");
    }
    if (answer.status === 401) {
      await (BEHIND ? stale() : token(Boolean(known)));
      continue;
    }
    if (answer.ok) return answer;
    const text = await answer.text();
    let error = {};
    try {
      error = JSON.parse(text).error ?? {};
    } catch {
      error = { message: text.slice(0, 500) };
    }
    throw new Failed(answer.status, error.code, String(error.message ?? `the answer was ${answer.status}`), answer.headers.get("x-request-id") ?? undefined);
  }
}

function query(path, values) {
  const pairs = Object.entries(values ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

export async function get(path, values, signal) {
  return (await send("GET", query(path, values), undefined, signal)).json();
}

/// Sends, and gives each event of the answer to `take(type, data)`; an answer that is no stream comes as one of type `json`.
export async function stream(path, body, signal, take) {
  const answer = await send("POST", path, body, signal);
  if (!(answer.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    take("json", await answer.json());
    return;
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += value ?? "";
    const frames = rest.split(/\r?\n\r?\n/);
    rest = done ? "" : frames.pop();
    for (const frame of frames) event(frame, take);
    if (done) return;
  }
}

function event(frame, take) {
  let type = "";
  const data = [];
  for (const line of frame.split(/\r?\n/)) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  if (data.length === 0) return;
  try {
    const value = JSON.parse(data.join("\n"));
    take(String(type || value.type || "message"), value);
  } catch {
    take(type || "message", data.join("\n"));
  }
}
