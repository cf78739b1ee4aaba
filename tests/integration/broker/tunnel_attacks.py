# SPDX-License-Identifier: Apache-2.0
"""Run by test_tunnel_attacks.sh: tunnel_attacks.py SOCKET full. Jobs attack their own HTTPS proxy while another's goes on; the vessel is a
stand-in. The cases are tunnel_cases.py. What is left afterwards of descriptors, processes and keys is looked for."""
import asyncio
import json
import os
import time

import ec_key
import tunnel_cases
from tunnel import SOCKET, WORK, Tunnels, of_jobs, tls_processes
from tunnel_client import HOST

TOP = os.path.dirname(WORK)
MIB = 1 << 20
# A sanitizer keeps what was freed, and has terabytes that are not there: then memory is neither measured nor read.
READABLE = not os.environ["LYCH_BUILD"].endswith("asan")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")  # what the vessel knows
NEIGHBOUR = r"""
import os, time, urllib.request
print("authority", open(os.environ["SSL_CERT_FILE"]).read().encode().hex(), flush=True)
n, got = 0, b""
while got != b"stop":
    n += 1
    got = urllib.request.urlopen("https://%s/neighbour/%d" % ("HOST", n), timeout=120).read()
    time.sleep(0.02)
print("the end", flush=True)
""".replace("HOST", HOST)
EARLIER = r"""
import os
print("authority", open(os.environ["SSL_CERT_FILE"]).read().encode().hex(), flush=True)
"""
ALL = "import tunnel_cases; tunnel_cases.run()"
# Tunnels with half a handshake each, as many as it gets and more; it ends with all of them open.
HALF = r"""
import time, tunnel_cases, tunnel_client as t
held, told, began = [], [], time.monotonic()
for i in range(200):
    s, status = t.ask_tunnel("CONNECT %s:443 HTTP/1.1" % t.HOST)
    t.push(s, t.record(t.HANDSHAKE, t.hello()[:100], length=400))
    told.append(status)
    if status == "200": held.append(s)
    else: s.close()
took = time.monotonic() - began
tunnel_cases.ask("/step/half")
print("open", told.count("200"), "too many", told.count("429 LYCH-TUNNEL-004"), "in time" if took < 9 else "the first are over", flush=True)
"""
# It ends in the middle of a reply, with another request half said and a tunnel that says nothing.
LEAVES = r"""
import os, tunnel_client as t
one, two, three = t.tls(), t.tls(), t.open_tunnel()
one.sendall(t.get("/forever").encode())
print("reply", one.recv(12), flush=True)
two.sendall(t.post("/never", "hello", length=10).encode())
os._exit(0)
"""


def refusal(code, detail):
    text = json.dumps({"error_code": code, "title": "t", "detail": detail, "hint": "h", "request_id": "r"}).encode()
    return b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)


class Attacked(Tunnels):
    def __init__(self):
        super().__init__()
        self.sent, self.beside, self.left, self.open = [], 0, 0, 0
        self.pids = []  # of the TLS processes of other jobs

    async def serve(self, reader, writer):
        self.open += 1
        try:
            await super().serve(reader, writer)
        finally:
            self.open -= 1

    async def fetch(self, intent, job, writer):
        method, url = intent["method"], intent["url"]
        path = url.removeprefix(f"https://{HOST}/")
        text = b"go on"
        if method not in METHODS:
            writer.write(refusal("LYCH-WARD-001", "method"))
            await writer.drain()
            return True
        if path.startswith("neighbour/"):
            self.beside += 1
            text = b"stop" if self.stop else text
        elif path.startswith("step/"):
            if path.endswith("0") or not path[-1].isdigit():
                await self.neighbour_goes_on()
            if path == "step/end":
                await self.tunnels_wait()
        elif path == "forever":
            return await self.forever(writer)
        else:
            self.sent.append(f"{method} {url.removeprefix('https://' + HOST)}")
            text = b"x" * (3 * MIB) if path.endswith("/large") else text
        writer.write(b"HTTP/1.1 200 OK\r\nLychgate-Upstream-Status: 200\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" %
                     (len(text), text))
        await writer.drain()
        return True

    async def neighbour_goes_on(self):
        """Two more: one of them began after this."""
        until, now = time.monotonic() + 60, self.beside
        while self.beside < now + 2:
            if time.monotonic() > until:
                raise SystemExit("FAIL: another job's requests stand still")
            await asyncio.sleep(0.005)

    async def tunnels_wait(self):
        """Some are held: half a request, a reply that nobody reads. They cost nothing."""
        pid, = set(of_jobs()) - set(self.pids)
        before = processor_sec(pid)
        await asyncio.sleep(1)
        if processor_sec(pid) - before > 0.5:
            raise SystemExit("FAIL: tunnels in which nothing happens take a processor")

    async def forever(self, writer):
        """A reply without an end, until nobody takes it any more."""
        writer.write(b"HTTP/1.1 200 OK\r\nLychgate-Upstream-Status: 200\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(3000):
                writer.write(b"5\r\nhello\r\n")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            self.left += 1
        return False


async def becomes(what, why, seconds=60):
    until = time.monotonic() + seconds
    while not (got := what()):
        if time.monotonic() > until:
            raise SystemExit(f"FAIL: {why}")
        await asyncio.sleep(0.02)
    return got


def authority(said):
    line = next((x for x in said.splitlines() if x.startswith("authority ")), None)
    return line and bytes.fromhex(line.split()[1]).decode()


# ---- what is left ----

def tomb():
    """Its process: the parent of the parent of the TLS processes."""
    all_ = tls_processes()
    return next(parent for pid, parent in all_.items() if parent not in all_)


def descriptors(pid, v):
    """But for the connections to the vessel, of which it keeps some."""
    return len(os.listdir(f"/proc/{pid}/fdinfo")) - v.open


def memory_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("VmRSS:"))


