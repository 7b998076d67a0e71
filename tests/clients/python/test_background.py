"""Background responses, and streams that are taken up again, with the official client."""

import time

import openai
import pytest
from openai import OpenAI

SLOW = "slow 8\nOne two three four five six seven eight"
TEXT = "One two three four five six seven eight"


def wait(client: OpenAI, response):
    for _ in range(300):
        if response.status not in ("queued", "in_progress"):
            return response
        time.sleep(0.1)
        response = client.responses.retrieve(response.id)
    raise AssertionError(f"{response.id} is still {response.status}")


def test_polling(client):
    queued = client.responses.create(model="demo", input=SLOW, background=True)
    assert (queued.status, queued.background, queued.output) == ("queued", True, [])
    done = wait(client, queued)
    assert (done.id, done.status) == (queued.id, "completed")
    assert TEXT in done.output_text
    again = client.responses.create(model="demo", input="echo", previous_response_id=done.id)
    assert again.status == "completed"


def test_a_stream_is_taken_up_where_it_stopped(client):
    seen = []
    with client.responses.create(model="demo", input=SLOW, background=True, stream=True) as stream:
        for event in stream:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
    first = seen[0].response
    assert [event.type for event in seen[:2]] == ["response.created", "response.queued"]
    rest = list(client.responses.retrieve(first.id, stream=True, starting_after=seen[-1].sequence_number))
    numbers = [event.sequence_number for event in seen + rest]
    assert numbers == list(range(len(numbers)))
    assert rest[-1].type == "response.completed"
    text = "".join(event.delta for event in seen + rest if event.type == "response.output_text.delta")
    assert text == rest[-1].response.output_text and TEXT in text
    whole = list(client.responses.retrieve(first.id, stream=True))
    assert [event.model_dump() for event in whole] == [event.model_dump() for event in seen + rest]


def test_the_stream_helper_takes_a_response_up(client):
    with client.responses.stream(model="demo", input=SLOW, background=True) as stream:
        event = next(iter(stream))
        response_id, number = event.response.id, event.sequence_number
    with client.responses.stream(response_id=response_id, starting_after=number) as stream:
        for _ in stream:
            pass
        final = stream.get_final_response()
    assert final.id == response_id
    assert TEXT in final.output_text


def test_cancelling(client):
    queued = client.responses.create(model="demo", input="slow 100\nHi", background=True)
    cancelled = client.responses.cancel(queued.id)
    assert (cancelled.id, cancelled.status) == (queued.id, "cancelled")
    assert client.responses.cancel(queued.id) == cancelled
    assert client.responses.retrieve(queued.id) == cancelled
    done = wait(client, client.responses.create(model="demo", input="Hi", background=True))
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a completed response."):
        client.responses.cancel(done.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.cancel("resp_none")


def test_a_failure(client):
    failed = wait(client, client.responses.create(model="demo", input="fail 400 no such luck", background=True))
    assert (failed.status, failed.error.message) == ("failed", "no such luck")


def test_what_cannot_be(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="demo", input="Hi", background=True, store=False)
    assert refused.value.param == "background"
    done = client.responses.create(model="demo", input="Hi")
    with pytest.raises(openai.BadRequestError, match="was not created with background=true"):
        list(client.responses.retrieve(done.id, stream=True))


def test_a_request_that_is_sent_again(client):
    again = {"Idempotency-Key": f"test-{time.monotonic_ns()}"}
    one = client.responses.create(model="demo", input="Hi", extra_headers=again)
    two = client.responses.create(model="demo", input="Hi", extra_headers=again)
    assert one == two
    with pytest.raises(openai.BadRequestError, match="used for another request"):
        client.responses.create(model="demo", input="Ho", extra_headers=again)
