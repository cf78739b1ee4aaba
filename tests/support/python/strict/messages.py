# SPDX-License-Identifier: Apache-2.0
"""Anthropic's messages and its count of tokens, as strict as theirs: an unknown key, an id of another form, a call without
its result in the next message, a thought that was changed, an empty text, a fifth cache_control is a 400 in their words."""
import json
import re

from common import BASE58, GIVEN, RNG, Bad, Talk, ident, pieces, text_of, tokens

ID = re.compile(r"^[a-zA-Z0-9_-]+$")
KEYS = {"model": str, "messages": list, "system": (str, list), "max_tokens": int, "stream": bool, "temperature": (int, float),
        "top_p": (int, float), "top_k": int, "stop_sequences": list, "metadata": dict, "tools": list, "tool_choice": dict,
        "thinking": dict, "output_config": dict, "cache_control": dict, "service_tier": str}
COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control")
# what is a key only beside the beta of its name
BETAS = {"context_management": "context-management-2025-06-27", "output_format": "structured-outputs-2025-11-13"}
BLOCKS = {
    "text": ("text", "citations"), "image": ("source",), "document": ("source", "title", "context", "citations"),
    "tool_use": ("id", "name", "input", "caller"), "tool_result": ("tool_use_id", "content", "is_error"),
    "thinking": ("thinking", "signature"), "redacted_thinking": ("data",), "tool_reference": ("tool_name",)}
OF_ASSISTANT = ("thinking", "redacted_thinking", "tool_use")


def error(status, message):
    kind = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error",
            529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": ident("req_01", 22, BASE58)}


def has_key(headers, key):
    given = [headers.get("Authorization"), headers.get("X-Api-Key") and "Bearer " + headers["X-Api-Key"]]
    return any(given) and all(g in (None, f"Bearer {key}") for g in given)


def count_caches(value):
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(count_caches(v) for k, v in value.items() if k not in ("input", "input_schema"))
    return sum(map(count_caches, value)) if isinstance(value, list) else 0


