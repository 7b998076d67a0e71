"""Tools that godex runs, as a program written with the official Python client sees them."""

import openai
import pytest
from conftest import WEATHER
from hosted import MODEL, NORTH, PAGE, RESULTS, SEARCH, SHOW, SOUTH, URL, call, free, kinds, mcp, say, shown, steps, think


def whole(client, **request):
    return client.responses.create(model=MODEL, **request)


def streamed(client, **request):
    """The last event's response, after the events were looked at."""
    with client.responses.create(model=MODEL, stream=True, **request) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    # Each item is at a place of its own, also in later rounds.
    added = [event.output_index for event in events if event.type == "response.output_item.added"]
    assert added == list(range(len(added)))
    done = [event.item for event in events if event.type == "response.output_item.done"]
    final = events[-1].response
    assert [item.to_dict() for item in done] == [item.to_dict() for item in final.output]
    return final


def helper(client, **request):
    with client.responses.stream(model=MODEL, **request) as stream:
        list(stream)
        return stream.get_final_response()


WAYS = pytest.mark.parametrize("ask", [whole, streamed, helper], ids=["whole", "streamed", "helper"])

ADD = steps(call("relaxed__add", a=20, b=22), say("The sum is $results."))


# --- MCP


@WAYS
def test_a_tool_runs(client, ask):
    response = ask(client, input=ADD, tools=[mcp("relaxed")])
    assert response.status == "completed" and response.output_text == "The sum is 42."
    listed, called, message = response.output
    assert kinds(response.output) == ["mcp_list_tools", "mcp_call", "message"]
    assert listed.id.startswith("mcpl_") and listed.server_label == "relaxed" and not listed.error
    tools = {tool.name: tool for tool in listed.tools}
    assert tools["add"].description == "The sum of two numbers." and tools["add"].annotations == {"read_only": True}
    assert tools["add"].input_schema["required"] == ["a", "b"]
    assert called.id.startswith("mcp_") and (called.server_label, called.name) == ("relaxed", "add")
    assert called.arguments == '{"a":20,"b":22}'
    assert (called.status, called.output, called.error) == ("completed", "42", None)
    assert called.approval_request_id is None
    # Both rounds: each has 5 and 7.
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (10, 14, 24)
    stored = [item.to_dict() for item in client.responses.retrieve(response.id).output]
    assert stored[:2] == [item.to_dict() for item in response.output[:2]]


def test_events(client):
    with client.responses.create(model=MODEL, input=ADD, tools=[mcp("relaxed")], stream=True) as stream:
        events = list(stream)
    types = [event.type.removeprefix("response.") for event in events if event.type != "response.output_text.delta"]
    item = ["output_item.added", "output_item.done"]
    listing = [item[0], "mcp_list_tools.in_progress", "mcp_list_tools.completed", item[1]]
    arguments = ["mcp_call_arguments.delta", "mcp_call_arguments.done"]
    calling = [item[0], "mcp_call.in_progress", *arguments, "mcp_call.completed", item[1]]
    text = [item[0], "content_part.added", "output_text.done", "content_part.done", item[1]]
    once = [kind for at, kind in enumerate(types) if kind != arguments[0] or types[at - 1] != arguments[0]]
    assert once == ["created", "in_progress", *listing, *calling, *text, "completed"]
    first = [event.item for event in events if event.type == "response.output_item.added"]
    assert first[0].tools == []
    assert (first[1].arguments, first[1].output, first[1].status) == ("", None, "in_progress")
    deltas = [event.delta for event in events if event.type == "response.mcp_call_arguments.delta"]
    assert "".join(deltas) == '{"a":20,"b":22}'
    assert {event.response.id for event in events if hasattr(event, "response")} == {events[-1].response.id}


@WAYS
def test_several_rounds_and_calls_at_once(client, ask):
    script = steps(
        [think("two sums"), say("I add."), call("relaxed__add", a=1, b=2), call("tools__add", a=3, b=4)],
        [say("And once more."), call("relaxed__who")],
        RESULTS,
    )
    response = ask(client, input=script, tools=[mcp("relaxed"), free("tools")])
    lists, rounds = ["mcp_list_tools"] * 2, ["reasoning", "message", "mcp_call", "mcp_call", "message", "mcp_call", "message"]
    assert kinds(response.output) == lists + rounds
    calls = [item for item in response.output if item.type == "mcp_call"]
    # In the model's order.
    assert [(item.server_label, item.output) for item in calls] == [("relaxed", "3"), ("tools", "7"), ("relaxed", "relaxed")]
    assert response.output[-1].content[0].text == "3\n7\nrelaxed"
    assert response.usage.total_tokens == 36


