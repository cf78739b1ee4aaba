# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses: ../provider_apis.py checks and writes them; here a call that comes back must be as it was given out."""
import json

import provider_apis as apis
from common import GIVEN, Talk, data_url, text_of, tokens, written

PICTURES = ("input_image",)


def check_calls(items):
    for i, item in enumerate(items):
        if item.get("type") == "function_call":
            GIVEN.check_call(item["call_id"], item["name"], json.loads(item["arguments"]), f"input[{i}]")
        if item.get("type") == "custom_tool_call":
            GIVEN.check_call(item["call_id"], item["name"], item["input"], f"input[{i}]")


def tools_of(tools):
    for tool in tools or []:
        if tool["type"] == "function":
            yield tool["name"], tool.get("parameters") or {}
        if tool["type"] == "custom":
            yield tool["name"], None


def read(body):
    apis.check(body)
    items = [{"role": "user", "content": body["input"]}] if isinstance(body["input"], str) else body["input"]
    check_calls(items)
    wanted = (body.get("text") or {}).get("format") or {}
    t = Talk(body["model"], bool(body.get("stream")), schema=wanted.get("schema"), tools=dict(tools_of(body.get("tools"))))
    for item in items:
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            t.results.append((item["call_id"], text_of(item["output"])))
        if item.get("role") == "user":
            t.words = text_of(item["content"])
            t.pictures += [data_url(p["image_url"]) for p in item["content"] if p["type"] in PICTURES] if isinstance(
                item["content"], list) else []
    t.thinks = "reasoning.encrypted_content" in (body.get("include") or [])
    return t


def items_of(h, talk, turn):
    if talk.thinks:
        yield apis.reasoning(h.body)
    if turn.text:
        yield apis.message(turn.text)
    for name, args in turn.calls:
        called = GIVEN.call(apis.call_ident(), name, args, turn.step)
        if isinstance(args, str):
            yield {"id": apis.ident("ctc_"), "type": "custom_tool_call", "status": "completed", "call_id": called, "name": name,
                   "input": args}
        else:
            yield {"id": apis.ident("fc_"), "type": "function_call", "status": "completed", "call_id": called, "name": name,
                   "arguments": written(args)}


def say(h, talk, turn, n_input):
    items = list(items_of(h, talk, turn))
    made = sum(tokens(json.dumps({**i, "encrypted_content": ""}, ensure_ascii=False)) for i in items) + 1
    h.bill_as(n_input, made)
    h.response_id = apis.ident("resp_")
    if not talk.is_stream:
        h.reply(200, apis.response(h, items, "completed"))
        return
    h.begin_stream()
    events = apis.Events(h)
    for name in ("created", "in_progress"):
        events.say(name, response=apis.response(h, [], "in_progress"))
    if turn.is_endless:
        item = apis.message("")
        events.say("output_item.added", output_index=0, item={**item, "status": "in_progress", "content": []})
        events.say("content_part.added", item_id=item["id"], output_index=0, content_index=0, part=item["content"][0])
        h.for_ever(lambda: events.say("output_text.delta", item_id=item["id"], output_index=0, content_index=0, delta="on ",
                                      logprobs=[]))
    for at, item in enumerate(items):
        events.item(at, item)
    events.say("completed", response=apis.response(h, items, "completed"))
    h.chunk(b"")


def error(why):
    return why.body if isinstance(why, apis.BadRequest) else {
        "error": {"message": str(why), "type": "invalid_request_error", "param": "input", "code": None}}

