"""WebSocket mode: the official client's connections and sessions, and the Agents SDK over one connection."""

import asyncio
import os

import agents
import pytest
from agents import Agent, ModelSettings, responses_websocket_session
from agents.models.openai_responses import ResponsesWebSocketError as AgentsWebSocketError
from conftest import WEATHER, history
from openai import AsyncOpenAI
from openai.lib.responses_websocket import (
    AsyncResponsesWebSocketSession,
    ResponsesWebSocketError,
    ResponsesWebSocketLimits,
    ResponsesWebSocketSession,
)
from openai.types.responses import ResponseSteerFailedEvent

# Traces would go to OpenAI.
agents.set_tracing_disabled(True)

LIMITS = ResponsesWebSocketLimits(
    max_lanes=8, max_events_per_lane=1024, max_events=4096, max_bytes_per_lane=1 << 24, max_bytes=1 << 26
)
# The transport's own limit is 1 MiB.
LARGE = {"max_size": None}


def user(content):
    return {"role": "user", "content": content}


def respond(connection, **request):
    """One request, and the response of its last event."""
    connection.response.create(**{"model": "demo", "store": False, **request})
    text = ""
    for number, event in enumerate(connection):
        assert event.type != "error", event.to_json()
        assert event.sequence_number == number
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            assert event.response.output_text == text
            return event.response


def test_responses_one_after_the_other(client):
    with client.responses.connect(websocket_connection_options=LARGE) as connection:
        for text in ("Hello", "naïve 世界 👩‍👩‍👧‍👦", "x" * 200_000):
            response = respond(connection, input=f"echo {text}")
            assert (response.status, response.output_text) == ("completed", text)
            assert response.usage.total_tokens > 0


def test_what_is_not_stored_goes_on(client):
    with client.responses.connect(websocket_connection_options=LARGE) as connection:
        first = respond(connection, model="scripted/history", input="My name is Ada.")
        second = respond(
            connection, model="scripted/history", input="Who am I?", previous_response_id=first.id
        )
        said = {"role": "assistant", "content": first.output_text}
        assert history(second.output_text) == [user("My name is Ada."), said, user("Who am I?")]
    with client.responses.connect() as connection:
        connection.response.create(model="demo", store=False, input="x", previous_response_id=second.id)
        error = connection.recv()
        assert (error.type, error.status, error.error.code) == ("error", 400, "previous_response_not_found")
        assert error.error.param == "previous_response_id"
        # The connection is as good as before.
        assert respond(connection, input="echo Hi").output_text == "Hi"


def test_a_warm_up(client):
    with client.responses.connect(websocket_connection_options=LARGE) as connection:
        connection.send(
            {"type": "response.create", "model": "scripted/history", "store": False, "input": "Base.", "generate": False}
        )
        events = [connection.recv() for _ in range(3)]
        assert [event.type for event in events] == ["response.created", "response.in_progress", "response.completed"]
        warm = events[-1].response
        assert (warm.status, warm.output) == ("completed", [])
        answer = respond(connection, model="scripted/history", input="Go.", previous_response_id=warm.id)
        assert history(answer.output_text) == [user("Base."), user("Go.")]


def test_a_tool_loop(client):
    with client.responses.connect() as connection:
        asked = respond(connection, input='call get_weather {"city": "Oslo"}', tools=[WEATHER])
        (call,) = [item for item in asked.output if item.type == "function_call"]
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}
        answer = respond(connection, input=[output], tools=[WEATHER], previous_response_id=asked.id)
        assert "18 degrees" in answer.output_text


def test_steering_is_refused(client):
    with client.responses.connect() as connection:
        connection.send({"type": "response.steer", "previous_response_id": "resp_1", "input": "Stop"})
        event = connection.recv()
        assert isinstance(event, ResponseSteerFailedEvent)
        assert (event.error.code, event.steer.input) == ("steering_not_supported", "Stop")
        assert event.steer.previous_response_id == "resp_1"


def test_a_failure_in_the_stream(client):
    with client.responses.connect() as connection:
        connection.response.create(model="demo", input="fail stream", store=False)
        events = []
        while not events or events[-1].type != "response.failed":
            events.append(connection.recv())
        assert events[-1].response.status == "failed"
        assert respond(connection, input="echo Hi").output_text == "Hi"


