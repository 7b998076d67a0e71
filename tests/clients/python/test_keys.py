"""A godex that wants keys: made, limited and revoked by its own commands, met by the official client."""

import asyncio
import json
import os
import re
import socket
import subprocess
import time
import urllib.request

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

CONFIGURATION = """
default_provider: demo
models: {aliases: {fast: demo/demo}}
providers:
  demo: {prices: {"*": {input: 1000000, output: 1000000}}}
"""


class Godex:
    """A server of its own, in a home of its own, and its commands."""

    def __init__(self, home):
        self.home = home
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        (home / "godex.yaml").write_text(CONFIGURATION)
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"]}

    def __enter__(self):
        command = [os.environ["GODEX_BINARY"], "serve", "--port", str(self.port)]
        log = open(self.home / "log", "wb")
        self.process = subprocess.Popen(command, cwd=self.home, env=self.environment, stdout=log, stderr=log)
        for _ in range(300):
            try:
                urllib.request.urlopen(self.url + "/health", timeout=5).read()
                return self
            except OSError:
                assert self.process.poll() is None, (self.home / "log").read_text()
                time.sleep(0.05)
        raise AssertionError("it does not begin to serve")

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(timeout=30) == 0

    def run(self, *arguments, status=0):
        command = [os.environ["GODEX_BINARY"], *arguments]
        done = subprocess.run(command, cwd=self.home, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def key(self, name, *arguments):
        made = self.run("keys", "create", name, *arguments)
        (line,) = made.stdout.split()
        assert re.fullmatch(r"gdx_[0-9A-Za-z]{33}", line)
        return line

    def client(self, key, **options) -> OpenAI:
        options = {"max_retries": 0, "timeout": 30, **options}
        return OpenAI(base_url=self.url + "/v1", api_key=key, **options)


@pytest.fixture(scope="module")
def godex(tmp_path_factory):
    with Godex(tmp_path_factory.mktemp("godex")) as running:
        before = running.client("unused").responses.create(model="demo", input="before any key")
        first = running.run("keys", "create", "first")
        running.before, running.first = before, first
        yield running


def test_the_first_key_closes_the_door_and_owns_what_was_there(godex):
    assert "every client needs a key" in godex.first.stderr
    client = godex.client(godex.first.stdout.strip())
    assert client.responses.retrieve(godex.before.id).id == godex.before.id
    for wrong in ["unused", "gdx_" + "0" * 33, ""]:
        with pytest.raises(openai.AuthenticationError) as refused:
            godex.client(wrong or "x").responses.create(model="demo", input="Hi")
        assert refused.value.code == "invalid_api_key"


def test_teams_do_not_see_each_other(godex):
    red, blue = (godex.client(godex.key(name, "--tenant", name)) for name in ("red", "blue"))
    response = red.responses.create(model="demo", input="Ours")
    conversation = red.conversations.create(items=[{"role": "user", "content": "Ours"}])
    assert red.responses.retrieve(response.id).id == response.id
    with pytest.raises(openai.NotFoundError):
        blue.responses.retrieve(response.id)
    with pytest.raises(openai.NotFoundError):
        blue.conversations.retrieve(conversation.id)
    with pytest.raises(openai.BadRequestError) as refused:
        blue.responses.create(model="demo", input="And?", previous_response_id=response.id)
    assert refused.value.code == "previous_response_not_found"


def test_a_key_for_some_models(godex):
    client = godex.client(godex.key("narrow", "--models", "fast"))
    assert [model.id for model in client.models.list()] == ["fast"]
    assert client.responses.create(model="fast", input="Hi").status == "completed"
    with pytest.raises(openai.PermissionDeniedError) as refused:
        client.responses.create(model="demo", input="Hi")
    assert "demo" in refused.value.message


def test_requests_per_minute(godex):
    client = godex.client(godex.key("slow", "--rpm", "2"))
    for left in ("1", "0"):
        raw = client.responses.with_raw_response.create(model="demo", input="Hi")
        assert raw.headers["x-ratelimit-limit-requests"] == "2"
        assert raw.headers["x-ratelimit-remaining-requests"] == left
    with pytest.raises(openai.RateLimitError) as refused:
        client.responses.create(model="demo", input="Hi")
    assert refused.value.code == "rate_limit_exceeded"
    assert int(refused.value.response.headers["retry-after"]) >= 1
    # Others are not slowed by it.
    godex.client(godex.key("quick", "--rpm", "60")).responses.create(model="demo", input="Hi")


def test_turns_at_once(godex):
    key = godex.key("single", "--concurrency", "1")
    with godex.client(key).responses.create(model="demo", input="slow 20\nHi", stream=True) as stream:
        next(iter(stream))
        with pytest.raises(openai.RateLimitError):
            godex.client(key).responses.create(model="demo", input="Hi")
    # The client that left has given its place back; the official client waits for that by itself.
    assert godex.client(key, max_retries=5).responses.create(model="demo", input="Hi").status == "completed"


def test_a_budget_ends_and_nobody_tries_again(godex):
    client = godex.client(godex.key("poor", "--budget", "1usd/month"), max_retries=3)
    # A dollar for each token.
    assert client.responses.create(model="demo", input="Hi").status == "completed"
    began = json.loads(godex.run("keys", "show", "poor", "--json").stdout)
    assert began["terms"]["budget"] == "1usd/month"
    with pytest.raises(openai.RateLimitError) as refused:
        client.responses.create(model="demo", input="Hi")
    assert refused.value.code == "insufficient_quota"
    assert refused.value.response.headers["x-should-retry"] == "false"


def test_usage_is_told(godex):
    godex.client(godex.key("counted", "--tenant", "counted")).responses.create(model="demo", input="Hi")
    for _ in range(100):
        rows = json.loads(godex.run("usage", "--by", "tenant,key,model", "--json").stdout)
        mine = [row for row in rows["rows"] if row.get("tenant") == "counted"]
        if mine:
            break
        time.sleep(0.1)
    (row,) = mine
    assert (row["requests"], row["model"]) == (1, "demo/demo")
    assert row["input_tokens"] > 0 and row["output_tokens"] > 0


def test_a_revoked_key_is_dead_at_once(godex):
    key = godex.key("leaver")
    client = godex.client(key)
    client.responses.create(model="demo", input="Hi")
    godex.run("keys", "revoke", "leaver")
    with pytest.raises(openai.AuthenticationError):
        client.responses.create(model="demo", input="Hi")
    assert "leaver" in godex.run("keys", "list").stdout
    assert key not in godex.run("keys", "list", "--json").stdout


def test_a_key_is_rotated_without_a_gap(godex):
    old = godex.key("turning", "--tenant", "turning")
    response = godex.client(old).responses.create(model="demo", input="Ours")
    new = godex.run("keys", "rotate", "turning", "--grace", "1h").stdout.strip()
    for key in (old, new):
        assert godex.client(key).responses.retrieve(response.id).id == response.id
    newest = godex.run("keys", "rotate", "turning", "--grace", "0s").stdout.strip()
    with pytest.raises(openai.AuthenticationError):
        godex.client(new).responses.retrieve(response.id)
    assert godex.client(newest).responses.retrieve(response.id).id == response.id


def test_a_websocket_asks_for_the_key_at_each_message(godex):
    key = godex.key("socket")

    async def turns():
        client = AsyncOpenAI(base_url=godex.url + "/v1", api_key=key, max_retries=0)
        async with client.responses.connect() as connection:
            seen = []
            for _ in range(2):
                await connection.response.create(model="demo", input="Hi", store=False)
                async for event in connection:
                    if event.type in ("response.completed", "error"):
                        seen.append(event)
                        break
                godex.run("keys", "revoke", "socket")
            return seen

    first, second = asyncio.run(turns())
    assert first.type == "response.completed"
    assert second.type == "error"


def test_a_tenant_is_exported_and_erased(godex):
    client = godex.client(godex.key("leaving", "--tenant", "leaving"))
    response = client.responses.create(model="demo", input="The word is quetzalcoatl")
    lines = godex.run("tenants", "export", "leaving").stdout.splitlines()
    assert response.id in [json.loads(line).get("response", {}).get("id") for line in lines]
    assert "quetzalcoatl" in "".join(lines)
    godex.run("tenants", "erase", "leaving", status=1)
    godex.run("tenants", "erase", "leaving", "--yes")
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)
    for file in (godex.home / ".godex").rglob("*"):
        if file.is_file():
            assert b"quetzalcoatl" not in file.read_bytes(), file
