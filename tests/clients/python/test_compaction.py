"""Long conversations with the official Python client: compacted on demand, or when they have grown too long."""

import openai
import pytest

HISTORY = [
    {"role": "user", "content": "My name is Ada."},
    {"role": "assistant", "content": "Hello Ada."},
    {"role": "user", "content": "Remember it."},
]


def as_input(items):
    return [item.model_dump(exclude_none=True) for item in items]


def test_compact(client):
    compacted = client.responses.compact(model="demo", input=HISTORY, instructions="Be brief.")
    assert compacted.object == "response.compaction" and compacted.id
    assert [item.type for item in compacted.output] == ["message", "message", "compaction"]
    assert compacted.output[-1].encrypted_content and compacted.output[-1].id.startswith("cmp_")
    assert [item.role for item in compacted.output[:-1]] == ["user", "user"]
    assert compacted.usage.total_tokens > 0
    # A new chain goes on from it.
    question = {"role": "user", "content": "Who am I?"}
    response = client.responses.create(model="demo", input=[*as_input(compacted.output), question])
    assert "Who am I?" in response.output_text
    more = client.responses.create(model="demo", input="And now?", previous_response_id=response.id)
    assert "And now?" in more.output_text


def test_compact_a_chain(client):
    first = client.responses.create(model="demo", input="My name is Ada.")
    compacted = client.responses.compact(model="demo", previous_response_id=first.id)
    assert compacted.output[-1].type == "compaction"


def test_compact_needs_a_model_and_something_to_compact(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.compact(model="", input="x")
    assert refused.value.param == "model"
    with pytest.raises(openai.BadRequestError):
        client.responses.compact(model="demo", input=[])


def test_context_management(client):
    managed = [{"type": "compaction", "compact_threshold": 1000}]
    long = [{"role": "user", "content": "Much ado about nothing. " * 400}, *HISTORY]
    stream = client.responses.create(model="demo", input=long, context_management=managed, stream=True)
    events = list(stream)
    done = [event.item.type for event in events if event.type == "response.output_item.done"]
    assert done == ["compaction", "message"] and events[-1].type == "response.completed"
