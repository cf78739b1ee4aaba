# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a local server of chat completions that judges texts, as strict as llama.cpp's: who has not its key is 401, what is
no request, or does not fit into its context, is 400. server(key) starts one; .seen has the pieces that it was shown.

What it says follows the last word "opinion:WHAT" of the piece, without one 0.05:
    NUMBER      that
    hold        0.05, when .release() was called as often
    500         an error
    silent      nothing, until who asked hangs up
    garbage     words
    fenced      the object in a code fence
    twice       the object, and another
    length      the object, cut by max_tokens
    oversize    an answer of a megabyte
    cut         half an answer
    echo        the piece itself
    why:NUMBER  that, with the piece for its reason
"""
import http.server
import json
import re
import threading

CONTEXT = 10240  # tokens; a byte is one
KEYS = {"model", "messages", "temperature", "max_tokens", "stream", "response_format"}
PIECE = re.compile(r"\ABEGIN ([0-9a-f]{32})\n(.*)\nEND \1\Z", re.S)


class Bad(Exception):
    """A request that it does not take."""


def piece_of(rq):
    if set(rq) != KEYS or rq["model"] != "judge" or rq["stream"] is not False or rq["temperature"] != 0:
        raise Bad("keys: " + ", ".join(rq))
    form = rq["response_format"]
    schema = form.get("json_schema", {})
    if form.get("type") != "json_schema" or schema.get("strict") is not True or not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", schema.get("name", "")):
        raise Bad("response_format")
    if schema["schema"]["required"] != ["private", "why"] or schema["schema"]["additionalProperties"] is not False:
        raise Bad("schema")
    if any(not 0 <= n <= 1 for n in schema["schema"]["properties"]["private"]["enum"]):
        raise Bad("enum")
    if [m["role"] for m in rq["messages"]] != ["system", "user"] or any(set(m) != {"role", "content"} for m in rq["messages"]):
        raise Bad("messages")
    # a tokenizer of bytes is the worst; of the rules, which are English, four letters are one
    system, user = (m["content"].encode() for m in rq["messages"])
    if len(system) // 3 + len(user) + rq["max_tokens"] > CONTEXT:
        raise Bad("the request exceeds the available context size")
    m = PIECE.match(user.decode())
    if not m:
        raise Bad("no piece")
    return m[2]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # who asked hung up

    def reply(self, status, data, length=None):
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(length or len(data)))
        self.end_headers()
        self.wfile.write(data)

    def error(self, status, message):
        self.reply(status, json.dumps({"error": {"code": status, "message": message, "type": "invalid_request_error"}}).encode())

    def answer(self, content, finish="stop"):
        self.reply(200, json.dumps({
            "id": "chatcmpl-0123456789abcdef", "object": "chat.completion", "created": 1700000000, "model": "judge",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self.error(401, "Invalid API Key")
            return
        try:
            if self.path != "/v1/chat/completions" or self.headers["Content-Type"] != "application/json":
                raise Bad(self.path)
            piece = piece_of(json.loads(body))
        except (Bad, ValueError, KeyError) as e:
            self.server.bad.append(repr(e))
            self.error(400, repr(e))
            return
        self.server.seen.append(piece)
        said = re.findall(r"opinion:(\S+)", piece)
        self.say(said[-1] if said else "0.05", piece)

    def say(self, what, piece):
        low = json.dumps({"private": 0.05, "why": "w"})
        if what == "500":
            self.error(500, "trace of " + piece)
        elif what == "silent":
            self.rfile.read(1)
        elif what == "oversize":
            self.answer(low + " " * (1 << 20))
        elif what == "cut":
            self.reply(200, b'{"choices":[', 4096)
            self.close_connection = True
        elif what == "length":
            self.answer(low, "length")
        elif what == "hold":
            self.server.held.acquire()
            self.answer(low)
        elif what.startswith("why:"):
            self.answer(json.dumps({"private": float(what[4:]), "why": piece[:900]}))
        else:
            said = {"garbage": "private: 0.05, I think", "fenced": f"```json\n{low}\n```", "twice": low + low, "echo": piece}
            self.answer(said.get(what) or json.dumps({"private": float(what), "why": "the words " + piece[:200]}))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def get_request(self):
        self.connections += 1
        return super().get_request()

    def release(self):
        self.held.release()


def server(key):
    s = Server(("127.0.0.1", 0), Handler)
    s.key, s.seen, s.bad, s.connections, s.held = key, [], [], 0, threading.Semaphore(0)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    return s
