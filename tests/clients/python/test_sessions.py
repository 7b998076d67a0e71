"""Sessions with the official Python client: chains, stored responses, conversations.

The scripted provider remembers nothing and answers with what it was sent, so each test sees which history arrived.
"""

import openai
import pytest
from conftest import WEATHER, history, provider_got_a_round_trip

MODEL = "scripted/history"
ALICE = {"role": "user", "content": "My name is Alice."}
WHO = {"role": "user", "content": "What's my name?"}


def whole(client, **more):
    return client.responses.create(**{"model": MODEL, **more})


def raw_stream(client, **more):
    with client.responses.create(**{"model": MODEL, **more}, stream=True) as stream:
        *_, last = stream
    assert last.type == "response.completed"
    return last.response


def helper(client, **more):
    with client.responses.stream(**{"model": MODEL, **more}) as stream:
        return stream.get_final_response()


WAYS = [whole, raw_stream, helper]


def said(response):
    return {"role": "assistant", "content": response.output_text}


def ids(page):
    return [item.id for item in page]


# --- chains


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_a_chain(client, first, second):
    alice = first(client, input=ALICE["content"])
    answer = second(client, input=WHO["content"], previous_response_id=alice.id)
    assert history(answer.output_text) == [ALICE, said(alice), WHO]
    assert answer.previous_response_id == alice.id and answer.store is True


def test_a_long_chain_and_its_forks(client):
    turns = [whole(client, model="demo", input="echo 0")]
    for n in range(1, 12):
        turns.append(whole(client, model="demo", input=f"echo {n}", previous_response_id=turns[-1].id))
    for length in [1, 6, 12]:
        expected = [(role, text) for n in range(length) for role, text in [("user", f"echo {n}"), ("assistant", str(n))]]
        fork = whole(client, input="And now?", previous_response_id=turns[length - 1].id)
        assert [(message["role"], message["content"]) for message in history(fork.output_text)[:-1]] == expected


def test_a_tool_loop_that_sends_only_what_is_new(client):
    first = whole(client, model="thinking/mirror", input="Hi", tools=[WEATHER])
    call = first.output[-1]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees in Paris"}
    for way in WAYS:
        again = way(client, model="thinking/mirror", input=[output], tools=[WEATHER], previous_response_id=first.id)
        provider_got_a_round_trip(again.output_text)
        assert history(again.output_text)[-2]["reasoning_content"] == "a tool will know"


def test_instructions_are_not_inherited(client):
    first = whole(client, input=ALICE["content"], instructions="Be brief.")
    assert history(first.output_text) == [{"role": "system", "content": "Be brief."}, ALICE]
    second = whole(client, input=WHO["content"], instructions="Be long.", previous_response_id=first.id)
    assert history(second.output_text) == [{"role": "system", "content": "Be long."}, ALICE, said(first), WHO]


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_previous_response(client, way):
    private = whole(client, input="Hi", store=False)
    assert private.store is False
    for unknown in ["resp_unknown", private.id]:
        with pytest.raises(openai.BadRequestError) as caught:
            way(client, input="Hi", previous_response_id=unknown)
        assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
        assert unknown in caught.value.message


# --- stored responses


def test_retrieve(client):
    for way in WAYS:
        made = way(client, input="Hi", instructions="Be brief.", tools=[WEATHER], metadata={"team": "blue"})
        kept = client.responses.retrieve(made.id, include=["reasoning.encrypted_content"])
        assert kept.output_text == made.output_text
        # The stream helper adds what it parsed.
        if way is not helper:
            assert kept.to_dict() == made.to_dict()


def test_delete(client):
    made = whole(client, input="Hi")
    assert client.responses.delete(made.id) is None
    for gone in [client.responses.retrieve, client.responses.delete, client.responses.cancel, client.responses.input_items.list]:
        with pytest.raises(openai.NotFoundError) as caught:
            gone(made.id)
        assert caught.value.code is None and made.id in caught.value.message


def test_a_chain_with_a_hole_is_refused(client):
    first = whole(client, input="one")
    second = whole(client, input="two", previous_response_id=first.id)
    client.responses.delete(first.id)
    assert client.responses.retrieve(second.id).id == second.id
    with pytest.raises(openai.BadRequestError) as caught:
        whole(client, input="three", previous_response_id=second.id)
    assert caught.value.code == "previous_response_not_found"