def check_block(block, role, where):
    kind = block.get("type")
    if kind not in BLOCKS:
        raise Bad(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    for key in block:
        if key not in ("type", "cache_control", *BLOCKS[kind]):
            raise Bad(f"{where}.{kind}.{key}: Extra inputs are not permitted")
    if (kind in OF_ASSISTANT) != (role == "assistant") and kind != "text":
        raise Bad(f"{where}: `{kind}` blocks can not be in `{role}` messages")
    if kind == "text" and not block["text"].strip():
        raise Bad("messages: text content blocks must contain non-whitespace text")
    if kind == "tool_use":
        if not ID.match(block["id"]):
            raise Bad(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        GIVEN.check_call(block["id"], block["name"], block["input"], where)
    if kind == "thinking":
        GIVEN.check_signed(block["signature"], block["thinking"], where, "signature")
    if kind == "redacted_thinking":
        GIVEN.check_signed(block["data"], None, where, "data")


def merged(messages, betas):
    """Messages of one role that follow each other are one."""
    turns = []
    for i, m in enumerate(messages):
        roles = ("user", "assistant", *(["system"] if "mid-conversation-system" in betas else []))
        if set(m) != {"role", "content"} or m["role"] not in roles:
            raise Bad(f"messages.{i}: Unexpected role or keys: {m.get('role')} {sorted(m)}")
        content = [{"type": "text", "text": m["content"]}] if isinstance(m["content"], str) else m["content"]
        if not content:
            raise Bad(f"messages.{i}: all messages must have non-empty content except for the optional final assistant message")
        for k, block in enumerate(content):
            check_block(block, m["role"], f"messages.{i}.content.{k}")
        if turns and turns[-1][0] == m["role"]:
            turns[-1][1].extend(content)
        else:
            turns.append((m["role"], list(content)))
    return [t for t in turns if t[0] != "system"]


def check_turns(turns, thinks):
    calls = []
    for i, (role, content) in enumerate(turns):
        results = [b["tool_use_id"] for b in content if b["type"] == "tool_result"]
        if missing := [c for c in calls if c not in results]:
            raise Bad(f"messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. "
                      "Each `tool_use` block must have a corresponding `tool_result` block in the next message.")
        if more := [r for r in results if r not in calls]:
            raise Bad(f"messages.{i}: unexpected `tool_use_id` found in `tool_result` blocks: {more[0]}. Each `tool_result` block "
                      "must have a corresponding `tool_use` block in the previous message.")
        calls = [b["id"] for b in content if b["type"] == "tool_use"]
        if role == "assistant" and thinks and calls and "thinking" not in content[0]["type"]:
            raise Bad(f"messages.{i}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{content[0]['type']}`.")
    if calls:
        raise Bad(f"messages: `tool_use` ids were found without `tool_result` blocks immediately after: {calls[0]}.")


def read(body, headers, only_counts=False):
    betas = headers.get("anthropic-beta") or ""
    if "anthropic-version" not in headers:
        raise Bad("anthropic-version: header is required")
    for key, value in body.items():
        if key in BETAS and BETAS[key] in betas:
            continue
        if key not in KEYS or (only_counts and key not in COUNTED):
            raise Bad(f"{key}: Extra inputs are not permitted")
        if not isinstance(value, KEYS[key]):
            raise Bad(f"{key}: Input should be a valid {KEYS[key]}")
    for key in ("model", "messages", *([] if only_counts else ["max_tokens"])):
        if not body.get(key):
            raise Bad(f"{key}: Field required")
    if count_caches([body.get("system"), body.get("tools"), body["messages"]]) > 4:
        raise Bad("A maximum of 4 blocks with cache_control may be provided.")
    for block in body["system"] if isinstance(body.get("system"), list) else []:
        check_block(block, "system", "system")
    thinking = body.get("thinking") or {}
    thinks = thinking.get("type") in ("enabled", "adaptive")
    if thinking.get("type") == "enabled" and not 1024 <= thinking.get("budget_tokens", 0) < body.get("max_tokens", 1 << 30):
        raise Bad("`max_tokens` must be greater than `thinking.budget_tokens`.")
    turns = merged(body["messages"], betas)
    check_turns(turns, thinks)
    return talk_of(body, turns, thinks)


def talk_of(body, turns, thinks):
    config = body.get("output_config") or {}
    wanted = body.get("output_format") or config.get("format") or {}
    t = Talk(body["model"], bool(body.get("stream")), thinks=thinks, schema=wanted.get("schema"))
    t.tools = {tool["name"]: tool.get("input_schema", {}) for tool in body.get("tools") or []}
    for role, content in turns:
        t.results += [(b["tool_use_id"], text_of(b.get("content"))) for b in content if b["type"] == "tool_result"]
        t.pictures += [(b["source"]["media_type"], b["source"]["data"]) for b in content if b["type"] == "image"]
        said = [b["text"] for b in content if b["type"] == "text" and not b["text"].startswith("<system-reminder>")]
        if role == "user" and said:
            t.words = "\n".join(said)
    return t


# ---- what it says ----

def blocks_of(talk, turn):
    if talk.thinks:
        if turn.step % 5 == 4:
            yield {"type": "redacted_thinking", "data": GIVEN.sign(None)}
        else:
            thought = f"Step {turn.step}: what follows from “{talk.words[:20]}”? Let me see."
            yield {"type": "thinking", "thinking": thought, "signature": GIVEN.sign(thought)}
    if turn.text:
        yield {"type": "text", "text": turn.text}
    for name, args in turn.calls:
        yield {"type": "tool_use", "id": GIVEN.call(ident("toolu_01", 22, BASE58), name, args, turn.step), "name": name, "input": args}


def stream_block(h, at, block):
    kind = block["type"]
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}.get(kind, {})
    h.event({"type": "content_block_start", "index": at, "content_block": {**block, **empty}}, "content_block_start")

    def delta(**fields):
        h.event({"type": "content_block_delta", "index": at, "delta": fields}, "content_block_delta")
    if kind == "text":
        for part in pieces(block["text"]):
            delta(type="text_delta", text=part)
    elif kind == "thinking":
        for part in pieces(block["thinking"]):
            delta(type="thinking_delta", thinking=part)
        delta(type="signature_delta", signature=block["signature"])
    elif kind == "tool_use":
        delta(type="input_json_delta", partial_json="")
        for part in pieces(json.dumps(block["input"], ensure_ascii=bool(at % 2))):
            delta(type="input_json_delta", partial_json=part)
    h.event({"type": "content_block_stop", "index": at}, "content_block_stop")


def say(h, talk, turn, n_input):
    blocks = list(blocks_of(talk, turn))
    made = sum(tokens(json.dumps(b, ensure_ascii=False)) for b in blocks) + 1
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": n_input, "output_tokens": made,
             "service_tier": "standard"}
    message = {"id": ident("msg_01", 22, BASE58), "type": "message", "role": "assistant", "model": talk.model}
    reason = "tool_use" if turn.calls else "end_turn"
    if not talk.is_stream:
        h.reply(200, {**message, "content": blocks, "stop_reason": reason, "stop_sequence": None, "usage": usage})
        return
    h.begin_stream()
    h.event({"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None,
                                                  "usage": {**usage, "output_tokens": 1}}}, "message_start")
    h.event({"type": "ping"}, "ping")
    if turn.is_endless:
        h.event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, "content_block_start")
        h.for_ever(lambda: h.event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "on "}},
                                   "content_block_delta"))
    for at, block in enumerate(blocks):
        stream_block(h, at, block)
        if RNG.random() < 0.2:
            h.event({"type": "ping"}, "ping")
    h.event({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": made}},
            "message_delta")
    h.event({"type": "message_stop"}, "message_stop")
    h.chunk(b"")
