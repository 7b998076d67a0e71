"""godex in front of a real model, end to end. It proves the wire, not the model: what it says is printed, not judged.

check.py GODEX_URL MODEL
"""

import json
import sys
import urllib.request

URL, MODEL = sys.argv[1:]
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
COLOUR = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "green", "blue"]}, "bright": {"type": "boolean"}},
    "required": ["colour", "bright"],
    "additionalProperties": False,
}


def post(body):
    body = {"model": MODEL, "temperature": 0, "max_output_tokens": 64, **body}
    request = urllib.request.Request(
        f"{URL}/v1/responses", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    # No proxy of the environment may be between.
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300)


def ask(**body):
    with post(body) as answer:
        response = json.load(answer)
        response["x-godex-compat"] = answer.headers.get("x-godex-compat")
    assert response["object"] == "response" and response["error"] is None, response
    assert response["status"] in ("completed", "incomplete"), response
    assert response["usage"]["input_tokens"] > 0, response
    return response


def text(response):
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part["text"] for part in parts)


def show(name, what, response):
    usage = response["usage"]
    tokens = f"{usage['input_tokens']} in, {usage['output_tokens']} out"
    notes = f"; {response['x-godex-compat']}" if response.get("x-godex-compat") else ""
    print(f"{name:28} {response['status']:10} {what!r} ({tokens}{notes})", flush=True)


def plain():
    response = ask(input="Say hello in one sentence.", instructions="You are brief.")
    assert text(response), response
    show("text", text(response), response)


def stream():
    events = []
    with post({"input": "Count from one to five.", "stream": True}) as answer:
        for line in answer:
            if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
                events.append(json.loads(line[6:]))
    kinds = [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events))), kinds
    assert kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete"), kinds
    response = events[-1]["response"]
    said = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert said and said == text(response), (said, response)
    show(f"stream ({len(events)} events)", said, response)


def tool_call():
    # The model calls when it has seen a call; the choice forces one.
    history = [
        {"role": "user", "content": "What is the weather in Rome?"},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        {"role": "user", "content": "What is the weather in Paris?"},
    ]
    response = ask(input=history, tools=[WEATHER], tool_choice="required")
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    assert len(calls) == 1 and calls[0]["name"] == "get_weather" and calls[0]["status"] == "completed", response
    arguments = json.loads(calls[0]["arguments"])
    assert isinstance(arguments["city"], str), arguments
    show("tool call", calls[0]["arguments"], response)
    result = {"type": "function_call_output", "call_id": calls[0]["call_id"], "output": "rain"}
    response = ask(input=[*history, *response["output"], result], tools=[WEATHER], tool_choice="none")
    assert all(item["type"] == "message" for item in response["output"]), response
    show("tool result", text(response), response)


def json_schema():
    form = {"type": "json_schema", "name": "colour", "strict": True, "schema": COLOUR}
    response = ask(input="Name a colour.", text={"format": form})
    value = json.loads(text(response))
    assert set(value) == {"colour", "bright"} and value["colour"] in COLOUR["properties"]["colour"]["enum"], value
    show("json_schema", text(response), response)


def turns():
    first = ask(input="My name is Ada. Greet me.")
    show("turn 1", text(first), first)
    question = {"role": "user", "content": "What is my name?"}
    sent = [{"role": "user", "content": "My name is Ada. Greet me."}, *first["output"], question]
    again = ask(input=sent)
    show("turn 2, items sent again", text(again), again)
    chained = ask(input=[question], previous_response_id=first["id"])
    show("turn 2, previous_response_id", text(chained), chained)
    # Both ways the model reads the same conversation.
    assert again["usage"]["input_tokens"] == chained["usage"]["input_tokens"] > first["usage"]["input_tokens"]


for case in (plain, stream, tool_call, json_schema, turns):
    case()
print("all good")
