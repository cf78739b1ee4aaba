# SPDX-License-Identifier: Apache-2.0
"""The stand-in's further APIs (provider.py): OpenAI's Responses and embeddings, Anthropic's count of tokens. As strict as
they are: what is unknown, of another type or in the wrong place is a 400 in their words; ids are as long as theirs; an
encrypted content that comes back must be one that was given out, byte for byte; a call and its
output belong together. Nothing is stored, so an item that is only named is a 404, as there with store: false."""
import base64
import random
import re

RNG = random.Random(17)  # ids that are the same in each run
ENCRYPTED = set()
CALL_ID = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")

REQUEST = {
    "model": str, "input": (str, list), "instructions": str, "stream": bool, "stream_options": dict,
    "max_output_tokens": int, "max_tool_calls": int, "temperature": (int, float), "top_p": (int, float),
    "top_logprobs": int, "text": dict, "reasoning": dict, "include": list, "tools": list, "tool_choice": (str, dict),
    "parallel_tool_calls": bool, "truncation": str, "service_tier": str, "metadata": dict, "user": str,
    "safety_identifier": str, "prompt_cache_key": str, "prompt_cache_retention": str, "store": bool,
    "background": bool, "previous_response_id": str, "conversation": (str, dict), "client_metadata": dict}
PARTS = {"user": ("input_text", "input_image", "input_file"), "system": ("input_text",), "developer": ("input_text",),
         "assistant": ("output_text", "refusal")}
PREFIX = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}
TOOLS = {"function": ("name", "parameters"), "custom": ("name",)}


class BadRequest(Exception):
    def __init__(self, message, param=None, code=None, status=400):
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def ident(prefix):
    return prefix + f"{RNG.getrandbits(192):048x}"


