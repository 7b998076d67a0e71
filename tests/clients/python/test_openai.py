"""What a program written with the official Python client must be able to do against godex.

The model is `demo`: built in, offline, deterministic. Ordinary text makes it quote the prompt; a command at the
start of the last user message makes it do something particular.
"""

import asyncio
import json

import openai
import pytest
from conftest import WEATHER, provider_got_a_round_trip
from pydantic import BaseModel


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
        events = list(stream)
        final = stream.get_final_response()
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert final.status == "completed" and "A helper asks" in text
    assert final.output_text == text
    # The helper adds these two itself, from what it has put together.
    assert [event.snapshot for event in events if event.type == "response.output_text.delta"][-1] == text
    assert [event.text for event in events if event.type == "response.output_text.done"] == [text]


def test_async(client):
    async def main():
        async with openai.AsyncOpenAI(base_url=client.base_url, api_key="unused", max_retries=0, timeout=30) as other:
            whole, parsed, events = await asyncio.gather(
                other.responses.create(model="demo", input="echo one"),
                other.responses.parse(model="demo", input="Ada", text_format=Person),
                other.responses.create(model="demo", input="echo three", stream=True),
            )
            deltas = [event.delta async for event in events if event.type == "response.output_text.delta"]
        return whole.output_text, parsed.output_parsed.name, "".join(deltas)

    assert asyncio.run(main()) == ("one", "Ada", "three")


def test_reasoning_stream(client):
    with client.responses.stream(model="demo", input="think it is so") as stream:
        events = list(stream)
        final = stream.get_final_response()
    thought, message = final.output
    assert (thought.type, message.type) == ("reasoning", "message")
    assert thought.id.startswith("rs_") and thought.status == "completed" and thought.summary == []
    (part,) = thought.content
    assert part.type == "reasoning_text" and "it is so" in part.text

    of_thought = [event for event in events if getattr(event, "item_id", None) == thought.id]
    assert "".join(event.delta for event in of_thought if event.type == "response.reasoning_text.delta") == part.text
    kinds = [event.type for event in of_thought if event.type != "response.reasoning_text.delta"]
    assert kinds == ["response.content_part.added", "response.reasoning_text.done", "response.content_part.done"]
    around = [event.type for event in events if getattr(getattr(event, "item", None), "id", None) == thought.id]
    assert around == ["response.output_item.added", "response.output_item.done"]


def test_a_summary_that_was_asked_for(client):
    with client.responses.stream(model="demo", input="think it is so", reasoning={"summary": "auto"}) as stream:
        events = list(stream)
        final = stream.get_final_response()
    thought = final.output[0]
    (part,) = thought.summary
    assert part.type == "summary_text" and "it is so" in part.text
    deltas = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
    assert "".join(deltas) == part.text and len(deltas) > 1


def test_sealed_reasoning(client):
    include = ["reasoning.encrypted_content"]
    first, second = (ask(client, "think of a secret", include=include, store=False).output[0] for _ in range(2))
    assert first.encrypted_content and "secret" not in first.encrypted_content
    assert first.encrypted_content != second.encrypted_content


def test_a_custom_tool(client):
    tools = [{"type": "custom", "name": "note", "description": "Takes a note.", "format": {"type": "text"}}]
    text = 'a "quoted" line\nand another: \\ é😀'
    prompt = "call note " + json.dumps({"input": text})
    with client.responses.stream(model="demo", input=prompt, tools=tools) as stream:
        events = list(stream)
        final = stream.get_final_response()
    (call,) = final.output
    assert (call.type, call.name, call.input) == ("custom_tool_call", "note", text)
    deltas = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == text and len(deltas) > 1

    history = [{"role": "user", "content": prompt}, call.model_dump(exclude_none=True)]
    history.append({"type": "custom_tool_call_output", "call_id": call.call_id, "output": "noted"})
    assert "noted" in ask(client, history, tools=tools).output_text


def test_a_thought_goes_back(client):
    first = ask(client, "think of foxes", include=["reasoning.encrypted_content"], store=False)
    history = [item.model_dump(exclude_none=True) for item in first.output]
    again = ask(client, [*history, {"role": "user", "content": "echo And again"}], store=False)
    assert again.output_text == "And again"


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
        events = list(stream)
        (call,) = stream.get_final_response().output
    assert (call.type, call.name, call.status) == ("function_call", "get_weather", "completed")
    assert call.id.startswith("fc_") and call.call_id and json.loads(call.arguments) == {"city": "Oslo"}
    deltas = [event for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(event.delta for event in deltas) == deltas[-1].snapshot == call.arguments
    assert {event.item_id for event in deltas} == {call.id}


def test_a_call_with_parsed_arguments(client):
    class GetWeather(BaseModel):
        city: str

    tools = [openai.pydantic_function_tool(GetWeather)]
    question = 'call GetWeather {"city":"Oslo"}'
    whole = client.responses.parse(model="demo", input=question, tools=tools)
    with client.responses.stream(model="demo", input=question, tools=tools) as stream:
        streamed = stream.get_final_response()
    for response in [whole, streamed]:
        assert response.output[0].parsed_arguments == GetWeather(city="Oslo")


def test_parallel_calls(client):
    question = 'call get_weather {"city":"Oslo"}\ncall get_weather {"city":"Rome"}'
    with client.responses.stream(model="demo", input=question, tools=[WEATHER]) as stream:
        calls = stream.get_final_response().output
    assert [json.loads(call.arguments)["city"] for call in calls] == ["Oslo", "Rome"]
    assert len({call.id for call in calls}) == len({call.call_id for call in calls}) == 2


def test_what_the_provider_gets(client):
    """The scripted provider calls a tool, then shows what it was sent."""
    history = [{"role": "user", "content": "Hi"}]
    first = client.responses.create(model="scripted/mirror", input=history, tools=[WEATHER], store=False)
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
    history += [item.model_dump(exclude_none=True) for item in first.output]
    history += [{"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "18 degrees in Paris"}]
    second = client.responses.create(model="scripted/mirror", input=history, tools=[WEATHER], store=False)
    provider_got_a_round_trip(second.output_text)


# --- structured output


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def test_parse(client):
    response = client.responses.parse(model="demo", input="Ada", text_format=Person)
    assert isinstance(response.output_parsed, Person) and response.output_parsed.name == "Ada"
    assert response.text.format.type == "json_schema"


def test_parse_a_stream(client):
    with client.responses.stream(model="demo", input="Ada", text_format=Person) as stream:
        final = stream.get_final_response()
    assert isinstance(final.output_parsed, Person) and final.output_parsed.name == "Ada"


def test_json_object(client):
    response = ask(client, "Answer in JSON", text={"format": {"type": "json_object"}})
    assert isinstance(json.loads(response.output_text), dict)


# --- errors


def test_unknown_model(client):
    with pytest.raises((openai.NotFoundError, openai.BadRequestError)) as caught:
        client.responses.create(model="demo/", input="Hi")
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