def test_cancel(client):
    """Only what runs in the background can be cancelled."""
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        client.responses.cancel(whole(client, input="Hi").id)


@pytest.mark.parametrize("limit", [1, 4, 5, 100])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_input_items_page_by_page(client, order, limit):
    given = [{"role": "user", "content": f"number {n}"} for n in range(9)]
    first = whole(client, input=given)
    second = whole(client, input="last", previous_response_id=first.id)
    page = client.responses.input_items.list(second.id, order=order, limit=limit)
    assert len(page.data) == min(limit, 11)
    texts = [item.content[0].text for item in page]
    expected = [*(message["content"] for message in given), first.output_text, "last"]
    assert texts == (expected if order == "asc" else expected[::-1])


def test_input_items_from_a_place(client):
    made = whole(client, input=[{"role": "user", "content": str(n)} for n in range(5)])
    items = ids(client.responses.input_items.list(made.id, order="asc"))
    assert ids(client.responses.input_items.list(made.id, order="asc", after=items[2])) == items[3:]
    assert ids(client.responses.input_items.list(made.id, after=items[2])) == items[1::-1]
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.input_items.list(made.id, after="msg_unknown")
    assert caught.value.param == "after"


def test_an_id_that_comes_twice_hides_nothing(client):
    mine = {"type": "message", "id": "msg_mine", **ALICE}
    first = whole(client, input=[mine, WHO])
    # As clients do that send everything again, though the chain has it.
    again = [mine, WHO, *(item.to_dict() for item in first.output), {"role": "user", "content": "Sure?"}]
    second = whole(client, input=again, previous_response_id=first.id)
    items = list(client.responses.input_items.list(second.id, order="asc", limit=1))
    assert [item.role for item in items] == ["user", "user", "assistant", "user", "user", "assistant", "user"]
    assert len({item.id for item in items}) == 7


# --- item references


def test_references(client):
    first = whole(client, model="thinking/mirror", input="Hi", tools=[WEATHER])
    references = [{"type": "item_reference", "id": item.id} for item in first.output]
    output = {"type": "function_call_output", "call_id": "call_1", "output": "18 degrees in Paris"}
    question = {"role": "user", "content": "Hi"}
    for way in WAYS:
        again = way(client, model="thinking/mirror", input=[question, *references, output], tools=[WEATHER])
        provider_got_a_round_trip(again.output_text)
        assert history(again.output_text)[-2]["reasoning_content"] == "a tool will know"
    with pytest.raises(openai.NotFoundError) as caught:
        whole(client, input=[{"type": "item_reference", "id": "msg_unknown"}])
    assert (caught.value.code, caught.value.param) == (None, "input")


# --- conversations


def test_conversations(client):
    made = client.conversations.create(metadata={"topic": "foxes"}, items=[{"type": "message", **ALICE}])
    assert made.id.startswith("conv_") and made.object == "conversation" and made.metadata == {"topic": "foxes"}
    assert client.conversations.retrieve(made.id) == made
    changed = client.conversations.update(made.id, metadata={"topic": "bears"})
    assert (changed.id, changed.metadata) == (made.id, {"topic": "bears"})
    assert client.conversations.retrieve(made.id) == changed
    assert client.conversations.update(made.id, metadata=None).metadata == {}
    gone = client.conversations.delete(made.id)
    assert (gone.id, gone.object, gone.deleted) == (made.id, "conversation.deleted", True)
    for call in [
        lambda: client.conversations.retrieve(made.id),
        lambda: client.conversations.update(made.id, metadata={}),
        lambda: client.conversations.delete(made.id),
        lambda: client.conversations.items.list(made.id),
        lambda: client.conversations.items.create(made.id, items=[ALICE]),
        lambda: whole(client, input="Hi", conversation=made.id),
    ]:
        with pytest.raises(openai.NotFoundError) as caught:
            call()
        assert caught.value.code is None and made.id in caught.value.message


