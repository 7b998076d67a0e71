"""LangChain's ChatOpenAI with tools that godex runs; its history has the items as they came, and sends them back."""

import pytest
from hosted import MODEL, NORTH, SEARCH, SHOW, URL, call, mcp, say, shown, steps
from langchain_core.messages import HumanMessage
from test_langchain import gather, model

SERVER = mcp("tools", server_url=URL, require_approval="never")
ADD = steps(call("tools__add", a=20, b=22), say("The sum is $results."))
DELETE = steps(call("tools__delete", path="/etc/hosts"), say("It says: $results"))

STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def asking(streamed, tools, **more):
    bound = model(MODEL, **more).bind_tools(tools)
    return (lambda messages: gather(bound.stream(messages))[1]) if streamed else bound.invoke


def blocks(message):
    return [block["type"] for block in message.content]


@STREAMED
def test_a_server(streamed):
    ask = asking(streamed, [SERVER])
    messages = [HumanMessage(ADD)]
    first = ask(messages)
    assert first.text == "The sum is 42." and not first.tool_calls
    assert blocks(first) == ["mcp_list_tools", "mcp_call", "text"]
    assert first.usage_metadata["total_tokens"] == 24
    second = ask([*messages, first, HumanMessage(steps(SHOW))])
    assert blocks(second) == ["text"]
    sent = shown(second.text)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["content"] == "42"


@STREAMED
@pytest.mark.parametrize("kept", [False, True], ids=["history", "chain"])
def test_an_approval(streamed, kept):
    ask = asking(streamed, [mcp("tools", server_url=URL, require_approval="always")], use_previous_response_id=kept)
    messages = [HumanMessage(DELETE)]
    first = ask(messages)
    assert blocks(first) == ["mcp_list_tools", "mcp_approval_request"]
    request = first.content[-1]
    answer = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
    second = ask([*messages, first, HumanMessage([answer])])
    assert blocks(second) == ["mcp_call", "text"]
    assert second.text == "It says: deleted /etc/hosts"
    third = ask([*messages, first, HumanMessage([answer]), second, HumanMessage(steps(SHOW))])
    sent = shown(third.text)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["content"] == "deleted /etc/hosts"


@STREAMED
def test_a_search(streamed):
    ask = asking(streamed, [SEARCH], include=["web_search_call.action.sources"])
    messages = [HumanMessage(steps(call("web_search", queries=["foxes"]), say(f"White, says [a page]({NORTH}).")))]
    first = ask(messages)
    search, text = [block for block in first.content if block["type"] in ("web_search_call", "text")]
    assert search["action"]["queries"] == ["foxes"] and NORTH in [source["url"] for source in search["action"]["sources"]]
    (cited,) = text["annotations"]
    assert cited["url"] == NORTH
    (block,) = [block for block in first.content_blocks if block["type"] == "text"]
    (citation,) = block["annotations"]
    assert (citation["type"], citation["url"], citation["title"]) == ("citation", NORTH, "Foxes of the north")
    second = ask([*messages, first, HumanMessage(steps(SHOW))])
    sent = shown(second.text)
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    # The results are not kept here: the model reads what was asked and found.
    assert NORTH in sent[2]["content"]