@WAYS
def test_a_failing_tool_is_the_models_business(client, ask):
    script = steps([call("relaxed__fail", message="no such file"), call("relaxed__add", "[1, 2]")], RESULTS)
    response = ask(client, input=script, tools=[mcp("relaxed")])
    assert response.status == "completed"
    failed, wrong = response.output[1:3]
    assert (failed.status, failed.output, failed.error.type) == ("failed", None, "mcp_tool_execution_error")
    assert "no such file" in str(failed.error.content)
    assert (wrong.status, wrong.error.type, wrong.error.code) == ("failed", "mcp_protocol_error", -32602)
    assert "no such file" in response.output_text


@WAYS
def test_hosted_calls_beside_the_clients_own(client, ask):
    script = steps([call("get_weather", city="Paris"), call("relaxed__who")], RESULTS)
    tools = [WEATHER, mcp("relaxed")]
    first = ask(client, input=script, tools=tools)
    assert sorted(kinds(first.output)) == ["function_call", "mcp_call", "mcp_list_tools"]
    (function,) = [item for item in first.output if item.type == "function_call"]
    output = {"type": "function_call_output", "call_id": function.call_id, "output": "18 degrees"}
    second = ask(client, input=[output], previous_response_id=first.id, tools=tools)
    assert kinds(second.output) == ["message"]
    assert sorted(second.output_text.split("\n")) == ["18 degrees", "relaxed"]


@WAYS
def test_a_later_turn_extends_the_loop(client, ask):
    """What the model saw in the loop is what it is shown in the next turn; the list of tools is not asked for again."""
    tools = [mcp("relaxed"), SEARCH]
    script = steps(call("web_search", queries=["foxes"]), [think("hm"), call("relaxed__weather", city="Oslo")], SHOW)
    first = ask(client, input=script, tools=tools)
    second = ask(client, input=steps(SHOW), previous_response_id=first.id, tools=tools)
    assert kinds(second.output) == ["message"]
    before, after = shown(first.output_text), shown(second.output_text)
    assert after[: len(before)] == before
    assert [message["role"] for message in before] == ["user", "assistant", "tool", "assistant", "tool"]
    assert NORTH in before[2]["content"] and '"degrees"' in before[4]["content"]

    # A client that holds its history itself has what the items say.
    items = [item.to_dict() for item in first.output]
    history = [{"role": "user", "content": script}, *items, {"role": "user", "content": steps(SHOW)}]
    third = ask(client, input=history, tools=tools, store=False)
    assert kinds(third.output) == ["message"]
    assert [message["role"] for message in shown(third.output_text)] == [*[m["role"] for m in before], "assistant", "user"]


def test_what_is_allowed(client):
    allowed = mcp("relaxed", allowed_tools=["who"])
    response = whole(client, input=steps(SHOW), tools=[allowed])
    assert '"relaxed__who"' in response.output_text and "relaxed__add" not in response.output_text
    only_reading = mcp("relaxed", allowed_tools={"read_only": True})
    response = whole(client, input=steps(SHOW), tools=[only_reading])
    assert '"relaxed__add"' in response.output_text and "relaxed__delete" not in response.output_text


@pytest.mark.parametrize(
    ("tool", "param"),
    [
        (mcp("unknown"), "tools[0]"),
        (mcp("tools", server_url="http://169.254.169.254/mcp"), "tools[0].server_url"),
        (mcp("calendar", connector_id="connector_googlecalendar"), "tools[0].connector_id"),
        (mcp("not a label"), "tools[0].server_label"),
    ],
)
def test_what_is_refused(client, tool, param):
    with pytest.raises(openai.BadRequestError) as caught:
        whole(client, input=steps(SHOW), tools=[tool])
    assert caught.value.param.startswith(param), caught.value.message


def test_a_server_that_cannot_be_listed(client):
    with pytest.raises(openai.APIStatusError) as caught:
        whole(client, input=steps(SHOW), tools=[mcp("gone")])
    assert caught.value.status_code == 424
    assert "'gone'" in caught.value.message and "127.0.0.1" not in caught.value.message
    assert (caught.value.type, caught.value.code, caught.value.param) == ("external_connector_error", "http_error", "tools")
    types = []
    with pytest.raises(openai.APIError, match="'gone'"):
        with client.responses.create(model=MODEL, input=steps(SHOW), tools=[mcp("gone")], stream=True) as stream:
            for event in stream:
                types.append(event.type.removeprefix("response."))
    listing = ["output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.failed", "output_item.done"]
    assert types == ["created", "in_progress", *listing]