def call_ident():
    """Letters and digits at random, as theirs."""
    return "call_" + "".join(RNG.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") for _ in range(24))


def encrypt():
    """Random bytes, as to everybody but the provider; base64 as theirs."""
    text = base64.urlsafe_b64encode(RNG.randbytes(900)).decode()
    ENCRYPTED.add(text)
    return text


# ---- what a request must be ----

def check(body):
    for key, value in body.items():
        if key not in REQUEST:
            raise BadRequest(f"Unknown parameter: '{key}'.", key, "unknown_parameter")
        if value is not None and not isinstance(value, REQUEST[key]):
            raise BadRequest(f"Invalid type for '{key}'.", key, "invalid_type")
    for key in ("model", "input"):
        if not body.get(key):
            raise BadRequest(f"Missing required parameter: '{key}'.", key, "missing_required_parameter")
    if (body.get("max_output_tokens") or 16) < 16:
        raise BadRequest("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.",
                         "max_output_tokens", "integer_below_min_value")
    for i, tool in enumerate(body.get("tools") or []):
        for key in TOOLS.get(tool.get("type"), ("type",)):
            if key not in tool:
                raise BadRequest(f"Missing required parameter: 'tools[{i}].{key}'.", f"tools[{i}].{key}",
                                 "missing_required_parameter")
    if isinstance(body["input"], list):
        check_items(body["input"])


def check_items(items):
    calls, outputs = set(), set()
    for i, item in enumerate(items):
        where, kind = f"input[{i}]", item.get("type", "message")
        if kind == "item_reference" or ("type" not in item and "role" not in item):
            raise BadRequest(f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to "
                             "false.", "input", None, 404)
        if item.get("id") and not item["id"].startswith(PREFIX.get(kind, "")):
            raise BadRequest(f"Invalid '{where}.id': '{item['id']}'. Expected an ID that begins with "
                             f"'{PREFIX[kind][:-1]}'.", f"{where}.id", "invalid_value")
        if "call_id" in item and not CALL_ID.match(item["call_id"]):
            raise BadRequest(f"Invalid '{where}.call_id'.", f"{where}.call_id", "invalid_value")
        if kind == "message":
            check_message(item, where)
        elif kind == "reasoning":
            if item.get("encrypted_content") not in ENCRYPTED:
                raise BadRequest("The encrypted content could not be verified. Reason: Encrypted content could not be "
                                 "decrypted or parsed.", f"{where}.encrypted_content", "invalid_encrypted_content")
        elif kind in ("function_call", "custom_tool_call"):
            calls.add(item["call_id"])
        elif kind in ("function_call_output", "custom_tool_call_output"):
            if item["call_id"] not in calls:
                raise BadRequest(f"No tool call found for function call output with call_id {item['call_id']}.", "input")
            outputs.add(item["call_id"])
        else:
            raise BadRequest(f"Invalid value: '{kind}'.", f"{where}.type", "invalid_value")
    if calls - outputs:
        raise BadRequest(f"No tool output found for function call {sorted(calls - outputs)[0]}.", "input")


def check_message(item, where):
    for k, part in enumerate(item["content"] if isinstance(item["content"], list) else []):
        kinds = PARTS.get(item["role"], ())
        if part.get("type") not in kinds:
            raise BadRequest(f"Invalid value: '{part.get('type')}'. Supported values are: {kinds}.",
                             f"{where}.content[{k}]", "invalid_value")


# ---- what it says ----

def words_of(items):
    """The last message of a person, and what the last tool said."""
    if isinstance(items, str):
        return items.split(), None
    said = None if items[-1].get("type") not in ("function_call_output", "custom_tool_call_output") else items[-1]["output"]
    for item in reversed(items):
        if item.get("role") == "user":
            content = item["content"]
            return (content if isinstance(content, str) else
                    " ".join(p.get("text", "") for p in content)).split(), said
    return [], said


def message(text):
    return {"id": ident("msg_"), "type": "message", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": text}]}


def reasoning(body):
    item = {"id": ident("rs_"), "type": "reasoning", "summary": [{"type": "summary_text", "text": "thinking it over"}]}
    if "reasoning.encrypted_content" in (body.get("include") or []):
        item["encrypted_content"] = encrypt()
    return item


def call_of(tool):
    if tool["type"] == "custom":
        return {"id": ident("ctc_"), "type": "custom_tool_call", "status": "completed", "call_id": call_ident(),
                "name": tool["name"], "input": "*** Begin Patch"}
    return {"id": ident("fc_"), "type": "function_call", "status": "completed", "call_id": call_ident(),
            "name": tool["name"], "arguments": '{"city":"Trier"}'}


def response(h, items, status):
    """The object as the API has it; of a request it says most again."""
    body, done = h.request_body, status != "in_progress"
    usage = {"input_tokens": h.bill.input, "input_tokens_details": {"cached_tokens": 0},
             "output_tokens": h.bill.output(), "output_tokens_details": {"reasoning_tokens": 0},
             "total_tokens": h.bill.input + h.bill.output()}
    return {"id": h.response_id, "object": "response", "created_at": 1, "status": status, "background": False, "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": body.get("instructions"), "max_output_tokens": body.get("max_output_tokens"), "model": h.model,
            "output": items, "parallel_tool_calls": True, "previous_response_id": None,
            "reasoning": {"effort": None, "summary": None}, "store": body.get("store", True), "temperature": 1.0,
            "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": body.get("tools") or [], "top_p": 1.0,
            "truncation": "disabled", "usage": usage if done else None, "user": None, "metadata": {}}


class Events:
    def __init__(self, h):
        self.h, self.n = h, 0

    def say(self, name, **fields):
        self.h.event({"type": "response." + name, "sequence_number": self.n, **fields}, "response." + name)
        self.n += 1

    def text(self, at, item, text, kind, field, **numbers):
        """Five letters an event, at odd places, and all of it once more."""
        where = {"item_id": item["id"], "output_index": at, **numbers}
        for i in range(0, len(text), 5):
            self.say(kind + ".delta", **where, delta=text[i:i + 5], obfuscation="x" * (i % 7))
        self.say(kind + ".done", **where, **{field: text})

    def item(self, at, item):
        empty = {"message": {"content": []}, "reasoning": {"summary": []}, "function_call": {"arguments": ""},
                 "custom_tool_call": {"input": ""}}[item["type"]]
        self.say("output_item.added", output_index=at, item={**item, "status": "in_progress", **empty})
        if item["type"] == "message":
            part, where = item["content"][0], {"item_id": item["id"], "output_index": at, "content_index": 0}
            self.say("content_part.added", **where, part={**part, "text": ""})
            self.text(at, item, part["text"], "output_text", "text", content_index=0, logprobs=[])
            self.say("content_part.done", **where, part=part)
        elif item["type"] == "reasoning":
            part, where = item["summary"][0], {"item_id": item["id"], "output_index": at, "summary_index": 0}
            self.say("reasoning_summary_part.added", **where, part={**part, "text": ""})
            self.text(at, item, part["text"], "reasoning_summary_text", "text", summary_index=0)
            self.say("reasoning_summary_part.done", **where, part=part)
        elif item["type"] == "function_call":
            self.text(at, item, item["arguments"], "function_call_arguments", "arguments")
        else:
            self.text(at, item, item["input"], "custom_tool_call_input", "input")
        self.say("output_item.done", output_index=at, item=item)


def respond(h, token, spellings):
    body = h.request_body
    check(body)
    words, said = words_of(body["input"])
    what, tools = (words[0] if words else ""), body.get("tools") or []
    if what == "busy":
        h.error(429, "slow down", Retry_After="1")
        return
    if tools and said is None:
        items = [reasoning(body), call_of(tools[0])]
        text = items[1].get("arguments") or items[1]["input"]
    else:
        text = f"the tool said {said}" if said is not None else spellings if what == "echo" else "you said: " + " ".join(words)
        is_cut = len(text) > h.bill.cap * token
        text = text[:h.bill.cap * token]
        items = [message(text)]
    h.bill.is_owed, h.bill.made, h.bill.is_done = True, -(-len(text) // token), True
    h.response_id = ident("resp_")
    status = "incomplete" if items[-1]["type"] == "message" and is_cut else "completed"
    if not body.get("stream"):
        h.reply(200, response(h, items, status))
        return
    h.begin_stream()
    events = Events(h)
    for name in ("created", "in_progress"):
        events.say(name, response=response(h, [], "in_progress"))
    for at, item in enumerate(items):
        if what == "cut" and at == len(items) - 1:
            h.close_connection = True
            h.connection.shutdown(2)
            return
        events.item(at, item)
    events.say(status, response=response(h, items, status))
    h.chunk(b"")


# ---- embeddings, a count ----

def embed(h):
    body = h.request_body
    for key in body:
        if key not in ("model", "input", "encoding_format", "dimensions", "user"):
            raise BadRequest(f"Unknown parameter: '{key}'.", key, "unknown_parameter")
    texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
    if not texts or not all(isinstance(t, str) and t for t in texts):
        raise BadRequest("'$.input' is invalid. Please check the API reference.", None, None)
    vector = [0.5, -1.0, 0.25]
    if body.get("encoding_format") == "base64":  # little-endian floats
        vector = base64.b64encode(b"\0\0\0\x3f\0\0\x80\xbf\0\0\x80\x3e").decode()
    h.bill.is_owed = h.bill.is_done = True
    h.reply(200, {"object": "list", "model": h.model,
                  "data": [{"object": "embedding", "index": i, "embedding": vector} for i in range(len(texts))],
                  "usage": {"prompt_tokens": h.bill.input, "total_tokens": h.bill.input}})


def count(h):
    for key in h.request_body:
        if key not in ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"):
            h.error(400, f"{key}: Extra inputs are not permitted")
            return
    h.reply(200, {"input_tokens": h.bill.input})
