"""Webhooks of background responses, verified by the official Python client."""

import os
import queue
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import openai
import pytest

SECRET = os.environ["GODEX_WEBHOOK_SECRET"]


@pytest.fixture(scope="module")
def webhooks():
    """What arrives: bodies and headers."""
    received = queue.Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            received.put((self.rfile.read(int(self.headers["content-length"])), dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", int(os.environ["GODEX_WEBHOOK_PORT"])), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield received
    server.shutdown()
    server.server_close()


def about(webhooks, response_id):
    """The one about this response: other tests' responses end as well."""
    while True:
        body, headers = webhooks.get(timeout=30)
        if response_id in body.decode():
            return body, headers


def test_an_end_is_told_and_verified(client, webhooks):
    response = client.responses.create(model="demo", input="echo done", background=True)
    body, headers = about(webhooks, response.id)
    event = client.webhooks.unwrap(body, headers, secret=SECRET)
    assert (event.type, event.data.id, event.object) == ("response.completed", response.id, "event")
    assert type(event).__name__ == "ResponseCompletedWebhookEvent" and event.id == headers["webhook-id"]
    assert client.responses.retrieve(event.data.id).output_text == "done"
    for changed in [body.replace(b"completed", b"cancelled"), body + b" "]:
        with pytest.raises(openai.InvalidWebhookSignatureError):
            client.webhooks.unwrap(changed, headers, secret=SECRET)


def test_a_cancelled_one_is_told(client, webhooks):
    response = client.responses.create(model="demo", input="slow 10000", background=True)
    assert client.responses.cancel(response.id).status == "cancelled"
    event = client.webhooks.unwrap(*about(webhooks, response.id), secret=SECRET)
    assert (event.type, event.data.id) == ("response.cancelled", response.id)
