# SPDX-License-Identifier: Apache-2.0
"""Run by test_strict.sh: an honest client ends a talk of eight calls in each dialect, and is refused for each change of it."""
import copy
import http.client
import json
import os
import subprocess
import sys
import tempfile

KEY = "sk-stand-in-0123456789abcdefghij"
N = 8
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "string"}}}
checks = 0


def want(what, ok, detail=""):
    global checks
    if not ok:
        sys.exit(f"FAIL {what}: {detail}")
    checks += 1


class Chat:
    path, headers = "/v1/chat/completions", {"Authorization": f"Bearer {KEY}"}

    def __init__(self):
        self.body = {"model": "m", "messages": [{"role": "user", "content": f"turns {N}"}],
                     "tools": [{"type": "function", "function": {"name": "step", "parameters": SCHEMA}}]}

    def take(self, said):
        message = said["choices"][0]["message"]
        self.body["messages"].append({k: message[k] for k in ("role", "content", "tool_calls") if k in message})
        for call in message.get("tool_calls", []):
            self.body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content":
                                          f"step {json.loads(call['function']['arguments'])['n']} is done"})
        return not message.get("tool_calls")

    changes = {
        "another id": lambda b: b["messages"][1]["tool_calls"][0].update(id="call_" + "x" * 24),
        "another id on both sides": lambda b: (b["messages"][1]["tool_calls"][0].update(id="call_x"),
                                               b["messages"][2].update(tool_call_id="call_x")),
        "other arguments": lambda b: b["messages"][1]["tool_calls"][0]["function"].update(arguments='{"n": 0, "note": "e"}'),
        "no result": lambda b: b["messages"].pop(2),
        "a result of no call": lambda b: b["messages"].append({"role": "tool", "tool_call_id": "call_y", "content": "x"}),
        "another result": lambda b: b["messages"][4].update(content="step 0 is done"),
        "an unknown key": lambda b: b.update(thinking_budget=1),
        "another role": lambda b: b["messages"][0].update(role="person"),
        "a URL of a picture": lambda b: b["messages"][0].update(content=[{"type": "image_url", "image_url": {"url": "https://x/y.png"}}])}


class Responses:
    path, headers = "/v1/responses", Chat.headers

    def __init__(self):
        self.body = {"model": "m", "input": [{"role": "user", "content": f"turns {N}"}], "store": False,
                     "include": ["reasoning.encrypted_content"],
                     "tools": [{"type": "function", "name": "step", "parameters": SCHEMA}]}

    def take(self, said):
        calls = [i for i in said["output"] if i["type"] == "function_call"]
        self.body["input"] += said["output"]
        self.body["input"] += [{"type": "function_call_output", "call_id": c["call_id"],
                                "output": f"step {json.loads(c['arguments'])['n']} is done"} for c in calls]
        return not calls

    # input: 0 what was asked; of each turn a reasoning, a text, a call, its output
    changes = {
        "another encrypted content": lambda b: b["input"][1].update(encrypted_content=b["input"][1]["encrypted_content"][:-1]),
        "another call_id": lambda b: b["input"][3].update(call_id="call_" + "x" * 24),
        "other arguments": lambda b: b["input"][3].update(arguments='{"n": 5}'),
        "no output": lambda b: b["input"].pop(4),
        "an id of another kind": lambda b: b["input"][3].update(id="rs_" + "0" * 48),
        "an item that is only named": lambda b: b["input"].insert(1, {"type": "item_reference", "id": "rs_1"}),
        "an unknown key": lambda b: b.update(messages=[])}


