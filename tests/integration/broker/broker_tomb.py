# SPDX-License-Identifier: Apache-2.0
"""A vessel that is none, on the work socket: it gives a tomb jobs by name and answers what
their brokers ask, so that the tomb's side of the broker is judged with real sandboxes and
nothing behind it. Usage: broker_tomb.py SOCKET full|floor"""
import asyncio
import base64
import json
import os
import sys
import time
import uuid

SOCKET, GRADE = sys.argv[1:3]

SAMPLING = r"""
samples, going = [], True
while going:
    t = time.monotonic()
    told = json.loads(ask())
    samples.append("%.6f %.6f" % (t, time.monotonic() - t))
    assert told["ok"], "no answer"
    going = not told.get("stop")
print("\n".join(samples))
"""

GOOD = r"""
import json, os, time, urllib.request
def ask():
    r = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps({"model": "m", "messages": []}).encode(),
        headers={"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
    return urllib.request.urlopen(r, timeout=60).read()
""" + SAMPLING

# Descriptor 3, by hand: common/proto/broker_proto.h.
FRAMES = r"""
import array, json, os, socket, time
S = socket.socket(fileno=3)
S.settimeout(30)
def head(id, size, path="/v1/chat/completions"):
    return b"H" + json.dumps({"id": id, "method": "POST", "path": path, "body_bytes": size, "headers": {
        "authorization": "Bearer " + os.environ["LYCHGATE_BROKER_KEY"], "content-type": "application/json"}}).encode()
def answer(id):
    got, mine = b"", False
    while True:
        p = S.recv(65536)
        if not p: return "closed"
        if p[:1] == b"X": return json.loads(p[1:])["code"]
        if p[:1] == b"H": mine = json.loads(p[1:])["id"] == id
        elif p[:1] == b"D" and mine: got += p[1:]
        elif p[:1] == b"E" and mine: return got
def send(id, body):
    S.send(head(id, len(body)))
    for i in range(0, len(body), 65535): S.send(b"D" + body[i:i + 65535])
    S.send(b"E")
def ask(body=b'{"model": "m", "messages": []}', id="a"):
    send(id, body)
    return answer(id)
"""

GOOD_FLOOR = FRAMES + SAMPLING

CYCLES = int(os.environ.get("CYCLES", "10"))  # 0: what is refused, no measurement
PHASE_SEC = 1.5
EDGE_SEC = 0.1  # what the phase before left behind
SAMPLES_MIN = 1000  # ten of them lie above a p99

