"""What godex sends, against the types of the official SDKs: every event of every golden, and every response object.

check.py STREAMS TOLERATED LITERALS

STREAMS is a folder that the goldens wrote: their streams (*.sse), their objects (*.json), and the names of all events
(events.txt). Python's types are checked here, strictly: no conversion, no member that they do not have. For Node's
types the same values are written to the file LITERALS as TypeScript, one per shape, for the compiler to check.
"""

import json
import pathlib
import sys
import typing

from openai.types.responses import Response, ResponseStreamEvent
from shapes import shape
from strict import problems

STREAMS, TOLERATED, LITERALS = map(pathlib.Path, sys.argv[1:])
LIST = json.loads(TOLERATED.read_text())
MODELS = {
    typing.get_args(model.model_fields["type"].annotation)[0]: model
    for model in typing.get_args(typing.get_args(ResponseStreamEvent)[0])
}
# Text of any content: two values that differ only in these have one shape.
FREE = {"arguments", "call_id", "delta", "id", "input", "item_id", "message", "model", "name", "refusal", "text"}


def fits(entry, value):
    value = value.get("type", value) if isinstance(value, dict) else value
    if "values" in entry:
        return value in entry["values"]
    return value not in entry.get("except", [])


def apply(entry, steps, value):
    """Changes the value; False where the whole is not to be checked."""
    step, *rest = steps
    if step == "*":
        if isinstance(value, list):
            if not rest and entry.get("remove"):
                value[:] = [element for element in value if not fits(entry, element)]
            for element in value if rest else []:
                apply(entry, rest, element)
    elif isinstance(value, dict):
        if rest:
            return apply(entry, rest, value.get(step))
        if "of" in entry and value.get("type") not in entry["of"]:
            return True
        if step not in value:
            if "add" in entry:
                value[step] = entry["add"]
        elif fits(entry, value[step]):
            if entry.get("skip"):
                return False
            if entry.get("remove"):
                del value[step]
            elif "as" in entry:
                value[step] = entry["as"]
    return True


def tolerated(by, value):
    """A copy as `by` is to check it; None where it cannot be said there."""
    value = json.loads(json.dumps(value))
    for entry in LIST["tolerated"]:
        if by not in entry["by"]:
            continue
        if any(value.get("type", "").startswith(prefix) for prefix in entry.get("event", [])):
            return None
        if "at" in entry:
            steps = entry["at"].split("/")[1:]
            # In an event nothing is added but in the response that it carries, or in what the entry names.
            if not ("add" in entry and "of" not in entry and "type" in value) and not apply(entry, steps, value):
                return None
            if isinstance(value.get("response"), dict):
                apply(entry, steps, value["response"])
    return value


def python(model, value):
    """What is wrong with a value by Python's types."""
    value = tolerated("python", value)
    return [] if value is None else problems(model, value)


def values():
    """(where it is from, type of the event or None, value)"""
    for file in sorted(STREAMS.glob("*.sse")):
        for line in file.read_text().split("\n"):
            if line.startswith("data: ") and line != "data: [DONE]":
                event = json.loads(line.removeprefix("data: "))
                yield file.stem, event["type"], event
    for file in sorted(STREAMS.glob("*.json")):
        yield file.stem, None, json.loads(file.read_text())


def main():
    wrong, literals, shapes, seen, count = {}, [], set(), set(), 0
    for case, kind, value in values():
        count += 1
        seen.add(kind)
        model = MODELS.get(kind) if kind else Response
        found = python(model, value) if model else ["the Python SDK has no such event"]
        for problem in found:
            wrong.setdefault(f"{kind or 'response'} {problem}", case)
        literal = tolerated("node", value)
        key = literal and json.dumps([kind, shape(literal, FREE)], sort_keys=True)
        if literal and key not in shapes:
            shapes.add(key)
            of = f'Extract<ResponseStreamEvent, {{ type: "{kind}" }}>' if kind else "Response"
            literals.append(f"// {case}\nexport const v{len(literals)}: {of} =\n  {json.dumps(literal, indent=1)};\n")
    head = 'import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses";\n'
    LITERALS.write_text(head + "".join(literals))

    names = set((STREAMS / "events.txt").read_text().split())
    never = LIST["never_sent"]
    for name in sorted(names - seen - set(never)):
        wrong[f"{name}: no golden has this event"] = "tests/golden"
    for name in sorted(set(never) & seen):
        wrong[f"{name}: is sent after all"] = "tests/tolerated.json"
    for name in sorted(set(never) - names):
        wrong[f"{name}: there is no such event"] = "tests/tolerated.json"
    for problem, case in sorted(wrong.items()):
        print(f"{problem} ({case})")
    print(f"{count} values of {len(seen - {None})} kinds of events and the response; {len(literals)} shapes for Node")
    return 1 if wrong else 0


sys.exit(main())