class Messages:
    path, headers = "/v1/messages", {"x-api-key": KEY, "anthropic-version": "2023-06-01"}

    def __init__(self):
        self.body = {"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": f"turns {N}"}],
                     "thinking": {"type": "enabled", "budget_tokens": 1024}, "tools": [{"name": "step", "input_schema": SCHEMA}]}

    def take(self, said):
        calls = [b for b in said["content"] if b["type"] == "tool_use"]
        self.body["messages"].append({"role": "assistant", "content": said["content"]})
        if calls:
            self.body["messages"].append({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": c["id"], "content": f"step {c['input']['n']} is done"} for c in calls]})
        return not calls

    # content of an answer: 0 thought, 1 text, 2 call
    changes = {
        "another signature": lambda b: b["messages"][1]["content"][0].update(signature="A" + b["messages"][1]["content"][0]["signature"]),
        "another thought": lambda b: b["messages"][1]["content"][0].update(thinking="I think not."),
        "no thought": lambda b: b["messages"][1]["content"].pop(0),
        "another redacted thought": lambda b: b["messages"][9]["content"][0].update(data="AAAA"),
        "an id with a colon": lambda b: (b["messages"][1]["content"][2].update(id="toolu:1"),
                                         b["messages"][2]["content"][0].update(tool_use_id="toolu:1")),
        "another id": lambda b: b["messages"][1]["content"][2].update(id="toolu_01" + "x" * 22),
        "another input": lambda b: b["messages"][1]["content"][2].update(input={"n": 0}),
        "no result": lambda b: b["messages"][2].update(content="go on"),
        "an empty text": lambda b: b["messages"][0].update(content=" "),
        "a key of a beta": lambda b: b.update(context_management={"edits": []}),
        "an unknown key of a block": lambda b: b["messages"][1]["content"][1].update(parsed=1),
        "a thought without room": lambda b: b.update(max_tokens=1000),
        "five caches": lambda b: b.update(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5),
        "no cap": lambda b: b.pop("max_tokens")}


def rename(contents, how):
    for part in (p for c in contents for p in c["parts"]):
        for kind in {"functionCall", "functionResponse"} & set(part):
            ident = how(part[kind].pop("id"))
            part[kind].update({"id": ident} if ident else {})


class Gemini:
    path, headers = "/v1beta/models/m:generateContent", {"x-goog-api-key": KEY}

    def __init__(self):
        self.body = {"contents": [{"role": "user", "parts": [{"text": f"turns {N}"}]}],
                     "tools": [{"functionDeclarations": [{"name": "step", "parametersJsonSchema": SCHEMA}]}]}

    def take(self, said):
        content = said["candidates"][0]["content"]
        calls = [p["functionCall"] for p in content["parts"] if "functionCall" in p]
        self.body["contents"].append(content)
        if calls:
            self.body["contents"].append({"role": "user", "parts": [{"functionResponse": {
                "id": c["id"], "name": c["name"], "response": {"output": f"step {c['args']['n']} is done"}}} for c in calls]})
        return not calls

    # parts of an answer: 0 text, 1 call
    changes = {
        "another signature": lambda b: b["contents"][1]["parts"][1].update(thoughtSignature="AAAA"),
        "no signature": lambda b: b["contents"][1]["parts"][1].pop("thoughtSignature"),
        "another id": lambda b: (b["contents"][1]["parts"][1]["functionCall"].update(id="abcdefgh"),
                                 b["contents"][2]["parts"][0]["functionResponse"].update(id="abcdefgh")),
        "other arguments": lambda b: b["contents"][1]["parts"][1]["functionCall"].update(args={"n": 7}),
        "no response": lambda b: b["contents"].pop(2),
        "an id on one side alone": lambda b: b["contents"][2]["parts"][0]["functionResponse"].update(id="abcdefgh"),
        "words before an id on one side": lambda b: rename(b["contents"][1:2], lambda i: "step__" + i),
        "another call's id": lambda b: rename(b["contents"][1:3], lambda i: b["contents"][3]["parts"][1]["functionCall"]["id"]),
        "another call's signature": lambda b: b["contents"][1]["parts"][1].update(
            thoughtSignature=b["contents"][3]["parts"][1]["thoughtSignature"]),
        "an unknown key": lambda b: b.update(system_instruction={})}
    # as Gemini CLI does, and older clients
    liberties = {"words before the ids": lambda b: rename(b["contents"], lambda i: "step__" + i),
                 "no ids": lambda b: rename(b["contents"], lambda i: None)}


class Server:
    def __init__(self, directory, *more):
        self.log = os.path.join(directory, "asked")
        open(self.log, "w").close()
        self.p = subprocess.Popen([sys.executable, "-B", "tests/support/python/strict/server.py", "--key", KEY, "--log", self.log, *more],
                                  stdout=subprocess.PIPE, text=True)
        self.port = int(self.p.stdout.readline().split()[1])

    def ask(self, path, headers, body):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
        r = c.getresponse()
        said = r.read().decode()
        c.close()
        return r.status, said if body.get("stream") else json.loads(said)


def dialect(server, kind):
    t = kind()
    status, _ = server.ask(t.path, {k: v.replace(KEY, "sk-another") for k, v in t.headers.items()}, t.body)
    want("another key is refused", status == 401, status)
    for turn in range(N + 1):
        status, said = server.ask(t.path, t.headers, t.body)
        want(f"{t.path}: turn {turn}", status == 200, said)
        before = copy.deepcopy(t.body)
        ended = t.take(said)
        want(f"{t.path}: turn {turn} of {N}", ended == (turn == N), said)
    for what, change in t.changes.items():
        body = copy.deepcopy(before)
        change(body)
        status, said = server.ask(t.path, t.headers, body)
        want(f"{t.path}: {what}", status in (400, 404) and "error" in said, (status, said))
    for what, change in getattr(t, "liberties", {}).items():
        body = copy.deepcopy(before)
        change(body)
        status, said = server.ask(t.path, t.headers, body)
        want(f"{t.path}: {what} is taken", status == 200 and f"done after {N} calls" in json.dumps(said), (status, said))
    status, said = server.ask(t.path, t.headers, before)
    want(f"{t.path}: the same again", status == 200 and f"done after {N} calls" in json.dumps(said), said)


with tempfile.TemporaryDirectory() as directory:
    server = Server(directory)
    try:
        for kind in (Chat, Responses, Messages, Gemini):
            dialect(server, kind)
        status, said = server.ask("/v1/chat/completions", Chat.headers, {"model": "m", "stream": True, "messages": [
            {"role": "user", "content": "a stream"}]})
        want("a stream ends", status == 200 and said.endswith("data: [DONE]\n\n"), said)
        faults = [line for line in open(server.log) if '"fault"' in line]
        want("nothing of it is its own fault", not faults, faults)
    finally:
        server.p.kill()
        server.p.wait()
print(f"strict: {checks} checks")
