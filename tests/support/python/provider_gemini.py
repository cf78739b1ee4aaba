# SPDX-License-Identifier: Apache-2.0
"""The stand-in's Gemini API (provider.py): generateContent, streamGenerateContent?alt=sse, countTokens, models. As strict as
Google's: a name that is in no message of the API is a 400 in its words, with the place; a call of a function comes with an id and a
signature, and what comes back must be just these, with as many responses as there were calls, each with its call's id; events end
in CRLF, and each has the usage so far.

Google keeps no list of the ids that it gave out: calls of other models come with those that a client made, and Gemini CLI puts a
function's name before the id when it shows a talk to its second model. Here what was given out must be the end of it, so that it
is seen when somebody on the way has changed it."""
import base64
import json
import random

RNG = random.Random(18)
SIGNATURES, CALLS = set(), set()
ID_LENGTH = 8

STRING, NUMBER, BOOL, ANY = str, (int, float), bool, object
BLOB = {"mimeType": STRING, "data": STRING, "displayName": STRING}
PART = {"text": STRING, "thought": BOOL, "thoughtSignature": STRING, "inlineData": BLOB,
        "fileData": {"mimeType": STRING, "fileUri": STRING}, "videoMetadata": dict, "mediaResolution": {"level": STRING},
        "functionCall": {"id": STRING, "name": STRING, "args": dict},
        "functionResponse": {"id": STRING, "name": STRING, "response": dict, "parts": [{"inlineData": BLOB}],
                             "willContinue": BOOL, "scheduling": STRING}}
CONTENT = {"role": STRING, "parts": [PART]}
DECLARATION = {"name": STRING, "description": STRING, "parameters": dict, "parametersJsonSchema": ANY, "response": dict,
               "responseJsonSchema": ANY, "behavior": STRING}
REQUEST = {
    "contents": [CONTENT], "systemInstruction": CONTENT,
    "tools": [{"functionDeclarations": [DECLARATION], "googleSearch": dict, "codeExecution": dict, "urlContext": dict}],
    "toolConfig": {"functionCallingConfig": {"mode": STRING, "allowedFunctionNames": [STRING]}},
    "safetySettings": [{"category": STRING, "threshold": STRING}], "cachedContent": STRING, "serviceTier": STRING,
    "generationConfig": {
        "stopSequences": [STRING], "responseMimeType": STRING, "responseSchema": dict, "responseJsonSchema": ANY,
        "responseModalities": [STRING], "candidateCount": NUMBER, "maxOutputTokens": NUMBER, "temperature": NUMBER,
        "topP": NUMBER, "topK": NUMBER, "seed": NUMBER, "presencePenalty": NUMBER, "frequencyPenalty": NUMBER,
        "responseLogprobs": BOOL, "logprobs": NUMBER, "mediaResolution": STRING, "speechConfig": dict,
        "thinkingConfig": {"includeThoughts": BOOL, "thinkingBudget": NUMBER, "thinkingLevel": STRING}}}
COUNT = {"contents": [CONTENT]}
STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}


def error(status, message, *details):
    return {"error": {"code": status, "message": message, "status": STATUS[status],
                      **({"details": list(details)} if details else {})}}


class BadRequest(Exception):
    status = 400

    def __init__(self, message):
        super().__init__(message)
        self.body = error(400, message)


# ---- what a request must be ----

def check(value, form, where=""):
    if isinstance(form, list):
        if not isinstance(value, list):
            raise BadRequest(f"Invalid value at '{where}', it is not a list")
        for i, one in enumerate(value):
            check(one, form[0], f"{where}[{i}]")
    elif isinstance(form, dict):
        if not isinstance(value, dict):
            raise BadRequest(f"Invalid value at '{where}'")
        for name, below in value.items():
            if name not in form:
                at = f" at '{where}'" if where else ""
                raise BadRequest(f"Invalid JSON payload received. Unknown name \"{name}\"{at}: Cannot find field.")
            check(below, form[name], f"{where}.{name}" if where else name)
    elif not isinstance(value, form) or (form == NUMBER and isinstance(value, bool)):
        raise BadRequest(f"Invalid value at '{where}'")


def given(ident):
    """What was given out, of an id that may have a client's words before it."""
    return ident[-ID_LENGTH:]


