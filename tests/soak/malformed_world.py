# SPDX-License-Identifier: Apache-2.0
"""Runs beside the vessel of malformed.py: who is asked. On loopback it is a provider with both APIs, a
web page and two package registries, honest and small unless a request says "reply CODE" (a name or a
path: "reply-CODE"): then its answer is the one of that number, wrong in a place or a few, which
follows from the number and the seed of the run alone."""
import asyncio
import json
import random
import re

import malformed_git
from malformed_grammar import NOISE, Seed, damage

KINDS = ("openai", "openai-stream", "anthropic", "anthropic-stream", "gemini", "gemini-stream", "fetch", "binary", "git", "npm", "pypi")
CODE = re.compile(rb"reply[ -]([a-z]{1,8})")
STREAM, JSON = b"text/event-stream", b"application/json"
NPM, PYPI = b"application/json", b"application/vnd.pypi.simple.v1+json"


def code_of(n):
    text = ""
    while n:
        n, digit = divmod(n, 26)
        text = chr(97 + digit) + text
    return text.encode() or b"a"


def number_of(code):
    n = 0
    for c in code:
        n = n * 26 + c - 97
    return n


# ---- what an honest one says

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
         "completion_tokens_details": {"reasoning_tokens": 2, "accepted_prediction_tokens": 0}}
A_USAGE = {"input_tokens": 11, "output_tokens": 7, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 2,
           "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 0}, "service_tier": "standard"}
OPENAI = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "system_fingerprint": None, "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "yes", "refusal": None, "annotations": [], "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
     "logprobs": {"content": [{"token": "yes", "logprob": -0.1, "bytes": [121], "top_logprobs": []}]}, "finish_reason": "stop"}],
    "usage": USAGE}
ANTHROPIC = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [
    {"type": "thinking", "thinking": "hm", "signature": "AA=="}, {"type": "text", "text": "yes"},
    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": [1]}}], "stop_reason": "end_turn", "stop_sequence": None, "usage": A_USAGE}
ERROR = {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": "x"}}
A_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "no"}, "request_id": "req_1"}
CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
    {"index": 0, "delta": {"role": "assistant", "content": "ye", "tool_calls": [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\"a\""}}]}, "finish_reason": None}], "usage": None}
OPENAI_EVENTS = [CHUNK, {**CHUNK, "choices": [{"index": 0, "delta": {"content": "s"}, "finish_reason": None}]},
                 {**CHUNK, "choices": [{"index": 1, "delta": {"reasoning_content": "s", "refusal": "n"}, "finish_reason": "stop"}]},
                 {**CHUNK, "choices": [], "usage": USAGE}]
