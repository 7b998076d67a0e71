"""The OpenAI Agents SDK on godex: an agent whose tool really runs, whole and streamed; histories that godex keeps."""

import asyncio
import os

import agents
import pytest
from agents import Agent, ModelSettings, OpenAIConversationsSession, OpenAIResponsesModel, Runner, function_tool
from agents.exceptions import ModelBehaviorError, ModelRefusalError
from conftest import history, provider_got_a_round_trip
from openai import APIError, AsyncOpenAI, NotFoundError, RateLimitError
from pydantic import BaseModel

# Traces would go to OpenAI.
agents.set_tracing_disabled(True)

QUESTION = 'call count_letters {"word": "strawberry", "letter": "r"}'
ANSWER = "strawberry has 3 of the letter r"


def tools():
    """A tool, and the list of the words it was called with."""
    calls = []

    @function_tool
    def count_letters(word: str, letter: str) -> str:
        """How often a letter is in a word."""
        calls.append(word)
        return f"{word} has {word.count(letter)} of the letter {letter}"

    return [count_letters], calls


def run(work, model="demo", **agent):
    """Runs `work(agent)` with an agent on godex, in an event loop of its own."""

    async def main():
        url = os.environ["GODEX_URL"] + "/v1"
        async with AsyncOpenAI(base_url=url, api_key="unused", max_retries=0, timeout=30) as client:
            responses = OpenAIResponsesModel(model=model, openai_client=client)
            return await work(Agent(name="Tester", instructions="Be brief.", model=responses, **agent))

    return asyncio.run(main())


def kinds(result):
    return [item.type for item in result.new_items]


def test_run():
    result = run(lambda agent: Runner.run(agent, "echo Hello from the agent"))
    assert result.final_output == "Hello from the agent"
    usage = result.context_wrapper.usage
    assert usage.requests == 1 and usage.total_tokens == usage.input_tokens + usage.output_tokens > 0


def test_the_tool_runs():
    declared, calls = tools()
    result = run(lambda agent: Runner.run(agent, QUESTION), tools=declared)
    assert calls == ["strawberry"]
    assert ANSWER in result.final_output
    assert kinds(result) == ["tool_call_item", "tool_call_output_item", "message_output_item"]
    assert result.context_wrapper.usage.requests == 2


def test_parallel_calls():
    declared, calls = tools()
    question = QUESTION + '\ncall count_letters {"word": "banana", "letter": "a"}'
    result = run(lambda agent: Runner.run(agent, question), tools=declared)
    assert sorted(calls) == ["banana", "strawberry"]
    assert ANSWER in result.final_output and "banana has 3 of the letter a" in result.final_output


def test_the_model_must_call():
    declared, calls = tools()
    settings = ModelSettings(tool_choice="required", parallel_tool_calls=False, temperature=0.1, max_tokens=500)
    result = run(lambda agent: Runner.run(agent, "Go on"), tools=declared, model_settings=settings)
    assert len(calls) == 1 and "of the letter" in result.final_output


def test_run_streamed():
    declared, calls = tools()

    async def work(agent):
        result = Runner.run_streamed(agent, QUESTION)
        deltas, items = {}, []
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type.endswith(".delta"):
                deltas[event.data.type] = deltas.get(event.data.type, "") + event.data.delta
            elif event.type == "run_item_stream_event":
                items.append(event.name)
        return result, deltas, items

    result, deltas, items = run(work, tools=declared)
    assert calls == ["strawberry"]
    assert ANSWER in result.final_output
    assert deltas["response.output_text.delta"] == result.final_output
    assert deltas["response.function_call_arguments.delta"] == '{"word": "strawberry", "letter": "r"}'
    assert items == ["tool_called", "tool_output", "message_output_created"]
    assert result.context_wrapper.usage.requests == 2


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees in {city}"


async def streamed(agent, question, **more):
    result = Runner.run_streamed(agent, question, **more)
    async for _ in result.stream_events():
        pass
    return result


WAYS = pytest.mark.parametrize("way", [Runner.run, streamed], ids=["whole", "streamed"])


@WAYS
def test_what_the_provider_gets(way):
    """The scripted provider calls a tool, then shows what it was sent."""
    result = run(lambda agent: way(agent, "Hi"), model="scripted/mirror", tools=[get_weather])
    provider_got_a_round_trip(result.final_output)


def test_reasoning():
    async def work(agent):
        result = Runner.run_streamed(agent, "think of foxes")
        events = [event async for event in result.stream_events()]
        # The second turn gets the first one's reasoning item back.
        again = await Runner.run(agent, result.to_input_list() + [{"role": "user", "content": "echo And again"}])
        return result, events, again

    result, events, again = run(work)
    assert kinds(result) == ["reasoning_item", "message_output_item"]
    thought = result.new_items[0].raw_item.content[0].text
    streamed = [event.data for event in events if event.type == "raw_response_event"]
    assert "".join(event.delta for event in streamed if event.type == "response.reasoning_text.delta") == thought
    assert "of foxes" in thought and "of foxes" in result.final_output
    assert again.final_output == "And again"


def test_output_type():
    class City(BaseModel):
        name: str
        population: int
        twins: list[str]

    result = run(lambda agent: Runner.run(agent, "Paris"), output_type=City)
    assert isinstance(result.final_output, City)
    assert result.final_output.name == "Paris"


