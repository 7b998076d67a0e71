"""MCP servers as people run them, behind godex: of both eras of the protocol, over HTTP and over their standard streams;
and one of our own that misbehaves."""

import json
import time

import openai
import pytest
from hosted import MODEL, PAGE, RESULTS, SHOW, call, free, say, shown, steps


def ask(client, *rounds, model=MODEL, tools, **more):
    return client.responses.create(model=model, input=steps(*rounds), tools=tools, **more)


def calls_of(response):
    return [item for item in response.output if item.type == "mcp_call"]


def result(client, label, tool, /, **arguments):
    """The item of one call, and what the model was told."""
    response = ask(client, call(f"{label}__{tool}", arguments), RESULTS, tools=[free(label)])
    assert response.status == "completed"
    (called,) = calls_of(response)
    return called, response.output_text


# --- of the registries

EVERYTHING = pytest.mark.parametrize("label", ["everything", "everything_process"])


@EVERYTHING
def test_everything(client, label):
    names = ["echo", "get-sum", "get-structured-content", "get-resource-links", "get-resource-reference"]
    arguments = [{"message": "naïve 日本語"}, {"a": 20, "b": 22}, {"location": "Chicago"}, {"count": 2}, {"resourceType": "Text"}]
    calls = [call(f"{label}__{name}", given) for name, given in zip(names, arguments)]
    response = ask(client, calls, RESULTS, tools=[free(label)])
    listed = {tool.name: tool for tool in response.output[0].tools}
    assert set(names) < set(listed) and listed["echo"].annotations["read_only"] is True
    assert [called.status for called in calls_of(response)] == ["completed"] * 5
    echo, total, structured, links, reference = [called.output for called in calls_of(response)]
    assert echo == "Echo: naïve 日本語"
    assert total == "The sum of 20 and 22 is 42."
    assert json.loads(structured)["temperature"] == 36
    assert "Blob Resource 1: " in links and "Text Resource 2: " in links
    assert "Resource 1: This is a plaintext resource" in reference


@EVERYTHING
def test_a_picture(client, label):
    response = ask(client, call(f"{label}__get-tiny-image"), SHOW, tools=[free(label)])
    (called,) = calls_of(response)
    assert "Here's the image you requested:" in called.output and "[image/png" in called.output
    # The model sees it.
    parts = [part for message in shown(response.output_text) if isinstance(message["content"], list) for part in message["content"]]
    (image,) = [part for part in parts if part["type"] == "image_url"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,iVBOR")


@EVERYTHING
def test_progress(client, label):
    called, text = result(client, label, "trigger-long-running-operation", duration=1, steps=5)
    assert called.status == "completed" and text.startswith("Long running operation completed.")


@EVERYTHING
def test_wrong_arguments(client, label):
    called, text = result(client, label, "get-sum", a="twenty")
    assert called.status == "failed" and called.output is None
    assert called.error.type in ("mcp_tool_execution_error", "mcp_protocol_error") and len(text) > 10


def test_a_process_gets_no_more_of_the_environment_than_it_needs(client):
    called, _ = result(client, "everything_process", "get-env")
    assert set(json.loads(called.output)) <= {"PATH", "HOME", "LANG", "TMPDIR", "PWD"}


def test_time(client):
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    called, text = result(client, "time", "convert_time", **arguments)
    assert called.status == "completed" and "T21:00:00+09:00" in text
    called, text = result(client, "time", "get_current_time", timezone="Mars/Olympus")
    assert called.status == "failed" and "Mars/Olympus" in text


def test_fetch(client):
    called, text = result(client, "fetch", "fetch", url=PAGE, raw=True)
    assert called.status == "completed" and "The fox sleeps in its den." in text
    called, _ = result(client, "fetch", "fetch", url=PAGE + "/not/there", raw=True)
    assert called.status == "failed" and "404" in str(called.error)


# --- our own

OWN = pytest.mark.parametrize("label", ["tools", "relaxed"], ids=["http", "process"])


@OWN
def test_the_newer_era(client, label):
    _, era = result(client, label, "era")
    assert era == "2026-07-28"


@OWN
def test_everything_of_our_own(client, label):
    _, text = result(client, label, "weather", city="Oslo")
    assert json.loads(text) == {"degrees": 4}
    called, _ = result(client, label, "progress", steps=5, seconds=0.05)
    assert called.output == "5 steps"
    called, _ = result(client, label, "picture")
    assert called.output.startswith("[image/png")


def test_headers_reach_the_server_and_nobody_else(client):
    script = steps([call("tools__header", name="x-secret"), call("tools__header", name="authorization")], say("done"), SHOW)
    tool = free("tools", headers={"x-secret": "canary-one"}, authorization="canary-two")
    response = client.responses.create(model=MODEL, input=script, tools=[tool])
    assert [called.output for called in calls_of(response)] == ["canary-one", "Bearer canary-two"]
    assert "canary" not in json.dumps(response.to_dict()["tools"])
    stored = client.responses.with_raw_response.retrieve(response.id).text
    assert "canary" not in json.dumps(json.loads(stored)["tools"])


def test_two_servers_with_the_same_names(client):
    calls = [call("tools__who"), call("relaxed__who")]
    response = ask(client, calls, RESULTS, tools=[free("tools"), free("relaxed")])
    assert response.output_text == "tools\nrelaxed"
    assert [(called.server_label, called.name) for called in calls_of(response)] == [("tools", "who"), ("relaxed", "who")]


def test_more_tools_than_the_provider_takes(client):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, SHOW, model="limited/steps", tools=[free("many")])
    message = caught.value.message
    assert "allowed_tools" in message and "128" in message and "many" in message
    response = ask(client, call("many__spare_7"), RESULTS, model="limited/steps", tools=[free("many", allowed_tools=["spare_7"])])
    assert response.output_text == "spare"


