# SPDX-License-Identifier: Apache-2.0
"""Run by malformed.sh, over tests/support/rig: malformed.py DIR VESSEL. A vessel with its real workers, gate,
database and scribe takes requests that are wrong in every place, and answers of its providers that
are; judged from outside: nobody of them is gone, each request had an answer with a form, nobody's
memory grew, no job was ended for it."""
import atexit
import base64
import collections
import glob
import json
import multiprocessing
import os
import random
import re
import signal
import sys
import threading
import time
import uuid

import rig

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import malformed_client  # noqa: E402
import malformed_git  # noqa: E402
import malformed_requests  # noqa: E402
import malformed_world  # noqa: E402

QUOTA = int(os.environ.get("MALFORMED", "0"))
SECONDS = 0 if QUOTA else 60
SEED = os.environ.get("SEED") or str(random.SystemRandom().randrange(1 << 32))
MILLS = 3
CONNECTIONS = {"work": 24, "api": 6}
LEASES = 3  # asking jobs of each client
WARM = 0.2  # of the run, before memory is looked at
MIB = 1 << 20
# Of private memory, from there to the end: what the caches of the vessel may still fill with.
GROWTH_MAX = 24 * MIB
RENEW_SEC = 20
FOUND = os.path.join(os.environ["LYCH_BUILD"], "malformed")

OPEN_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
OPEN = """\
  - host: 127.0.0.1
    scheme: http
    port: {port}
    method: {method}
    path: /open
    action: allow
    addresses:
      - 127.0.0.1
"""
CODEX = """
version: "1"
portals:
  - name: main
    kind: openai
    url: "http://127.0.0.1:{port}/v1"
    secret: portal_main
    addresses:
      - 127.0.0.1
    models:
      - {{name: m, input: "1", output: "10", picture: "100", context: "100000"}}
  - name: other
    kind: anthropic
    url: "http://127.0.0.1:{port}/anthropic"
    secret: portal_other
    addresses:
      - 127.0.0.1
    models:
      - {{name: m, input: "1", output: "10", picture: "100", context: "100000"}}
  - name: third
    kind: gemini
    url: "http://127.0.0.1:{port}/gemini"
    secret: portal_third
    addresses:
      - 127.0.0.1
    models:
      - {{name: m, input: "1", output: "10", picture: "100", context: "100000"}}
registries:
  npm:
    url: "http://127.0.0.1:{port}/npm"
    addresses:
      - 127.0.0.1
  pypi:
    url: "http://127.0.0.1:{port}/pypi/simple"
    addresses:
      - 127.0.0.1
ward:
  - {{portal: main, action: allow}}
  - {{portal: other, action: allow}}
  - {{portal: third, action: allow}}
  - {{registry: npm, action: allow}}
  - {{registry: pypi, action: allow}}
{open}  - host: 127.0.0.1
    scheme: http
    port: {port}
    path: /bin
    replies: binary
    action: allow
    addresses:
      - 127.0.0.1
  - host: 127.0.0.1
    scheme: http
    port: {port}
    path: /git
    protocol: git
    push: allow
    action: allow
    addresses:
      - 127.0.0.1
budgets:
  job: {{requests: 1000000000, tokens: 1000000000000, money: "1000000000", bytes: 100000GiB, denials: 1000000000}}
  identity_day: {{requests: 1000000000, tokens: 1000000000000, money: "1000000000", bytes: 100000GiB, denials: 1000000000}}
  day: {{requests: 1000000000, tokens: 1000000000000, money: "1000000000", bytes: 100000GiB, denials: 1000000000}}
egress: {{connect: 2s, first_byte: 4s, idle: 4s, total: 8s, response_max: 4MiB, package_max: 4MiB, in_flight: 64, retries: 0}}
limits:
  timeout: {{default: 10m, max: 4h}}
queue: {{max_waiting: 1000000}}
"""


def children(pid):
    out = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
            out += map(int, f.read().split())
    return out


def comm(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as f:
        return f.read().strip()


def daemons(vessel):
    """pid of each: the vessel, the parent of its workers, the workers, the scribe (a child of the rig)."""
    found = {"vessel": vessel.p.pid}
    parent, = children(vessel.p.pid)
    found["egress parent"] = parent
    for pid in children(parent):
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            name = f.read().split(b"\0")[0].decode(errors="replace")
        found[f"worker {pid} {name.rpartition('/')[2][:30]}"] = pid
    found["scribe"], = [p for p in children(os.getppid()) if comm(p) == "lych-scribe"]
    return found


def private(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("RssAnon")).split()[1]) * 1024


