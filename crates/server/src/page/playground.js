// Sends a request as the tenant `default` and shows what comes, as it comes.

import { get, stream } from "./api.js";
import { words } from "./compare.js";
import { chip, el, json, long, replace, say, seen } from "./dom.js";
import { count, ms } from "./format.js";

/// What was written stays when one looks elsewhere.
const kept = { model: "", instructions: "", input: "Say hello in three languages.", stream: true, store: true, more: "", previous: undefined };
const MOST_EVENTS = 300;

/// What is configured or has answered, and the one to begin with: of the default provider. What clients only named is no offer.
async function models(signal) {
  try {
    const { data = [] } = await get("admin/providers", {}, signal);
    const first = data.filter((provider) => provider.default).concat(data).flatMap(named).find(({ listed }) => listed);
    return { known: data.flatMap(named).filter(({ listed, accepted }) => listed || accepted > 0).map(({ name }) => name), first: first?.name ?? "" };
  } catch {
    return { known: [], first: "" };
  }
}

const named = ({ name, models }) => (models ?? []).map(({ model, listed, accepted }) => ({ name: `${name}/${model}`, listed, accepted }));

/// Also a turn that failed has a trace, if only by its request.
const became = (id) => id && el("a", { href: `#/turns/${encodeURIComponent(id)}` }, "What became of it");

function request(fields) {
  const more = fields.more.value.trim();
  const extra = more ? JSON.parse(more) : {};
  if (typeof extra !== "object" || extra === null || Array.isArray(extra)) throw new SyntaxError("an object is wanted");
  const body = { model: fields.model.value.trim(), input: fields.input.value, stream: fields.stream.checked, store: fields.store.checked };
  if (fields.instructions.value.trim()) body.instructions = fields.instructions.value;
  if (kept.previous && fields.goOn.checked) body.previous_response_id = kept.previous;
  return { ...body, ...extra };
}

/// What the answer shows of its items while they come.
class Output {
  constructor(node) {
    Object.assign(this, { node, items: new Map() });
  }

  item(index, kind) {
    let found = this.items.get(index);
    if (!found) {
      const text = document.createTextNode("");
      const title = el("p", { class: "block-head" }, el("span", { class: "path" }, String(kind).replaceAll("_", " ")));
      this.node.append(el("div", { class: "block" }, title, el("pre", { class: "text" }, text)));
      found = { text };
      this.items.set(index, found);
    }
    return found;
  }

  take(type, data) {
    if (type === "response.output_item.added") this.item(data.output_index, data.item?.type ?? "item");
    else if (/\.(delta)$/.test(type) && typeof data.delta === "string") this.item(data.output_index, type.split(".")[1]).text.appendData(seen(data.delta));
    else if (type === "response.output_item.done") {
      const whole = seen(words(data.item));
      const { text } = this.item(data.output_index, data.item?.type ?? "item");
      if (whole && text.data !== whole) text.data = whole;
    }
  }

  whole(response) {
    (response.output ?? []).forEach((item, index) => (this.item(index, item.type).text.data = seen(words(item))));
  }
}