def check_turns(contents):
    """Calls and their responses, turn by turn."""
    if not contents:
        raise BadRequest("* GenerateContentRequest.contents: contents is not specified")
    open_calls = []
    for i, content in enumerate(contents):
        if content.get("role", "user") not in ("user", "model"):
            raise BadRequest("Please use a valid role: user, model.")
        parts = content.get("parts") or []
        if not parts:
            raise BadRequest(f"* GenerateContentRequest.contents[{i}].parts: contents.parts must not be empty.")
        calls = [p["functionCall"] for p in parts if "functionCall" in p]
        answers = [p["functionResponse"] for p in parts if "functionResponse" in p]
        if len(answers) != len(open_calls):
            raise BadRequest("Please ensure that the number of function response parts is equal to the number of function call "
                             "parts of the function call turn.")
        if [a.get("id") for a in answers] != [c.get("id") for c in open_calls]:
            raise BadRequest("Function response id does not match its call.")
        for p in parts:
            if "functionCall" in p and "thoughtSignature" not in p:
                raise BadRequest("Function call is missing a thought_signature in functionCall parts.")
            if "thoughtSignature" in p and p["thoughtSignature"] not in SIGNATURES:
                raise BadRequest("Thought signature is not valid.")
        if any(given(c["id"]) not in CALLS for c in calls if "id" in c):
            raise BadRequest("Function call id is not valid.")
        open_calls = calls
    if open_calls:
        raise BadRequest("Please ensure that function call turn comes immediately before a function response turn.")


# ---- what it says ----

def sign():
    text = base64.b64encode(RNG.randbytes(420)).decode()
    SIGNATURES.add(text)
    return text


def call_of(tool):
    ident = "".join(RNG.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(ID_LENGTH))
    CALLS.add(ident)
    return {"functionCall": {"name": tool["functionDeclarations"][0]["name"], "args": {"city": "Trier"}, "id": ident},
            "thoughtSignature": sign()}


def usage(h, thoughts):
    made = h.bill.output()
    return {"promptTokenCount": h.bill.input, "candidatesTokenCount": made - thoughts,
            "totalTokenCount": h.bill.input + made,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": h.bill.input}],
            **({"thoughtsTokenCount": thoughts} if thoughts else {})}


def answer(h, parts, thoughts, finish=None, **more):
    one = {"content": {"parts": parts, "role": "model"}, **({"finishReason": finish} if finish else {})}
    return {"candidates": [{**one, "index": i} for i in range(h.bill.choices)], "usageMetadata": usage(h, thoughts),
            "modelVersion": h.model, "responseId": h.response_id, **more}


def event(h, body):
    h.chunk(f"data: {json.dumps(body)}\r\n\r\n".encode())


def words_of(contents):
    last = contents[-1]["parts"]
    said = next((p["functionResponse"]["response"] for p in last if "functionResponse" in p), None)
    told = [c for c in contents if c.get("role", "user") == "user" and any("text" in p for p in c["parts"])]
    return " ".join(p.get("text", "") for p in told[-1]["parts"]).split() if told else [], said


def generate(h, token, spellings, once, is_stream):
    body = h.request_body
    check(body, REQUEST)
    check_turns(body["contents"])
    words, said = words_of(body["contents"])
    what, tools = (words[0] if words else ""), body.get("tools") or []
    if what == "busy" or (what == "once" and words[1] not in once):
        once.update(words[1:2])
        h.record["status"] = 429
        h.reply(429, error(429, "You exceeded your current quota.", {
            "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}))
        return
    h.response_id = base64.urlsafe_b64encode(RNG.randbytes(17)).decode().rstrip("=")
    h.bill.is_owed, thoughts, parts = True, 0, []
    config = body.get("generationConfig") or {}
    if (config.get("thinkingConfig") or {}).get("includeThoughts"):
        parts.append({"text": "thinking it over, " + " ".join(words), "thought": True})
        thoughts = -(-len(parts[0]["text"]) // token)
    if tools and said is None:
        parts.append(call_of(tools[0]))
        text = ""
        h.bill.made, finish = 6 + thoughts, "STOP"
    else:
        text = (f"the tool said {json.dumps(said)}" if said is not None else spellings if what == "echo"
                else "you said: " + " ".join(words))
        room = max(h.bill.cap - thoughts, 0) * token
        finish, text = "MAX_TOKENS" if len(text) > room else "STOP", text[:room]
        h.bill.made = thoughts + -(-len(text) // token)
        parts.append({"text": text})
    h.bill.is_done = True
    if not is_stream:
        h.reply(200, answer(h, parts, thoughts, finish))
        return
    h.begin_stream()
    if what == "endless":
        while True:
            event(h, answer(h, [{"text": "on "}], 0))
    for part in parts:
        if "text" not in part:
            event(h, answer(h, [part], thoughts, finish))
        # at odd places, so that nothing that is looked for lies in one piece
        for i in range(0, len(part.get("text", "")), 5):
            event(h, answer(h, [{**part, "text": part["text"][i:i + 5]}], thoughts))
    # the signature of an answer without calls comes at its end, beside an empty text
    if "text" in parts[-1]:
        event(h, answer(h, [{"text": "", "thoughtSignature": sign()}], thoughts, finish))
    h.chunk(b"")


def count(h):
    check(h.request_body, COUNT)
    check_turns(h.request_body["contents"])
    h.reply(200, {"totalTokens": h.bill.input, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": h.bill.input}]})