@WAYS
def test_a_forced_choice_is_for_the_first_round(client, ask):
    choice = {"type": "mcp", "server_label": "relaxed", "name": "who"}
    for forced in (choice, {"type": "mcp", "server_label": "relaxed"}, "required"):
        response = ask(client, input=steps(call("relaxed__who"), SHOW), tools=[mcp("relaxed")], tool_choice=forced)
        assert kinds(response.output) == ["mcp_list_tools", "mcp_call", "message"]
        assert '"tool_choice":"required"' not in response.output_text


@WAYS
def test_no_more_calls_than_wanted(client, ask):
    calls = [call("relaxed__add", a=n, b=0) for n in (1, 2, 3)]
    response = ask(client, input=steps(calls, SHOW), tools=[mcp("relaxed")], max_tool_calls=1)
    assert kinds(response.output) == ["mcp_list_tools", "mcp_call", "message"]
    tool_messages = [message for message in shown(response.output_text) if message["role"] == "tool"]
    assert len(tool_messages) == 3 and tool_messages[0]["content"] == "1"


def test_in_the_background(client):
    with client.responses.create(model=MODEL, input=ADD, tools=[mcp("relaxed")], background=True, stream=True) as stream:
        final = list(stream)[-1].response
    assert final.output_text == "The sum is 42."
    with client.responses.retrieve(final.id, stream=True, starting_after=5) as stream:
        assert list(stream)[-1].response.to_dict() == final.to_dict()


def test_over_a_websocket(client):
    with client.responses.connect() as connection:
        connection.response.create(model=MODEL, input=ADD, tools=[mcp("relaxed")], store=False)
        for event in connection:
            if event.type in ("response.completed", "response.failed"):
                break
        assert event.response.output_text == "The sum is 42."
        past = event.response.id
        connection.response.create(model=MODEL, input=steps(SHOW), tools=[mcp("relaxed")], previous_response_id=past, store=False)
        for event in connection:
            if event.type in ("response.completed", "response.failed"):
                break
    assert [message["content"] for message in shown(event.response.output_text) if message["role"] == "tool"] == ["42"]


def test_in_a_conversation(client):
    conversation = client.conversations.create().id
    first = whole(client, input=ADD, tools=[mcp("relaxed")], conversation=conversation)
    items = client.conversations.items.list(conversation, order="asc").data
    assert kinds(items) == ["message", "mcp_list_tools", "mcp_call", "message"]
    assert items[2].output == "42" and "godex_output" not in items[2].to_dict()
    second = whole(client, input=steps(SHOW), tools=[mcp("relaxed")], conversation=conversation)
    assert kinds(second.output) == ["message"] and first.output_text in second.output_text
    assert [message["content"] for message in shown(second.output_text) if message["role"] == "tool"] == ["42"]


def test_nothing_of_what_is_kept_is_shown(client):
    tools = [free("tools", server_url=URL), SEARCH]
    response = whole(client, input=steps(call("tools__who"), call("web_search", queries=["foxes"]), say("x")), tools=tools)
    raw = client.responses.with_raw_response.retrieve(response.id).text
    listed = client.responses.input_items.with_raw_response.list(response.id).text
    assert "godex_output" not in response.to_json() + raw + listed
    assert response.tools[0].headers is None and not response.tools[0].to_dict().get("authorization")


# --- approvals

DELETE = steps(call("strict__delete", path="/etc/hosts"), say("It says: $results"))


def request_of(response):
    assert response.status == "completed"
    assert kinds(response.output)[-1] == "mcp_approval_request"
    request = response.output[-1]
    assert request.id.startswith("mcpr_") and request.arguments == '{"path":"/etc/hosts"}'
    assert request.name == "delete"
    return request


def answer(request, approve, **more):
    return {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve, **more}


@WAYS
@pytest.mark.parametrize("tool", [mcp("strict"), free("strict")], ids=["absent", "never"])
def test_an_approval(client, ask, tool):
    """The operator wants it, whatever the client says."""
    first = ask(client, input=DELETE, tools=[tool])
    assert kinds(first.output) == ["mcp_list_tools", "mcp_approval_request"]
    request = request_of(first)
    second = ask(client, input=[answer(request, True)], previous_response_id=first.id, tools=[tool])
    assert kinds(second.output) == ["mcp_call", "message"]
    called = second.output[0]
    assert (called.approval_request_id, called.status, called.output) == (request.id, "completed", "deleted /etc/hosts")
    assert second.output_text == "It says: deleted /etc/hosts"

    # Once more: it does not run again.
    with pytest.raises(openai.APIStatusError) as caught:
        whole(client, input=[answer(request, True)], previous_response_id=first.id, tools=[tool])
    assert caught.value.status_code in (400, 409)

    third = ask(client, input=steps(SHOW), previous_response_id=second.id, tools=[tool])
    messages = shown(third.output_text)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[2]["content"] == "deleted /etc/hosts"


