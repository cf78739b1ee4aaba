# SPDX-License-Identifier: Apache-2.0
"""bypass_job.py BUILD FOLDER: run by bypass_job.sh as the root of a network of its own.

One job walks the table (tests/support/python/bypass_walk.py). It asks for /step/N after each request: the server there writes down what
was seen on the wire, by the name server and by the servers until then. Everything is judged afterwards."""
import base64
import glob
import http.client
import json
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

import bypass
import lab
from bypass import ALLOWED, CASES, GOOD, GOOD6, KEY, OTHER, A, get, post

BUILD, D = sys.argv[1:3]
ROOTS = "/etc/ssl/certs/ca-certificates.crt"  # of this system: ours lies over it
# Elsewhere than in this walk, by name: their test must be there.
ELSEWHERE = {69: ("tests/integration/broker/broker.py", "t_what_the_ward_the_list_and_the_replay_check_refuse")}
AWAY = ["LYCH-BROKER-024", "LYCH-BROKER-007", "LYCH-AUDIT-001", "LYCH-AUDIT-004", "LYCH-EGRESS-001", "LYCH-GATE-002", "LYCH-RUN-007"]
# What a worker's error is called in the table, when it is no reason of reason.def.
WORKER = {"timeout": "LYCH-EGRESS-007", "tls": "LYCH-EGRESS-006", "reply": "LYCH-EGRESS-009", "reply_too_large": "LYCH-EGRESS-008"}
ENDED = {"worker": "LYCH-EGRESS-002", "vessel": "LYCH-BROKER-024"}
HIDDEN = ("dns", "addr_private", "self", "not_pinned")
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7x9Zq1" * 12 + "\n-----END RSA PRIVATE KEY-----"
bad = []


def fail(number, text):
    bad.append(number)
    print(f"case {number}: {text}", flush=True)


# ---- the table ------------------------------------------------------------------------------

ODD_HEADERS = [["Authorization", "Bearer phantom"], ["x-api-key", "k"], ["Cookie", "a=b"], ["X-HTTP-Method-Override", "DELETE"],
               ["Metadata-Flavor", "Google"], ["X-aws-ec2-metadata-token", "t"], ["Expect", "100-continue"], ["Accept", "text/plain"], ["TE", "trailers"],
               ["X-Forwarded-For", "127.0.0.1"], ["Proxy-Authorization", "x"], ["X-Real-IP", "127.0.0.1"]]


def raw(number, text, code):
    """Refused by the job's own broker, before anything is asked of the vessel."""
    return {"n": number, "raw": text, "want": "tomb", "code": code}


