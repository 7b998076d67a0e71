"""The Agents SDK's hosted tools, run by godex: MCP servers with and without approvals, and web search."""

import pytest
from agents import HostedMCPTool, ModelSettings, Runner, WebSearchTool
from hosted import MODEL, NORTH, RESULTS, SHOW, URL, call, say, shown, steps
from test_agents import WAYS, kinds, run, streamed

ADD = steps(call("tools__add", a=20, b=22), say("The sum is $results."))
DELETE = steps(call("tools__delete", path="/etc/hosts"), say("It says: $results"))


def server(approval="never", **more):
    config = {"type": "mcp", "server_label": "tools", "server_url": URL, "require_approval": approval}
    return HostedMCPTool(tool_config=config, **more)


@WAYS
def test_a_hosted_server(way):
    async def work(agent):
        first = await way(agent, ADD)
        # The items go back as they came.
        second = await way(agent, first.to_input_list() + [{"role": "user", "content": steps(SHOW)}])
        third = await way(agent, steps(SHOW), previous_response_id=first.last_response_id)
        return first, second, third

    first, second, third = run(work, model=MODEL, tools=[server()])
    assert first.final_output == "The sum is 42."
    assert kinds(first) == ["mcp_list_tools_item", "tool_call_item", "message_output_item"]
    assert first.context_wrapper.usage.requests == 1 and first.context_wrapper.usage.total_tokens == 24
    for again in (second, third):
        assert kinds(again) == ["message_output_item"]
        roles = [message["role"] for message in shown(again.final_output)]
        assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
        assert shown(again.final_output)[3]["content"] == "42"


def test_events():
    async def work(agent):
        result = Runner.run_streamed(agent, ADD)
        names = [event.name async for event in result.stream_events() if event.type == "run_item_stream_event"]
        return result, names

    result, names = run(work, model=MODEL, tools=[server()])
    assert result.final_output == "The sum is 42."
    assert sorted(names) == ["mcp_list_tools", "message_output_created", "tool_called"]


@WAYS
def test_a_server_by_its_label_alone(way):
    tool = HostedMCPTool(tool_config={"type": "mcp", "server_label": "relaxed"})
    result = run(lambda agent: way(agent, steps(call("relaxed__who"), RESULTS)), model=MODEL, tools=[tool])
    assert result.final_output == "relaxed"


@WAYS
@pytest.mark.parametrize("approve", [True, False])
def test_approval_by_a_callback(way, approve):
    asked = []

    def decide(request):
        asked.append((request.data.server_label, request.data.name, request.data.arguments))
        return {"approve": True} if approve else {"approve": False, "reason": "far too dangerous"}

    tools = [server("always", on_approval_request=decide)]
    result = run(lambda agent: way(agent, DELETE), model=MODEL, tools=tools)
    assert asked == [("tools", "delete", '{"path":"/etc/hosts"}')]
    if approve:
        assert result.final_output == "It says: deleted /etc/hosts"
    else:
        assert "far too dangerous" in result.final_output
    assert result.context_wrapper.usage.requests == 2


@WAYS
@pytest.mark.parametrize("chain", [False, True], ids=["history", "chain"])
@pytest.mark.parametrize("approve", [True, False])
def test_approval_by_somebody_who_is_asked(way, chain, approve):
    async def work(agent):
        more = {"auto_previous_response_id": True} if chain else {}
        first = await way(agent, DELETE, **more)
        (interruption,) = first.interruptions
        assert interruption.raw_item.name == "delete"
        state = first.to_state()
        if approve:
            state.approve(interruption)
        else:
            state.reject(interruption, rejection_message="far too dangerous")
        return await way(agent, state)

    result = run(work, model=MODEL, tools=[server({"never": {"tool_names": ["add"]}})])
    assert ("deleted /etc/hosts" in result.final_output) == approve
    assert approve or "far too dangerous" in result.final_output


@WAYS
def test_a_choice_of_a_hosted_server(way):
    """The SDK names no server in it."""
    settings = ModelSettings(tool_choice="mcp")
    result = run(lambda agent: way(agent, ADD), model=MODEL, tools=[server()], model_settings=settings)
    assert result.final_output == "The sum is 42."


@WAYS
def test_a_search(way):
    script = steps(call("web_search", queries=["foxes"]), say(f"White, says [a page]({NORTH})."))

    async def work(agent):
        first = await way(agent, script)
        second = await way(agent, first.to_input_list() + [{"role": "user", "content": steps(SHOW)}])
        return first, second

    settings = ModelSettings(tool_choice="web_search", response_include=["web_search_call.action.sources"])
    location = {"type": "approximate", "city": "Oslo", "country": "NO"}
    tools = [WebSearchTool(user_location=location, search_context_size="low", filters={"allowed_domains": ["foxes.example"]})]
    first, second = run(work, model=MODEL, tools=tools, model_settings=settings)
    assert kinds(first) == ["tool_call_item", "message_output_item"]
    search, message = [item.raw_item for item in first.new_items]
    assert search.type == "web_search_call" and search.status == "completed"
    assert [source.url for source in search.action.sources] == [NORTH]
    (cited,) = message.content[0].annotations
    assert (cited.url, message.content[0].text[cited.start_index : cited.end_index]) == (NORTH, f"[a page]({NORTH})")
    # A forced choice of the second turn does not hinder: it is the model's script that says what is done.
    assert "assistant" in [message["role"] for message in shown(second.final_output)]


def test_a_search_for_pictures_is_a_search():
    tools = [WebSearchTool(search_content_types=["text", "image"], image_settings={"max_results": 2})]
    script = steps(call("web_search", queries=["foxes"]), say("Found."))
    result = run(lambda agent: streamed(agent, script), model=MODEL, tools=tools)
    assert result.final_output == "Found."
