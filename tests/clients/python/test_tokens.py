"""Counting the input of a request with the official Python client."""

import asyncio
import os

import openai
import pytest
from conftest import WEATHER


def count(client, **request):
    counted = client.responses.input_tokens.count(**request)
    assert counted.object == "response.input_tokens"
    return counted.input_tokens


def test_everything_counts(client):
    short = count(client, model="demo", input="Hi")
    long = count(client, model="demo", input="Tell me about the sea. " * 50)
    instructed = count(client, model="demo", input="Tell me about the sea. " * 50, instructions="Be brief.")
    tools = count(client, model="demo", input="Tell me about the sea. " * 50, instructions="Be brief.", tools=[WEATHER])
    assert 0 < short < 20 < long < instructed < tools


def test_nothing_is_required(client):
    assert count(client) > 0


def test_what_is_continued_counts(client):
    first = client.responses.create(model="demo", input="The quick brown fox. " * 40)
    alone = count(client, model="demo", input="Go on.")
    assert count(client, model="demo", input="Go on.", previous_response_id=first.id) > alone + 100
    conversation = client.conversations.create(items=[{"type": "message", "role": "user", "content": "Word. " * 200}])
    assert count(client, model="demo", input="Go on.", conversation=conversation.id) > alone + 100


def test_estimates_say_so(client):
    raw = client.responses.input_tokens.with_raw_response.count(model="demo", input="Hi")
    assert "input_tokens=degraded" in raw.headers["x-godex-compat"]


def test_what_is_wrong_is_refused(client):
    with pytest.raises(openai.BadRequestError):
        count(client, model="demo", input=[{"role": "critic", "content": "Hm."}])
    with pytest.raises(openai.BadRequestError):
        count(client, model="demo", input="Hi", previous_response_id="resp_" + "0" * 48)


def test_async():
    async def counted():
        async with openai.AsyncOpenAI(base_url=os.environ["GODEX_URL"] + "/v1", api_key="unused") as client:
            return await client.responses.input_tokens.count(model="demo", input="Hi")

    assert asyncio.run(counted()).input_tokens > 0
