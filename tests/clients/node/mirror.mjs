// What the scripted provider `mirror` must have been sent after its tool was run.

import assert from "node:assert/strict";

export function providerGotARoundTrip(shown) {
  const [call, output] = JSON.parse(shown).messages.slice(-2);
  assert.deepEqual([call.role, call.content], ["assistant", "I look it up."]);
  assert.equal(call.tool_calls.length, 1);
  const { id, type, function: called } = call.tool_calls[0];
  assert.deepEqual([id, type, called.name], ["call_1", "function", "get_weather"]);
  assert.deepEqual(JSON.parse(called.arguments), { city: "Paris" });
  assert.deepEqual(output, { role: "tool", tool_call_id: "call_1", content: "18 degrees in Paris" });
}