class Tomb(threading.Thread):
    """Holds the leases of the jobs that ask, through the vessel's own door."""

    def __init__(self):
        super().__init__(daemon=True)
        self.leases, self.lost, self.stop = [], [], threading.Event()
        spec = {"argv": ["true"], "egress": "registry", "limits": {"timeout_ms": 14400000}}
        for _ in range(MILLS * LEASES + 1):
            rig.want(rig.api("POST", "/v1/jobs", spec), 201)
        while len(self.leases) < MILLS * LEASES + 1:
            a = rig.call(rig.WORK, "POST", "/work/v1/claim", {"queue": "main", "n": 8, "ttl": 300, "boot": malformed_requests.BOOT,
                                                              "claim": str(uuid.uuid4())}, rig.lease_headers())
            self.leases += [(j["job"], j["epoch"], j["token"]) for j in rig.want(a, 200).json["jobs"]]
            time.sleep(0.05)

    def renew(self):
        body = {"boot": malformed_requests.BOOT, "ttl": 300, "leases": [dict(zip(("job", "epoch", "token"), x)) for x in self.leases]}
        a = rig.want(rig.call(rig.WORK, "POST", "/work/v1/extend", body, rig.lease_headers()), 200)
        self.lost += [x for x in a.json["leases"] if x["status"] != "ok"]

    def run(self):
        while not self.stop.wait(RENEW_SEC):
            self.renew()


def good_requests(world_port, lease, seq):
    """Each kind works, for a job that no client asks for."""
    message = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
    for n, (dialect, stream) in enumerate((d, s) for d in ("openai", "anthropic") for s in (False, True)):
        body = {"seq": seq + n, "dialect": dialect, "stream": stream, "request": {**message, "stream": stream}}
        a = rig.want(rig.work(lease, "POST", "/work/v1/ask", body), 200)
        assert a.headers["Lychgate-Upstream-Status"] == "200" and b"s" in a.body, a
    for n, stream in enumerate((False, True)):
        body = {"seq": seq + 20 + n, "dialect": "gemini", "api": "generate", "model": "m", "stream": stream,
                "request": {"contents": [{"role": "user", "parts": [{"text": "hello"}]}], "generationConfig": {"maxOutputTokens": 50}}}
        a = rig.want(rig.work(lease, "POST", "/work/v1/ask", body), 200)
        assert a.headers["Lychgate-Upstream-Status"] == "200" and b"candidates" in a.body, a
    body = {"seq": seq + 22, "method": "GET", "url": f"http://127.0.0.1:{world_port}/git/z.git/info/refs?service=git-receive-pack", "headers": [], "body": ""}
    a = rig.want(rig.work(lease, "POST", "/work/v1/fetch", body), 200)
    assert b"refs/heads/main" in a.body and b"no-thin" in a.body and b"push-options" not in a.body, a
    body = {"seq": seq + 23, "method": "POST", "url": f"http://127.0.0.1:{world_port}/git/z.git/git-receive-pack",
            "headers": [["content-type", "application/x-git-receive-pack-request"]], "body": base64.b64encode(malformed_git.PUSHES[1]).decode()}
    rig.want(rig.work(lease, "POST", "/work/v1/fetch", body), 200)
    for n, method in enumerate(("PUT", "PATCH", "DELETE")):
        rig.want(rig.work(lease, "POST", "/work/v1/fetch", {"seq": seq + 24 + n, "method": method, "url": f"http://127.0.0.1:{world_port}/open/z",
                                                            "headers": [], "body": ""}), 200)
    body = {"seq": seq + 27, "method": "GET", "url": f"http://127.0.0.1:{world_port}/bin/z", "headers": [], "body": ""}
    assert rig.want(rig.work(lease, "POST", "/work/v1/fetch", body), 200).body == malformed_world.BYTES
    a = rig.want(rig.work(lease, "POST", "/work/v1/fetch", {"seq": seq + 7, "method": "GET", "url": f"http://127.0.0.1:{world_port}/open/z",
                                                            "headers": [], "body": ""}), 200)
    assert a.body == malformed_world.TEXT, a
    for n, (name, path) in enumerate((("npm", "good"), ("pypi", "simple/good/"))):
        a = rig.want(rig.work(lease, "POST", "/work/v1/package", {"seq": seq + 8 + n, "registry": name, "path": path}), 200)
        assert a.headers["Lychgate-Upstream-Status"] == "200" and json.loads(a.body)["name"] == "x", a
    a = rig.want(rig.work(lease, "GET", "/work/v1/models?dialect=openai"), 200)
    assert a.json["data"][0]["id"] == "m", a
    job = rig.submit()
    rig.want(rig.api("POST", f"/v1/jobs/{job}/cancel"), 200)
    rig.want(rig.api("POST", "/v1/gate/scan", b"nothing private"), 200)


