// What a strict Chat Completions provider refuses, written from the providers' rules and not from godex's code, so
// that the two can disagree.

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

// Members of a request, and what they must be. Anything else is refused, as is a null.
const MEMBERS = {
  model: (value) => typeof value === "string" && value !== "",
  messages: (value) => Array.isArray(value) && value.length > 0,
  tools: (value) => Array.isArray(value) && value.length > 0,
  tool_choice: (value, body) => body.tools !== undefined && (["auto", "none", "required"].includes(value) || isObject(value)),
  parallel_tool_calls: (value, body) => body.tools !== undefined && typeof value === "boolean",
  stream: (value) => typeof value === "boolean",
  stream_options: (value, body) => body.stream === true && isObject(value) && onlyHas(value, ["include_usage"]),
  max_tokens: (value) => Number.isInteger(value) && value > 0,
  temperature: (value) => typeof value === "number",
  top_p: (value) => typeof value === "number",
  stop: (value) => typeof value === "string" || Array.isArray(value),
  reasoning_effort: (value) => ["none", "minimal", "low", "medium", "high", "xhigh"].includes(value),
  response_format: isFormat,
};

// Members of a message of each role.
const ROLES = {
  system: ["role", "content"],
  user: ["role", "content"],
  assistant: ["role", "content", "tool_calls"],
  tool: ["role", "content", "tool_call_id"],
};

// Everything that is wrong with a request; empty when nothing is. `known`: members of requests and of assistants'
// messages that this provider has of its own.
export function check(body, known = { request: [], assistant: [] }) {
  const problems = [];
  const demand = (good, problem) => good || problems.push(problem);
  for (const [name, value] of Object.entries(body)) {
    if (known.request.includes(name)) continue;
    demand(Object.hasOwn(MEMBERS, name) && MEMBERS[name](value, body), `${name}: ${brief(value)}`);
  }
  demand(body.model !== undefined && body.messages !== undefined, "model or messages are missing");
  tools(body.tools ?? [], demand);
  messages(body.messages ?? [], known, demand);
  return problems;
}

function tools(list, demand) {
  const names = new Set();
  for (const tool of list) {
    const { name, description, parameters, strict } = tool.function ?? {};
    demand(tool.type === "function" && onlyHas(tool, ["type", "function"]), `a tool that is no function: ${brief(tool)}`);
    demand(onlyHas(tool.function ?? {}, ["name", "description", "parameters", "strict"]), `members of ${name}: ${Object.keys(tool.function ?? {})}`);
    demand(typeof name === "string" && NAME.test(name), `the tool's name ${name}`);
    demand(!names.has(name), `two tools named ${name}`);
    names.add(name);
    demand(description === undefined || typeof description === "string", `the description of ${name}`);
    demand(strict === undefined || typeof strict === "boolean", `strict of ${name}`);
    demand(parameters?.type === "object" && isObject(parameters.properties), `the parameters of ${name}: ${brief(parameters)}`);
  }
}

function messages(list, known, demand) {
  const ids = new Set();
  let awaited = [];
  for (const [at, message] of list.entries()) {
    const wrong = (problem) => demand(false, `messages[${at}]: ${problem}: ${brief(message)}`);
    const members = message.role === "assistant" ? [...ROLES.assistant, ...known.assistant] : ROLES[message.role];
    if (members === undefined) wrong("no such role");
    else if (!onlyHas(message, members)) wrong("unknown members");
    if (message.role === "tool") {
      if (!awaited.includes(message.tool_call_id)) wrong("a result of no call right before it");
      awaited = awaited.filter((id) => id !== message.tool_call_id);
    } else {
      if (awaited.length > 0) wrong(`results are missing before it (${awaited})`);
      awaited = [];
    }
    if (message.role === "assistant" && message.tool_calls !== undefined) {
      if (!Array.isArray(message.tool_calls) || message.tool_calls.length === 0) wrong("no calls in tool_calls");
      awaited = [...(message.tool_calls ?? [])].map((call) => called(call, ids, wrong));
      if (message.content === undefined || message.content === null) continue;
    }
    content(message, wrong);
  }
  demand(awaited.length === 0, `results are missing at the end (${awaited})`);
}

// Gives back the id that a result must follow for.
function called(call, ids, wrong) {
  const { name, arguments: text } = call.function ?? {};
  if (call.type !== "function" || !onlyHas(call, ["id", "type", "function"])) wrong("a call of another kind");
  if (typeof call.id !== "string" || !NAME.test(call.id)) wrong(`the id ${call.id}`);
  if (ids.has(call.id)) wrong(`the id ${call.id} again`);
  ids.add(call.id);
  if (!NAME.test(name) || !onlyHas(call.function, ["name", "arguments"])) wrong(`the function ${name}`);
  try {
    if (!isObject(JSON.parse(text))) wrong("arguments that are no object");
  } catch {
    wrong("arguments that are no JSON");
  }
  return call.id;
}

function content(message, wrong) {
  if (typeof message.content === "string") {
    if (message.content === "" && message.role !== "tool") wrong("an empty text");
  } else if (Array.isArray(message.content) && message.content.length > 0) {
    // Only users show pictures, and many providers take nothing but a string from anybody else.
    if (message.role !== "user") wrong("parts");
    for (const part of message.content) {
      const text = part.type === "text" && onlyHas(part, ["type", "text"]) && typeof part.text === "string" && part.text !== "";
      const image = part.type === "image_url" && onlyHas(part, ["type", "image_url"]) && isImage(part.image_url);
      if (!text && !image) wrong("a part");
    }
  } else {
    wrong("content is neither text nor parts");
  }
}

const isImage = (image) =>
  isObject(image) && onlyHas(image, ["url", "detail"]) && /^(https:|data:image\/)/.test(image.url) &&
  [undefined, "auto", "low", "high"].includes(image.detail);

function isFormat(format) {
  if (["text", "json_object"].includes(format?.type)) return onlyHas(format, ["type"]);
  const { name, schema } = format?.json_schema ?? {};
  return format?.type === "json_schema" && onlyHas(format, ["type", "json_schema"]) && NAME.test(name) && isObject(schema) &&
    onlyHas(format.json_schema, ["name", "description", "schema", "strict"]);
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const onlyHas = (object, names) => Object.keys(object).every((name) => names.includes(name));
const brief = (value) => (JSON.stringify(value) ?? "nothing").slice(0, 200);
