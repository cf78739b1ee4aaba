# SPDX-License-Identifier: Apache-2.0
"""A client process of malformed.py: many connections that are kept, each with one request under way, and
a judge of every answer. It writes what it saw to a file: how many of which kind, which answers, and each
finding with the bytes of what was under way."""
import base64
import collections
import json
import os
import re
import select
import socket
import time

from malformed_requests import Mill

UPSTREAM = ("ask", "fetch", "package", "reply", "good")
FINDINGS_MAX = 20
# Longer answers are not read for their form.
JSON_READ_BYTES = 1 << 16
# Of a job that has not ended the stream of events does not, either.
STREAM_SEC = 1
# The api socket's requests are quicker; most are to be the work socket's.
API_SHARE_MAX = 0.2
# Of our own making, or of the worker's: none may be seen.
INTERNAL = ("LYCH-CORE-000", "LYCH-CORE-001", "LYCH-CORE-002", "LYCH-EGRESS-011")


class Conn:
    __slots__ = ("socket", "path", "sock", "buf", "out", "op", "head", "left", "chunked", "close", "status", "parts", "size", "type")

    def __init__(self, socket_, path):
        self.socket, self.path, self.sock, self.op = socket_, path, None, None


class Broken(Exception):
    """The answer's framing is none."""


