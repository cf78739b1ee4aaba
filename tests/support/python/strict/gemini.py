# SPDX-License-Identifier: Apache-2.0
"""Gemini's API: ../provider_gemini.py checks and writes it; here a call that comes back must be as it was given out."""
import json

import provider_gemini as api
from common import GIVEN, Bad, Talk, pieces, tokens


SIGNED = {}  # of a call: its id


def read(body, model, is_stream):
    api.check(body, api.REQUEST)
    api.check_turns(body["contents"])
    config = body.get("generationConfig") or {}
    t = Talk(model, is_stream, schema=config.get("responseJsonSchema") or config.get("responseSchema"))
    if t.schema is None and config.get("responseMimeType") == "application/json":
        t.schema = {}
    t.thinks = bool((config.get("thinkingConfig") or {}).get("includeThoughts"))
    for tool in body.get("tools") or []:
        for f in tool.get("functionDeclarations") or []:
            t.tools[f["name"]] = f.get("parametersJsonSchema") or f.get("parameters") or {}
    called = []  # in the turn before
    for i, content in enumerate(body["contents"]):
        parts = content["parts"]
        said = [p["functionResponse"] for p in parts if "functionResponse" in p]
        t.results += [(ident, text_of(one["response"])) for ident, one in zip(called, said)]
        called = []
        for part in parts:
            if call := part.get("functionCall"):
                # older clients leave the id out; the signature is the same call's
                called.append(SIGNED.get(part["thoughtSignature"]))
                if called[-1] is None or api.given(call.get("id", called[-1])) != called[-1]:
                    raise Bad(f"contents[{i}]: the signature is not of this call")
                GIVEN.check_call(called[-1], call["name"], call.get("args", {}), f"contents[{i}]")
            if blob := part.get("inlineData"):
                t.pictures.append((blob["mimeType"], blob["data"]))
        texts = [p["text"] for p in parts if p.get("text") and not p.get("thought")]
        if content.get("role", "user") == "user" and texts:
            t.words = "\n".join(texts)
    return t


def text_of(response):
    said = response.get("output", response.get("result", response))
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def parts_of(talk, turn):
    if talk.thinks:
        yield {"text": f"Step {turn.step}: thinking it over.", "thought": True}
    # Where words stand beside a call, Gemini CLI shows its second model the call before there is a response: Google refuses that,
    # and the agent goes on without its word. Calls alone it leaves out, as its models mostly make them.
    if turn.text and not (turn.is_task and turn.calls):
        yield {"text": turn.text}
    for name, args in turn.calls:
        part = api.call_of({"functionDeclarations": [{"name": name}]})
        part["functionCall"]["args"] = args
        SIGNED[part["thoughtSignature"]] = GIVEN.call(part["functionCall"]["id"], name, args, turn.step)
        yield part


def say(h, talk, turn, n_input):
    parts = list(parts_of(talk, turn))
    made = sum(tokens(json.dumps({**p, "thoughtSignature": ""}, ensure_ascii=False)) for p in parts) + 1
    thoughts = sum(tokens(p["text"]) for p in parts if p.get("thought"))
    h.bill_as(n_input, made)
    h.response_id = api.base64.urlsafe_b64encode(api.RNG.randbytes(17)).decode().rstrip("=")
    if not talk.is_stream:
        h.reply(200, api.answer(h, parts, thoughts, "STOP"))
        return
    h.begin_stream()
    if turn.is_endless:
        h.for_ever(lambda: api.event(h, api.answer(h, [{"text": "on "}], 0)))
    for part in parts:
        if "functionCall" in part:
            api.event(h, api.answer(h, [part], thoughts, "STOP" if part is parts[-1] else None))
        for text in pieces(part.get("text", "")):
            api.event(h, api.answer(h, [{**part, "text": text}], thoughts))
    # the signature of an answer without calls comes at its end, beside an empty text
    if not turn.calls:
        api.event(h, api.answer(h, [{"text": "", "thoughtSignature": api.sign()}], thoughts, "STOP"))
    h.chunk(b"")