def rows():
    """What the job is to ask, in order: n, the request, want ("": it goes through), and what is special about it."""
    # The tomb reads framing, the vessel the rest: such header fields do not come as far as that.
    out = [{"n": n, **intent, "want": want} for n, intent, want in CASES if n != 61 and len(intent["url"]) < 8000]
    host = "Host: 127.0.0.1:8787\r\n"
    out += [{"n": 39, **get(A + "/" + "a" * 5000), "want": "tomb", "code": "LYCH-HTTP-007"},
            raw(39, f"GET /fetch?url={A}/{'a' * 8192} HTTP/1.1\r\n{host}\r\n", "LYCH-HTTP-001"),
            raw(60, f"GET /fetch?url={A}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "LYCH-HTTP-001"),
            raw(61, f"POST /fetch?url={A}/ HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "LYCH-HTTP-001"),
            raw(61, f"POST /fetch?url={A}/ HTTP/1.1\r\n{host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "LYCH-HTTP-001"),
            raw(61, f"POST /fetch?url={A}/ HTTP/1.1\r\n{host}Transfer-Encoding: chunked , x\r\n\r\n0\r\n\r\n", "LYCH-HTTP-001"),
            raw(61, f"GET /fetch?url={A}/ HTTP/1.1\r\n{host}X: a\rHost: b\r\n\r\n", "LYCH-HTTP-001"),
            raw(65, f"GET https://127.0.0.1/ HTTP/1.1\r\nHost: {ALLOWED}\r\n\r\n", "LYCH-HTTP-001"),
            raw(65, f"GET {A}/ HTTP/1.1\r\n{host}\r\n", "LYCH-HTTP-001")]
    out += [{"n": n, **post(f"{A}/echo?x=1", headers=ODD_HEADERS), "want": "", "arrives": "bare"} for n in (60, 62, 63, 64, 66, 77)]
    for url, key in ((f"{A}/to-key", 0), ("https://other.allowed.example/echo", 0), ("https://other.allowed.example/v1x/echo", 0),
                     ("https://other.allowed.example/v1/to-api", 1), ("https://other.allowed.example/v1/echo", 1)):
        out += [{"n": n, **get(url), "want": "", "keys": key} for n in (68, 75)]
    rebind = get("https://rebind.dns.example/echo")
    out += [{"n": 46, **rebind, "want": "", "asked": 2}, {"n": 47, **rebind, "want": "", "asked": 0},
            {"n": 47, **rebind, "want": "addr_private", "pause": 5.2}]
    out += [{"n": 70, **post(f"{A}/echo", PEM.encode()), "want": "gate"}, {"n": 70, **get(f"{A}/echo?q={KEYLIKE}"), "want": "gate"}]
    # 53: data in names
    out += [{"n": 53, **get(f"https://{base64.b32encode(random.randbytes(25)).decode().lower().rstrip('=')}.wild.example/"), "want": "labels?"}
            for _ in range(40)]
    # what breaks
    out += [{"n": 78, **get(f"{A}/slow?gone"), "want": "cut", "cut_after": 200},
            {"n": 78, **get(f"{A}/echo"), "want": "", "pause": 1, "slow": 0},
            {"n": 79, **get(f"{A}/slow?worker"), "want": "worker", "again_step": True},
            {"n": 82, **get(f"{A}/step/hold"), "want": "", "no_step": True},
            {"n": 82, **get(f"{A}/echo"), "want": "audit", "no_step": True},
            {"n": 82, **get(f"{A}/echo"), "want": "", "again_while": AWAY, "arrived": 1},
            {"n": 80, **get(f"{A}/slow?vessel"), "want": "vessel", "no_step": True},
            {"n": 80, **get(f"{A}/echo"), "want": "", "again_while": AWAY}]
    for row in out:
        if row.pop("again_step", None):
            row["again_while"] = AWAY
    return out


KEYLIKE = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


# ---- the outside -----------------------------------------------------------------------------

class Steps:
    """What was seen between one step and the next."""

    def __init__(self):
        self.seen, self.held, self.go = {}, False, threading.Event()

    def on_step(self, world, c, path):
        name = path.rsplit("/", 1)[1]
        if name == "hold":
            self.held = True
            self.go.wait(60)
            return
        self.seen[name] = world.take(world.wire.take_before(c.getpeername()[1]))


def outside(stream):
    steps = Steps()
    world = bypass.World(D, steps.on_step)
    print("[]", file=stream, flush=True)
    for line in stream:
        what, *more = json.loads(line)
        if what == "peek":
            answer = {"slow": list(world.slow), "held": steps.held}
        elif what == "go":
            answer = steps.go.set()
        elif what == "seen":
            answer = steps.seen
        else:  # controls: what the wire has now
            answer = world.take(world.wire.take(*more))
        print(json.dumps(answer), file=stream, flush=True)


# ---- the house --------------------------------------------------------------------------------

class Shell:
    """An ordinary user of a namespace below: Lychgate refuses root, also this one."""

    def __init__(self):
        env = {"PATH": os.environ["PATH"], "HOME": f"{D}/home", "XDG_RUNTIME_DIR": f"{D}/run", "LYCHGATE_DATA": f"{D}/data",
               "LANG": "C.UTF-8", **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}
        self.p = subprocess.Popen(["unshare", "-U", "--map-user=1000", "--map-group=1000", "bash"], env=env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

    def run(self, *argv, feed=""):
        line = " ".join(map(shlex.quote, argv))
        print(f"{line} <<<{shlex.quote(feed)} >{D}/out 2>{D}/err 5>&- || echo failed >>{D}/err; echo done", file=self.p.stdin, flush=True)
        assert self.p.stdout.readline() == "done\n", line
        with open(f"{D}/err", encoding="utf-8") as f:
            err = f.read()
        assert not err.endswith("failed\n"), f"{line}: {err}"
        with open(f"{D}/out", encoding="utf-8") as f:
            return f.read()

    def lych(self, *argv, **more):
        return self.run(f"{BUILD}/lych", *argv, **more)

    def end(self):
        self.p.stdin.close()
        self.p.wait(60)


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(glob.glob(f"{D}/run/**/api/vessel.sock", recursive=True)[0])


def api(path):
    c = Unix("lychgate")
    try:
        c.request("GET", path)
        return c.getresponse().read().decode()
    except (OSError, IndexError, http.client.HTTPException):
        return ""
    finally:
        c.close()


def metric(name):
    return sum(float(x.split()[-1]) for x in api("/metrics").splitlines() if x.startswith(name))


def config():
    rules = bypass.codex().split("\n", 1)[1]  # without its version
    limits = '{requests: 10000, tokens: 1000000, money: "100", bytes: 1GiB, denials: 10000}'
    with open(os.open(f"{D}/home/.config/lychgate/codex.yaml", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write(f'version: "1"\ntomb:\n  slots: 1\n  grade: full\n{rules}budgets:\n  job: {limits}\n  identity_day: {limits}\n  day: {limits}\n'
                "egress: {connect: 2s, total: 6s, retries: 0, request_max: 64KiB, response_max: 64KiB}\n")


class House:
    def __init__(self):
        self.outside = lab.Outside(outside)
        self.loopback = lab.Capture("lo")
        self.own = lab.Listener(lab.PORTS, lambda c, a, p: c.recv(100))
        for name in ("home", "run", "home/.config", "home/.config/lychgate"):
            os.mkdir(f"{D}/{name}", 0o700)
        for name, text in (("resolv", f"nameserver {lab.NAME_SERVER}\nsearch allowed.example\n"), ("hosts", "127.0.0.1 localhost\n")):
            with open(f"{D}/{name}", "w", encoding="ascii") as f:
                f.write(text)
        for name, at in (("resolv", "/etc/resolv.conf"), ("hosts", "/etc/hosts"), ("ca.pem", ROOTS)):
            subprocess.run(["mount", "--bind", f"{D}/{name}", at], check=True)
        config()
        self.mark = 0
        self.shell = Shell()

    def taken(self):
        self.mark += 1
        lab.send_mark(self.mark)
        return self.outside.ask("take", self.mark), self.loopback.take(self.mark)

    def pid(self, name):
        return json.loads(self.shell.lych("status", "--json"))["processes"][name]


def worker_of(vessel):
    """The keyless worker of this vessel: by its name and its ancestors."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                name = f.read()
            up = int(pid)
            while name == "keyless\n" and up > 1:
                if up == vessel:
                    return int(pid)
                with open(f"/proc/{up}/stat", encoding="ascii") as f:
                    up = int(f.read().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise RuntimeError("no keyless worker")


def audit_away(house):
    """82: the scribe is killed, and whoever would start it again is held."""
    supervisor, scribe = house.pid("supervisor"), house.pid("scribe")
    os.kill(supervisor, signal.SIGSTOP)
    try:
        os.kill(scribe, signal.SIGKILL)
        lab.wait_for(lambda: not json.loads(api("/v1/status"))["audit"]["ok"])
        house.outside.ask("go")
        lab.wait_for(lambda: metric('lychgate_broker_refused_total{code="LYCH-AUDIT'))
    finally:
        os.kill(supervisor, signal.SIGCONT)


def walk(house, table):
    """The job, and what breaks while it runs."""
    with open(f"{D}/table.json", "w", encoding="utf-8") as f:
        json.dump(table, f)
    job = house.shell.lych("run", "--detach", "-n", "--egress", "brokered", "--timeout", "4m", "--output", "16MiB", "-f", f"{D}/table.json=table.json",
                           "-f", "tests/support/python/bypass_walk.py=walk.py", "--", "python3", "walk.py", "table.json").split()[-1]
    todo, since, state, end = {"worker", "vessel", "scribe"}, {}, "", time.monotonic() + 240
    while state not in ("succeeded", "failed", "timed_out", "lost", "cancelled", "quarantined"):
        assert time.monotonic() < end, f"the walk did not end: {state}"
        now = house.outside.ask("peek")
        for path in now["slow"]:  # half a second: time for the answer's head to have come through to the job
            since.setdefault(path, time.monotonic() + 0.5)
        broken = {path for path in now["slow"] if time.monotonic() > since[path]}
        if "/slow?worker" in broken and "worker" in todo:
            todo.remove("worker")
            os.kill(worker_of(house.pid("vessel")), signal.SIGKILL)
        if now["held"] and "scribe" in todo:
            todo.remove("scribe")
            audit_away(house)
        if "/slow?vessel" in broken and "vessel" in todo:
            todo.remove("vessel")
            os.kill(house.pid("vessel"), signal.SIGKILL)
        time.sleep(0.05)
        text = api(f"/v1/jobs/{job}")
        state = json.loads(text).get("state", "") if text else ""
    log = house.shell.lych("logs", job)
    assert state == "succeeded" and not todo, f"{state}, left: {todo}: {log[-2000:]}"
    return job, {x["i"]: x for x in map(json.loads, log.splitlines())}


# ---- the verdict ---------------------------------------------------------------------------------

def code_of(word):
    """The public code of a reason of vessel/egress/reason.def."""
    with open("vessel/egress/reason.def", encoding="ascii") as f:
        symbol = re.search(rf'"{word}",\s+(\w+)\)', f.read())
    if not symbol:
        return WORKER[word]
    with open("common/errors.def", encoding="ascii") as f:
        return re.search(rf'X\({symbol[1]},\s+"([A-Z0-9-]+)"', f.read())[1]


def audit_of(job):
    """number of the request -> the events about it"""
    out, signals = {}, []
    for name in sorted(glob.glob(f"{D}/data/audit/segment-*.jsonl")):
        with open(name, encoding="utf-8") as f:
            for line in f:
                e = json.loads(line)
                if e.get("metadata", {}).get("correlation_uid") != job:
                    continue
                more = e.get("unmapped", {})
                what = more.get("event", e.get("event", ""))
                if "request" in more:
                    out.setdefault(int(more["request"]), []).append((what, more))
                elif what.startswith("detection."):
                    signals.append(what)
    return out, signals


def match(table, got, audit):
    """What the log has of each row: the numbers are the tomb's, in the order of the asking."""
    numbers, at = sorted(audit), 0
    for row in table:
        row["events"] = []
    for i, row in enumerate(table):
        if row["want"] != "tomb":
            row["events"] = audit[numbers[at]]
            at += 1
        if got[i]["step"]:
            at += 1
        if row["n"] == 79:
            break  # from here on things are tried again, and each time has a number of its own


class Seen:
    """A row, what the job was told, what the log says, and what was seen outside."""

    def __init__(self, row, got, out):
        self.row, self.got, self.n = row, got, row["n"]
        self.out = out or {"asked": [], "requests": [], "wire": []}
        self.allowed = [m for w, m in row["events"] if w == "fetch.allowed"]
        ends = [m for w, m in row["events"] if w in ("fetch.denied", "fetch.failed")]
        self.end = ends[-1] if ends else {}
        self.reached = {(t, p) for proto, s, t, p in map(tuple, self.out["wire"])
                        if s in (lab.CLIENT, lab.CLIENT6) and (proto == 6 or t != lab.NAME_SERVER)}

    def fail(self, text):
        fail(self.n, f"{json.dumps({k: v for k, v in self.row.items() if k not in ('events', 'n')})[:160]}: {text}")

    def passed(self):
        g = self.got
        if g["code"] or not g["upstream"] or not g["whole"]:
            self.fail(f"was refused: {g['status']} {g['code']} {g['detail']} {self.end}")
        if self.end or not self.allowed:
            self.fail(f"the log says {self.row['events']}")
        if not self.reached:
            self.fail("nothing was sent")

    def refused(self, want):
        g, codes = self.got, {code_of(want), WORKER.get(want, code_of(want))}
        if self.end.get("error_code") == "LYCH-WARD-001":  # no rule for it: the same word, the ward's code
            codes.add("LYCH-WARD-001")
        cut = g["status"] == 200 and g["upstream"] and not g["whole"]
        if not cut and g["code"] not in codes:
            self.fail(f"{g['status']} {g['code']} {g['detail']!r} instead of {codes}")
        if self.end.get("error_code") not in codes or want not in WORKER and self.end.get("reason") != want:
            self.fail(f"the log says {self.end.get('error_code')} {self.end.get('reason')} instead of {codes} {want}")
        if not cut and not g["detail"].startswith(f"{want}:") and want not in HIDDEN and want not in WORKER and not self.allowed:
            self.fail(f"the detail is {g['detail']!r}")
        if re.search(r"\d+\.\d+\.\d+\.\d+|::", g["detail"]):
            self.fail(f"the detail has an address: {g['detail']}")

    def packets(self, want):
        """None before it was allowed; after that only to the addresses that were looked up for it."""
        others = {q for q in self.out["asked"] if q != ALLOWED}
        may = {(GOOD, 443), (GOOD6, 443), (OTHER, 443)} if len(self.allowed) > (want in HIDDEN) else set()
        if "named.example" in self.row.get("url", ""):
            may = {("10.0.0.7", 443)}
        if self.reached - may:
            self.fail(f"packets went to {sorted(self.reached - may)}")
        if not self.allowed and (others or self.out["requests"]):
            self.fail(f"asked for {others}, {len(self.out['requests'])} requests")

    def special(self):
        row, got, requests = self.row, self.got, self.out["requests"]
        if row.get("arrives"):
            lines = requests[0]["head"].split("\r\n")
            names = sorted(x.split(":")[0].lower() for x in lines[1:])
            if lines[0] != "POST /echo?x=1 HTTP/1.1" or names != ["accept", "accept-encoding", "content-length", "content-type", "host"] or \
                    f"Host: {ALLOWED}" not in lines or requests[0]["body"] != "secret body":
                self.fail(f"arrived: {requests}")
        if "keys" in row and [r["address"] for r in requests if KEY in r["head"]] != [OTHER] * row["keys"]:
            self.fail(f"the key arrived with {[(r['address'], r['head'].split(chr(13))[0]) for r in requests if KEY in r['head']]}")
        if "keys" in row and row["url"].endswith("v1/echo") and "Bearer " not in got["body"]:
            self.fail(f"no trace of the key: {got['body']}")
        if KEY in json.dumps(got):
            self.fail("the key came back")
        if "asked" in row and len([q for q in self.out["asked"] if "rebind" in q]) != row["asked"]:
            self.fail(f"asked: {self.out['asked']}")
        if "slow" in row and self.out["slow"] != row["slow"]:
            self.fail("the server was not let go")
        if "arrived" in row and len(requests) != row["arrived"]:
            self.fail(f"{len(requests)} requests arrived")
        if self.n == 24 and json.loads(got["body"])["target"] != "/?@127.0.0.1/":
            self.fail(got["body"])
        if self.n == 59 and (got["upstream"], got["body"], "www-authenticate" in got["fields"]) != ("401", "who", False):
            self.fail(got)
        if self.n == 74 and (got["body"], "x-t" in got["fields"]) != ("abcd", False):
            self.fail(got)
        if row.get("url") == f"{A}/307-same" and [r["body"] for r in requests] != ["secret body"] * 2:
            self.fail(requests)
        if row.get("url") == f"{A}/to-crlf" and (got["upstream"], len(requests)) != ("302", 1):
            self.fail(got)
        if {"set-cookie", "server", "alt-svc", "location", "x-trace"} & set(got["fields"]):
            self.fail(f"came back: {got['fields']}")


def judge(seen):
    row, want = seen.row, seen.row["want"]
    if want == "":
        if "again_while" not in row and not row.get("no_step"):
            seen.passed()
        elif seen.got["code"]:
            seen.fail(seen.got)
    elif want == "tomb":
        if not seen.got["code"].startswith(row["code"]) or seen.out["requests"]:
            seen.fail(seen.got)
    elif want == "gate":
        if not seen.got["code"].startswith("LYCH-GATE-") or seen.got["status"] != 403 or seen.allowed or seen.out["requests"]:
            seen.fail(f"{seen.got} {seen.allowed}")
    elif want == "audit":
        if not seen.got["code"].startswith("LYCH-AUDIT-"):
            seen.fail(seen.got)
    elif want == "cut":
        if seen.got["whole"]:
            seen.fail(seen.got)
    elif want in ENDED:  # broken off, or, when the head was not on its way yet, the error that says what happened
        if seen.got["whole"] and (seen.got["status"], seen.got["code"]) != (503, ENDED[want]):
            seen.fail(seen.got)
    elif want != "labels?":
        seen.refused(want)
    if want not in ("labels?", "cut", "worker", "vessel", "audit") and "again_while" not in row and not row.get("no_step"):
        seen.packets(want)
    seen.special()


def names_with_data(all_seen, signals):
    """53"""
    tried = [s for s in all_seen if s.n == 53]
    out = [s for s in tried if s.allowed]
    if not 1 <= len(out) <= 8 or any(s.reached or s.out["requests"] or set(s.out["asked"]) - {ALLOWED} for s in tried if not s.allowed):
        fail(53, f"{len(out)} of {len(tried)} names went out")
    if any(s.got["code"] != "LYCH-FETCH-007" or s.end.get("reason") != "labels" for s in tried[8:]):
        fail(53, f"the last is {tried[-1].got}")
    if signals.count("detection.odd_name") < len(out):
        fail(53, f"{len(out)} went out, {signals.count('detection.odd_name')} were reported")


def books(house, job, audit):
    """78 to 80: nothing stays reserved, and what was begun is booked."""
    def mine():
        return [r for r in json.loads(api(f"/v1/budget?job={job}") or '{"books":[]}')["books"] if r["scope"] == "job"]
    lab.wait_for(lambda: mine() and not any(mine()[0]["reserved"].values()))
    sent = sum(w == "fetch.allowed" for events in audit.values() for w, _ in events)
    unsent = sum(w in ("fetch.failed", "fetch.denied") and m.get("sent") is False for events in audit.values() for w, m in events)
    spent = mine()[0]["spent"]["requests"]
    if not 0 < spent <= sent or spent < sent - unsent - 40:
        fail(80, f"{sent} were allowed, {unsent} of them not sent, {spent} are booked")
    if metric("lychgate_broker_recovered_total") != 1:
        fail(80, f"{metric('lychgate_broker_recovered_total')} were recovered")
    broken = {k: v for k, v in json.loads(api("/v1/check"))["invariants"].items() if v}
    if broken:
        fail(80, f"{broken}")


def controls(house):
    """What must be seen is seen."""
    for target in (("10.0.0.1", 6379), ("127.0.0.1", 5432)):
        with lab.socket.create_connection(target, 5):
            lab.wait_for(lambda: target[0] != "127.0.0.1" or target in house.own.count)
        out, own = house.taken()
        if target not in {(t, p) for _, _, t, p in map(tuple, out["wire"] + own)}:
            fail(0, f"a connection to {target} was not seen")
    house.own.count.clear()


def main():
    lab.make_ca(D, [ALLOWED, "other.allowed.example", "prefix.allowed.example", "*.wild.example", "*.dns.example", "named.example"])
    house, table = House(), rows()
    try:
        controls(house)
        house.shell.lych("secret", "set", "portal_lab", feed=KEY)
        house.shell.lych("config", "check")
        house.shell.lych("up", "--detach")
        house.taken()
        job, got = walk(house, table)
        outs = house.outside.ask("seen")
        audit, signals = audit_of(job)
        match(table, got, audit)
        all_seen = [Seen(row, got[i], outs.get(str(i))) for i, row in enumerate(table)]
        for seen in all_seen:
            judge(seen)
        names_with_data(all_seen, signals)
        if "detection.denials" not in signals:
            fail(81, f"no signal: {set(signals)}")
        books(house, job, audit)
        _, own = house.taken()
        if own or house.own.count:
            fail(0, f"on loopback: {own} {house.own.count}")
    except BaseException:
        traceback.print_exc()
        for name in glob.glob(f"{D}/data/log/*.log"):
            with open(name, encoding="utf-8", errors="replace") as f:
                print(f"--- {name}\n{f.read()[-3000:]}")
        bad.append(0)
    finally:
        try:
            house.shell.lych("down")
        finally:
            house.shell.end()
            house.outside.end()
    here = {r["n"] for r in table} | {81}
    for number, (path, name) in ELSEWHERE.items():
        with open(path, encoding="utf-8") as f:
            if f"def {name}(" not in f.read():
                fail(number, f"{path} has no {name}")
    missing = set(range(1, 83)) - here - set(ELSEWHERE)
    if missing:
        fail(0, f"nobody tries {sorted(missing)}")
    print(f"{len(table)} requests of a job: {len(here | set(ELSEWHERE))} of 82 cases ({sorted(ELSEWHERE)} by name elsewhere), "
          f"{len(bad)} failed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
