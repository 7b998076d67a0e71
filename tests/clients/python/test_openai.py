"""What a program written with the official Python client must be able to do against godex.

The model is `demo`: built in, offline, deterministic. Ordinary text makes it quote the prompt; a command at the
start of the last user message makes it do something particular.
"""

import json

import openai
import pytest
from pydantic import BaseModel

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


def ask(client, prompt, **more):
    return client.responses.create(model="demo", input=prompt, **more)


def events_of(client, prompt, **more):
    with client.responses.create(model="demo", input=prompt, stream=True, **more) as stream:
        return list(stream)


# --- whole answers


def test_create(client):
    response = ask(client, "The quick brown fox")
    assert response.id.startswith("resp_")
    assert response.status == "completed"
    assert "The quick brown fox" in response.output_text
    assert response.error is None and response.incomplete_details is None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens > 0
    assert response.output[-1].type == "message" and response.output[-1].id.startswith("msg_")


def test_instructions_and_several_messages(client):
    history = [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": [{"type": "input_text", "text": "Say the word perihelion."}]},
    ]
    response = client.responses.create(model="demo", instructions="Be brief.", input=history, store=False)
    assert "perihelion" in response.output_text
    assert response.instructions == "Be brief."


@pytest.mark.parametrize("text", ["naïve café", "日本語のテキスト", "👩‍👩‍👧‍👦 and 🇫🇷", 'quotes " and \\ back', "tab\tin"])
def test_unicode(client, text):
    assert ask(client, f"echo {text}").output_text == text
    streamed = "".join(e.delta for e in events_of(client, f"echo {text}") if e.type == "response.output_text.delta")
    assert streamed == text


def test_metadata_comes_back(client):
    response = ask(client, "Hi", metadata={"team": "blue"}, temperature=0.5, max_output_tokens=500)
    assert response.metadata == {"team": "blue"}
    assert response.temperature == 0.5 and response.max_output_tokens == 500


def test_length_is_incomplete(client):
    response = ask(client, "length")
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"


def test_refusal(client):
    response = ask(client, "refuse")
    assert [part.type for part in response.output[-1].content] == ["refusal"]


def test_reasoning(client):
    response = ask(client, "think the answer is 4")
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert "the answer is 4" in response.output_text


# --- streams


def test_raw_stream(client):
    events = events_of(client, "Tell me of foxes")
    types = [event.type for event in events]
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-1] == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    final = events[-1].response
    assert text == final.output_text and "Tell me of foxes" in text
    assert final.id == events[0].response.id and final.usage.output_tokens > 0


def test_stream_and_sync_agree(client):
    streamed = events_of(client, "long 50")[-1].response
    assert streamed.output_text == ask(client, "long 50").output_text
    assert len(streamed.output_text.split()) == 50


def test_stream_helper(client):
    with client.responses.stream(model="demo", input="A helper asks") as stream:
        seen = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.output_text.delta" in seen
    assert final.status == "completed" and "A helper asks" in final.output_text


def test_reasoning_stream(client):
    with client.responses.stream(model="demo", input="think it is so") as stream:
        types = [event.type for event in stream]
        final = stream.get_final_response()
    assert any(kind.startswith("response.reasoning") for kind in types)
    assert [item.type for item in final.output] == ["reasoning", "message"]


# --- tools


def test_function_call_round_trip(client):
    question = {"role": "user", "content": 'call get_weather {"city":"Paris"}'}
    first = client.responses.create(model="demo", input=[question], tools=[WEATHER], store=False)
    call = first.output[-1]
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "get_weather", {"city": "Paris"})
    assert call.call_id and call.status == "completed"

    history = [question] + [item.model_dump(exclude_none=True) for item in first.output]
    history.append({"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees, sunny"})
    second = client.responses.create(model="demo", input=history, tools=[WEATHER], store=False)
    assert second.status == "completed"
    assert second.output[-1].type == "message"


def test_function_call_stream(client):
    events = events_of(client, 'call get_weather {"city":"Paris"}', tools=[WEATHER])
    deltas = "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta")
    done = next(e for e in events if e.type == "response.function_call_arguments.done")
    assert json.loads(deltas) == {"city": "Paris"} and done.arguments == deltas
    added = next(e.item for e in events if e.type == "response.output_item.added" and e.item.type == "function_call")
    final = events[-1].response.output[-1]
    assert (added.id, added.call_id, added.name) == (final.id, final.call_id, final.name)


def test_streamed_call_with_the_helper(client):
    question = 'call get_weather {"city":"Oslo"}'
    with client.responses.stream(model="demo", input=question, tools=[WEATHER]) as stream:
        call = stream.get_final_response().output[-1]
    assert call.type == "function_call" and json.loads(call.arguments) == {"city": "Oslo"}


# --- structured output


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def test_parse(client):
    response = client.responses.parse(model="demo", input="Who is it?", text_format=Person)
    assert isinstance(response.output_parsed, Person)
    assert response.text.format.type == "json_schema"


def test_json_object(client):
    response = ask(client, "Answer in JSON", text={"format": {"type": "json_object"}})
    assert isinstance(json.loads(response.output_text), dict)


# --- errors


def test_unknown_model(client):
    with pytest.raises((openai.NotFoundError, openai.BadRequestError)) as caught:
        client.responses.create(model="nosuch/model", input="Hi")
    assert caught.value.code == "model_not_found"
    assert caught.value.param == "model"


@pytest.mark.parametrize(
    "body, param",
    [({"temperature": "hot"}, "temperature"), ({"max_output_tokens": "many"}, "max_output_tokens"), ({"input": 7}, "input")],
)
def test_wrong_type(client, body, param):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**{"model": "demo", "input": "Hi", **body})
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def test_missing_model(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.post("/responses", body={"input": "Hi"}, cast_to=object)
    assert (caught.value.code, caught.value.param) == ("missing_required_parameter", "model")


def test_rate_limit(client):
    with pytest.raises(openai.RateLimitError):
        ask(client, "fail 429")


def test_upstream_500(client):
    with pytest.raises(openai.InternalServerError):
        ask(client, "fail 500")


def test_rate_limit_before_the_stream(client):
    with pytest.raises(openai.RateLimitError):
        events_of(client, "fail 429")


@pytest.mark.parametrize("command", ["fail cut", "fail stream"])
def test_failure_in_the_middle(client, command):
    """The client raises at the `error` event, so the raw lines are read."""
    with client.responses.with_streaming_response.create(model="demo", input=command, stream=True) as raw:
        assert raw.status_code == 200
        lines = list(raw.iter_lines())
    types = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-2:] == ["error", "response.failed"]
    datas = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert datas[-1]["response"]["status"] == "failed" and datas[-1]["response"]["error"]["code"]
    assert datas[-2]["message"] == datas[-2]["error"]["message"]


# --- models, headers


def test_models(client):
    assert "demo" in [model.id for model in client.models.list()]
    model = client.models.retrieve("demo")
    assert (model.id, model.object) == ("demo", "model")


def test_request_id(client):
    raw = client.responses.with_raw_response.create(model="demo", input="Hi")
    assert raw.headers["x-request-id"]
    assert raw.parse()._request_id == raw.headers["x-request-id"]
