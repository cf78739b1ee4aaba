# SPDX-License-Identifier: Apache-2.0
"""Run by tunnel_flood.sh: tunnel_flood.py SOCKET full. One job floods its HTTPS proxy in four ways, by turns with rest, and with work that
any job may do; another's requests by its own proxy are timed by itself. Nothing but the own job gets slower: in no phase is the other's
median three times the worse of those two, or a second."""
import asyncio
import statistics
import sys

sys.path.insert(0, "tests/integration/broker")

# pylint: disable=wrong-import-position
from tunnel import SOCKET, of_jobs, tls_processes
from tunnel_attacks import HOST, Attacked, at_rest, becomes, descriptors, memory_kib, tomb

ROUNDS, PHASE_SEC, CONNECTS = 3, 4, 10000
RATIO, LIMIT_SEC, GROWTH_KIB = 3, 1.0, 32 * 1024
NEIGHBOUR = r"""
import time, urllib.request
got = b""
while got != b"stop":
    t = time.monotonic()
    got = urllib.request.urlopen("https://HOST/neighbour/x", timeout=120).read()
    print("sample %.6f %.6f" % (t, time.monotonic() - t), flush=True)
    time.sleep(0.01)
""".replace("HOST", HOST)
FLOOD = r"""
import threading, time, tunnel_cases, tunnel_client as t
made, held, refused = 0, [], 0
def connect():
    global made, refused
    s, status = t.ask_tunnel("CONNECT %s:443 HTTP/1.1" % t.HOST)
    made += 1
    refused += status != "200"
    return s, status
def rest(): time.sleep(0.05)
def burn():
    for _ in range(1000): pass
def connects():
    connect()[0].close()
def halves():
    s, status = connect()
    t.push(s, t.record(t.HANDSHAKE, t.hello()[:100], length=400))
    held.append(s)
    if len(held) > 200: held.pop(0).close()
def hellos():
    s, status = connect()
    if status == "200": t.records(t.record(t.HANDSHAKE, t.hello(), 0x0301), s=s)
    else: s.close()
def requests():
    try: t.inside(t.get("/flood", "none"), ctx=BLIND)
    except OSError: pass
BLIND = t.blind()
def phase(what, seconds):
    began = time.monotonic()
    def go():
        while time.monotonic() < began + seconds: what()
    all_ = [threading.Thread(target=go) for _ in range(1 if what is rest else 4)]
    for x in all_: x.start()
    for x in all_: x.join()
    print("phase", what.__name__, "%.6f %.6f" % (began, time.monotonic()), flush=True)
    while held: held.pop().close()
for _ in range(ROUNDS):
    for what in (rest, burn, connects, halves, hellos, requests): phase(what, PHASE_SEC)
while made < CONNECTS: phase(connects, PHASE_SEC)  # on a machine that is busy it takes its time
print("made", made, "refused", refused, flush=True)
""".replace("ROUNDS", str(ROUNDS)).replace("PHASE_SEC", str(PHASE_SEC)).replace("CONNECTS", str(CONNECTS))


def times(beside, flood):
    """{phase: the times of what the other job asked within it}"""
    samples = [tuple(map(float, x.split()[1:])) for x in beside.splitlines() if x.startswith("sample ")]
    out = {}
    for line in flood.splitlines():
        if line.startswith("phase "):
            _, name, began, ended = line.split()
            out.setdefault(name, []).extend(took for at, took in samples if float(began) + 0.1 <= at <= float(ended))
    return out


async def flood(v, top):
    beside = v.begin("neighbour", NEIGHBOUR)
    await becomes(lambda: v.beside > 3, "no other job runs")
    pids, rest, kib = of_jobs(), await at_rest(top, v), memory_kib(top)
    files = []
    for name in ("tunnel_cases", "tunnel_client", "tunnel_layers"):
        with open(f"tests/support/python/{name}.py", encoding="utf-8") as f:
            files.append({"path": name + ".py", "content": f.read()})
    said, end = await v.finished(v.begin("flood", "import sys; sys.path.insert(0, '.')\n" + FLOOD, files), 580)
    assert end == "/work/v1/ack" and "made" in said, (end, said[-2000:])
    await becomes(lambda: of_jobs() == pids, "the flood's TLS process did not end")
    await becomes(lambda: descriptors(top, v) <= rest, f"{descriptors(top, v)} descriptors of the tomb, {rest} before")
    v.stop = True
    samples, end = await v.finished(beside, 60)
    assert end == "/work/v1/ack", (end, samples[-1000:])
    made = int(said.rsplit("made ", 1)[1].split()[0])
    all_ = times(samples, said)
    medians = {name: statistics.median(x) for name, x in all_.items()}
    print(f"{made} CONNECTs, {said.rsplit('refused ', 1)[1].strip()} refused; {(memory_kib(top) - kib) // 1024} MiB more in the tomb; another job's "
          "requests: " + ", ".join(f"{n} {m * 1000:.1f} ms of {len(all_[n])}" for n, m in medians.items()), flush=True)
    if made < CONNECTS or memory_kib(top) - kib > GROWTH_KIB or v.sent:
        raise SystemExit(f"FAIL: {made} CONNECTs, {memory_kib(top) - kib} KiB, {v.sent[:3]}")
    slow = {n: m for n, m in medians.items() if m > LIMIT_SEC or m > RATIO * max(medians["rest"], medians["burn"])}
    if slow:
        raise SystemExit(f"FAIL: another job's requests were slow: {slow}")


async def main():
    v = Attacked()
    server = await asyncio.start_unix_server(v.serve, SOCKET, limit=1 << 24)
    await becomes(lambda: len(tls_processes()) >= 1, "no TLS parent")
    await flood(v, tomb())
    server.close()
    print("PASS")


if __name__ == "__main__":
    asyncio.run(main())
