# SPDX-License-Identifier: Apache-2.0
"""What the strict stand-in's four dialects share: what a turn is, what was given out, and what comes back of it."""
import base64
import dataclasses
import json
import random
import string

RNG = random.Random(41)  # ids that are the same in each run
LETTERS = string.ascii_letters + string.digits
BASE58 = "".join(c for c in LETTERS if c not in "0OIl")


class Bad(Exception):
    """A request that the API does not take, in its words."""

    def __init__(self, message, status=400, **more):
        super().__init__(message)
        self.status, self.more = status, more


@dataclasses.dataclass
class Talk:
    """A request, whatever its dialect."""
    model: str
    is_stream: bool
    words: str = ""  # the last that a person wrote
    results: list = dataclasses.field(default_factory=list)  # (id, text) of every call that came back
    tools: dict = dataclasses.field(default_factory=dict)  # name: schema; None of one that takes a text
    schema: dict = None  # of the answer that is wanted
    pictures: list = dataclasses.field(default_factory=list)  # (type, base64)
    thinks: bool = False
    unexpected: tuple = None  # a call of the task, and its result, which is not what it has to be


@dataclasses.dataclass
class Turn:
    """What it says to that."""
    text: str = ""
    calls: list = dataclasses.field(default_factory=list)  # (name, arguments), arguments an object or a text
    is_endless: bool = False
    step: int = 0
    is_task: bool = False  # one of the agent's calls
    spoken: list = dataclasses.field(default_factory=list)  # what is counted


def ident(prefix, n, alphabet=LETTERS):
    return prefix + "".join(RNG.choice(alphabet) for _ in range(n))


def opaque(least=200, most=4000):
    return base64.b64encode(RNG.randbytes(RNG.randrange(least, most))).decode()


class Given:
    """What was given out: calls by their id, and texts that nobody but the provider can read."""

    def __init__(self):
        self.calls, self.signed, self.steps = {}, {}, {}

    def call(self, ident, name, args, step):
        self.calls[ident], self.steps[ident] = (name, args), step
        return ident

    def sign(self, text):
        signature = opaque()
        self.signed[signature] = text
        return signature

    def check_call(self, ident, name, args, where):
        """args: as they came back, an object or a text. Claude Code adds what its tool takes for granted."""
        if ident not in self.calls:
            raise Bad(f"{where}: the call {ident!r} is none of this conversation")
        if isinstance(args, dict) and isinstance(self.calls[ident][1], dict):
            args = {k: v for k, v in args.items() if k in self.calls[ident][1]}
        if self.calls[ident] != (name, args):
            raise Bad(f"{where}: the call {ident!r} was {self.calls[ident]!r}, and came back as {(name, args)!r}"[:2000])

    def check_signed(self, signature, text, where, what):
        if signature not in self.signed:
            raise Bad(f"{where}: Invalid `{what}` in `thinking` block")
        if self.signed[signature] != text:
            raise Bad(f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
                      "These blocks must remain as they were in the original response.")


GIVEN = Given()


def tokens(text):
    return -(-len(text) // 4)


def pieces(text):
    """At odd places: within a name, an escape, a number."""
    at = 0
    while at < len(text):
        n = RNG.choice((1, 3, 5, 7, 11, 24))
        yield text[at:at + n]
        at += n


def text_of(content):
    if isinstance(content, list):
        return "\n".join(p["text"] for p in content if isinstance(p, dict) and p.get("text"))
    return content or ""


def data_url(url):
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise Bad("Invalid image URL. Expected a base64-encoded data URL.")
    return head[5:-7], data


def written(args):
    return args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, separators=(", ", ": "))


def instance(schema, number=7.5):
    """The least that fits it; number: every one that is no integer."""
    if not isinstance(schema, dict):
        return {}
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return "user" if "user" in schema["enum"] else schema["enum"][0]
    for name in ("anyOf", "oneOf"):
        if schema.get(name):
            return instance(schema[name][0], number)
    kind = schema.get("type")
    kind = (kind[0] if isinstance(kind, list) else kind or "object").lower()
    if kind == "object":
        return {k: instance(v, number) for k, v in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema["items"], number)] if schema.get("minItems") else []
    return {"string": "Trier", "integer": 7, "number": number, "boolean": True}.get(kind)