class Client:
    def __init__(self, mill, sockets, connections, quota, seconds, report):
        self.mill, self.quota, self.report = mill, quota, report
        self.end = time.monotonic() + seconds if seconds else None
        self.poll = select.epoll()
        self.conns = [Conn(name, sockets[name]) for name, n in connections.items() for _ in range(n)]
        self.by_fd = {}
        self.kinds, self.answers, self.findings = collections.Counter(), collections.Counter(), []
        self.found = collections.Counter()
        self.bad = self.good = self.cut = self.dropped = 0
        self.slowest = 0.0
        self.sent = self.api = 0
        self.parked = []

    # ---- a connection

    def connect(self, c):
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(c.path)
        c.sock.setblocking(False)
        c.buf, c.out = b"", b""
        self.by_fd[c.sock.fileno()] = c
        self.poll.register(c.sock, select.EPOLLIN)

    def close(self, c):
        if c.sock:
            del self.by_fd[c.sock.fileno()]
            c.sock.close()
            c.sock = None

    def begin(self, c):
        if self.is_over():
            self.close(c)
            c.op = None
            return
        if c.socket == "api" and self.api > 50 + API_SHARE_MAX * self.sent:
            self.parked.append(c)
            c.op = None
            return
        op = c.op = self.mill.next(c.socket)
        self.sent += op.is_bad
        self.api += c.socket == "api"
        if not c.sock:
            self.connect(c)
        c.head, c.parts, c.size, c.buf, c.out = None, [], 0, b"", op.text
        op.began = time.monotonic()
        self.push(c)

    def push(self, c):
        try:
            while c.out:
                n = c.sock.send(c.out)
                c.out = c.out[n:]
        except BlockingIOError:
            self.poll.modify(c.sock, select.EPOLLIN | select.EPOLLOUT)
            return
        except OSError:
            c.out = b""  # it refused before all of it came; its answer is to be read
        self.poll.modify(c.sock, select.EPOLLIN)
        if c.op.may_drop:
            try:
                c.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def is_over(self):
        return (self.quota and self.sent >= self.quota) or (self.end and time.monotonic() > self.end) or len(self.findings) >= FINDINGS_MAX

    # ---- an answer

    def readable(self, c):
        try:
            data = c.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not c.op:
            self.close(c)
            return
        if not data:
            self.ended(c)
            return
        c.buf += data
        try:
            if (c.head is not None or self.take_head(c)) and self.take_body(c):
                self.answered(c)
        except (Broken, ValueError) as e:
            self.finding(c, f"the answer cannot be read: {e}: {c.head!r} {c.buf[:200]!r}")
            self.again(c)

    def take_head(self, c):
        while True:
            end = c.buf.find(b"\r\n\r\n")
            if end < 0:
                return False
            head, c.buf = c.buf[:end], c.buf[end + 4:]
            c.status = int(head[9:12])
            if c.status != 100:
                break
        lines = head.split(b"\r\n")
        fields = dict(x.split(b": ", 1) for x in lines[1:])
        c.head, c.type = head, fields.get(b"Content-Type", b"")
        c.close = fields.get(b"Connection") == b"close"
        c.chunked = fields.get(b"Transfer-Encoding") == b"chunked"
        if not lines[0].startswith(b"HTTP/1.1 ") or (b"X-Request-Id" not in fields) or c.chunked == (b"Content-Length" in fields):
            raise Broken("its head")
        c.left = 0 if c.chunked else int(fields[b"Content-Length"])
        return True

    def keep(self, c, data):
        c.size += len(data)
        c.parts.append(data)

    def take_body(self, c):
        if not c.chunked:
            if len(c.buf) < c.left and c.buf:
                self.keep(c, c.buf)
                c.left -= len(c.buf)
                c.buf = b""
            if len(c.buf) < c.left:
                return False
            self.keep(c, c.buf[:c.left])
            c.buf = c.buf[c.left:]
            return True
        while True:
            n = min(c.left, len(c.buf))  # of a chunk and its line end
            c.buf, c.left, c.size = c.buf[n:], c.left - n, c.size + n
            end = c.buf.find(b"\r\n")
            if c.left or end < 0:
                return False
            size = int(c.buf[:end], 16)
            if size == 0 and len(c.buf) < end + 4:
                return False
            c.buf = c.buf[end + (2 if size else 4):]
            if size == 0:
                return True
            c.left = size + 2

    def answered(self, c):
        op, body = c.op, b"".join(c.parts)
        took = time.monotonic() - op.began
        self.slowest = max(self.slowest, took)
        code = ""
        if c.status >= 400:
            try:
                code = self.typed(c, body)
            except (ValueError, KeyError, TypeError, AssertionError) as e:
                self.finding(c, f"no typed error: {e!r}: {c.status} {body[:300]!r}")
        elif c.type == b"application/json" and c.size < JSON_READ_BYTES and b"Lychgate-Upstream-Status" not in c.head:
            try:
                json.loads(body)
            except ValueError as e:
                self.finding(c, f"no JSON: {e!r}: {c.status} {body[:300]!r}")
        if c.status == 500 or code in INTERNAL:
            self.finding(c, f"an internal error: {c.status} {body[:400]!r}")
        if c.buf:
            self.finding(c, f"a second answer: {c.buf[:200]!r}")
        self.count(op, f"{c.status} {code}")
        if op.done:
            op.done(c.status, body)
        self.again(c, c.close or op.may_drop)

    def typed(self, c, body):
        e = json.loads(body)
        assert set(e) - {"expected"} == {"error_code", "title", "detail", "hint", "request_id"}, "its members"
        assert e["error_code"].startswith("LYCH-") and e["title"] and e["hint"] and e["request_id"], "an empty one"
        assert c.type == b"application/json", "its type"
        return e["error_code"]

    def count(self, op, answer):
        self.kinds[op.name] += 1
        self.answers[answer] += 1
        if op.is_bad:
            self.bad += 1
        else:
            self.good += 1

    def ended(self, c):
        """It hung up: fine where it could not read the head, and where a reply broke off upstream."""
        op = c.op
        if op.may_drop:
            self.dropped += 1
            self.count(op, "hung up")
        elif c.head is not None and c.chunked and op.name.split(" ")[0] in UPSTREAM:
            self.cut += 1
            self.count(op, f"{c.status}, cut")
        else:
            self.finding(c, f"hung up without an answer: {c.head!r} {c.buf[:200]!r}")
        self.again(c)

    def again(self, c, close=True):
        if close:
            self.close(c)
        c.op = None
        self.begin(c)
        if self.parked and self.api <= 50 + API_SHARE_MAX * self.sent:
            self.begin(self.parked.pop())

    def finding(self, c, what):
        """Of one kind the first."""
        op = c.op
        kind = op.name + re.sub(r"[0-9a-f]{16,}|[0-9]+", "", what)[:120]
        self.found[kind] += 1
        if self.found[kind] > 1:
            return
        under_way = [base64.b64encode(x.op.text[:100000]).decode() for x in self.conns if x.op and x is not c]
        self.findings.append({"what": what, "kind": kind, "name": op.name, "request": base64.b64encode(op.text[:2000000]).decode(),
                              "beside": under_way if len(self.findings) < 2 else []})

    # ---- all of them

    def run(self):
        for c in self.conns:
            try:
                self.begin(c)
            except OSError:
                pass
        last = time.monotonic()
        while any(c.op for c in self.conns):
            for fd, what in self.poll.poll(1):
                c = self.by_fd.get(fd)
                if c and what & select.EPOLLOUT and c.op:
                    self.push(c)
                if c and what & ~select.EPOLLOUT:
                    try:
                        self.readable(c)
                    except OSError:
                        self.lost(c)
            now = time.monotonic()
            if now - last > 1:
                last = now
                self.look(now)
        self.write()

    def lost(self, c):
        self.findings.append({"what": "nobody listens any more", "kind": "", "name": "", "request": "", "beside": []})
        c.op = None
        self.quota = 1

    def look(self, now):
        for c in self.conns:
            if c.op and c.op.is_stream and c.head is not None and now - c.op.began > STREAM_SEC:
                self.count(c.op, f"{c.status}, left")
                self.again(c)
            elif c.op and now - c.op.began > c.op.limit:
                self.finding(c, f"no answer after {now - c.op.began:.1f} s: {c.head!r}")
                try:
                    self.again(c)
                except OSError:
                    self.lost(c)
        self.write()

    def write(self):
        with open(self.report + ".new", "w", encoding="ascii") as f:
            json.dump({"kinds": self.kinds, "answers": self.answers, "findings": self.findings, "bad": self.bad, "good": self.good,
                       "cut": self.cut, "dropped": self.dropped, "slowest": self.slowest, "swept": self.mill.swept}, f)
        os.rename(self.report + ".new", self.report)


def run(seed, me, mills, web, tombs, leases, sockets, connections, quota, seconds, report):
    Client(Mill(seed, me, mills, web, tombs, leases), sockets, connections, quota, seconds, report).run()
