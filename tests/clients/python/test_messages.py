"""The core of the other tests once more, with a provider that speaks Messages: text, tools, thoughts, chains.

The scripted provider answers with what it was sent, and refuses thoughts that do not come back as it signed them.
"""

import json

import pytest
from conftest import WEATHER, history, provider_got_a_round_trip
from test_sessions import ALICE, WAYS, WHO, helper, raw_stream, said, whole

HISTORY = "messages/history"
MIRROR = "messages/mirror"
STEPS = "messages/steps"


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_a_chain(client, first, second):
    alice = first(client, model=HISTORY, input=ALICE["content"])
    assert (alice.status, alice.usage.input_tokens, alice.usage.output_tokens) == ("completed", 5, 7)
    answer = second(client, model=HISTORY, input=WHO["content"], previous_response_id=alice.id)
    assert history(answer.output_text) == [ALICE, said(alice), WHO]


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_and_its_result_over_a_chain(client, way):
    first = way(client, model=MIRROR, input="Hi", tools=[WEATHER])
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
    output = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "18 degrees in Paris"}
    again = way(client, model=MIRROR, input=[output], tools=[WEATHER], previous_response_id=first.id)
    provider_got_a_round_trip(again.output_text)


@pytest.mark.parametrize("way", WAYS)
def test_thoughts_come_back_from_a_client_that_keeps_its_own_history(client, way):
    asked = [{"role": "user", "content": "Hi"}]
    more = {"tools": [WEATHER], "store": False, "include": ["reasoning.encrypted_content"]}
    first = way(client, model=MIRROR, input=asked, **more)
    items = [item.model_dump(exclude_none=True) for item in first.output]
    assert items[0]["encrypted_content"]
    output = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "18 degrees in Paris"}
    again = way(client, model=MIRROR, input=[*asked, *items, output], **more)
    provider_got_a_round_trip(again.output_text)


@pytest.mark.parametrize("way", [whole, raw_stream, helper])
def test_several_calls_at_once(client, way):
    rounds = [[{"call": "get_weather", "arguments": {"city": city}} for city in ["Paris", "Rome"]], [{"say": "$results"}]]
    script = json.dumps(rounds)
    first = way(client, model=STEPS, input=script, tools=[WEATHER])
    calls = [item for item in first.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["city"] for call in calls] == ["Paris", "Rome"]
    outputs = [{"type": "function_call_output", "call_id": call.call_id, "output": f"{n}°"} for n, call in enumerate(calls)]
    again = way(client, model=STEPS, input=outputs, tools=[WEATHER], previous_response_id=first.id)
    assert again.output_text == "0°\n1°"
