#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a provider of models, honest and small: OpenAI's chat completions and Anthropic's
messages, whole and streamed, with tools. It refuses who has not the key, and writes each request
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
With tools in the request the answer is a call of the first one, until a result comes back.
"""
import argparse, base64, http.server, json, threading, time, urllib.parse

args = argparse.ArgumentParser()
args.add_argument("--key", required=True)
args.add_argument("--log", required=True)
args.add_argument("--address", default="127.0.0.1")
args.add_argument("--port", type=int, default=0)
args = args.parse_args()
lock = threading.Lock()
once = set()


def note(record):
    with lock, open(args.log, "a") as f:
        f.write(json.dumps(record) + "\n")


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
        self.reply(status, {"type": "error", "error": error} if self.anthropic else {"error": error}, **headers)

    # -- a stream, as the two APIs have it

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, body, name=None):
        head = f"event: {name}\n" if name else ""
        self.chunk(f"{head}data: {json.dumps(body)}\n\n".encode())

    def delta(self, text):
        if self.anthropic:
            self.event({"type": "content_block_delta", "index": 0,
                        "delta": {"type": "text_delta", "text": text}}, "content_block_delta")
        else:
            self.event(self.piece({"content": text}))

    def piece(self, delta, finish=None, **more):
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": self.model,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}

    def stream(self, parts):
        """parts: the texts of it, as they come; the first ones are out before it waits."""
        self.begin_stream()
        if self.anthropic:
            self.event({"type": "message_start", "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": [],
                "stop_reason": None, "stop_sequence": None,
                "usage": {"input_tokens": 7, "output_tokens": 1}}}, "message_start")
            self.event({"type": "content_block_start", "index": 0,
                        "content_block": {"type": "text", "text": ""}}, "content_block_start")
        else:
            self.event(self.piece({"role": "assistant", "content": ""}))
        n = 0
        for text in parts:
            self.delta(text)
            n += 1
            self.record["parts"] = n
        if self.anthropic:
            self.event({"type": "content_block_stop", "index": 0}, "content_block_stop")
            self.event({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                        "usage": {"output_tokens": n}}, "message_delta")
            self.event({"type": "message_stop"}, "message_stop")
        else:
            self.event(self.piece({}, "stop"))
            if (self.request_body.get("stream_options") or {}).get("include_usage"):
                self.event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                            "model": self.model, "choices": [],
                            "usage": {"prompt_tokens": 7, "completion_tokens": n, "total_tokens": 7 + n}})
            self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def whole(self, text):
        n = max(1, len(text.split()))
        if self.anthropic:
            self.reply(200, {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                             "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                             "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": n}})
        else:
            self.reply(200, {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.model,
                             "choices": [{"index": 0, "finish_reason": "stop",
                                          "message": {"role": "assistant", "content": text}}],
                             "usage": {"prompt_tokens": 7, "completion_tokens": n, "total_tokens": 7 + n}})

    def call_tool(self, tool):
        wanted = {"city": "Trier"}
        if self.anthropic:
            self.reply(200, {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                             "content": [{"type": "tool_use", "id": "toolu_1", "name": tool["name"],
                                          "input": wanted}], "stop_reason": "tool_use", "stop_sequence": None,
                             "usage": {"input_tokens": 7, "output_tokens": 3}})
        else:
            call = {"id": "call_1", "type": "function",
                    "function": {"name": tool["function"]["name"], "arguments": json.dumps(wanted)}}
            self.reply(200, {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.model,
                             "choices": [{"index": 0, "finish_reason": "tool_calls",
                                          "message": {"role": "assistant", "content": None, "tool_calls": [call]}}],
                             "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})

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

    def key_is_right(self):
        """Anthropic's API takes it in either header; its SDK changed from the one to the other."""
        given = [self.headers.get("Authorization")]
        if self.anthropic and "X-Api-Key" in self.headers:
            given.append("Bearer " + self.headers["X-Api-Key"])
        given = [g for g in given if g is not None]
        return bool(given) and all(g == f"Bearer {args.key}" for g in given)

    def handle_it(self, act):
        self.anthropic = self.path.split("?")[0] == "/v1/messages" or "anthropic-version" in self.headers
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.record = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()),
                       "body": raw.decode(errors="replace"), "key": self.key_is_right(), "end": "whole"}
        try:
            if not self.record["key"]:
                self.error(401, "no such key")
            else:
                self.request_body = json.loads(raw) if raw else {}
                self.model = self.request_body.get("model")
                act()
        except OSError:
            self.record["end"] = "the client hung up"
            self.close_connection = True
        finally:
            note(self.record)

    def do_POST(self):
        self.handle_it(self.act)

    def do_GET(self):
        self.handle_it(lambda: self.reply(200, {"object": "list", "data": [{"id": "stand-in", "object": "model"}]}))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server((args.address, args.port), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
