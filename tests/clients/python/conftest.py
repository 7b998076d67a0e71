"""What the tests share: the official client, pointed at the running godex that GODEX_URL names."""

import json
import os

import pytest
from openai import OpenAI

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


@pytest.fixture
def client() -> OpenAI:
    # No retries: a test wants to see the first answer.
    return OpenAI(base_url=os.environ["GODEX_URL"] + "/v1", api_key="unused", max_retries=0, timeout=30)


def history(shown: str) -> list[dict]:
    """`shown` is what a scripted provider says that it was sent."""
    return json.loads(shown)["messages"]


def provider_got_a_round_trip(shown: str) -> None:
    """`shown` is what the scripted provider `mirror` was sent after its tool was run."""
    call, output = history(shown)[-2:]
    assert (call["role"], call["content"]) == ("assistant", "I look it up.")
    (function,) = call["tool_calls"]
    assert (function["id"], function["type"], function["function"]["name"]) == ("call_1", "function", "get_weather")
    assert json.loads(function["function"]["arguments"]) == {"city": "Paris"}
    assert (output["role"], output["tool_call_id"]) == ("tool", "call_1")
    assert output["content"] == "18 degrees in Paris"
