// What tests of hosted tools share: scripts for the model `scripted/steps`, which does what its user writes, and what the
// running godex has.

export const MODEL = "scripted/steps";
// The label `tools` at this address, for clients that must name one.
export const URL = process.env.GODEX_MCP_URL;
export const NORTH = "https://foxes.example/north";
export const SOUTH = "https://other.example/south_(hot)";

export const call = (name, args = {}) => ({ call: name, arguments: args });
export const say = (text) => ({ say: text });
export const think = (text) => ({ think: text });
// What the tools said, and all that the model was sent.
export const RESULTS = say("$results");
export const SHOW = { show: true };
// In each round of it the model does one step, or several.
export const steps = (...rounds) => JSON.stringify(rounds.map((round) => [round].flat()));

export const ADD = steps(call("tools__add", { a: 20, b: 22 }), say("The sum is $results."));
export const DELETE = steps(call("tools__delete", { path: "/etc/hosts" }), say("It says: $results"));
export const CITED = `Foxes are white ([foxes.example](${NORTH})) or have [large ears](${SOUTH}).`;
export const SEARCHED = steps(call("web_search", { queries: ["foxes"] }), say(CITED));

export const kinds = (items) => items.map((item) => item.type);
export const roles = (shown) => JSON.parse(shown).messages.map((message) => message.role);
export const toolTexts = (shown) => JSON.parse(shown).messages.filter((message) => message.role === "tool").map((message) => message.content);
