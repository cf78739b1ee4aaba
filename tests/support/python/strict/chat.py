# SPDX-License-Identifier: Apache-2.0
"""OpenAI's chat completions and embeddings, as strict as theirs."""
import base64
import json
import struct

from common import GIVEN, Bad, Talk, data_url, ident, pieces, text_of, tokens, written

KEYS = {"model": str, "messages": list, "stream": bool, "stream_options": dict, "max_tokens": int, "max_completion_tokens": int,
        "n": int, "temperature": (int, float), "top_p": (int, float), "stop": (str, list), "seed": int,
        "frequency_penalty": (int, float), "presence_penalty": (int, float), "logit_bias": dict, "logprobs": bool,
        "top_logprobs": int, "response_format": dict, "tools": list, "tool_choice": (str, dict), "parallel_tool_calls": bool,
        "reasoning_effort": str, "verbosity": str, "service_tier": str, "metadata": dict, "user": str, "store": bool,
        "safety_identifier": str, "prompt_cache_key": str, "prompt_cache_retention": str}
MESSAGE = {"system": ("content", "name"), "developer": ("content", "name"), "user": ("content", "name"),
           "assistant": ("content", "name", "refusal", "tool_calls", "audio", "annotations"), "tool": ("content", "tool_call_id", "name")}
PARTS = {"user": ("text", "image_url", "input_audio", "file"), "assistant": ("text", "refusal")}


def error(status, message, param=None, code=None):
    kind = {401: "invalid_request_error", 429: "requests", 500: "server_error", 503: "server_error"}.get(
        status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def has_key(headers, key):
    return headers.get("Authorization") == f"Bearer {key}" and "X-Api-Key" not in headers


def check_message(m, where):
    role = m.get("role")
    if role not in MESSAGE:
        raise Bad(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
                  param=f"{where}.role")
    for key in m:
        if key not in ("role", *MESSAGE[role]):
            raise Bad(f"Unrecognized request argument supplied: {key}", param=where)
    if m.get("content") is None and not (role == "assistant" and m.get("tool_calls")):
        raise Bad("Invalid value for 'content': expected a string, got null.", param=f"{where}.content")
    for part in m["content"] if isinstance(m.get("content"), list) else []:
        if part.get("type") not in PARTS.get(role, ("text",)):
            raise Bad(f"Invalid value: '{part.get('type')}'.", param=f"{where}.content")
    for call in m.get("tool_calls") or []:
        if set(call) - {"id", "type", "function", "index"} or call.get("type") != "function":
            raise Bad("Missing or unknown parameter in tool_calls", param=f"{where}.tool_calls")
        try:
            args = json.loads(call["function"]["arguments"])
        except ValueError:
            raise Bad("Invalid 'tool_calls' arguments: not JSON", param=f"{where}.tool_calls") from None
        GIVEN.check_call(call["id"], call["function"]["name"], args, where)


def check_turns(messages):
    calls = []
    for i, m in enumerate(messages):
        check_message(m, f"messages.[{i}]")
        if m["role"] == "tool":
            if m.get("tool_call_id") not in calls:
                raise Bad("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
                          param=f"messages.[{i}].role")
            calls.remove(m["tool_call_id"])
            continue
        if calls:
            break
        calls = [c["id"] for c in m.get("tool_calls") or []]
    if calls:
        raise Bad("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
                  f"following tool_call_ids did not have response messages: {', '.join(calls)}", param="messages")


def read(body):
    for key, value in body.items():
        if key not in KEYS:
            raise Bad(f"Unrecognized request argument supplied: {key}")
        if value is not None and not isinstance(value, KEYS[key]):
            raise Bad(f"Invalid type for '{key}'.", param=key)
    for key in ("model", "messages"):
        if not body.get(key):
            raise Bad(f"Missing required parameter: '{key}'.", param=key)
    if body.get("stream_options") and not body.get("stream"):
        raise Bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options")
    check_turns(body["messages"])
    wanted = body.get("response_format") or {}
    t = Talk(body["model"], bool(body.get("stream")))
    t.schema = (wanted.get("json_schema") or {}).get("schema") or ({} if wanted.get("type") == "json_object" else None)
    t.tools = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in body.get("tools") or []}
    for m in body["messages"]:
        if m["role"] == "tool":
            t.results.append((m["tool_call_id"], text_of(m["content"])))
        if m["role"] == "user":
            t.words = text_of(m["content"])
            t.pictures += [data_url(p["image_url"]["url"]) for p in m["content"] if p["type"] == "image_url"] if isinstance(
                m["content"], list) else []
    return t


def say(h, talk, turn, n_input):
    calls = [{"id": GIVEN.call(ident("call_", 24), name, args, turn.step), "type": "function",
              "function": {"name": name, "arguments": written(args)}} for name, args in turn.calls]
    made = tokens(turn.text + json.dumps(calls, ensure_ascii=False)) + 1
    usage = {"prompt_tokens": n_input, "completion_tokens": made, "total_tokens": n_input + made,
             "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}
    top = {"id": ident("chatcmpl-", 29), "created": 1790000000, "model": talk.model, "system_fingerprint": ident("fp_", 10)}
    reason = "tool_calls" if calls else "stop"
    if not talk.is_stream:
        message = {"role": "assistant", "content": turn.text or None, "refusal": None, "annotations": [],
                   **({"tool_calls": calls} if calls else {})}
        h.reply(200, {**top, "object": "chat.completion", "usage": usage, "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}]})
        return
    h.begin_stream()
    wants_usage = (h.body.get("stream_options") or {}).get("include_usage")

    def piece(delta, finish=None):
        h.event({**top, "object": "chat.completion.chunk", **({"usage": None} if wants_usage else {}), "choices": [
            {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})
    piece({"role": "assistant", "content": "" if turn.text or not calls else None, "refusal": None})
    if turn.is_endless:
        h.for_ever(lambda: piece({"content": "on "}))
    for part in pieces(turn.text):
        piece({"content": part})
    for i, call in enumerate(calls):
        piece({"tool_calls": [{"index": i, **call, "function": {**call["function"], "arguments": ""}}]})
        for part in pieces(call["function"]["arguments"]):
            piece({"tool_calls": [{"index": i, "function": {"arguments": part}}]})
    piece({}, reason)
    if wants_usage:
        h.event({**top, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    h.chunk(b"data: [DONE]\n\n")
    h.chunk(b"")


def embed(h, body):
    for key in body:
        if key not in ("model", "input", "encoding_format", "dimensions", "user"):
            raise Bad(f"Unrecognized request argument supplied: {key}")
    texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
    if not texts or not all(isinstance(t, str) and t for t in texts):
        raise Bad("'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.")
    vector = [0.5, -1.0, 0.25]
    if body.get("encoding_format") == "base64":
        vector = base64.b64encode(struct.pack("<3f", *vector)).decode()
    n = sum(map(tokens, texts))
    h.reply(200, {"object": "list", "model": body["model"], "usage": {"prompt_tokens": n, "total_tokens": n},
                  "data": [{"object": "embedding", "index": i, "embedding": vector} for i in range(len(texts))]})
