#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a provider of models, honest and small: OpenAI's chat completions and Anthropic's
messages, whole and streamed, with tools; and what provider_apis.py and provider_gemini.py have. It refuses who has not the key, and writes each request
down (one JSON object a line: what came, whether the key was right, how it ended).

    provider.py --key KEY --log FILE [--address 127.0.0.1] [--port 0]

Prints "port N" when it listens. What it does follows the last message that a person wrote:
    once ID         429 with Retry-After: 1 the first time, an answer the second time
    busy            429 with Retry-After: 1, always
    broken          500, always
    slow SECONDS    an answer after so long
    endless         a stream that goes on until somebody hangs up
    endless-once ID the same the first time, an answer the second time
    cut             a stream that stops in the middle of an event
    echo            an answer that holds the key, raw and in other spellings
    large BYTES     an answer of so many
    huge            an answer as long as its cap allows; with a pause of SECONDS after each event: huge SECONDS
    deny            an answer like huge, of which its usage says one token
    quiet           a stream without its usage
With tools in the request the answer is a call of the first one, until a result comes back.

It counts like one who means to be paid. A token of the input is a byte of text, and there are four around
each message; a picture is 1600. A token of the output is five letters at most. It makes as many as
the request's cap lets it (--cap says which key that is; without one, --longest), for each of n choices. A
request costs what came in and what was made: of a stream that was left, what was made until that was noticed; of an
answer that is not streamed, all of it, read or not; of an error nothing. --prices IN,OUT: of a million tokens, in
millionths; more for writing to the cache (1.25, for an hour 2), service_tier priority (2), speed fast (6) and the beta
context-1m (2 and 1.5). GET /ledger says what it comes to.
"""
import argparse, base64, http.server, json, math, threading, time, urllib.parse

import provider_apis
import provider_gemini

args = argparse.ArgumentParser()
args.add_argument("--key", required=True)
args.add_argument("--log", required=True)
args.add_argument("--address", default="127.0.0.1")
args.add_argument("--port", type=int, default=0)
args.add_argument("--prices", default="0,0")
args.add_argument("--longest", type=int, default=100000)
# OpenAI's own models know the one or the other; most others both, some one of them, and pass over what they don't
args.add_argument("--cap", choices=["either", "max_tokens", "max_completion_tokens"], default="either")
args = args.parse_args()
lock = threading.Lock()
once = set()
TOKEN = 5  # letters
GEMINI = ("generateContent", "streamGenerateContent")
AHEAD = 8  # tokens that are made before it is seen that nobody reads
PRICES = [int(p) for p in args.prices.split(",")]
ledger = {"open": 0, "requests": 0, "input": 0, "output": 0, "micro": 0, "bytes": 0}


class Refused(Exception):
    """A request that the API does not take."""


class Bill:
    """What one request comes to."""

    def __init__(self, headers, body, anthropic, api):
        self.body, self.anthropic, self.api = body, anthropic, api
        self.config = body.get("generationConfig") or {} if api in GEMINI else {}
        self.input, self.made, self.factors = self.count_input(), 0, self.more_for(headers)
        self.choices = 1 if anthropic else body.get("n") or self.config.get("candidateCount") or 1
        self.cap = self.read_cap()
        self.is_owed = self.is_done = False  # begun; made to its end

    def read_cap(self):
        if self.api == "responses":
            return self.body.get("max_output_tokens") or args.longest
        if self.api in ("embeddings", "count_tokens", "countTokens"):
            return 0
        if self.api in GEMINI:
            return self.config.get("maxOutputTokens") or args.longest
        old, new = self.body.get("max_tokens"), self.body.get("max_completion_tokens")
        if self.anthropic:
            if not isinstance(old, int):
                raise Refused("max_tokens: Field required")
            return old
        if args.cap == "max_completion_tokens" and old is not None:
            raise Refused("Unsupported parameter: 'max_tokens' is not supported with this model. "
                          "Use 'max_completion_tokens' instead.")
        if args.cap == "either" and old is not None and new is not None:
            raise Refused("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
        cap = {"max_tokens": old, "max_completion_tokens": new, "either": new if old is None else old}[args.cap]
        return args.longest if cap is None else cap

    def count_input(self):
        picture = 0

        def text(v):
            nonlocal picture
            if isinstance(v, dict):
                if v.get("type") in ("image", "image_url"):
                    picture += 1600
                    return 0
                if "inlineData" in v:
                    picture += 258
                    return 0
                return sum(text(x) for k, x in v.items() if k not in ("type", "role", "cache_control"))
            if isinstance(v, list):
                return sum(text(x) for x in v)
            return len(v.encode()) if isinstance(v, str) else 0
        asked = [self.body.get(k) for k in ("system", "tools", "functions", "response_format", "instructions", "systemInstruction")]
        told = self.body.get("messages") or self.body.get("input") or self.body.get("contents") or []
        told = [told] if isinstance(told, str) else told
        return (4 * len(told) + 3 + text(told) +
                sum(len(json.dumps(a, separators=(",", ":"))) for a in asked if a) + picture)

    def more_for(self, headers):
        once_in, once_out, raw = 1.0, 1.0, json.dumps(self.body)
        if '"cache_control"' in raw:
            once_in *= 2 if '"ttl": "1h"' in raw else 1.25
        if self.body.get("service_tier") == "priority":
            once_in, once_out = once_in * 2, once_out * 2
        if self.body.get("speed") == "fast":
            once_in, once_out = once_in * 6, once_out * 6
        if "context-1m" in headers.get("anthropic-beta", ""):
            once_in, once_out = once_in * 2, once_out * 1.5
        return once_in, once_out

    def output(self):
        return min(self.made + (0 if self.is_done else AHEAD), self.cap) * self.choices

    def micro(self):
        tokens = self.input * PRICES[0] * self.factors[0] + self.output() * PRICES[1] * self.factors[1]
        return math.ceil(tokens / 1e6)

    def settle(self):
        if not self.is_owed:
            return None
        with lock:
            ledger["requests"] += 1
            ledger["input"] += self.input
            ledger["output"] += self.output()
            ledger["micro"] += self.micro()
        return {"input": self.input, "output": self.output(), "micro": self.micro()}


def note(record):
    with lock, open(args.log, "a") as f:
        f.write(json.dumps(record) + "\n")


def tokens_of(text):
    return -(-len(text) // TOKEN)


def text_of(content):
    if isinstance(content, list):
        return " ".join(text_of(c.get("text") or c.get("content") or "") for c in content)
    return content or ""


def spellings(key):
    raw = key.encode()
    return " ".join((key, base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("="),
                     urllib.parse.quote(key, safe=""), "".join(f"%{b:02X}" for b in raw)))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # who hangs up between two requests has nothing to say

    def reply(self, status, body, **headers):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Request-Id", "req_stand_in")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def error(self, status, message, **headers):
        self.record["status"] = status
        kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "api_error")
        error = {"type": kind, "message": message}
        if self.gemini:
            self.reply(status, provider_gemini.error(status, message), **headers)
            return
        self.reply(status, {"type": "error", "error": error} if self.anthropic else {"error": error}, **headers)

    # -- a stream, as the two APIs have it

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        with lock:
            ledger["bytes"] += len(data)

    def event(self, body, name=None):
        head = f"event: {name}\n" if name else ""
        self.chunk(f"{head}data: {json.dumps(body)}\n\n".encode())

    def delta(self, text):
        if self.anthropic:
            self.event({"type": "content_block_delta", "index": 0,
                        "delta": {"type": "text_delta", "text": text}}, "content_block_delta")
        for i in range(0 if self.anthropic else self.bill.choices):
            self.event(self.piece({"content": text}, index=i))

    def piece(self, delta, finish=None, index=0, **more):
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.model,
                "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more}

    def usage(self):
        """In the words of the API; who denies says one token."""
        made = 1 if self.is_denied else self.bill.output()
        if self.anthropic:
            return {"input_tokens": self.bill.input, "output_tokens": made}
        return {"prompt_tokens": self.bill.input, "completion_tokens": made, "total_tokens": self.bill.input + made}

    def stream(self, parts):
        """parts: the texts of it, as they come; the first ones are out before it waits."""
        self.begin_stream()
        if self.anthropic:
            self.event({"type": "message_start", "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": [],
                "stop_reason": None, "stop_sequence": None,
                "usage": {**self.usage(), "output_tokens": 1}}}, "message_start")
            self.event({"type": "content_block_start", "index": 0,
                        "content_block": {"type": "text", "text": ""}}, "content_block_start")
        else:
            self.event(self.piece({"role": "assistant", "content": ""}))
        n, is_cut = 0, False
        for text in parts:
            room = self.bill.cap - self.bill.made
            is_cut = room <= 0
            if is_cut:
                break
            text = text[:room * TOKEN]
            self.bill.made += tokens_of(text)
            self.delta(text)
            n += 1
            self.record["parts"] = n
        self.bill.is_done = True
        if self.anthropic:
            self.event({"type": "content_block_stop", "index": 0}, "content_block_stop")
            self.event({"type": "message_delta", "delta": {"stop_reason": "max_tokens" if is_cut else "end_turn",
                                                           "stop_sequence": None},
                        "usage": {"output_tokens": self.usage()["output_tokens"]}}, "message_delta")
            self.event({"type": "message_stop"}, "message_stop")
        else:
            self.event(self.piece({}, "length" if is_cut else "stop"))
            if (self.request_body.get("stream_options") or {}).get("include_usage") and not self.is_quiet:
                self.event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                            "model": self.model, "choices": [], "usage": self.usage()})
            self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def whole(self, text):
        is_cut = tokens_of(text) > self.bill.cap
        text = text[:self.bill.cap * TOKEN]
        self.bill.made, self.bill.is_done = tokens_of(text), True
        if self.anthropic:
            self.reply(200, {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                             "content": [{"type": "text", "text": text}],
                             "stop_reason": "max_tokens" if is_cut else "end_turn",
                             "stop_sequence": None, "usage": self.usage()})
        else:
            self.reply(200, {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.model,
                             "choices": [{"index": i, "finish_reason": "length" if is_cut else "stop",
                                          "message": {"role": "assistant", "content": text}}
                                         for i in range(self.bill.choices)],
                             "usage": self.usage()})

    def call_tool(self, tool):
        wanted = {"city": "Trier"}
        self.bill.made, self.bill.is_done = tokens_of(json.dumps(wanted)), True
        if self.anthropic:
            self.reply(200, {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                             "content": [{"type": "tool_use", "id": "toolu_1", "name": tool["name"],
                                          "input": wanted}], "stop_reason": "tool_use", "stop_sequence": None,
                             "usage": self.usage()})
        else:
            call = {"id": "call_1", "type": "function",
                    "function": {"name": tool["function"]["name"], "arguments": json.dumps(wanted)}}
            self.reply(200, {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.model,
                             "choices": [{"index": 0, "finish_reason": "tool_calls",
                                          "message": {"role": "assistant", "content": None, "tool_calls": [call]}}],
                             "usage": self.usage()})

    # -- what it does

    def tool_result(self):
        last = self.request_body["messages"][-1]
        if last["role"] == "tool":
            return text_of(last["content"])
        if isinstance(last["content"], list) and last["content"][0].get("type") == "tool_result":
            return text_of(last["content"][0]["content"])
        return None

    def act(self):
        body, last = self.request_body, self.request_body["messages"][-1]
        words = text_of(last["content"]).split()
        what, rest = (words[0] if words else ""), words[1:]
        result = self.tool_result()
        self.is_denied, self.is_quiet = what == "deny", what == "quiet"
        self.bill.is_owed = what not in ("busy", "broken", "once") or (what == "once" and rest[0] in once)
        if what == "busy" or (what == "once" and rest[0] not in once):
            once.update(rest[:1])
            self.error(429, "slow down", Retry_After="1")
        elif what == "broken":
            self.error(500, "it is broken")
        elif what == "endless" or (what == "endless-once" and rest[0] not in once):
            once.update(rest[:1])

            def for_ever():
                while True:
                    yield "on "
                    time.sleep(0.02)
            self.stream(for_ever())
        elif what in ("huge", "deny"):
            self.huge(float(rest[0]) if rest else 0)
        elif what == "cut":
            self.begin_stream()
            self.chunk(b'data: {"half":')
            self.close_connection = True
            self.connection.shutdown(2)
        elif result is None and body.get("tools"):
            self.call_tool(body["tools"][0])
        else:
            if what == "slow":
                time.sleep(float(rest[0]))
            text = (f"the tool said {result}" if result is not None else spellings(args.key) if what == "echo"
                    else "x" * int(rest[0]) if what == "large" else "you said: " + " ".join(words))
            if body.get("stream"):
                # at odd places, so that nothing that is looked for lies in one piece
                self.stream(text[i:i + 5] for i in range(0, len(text), 5))
            else:
                self.whole(text)

    def huge(self, pause):
        if not self.request_body.get("stream"):
            self.whole("word " * (self.bill.cap + 1))
            return

        def parts():
            for _ in range(0, self.bill.cap + 50, 50):
                yield "word " * 50
                time.sleep(pause)
        self.stream(parts())

    def key_is_right(self):
        """Anthropic's API takes it in either header; its SDK changed from the one to the other."""
        if self.gemini:
            return self.headers.get("X-Goog-Api-Key") == args.key and "Authorization" not in self.headers
        given = [self.headers.get("Authorization")]
        if self.anthropic and "X-Api-Key" in self.headers:
            given.append("Bearer " + self.headers["X-Api-Key"])
        given = [g for g in given if g is not None]
        return bool(given) and all(g == f"Bearer {args.key}" for g in given)

    def handle_it(self, act):
        self.anthropic = self.path.startswith("/v1/messages") or "anthropic-version" in self.headers
        self.api = self.path.split("?")[0].rpartition("/")[2]
        self.gemini = self.path.startswith("/v1beta/")
        if self.gemini:
            named, _, self.api = self.api.rpartition(":")
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.record = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()),
                       "body": raw.decode(errors="replace"), "key": self.key_is_right(), "end": "whole"}
        self.bill = None
        with lock:
            ledger["open"] += 1
        try:
            if not self.record["key"]:
                self.error(401, "no such key")
            else:
                self.request_body = json.loads(raw) if raw else {}
                self.model = named if self.gemini else self.request_body.get("model")
                if raw:
                    self.bill = Bill(self.headers, self.request_body, self.anthropic, self.api)
                act()
        except Refused as why:
            self.error(400, str(why))
        except (provider_apis.BadRequest, provider_gemini.BadRequest) as why:
            self.record["status"] = why.status
            self.reply(why.status, why.body)
        except OSError:
            self.record["end"] = "the client hung up"
            self.close_connection = True
        finally:
            self.record["bill"] = self.bill.settle() if self.bill else None
            note(self.record)
            with lock:
                ledger["open"] -= 1

    def generate(self, is_stream):
        if is_stream and not self.path.endswith("?alt=sse"):
            raise provider_gemini.BadRequest("the stand-in streams events alone")
        provider_gemini.generate(self, TOKEN, spellings(args.key), once, is_stream)

    def do_POST(self):
        acts = {"responses": lambda: provider_apis.respond(self, TOKEN, spellings(args.key)),
                "embeddings": lambda: provider_apis.embed(self), "count_tokens": lambda: provider_apis.count(self),
                "generateContent": lambda: self.generate(False), "countTokens": lambda: provider_gemini.count(self),
                "streamGenerateContent": lambda: self.generate(True)}
        self.handle_it(lambda: acts.get(self.api, self.act)())

    def do_GET(self):
        if self.path == "/ledger":
            with lock:
                told = dict(ledger)
            self.reply(200, told)
            return
        model = {"id": "stand-in", "object": "model", "created": 1, "owned_by": "stand-in"}
        one = self.path.startswith("/v1/models/")
        self.handle_it(lambda: self.reply(200, model if one else {"object": "list", "data": [model]}))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server((args.address, args.port), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