def test_a_thousand_tools(client):
    response = ask(client, call("many__spare_999"), RESULTS, tools=[free("many")])
    assert len(response.output[0].tools) > 1000
    assert response.output_text == "spare"


@OWN
def test_a_huge_result(client, label):
    """What is large is cut; what is larger than anybody should send is a failure."""
    called, text = result(client, label, "huge", bytes=1_000_000)
    assert called.status == "completed" and len(text) < 100_000 and "cut" in text[-100:]
    assert text == called.output
    called, text = result(client, label, "huge", bytes=50_000_000)
    assert called.status == "failed" and len(text) < 10_000
    # The server is still good for something.
    assert result(client, label, "add", a=1, b=2)[1] == "3"


@pytest.mark.parametrize("label", ["mortal_process", "mortal"])
def test_a_server_that_dies_in_the_middle(client, label):
    called, text = result(client, label, "die")
    assert called.status == "failed" and called.output is None and text
    again = steps(call(f"{label}__add", a=1, b=2), RESULTS)
    if label == "mortal_process":
        # godex starts it again.
        assert client.responses.create(model=MODEL, input=again, tools=[free(label)]).output_text == "3"
    else:
        with pytest.raises(openai.APIStatusError) as caught:
            client.responses.create(model=MODEL, input=again, tools=[free(label)])
        assert caught.value.status_code == 424


def until(client, label, word, times):
    """Waits until the server has been called so often."""
    deadline = time.monotonic() + 10
    while result(client, label, "calls")[1].split().count(word) < times:
        assert time.monotonic() < deadline, f"no {word}"
        time.sleep(0.05)


def hangs(client, label):
    return result(client, label, "calls")[1].split().count("hang") + 1


@OWN
def test_a_client_that_does_not_wait_for_a_tool_that_hangs(client, label):
    """The server is told; and others are served meanwhile."""
    times = hangs(client, label)
    script = steps(call(f"{label}__hang"), RESULTS)
    with client.responses.create(model=MODEL, input=script, tools=[free(label)], stream=True) as stream:
        for event in stream:
            if event.type == "response.mcp_call.in_progress":
                break
        until(client, label, "hang", times)
    until(client, label, "hang-cancelled", times)


@OWN
def test_a_tool_that_hangs_in_the_background_is_cancelled(client, label):
    times = hangs(client, label)
    script = steps(call(f"{label}__hang"), RESULTS)
    response = client.responses.create(model=MODEL, input=script, tools=[free(label)], background=True)
    until(client, label, "hang", times)
    assert client.responses.cancel(response.id).status == "cancelled"
    until(client, label, "hang-cancelled", times)
