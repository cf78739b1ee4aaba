# SPDX-License-Identifier: Apache-2.0
"""Run by parent.sh: parent_flood.py RUN WORK_SECRET VESSEL_PID. What somebody sends who speaks
to the vessel's sockets and means it ill (threats 88, 89, 90, 93). The load is bounded: a few
hundred connections, some tens of MiB. After each the vessel answers, and at the end it holds no
more memory than before and none of the descriptors that were pushed at it."""
import array
import json
import os
import resource
import select
import socket
import sys
import time

RUN, SECRET_FILE, PID = sys.argv[1:]
API, WORK = RUN + "/api/vessel.sock", RUN + "/work/vessel.sock"
SECRET = open(SECRET_FILE, encoding="ascii").read().strip()
HOST = b"Host: lychgate\r\n"
GROWTH_MAX = 24 << 20
failed = 0
tried = 0


def check(what, ok, seen=""):
    global failed, tried
    tried += 1
    if not ok:
        failed += 1
        print("FAIL", what, str(seen)[:300])


def connect(path=API, timeout=20):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)  # waits for a place in the queue of the listener
    s.settimeout(timeout)
    return s


def answer(s):
    """All that comes until the end of the connection."""
    got = b""
    try:
        while len(got) < 1 << 20:
            part = s.recv(65536)
            if not part:
                break
            got += part
    except (ConnectionResetError, BrokenPipeError):
        pass
    return got


def send(data, path=API):
    s = connect(path)
    try:
        s.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass
    got = answer(s)
    s.close()
    return got


def post(body, extra=b"", length=None, path=b"/v1/jobs"):
    n = len(body) if length is None else length
    return (b"POST " + path + b" HTTP/1.1\r\n" + HOST + extra +
            b"Connection: close\r\nContent-Length: " + str(n).encode() + b"\r\n\r\n" + body)


