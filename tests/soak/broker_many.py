# SPDX-License-Identifier: Apache-2.0
"""Run by broker_many.sh: broker_many.py DIR BUILD. JOBS (200) jobs at once, over four tombs."""
import asyncio
import atexit
import hashlib
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

D, BUILD = sys.argv[1:3]
API = D + "/run/api/vessel.sock"
JOBS = int(os.environ.get("JOBS_AT_ONCE", "200"))
TOMBS = 4
ASKS = 20
WAVES = 2
BIG = 1 << 30
MIB = 1 << 20
# Every job has one ask under way, and whoever waits is served in the order of coming, so all
# come forward alike. Who is passed over in every second round takes twice the median's time.
TOTAL_MAX = 2.0
# One ask may meet a checkpoint or a full segment; one that is passed over again and again
# waits for so many rounds of all others.
ASK_MAX = 10.0
# Of private memory: what one wave leaves, and what a gigabyte that passes may hold at a time.
GROWTH_MAX = 8 * MIB

ASKING = """
import http.client, json, os, sys, time
c = http.client.HTTPConnection("127.0.0.1", 8787, timeout=300)
def ask(text):
    c.request("POST", "/v1/chat/completions",
              json.dumps({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": text}]}),
              {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
    r = c.getresponse()
    body = r.read()
    assert r.status == 200 and json.loads(body)["choices"], (r.status, body)
ask("wait for the others")
began, took = time.monotonic(), []
for i in range(%d):
    t = time.monotonic()
    ask("go on")
    took.append(time.monotonic() - t)
print(json.dumps({"total": time.monotonic() - began, "took": took}))
""" % ASKS

FETCHING = """
import hashlib, http.client, urllib.parse
c = http.client.HTTPConnection("127.0.0.1", 8787, timeout=300)
c.request("GET", "/fetch?url=" + urllib.parse.quote("http://127.0.0.1:%d/big", safe=""))
r = c.getresponse()
n, h = 0, hashlib.sha256()
while True:
    part = r.read(1 << 18)
    if not part:
        break
    n += len(part)
    h.update(part)
print(r.status, n, h.hexdigest())
"""


