"""A provider that is silent for 20 seconds: godex shows that it is alive, and no client trips over that.

The provider is scripted, and the name of the model says where it is silent.
"""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from agents import Agent, OpenAIResponsesModel, Runner
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, OpenAI

# Less than the silence: a client that hears nothing would give up.
IDLE = 18
URL = os.environ["GODEX_URL"] + "/v1"
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}, "strict": False}
TEXT = {"quiet-start": "after a long silence", "quiet-text": "before and after a long silence"}


def ask(model):
    return {"model": f"scripted/{model}", "input": "Hi", "tools": [TOOL] if model == "quiet-call" else []}


def raw(model):
    with OpenAI(base_url=URL, api_key="unused", max_retries=0, timeout=IDLE) as client:
        return [(time.monotonic(), event) for event in client.responses.create(**ask(model), stream=True)]


def helper(model):
    with OpenAI(base_url=URL, api_key="unused", max_retries=0, timeout=IDLE) as client:
        with client.responses.stream(**ask(model)) as stream:
            for _ in stream:
                pass
            return stream.get_final_response()


def agent(model):
    async def main():
        async with AsyncOpenAI(base_url=URL, api_key="unused", max_retries=0, timeout=IDLE) as client:
            responses = OpenAIResponsesModel(model=f"scripted/{model}", openai_client=client)
            result = Runner.run_streamed(Agent(name="Tester", model=responses), "Hi")
            async for _ in result.stream_events():
                pass
            return result.final_output

    return asyncio.run(main())


def langchain(model):
    chat = ChatOpenAI(
        model=f"scripted/{model}", base_url=URL, api_key="unused", use_responses_api=True, max_retries=0, timeout=IDLE
    )
    return "".join(chunk.text for chunk in chat.stream("Hi"))


@pytest.fixture(scope="module")
def answers():
    """All at once: one silence is long enough."""
    wanted = [(way, model) for way in (raw, helper) for model in [*TEXT, "quiet-thought", "quiet-call"]]
    wanted += [(way, model) for way in (agent, langchain) for model in TEXT]
    with ThreadPoolExecutor(len(wanted)) as pool:
        running = {(way, model): pool.submit(way, model) for way, model in wanted}
    return running


@pytest.mark.parametrize("model", [*TEXT, "quiet-thought", "quiet-call"])
def test_the_heartbeat(answers, model):
    timed = answers[raw, model].result()
    events = [event for _, event in timed]
    assert [event.type for event in events].count("response.in_progress") == 2
    assert [event.sequence_number for event in events] == list(range(len(events)))
    gaps = [later - earlier for (earlier, _), (later, _) in zip(timed, timed[1:])]
    assert 14 < max(gaps) < IDLE, "the client hears something every 15 seconds"
    assert events[-1].type == "response.completed"


@pytest.mark.parametrize("model", TEXT)
@pytest.mark.parametrize("way", [agent, langchain])
def test_text(answers, model, way):
    assert answers[way, model].result() == TEXT[model]


def test_the_stream_helper(answers):
    for model, text in TEXT.items():
        assert answers[helper, model].result().output_text == text
    thought, message = answers[helper, "quiet-thought"].result().output
    assert thought.content[0].text == "let me think for long"
    assert message.content[0].text == "after a long silence"
    (call,) = answers[helper, "quiet-call"].result().output
    assert (call.name, call.call_id, call.arguments) == ("get_weather", "call_1", '{"city": "Paris"}')
