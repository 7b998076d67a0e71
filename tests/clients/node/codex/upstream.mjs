// A provider that speaks only strict Chat Completions, with a scripted model behind it. It keeps what it was sent,
// and refuses what a strict provider would refuse. At another path the same model speaks Messages (see messages.mjs).

import { createServer } from "node:http";
import { checkMessages, readMessages, streamMessages } from "./messages.mjs";
import { check } from "./strict.mjs";

// Beyond what is strict it takes what it `knows`: members of requests and of assistants' messages.
//
// A script gets a request (see `read`) and gives back what the model does: texts and calls to stream, with the usage
// to report, or a fault, which is a function of the answer that writes it.
export const say = (text) => ({ content: text });
export const think = (text) => ({ reasoning_content: text });
export const call = (name, args) => ({ call: { name, arguments: JSON.stringify(args) } });

export async function startUpstream(script, knows) {
  const upstream = { requests: [], problems: [] };
  const server = createServer(async (incoming, answer) => {
    const raw = await text(incoming);
    if (incoming.method === "GET" && incoming.url === "/v1/models") {
      answer.writeHead(200, { "content-type": "application/json" });
      return answer.end(JSON.stringify({ object: "list", data: [{ id: "listed-model", object: "model", created: 1, owned_by: "test" }] }));
    }
    try {
      const request = read(raw, incoming, upstream.requests);
      upstream.requests.push(request);
      const problems = request.isMessages ? checkMessages(request.body, request.headers) : check(request.body, knows);
      if (problems.length > 0) throw new Error(problems.join("\n"));
      const steps = await script(request);
      if (typeof steps === "function") await steps(answer);
      else (request.isMessages ? streamMessages : stream)(answer, request, [steps].flat());
    } catch (error) {
      upstream.problems.push(error.message);
      refuse(400, { message: error.message, type: "invalid_request_error" })(answer);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  upstream.url = `http://127.0.0.1:${server.address().port}`;
  upstream.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return upstream;
}

// What a script may want to know of a request.
function read(raw, incoming, earlier) {
  const isMessages = incoming.url === "/v1/messages";
  if (incoming.method !== "POST" || (!isMessages && incoming.url !== "/v1/chat/completions")) throw new Error(`${incoming.method} ${incoming.url}`);
  const body = JSON.parse(raw);
  const { results, texts, names } = isMessages ? readMessages(body) : readChat(body);
  return {
    raw,
    body,
    headers: incoming.headers,
    number: earlier.length,
    isMessages,
    // The tools' answers in the history, all texts of it, and the tools that are offered.
    results,
    texts,
    names,
    // The name under which a tool was offered. The model can call no other.
    tool: (pattern) => {
      const found = names.filter((name) => pattern.test(name));
      if (found.length !== 1) throw new Error(`${found.length} tools are like ${pattern}: ${names}`);
      return found[0];
    },
  };
}

const readChat = (body) => ({
  results: body.messages.filter((message) => message.role === "tool").map(contentText),
  texts: body.messages.map(contentText),
  names: (body.tools ?? []).map((tool) => tool.function.name),
});

export function contentText(message) {
  if (typeof message.content === "string") return message.content;
  return (message.content ?? []).map((part) => part.text ?? "").join("\n");
}

let made = 0;

function stream(answer, request, steps) {
  const { body } = request;
  answer.writeHead(200, { "content-type": "text/event-stream" });
  const send = (rest) => answer.write(`data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: body.model, ...rest })}\n\n`);
  const delta = (delta, finish_reason = null) => send({ choices: [{ index: 0, delta, finish_reason }] });
  let calls = 0;
  let usage = { prompt_tokens: Math.ceil(request.raw.length / 4), completion_tokens: 10 };
  delta({ role: "assistant", content: "" });
  for (const step of steps) {
    if (step.usage !== undefined) usage = step.usage;
    else if (step.call === undefined) delta(step);
    else {
      // In two pieces, as real ones come.
      const { name, arguments: whole } = step.call;
      const index = calls++;
      const half = Math.floor(whole.length / 2);
      made += 1;
      delta({ tool_calls: [{ index, id: `call_${made}`, type: "function", function: { name, arguments: whole.slice(0, half) } }] });
      delta({ tool_calls: [{ index, function: { arguments: whole.slice(half) } }] });
    }
  }
  delta({}, calls > 0 ? "tool_calls" : "stop");
  if (body.stream_options?.include_usage) {
    send({ choices: [], usage: { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens } });
  }
  answer.end("data: [DONE]\n\n");
}

// The faults.
export const refuse = (status, error, headers = {}) => (answer) => {
  answer.writeHead(status, { "content-type": "application/json", ...headers });
  answer.end(JSON.stringify({ error }));
};

// Says something, and then the connection breaks, or something else happens.
export const cut = (said, then = (answer) => answer.destroy()) => async (answer) => {
  answer.writeHead(200, { "content-type": "text/event-stream" });
  const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { role: "assistant", content: said }, finish_reason: null }] };
  await new Promise((resolve) => answer.write(`data: ${JSON.stringify(chunk)}\n\n`, resolve));
  then(answer);
};

// Takes the request, and never says anything.
export const silence = () => () => {};

async function text(incoming) {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