class World:
    """The provider and the web server. Those that wait are answered when all have come."""

    def __init__(self):
        self.waiting, self.most, self.asks = [], 0, 0
        self.piece = (b"0123456789abcdef" * 3 + b"a line of text.\n") * 1024
        self.loop = asyncio.new_event_loop()
        self.port = None
        threading.Thread(target=self.run, daemon=True).start()
        while self.port is None:
            time.sleep(0.01)

    def run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=512))
        self.port = server.sockets[0].getsockname()[1]
        self.loop.run_forever()

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = next((int(x.split(":")[1]) for x in head.split("\r\n") if x.startswith("content-length")), 0)
                body = await reader.readexactly(length)
                if head.startswith("get /big "):
                    await self.big(writer)
                else:
                    await self.ask(body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def ask(self, body, writer):
        self.asks += 1
        if b"wait for the others" in body:
            come = self.loop.create_future()
            self.waiting.append(come)
            self.most = max(self.most, len(self.waiting))
            if len(self.waiting) == JOBS:
                for w in self.waiting:
                    w.set_result(None)
                self.waiting = []
            await come
        answer = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}}],
                             "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                     % (len(answer), answer))
        await writer.drain()

    async def big(self, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % BIG)
        for _ in range(BIG // len(self.piece)):
            writer.write(self.piece)
            await writer.drain()

    def big_hash(self):
        h = hashlib.sha256()
        for _ in range(BIG // len(self.piece)):
            h.update(self.piece)
        return h.hexdigest()


world = World()
CODEX = f"""
version: "1"
portals:
  - name: main
    kind: openai
    url: "http://127.0.0.1:{world.port}/v1"
    secret: portal_main
    addresses:
      - 127.0.0.1
    models:
      - {{name: m, input: "0", output: "0"}}
ward:
  - {{portal: main, action: allow}}
  - host: 127.0.0.1
    scheme: http
    port: {world.port}
    path: /big
    action: allow
    addresses:
      - 127.0.0.1
budgets:
  job: {{requests: 1000000, tokens: 1000000000, money: "1000000", bytes: 100GiB, denials: 25}}
  identity_day: {{requests: 1000000, tokens: 1000000000, money: "1000000", bytes: 100GiB, denials: 25}}
  day: {{requests: 1000000, tokens: 1000000000, money: "1000000", bytes: 100GiB, denials: 25}}
egress: {{response_max: 2GiB, retries: 0}}
"""


class Api(http.client.HTTPConnection):
    def __init__(self):
        super().__init__("lychgate", timeout=60)
        self.slowest = 0.0

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(API)

    def call(self, method, path, body=None):
        began = time.monotonic()
        self.request(method, path, json.dumps(body) if body else None)
        r = self.getresponse()
        data = r.read()
        self.slowest = max(self.slowest, time.monotonic() - began)
        assert r.status in (200, 201), (method, path, r.status, data)
        return data


def start(name, *argv, wait=True, **more):
    """A daemon of ours, until it says that it is ready."""
    r, w = os.pipe()
    env = {"HOME": D + "/home", "PATH": os.environ["PATH"],
           **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}
    p = subprocess.Popen([BUILD + "/" + argv[0], *argv[1:], *(("--ready-fd", str(w)) if wait else ())],
                         env=env, stderr=open(f"{D}/{name}.log", "ab"), pass_fds=[w], **more)
    os.close(w)
    atexit.register(p.kill)
    if wait:
        assert b"READY=1\n" in os.fdopen(r, "rb", closefd=False), open(f"{D}/{name}.log").read()[-3000:]
    os.close(r)
    return p


def until(what, seconds, why):
    end = time.monotonic() + seconds
    while not (got := what()):
        assert time.monotonic() < end, why()
        time.sleep(0.05)
    return got


def descendants(pid):
    found, todo = [], [pid]
    while todo:
        p = todo.pop()
        found.append(p)
        for t in os.listdir(f"/proc/{p}/task"):
            with open(f"/proc/{p}/task/{t}/children") as f:
                todo += [int(c) for c in f.read().split()]
    return found


class Memory:
    """Private memory of the daemons, in bytes."""

    def __init__(self, vessel, scribe, tombs):
        workers = [p for p in descendants(vessel.pid) if p != vessel.pid]
        self.pids = {"vessel": vessel.pid, "scribe": scribe.pid,
                     **{f"worker {i}": p for i, p in enumerate(sorted(workers))},
                     **{f"tomb {i}": t.pid for i, t in enumerate(tombs)}}

    def now(self):
        return {who: self.of(pid) for who, pid in self.pids.items()}

    def of(self, pid):
        with open(f"/proc/{pid}/status") as f:
            return int(next(line for line in f if line.startswith("RssAnon")).split()[1]) * 1024


def grew(before, after, what):
    for who, was in before.items():
        print(f"memory, {what}: {who:9} {was / MIB:6.1f} -> {after[who] / MIB:6.1f} MiB")
    bad = {w: (before[w], after[w]) for w in before if after[w] > before[w] + GROWTH_MAX}
    assert not bad, f"{what}: more than {GROWTH_MAX // MIB} MiB more: {bad}"


def submit(api, program, name):
    spec = {"argv": ["python3", "-Sc", program], "egress": "brokered", "request_id": name,
            "limits": {"timeout_ms": 600000}}
    return json.loads(api.call("POST", "/v1/jobs", spec))["id"]


def result(api, job):
    def look():
        j = json.loads(api.call("GET", f"/v1/jobs/{job}"))
        return j if j["state"] in ("succeeded", "failed", "timed_out", "cancelled") else None
    j = until(look, 600, lambda: f"job {job} does not end")
    out, err = (api.call("GET", f"/v1/jobs/{job}/output?stream={s}").decode(errors="replace") for s in ("stdout", "stderr"))
    assert j["state"] == "succeeded", (job, j["state"], out, err)
    return out


def wave(api, n):
    world.most, before = 0, world.asks
    jobs = [submit(api, ASKING, f"wave-{n}-{i}") for i in range(JOBS)]
    told = [json.loads(result(api, j).splitlines()[-1]) for j in jobs]
    assert world.most == JOBS, f"only {world.most} were under way at once"
    assert world.asks - before == JOBS * (1 + ASKS), "an ask was made twice, or not at all"
    totals = sorted(t["total"] for t in told)
    asks = sorted(x for t in told for x in t["took"])
    middle, middle_ask = statistics.median(totals), statistics.median(asks)
    print(f"wave {n}: {JOBS} jobs, all asking at once, {len(asks)} asks in {totals[-1]:.1f} s "
          f"({len(asks) / totals[-1]:.0f} a second)")
    print(f"  a job's {ASKS} asks: fastest {totals[0]:.2f} s, median {middle:.2f} s, slowest {totals[-1]:.2f} s: "
          f"{totals[-1] / middle:.2f}x the median")
    print(f"  an ask: median {middle_ask * 1000:.0f} ms, p99 {asks[int(len(asks) * 0.99)] * 1000:.0f} ms, "
          f"slowest {asks[-1] * 1000:.0f} ms: {asks[-1] / middle_ask:.2f}x the median", flush=True)
    print(f"  what a person asks meanwhile: at most {api.slowest * 1000:.0f} ms", flush=True)
    assert totals[-1] <= TOTAL_MAX * middle, "a job was starved"
    assert asks[-1] <= ASK_MAX * middle_ask, "an ask was starved"


def main():
    for path, text in ((D + "/codex.yaml", CODEX), (D + "/pg/secrets/portal_main", "sk-" + "x" * 30)):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o600)
    scribe = start("scribe", "lych-scribe", "--dir", D + "/data/audit", "--socket-dir", D + "/run/audit")
    vessel = start("vessel", "lych-vessel", "serve", "--data", D + "/data/vessel", "--api-dir", D + "/run/api",
                   "--work-dir", D + "/run/work", "--pg-dir", D + "/pg/sock", "--audit-dir", D + "/run/audit",
                   "--secrets", D + "/pg/secrets", "--config", D + "/codex.yaml",
                   *(x for i in range(TOMBS) for x in ("--tomb", f"tomb_{i}")))
    tombs = []
    for i in range(TOMBS):
        os.mkdir(f"{D}/data/t{i}", 0o700)
        tombs.append(start(f"tomb{i}", "lych-tomb", "--name", f"tomb_{i}", "--data", f"{D}/data/t{i}/tomb",
                           "--work-dir", D + "/run/work", "--queue", "vessel", "--secrets", D + "/pg/secrets",
                           "--sandbox", BUILD + "/lych-sandbox", "--slots", str(-(-JOBS // TOMBS)),
                           "--grade", "full"))
    api = Api()
    memory = Memory(vessel, scribe, tombs)
    wave(api, 1)
    before = memory.now()
    for n in range(2, 1 + WAVES):
        wave(api, n)
    grew(before, memory.now(), f"{JOBS} jobs more")

    before = memory.now()
    most = dict(before)
    job = submit(api, FETCHING % world.port, "big")

    def look():
        for who, n in memory.now().items():
            most[who] = max(most[who], n)
        return json.loads(api.call("GET", f"/v1/jobs/{job}"))["state"] in ("succeeded", "failed", "timed_out")
    began = time.monotonic()
    until(look, 600, lambda: "the gigabyte does not come")
    said = result(api, job).split()
    assert said == ["200", str(BIG), world.big_hash()], said
    print(f"1 GiB through worker, vessel and tomb in {time.monotonic() - began:.1f} s, whole")
    grew(before, most, "the most while 1 GiB passed")
    for p in (*tombs, vessel, scribe):
        p.send_signal(signal.SIGTERM)
        assert p.wait(30) == 0
    print("nobody was starved, and nothing grew")


try:
    main()
except AssertionError:
    for log in sorted(os.listdir(D)):
        if log.endswith(".log") and log != "pg.log":
            print("---", log, open(f"{D}/{log}", errors="replace").read()[-2500:], file=sys.stderr)
    raise
