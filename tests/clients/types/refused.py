"""A request as the Messages API takes it, and what must be refused: a check that refuses nothing is none."""

import json

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "Rain."}, IMAGE]}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
GOOD = {
    "model": "claude-opus-5-5",
    "max_tokens": 1,
    "stream": True,
    "thinking": {"type": "adaptive", "display": "summarized"},
    "output_config": {"effort": "low"},
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": [THOUGHT, {"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [RESULT]},
    ],
}
GONE = object()
# Where something else must be refused, and what.
BAD = [
    ("/foo", 1),
    ("/temperature", 1),
    ("/anthropic_version", "vertex-2023-10-16"),
    ("/model", GONE),
    ("/max_tokens", GONE),
    ("/max_tokens", "1"),
    ("/thinking/type", "always"),
    ("/thinking/block_binding", {"prefix_mismatch_behavior": "drop_block"}),
    ("/output_config/effort", "minimal"),
    ("/tool_choice/type", "required"),
    ("/tools/0/input_schema", GONE),
    ("/tools/0/parameters", {}),
    ("/system/0/type", "input_text"),
    ("/system/0/cache_control/ttl", "24h"),
    ("/messages/0/role", "developer"),
    ("/messages/0/name", "u"),
    ("/messages/0/content/0/text", 1),
    ("/messages/0/content/0/foo", 1),
    ("/messages/1/content/0/signature", GONE),
    ("/messages/1/content/1/input", GONE),
    ("/messages/1/content/1/type", "function_call"),
    ("/messages/2/content/0/tool_use_id", GONE),
    ("/messages/2/content/0/content/0/type", "output_text"),
    ("/messages/2/content/0/content/1/source/media_type", "image/bmp"),
]
BAD_EVENTS = [
    {"type": "message_begin"},
    {"type": "message_stop", "foo": 1},
    {"type": "content_block_stop"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "thinking": "Hm."}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
    {"type": "message_delta", "delta": {"stop_reason": "stop"}, "usage": {"output_tokens": 1}},
]


def requests():
    """(what is wrong, body)"""
    for path, to in BAD:
        yield f"{path} {'left out' if to is GONE else json.dumps(to)}", changed(GOOD, path, to)


def changed(value, path, to):
    """A copy, with something else at a place."""
    value = at = json.loads(json.dumps(value))
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")[1:]]
    for step in steps:
        at = at[step]
    if to is GONE:
        del at[last]
    else:
        at[last] = to
    return value
