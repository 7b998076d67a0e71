// What the scripted providers must have been sent: they say it themselves.

import assert from "node:assert/strict";

export const history = (shown) => JSON.parse(shown).messages;

// After the tool of the provider `mirror` was run.
export function providerGotARoundTrip(shown) {
  const [call, output] = history(shown).slice(-2);
  assert.deepEqual([call.role, call.content], ["assistant", "I look it up."]);
  assert.equal(call.tool_calls.length, 1);
  const { id, type, function: called } = call.tool_calls[0];
  assert.deepEqual([id, type, called.name], ["call_1", "function", "get_weather"]);
  assert.deepEqual(JSON.parse(called.arguments), { city: "Paris" });
  assert.deepEqual(output, { role: "tool", tool_call_id: "call_1", content: "18 degrees in Paris" });
}