ANTHROPIC_EVENTS = [
    {"type": "message_start", "message": {**ANTHROPIC, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"a\":"}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"}, A_ERROR]
G_USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18, "thoughtsTokenCount": 2,
           "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}]}
GEMINI = {"candidates": [{"content": {"role": "model", "parts": [
    {"text": "hm", "thought": True}, {"text": "yes"}, {"functionCall": {"id": "c1", "name": "f", "args": {"a": [1]}}, "thoughtSignature": "AA=="}]},
    "finishReason": "STOP", "index": 0, "safetyRatings": [{"category": "c", "probability": "NEGLIGIBLE"}]}],
    "usageMetadata": G_USAGE, "modelVersion": "m", "responseId": "r1"}
G_ERROR = {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT", "details": [{"@type": "t", "reason": "x"}]}}
GEMINI_EVENTS = [{**GEMINI, "candidates": [{"content": {"role": "model", "parts": [{"text": t}]}, "index": 0}]} for t in ("ye", "s")] + [GEMINI]
NPM_INDEX = {"name": "x", "dist-tags": {"latest": "1.0.0"}, "modified": "2020-01-01T00:00:00.000Z", "versions": {"1.0.0": {
    "name": "x", "version": "1.0.0", "dependencies": {"y": "^1"}, "dist": {
        "tarball": "http://127.0.0.1:1/npm/x/-/x-1.0.0.tgz", "shasum": "00", "integrity": "sha512-AA==", "signatures": [{"keyid": "k", "sig": "s"}]}}}}
PYPI_INDEX = {"meta": {"api-version": "1.1"}, "name": "x", "versions": ["1.0"], "files": [
    {"filename": "x-1.0-py3-none-any.whl", "url": "../../files/x-1.0-py3-none-any.whl", "hashes": {"sha256": "00" * 32},
     "requires-python": ">=3", "yanked": False, "core-metadata": {"sha256": "00" * 32}, "size": 7}]}
HTML = (b"<!DOCTYPE html><html><head><title>x</title></head><body><h1>x</h1><a href=\"../../files/x-1.0.tar.gz#sha256=" + b"0" * 64 +
        b"\" data-requires-python=\"&gt;=3\">x-1.0.tar.gz</a><br/><a href='https://elsewhere.example/x'>x</a></body></html>")
BYTES = bytes(range(256)) * 4
TEXT = "here you are: änderungen, 日本, 🙂\n".encode()

WHOLE = {"gemini": [Seed(GEMINI), Seed(G_ERROR)], "gemini-stream": [Seed(e) for e in GEMINI_EVENTS], "openai": [Seed(OPENAI), Seed(ERROR)], "anthropic": [Seed(ANTHROPIC), Seed(A_ERROR)], "npm": [Seed(NPM_INDEX)],
         "pypi": [Seed(PYPI_INDEX)], "openai-stream": [Seed(e) for e in OPENAI_EVENTS], "anthropic-stream": [Seed(e) for e in ANTHROPIC_EVENTS]}
TYPES = {"gemini": JSON, "gemini-stream": STREAM, "git": b"application/x-git-upload-pack-result", "binary": b"application/octet-stream", "openai": JSON, "anthropic": JSON, "openai-stream": STREAM, "anthropic-stream": STREAM, "fetch": b"text/plain; charset=utf-8",
         "npm": NPM, "pypi": PYPI}


def event(text, name):
    return (b"event: " + name + b"\n" if name else b"") + b"data: " + text + b"\n\n"


def honest_body(kind):
    if kind in ("fetch", "binary", "git"):
        return {"fetch": TEXT, "binary": BYTES, "git": malformed_git.REFS}[kind]
    seeds = WHOLE[kind]
    if not kind.endswith("stream"):
        return seeds[0].text
    names = [e["type"].encode() for e in ANTHROPIC_EVENTS] if kind[0] == "a" else [b""] * len(seeds)
    events = list(zip(seeds, names))[:-1] if kind[0] == "a" else list(zip(seeds, names))
    return b"".join(event(s.text, n) for s, n in events) + (b"data: [DONE]\n\n" if kind[0] == "o" else b"")


CHANNELS = [event(b'{"choices":[{"index":%d,"delta":{"content":"x"}}]}' % i, b"") for i in range(700)]
HONEST = {kind: b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nX-Request-Id: req_1\r\n\r\n%s"
          % (TYPES[kind], len(honest_body(kind)), honest_body(kind)) for kind in KINDS}


# ---- what a hostile one says

def mangled(seed, rng):
    """Half of them one wrong value in one place, in all places by and by."""
    if rng.random() < 0.5:
        return seed.sweep(rng.randrange(seed.sweeps()))
    return seed.random(rng)


def hostile_stream(kind, rng):
    seeds = WHOLE[kind]
    texts = [s.text for s in seeds]
    names = [e["type"].encode() for e in ANTHROPIC_EVENTS] if kind[0] == "a" else [b""] * len(seeds)
    for _ in range(rng.choice((1, 1, 2, 4))):
        i = rng.randrange(len(seeds))
        texts[i] = mangled(seeds[i], rng)
    events = [event(t.replace(b"\n", b"") if rng.random() < 0.9 else t, n) for t, n in zip(texts, names)]
    trick = rng.randrange(16)
    if trick == 0:
        rng.shuffle(events)
    elif trick == 1:
        events = events * rng.choice((2, 50))
    elif trick == 2:
        events.insert(rng.randrange(len(events)), rng.choice((b":\n\n", b": x\n\n", b"data:\n\n", b"data\n\n", b"id: 7\nretry: 1\n\n", b"\n\n\n\n",
                                                              b"event: \xff\ndata: {}\n\n", b"data: [DONE]\n\n", b"data: null\n\n", b"x\n\n")))
    elif trick == 3:
        events = [e.replace(b"\n", b"\r\n") for e in events]
    elif trick == 4:  # more channels than there may be
        events += CHANNELS[:rng.choice((30, 30, 700))]
    elif trick == 5 and rng.random() < 0.05:  # an event that is too long
        events.append(b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * (1 << 21) + b'"}}]}\n\n')
    elif trick == 6:
        events = [b"".join(events).replace(b"data: ", b"data:")]
    elif trick == 7:
        events = [b"".join(events).replace(b"\n\n", b"\n")]
    body = b"".join(events) + (b"data: [DONE]\n\n" if kind[0] == "o" else b"")
    return damage(body, rng) if rng.random() < 0.15 else body


def hostile_text(rng):
    body = TEXT * rng.choice((1, 1, 40))
    for _ in range(rng.randrange(3)):
        body = damage(body, rng)
    return body


def hostile_body(kind, rng):
    if rng.random() < 0.004:
        return rng.choice((b'"', b"[", b'{"a":', b" ", b"\x00", b"\xc3")) * rng.choice((1 << 20, 3 << 20, 5 << 20))
    if kind == "fetch":
        return hostile_text(rng)
    if kind == "binary":
        return rng.randbytes(rng.choice((0, 1, 1000, 300000)))
    if kind == "git":
        return malformed_git.wrong(rng.choice((malformed_git.REFS, malformed_git.FLUSH, *malformed_git.PACKS)), rng)[0]
    if kind.endswith("stream"):
        return hostile_stream(kind, rng)
    if kind == "pypi" and rng.random() < 0.4:
        return damage(HTML, rng) if rng.random() < 0.8 else HTML * rng.choice((2, 300))
    return mangled(rng.choice(WHOLE[kind]), rng)


ODD_TYPES = (b"text/html", b"text/plain", JSON, STREAM, b"application/octet-stream", b"image/png", b"", b"x", b"text/plain; charset=utf-16",
             b"text/plain; charset=" + b"x" * 200, b"TEXT/PLAIN", b"application/json; charset=latin1", b"text/\xff", b"a/b/c", b"text/event-stream;;",
             b"application/vnd.pypi.simple.v1+html", b"multipart/mixed; boundary=x", b"text/plain, application/json")
ODD_STATUS = (b"100 Continue", b"101 Switching Protocols", b"103 Early Hints", b"201 Created", b"204 No Content", b"206 Partial Content", b"301 Moved",
              b"302 Found", b"304 Not Modified", b"307 T", b"400 Bad", b"401 No", b"404 Not Found", b"418 I", b"429 Slow", b"499 X", b"500 Oops",
              b"502 B", b"503 S", b"529 Overloaded", b"599 X", b"600 X", b"999 X", b"099 X", b"0 X", b"-1 X", b"abc", b"")
ODD_FIELDS = (b"Location: /open/reply-b", b"Location: http://127.0.0.1:1/x", b"Location: file:///etc/passwd", b"Location: //\xff",
              b"Location: " + b"/x" * 4000, b"Content-Encoding: gzip", b"Transfer-Encoding: gzip, chunked", b"Content-Length: 7", b"Content-Length: -1",
              b"Content-Length: 99999999999999999999", b"Connection: upgrade", b"Upgrade: h2c", b"Set-Cookie: a=b", b"X: \x00", b"X: \xff", b": x", b"X", b" x: y",
              b"X-RateLimit-a: " + b"v" * 9000, b"Retry-After: -1", b"Retry-After: 99999999999999999999", b"Request-Id: \x1b[31m", b"ETag: " + b"e" * 900,
              b"Trailer: X", b"Content-Type: text/plain", b"X-RateLimit-\xff: 1", b"Age: \x7f", b"Last-Modified: never")


def hostile(kind, rng):
    """(bytes of the answer, is the connection closed behind it)"""
    body, type_, status, fields, close = hostile_body(kind, rng), TYPES[kind], b"200 OK", [], False
    if rng.random() < 0.07:
        type_ = rng.choice(ODD_TYPES)
    if kind == "git":
        type_ = rng.choice((b"application/x-git-upload-pack-advertisement", b"application/x-git-receive-pack-advertisement",
                            b"application/x-git-receive-pack-result", type_, type_))
    if kind == "pypi" and body.startswith(b"<"):
        type_ = b"text/html"
    if rng.random() < 0.08:
        status = rng.choice(ODD_STATUS)
    if rng.random() < 0.1:
        fields = [rng.choice(ODD_FIELDS) for _ in range(rng.choice((1, 1, 3, 120)))]
    framing = rng.randrange(20)
    if framing < 4:  # chunks
        size = rng.choice((1, 7, 100, 65536)) if len(body) < 2000 else 65536
        text = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + size]), body[i:i + size]) for i in range(0, len(body), size)) + b"0\r\n\r\n"
        if framing == 0:
            text = damage(text, rng)
            close = True
        head, body = [b"Transfer-Encoding: chunked"], text
    elif framing == 4:  # its end is the connection's
        head, close = [], True
    elif framing == 5:
        head, close = [b"Content-Length: %d" % (len(body) + rng.choice((1, 100, 1 << 40)))], True
    elif framing == 6:
        head, close = [b"Content-Length: %d" % (len(body) // 2)], True
    else:
        head = [b"Content-Length: %d" % len(body)]
    text = b"HTTP/1.1 " + status + b"\r\n" + b"".join(f + b"\r\n" for f in [b"Content-Type: " + type_, *head, *fields]) + b"\r\n" + body
    last = rng.random()
    if last < 0.04:  # breaks off
        return text[:rng.randrange(len(text))], True
    if last < 0.05:  # no HTTP
        return rng.choice((b"", b"\r\n", b"x", body, rng.randbytes(60), b"HTTP/9.9 200\r\n\r\n", b"HTTP/1.1 200 OK\n\n", rng.choice(NOISE) * 70000)), True
    return text, close or fields != [] or status != b"200 OK"


def answer_of(seed, kind, n):
    if n == 0:
        return HONEST[kind], False
    return hostile(kind, random.Random(f"{seed}/{kind}/{n}"))


# ---- serving

class Asked(asyncio.Protocol):
    seed, asked = "0", 0

    def connection_made(self, transport):
        self.out, self.buf = transport, b""

    def data_received(self, data):
        self.buf += data
        while self.buf:
            end = self.buf.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self.buf[:end]
            at = head.lower().find(b"content-length:")
            length = int(head[at + 15:].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buf) < end + 4 + length:
                return
            body, self.buf = self.buf[end + 4:end + 4 + length], self.buf[end + 4 + length:]
            self.answer(head, body)

    @staticmethod
    def of_git(path):
        """An honest server of git's: the type says which request it answers."""
        service = b"receive-pack" if b"receive-pack" in path else b"upload-pack"
        what = b"advertisement" if b"/info/refs" in path else b"result"
        return HONEST["git"].replace(TYPES["git"], b"application/x-git-%s-%s" % (service, what))

    def answer(self, head, body):
        Asked.asked += 1
        method, path, _ = head.split(b"\r\n", 1)[0].split(b" ", 2)
        kind, where = "fetch", path
        if path.startswith(b"/npm/"):
            kind = "npm"
        elif path.startswith((b"/git/", b"/bin/")):
            kind = "git" if path[1:4] == b"git" else "binary"
        elif path.startswith(b"/gemini/"):
            kind, where = "gemini-stream" if b":streamGenerateContent" in path else "gemini", body
        elif path.startswith(b"/pypi/"):
            kind = "pypi"
        elif not path.startswith(b"/open"):
            kind = "anthropic" if path.startswith(b"/anthropic") else "openai"
            kind += "-stream" if b'"stream":true' in body else ""
            where = body
        found = CODE.findall(where)
        text, close = answer_of(self.seed, kind, number_of(found[-1]) if found else 0)
        if kind == "git" and not found:
            text, close = self.of_git(path), False
        if method == b"HEAD":
            text = text[:text.find(b"\r\n\r\n") + 4]
        self.out.write(text)
        if close:
            self.out.close()


def serve(seed, port_fd):
    """Never ends; writes its port to port_fd first."""
    import os

    async def run():
        Asked.seed = seed
        server = await asyncio.get_running_loop().create_server(Asked, "127.0.0.1", 0, backlog=512)
        os.write(port_fd, b"%d\n" % server.sockets[0].getsockname()[1])
        os.close(port_fd)
        await server.serve_forever()
    asyncio.run(run())


if __name__ == "__main__":  # malformed_world.py SEED KIND NUMBER: what that answer is
    import sys
    sys.stdout.buffer.write(answer_of(sys.argv[1], sys.argv[2], int(sys.argv[3]))[0])