def processor_sec(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


async def at_rest(pid, v):
    """Its descriptors at the quietest moment of a second: another job's requests come and go."""
    least = descriptors(pid, v)
    for _ in range(50):
        await asyncio.sleep(0.02)
        least = min(least, descriptors(pid, v))
    return least


def below(top):
    """Every process that comes from it."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                parents[int(pid)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {top}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def in_files(needles, folder):
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    data = f.read()
                found += [path for n in needles if n in data]
    return found


def key_is_nowhere_else(pid, pem):
    """The key of a job's authority: in its TLS process, which nobody may look into or have a core dump of, and in no other place."""
    key = ec_key.find(pid, pem)
    if not key:
        raise SystemExit("FAIL: the key of the authority was not found where it must be")
    needles = ec_key.forms(key)
    seeded = f"{TOP}/seeded"
    for needle in needles:  # what would be seen
        with open(seeded, "wb") as f:
            f.write(b"x" + needle + b"x")
        assert in_files(needles, TOP).count(seeded) >= 1, needle
    os.remove(seeded)
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        core = next(x.split()[4:6] for x in f if x.startswith("Max core file size"))
    owner = os.stat(f"/proc/{pid}/maps").st_uid
    assert core == ["0", "0"] and owner != 0, (core, owner)  # not its user's, which is 0 here: not dumpable
    return needles


def looked_for(needles, but, top):
    found, n = in_files(needles, TOP), 0
    if not READABLE:
        return 0
    for pid in below(top) - {but}:
        try:
            bytes_, where = ec_key.lies(pid, needles)
        except OSError:
            continue  # it ended
        found += where
        n += bytes_ > 0
    if found or n < 3:
        raise SystemExit(f"FAIL: the key of a job's authority lies in {found}; {n} processes were looked at")
    return n


# ---- the test ----

async def jobs(v, top):
    said, _ = await v.finished(v.begin("earlier", EARLIER), 60)
    earlier, idle = authority(said), await at_rest(top, v)
    beside = v.begin("neighbour", NEIGHBOUR)
    await becomes(lambda: v.beside > 3, "no other job runs")
    pem, pids = authority(v.output[beside].decode()), of_jobs()
    assert len(pids) == 1 and earlier != pem, pids
    v.pids = pids
    rest, kib = await at_rest(top, v), memory_kib(top)
    files = [{"path": "earlier.pem", "content": earlier}, {"path": "neighbour.pem", "content": pem}]
    for name in ("tunnel_cases", "tunnel_client", "tunnel_layers"):
        with open(f"tests/support/python/{name}.py", encoding="utf-8") as f:
            files.append({"path": name + ".py", "content": f.read()})

    async def one(name, script):
        began = time.monotonic()
        said, end = await v.finished(v.begin(name, "import sys; sys.path.insert(0, '.')\n" + script, files), 200)
        assert end == "/work/v1/ack", (name, end, said[-2000:])
        await becomes(lambda: of_jobs() == pids, f"{name}: its TLS process did not end, or another's did: {pids}, {tls_processes()}")
        await becomes(lambda: descriptors(top, v) <= rest, f"{name}: {descriptors(top, v)} descriptors of the tomb, {rest} before")
        await v.neighbour_goes_on()
        print(f"{name}: {time.monotonic() - began:.1f} s, {(memory_kib(top) - kib) // 1024} MiB more in the tomb", flush=True)
        return said

    bad = tunnel_cases.judge(await one("the cases", ALL), v.sent)
    if bad:
        raise SystemExit("FAIL: " + "\n".join(bad))
    v.sent.clear()
    said = await one("half handshakes", HALF)
    assert "open 32 too many 168 in time" in said or "the first are over" in said, said
    said = await one("a job that ends in the middle", LEAVES)
    assert "reply b'HTTP/1.1 200" in said, said
    await becomes(lambda: v.left == 1, "a reply to a job that ended went on")
    assert not v.sent, v.sent
    assert memory_kib(top) - kib < 48 * 1024 or not READABLE, (kib, memory_kib(top))

    needles = key_is_nowhere_else(pids[0], pem) if READABLE else []
    looked_for(needles, pids[0], top)
    v.stop = True
    said, end = await v.finished(beside, 60)
    assert end == "/work/v1/ack" and "the end" in said, (end, said[-1000:])
    await becomes(lambda: not of_jobs(), "the neighbour's TLS process did not end")
    n = looked_for(needles, None, top)
    await becomes(lambda: descriptors(top, v) <= idle, f"{descriptors(top, v)} descriptors of the tomb, {idle} in the beginning")
    print(f"{v.beside} requests beside them; a key was looked for in {n} processes", flush=True)


async def main():
    v = Attacked()
    server = await asyncio.start_unix_server(v.serve, SOCKET, limit=1 << 24)
    await becomes(lambda: len(tls_processes()) >= 1, "no TLS parent")
    await jobs(v, tomb())
    server.close()
    print("PASS")


if __name__ == "__main__":
    asyncio.run(main())