def test_a_session_with_lanes(client):
    with client.responses.connect(websocket_connection_options=LARGE) as connection:
        with ResponsesWebSocketSession(connection, limits=LIMITS) as session:
            lanes = {name: session.lane(name) for name in ("planner", "research", "critic")}
            for name, lane in lanes.items():
                lane.send({"type": "response.create", "model": "demo", "input": f"echo I am {name}", "store": False})
            for name, lane in lanes.items():
                assert lane.get_final_response(timeout=30).output_text == f"I am {name}"
            # An error is the lane's own.
            lanes["critic"].send({"type": "response.create", "model": "demo", "input": "fail 400 no", "store": False})
            with pytest.raises(ResponsesWebSocketError):
                lanes["critic"].get_final_response(timeout=30)
            default = session.default
            default.send({"type": "response.create", "model": "demo", "input": "echo default", "store": False})
            assert default.get_final_response(timeout=30).output_text == "default"


def test_a_fork():
    async def main():
        url = os.environ["GODEX_URL"] + "/v1"
        async with AsyncOpenAI(base_url=url, api_key="unused", max_retries=0) as client:
            async with client.responses.connect(websocket_connection_options=LARGE) as connection:
                async with AsyncResponsesWebSocketSession(connection, limits=LIMITS) as session:
                    lanes = {name: session.lane(name) for name in ("main", "fork")}
                    ask = {"type": "response.create", "model": "scripted/history", "store": False}
                    await lanes["main"].send({**ask, "input": "Root"})
                    root = await lanes["main"].get_final_response()
                    for name, lane in lanes.items():
                        await lane.send({**ask, "input": name, "previous_response_id": root.id})
                    said = {"role": "assistant", "content": root.output_text}
                    for name, lane in lanes.items():
                        answer = await lane.get_final_response()
                        assert history(answer.output_text) == [user("Root"), said, user(name)]

    asyncio.run(main())


def agent_over_one_connection(work, model="demo", **agent):
    """Runs `work(session, agent)` with an agent whose turns all go over one WebSocket."""

    async def main():
        url = os.environ["GODEX_URL"] + "/v1"
        connected = responses_websocket_session(api_key="unused", base_url=url, unknown_prefix_mode="model_id")
        async with connected as session:
            return await work(session, Agent(name="Tester", instructions="Be brief.", model=model, **agent))

    return asyncio.run(main())


@agents.function_tool
def count_letters(word: str, letter: str) -> str:
    """How often a letter is in a word."""
    return f"{word} has {word.count(letter)} of the letter {letter}"


def test_an_agent_runs_its_tool():
    async def work(session, agent):
        whole = await session.run(agent, 'call count_letters {"word": "strawberry", "letter": "r"}')
        streamed = session.run_streamed(agent, 'call count_letters {"word": "banana", "letter": "a"}')
        async for _ in streamed.stream_events():
            pass
        return whole.final_output, streamed.final_output

    whole, streamed = agent_over_one_connection(work, tools=[count_letters])
    assert "strawberry has 3 of the letter r" in whole
    assert "banana has 3 of the letter a" in streamed


def test_an_agent_goes_on_with_what_is_not_stored():
    async def work(session, agent):
        first = await session.run(agent, "My name is Ada.")
        second = await session.run(agent, "Who am I?", previous_response_id=first.last_response_id)
        return first.final_output, second.final_output

    settings = ModelSettings(store=False)
    first, second = agent_over_one_connection(work, model="scripted/history", model_settings=settings)
    messages = [message for message in history(second) if message["role"] != "system"]
    assert messages == [user("My name is Ada."), {"role": "assistant", "content": first}, user("Who am I?")]


def test_an_agent_sees_why_a_turn_failed():
    async def work(session, agent):
        with pytest.raises(AgentsWebSocketError, match="will not have it"):
            await session.run(agent, "fail 400 the model will not have it")
        return (await session.run(agent, "echo Hi")).final_output

    assert agent_over_one_connection(work) == "Hi"