def test_handoff():
    """The other agent answers, with its own instructions."""
    # The command is for the first agent only: the second finds a tool's output at the end.
    other = {}

    async def work(agent):
        other["agent"] = agent.clone(name="Expert", handoffs=[])
        agent.handoffs = [other["agent"]]
        return await Runner.run(agent, "call transfer_to_expert {}")

    result = run(work)
    assert result.last_agent is other["agent"]
    assert "Expert" in result.final_output


def test_a_failure_is_raised():
    with pytest.raises(RateLimitError):
        run(lambda agent: Runner.run(agent, "fail 429"))


@pytest.mark.parametrize("command", ["fail cut", "fail stream"])
def test_a_failure_in_the_middle_is_raised(command):
    async def work(agent):
        async for _ in Runner.run_streamed(agent, command).stream_events():
            pass

    with pytest.raises(APIError, match="broke off|asked to fail") as caught:
        run(work)
    assert caught.value.code == "server_error"


def test_an_answer_cut_short_is_raised():
    with pytest.raises(ModelBehaviorError, match="max_output_tokens"):
        run(lambda agent: Runner.run(agent, "length"))


def test_a_refusal_is_raised():
    with pytest.raises(ModelRefusalError, match="I can't help with that"):
        run(lambda agent: Runner.run(agent, "refuse"))


# --- histories that godex keeps; the scripted provider shows what it was sent


def user(text):
    return {"role": "user", "content": text}


def said(result):
    return {"role": "assistant", "content": result.final_output}


BRIEF = {"role": "system", "content": "Be brief."}


def on(agent, model, **more):
    """The same agent on another model."""
    return agent.clone(model=OpenAIResponsesModel(model=model, openai_client=agent.model._client), **more)


@WAYS
def test_a_chain(way):
    async def work(agent):
        first = await way(agent, "My name is Alice.")
        second = await way(agent, "What's my name?", previous_response_id=first.last_response_id)
        with_tool = on(agent, "thinking/mirror", tools=[get_weather])
        third = await way(with_tool, "Hi", previous_response_id=second.last_response_id)
        return first, second, third

    first, second, third = run(work, model="scripted/history")
    past = [BRIEF, user("My name is Alice."), said(first), user("What's my name?")]
    assert history(second.final_output) == past
    provider_got_a_round_trip(third.final_output)
    *before, call, _ = history(third.final_output)
    assert before == [*past, said(second), user("Hi")]
    assert call["reasoning_content"] == "a tool will know"


@WAYS
def test_a_chain_by_itself(way):
    async def work(agent):
        result = await way(agent, "Hi", auto_previous_response_id=True)
        return result, await agent.model._client.responses.retrieve(result.last_response_id)

    result, last = run(work, model="thinking/mirror", tools=[get_weather])
    assert last.previous_response_id == result.raw_responses[0].response_id
    provider_got_a_round_trip(result.final_output)
    # Only what was new was sent: nothing is there twice.
    assert history(result.final_output)[:-2] == [BRIEF, user("Hi")]


@WAYS
def test_a_conversation(way):
    async def work(agent):
        client = agent.model._client
        conversation = (await client.conversations.create()).id
        first = await way(agent, "My name is Alice.", conversation_id=conversation)
        with_tool = on(agent, "thinking/mirror", tools=[get_weather])
        second = await way(with_tool, "Hi", conversation_id=conversation)
        items = [item.type async for item in client.conversations.items.list(conversation, order="asc", limit=3)]
        return first, second, items

    first, second, items = run(work, model="scripted/history")
    provider_got_a_round_trip(second.final_output)
    assert history(second.final_output)[:-2] == [BRIEF, user("My name is Alice."), said(first), user("Hi")]
    turn = ["message", "reasoning", "message", "function_call", "function_call_output", "message"]
    assert items == ["message", "message", *turn]


@WAYS
def test_a_session_that_is_a_conversation(way):
    async def work(agent):
        client = agent.model._client
        session = OpenAIConversationsSession(openai_client=client)
        with_tool = on(agent, "thinking/mirror", tools=[get_weather])
        first = await way(agent, "My name is Alice.", session=session)
        second = await way(with_tool, "Hi", session=session)
        third = await way(agent, "What's my name?", session=session)

        provider_got_a_round_trip(second.final_output)
        assert history(second.final_output)[:-2] == [BRIEF, user("My name is Alice."), said(first), user("Hi")]
        messages = history(third.final_output)
        roles = ["system", "user", "assistant", "user", "assistant", "tool", "assistant", "user"]
        assert [message["role"] for message in messages] == roles
        assert messages[-2] == said(second)

        items = await session.get_items()
        assert await session.get_items(limit=3) == items[-3:]
        assert (await session.pop_item())["content"][0]["text"] == third.final_output
        assert await session.get_items() == items[:-1]
        # More than fits into one request, or into one page.
        await session.add_items([user(f"number {n}") for n in range(45)])
        texts = [item["content"][0]["text"] for item in (await session.get_items())[len(items) - 1 :]]
        assert texts == [f"number {n}" for n in range(45)]
        conversation = session.session_id
        await session.clear_session()
        with pytest.raises(NotFoundError):
            await client.conversations.retrieve(conversation)

    run(work, model="scripted/history")
