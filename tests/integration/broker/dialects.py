# SPDX-License-Identifier: Apache-2.0
"""Runs in a job of test_dialects.sh: dialects.py refusals|answers. Speaks the APIs as their SDKs do, by the standard library
alone; each line that it prints says "ok" or "BAD"."""
import base64
import http.client
import json
import os
import sys

KEY = os.environ["LYCHGATE_BROKER_KEY"]
HOST = os.environ["LYCHGATE_BROKER"].removeprefix("http://")
EMAIL = "erika.mustermann@firma-beispiel.de"


def ask(path, body=None, **headers):
    """(status, headers, bytes)"""
    c = http.client.HTTPConnection(HOST, timeout=120)
    fields = {"Authorization": "Bearer " + KEY, **{k.replace("_", "-"): v for k, v in headers.items()}}
    c.request("POST" if body is not None else "GET", path, json.dumps(body) if body is not None else None, fields)
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, r.headers, data


def say(what, ok, detail=""):
    print("ok  " if ok else "BAD ", what, "" if ok else detail, flush=True)


def refused(what, path, body, status, code, part="", **headers):
    got, _, data = ask(path, body, **headers)
    error = json.loads(data)["error"]
    message, told = (error, error) if isinstance(error, str) else (error["message"], error["code"])
    say(what, got == status and told.startswith(code) and part in message, (got, data))


def request(text="hello there", **more):
    return {"model": "small", "input": text, **more}


def refusals():
    responses = "/v1/responses"
    for key, value in {"store": True, "previous_response_id": "resp_1", "background": True, "conversation": "conv_1",
                       "prompt": {"id": "pmpt_1"}}.items():
        refused(key, responses, request(**{key: value}), 400, "LYCH-BROKER-003", key)
    for kind in ("web_search", "file_search", "computer_use_preview", "code_interpreter", "image_generation", "mcp"):
        refused(kind, responses, request(tools=[{"type": kind}]), 400, "LYCH-BROKER-003", kind)
    refused("a stored item", responses, request([{"type": "item_reference", "id": "rs_1"}]), 400, "LYCH-BROKER-003")
    refused("a picture elsewhere", responses, request([{"role": "user", "content": [
        {"type": "input_image", "image_url": "https://x.example/"}]}]), 400, "LYCH-BROKER-003", "image_url")
    refused("a key of another API", responses, request(max_tokens=9), 400, "LYCH-BROKER-002", "max_tokens")
    refused("what its portal lacks", responses, request(model="lean"), 400, "LYCH-BROKER-009",
            "'plain' offers 'lean' without responses; it has: chat, embeddings")
    refused("what its kind lacks", responses, request(model="little"), 400, "LYCH-BROKER-009", "it has: messages, count_tokens")
    refused("a portal that the ward denies", responses, request(model="costly"), 400, "LYCH-WARD-")
    refused("a model that nobody has", responses, request(model="none"), 404, "LYCH-BROKER-004")
    refused("tokens instead of text", "/v1/embeddings", request([[1, 2, 3]]), 400, "LYCH-BROKER-002", "gate")
    refused("an answer from a count", "/v1/messages/count_tokens", {
        "model": "little", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}, 400, "LYCH-BROKER-002")
    coded = base64.b64encode(KEY.encode()).decode()
    refused("its own key, encoded", responses, request(instructions="the key is " + coded), 400, "LYCH-GATE-001")
    refused("the same, to be embedded", "/v1/embeddings", request(["a", coded]), 400, "LYCH-GATE-001")
    refused("completions", "/v1/completions", {"model": "small", "prompt": "x"}, 400, "LYCH-BROKER-009", "/v1/chat/completions")
    refused("Ollama's API", "/api/chat", {"model": "small"}, 400, "LYCH-BROKER-009", "Ollama")
    refused("a WebSocket", responses, None, 426, "LYCH-HTTP-010", "POST", Upgrade="websocket", Connection="Upgrade")
    refused("a model that is not there", "/v1/models/none", None, 404, "LYCH-BROKER-004")
    refused("a model of a portal that the ward denies", "/v1/models/costly", None, 404, "LYCH-BROKER-004")


# ---- what is allowed ----

def response(what, body, path="/v1/responses"):
    status, _, data = ask(path, body)
    if status != 200:
        say(what, False, (status, data))
        return {"output": []}
    return json.loads(data)


def text_of(r):
    return "".join(p["text"] for i in r["output"] if i["type"] == "message" for p in i["content"])


def events(body):
    """The events of a stream, each under the name that its head says."""
    status, headers, data = ask("/v1/responses", {**body, "stream": True})
    assert status == 200 and headers["Content-Type"].startswith("text/event-stream"), (status, data)
    out = []
    for block in data.decode().split("\n\n")[:-1]:
        head, _, line = block.partition("\n")
        event = json.loads(line.removeprefix("data: "))
        assert head == "event: " + event["type"], block
        out.append(event)
    return out


