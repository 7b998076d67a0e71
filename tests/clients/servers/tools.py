"""An MCP server with a tool for each thing that a server can do to its client, built with the official library.

    python tools.py stdio
    python tools.py streamable-http PORT     both eras of the protocol, at /mcp
    python tools.py sse PORT                 the oldest transport, at /sse

`--tools N` adds N tools that do nothing, `--label NAME` is what `who` answers.
"""

import argparse
import os
import struct
import zlib

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

options = argparse.ArgumentParser()
options.add_argument("transport", choices=["stdio", "streamable-http", "sse"])
options.add_argument("port", type=int, nargs="?", default=0)
options.add_argument("--tools", type=int, default=0)
options.add_argument("--label", default="tools")
options = options.parse_args()

server = MCPServer("godex-tests", log_level="ERROR")
# What has been called, for tests that count: `calls` says it.
called: list[str] = []


def tool(**more):
    """A tool whose result is content only."""
    return server.tool(structured_output=False, **more)


@tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """The sum of two numbers."""
    called.append("add")
    return str(a + b)


@tool(annotations=ToolAnnotations(read_only_hint=True))
def who() -> str:
    """Which server this is."""
    called.append("who")
    return options.label


@tool(annotations=ToolAnnotations(read_only_hint=True))
def calls() -> str:
    """What has been called before."""
    return " ".join(called)


@tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def delete(path: str) -> str:
    """Deletes a file, or says so."""
    called.append("delete")
    return f"deleted {path}"


@tool()
def fail(message: str) -> str:
    """Fails with this message."""
    called.append("fail")
    raise ToolError(message)


@tool()
def picture() -> Image:
    """A red square."""
    called.append("picture")
    return Image(data=red_square(), format="png")


@tool()
async def progress(steps: int, seconds: float, context: Context) -> str:
    """Takes so many steps of so many seconds, and reports each."""
    called.append("progress")
    for step in range(steps):
        await context.report_progress(step, steps)
        await anyio.sleep(seconds)
    return f"{steps} steps"


@tool()
async def hang() -> str:
    """Does not end by itself."""
    called.append("hang")
    try:
        await anyio.sleep_forever()
    finally:
        called.append("hang-cancelled")
    return ""


@tool()
def die() -> str:
    """Ends the server in the middle of the call."""
    os._exit(1)


@tool()
def huge(bytes: int) -> str:
    """A result of this size."""
    called.append("huge")
    return "x" * bytes


@tool()
def header(name: str, context: Context) -> str:
    """What the request has in this header."""
    return (context.headers or {}).get(name.lower(), "nothing")


@tool()
def era(context: Context) -> str:
    """The version of the protocol that is spoken."""
    return context.protocol_version or "unknown"


@server.tool()
def weather(city: str) -> dict[str, int]:
    """Structured content."""
    called.append("weather")
    return {"degrees": len(city)}


for number in range(options.tools):
    server.tool(name=f"spare_{number}", description=f"Spare tool {number}.", structured_output=False)(lambda: "spare")


def red_square() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\xff\0\0" * 8) * 8
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


if options.transport == "stdio":
    server.run("stdio")
else:
    server.run(options.transport, host="127.0.0.1", port=options.port)
