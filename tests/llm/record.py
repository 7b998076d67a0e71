"""Exchanges between godex and a real model server, as golden pages: what was asked of godex, and the bytes with which
the server answered what godex sent it. What must come out is written by the goldens themselves (GODEX_BLESS=1).

record.py GODEX_URL PROVIDER MODEL SERVER_URL PORT FOLDER NAME SOURCE [CASE…]

godex is to have PROVIDER on loopback PORT; what it sends there is passed on to SERVER_URL. The pages are
FOLDER/NAME-CASE.golden, and SOURCE says where they are from. The cases that are named are left out, and those that
the server does not answer. Only what names this machine is changed in an answer: folders, and the system.
"""

import http.client
import http.server
import json
import pathlib
import platform
import re
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

GODEX, PROVIDER, MODEL, SERVER, PORT, FOLDER, NAME, SOURCE, *LEFT_OUT = sys.argv[1:]
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
COLOUR = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "green", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
# The model calls when it has seen a call.
HISTORY = [
    {"role": "user", "content": "What is the weather in Rome?"},
    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city": "Rome"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
    {"role": "user", "content": "What is the weather in Paris?"},
]
CALL = {"input": HISTORY, "tools": [WEATHER], "tool_choice": "required", "max_output_tokens": 48}
NAMED = {"input": HISTORY[-1:], "tools": [WEATHER], "tool_choice": {"type": "function", "name": "get_weather"}}
FORMAT = {"format": {"type": "json_schema", "name": "colour", "strict": True, "schema": COLOUR}}
HELLO = {"input": "Say hello in one sentence.", "instructions": "You are brief."}
CASES = {
    "text": ("A text.", HELLO),
    "stream": ("A text, streamed.", {**HELLO, "stream": True}),
    "length": (
        "The limit cuts the text.",
        {"input": "Count from one to a hundred.", "max_output_tokens": 16, "stream": True},
    ),
    "tool-call": ("A call.", CALL),
    "tool-call-stream": ("A call, streamed.", {**CALL, "stream": True}),
    "named-choice": ("A call, chosen by name.", {**NAMED, "max_output_tokens": 48}),
    "structured": ("A strict schema.", {"input": "Name a colour.", "text": FORMAT}),
    "logprobs": (
        "Log probabilities.",
        {**HELLO, "max_output_tokens": 16, "top_logprobs": 2, "include": ["message.output_text.logprobs"]},
    ),
    "overflow": ("The prompt does not fit.", {"input": "hello world " * 600}),
    "no-such-model": ("A model that is not there.", {**HELLO, "model": "no-such-model"}),
}
exchanges = []


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes a request on, and keeps the whole answer."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        server = urllib.parse.urlsplit(SERVER)
        link = http.client.HTTPConnection(server.hostname, server.port, timeout=300)
        link.request("POST", self.path, body, {"content-type": "application/json"})
        answer = link.getresponse()
        kind, bytes_ = answer.headers.get_content_type(), answer.read()
        exchanges.append((answer.status, kind, bytes_))
        self.send_response(answer.status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(bytes_)))
        self.end_headers()
        self.wfile.write(bytes_)

    def log_message(self, *_):
        pass


def ask(request):
    """Gives the exchange that godex had with the server."""
    exchanges.clear()
    body = {**request, "model": f"{PROVIDER}/{request['model']}", "store": False}
    post = urllib.request.Request(
        f"{GODEX}/v1/responses", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(post, timeout=600).read()
    except urllib.error.HTTPError as error:
        error.read()
    return exchanges[0] if exchanges else None


def page(about, request, exchange):
    status, kind, answer = exchange
    text = re.sub(r"/[^\s\"'\\]*/site-packages/", "/site-packages/", answer.decode())
    text = text.replace(platform.platform(), platform.system())
    if not text.endswith("\n"):
        text += "\n"
    asked = json.dumps(request, indent=2)
    return f"{about}\nsource: {SOURCE}\n=== request\n{asked}\n=== upstream {status} {kind}\n{text}"


def main():
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    for case, (about, request) in CASES.items():
        if case in LEFT_OUT:
            continue
        request = {"model": MODEL, "temperature": 0, "max_output_tokens": 24, **request}
        exchange = ask(request)
        if exchange is None or case in ("overflow", "no-such-model") and exchange[0] < 400:
            print(f"{NAME}-{case}: nothing to record", flush=True)
            continue
        print(f"{NAME}-{case}: {exchange[0]} {exchange[1]}, {len(exchange[2])} bytes", flush=True)
        pathlib.Path(FOLDER, f"{NAME}-{case}.golden").write_text(page(about, request, exchange), newline="")


main()