@WAYS
def test_no_approval(client, ask):
    tools = [mcp("tools", require_approval="always")]
    script = steps(call("tools__delete", path="/etc/hosts"), say("It says: $results"))
    first = ask(client, input=script, tools=tools)
    no = answer(request_of(first), False, reason="far too dangerous")
    second = ask(client, input=[no], previous_response_id=first.id, tools=tools)
    assert kinds(second.output) == ["message"]
    assert "far too dangerous" in second.output_text and "deleted" not in second.output_text


@WAYS
@pytest.mark.parametrize("approve", [True, False])
def test_approvals_in_a_history_of_the_clients_own(client, ask, approve):
    tools = [mcp("strict")]
    first = ask(client, input=DELETE, tools=tools, store=False)
    request = request_of(first)
    history = [{"role": "user", "content": DELETE}, *[item.to_dict() for item in first.output], answer(request, approve)]
    second = ask(client, input=history, tools=tools, store=False)
    assert kinds(second.output) == (["mcp_call", "message"] if approve else ["message"])
    assert ("deleted /etc/hosts" in second.output_text) == approve
    # The next turn.
    history += [*[item.to_dict() for item in second.output], {"role": "user", "content": steps(SHOW)}]
    third = ask(client, input=history, tools=tools, store=False)
    roles = [message["role"] for message in shown(third.output_text)]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


def test_a_changed_request_is_not_approved(client):
    tools = [mcp("strict")]
    first = whole(client, input=DELETE, tools=tools, store=False)
    request = request_of(first)
    items = [item.to_dict() for item in first.output]
    items[-1]["arguments"] = '{"path":"/"}'
    history = [{"role": "user", "content": DELETE}, *items, answer(request, True)]
    with pytest.raises(openai.BadRequestError) as caught:
        whole(client, input=history, tools=tools, store=False)
    assert caught.value.param.startswith("input")


def test_an_approval_of_nothing(client):
    unknown = {"type": "mcp_approval_response", "approval_request_id": "mcpr_" + "0" * 48, "approve": True}
    with pytest.raises(openai.BadRequestError) as caught:
        whole(client, input=[{"role": "user", "content": "Hi"}, unknown], tools=[mcp("strict")])
    assert caught.value.param.startswith("input")


def test_an_approval_in_a_conversation(client):
    conversation = client.conversations.create().id
    first = whole(client, input=DELETE, tools=[mcp("strict")], conversation=conversation)
    yes = answer(request_of(first), True)
    second = whole(client, input=[yes], tools=[mcp("strict")], conversation=conversation)
    assert second.output_text == "It says: deleted /etc/hosts"


@pytest.mark.parametrize(
    ("rule", "asks"),
    [
        ("always", True),
        ("never", False),
        ({"never": {"tool_names": ["delete"]}}, False),
        ({"never": {"tool_names": ["add"]}}, True),
        ({"always": {"tool_names": ["delete"]}, "never": {"tool_names": ["add"]}}, True),
        ({"always": {"read_only": True}, "never": {"read_only": False}}, False),
        ({"never": {"read_only": True}}, True),
        (None, True),
    ],
)
def test_when_approval_is_asked_for(client, rule, asks):
    script = steps(call("tools__delete", path="/etc/hosts"), RESULTS)
    response = whole(client, input=script, tools=[mcp("tools", require_approval=rule)])
    assert ("mcp_approval_request" in kinds(response.output)) == asks
    assert ("mcp_call" in kinds(response.output)) != asks


# --- web search

# More than one UTF-16 unit before the links: places are counted in characters.
CITED = f"Foxes 🦊🦊 are white ([foxes.example]({NORTH})) or have [large ears]({SOUTH}), not [this](https://unseen.example/)."
SEARCHED = steps(call("web_search", queries=["white foxes", "fox ears"]), say(CITED))


