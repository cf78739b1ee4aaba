#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the providers that is as strict as they are: OpenAI's chat completions, Responses and embeddings, Anthropic's
messages and count of tokens, Gemini's generateContent and countTokens, whole and streamed. Ids are as long as theirs and out of
their alphabets, signatures and encrypted contents random; whatever of that comes back changed is a 400, and so is what they say
400 to. Streams come in pieces that end anywhere, within a letter too.

    server.py --key KEY --log FILE [--task DIRECTORY] [--requests DIRECTORY]

--task: it has whoever asks mend the project in DIRECTORY, as the agent sees it (task.py); else it does what the last message's
words ask for (brains.py). Prints "port N" when it listens. A line of JSON for each request is in FILE: the path, the status, the
step of the task, what was wrong, seconds since the start. --requests: each body, as it came.
"""
import argparse
import http.server
import json
import os
import sys
import threading
import time
import types
import urllib.parse

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import brains
import chat
import gemini
import messages
import provider_apis
import provider_gemini
import responses
from common import RNG, Bad

parser = argparse.ArgumentParser()
parser.add_argument("--key", required=True)
parser.add_argument("--log", required=True)
parser.add_argument("--task")
parser.add_argument("--requests")
args = parser.parse_args()
LOCK = threading.Lock()
START = time.monotonic()
BRAIN = brains.Agent(args.task) if args.task else brains.Sdk()
DIALECTS = {"/v1/chat/completions": "chat", "/v1/embeddings": "chat", "/v1/responses": "responses", "/v1/messages": "messages",
            "/v1/messages/count_tokens": "messages"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass

    def reply(self, status, body, **headers):
        data = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        cut = RNG.randrange(len(data) + 1) if RNG.random() < 0.1 else 0
        for part in (data[:cut], data[cut:]) if cut and cut < len(data) else (data,):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def event(self, body, name=None):
        self.chunk((f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n")

    @staticmethod
    def for_ever(act):
        """Until whoever asked hangs up, which is an OSError; a minute at most."""
        for _ in range(3000):
            act()
            time.sleep(0.02)
        raise OSError("nobody hung up")

    def bill_as(self, n_input, made):
        self.bill = types.SimpleNamespace(input=n_input, output=lambda: made, choices=1)

    # -- which dialect it is, and what it says

    def refuse(self, status, why):
        self.record["status"], self.record["wrong"] = status, str(why)
        more = getattr(why, "more", {})
        body = {"chat": lambda: chat.error(status, str(why), **more), "responses": lambda: responses.error(why),
                "messages": lambda: messages.error(status, str(why)),
                "gemini": lambda: getattr(why, "body", None) or provider_gemini.error(status, str(why))}[self.dialect]()
        self.reply(status, body, **({"Retry_After": "1"} if status == 429 else {}))

    def has_key(self):
        if self.dialect == "gemini":
            return self.headers.get("X-Goog-Api-Key") == args.key and "Authorization" not in self.headers
        return (messages if self.dialect == "messages" else chat).has_key(self.headers, args.key)

    def act(self, raw):
        path, body = urllib.parse.urlsplit(self.path).path, json.loads(raw)
        self.body = self.request_body = body
        n_input = len(raw) // 4  # as many as there are tokens in most texts
        if path == "/v1/embeddings":
            chat.embed(self, body)
            return
        if path == "/v1/messages/count_tokens":
            messages.read(body, self.headers, only_counts=True)
            self.reply(200, {"input_tokens": n_input})
            return
        if self.dialect == "gemini":
            self.model, _, method = path.rpartition("/")[2].partition(":")
            if method == "countTokens":
                provider_gemini.check(body, provider_gemini.COUNT)
                self.reply(200, {"totalTokens": n_input})
                return
            talk = gemini.read(body, self.model, method == "streamGenerateContent")
        else:
            talk = {"chat": lambda: chat.read(body), "responses": lambda: responses.read(body),
                    "messages": lambda: messages.read(body, self.headers)}[self.dialect]()
        self.model = talk.model
        with LOCK:
            turn = BRAIN.say(talk)
        self.record |= {"step": turn.step, "calls": len(turn.calls), **({"unexpected": talk.unexpected} if talk.unexpected else {})}
        {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}[self.dialect].say(self, talk, turn, n_input)

    def do_POST(self):
        path = urllib.parse.urlsplit(self.path).path
        self.dialect = "gemini" if path.startswith("/v1beta/models/") else DIALECTS.get(path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.record = {"at": round(time.monotonic() - START, 3), "path": self.path, "status": 200, "bytes": len(raw)}
        try:
            if not self.dialect:
                self.record["status"] = 404
                self.reply(404, chat.error(404, f"Invalid URL (POST {path})"))
            elif not self.has_key():
                self.refuse(401, Bad("Incorrect API key provided"))
            else:
                self.act(raw)
        except Bad as why:
            self.refuse(why.status, why)
        except (provider_apis.BadRequest, provider_gemini.BadRequest) as why:
            self.refuse(why.status, why)
        except OSError:
            self.record["end"] = "the client hung up"
            self.close_connection = True
        except Exception as why:  # the stand-in's own fault is to be seen
            self.record["fault"] = f"{type(why).__name__}: {why}"
            self.close_connection = True
            raise
        finally:
            with LOCK, open(args.log, "a") as f:
                f.write(json.dumps(self.record) + "\n")
                if args.requests:
                    with open(os.path.join(args.requests, f"{f.tell()}.json"), "wb") as body:
                        body.write(raw)

    def do_GET(self):
        self.reply(404, chat.error(404, f"Invalid URL (GET {self.path})"))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
