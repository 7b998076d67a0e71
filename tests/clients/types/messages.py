"""What godex sends to Messages APIs, against the types of Anthropic's SDKs, and what it reads in the goldens.

messages.py STREAMS GOLDENS LITERALS

STREAMS is a folder where a test of the kernel has written what it sends for any requests (messages.jsonl), GOLDENS the
folder of the goldens: what is sent in those of providers that speak this API, and what they answer. Python's types are
checked here, strictly. For Node's types what is sent is written to the file LITERALS as TypeScript, one per shape, for
the compiler to check. That the checks can fail is tried each time (refused.py).

Servers of others that speak this API are sent nothing that these types do not have.
"""

import json
import pathlib
import re
import sys
import typing

from anthropic.types import Message, RawMessageStreamEvent, message_create_params
from anthropic.types.anthropic_beta_param import AnthropicBetaParam
from anthropic.types.beta import message_create_params as beta_message_create_params
from anthropic.types.shared import ErrorResponse
from refused import BAD_EVENTS, GOOD, requests
from shapes import shape
from strict import dictionary, members, problems

STREAMS, GOLDENS, LITERALS = map(pathlib.Path, sys.argv[1:])

# The version of the API that these types describe. All others, the older one among them, have these members, too.
NEWEST = "2026-10-21"
OLDER = {"temperature": (float, "number"), "top_p": (float, "number")}
# Hosts that have the model in the path, and in the body a version of their own.
HOSTS = {"vertex-anthropic": "vertex-2023-10-16"}

BETAS = {word for each in typing.get_args(AnthropicBetaParam) for word in typing.get_args(each)}
EVENTS = {
    typing.get_args(model.model_fields["type"].annotation)[0]: model
    for model in typing.get_args(typing.get_args(RawMessageStreamEvent)[0])
}
# Text of any content, and what is none of the API's business.
FREE = {
    "data", "description", "encrypted_content", "id", "input", "input_schema", "model", "name", "schema", "signature",
    "stop_sequences", "text", "thinking", "title", "tool_use_id", "url", "user_id",
}  # fmt: skip
PAGE = re.compile(r"^=== (\w+)(.*)\n((?:(?!=== ).*\n?)*)", re.M)
SENT = re.compile(r"POST \S+(?:/v1/messages|:streamRawPredict)\n((?:\S+: .*\n)*)([\s\S]*)")


class Rules:
    """The types of a request, by what is known of it before its body is read: Python's, and the name of Node's."""

    made = {}

    def __init__(self, spec, headers, stream, trial):
        older, host = headers.get("anthropic-version") != NEWEST, HOSTS.get(spec)
        name = f"MessageCreateParams{'Streaming' if stream else 'NonStreaming'}"
        # Trials are told in a header.
        self.node = f'Omit<Anthropic.Beta.Messages.{name}, "betas">' if trial else f"Anthropic.Messages.{name}"
        if host:
            self.node = f'Omit<{self.node}, "model"> & {{ anthropic_version: "{host}" }}'
        if older:
            self.node += f" & {{ {'; '.join(f'{member}?: {node}' for member, (_, node) in OLDER.items())} }}"
        if self.node not in self.made:
            of = dict(members(getattr(beta_message_create_params if trial else message_create_params, name)))
            of.pop("betas", None)
            if host:
                del of["model"]
                of["anthropic_version"] = typing.Required[typing.Literal[host]]
            if older:
                of |= {member: python for member, (python, _) in OLDER.items()}
            self.made[self.node] = dictionary(name, of)
        self.python = self.made[self.node]


def refused(spec, headers, body):
    """What is wrong with a request, and by which rules. Those of trials are only for whoever says to take part."""
    betas = list(filter(None, headers.get("anthropic-beta", "").split(",")))
    rules = Rules(spec, headers, body.get("stream"), trial=False)
    found = problems(rules.python, body)
    if found and betas:
        rules = Rules(spec, headers, body.get("stream"), trial=True)
        found = problems(rules.python, body)
    return [*found, *(f"no such trial: {beta}" for beta in betas if beta not in BETAS)], rules


def event_refused(event):
    """What is wrong with an event of a stream."""
    match event.get("type"):
        # The SDKs leave it out.
        case "ping":
            return [] if event == {"type": "ping"} else ["a ping says nothing"]
        case "error":
            return problems(ErrorResponse, event)
        case kind:
            return problems(EVENTS[kind], event) if kind in EVENTS else [f"no such event: {kind}"]