# What a hostile job says, in the order of the list; it ends when it is told to.
HOSTILE = r"""
import os, resource, socket, time
KEY = os.environ["OPENAI_API_KEY"]
HEAD = "Host: 127.0.0.1:8787\r\nAuthorization: Bearer " + KEY + "\r\n"
def say(data, wait=2):
    s = socket.create_connection(("127.0.0.1", 8787), timeout=wait)
    got = b""
    try:
        s.sendall(data)
        while True:
            part = s.recv(65536)
            if not part: break
            got += part
    except OSError:
        pass
    s.close()
    return got
def post(body, more=""):
    return ("POST /v1/chat/completions HTTP/1.1\r\n" + HEAD + more + "Content-Length: %d\r\n\r\n" % len(body)).encode() + body
def check(name, got, *texts):
    print(name, "ok" if all(t in got for t in texts) else "BAD %r" % got[:600], flush=True)
# pipelining: the second one is never answered
got = say(post(b"{}") + post(b'{"model":"second"}'))
check("pipelining", got, b"HTTP/1.1 200") if got.count(b"HTTP/1.1") == 1 else print("pipelining BAD", got)
# smuggling
for h in ("Transfer-Encoding: chunked\r\n", "Content-Length: 4\r\n", "content-length : 5\r\n", "X: a\x00b\r\n", "X: a\r\n folded\r\n"):
    check("smuggling", say(post(b"{}GET /x HTTP/1.1\r\n\r\n", h)), b"HTTP/1.1 400", b"LYCH-HTTP-001")
check("host", say(b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n"), b" 400 ")
check("4GiB", say(("POST /v1/messages HTTP/1.1\r\n" + HEAD + "Content-Length: 4294967296\r\n\r\n").encode()), b" 413 ", b"request_too_large")
check("depth", say(post(b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}"), 30), b" 400 ", b"LYCH-SPEC-001")
check("values", say(post(b'{"a":[' + b"1," * 2000000 + b"1]}"), 30), b" 400 ", b"too many values")
check("key", say(b"GET /v1/models HTTP/1.1\r\nHost: localhost:8787\r\nAuthorization: Bearer sk-guess\r\n\r\n"), b" 401 ", b"LYCH-BROKER-020")
check("registry", say(b"GET /registry/npm/x HTTP/1.1\r\nHost: localhost:8787\r\n\r\n"), b" 403 ", b"LYCH-BROKER-021")
check("away", say(post(b'{"model":"cut"}'), 30), b" 503 ", b"LYCH-BROKER-024")
# a reader that leaves in the middle
s = socket.create_connection(("127.0.0.1", 8787))
s.sendall(post(b'{"model":"stream","stream":true}'))
while b"data: 1" not in s.recv(65536): pass
s.close()
# Three phases that take turns, so that whatever else this machine does disturbs all alike.
# Slow heads, slow bodies, and connections as many as it may have:
slow, made = [], 0
big = post(b'{"a":"' + b"x" * 4000000 + b'"}')
def flood():
    global made
    try:
        s = socket.socket()
        s.setblocking(False)
        try: s.connect(("127.0.0.1", 8787))
        except BlockingIOError: pass
        made += 1
        slow.append(s)
    except OSError:
        time.sleep(0.001)
    for i, c in enumerate(slow[-3:]):
        try: c.send((b"G", big[:3000], b"POST /v1/messages HTTP/1.1\r\n")[i % 3])
        except OSError: pass
    if len(slow) > 600: drop(500)
def drop(n):
    for c in slow[:n]: c.close()
    del slow[:n]
# what any job may do to the machine: with that the flood is compared, not with rest alone
def burn():
    for _ in range(1000): pass
def rest():
    time.sleep(0.01)
def phase(what, seconds):
    began = time.monotonic()
    while time.monotonic() < began + seconds: what()
    print("phase", what.__name__, "%.6f %.6f" % (began, time.monotonic()), flush=True)
    drop(len(slow))
for _ in range(CYCLES):
    for what in (rest, burn, flood): phase(what, PHASE_SEC)
for _ in range(40):
    if made < 10000: phase(flood, PHASE_SEC)
print("connections", made, flush=True)
""".replace("CYCLES", str(CYCLES)).replace("PHASE_SEC", str(PHASE_SEC))

# The same for descriptor 3: after each refusal the next request of the same job is answered.
HOSTILE_FLOOR = FRAMES + r"""
def check(name, got, text):
    ok = text in (got.decode() if isinstance(got, bytes) else got)
    after = ask()
    print(name, "ok" if ok and b'"ok": true' in after else "BAD %r, then %r" % (got, after), flush=True)
def raw(*packets):
    for p in packets: S.send(p)
    return answer("r")
BAD = "LYCH-BROKER-025"
check("garbage", raw(b"\x00" * 100), BAD)
check("random", raw(b"\xff" + os.urandom(60000)), BAD)
check("head of nonsense", raw(b"H{{{"), "LYCH-SPEC-001")
check("depth", raw(b'H{"id":' + b"[" * 8000), "LYCH-SPEC-001")
check("large head", raw(b"H" + b" " * 60000), "LYCH-")
check("no size", raw(head("r", 4 << 30)), "LYCH-HTTP-004")
check("more than it said", raw(head("r", 2), b"D" + b"x" * 100), BAD)
check("less than it said", raw(head("r", 2), b"D{", b"E"), BAD)
check("deep body", ask(b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}"), "LYCH-SPEC-001")
r, w = os.pipe()
os.set_blocking(r, False)
S.sendmsg([head("r", 2)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w] * 100))])
got = answer("r")
os.close(w)
held = True
end = time.monotonic() + 10
while held and time.monotonic() < end:
    try: held = os.read(r, 1) != b""
    except BlockingIOError: time.sleep(0.01)
check("descriptors" + (", HELD: BAD" if held else ""), got, BAD)
# a second request while the first is answered takes its place; the first is heard no more
send("one", b'{"model":"stream","stream":true}')
while b"data: 1" not in S.recv(65536): pass
send("two", b'{"model":"m"}')
got = answer("two")
check("second in flight", got, '"ok": true')
# a body that never ends, then another
S.send(head("three", 1000)); S.send(b"D{")
check("half a request", ask(id="four"), '"ok": true')
S.setblocking(False)
n = 0
def flood():
    global n
    for p in (b"\x00garbage", b"H{", head("f%d" % (n % 9), 4000000), b"D" + b"x" * 60000, b"E", head("g", 2), b"D{}", b"E"):
        try: S.send(p); n += 1
        except OSError: pass
    try:
        while True: S.recv(65536)
    except OSError:
        pass
def burn():
    for _ in range(1000): pass
def rest():
    time.sleep(0.01)
def phase(what, seconds):
    began = time.monotonic()
    while time.monotonic() < began + seconds: what()
    print("phase", what.__name__, "%.6f %.6f" % (began, time.monotonic()), flush=True)
for _ in range(CYCLES):
    for what in (rest, burn, flood): phase(what, PHASE_SEC)
print("frames", n, flush=True)
""".replace("CYCLES", str(CYCLES)).replace("PHASE_SEC", str(PHASE_SEC))