def test_items_of_a_conversation(client):
    conversation = client.conversations.create().id
    items = client.conversations.items
    given = [{"type": "message", "role": "user", "content": f"number {n}"} for n in range(50)]
    added = []
    for start in range(0, 50, 20):
        added += items.create(conversation, items=given[start : start + 20]).data
    expected = [item.id for item in added]
    assert len(set(expected)) == 50
    for limit in [7, 20, 50]:
        assert ids(items.list(conversation, order="asc", limit=limit)) == expected
        assert ids(items.list(conversation, limit=limit)) == expected[::-1]
    third = items.retrieve(expected[2], conversation_id=conversation)
    assert third == added[2] and third.content[0].text == "number 2"
    left = items.delete(expected[2], conversation_id=conversation)
    assert left.id == conversation
    for call in [items.retrieve, items.delete]:
        with pytest.raises(openai.NotFoundError) as caught:
            call(expected[2], conversation_id=conversation)
        assert caught.value.code is None
    assert ids(items.list(conversation, order="asc")) == expected[:2] + expected[3:]
    with pytest.raises(openai.BadRequestError) as caught:
        items.create(conversation, items=given[:21])
    assert caught.value.param == "items"


@pytest.mark.parametrize("way", WAYS)
def test_turns_in_a_conversation(client, way):
    conversation = client.conversations.create(items=[ALICE])
    first = way(client, input=WHO["content"], conversation=conversation.id)
    assert history(first.output_text) == [ALICE, WHO]
    assert first.conversation.id == conversation.id
    second = way(client, input="Sure?", conversation={"id": conversation.id})
    assert history(second.output_text) == [ALICE, WHO, said(first), {"role": "user", "content": "Sure?"}]
    listed = list(client.conversations.items.list(conversation.id, order="asc"))
    assert [item.role for item in listed] == ["user", "user", "assistant", "user", "assistant"]
    assert [listed[2].id, listed[4].id] == [first.output[0].id, second.output[0].id]
    # Read, and left as it is.
    private = way(client, input="Really?", conversation=conversation.id, store=False)
    assert history(private.output_text)[:-1] == [ALICE, WHO, said(first), {"role": "user", "content": "Sure?"}, said(second)]
    assert ids(client.conversations.items.list(conversation.id, order="asc")) == [item.id for item in listed]


ITEMS = [
    {"type": "message", "role": "developer", "content": "Be brief."},
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Look"},
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"},
        ],
    },
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A fox.", "annotations": []}]},
    {"type": "reasoning", "id": "rs_mine", "summary": [{"type": "summary_text", "text": "It is red."}]},
    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "18 degrees"}]},
    {"type": "custom_tool_call", "call_id": "call_2", "name": "shout", "input": "HO"},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "heard"},
]


def test_items_of_all_kinds(client):
    conversation = client.conversations.create().id
    added = client.conversations.items.create(conversation, items=ITEMS, include=["reasoning.encrypted_content"])
    listed = list(client.conversations.items.list(conversation, order="asc", limit=3))
    assert listed == added.data and [item.type for item in listed] == [item["type"] for item in ITEMS]
    assert listed[3].id == "rs_mine" and listed[1].content[1].image_url == "data:image/png;base64,iVBORw0KGgo="
    sent = history(whole(client, input="Well?", conversation=conversation).output_text)
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "tool", "user"]
    assert sent[1]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw0KGgo="
    assert [message["content"] for message in sent if message["role"] == "tool"] == ["18 degrees", "heard"]


def test_a_conversation_is_locked_while_a_turn_runs(client):
    conversation = client.conversations.create().id
    with client.responses.create(model="demo", input="slow 100", conversation=conversation, stream=True) as running:
        assert next(iter(running)).type == "response.created"
        with pytest.raises(openai.BadRequestError) as caught:
            whole(client, input="Hi", conversation=conversation)
        assert (caught.value.code, caught.value.param) == ("conversation_locked", "conversation")
        with pytest.raises(openai.BadRequestError) as caught:
            client.conversations.items.create(conversation, items=[ALICE])
        assert caught.value.code == "conversation_locked"


def test_either_a_chain_or_a_conversation(client):
    first = whole(client, input="Hi")
    conversation = client.conversations.create().id
    with pytest.raises(openai.BadRequestError) as caught:
        whole(client, input="Hi", previous_response_id=first.id, conversation=conversation)
    assert caught.value.code == "mutually_exclusive_parameters"