@WAYS
def test_a_search_with_citations(client, ask):
    response = ask(client, input=SEARCHED, tools=[SEARCH])
    assert kinds(response.output) == ["web_search_call", "message"]
    search, message = response.output
    assert search.id.startswith("ws_") and search.status == "completed"
    assert search.action.type == "search" and search.action.queries == ["white foxes", "fox ears"]
    assert search.action.query == "white foxes" and "sources" not in search.action.to_dict()
    (part,) = message.content
    assert part.text == CITED
    assert [(cited.type, cited.url, cited.title) for cited in part.annotations] == [
        ("url_citation", NORTH, "Foxes of the north"),
        ("url_citation", SOUTH, "Foxes of the south"),
    ]
    links = [part.text[cited.start_index : cited.end_index] for cited in part.annotations]
    assert links == [f"([foxes.example]({NORTH}))", f"[large ears]({SOUTH})"]


def test_events_of_a_search(client):
    with client.responses.create(model=MODEL, input=SEARCHED, tools=[SEARCH], stream=True) as stream:
        events = list(stream)
    search = next(event.item for event in events if event.type == "response.output_item.done")
    of_search = [event for event in events if search.id in (getattr(event, "item_id", None), getattr(getattr(event, "item", None), "id", None))]
    kinds_of_search = ["output_item.added", "web_search_call.in_progress", "web_search_call.searching"]
    kinds_of_search += ["web_search_call.completed", "output_item.done"]
    assert [event.type.removeprefix("response.") for event in of_search] == kinds_of_search
    # The text of a link is there before its annotation.
    said = ""
    annotations = []
    for event in events:
        if event.type == "response.output_text.delta":
            said += event.delta
        elif event.type == "response.output_text.annotation.added":
            annotations.append(event.annotation)
            assert event.annotation.end_index <= len(said)
            assert event.annotation_index == len(annotations) - 1
    final = events[-1].response.output[-1].content[0]
    assert said == final.text == CITED
    assert [cited.to_dict() for cited in annotations] == [cited.to_dict() for cited in final.annotations]


@WAYS
def test_sources_that_are_asked_for(client, ask):
    response = ask(client, input=SEARCHED, tools=[SEARCH], include=["web_search_call.action.sources"])
    sources = response.output[0].action.sources
    assert {source.type for source in sources} == {"url"}
    assert {NORTH, SOUTH} <= {source.url for source in sources}


@WAYS
@pytest.mark.parametrize("kind", ["web_search", "web_search_preview", "web_search_2025_08_26"])
def test_pages(client, ask, kind):
    """The page is on this machine: it is not opened, and the model is told so."""
    calls = [call("open_page", url=PAGE), call("find_in_page", url=PAGE, pattern="den")]
    response = ask(client, input=steps(call("web_search", queries=["foxes"]), calls, SHOW), tools=[{"type": kind}])
    assert response.status == "completed"
    assert kinds(response.output) == ["web_search_call"] * 3 + ["message"]
    opened, found = response.output[1:3]
    assert (opened.action.type, opened.action.url, opened.status) == ("open_page", PAGE, "failed")
    assert (found.action.type, found.action.url, found.action.pattern) == ("find_in_page", PAGE, "den")
    assert found.status == "failed" and "in its den" not in response.output_text


@WAYS
def test_a_search_that_fails(client, ask):
    calls = [call("web_search", queries=["broken"]), call("web_search", queries=["nothing"])]
    response = ask(client, input=steps(calls, RESULTS), tools=[SEARCH], tool_choice={"type": "web_search"})
    broken, nothing = response.output[:2]
    assert (broken.status, nothing.status) == ("failed", "completed")
    assert response.status == "completed" and len(response.output_text) > 20


def test_domains(client):
    filters = {"allowed_domains": ["foxes.example"]}
    response = whole(
        client,
        input=steps(call("web_search", queries=["foxes"]), RESULTS),
        tools=[{"type": "web_search", "filters": filters, "search_context_size": "low"}],
        include=["web_search_call.action.sources"],
    )
    assert [source.url for source in response.output[0].action.sources] == [NORTH]
    assert NORTH in response.output_text and SOUTH not in response.output_text
    echoed = response.tools[0]
    assert echoed.filters.allowed_domains == ["foxes.example"] and echoed.search_context_size == "low"


def test_a_function_of_the_clients_with_the_name_of_ours(client):
    own = {"type": "function", "name": "web_search", "parameters": {"type": "object", "properties": {}}, "strict": False}
    response = whole(client, input=steps(call("web_search")), tools=[SEARCH, own])
    assert kinds(response.output) == ["function_call"] and response.output[0].name == "web_search"
