"""LangChain's ChatOpenAI on godex, with the Responses API."""

import os

import openai
import pytest
from conftest import history, provider_got_a_round_trip
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


def model(name, **more):
    return ChatOpenAI(
        model=name,
        base_url=os.environ["GODEX_URL"] + "/v1",
        api_key="unused",
        use_responses_api=True,
        max_retries=0,
        timeout=30,
        **more,
    )


@pytest.fixture
def chat():
    return model("demo")


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees in {city}"


QUESTION = 'call get_weather {"city": "Paris"}'


def gather(chunks):
    chunks = list(chunks)
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return chunks, whole


def reasoning(message):
    return [block for block in message.content_blocks if block["type"] == "reasoning"]


def test_invoke(chat):
    messages = [SystemMessage("Be brief."), HumanMessage("Hi"), AIMessage("Hello."), HumanMessage("echo naïve 日本語")]
    answer = chat.invoke(messages)
    assert answer.text == "naïve 日本語"
    usage = answer.usage_metadata
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    assert answer.response_metadata["status"] == "completed"
    assert answer.response_metadata["model_name"] == "demo"


def test_stream(chat):
    chunks, whole = gather(chat.stream("long 30"))
    assert whole.text == " ".join(f"word{n}" for n in range(1, 31)) == chat.invoke("long 30").text
    assert sum(bool(chunk.text) for chunk in chunks) > 1
    usage = whole.usage_metadata
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


def test_a_batch(chat):
    answers = chat.batch([f"echo number {n}" for n in range(5)])
    assert [answer.text for answer in answers] == [f"number {n}" for n in range(5)]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_runs(chat, streamed):
    bound = chat.bind_tools([get_weather])
    ask = (lambda messages: gather(bound.stream(messages))[1]) if streamed else bound.invoke
    messages = [HumanMessage(QUESTION)]
    first = ask(messages)
    (call,) = first.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris"})
    assert not first.invalid_tool_calls

    output = get_weather.invoke(call)
    assert isinstance(output, ToolMessage) and output.tool_call_id == call["id"]
    second = ask([*messages, first, output])
    assert "18 degrees in Paris" in second.text and not second.tool_calls


@pytest.mark.parametrize("streamed", [False, True])
def test_what_the_provider_gets(streamed):
    """The scripted provider calls a tool, then shows what it was sent."""
    bound = model("scripted/mirror").bind_tools([get_weather])
    ask = (lambda messages: gather(bound.stream(messages))[1]) if streamed else bound.invoke
    messages = [HumanMessage("Hi")]
    first = ask(messages)
    provider_got_a_round_trip(ask([*messages, first, get_weather.invoke(first.tool_calls[0])]).text)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chain(streamed):
    """Only what came after the last answer is sent; godex keeps the rest."""
    chat = model("scripted/history", use_previous_response_id=True)
    ask = (lambda messages: gather(chat.stream(messages))[1]) if streamed else chat.invoke
    messages = [HumanMessage("My name is Alice.")]
    messages += [ask(messages), HumanMessage("What's my name?")]
    # What is not sent cannot arrive from here.
    messages[0] = HumanMessage("My name is Bob.")
    assert history(ask(messages).text) == [
        {"role": "user", "content": "My name is Alice."},
        {"role": "assistant", "content": messages[1].text},
        {"role": "user", "content": "What's my name?"},
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chain_with_a_tool(streamed):
    bound = model("thinking/mirror", use_previous_response_id=True).bind_tools([get_weather])
    ask = (lambda messages: gather(bound.stream(messages))[1]) if streamed else bound.invoke
    messages = [HumanMessage("Hi")]
    first = ask(messages)
    second = ask([*messages, first, get_weather.invoke(first.tool_calls[0])])
    provider_got_a_round_trip(second.text)
    assert history(second.text)[1]["reasoning_content"] == "a tool will know"


def test_an_explicit_chain():
    chat = model("scripted/history")
    first = chat.invoke("My name is Alice.")
    second = chat.invoke("What's my name?", previous_response_id=first.response_metadata["id"])
    assert [message["content"] for message in history(second.text)] == ["My name is Alice.", first.text, "What's my name?"]


def test_streamed_arguments_come_in_pieces(chat):
    chunks, whole = gather(chat.bind_tools([get_weather]).stream(QUESTION))
    pieces = [piece for chunk in chunks for piece in chunk.tool_call_chunks]
    assert "".join(piece["args"] or "" for piece in pieces) == '{"city": "Paris"}'
    assert [piece["name"] for piece in pieces if piece["name"]] == ["get_weather"]
    assert whole.tool_calls[0]["args"] == {"city": "Paris"}


def test_parallel_calls(chat):
    question = QUESTION + '\ncall get_weather {"city": "Oslo"}'
    for first in [chat.bind_tools([get_weather]).invoke(question), gather(chat.bind_tools([get_weather]).stream(question))[1]]:
        assert [call["args"]["city"] for call in first.tool_calls] == ["Paris", "Oslo"]
        assert len({call["id"] for call in first.tool_calls}) == 2


def test_the_model_must_call(chat):
    answer = chat.bind_tools([get_weather], tool_choice="get_weather").invoke("Paris?")
    assert [call["name"] for call in answer.tool_calls] == ["get_weather"]


class Person(BaseModel):
    """Someone."""

    name: str
    age: int
    tags: list[str]


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(chat, method):
    person = chat.with_structured_output(Person, method=method).invoke("Ada")
    assert isinstance(person, Person)
    if method == "json_schema":
        assert person.name == "Ada"


def test_streamed_structured_output(chat):
    *_, person = chat.with_structured_output(Person, method="json_schema").stream("Ada")
    assert isinstance(person, Person) and person.name == "Ada"


def test_reasoning(chat):
    """LangChain itself keeps the text of a thought only when it is not streamed."""
    whole = chat.invoke("think of foxes")
    assert "of foxes" in whole.content[0]["content"][0]["text"]
    streamed = gather(chat.stream("think of foxes"))[1]
    for answer in [whole, streamed]:
        assert reasoning(answer) and "of foxes" in answer.text
    # It goes back with the next question.
    again = chat.invoke([HumanMessage("think of foxes"), whole, HumanMessage("echo And again")])
    assert again.text == "And again"
    again = chat.invoke([HumanMessage("think of foxes"), streamed, HumanMessage("echo And again")])
    assert again.text == "And again"


def test_refusal(chat):
    for answer in [chat.invoke("refuse"), gather(chat.stream("refuse"))[1]]:
        assert answer.content[0]["refusal"] == "I'm sorry, but I can't help with that."


def test_length(chat):
    for answer in [chat.invoke("length"), gather(chat.stream("length"))[1]]:
        assert answer.response_metadata["incomplete_details"]["reason"] == "max_output_tokens"


def test_a_failure_is_raised(chat):
    with pytest.raises(openai.RateLimitError):
        chat.invoke("fail 429")
    with pytest.raises(openai.RateLimitError):
        list(chat.stream("fail 429"))


@pytest.mark.parametrize("command", ["fail cut", "fail stream"])
def test_a_failure_in_the_middle_is_raised(chat, command):
    with pytest.raises(openai.APIError):
        list(chat.stream(command))