def reports(files):
    out = []
    for f in files:
        try:
            with open(f, encoding="ascii") as fd:
                out.append(json.load(fd))
        except FileNotFoundError:
            pass
    return out


def show(all_, seconds, memory, tops):
    kinds, answers = collections.Counter(), collections.Counter()
    for r in all_:
        kinds.update(r["kinds"])
        answers.update(r["answers"])
    bad = sum(r["bad"] for r in all_)
    print(f"{bad} malformed requests and {sum(r['good'] for r in all_)} good ones in {seconds:.0f} s ({bad / max(seconds, 1):.0f} a second), "
          f"slowest {max(r['slowest'] for r in all_):.2f} s; {sum(r['cut'] for r in all_)} replies broke off, "
          f"{sum(r['dropped'] for r in all_)} half requests")
    print("  by kind: " + ", ".join(f"{k} {n}" for k, n in kinds.most_common()))
    print("  by answer: " + ", ".join(f"{k.strip()} {n}" for k, n in answers.most_common()))
    swept, total = 0, 0
    for name, (_, _, seeds, _) in malformed_requests.seeds("").items():
        for i, s in enumerate(seeds):
            total += s.sweeps()
            swept += sum(len(range(m, min(r["swept"][name][i], s.sweeps()), MILLS)) for m, r in enumerate(all_))
    print(f"  of {total} pairs of a place and a wrong value {swept} were tried alone")
    for who, (was, now) in memory.items():
        print(f"  memory: {who:38} {was / MIB:6.1f} -> {now / MIB:6.1f} MiB, most {tops[who] / MIB:6.1f}")
    return bad


def keep_findings(all_):
    """What was found, for whoever is to find the cause."""
    os.makedirs(FOUND, exist_ok=True)
    n, kinds = 0, set()
    for r in all_:
        for f in r["findings"]:
            if f["kind"] in kinds:
                continue
            kinds.add(f["kind"])
            for i, text in enumerate([f["request"], *f["beside"]]):
                with open(f"{FOUND}/{n}{'.beside-%d' % i if i else ''}", "wb") as out:
                    out.write(base64.b64decode(text))
            print(f"FAIL: {f['name']}: {f['what'][:600]}")
            print(f"  {base64.b64decode(f['request'])[:700]!r} (in {FOUND}/{n}, what was under way beside it too)")
            n += 1
    return n


def audit_events(pattern):
    found = collections.Counter()
    for name in sorted(glob.glob(rig.D + "/data/audit/segment-*.jsonl")):
        with open(name, encoding="utf-8", errors="replace") as f:
            found.update(m.group(1) for m in (re.search(r'"event":"([a-z_.]+)"', line) for line in f) if m and re.search(pattern, m.group(1)))
    return found