export async function show(main, { signal }) {
  const name = (id, title, node, hint) => {
    node.id = id;
    return el("p", { class: "field" }, el("label", { for: id }, title), node, hint && el("span", { class: "hint" }, hint));
  };
  const fields = {
    model: el("input", { list: "models", value: kept.model, autocomplete: "off", spellcheck: "false", required: true }),
    instructions: el("textarea", { rows: 2, value: kept.instructions }),
    input: el("textarea", { rows: 5, value: kept.input, required: true }),
    stream: el("input", { type: "checkbox", checked: kept.stream }),
    store: el("input", { type: "checkbox", checked: kept.store }),
    goOn: el("input", { type: "checkbox" }),
    more: el("textarea", { rows: 4, value: kept.more, spellcheck: "false", class: "code", placeholder: '{"temperature": 0.2}' }),
  };
  const known = el("datalist", { id: "models" });
  const [send, stop] = [el("button", { type: "submit", class: "primary" }, "Send"), el("button", { type: "button", disabled: true }, "Stop")];
  const goOn = el("label", { class: "check", hidden: !kept.previous }, fields.goOn, "Continue the last answer");
  const form = el("form", { class: "panel ask", "aria-label": "Request" },
    name("p-model", "Model", fields.model), known, name("p-instructions", "Instructions", fields.instructions), name("p-input", "Input", fields.input),
    el("p", { class: "checks" }, el("label", { class: "check" }, fields.stream, "Stream"), el("label", { class: "check" }, fields.store, "Store"), goOn),
    el("details", { open: kept.more !== "" }, el("summary", null, "More parameters"), name("p-more", "As a JSON object", fields.more, "Tools, reasoning, text.format: whatever the Responses API has. It comes last.")),
    el("p", { class: "buttons" }, send, stop, el("span", { class: "hint" }, "Ctrl+Enter sends.")));
  const [told, output, events] = [el("p", { class: "told" }, "Nothing was sent yet."), el("div"), el("ol", { class: "event-list" })];
  const counted = el("summary", null, "Events");
  replace(main, el("div", { class: "head" }, el("h1", null, "Playground"), el("p", { class: "told" }, "It asks as the tenant default, and costs what any request costs.")),
    el("div", { class: "playground" }, form, el("section", { class: "panel", "aria-label": "Answer" }, el("h2", null, "Answer"), told, output, el("details", null, counted, events))));

  const keep = () => Object.assign(kept, { model: fields.model.value, instructions: fields.instructions.value, input: fields.input.value, stream: fields.stream.checked, store: fields.store.checked, more: fields.more.value });
  form.addEventListener("input", keep);
  let running;
  const run = async () => {
    let body;
    try {
      body = request(fields);
    } catch (error) {
      replace(output);
      replace(events);
      counted.textContent = "Events";
      replace(told, chip("not sent", "bad"), ` More parameters: ${error.message}`);
      return;
    }
    running?.abort();
    const own = new AbortController();
    running = own;
    signal.addEventListener("abort", () => own.abort());
    [send.disabled, stop.disabled] = [true, false];
    replace(output);
    replace(events);
    counted.textContent = "Events";
    replace(told, "Sent; waiting…");
    const [shown, began, state] = [new Output(output), performance.now(), { first: undefined, count: 0, response: undefined }];
    const take = (type, data) => {
      state.count += 1;
      if (state.count <= MOST_EVENTS) {
        events.append(el("li", null, el("details", null, el("summary", null, el("span", { class: "number" }, ms(performance.now() - began)), " ", type), long(json(data), 2000))));
      }
      if (type.endsWith(".delta")) state.first ??= performance.now() - began;
      if (type === "error") state.response = { id: state.response?.id, status: "failed", error: data.error ?? data };
      if (data?.response) state.response = data.response;
      if (type === "json") {
        state.response = data;
        shown.whole(data);
      } else shown.take(type, data);
      counted.textContent = `Events (${count(state.count)})`;
    };
    try {
      await stream("admin/playground/responses", body, own.signal, take);
      const { response } = state;
      const good = response?.status === "completed";
      const usage = response?.usage;
      replace(told, chip(String(response?.status ?? "ended"), good ? "good" : "careful"),
        ` ${[ms(performance.now() - began), state.first !== undefined && `first token after ${ms(state.first)}`, usage && `${count(usage.input_tokens)} → ${count(usage.output_tokens)} tokens`].filter(Boolean).join(" · ")} `,
        became(response?.id),
        response?.error && el("span", { class: "problem" }, ` ${response.error.message ?? response.error.code ?? ""}`));
      if (good) {
        // One that is not stored cannot be continued, and an older one is not the last any more.
        kept.previous = body.store ? response.id : undefined;
        goOn.hidden = !kept.previous;
        if (!kept.previous) fields.goOn.checked = false;
      }
      say(`The answer has ended: ${response?.status ?? ""}`);
    } catch (error) {
      replace(told, error.name === "AbortError" ? [chip("stopped", "quiet"), " ", became(state.response?.id)] : [chip(String(error.code ?? error.status ?? "failed"), "bad"), ` ${error.message} `, became(error.request)]);
    } finally {
      [send.disabled, stop.disabled] = [false, true];
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit();
  });
  stop.addEventListener("click", () => running?.abort());

  const found = await models(signal);
  replace(known, found.known.map((value) => el("option", { value })));
  if (!fields.model.value) fields.model.value = found.first;
  keep();
}