def status():
    s = connect()
    try:
        s.sendall(b"GET /v1/status HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    except BrokenPipeError:
        pass  # told 503 and closed before it asked
    got = answer(s)
    s.close()
    return got


def alive(what):
    t = time.monotonic()
    got = status()
    check(what + ": others are served", got.startswith(b"HTTP/1.1 200 ") and time.monotonic() - t < 15,
          got[:100])


def rss():
    for line in open(f"/proc/{PID}/status", encoding="ascii"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("no VmRSS")


def refused(what, data, statuses=(400, 413, 431), path=API, once=True):
    got = send(data, path)
    check(what, any(got.startswith(b"HTTP/1.1 %d " % n) for n in statuses), got[:120])
    if once:
        check(what + ": one answer", got.count(b"HTTP/1.1 ") == 1, got[:300])


def lengths_and_texts():
    """88"""
    for n in ("4294967296", "18446744073709551616", "-1", "-4294967296", "0x10", "1e9", "+5", "",
              "9" * 400, "1073741824"):
        refused("length " + n[:20], b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Length: " +
                n.encode() + b"\r\n\r\n{}")
    refused("no body at all", post(b""))
    good = '{"argv":["true"]'
    texts = {
        "depth 100000": b'{"argv":' + b"[" * 100000 + b"]" * 100000 + b"}",
        "depth of objects": b'{"a":' * 50000 + b"1" + b"}" * 50000,
        "bad UTF-8": b'{"argv":["\xff\xfe"]}',
        "overlong UTF-8": b'{"argv":["\xc0\xaf"]}',
        "a surrogate": b'{"argv":["\\ud800"]}',
        "NUL": b'{"argv":["a\0b"]}',
        "an escaped NUL": b'{"argv":["a\\u0000b"]}',
        "a NUL in a key": b'{"argv":["true"],"x\\u0000":1}',
        "a key twice": b'{"argv":["true"],"argv":["false"]}',
        "a key twice, once escaped": b'{"argv":["true"],"\\u0061rgv":["false"]}',
        "1e999": (good + ',"limits":{"memory_bytes":1e999}}').encode(),
        "-1": (good + ',"limits":{"memory_bytes":-1}}').encode(),
        "2^64": (good + ',"limits":{"memory_bytes":18446744073709551616}}').encode(),
        "NaN": (good + ',"limits":{"memory_bytes":NaN}}').encode(),
        "bytes behind it": b'{"argv":["true"]}{}',
        "a NUL behind it": b'{"argv":["true"]}\0',
        "single quotes": b"{'argv':['true']}",
        "a raw control byte": b'{"argv":["a\x01"]}',
        "an array": b'[{"argv":["true"]}]',
        "half": b'{"argv":["tr',
        "nothing": b" ",
        "no wall": (good + ',"sandbox":false}').encode(),
        "another grade": (good + ',"grade":"none"}').encode(),
        "the host's network": (good + ',"network":"host"}').encode(),
        "open egress": (good + ',"egress":"open"}').encode(),
        "a wide profile": (good + ',"profile":"unconfined"}').encode(),
        "grants": (good + ',"grants":["/"]}').encode(),
    }
    for what, text in texts.items():
        refused(what, post(text))
    refused("16 MiB in one string", post(b'{"argv":["' + b"x" * (16 << 20) + b'"]}'), (413,))
    refused("16 MiB in one string, honest about 1", post(b'{"argv":["' + b"x" * (16 << 20) + b'"]}', length=1 << 20))
    alive("lengths and texts")


def encodings():
    """93"""
    refused("chunks without an end", b"POST /v1/jobs HTTP/1.1\r\n" + HOST +
            b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1000)
    refused("a chunk of 2^64", b"POST /v1/jobs HTTP/1.1\r\n" + HOST +
            b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n")
    refused("gzip, chunked", b"POST /v1/jobs HTTP/1.1\r\n" + HOST +
            b"Transfer-Encoding: gzip, chunked\r\n\r\n")
    # Nothing is decoded: a bomb is a text that is no JSON.
    import gzip
    refused("a gzip bomb", post(gzip.compress(bytes(64 << 20)), b"Content-Encoding: gzip\r\n"))
    refused("a header of 8 MiB", b"GET /v1/status HTTP/1.1\r\n" + HOST + b"X: " + b"y" * (8 << 20) + b"\r\n\r\n")
    refused("a header that never ends", b"GET /v1/status HTTP/1.1\r\n" + HOST + b"X-a: b\r\n" * 100000)
    refused("a line that never ends", b"GET /" + b"a" * (1 << 20))
    alive("encodings")


def slow_and_many():
    """89"""
    for path, head in ((API, b"GET /v1/sta"), (WORK, b"POST /work/v1/output HTTP/1.1\r\nHos")):
        half = [connect(path) for _ in range(120)]
        for s in half:
            s.sendall(head)
        alive("120 half requests on " + os.path.basename(os.path.dirname(path)))
        for s in half[:60]:
            s.sendall(b"x")  # a byte more now and then does not buy time for the others
        alive("and a byte each")
        for s in half:
            s.close()
    # Bodies that are announced and never come.
    slow = [connect() for _ in range(100)]
    for s in slow:
        s.sendall(post(b"{", length=1 << 20))
    alive("100 bodies that do not come")
    for s in slow:
        s.close()
    # 10^4 requests at once: one answer, the rest is dropped with the connection.
    one = b"GET /v1/status HTTP/1.1\r\n" + HOST + b"\r\n"
    got = send(one * 10000)
    check("10^4 pipelined: never more answers than were waited for", got.count(b"HTTP/1.1 ") <= 1, len(got))
    alive("10^4 pipelined")
    # Never reading: answers and events pile up nowhere.
    deaf = []
    for _ in range(60):
        s = connect()
        s.sendall(b"GET /v1/jobs?limit=500 HTTP/1.1\r\n" + HOST + b"\r\n")
        deaf.append(s)
    alive("60 that never read")
    for s in deaf[:30]:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()  # in the middle of the answer
    alive("30 that left in the middle")
    for s in deaf:
        s.close()
    # More than there are places: told so at once, and places come back.
    many = [connect() for _ in range(300)]
    busy = 0
    waiting = list(many)
    deadline = time.monotonic() + 15
    while busy < 300 - 256 and time.monotonic() < deadline:
        for s in select.select(waiting, [], [], 0.2)[0]:
            busy += s.recv(64).startswith(b"HTTP/1.1 503")
            waiting.remove(s)
    check("beyond the cap: 503, not a queue", busy >= 300 - 256, busy)
    for s in many:
        s.close()
    # It may meet the next connection before it meets the ends of these.
    deadline = time.monotonic() + 15
    while status().startswith(b"HTTP/1.1 503 ") and time.monotonic() < deadline:
        time.sleep(0.01)
    alive("300 connections")


def descriptors_and_oob():
    """90. The kernel lets a process push as many as its soft limit, counted over all of its user."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    each = 20 if limit == resource.RLIM_INFINITY else min(20, limit // 400)
    r, w = os.pipe()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w] * 200))]
    held = []
    for path in (API, WORK):
        for _ in range(each):
            s = connect(path)
            s.sendmsg([b"GET /v1/status HT"], rights)
            held.append(s)
    os.close(w)
    os.set_blocking(r, False)
    deadline = time.monotonic() + 15
    got = None
    while got is None and time.monotonic() < deadline:
        try:
            got = os.read(r, 1)
        except BlockingIOError:
            time.sleep(0.05)
    check(f"8000 descriptors pushed at it (here {400 * each}): none is kept, with the connections open",
          got == b"", got)
    for s in held:
        s.close()
    alive("descriptors")
    s = connect()
    try:
        s.sendall(b"GET /v1/status HTTP/1.1\r\n")
        for c in b"Host: lychgate":
            s.send(bytes([c]), socket.MSG_OOB)
        s.sendall(b"\r\n\r\n")
        got = answer(s)
        check("out-of-band bytes are not read into a request", b" 200 " not in got[:20], got[:60])
    except OSError as e:
        check("out-of-band refused", True, e)
    s.close()
    # Many writers on one connection: their bytes mix, and that is one bad request.
    s = connect()
    kids = []
    for _ in range(100):
        pid = os.fork()
        if pid == 0:
            for part in (b"GET /v1", b"/status H", b"TTP/1.1\r\n", HOST, b"\r\n"):
                try:
                    s.sendall(part)
                except OSError:
                    break
            os._exit(0)
        kids.append(pid)
    for pid in kids:
        os.waitpid(pid, 0)
    got = answer(s)
    # Those who were not interrupted wrote whole requests, one after the other.
    check("100 writers on one connection: no more answers than writers", got.count(b"HTTP/1.1 ") <= 100,
          len(got))
    s.close()
    alive("100 writers")


def leases():
    """94, beside test_queue_sql.c and test_vessel_api.sh: the tomb's secret alone opens nothing."""
    for job in ("1", "2", "0", "-1", "9223372036854775807", "18446744073709551616"):
        got = send(b"POST /work/v1/output?stream=stdout&offset=0 HTTP/1.1\r\n" + HOST +
                   b"Authorization: Bearer " + SECRET.encode() + b"\r\nLychgate-Tomb: tomb_1\r\nLychgate-Version: 1\r\n"
                   b"Lychgate-Job: " + job.encode() + b"\r\nLychgate-Epoch: 1\r\n"
                   b"Lychgate-Token: 00000000-0000-4000-8000-000000000000\r\n"
                   b"Connection: close\r\nContent-Length: 6\r\n\r\nforged", WORK)
        check("a forged lease of job " + job, got[9:12] in (b"400", b"403", b"404", b"410"), got[:120])
        check("is typed", b"LYCH-" in got, got[-200:])


before = rss()
for group in (lengths_and_texts, encodings, slow_and_many, descriptors_and_oob, leases):
    group()
grown = rss() - before
check("memory is flat", grown < GROWTH_MAX, grown)
with connect() as c:
    c.sendall(b"GET /v1/jobs?limit=500 HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
    body = answer(c).split(b"\r\n\r\n", 1)[1]
states = {}
for j in json.loads(body)["jobs"]:
    states[j["state"]] = states.get(j["state"], 0) + 1
check("no job came of it", sum(states.values()) <= 4, states)
print(f"flood: {tried} checks, {failed} failed, memory grew by {grown >> 10} KiB")
sys.exit(failed != 0)
