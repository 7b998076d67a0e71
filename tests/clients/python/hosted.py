"""What tests of hosted tools share: scripts for the model `scripted/steps`, which does what its user writes, and the
MCP servers and the search that the running godex has."""

import json
import os

MODEL = "scripted/steps"
# The label `tools` at this address, for clients that must name one.
URL = os.environ.get("GODEX_MCP_URL", "")
# A page that the search shows, and that nobody may open: it is on this machine.
PAGE = os.environ.get("GODEX_PAGE_URL", "")
NORTH = "https://foxes.example/north"
SOUTH = "https://other.example/south_(hot)"

SEARCH = {"type": "web_search"}


def mcp(label, **more):
    """A server that godex knows by its label."""
    return {"type": "mcp", "server_label": label, **more}


def free(label, **more):
    return mcp(label, require_approval="never", **more)


def steps(*rounds):
    """A script: in each round of it the model does one step, or several."""
    return json.dumps([turn if isinstance(turn, list) else [turn] for turn in rounds])


def call(tool, arguments=None, /, **named):
    return {"call": tool, "arguments": named if arguments is None else arguments}


def say(text):
    return {"say": text}


def think(text):
    return {"think": text}


# What the tools said, and all that the model was sent.
RESULTS = say("$results")
SHOW = {"show": True}


def kinds(items):
    return [item.type for item in items]


def shown(text):
    """The messages that the model was sent, as it says itself."""
    return json.loads(text)["messages"]