# The clients that a shell has, in both grades.
CLIENTS = r"""
import os, subprocess
fds = (3,) if os.environ["LYCHGATE_BROKER"] == "fd:3" else ()
def run(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, pass_fds=fds)
    return r.returncode, r.stdout + r.stderr
for i in range(3):
    code, text = run("lych-ask", "-m", "m", "hello")
    print("ask", "ok" if code == 0 and "from the brain" in text else "BAD %d %r" % (code, text), flush=True)
code, text = run("lych-ask", "-m", "cut", "hello")
print("cut", "ok" if code != 0 and "LYCH-BROKER-024" in text else "BAD %d %r" % (code, text), flush=True)
print("end", flush=True)
"""

JOBS = {"good": GOOD if GRADE == "full" else GOOD_FLOOR,
        "hostile": HOSTILE if GRADE == "full" else HOSTILE_FLOOR, "clients": CLIENTS}
SENT_MIN = {"full": ("connections", 10000), "floor": ("frames", 10000)}

ANSWER = json.dumps({"ok": True, "object": "chat.completion", "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "from the brain"}}]}).encode()


class Vessel:
    def __init__(self):
        self.waiting, self.ids, self.leases, self.output, self.ended = [], {}, {}, {}, {}
        self.asks, self.seqs, self.left, self.next, self.seq = 0, set(), [], 1, 1
        self.changed = asyncio.Event()
        self.stop = False  # the good job's next answer is its last

    def give(self, name):
        job, self.next = self.next, self.next + 1
        token = str(uuid.uuid4())
        spec = {"argv": ["/usr/bin/python3", "-c", JOBS[name]], "egress": "brokered"}
        self.waiting.append({"job": job, "epoch": 1, "token": token, "attempt": 1,
                             "spec": base64.b64encode(json.dumps(spec).encode()).decode()})
        self.ids[job], self.leases[str(job)], self.output[job] = name, token, b""
        self.seq += 1
        self.changed.set()
        return job

    async def finished(self, job, seconds=150):
        until = time.monotonic() + seconds
        while job not in self.ended:
            if time.monotonic() > until:
                raise SystemExit(f"FAIL: job {self.ids[job]} does not end: {self.output[job]!r}")
            await asyncio.sleep(0.05)
        return self.output[job].decode(errors="replace"), self.ended[job]

    async def serve(self, reader, writer):
        try:
            while await self.one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *lines = head.split("\r\n")
        method, target, _ = line.split(" ")
        headers = {n.lower(): v.strip() for n, _, v in (x.partition(":") for x in lines if x)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        path = target.partition("?")[0]
        job = int(headers.get("lychgate-job", 0))
        if job and self.leases.get(str(job)) != headers.get("lychgate-token"):
            raise SystemExit("FAIL: a request with another job's token")
        if path == "/work/v1/ask":
            return await self.ask(json.loads(body), job, writer)
        if path == "/work/v1/fetch":
            return await self.fetch(json.loads(body), job, writer)
        answer = await self.answer(path, target, body, job)
        writer.write(self.http(json.dumps(answer).encode()))
        await writer.drain()
        return True

    def http(self, body, more=b""):
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s" % (more, len(body), body)

    async def answer(self, path, target, body, job):
        if path == "/work/v1/hello":
            return {"protocol": 1, "release": json.loads(body)["release"]}
        if path == "/work/v1/hints":
            after = int(target.partition("after=")[2] or 0)
            if self.seq <= after:
                self.changed.clear()
                try:
                    await asyncio.wait_for(self.changed.wait(), 10)
                except asyncio.TimeoutError:
                    pass
            return {"seq": self.seq}
        if path == "/work/v1/claim":
            n = json.loads(body)["n"]
            given, self.waiting = self.waiting[:n], self.waiting[n:]
            return {"jobs": given}
        if path == "/work/v1/extend":
            return {"leases": [{"job": x["job"], "status": "ok"} for x in json.loads(body)["leases"]]}
        if path in ("/work/v1/ack", "/work/v1/fail", "/work/v1/release"):
            self.ended[job] = path
            return {"answer": "ok"}
        if path == "/work/v1/output":
            self.output[job] += body
            return {"size": int(target.partition("offset=")[2]) + len(body)}
        return {}

    async def fetch(self, intent, job, writer):
        raise SystemExit(f"FAIL: a fetch: {intent}")

    async def ask(self, intent, job, writer):
        if set(intent) != {"seq", "dialect", "stream", "request"} or (job, intent["seq"]) in self.seqs:
            raise SystemExit(f"FAIL: intent {intent}")
        self.seqs.add((job, intent["seq"]))
        self.asks += 1
        model = intent["request"].get("model")
        if model == "second":
            raise SystemExit("FAIL: a pipelined request came through")
        if model == "cut":
            return False
        if model == "stream":
            writer.write(b"HTTP/1.1 200 OK\r\nLychgate-Upstream-Status: 200\r\nContent-Type: text/event-stream\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
            began = time.monotonic()
            while time.monotonic() - began < 30:
                if writer.is_closing() or writer.transport.get_extra_info("socket") is None:
                    break
                try:
                    writer.write(b"9\r\ndata: 2\n\n\r\n")
                    await writer.drain()
                except ConnectionError:
                    break
                await asyncio.sleep(0.05)
            self.left.append(time.monotonic() - began)
            return False
        writer.write(self.http(ANSWER[:-1] + b', "stop": true}' if self.stop else ANSWER, b"Lychgate-Upstream-Status: 200\r\n"))
        await writer.drain()
        return True


def p99_by_phase(good, hostile):
    """{phase: (p99, samples)} of the good job's asks; the edges of a phase belong to neither."""
    asks = sorted(tuple(map(float, line.split())) for line in good.splitlines())
    spans = [line.split()[1:] for line in hostile.splitlines() if line.startswith("phase ")]
    took = {}
    for name, began, ended in spans:
        took.setdefault(name, []).extend(t for at, t in asks if float(began) + EDGE_SEC <= at <= float(ended))
    return {name: (sorted(v)[int(len(v) * 0.99)], len(v)) for name, v in took.items()}


async def main():
    v = Vessel()
    server = await asyncio.start_unix_server(v.serve, SOCKET, limit=1 << 24)
    said, end = await v.finished(v.give("clients"))
    if "BAD" in said or "end" not in said:
        raise SystemExit(f"FAIL: lych-ask in {GRADE}: {said}")
    print(f"ok: lych-ask in {GRADE}")
    good, hostile = v.give("good"), v.give("hostile")
    said, _ = await v.finished(hostile, 240)
    assert good not in v.ended, v.output[good][-1000:]
    v.stop = True
    asks, end = await v.finished(good)
    assert end == "/work/v1/ack", (end, asks[-500:])
    print("\n".join(x for x in said.splitlines() if not x.startswith("phase ")))
    bad = [x for x in said.splitlines() if "BAD" in x]
    what, least = SENT_MIN[GRADE]
    made = [int(x.split()[1]) for x in said.splitlines() if x.startswith(what + " ")]
    if bad or not made or (CYCLES and made[0] < least):
        raise SystemExit(f"FAIL: hostile: {bad or said}")
    if CYCLES:
        judge(asks, said)
    if not v.left or v.left[0] > 5:
        raise SystemExit(f"FAIL: the reader that left was not noticed: {v.left}")
    print(f"ok: the reader that left was noticed after {v.left[0]:.2f} s")
    server.close()


def judge(asks, said):
    took = p99_by_phase(asks, said)
    print("p99 of another job's asks: " + ", ".join(f"{n} {t * 1000:.1f} ms of {k}" for n, (t, k) in took.items()))
    assert all(k >= SAMPLES_MIN for _, k in took.values()), took
    ratio = took["flood"][0] / max(took["rest"][0], took["burn"][0])
    print(f"the flood against the worse of the others: {ratio:.2f}x")
    if ratio > 2:
        raise SystemExit("FAIL: one job's traffic is felt by another's asks")


if __name__ == "__main__":
    asyncio.run(main())
