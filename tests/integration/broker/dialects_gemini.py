# SPDX-License-Identifier: Apache-2.0
"""Runs in a job of test_dialects.sh: dialects_gemini.py refusals|answers. Speaks Gemini's API as @google/genai does, by the
standard library alone; each line that it prints says "ok" or "BAD"."""
import base64
import http.client
import json
import os
import sys

KEY = os.environ["GEMINI_API_KEY"]
BASE = os.environ["GOOGLE_GEMINI_BASE_URL"]
EMAIL = "erika.mustermann@firma-beispiel.de"
TOOLS = [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": {
    "type": "object", "properties": {"city": {"type": "string"}}}}]}]


def ask(path, body=None, key=KEY):
    """(status, headers, bytes)"""
    c = http.client.HTTPConnection(BASE.removeprefix("http://"), timeout=120)
    fields = {"x-goog-api-key": key, "x-goog-api-client": "google-genai-sdk/2.28.0"} if key else {}
    c.request("POST" if body is not None else "GET", "/v1beta/models" + path,
              json.dumps(body) if body is not None else None, fields)
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, r.headers, data


def say(what, ok, detail=""):
    print("ok  " if ok else "BAD ", what, "" if ok else detail, flush=True)


def user(text="hello there", **more):
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}


def refused(what, path, body, status, code, part="", **more):
    got, _, data = ask(path, body, **more)
    error = json.loads(data)["error"]
    say(what, got == status == error["code"] and error["details"][0]["reason"].startswith(code) and
        error["message"].startswith(code) and part in error["message"], (got, data))


def refusals():
    whole = "/gem:generateContent"
    refused("no key", whole, user(), 401, "LYCH-BROKER-020", "x-goog-api-key", key=None)
    refused("a key in the URL", f"{whole}?key={KEY}", user(), 401, "LYCH-BROKER-020", "in the URL it is not taken", key=None)
    for tool in ("googleSearch", "codeExecution", "urlContext", "fileSearch"):
        refused(tool, whole, user(tools=[{tool: {}}]), 400, "LYCH-BROKER-003", tool)
    refused("a cached conversation", whole, user(cachedContent="cachedContents/x"), 400, "LYCH-BROKER-003", "cachedContent")
    refused("a file elsewhere", whole, {"contents": [{"parts": [{"fileData": {"fileUri": "https://x.example/"}}]}]}, 400,
            "LYCH-BROKER-003", "fileData")
    refused("another spelling", whole, user(system_instruction={}), 400, "LYCH-BROKER-002", "system_instruction")
    refused("pictures as an answer", whole, user(generationConfig={"responseModalities": ["IMAGE"]}), 400, "LYCH-BROKER-008")
    refused("a list instead of events", "/gem:streamGenerateContent", user(), 400, "LYCH-BROKER-009", "alt=sse")
    refused("embeddings", "/gem:embedContent", {"content": {}}, 400, "LYCH-BROKER-009", "embedContent")
    refused("a model of another kind", "/small:generateContent", user(), 400, "LYCH-BROKER-009", "it has: chat")
    refused("a model that nobody has", "/none:generateContent", user(), 404, "LYCH-BROKER-004")
    refused("its own key, encoded", whole, user("the key is " + base64.b64encode(KEY.encode()).decode()), 400, "LYCH-GATE-001")
    refused("a model that is not there", "/none", None, 404, "LYCH-BROKER-004")
    refused("a model of OpenAI's", "/small", None, 404, "LYCH-BROKER-004")


# ---- what is allowed ----

def whole(what, body):
    status, _, data = ask("/gem:generateContent", body)
    if status != 200:
        say(what, False, (status, data))
        return {"candidates": [{"content": {"parts": [{}]}}]}
    return json.loads(data)


def events(body):
    status, headers, data = ask("/gem:streamGenerateContent?alt=sse", body)
    assert status == 200 and headers["Content-Type"].startswith("text/event-stream"), (status, data)
    return [json.loads(e.removeprefix("data: ")) for e in data.decode().replace("\r\n", "\n").split("\n\n")[:-1]]


def parts_of(r):
    return r["candidates"][0]["content"]["parts"]


def text_of(parts, thought=False):
    return "".join(p.get("text", "") for p in parts if p.get("thought", False) == thought)


