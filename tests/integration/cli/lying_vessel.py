# SPDX-License-Identifier: Apache-2.0
"""For test_lying_vessel.sh: LYCH SOCKET FILE. A socket in the vessel's place that gives every request one answer."""
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time

LYCH, SOCKET, FILE = sys.argv[1:]
EVIL = "\x1b]0;title\x07\x1b[31m\x9b2J\u202e"
answer = order = b""
kept = []
failed = []


def serve(server):
    while True:
        c, _ = server.accept()
        request = b""
        while b"\r\n\r\n" not in request:
            request += c.recv(65536)
        try:
            c.sendall(reply(200, b"x", "application/octet-stream") if b"/artifacts/" in request
                      else order if b"/order" in request else answer)
            if answer:
                c.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it had enough
        kept.append(c)


def reply(status, body, content_type="application/json"):
    if not isinstance(body, bytes):
        body = json.dumps(body, ensure_ascii=False).encode()
    return (f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def lych(*args, timeout=30):
    p = subprocess.run([LYCH, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")


def check(what, ok, got):
    if not ok:
        failed.append(what)
        print(f"FAIL {what}: {got}")


def is_clean(text):
    return all(c in "\n\t" or (c.isprintable() and c != "\u202e") for c in text)


AMOUNT = {"requests": 1, "tokens": 2, "money": 3, "bytes": 4, "denials": 5, "packages": 6}
JOB = {"id": 1, "request_id": EVIL, "state": EVIL, "class": EVIL, "queue": EVIL, "priority": 100, "attempts": 1,
       "created_at": EVIL, "started_at": EVIL, "finished_at": EVIL, "argv": [EVIL], "origin": EVIL, "phase": EVIL,
       "result": {"detail": EVIL, "exit_code": 0, EVIL: EVIL}}
EACH = {
    ("jobs",): {"jobs": [JOB], "next": None},
    ("show", "1"): JOB,
    ("why", "1"): JOB,
    ("cancel", "1", "--no-wait"): JOB,
    ("artifacts", "1"): {"artifacts": [{"n": 0, "path": EVIL, "size": 1, "sha256": "0" * 64}], **JOB},
    ("portals",): {"portals": [{"name": EVIL, "kind": EVIL, "url": EVIL, "secret": EVIL,
                                "models": [{"name": EVIL, "input_micro": 1, "output_micro": 2}]}],
                   "registries": [{"name": EVIL, "url": EVIL}]},
    ("budget",): {"books": [{"scope": EVIL, "key": EVIL, "spent": AMOUNT, "reserved": AMOUNT, "limit": AMOUNT}]},
    ("ward", "list"): {"rules": [{"name": EVIL, "host": EVIL, "action": EVIL, "line": 1}]},
    ("private", "list"): {"entries": [{"id": 1, "kind": EVIL, "bytes": 1, "created": EVIL, "name": EVIL}]},
    ("gate", "scan", FILE): {"verdict": EVIL, "score": 0.5, "findings": [
        {"family": EVIL, "rule": EVIL, "severity": 1, "offset": 0, "length": 1, "depth": 0, "mac": EVIL}]},
}

EXIT = {"show": 1, "why": 1, "cancel": 1, "artifacts": 1}  # its state is none; no path
LIES = [  # what, answer, code
    ("one without a length", b"HTTP/1.1 200 X\r\n\r\n{}", "LYCH-HTTP-008"),
    ("no JSON", reply(200, b"{"), "LYCH-HTTP-009"),
    ("a list", reply(200, b"[]"), "LYCH-HTTP-009"),
    ("an error that has no code", reply(500, b"{}"), "LYCH-HTTP-009"),
]
with socket.socket(socket.AF_UNIX) as s:
    s.bind(SOCKET)
    os.chmod(SOCKET, 0o600)
    s.listen(64)
    threading.Thread(target=serve, args=(s,), daemon=True).start()

    for args, body in EACH.items():
        for what, status in (("an answer", 200), ("a refusal", 409)):
            answer = reply(status, body if status == 200 else
                           {"error_code": "LYCH-RUN-002", "title": EVIL, "detail": EVIL, "hint": EVIL})
            rc, out, err = lych(*args)
            check(f"{args}: {what} with escapes", is_clean(out + err) and rc == (EXIT.get(args[0], 0) if status == 200 else 1), (rc, out, err))
        for what, answer, code in LIES + [("an answer of other types", reply(200, {k: 1 for k in body}), "LYCH-HTTP-009")]:
            rc, out, err = lych(*args)
            check(f"{args}: {what}", rc not in (0, 2) and code in err, (rc, out, err))

    good = {"n": 0, "path": "good", "size": 1, "sha256": hashlib.sha256(b"x").hexdigest(), "class": "file"}
    for bad in ({**good, "n": "1"}, {**good, "class": None}, {"path": "bad"}, 7):
        answer = reply(200, {**JOB, "state": "succeeded", "artifacts": [good, bad]})
        rc, out, err = lych("artifacts", "1", "--force", "--out", os.path.dirname(FILE) + "/got")
        check(f"a second artifact that is none: {bad}", rc == 1 and "LYCH-HTTP-009" in err, (rc, out, err))

    # how long ago a job ended is not for this machine's clock to say
    ended = {**JOB, "state": "succeeded", "taint": None, "result": None}
    page = {"jobs": [{**ended, "finished_at": "2099-01-01T00:00:00.000Z"}]}
    answer = reply(200, {**page, "next": None})
    rc, out, err = lych("prune", "--older", "7d", "--dry-run", "--json")
    check("what is pruned, by the vessel's clock", rc == 0 and [j["id"] for j in json.loads(out)["jobs"]] == [1], (rc, out, err))
    for more in {}, {"next": "5"}, {"next": 0}, {"next": 7}:  # the last: a page that comes again
        answer = reply(200, {**page, **more})
        rc, out, err = lych("prune", "--older", "7d", "--dry-run")
        check(f"a page after which is none: {more}", rc == 1 and "LYCH-HTTP-009" in err and not out, (rc, out, err))

    lies = {"epoch": 1, "stdout_bytes": 1 << 40, "stderr_bytes": 0, "pieces": []}
    piece = {"stream": "stdout", "end": 1, "sec": 1}
    answer = reply(200, b"x" * 8, "application/octet-stream")
    for bad in ([{**piece, "stream": EVIL}], [{**piece, "end": -1}], [{**piece, "sec": "1"}], [7], EVIL, [piece] * 131073):
        order = reply(200, {**lies, "pieces": bad})
        rc, out, err = lych("logs", "1")
        check(f"an order that is none: {str(bad)[:60]}", rc == 1 and "LYCH-HTTP-009" in err and not out and is_clean(err), (rc, out, err))
    # pages without an end, pieces that go back, and more bytes than there are: as many of these as come
    order = reply(200, {**lies, "stdout_bytes": 8, "pieces": [{**piece, "end": e} for e in (4, 2, 1 << 50, 3)] * 2048})
    rc, out, err = lych("logs", "1", timeout=100)
    check("pages of an order without an end", rc == 0 and out == "x" * 8, (rc, out, err))

    order = reply(200, lies)
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer += (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 400
    rc, out, err = lych("logs", "1", timeout=100)
    check("a log without an end", rc == 1 and "LYCH-HTTP-009" in err and len(out) < 65536 * 300, (rc, len(out), err))

    answer = b""
    began = time.monotonic()
    rc, out, err = lych("logs", "1", timeout=100)
    took = time.monotonic() - began
    check("a log that does not come", rc == 4 and "LYCH-HTTP-008" in err and 55 < took < 75, (rc, took, out, err))

print(f"lying_vessel: {len(EACH) * 7 + 18} answers")
sys.exit(bool(failed))