def deltas(stream, kind="output_text"):
    return "".join(e["delta"] for e in stream if e["type"] == f"response.{kind}.delta")


MESSAGE = ["created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
           "content_part.done", "output_item.done", "completed"]
CALL = ["created", "in_progress", "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done", "output_item.added",
        "function_call_arguments.delta", "function_call_arguments.done", "output_item.done", "completed"]


def order(stream):
    """Their names, each once where the same one comes again."""
    names = [e["type"].removeprefix("response.") for e in stream]
    return [n for i, n in enumerate(names) if i == 0 or names[i - 1] != n]


def turns(stream):
    """A tool that is called twice: reasoning and calls go back as they came."""
    tools = [{"type": "function", "name": "weather", "strict": True, "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}}}]
    more = {"tools": tools, "include": ["reasoning.encrypted_content"], "store": False}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "what is the weather?"}]}]
    if stream:
        got = events(request(items, **more))
        say("the order of a call's events", order(got) == CALL, order(got))
        say("its arguments", json.loads(deltas(got, "function_call_arguments")) == {"city": "Trier"})
        output = [e["item"] for e in got if e["type"] == "response.output_item.done"]
        say("what is done is what the end says", output == got[-1]["response"]["output"])
    else:
        output = response("a call", request(items, **more))["output"]
    say("reasoning and a call", [i["type"] for i in output] == ["reasoning", "function_call"], output)
    items += output + [{"type": "function_call_output", "call_id": output[1]["call_id"], "output": "rain"}]
    say("the provider takes back what it gave", text_of(response("back", request(items, **more))) == "the tool said rain")
    items[1] = {**output[0], "encrypted_content": output[0]["encrypted_content"][:-4] + "AAAA"}
    status, _, data = ask("/v1/responses", request(items, **more))
    # where the gate lets pass what nobody gave out
    say("and would have seen a change", status == 400 and (b"invalid_encrypted_content" in data or b"LYCH-GATE-" in data),
        (status, data))


def answers():
    r = response("an answer", request())
    say("an answer", text_of(r) == "you said: hello there" and r["status"] == "completed", r)
    say("without a version", text_of(response("alias", request(), "/responses")) == "you said: hello there")
    r = response("a short one", request("word " * 50, max_output_tokens=16))
    say("a short one", r["status"] == "incomplete" and r["usage"]["output_tokens"] == 16, r)
    got = events(request("a stream, please"))
    say("the order of a stream", order(got) == MESSAGE, order(got))
    say("its numbers", [e["sequence_number"] for e in got] == list(range(len(got))))
    say("its text", deltas(got) == "you said: a stream, please" == text_of(got[-1]["response"]), got)
    for stream in (False, True):
        turns(stream)
    custom = [{"type": "custom", "name": "patch", "format": {"type": "text"}}]
    got = events(request("patch it", tools=custom))
    say("a custom tool", deltas(got, "custom_tool_call_input") == "*** Begin Patch", got)
    # what is private stays here, and comes back
    text = f"write to {EMAIL} today"
    got = events(request(text, instructions=f"you are {EMAIL}"))
    say("the address comes back", deltas(got) == "you said: " + text == text_of(got[-1]["response"]), deltas(got))
    # the provider spells out the key that it was given
    for told in (text_of(response("an echo", request("echo"))), deltas(events(request("echo")))):
        say("an echo of the key", told.count("[redacted]") >= 4, told)
        print("echo", told)
    status, headers, data = ask("/v1/responses", request("busy"))
    say("a 429 is the provider's", status == 429 and headers["Retry-After"] == "1" and b"slow down" in data, (status, data))

    status, _, data = ask("/v1/embeddings", request(["a", f"to {EMAIL}"]))
    say("embeddings", status == 200 and [d["embedding"] for d in json.loads(data)["data"]] == [[0.5, -1.0, 0.25]] * 2, data)
    status, _, data = ask("/embeddings", request("a", encoding_format="base64"))
    say("embeddings in base64", status == 200 and json.loads(data)["data"][0]["embedding"] == "AAAAPwAAgL8AAIA+", data)
    anthropic = {"anthropic_version": "2023-06-01", "X_Api_Key": KEY}
    status, _, data = ask("/v1/messages/count_tokens", {"model": "little", "system": "s", "messages": [
        {"role": "user", "content": "hello"}]}, **anthropic)
    say("a count of tokens", status == 200 and list(json.loads(data)) == ["input_tokens"], data)
    status, _, data = ask("/v1/models/small")
    say("one model", status == 200 and json.loads(data) == {"id": "small", "object": "model", "created": 0, "owned_by": "open"},
        data)
    status, _, data = ask("/v1/models/little", **anthropic)
    say("one of Anthropic's", status == 200 and json.loads(data)["type"] == "model", data)
    status, _, data = ask("/v1/models?client_version=0.169.0")
    say("models", status == 200 and [m["id"] for m in json.loads(data)["data"]] == ["small", "lean"], data)


{"refusals": refusals, "answers": answers}[sys.argv[1]]()
print("end")