def turns(stream):
    """A call goes back as it came, with its id and signature, and is answered."""
    body = user("what is the weather?", tools=TOOLS)
    got = [p for e in events(body) for p in parts_of(e)] if stream else parts_of(whole("a call", body))
    call = next((p for p in got if "functionCall" in p), {"functionCall": {"id": "", "name": ""}, "thoughtSignature": ""})
    say("a call", call["functionCall"].get("args") == {"city": "Trier"} and len(call["thoughtSignature"]) > 500, got)
    body["contents"] += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [{"functionResponse": {
        "id": call["functionCall"]["id"], "name": "weather", "response": {"output": "rain"}}}]}]
    text = text_of(parts_of(whole("back", body)))
    say("the provider takes back what it gave", text == 'the tool said {"output": "rain"}', text)
    call["thoughtSignature"] = call["thoughtSignature"][:-4] + "AAAA"
    status, _, data = ask("/gem:generateContent", body)
    # where the gate lets pass what nobody gave out
    say("and would have seen a change", status == 400 and (b"signature is not valid" in data or b"LYCH-GATE-" in data),
        (status, data))


def answers():
    r = whole("an answer", user())
    say("an answer", text_of(parts_of(r)) == "you said: hello there" and r["candidates"][0]["finishReason"] == "STOP", r)
    r = whole("a short one", user("word " * 50, generationConfig={"maxOutputTokens": 16, "temperature": 0.5}))
    say("a short one", r["candidates"][0]["finishReason"] == "MAX_TOKENS" and
        r["usageMetadata"]["candidatesTokenCount"] == 16, r)
    r = whole("two", user(generationConfig={"candidateCount": 2}))
    say("two candidates", [c["index"] for c in r["candidates"]] == [0, 1], r)
    got = events(user("a stream, please", generationConfig={"thinkingConfig": {"includeThoughts": True}}))
    parts = [p for e in got for p in parts_of(e)]
    say("a stream", len(got) > 5 and text_of(parts) == "you said: a stream, please", got)
    say("its thoughts", text_of(parts, True) == "thinking it over, a stream, please", got)
    say("its end", got[-1]["candidates"][0]["finishReason"] == "STOP" and "thoughtsTokenCount" in got[-1]["usageMetadata"] and
        len([p for p in parts if "thoughtSignature" in p]) == 1, got[-1])
    for stream in (False, True):
        turns(stream)
    # what is private stays here, and comes back, in thoughts too
    text = f"write to {EMAIL} today"
    more = {"systemInstruction": {"parts": [{"text": f"you are {EMAIL}"}]},
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    parts = [p for e in events(user(text, **more)) for p in parts_of(e)]
    say("the address comes back", text_of(parts) == "you said: " + text, text_of(parts))
    say("in thoughts too", text_of(parts, True) == "thinking it over, " + text, text_of(parts, True))
    say("and whole", text_of(parts_of(whole("whole", user(text)))) == "you said: " + text)
    # the provider spells out the key that it was given
    echoes = [text_of(parts_of(whole("an echo", user("echo")))), text_of([p for e in events(user("echo")) for p in parts_of(e)])]
    for told in echoes:
        say("an echo of the key", told.count("[redacted]") >= 4, told)
        print("echo", told)
    status, _, data = ask("/gem:generateContent", user("busy"))
    error = json.loads(data)["error"]
    say("a 429 is the provider's", status == 429 and error["status"] == "RESOURCE_EXHAUSTED" and
        error["details"][0]["retryDelay"] == "1s", data)
    status, _, data = ask("/gem:countTokens", user())
    say("a count of tokens", status == 200 and json.loads(data)["totalTokens"] > 0, data)
    model = {"name": "models/gem", "baseModelId": "gem", "version": "", "displayName": "gem",
             "supportedGenerationMethods": ["generateContent", "countTokens"]}
    status, _, data = ask("/gem")
    say("one model", status == 200 and json.loads(data) == model, data)
    status, _, data = ask("?pageSize=50")
    say("models", status == 200 and json.loads(data) == {"models": [model]}, data)


{"refusals": refusals, "answers": answers}[sys.argv[1]]()
print("end")