def answer_refused(head, body):
    """What is wrong with an answer, whole or as a stream."""
    status, media = head.split()
    if media == "text/event-stream":
        for name, data in re.findall(r"^event: (.*)\ndata: (.*)$", body, re.M):
            event = json.loads(data)
            yield from (f"{name} {problem}" for problem in event_refused(event))
            if event.get("type") != name:
                yield f"{name} is another event: {event.get('type')}"
    else:
        yield from problems(Message if status == "200" else ErrorResponse, json.loads(body))


def pages():
    """(spec, case, headers, body, head of the answer, answer) of each golden of this API."""
    for file in sorted(GOLDENS.glob("*/*.golden")):
        sections = {name: (head, text) for name, head, text in PAGE.findall(file.read_text())}
        sent = SENT.fullmatch(sections.get("sent", ("", ""))[1])
        if sent:
            headers = dict(line.split(": ", 1) for line in sent[1].splitlines())
            yield file.parent.name, file.stem, headers, json.loads(sent[2]), *sections["upstream"]


def made_up():
    """(spec, case, headers, body) of each request that the kernel's test has made up."""
    for line in map(json.loads, (STREAMS / "messages.jsonl").read_text().splitlines()):
        yield line["case"].split("/")[0], f"made up for {line['case']}", line["headers"], line["body"]


class Literals:
    """TypeScript: what the compiler must take, one of each shape, and what it must refuse."""

    def __init__(self):
        self.texts, self.shapes = [], set()

    def taken(self, case, rules, body):
        key = json.dumps([rules.node, shape(body, FREE)], sort_keys=True)
        if key not in self.shapes:
            self.shapes.add(key)
            self.add(f"// {case}", rules, json.dumps(body, indent=1))

    def refused(self, case, rules, body):
        # It holds for one line.
        self.add(f"// {case}\n// @ts-expect-error", rules, json.dumps(body))

    def add(self, about, rules, body):
        self.texts.append(f"{about}\nexport const v{len(self.texts)}: {rules.node} = {body};\n")

    def write(self):
        LITERALS.write_text('import type Anthropic from "@anthropic-ai/sdk";\n' + "".join(self.texts))


# What is answered beyond these types, by the page that shows that it is read all the same: how its problem begins.
BEYOND = {
    # Blocks of betas, which these types are without.
    "anthropic/other-model": "content_block_start /content_block/",
    "anthropic/thoughts-dropped": "message_start /message/input_transformations",
    # Bedrock adds it to the last event.
    "bedrock-anthropic/answer": "message_stop /amazon-bedrock-invocationMetrics",
    # Kimi's thoughts begin without the member of their signature.
    "moonshot-messages/answer": "content_block_start /content_block/",
    # GLM counts searches only.
    "zhipu-messages/answer": "message_delta /usage/server_tool_use/web_fetch_requests",
}


def answers(wrong):
    """What the goldens say that is answered; how many."""
    count, beyond = 0, dict(BEYOND)
    for count, (spec, case, _, _, head, answer) in enumerate(pages(), 1):
        case = f"{spec}/{case}"
        for problem in answer_refused(head, answer):
            if case in BEYOND and problem.startswith(BEYOND[case]):
                beyond.pop(case, None)
            else:
                wrong.setdefault(f"answered: {problem}", case)
    wrong |= {f"not beyond the types any more: {what}": case for case, what in beyond.items()}
    return count


def must_be_refused(wrong, literals):
    """Whether the check can fail; how much it has refused."""
    headers, bad = {"anthropic-version": NEWEST}, list(requests())
    found, rules = refused("anthropic", headers, GOOD)
    wrong |= {f"refused: {problem}": "GOOD" for problem in found}
    literals.taken("GOOD", rules, GOOD)
    for case, body in bad:
        if not refused("anthropic", headers, body)[0]:
            wrong[f"taken: {case}"] = "BAD"
        literals.refused(case, rules, body)
    for event in BAD_EVENTS:
        if not event_refused(event):
            wrong[f"taken: {json.dumps(event)}"] = "BAD_EVENTS"
    return len(bad) + len(BAD_EVENTS)


def main():
    wrong, literals = {}, Literals()
    goldens = [(spec, f"{spec}/{case}", headers, body) for spec, case, headers, body, *_ in pages()]
    more = list(made_up())
    for spec, case, headers, body in goldens + more:
        found, rules = refused(spec, headers, body)
        for problem in found:
            wrong.setdefault(f"sent: {problem}", f"{case}: {json.dumps(body)}")
        literals.taken(case, rules, body)
    answered, bad = answers(wrong), must_be_refused(wrong, literals)
    literals.write()
    for problem, case in sorted(wrong.items()):
        print(f"{problem} ({case})")
    what = f"{len(goldens)} requests of goldens, {len(more)} made up, {answered} answers, {bad} refused"
    print(f"Messages: {what}; {len(literals.shapes)} shapes for Node")
    return 1 if wrong else 0


sys.exit(main())