def judge(failures, all_, vessel, before, memory, tomb):
    failures += ["findings"] * (keep_findings(all_) > 0)
    status = rig.api("GET", "/v1/status").json
    print("  workers: " + ", ".join(f"{w['name']} restarts {w['restarts']} calls {w['calls']}" for w in status["egress_workers"]))
    if any(w["restarts"] or not w["up"] for w in status["egress_workers"]):
        failures.append("a worker was started again")
    if before != daemons(vessel):
        failures.append(f"other processes than at the beginning: {before}, {daemons(vessel)}")
    tomb.renew()
    if tomb.lost:
        failures.append(f"leases lost: {tomb.lost[:5]}")
    for lease in tomb.leases:
        j = rig.api("GET", f"/v1/jobs/{lease[0]}").json
        if j["state"] not in ("preparing", "running") or j["taint"] or j["attempts"] != 1:
            failures.append(f"a job that asked: {j}")
    grew = {w: (a // MIB, b // MIB) for w, (a, b) in memory.items() if b > a + GROWTH_MAX}
    if grew and "SAN_OPTIONS" not in " ".join(os.environ):  # a sanitizer keeps what was freed
        failures.append(f"more than {GROWTH_MAX // MIB} MiB more: {grew}")
    blamed = audit_events(r"blame|daemon|harm|taint|contain|quarantine")
    if blamed:
        failures.append(f"somebody is blamed: {blamed}")


def follow(clients, files, pids, seconds):
    """Until they are done: the memory when the caches are warm, and the most of each."""
    began, warm, tops, tenths = time.monotonic(), None, {}, []
    while any(c.is_alive() for c in clients):
        time.sleep(1)
        try:
            now = {who: private(pid) for who, pid in pids.items()}
        except FileNotFoundError:
            break
        tops = {who: max(n, tops.get(who, 0)) for who, n in now.items()}
        done = sum(r["bad"] for r in reports(files)) / QUOTA if QUOTA else (time.monotonic() - began) / seconds
        if not warm and done > WARM:
            warm = now
        if done * 10 > len(tenths) + 1:
            tenths.append(now["vessel"])
            print(f"  {len(tenths) * 10} % after {time.monotonic() - began:.0f} s", flush=True)
    print("  the vessel's memory by tenths of the run: " + " ".join(f"{n / MIB:.1f}" for n in tenths))
    return warm or tops, tops, time.monotonic() - began


def main():
    print(f"SEED={SEED} " + (f"MALFORMED={QUOTA}" if QUOTA else f"{SECONDS} s"), flush=True)
    r, w = os.pipe()
    world = multiprocessing.Process(target=malformed_world.serve, args=(SEED, w), daemon=True)
    world.start()
    port = int(os.read(r, 20))
    codex = CODEX.format(port=port, open="".join(OPEN.format(port=port, method=m) for m in OPEN_METHODS))
    for path, text in ((rig.D + "/codex.yaml", codex), (rig.D + "/pg/secrets/portal_main", "sk-" + "x" * 30),
                       (rig.D + "/pg/secrets/portal_other", "sk-ant-" + "y" * 30), (rig.D + "/pg/secrets/portal_third", "AIza" + "z" * 30)):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o600)
    vessel = rig.Vessel(["--config", rig.D + "/codex.yaml", "--tomb", "tomb_1", "--tomb", "tomb_2"])
    atexit.register(vessel.p.kill)
    while not rig.api("GET", "/v1/status").json["audit"]["ok"]:
        time.sleep(0.05)
    tomb = Tomb()
    before = daemons(vessel)
    good_requests(port, tomb.leases[-1], 1)
    tomb.start()
    web, tombs = f"http://127.0.0.1:{port}", ((rig.SECRET, "tomb_1"), (rig.bearer_of("tomb_2"), "tomb_2"))
    files = [f"{rig.D}/report-{m}" for m in range(MILLS)]
    clients = [multiprocessing.Process(target=malformed_client.run, daemon=True, args=(
        SEED, m, MILLS, web, tombs, tomb.leases[m * LEASES:(m + 1) * LEASES], {"work": rig.WORK, "api": rig.API}, CONNECTIONS,
        -(-QUOTA // MILLS), SECONDS, files[m])) for m in range(MILLS)]
    for c in clients:
        c.start()
    warm, tops, seconds = follow(clients, files, before, SECONDS)
    for c in clients:
        c.join(30)
    all_ = reports(files)
    failures = ["a client ended by itself"] * any(c.exitcode for c in clients)
    if vessel.p.poll() is not None:
        failures.append(f"the vessel is gone: {vessel.p.returncode}")
        keep_findings(all_)
        show(all_, seconds, {}, tops)
    else:
        time.sleep(1)
        memory = {who: (warm[who], private(pid)) for who, pid in before.items() if os.path.exists(f"/proc/{pid}")}
        bad = show(all_, seconds, memory, tops)
        judge(failures, all_, vessel, before, memory, tomb)
        good_requests(port, tomb.leases[-1], 100)
        if bad < QUOTA:
            failures.append(f"only {bad} of {QUOTA}")
        tomb.stop.set()
        if vessel.stop(signal.SIGTERM) != 0:
            failures.append("the vessel did not end well")
    for f in failures:
        print("FAIL:", f)
    if failures:
        print(open(rig.D + "/vessel.log", encoding="utf-8", errors="replace").read()[-4000:])
    else:
        print("vessel, workers, gate and scribe gone 0 times")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
