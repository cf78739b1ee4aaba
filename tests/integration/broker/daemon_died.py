# SPDX-License-Identifier: Apache-2.0
"""Run by test_daemon_died.sh, over tests/support/rig. Nobody knows a request that ends a daemon, so each is
killed while it reads one: the vessel when its own note says that it does, the workers when they are at work.
Judged by the audit log and by what becomes of the jobs. Each function named t_* is one case."""
import glob
import http.server
import json
import os
import random
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import traceback
import uuid

import rig

NOTE = rig.D + "/run/api/reading"
DEATHS = rig.D + "/data/vessel/deaths"
FLOOD = 48 << 20
BIG = 3_900_000
GATE_BIG = 3_500_000


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    waiting = threading.Semaphore(0)  # released by each request that is to have no answer

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if b"wait for ever" in body:
            Provider.waiting.release()
            self.rfile.read(1)
        elif b"flood" in body:
            self.flood()
        else:
            self.answer(b'{"choices":[{"index":0,"message":{"content":"yes"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}')

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def flood(self):
        event = b'data: {"choices":[],"x":"' + b"sk-stand-in " * 20 + b'"}\n\n'
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for _ in range(FLOOD // (len(event) * 100)):
                self.wfile.write(event * 100)
        except OSError:
            pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64


server = Server(("127.0.0.1", 0), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()

CODEX = f"""
version: "1"
portals:
  - name: main
    kind: openai
    url: "http://127.0.0.1:{server.server_address[1]}/v1"
    secret: portal_main
    addresses:
      - 127.0.0.1
    models:
      - {{name: m, input: "0", output: "0", context: "100000000"}}
ward:
  - {{portal: main, action: allow}}
budgets:
  job: {{requests: 100000, tokens: 100000000000, money: "1000", bytes: 100GiB, denials: 100000}}
  identity_day: {{requests: 100000, tokens: 100000000000, money: "1000", bytes: 100GiB, denials: 100000}}
  day: {{requests: 100000, tokens: 100000000000, money: "1000", bytes: 100GiB, denials: 100000}}
egress: {{first_byte: 60s, idle: 60s, total: 300s, response_max: 64MiB, in_flight: 16, retries: 0}}
"""


# ---- the house ----

class House:
    vessel = None

    @classmethod
    def up(cls):
        cls.vessel = rig.Vessel(["--config", rig.D + "/codex.yaml"])
        deadline = time.monotonic() + 30
        while not rig.api("GET", "/v1/status").json["audit"]["ok"]:
            assert time.monotonic() < deadline, "the log is not written"
            time.sleep(0.05)

    @classmethod
    def kill(cls):
        cls.vessel.p.kill()
        cls.vessel.p.wait(10)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return list(map(int, f.read().split()))


def worker(name):
    """Its pid, once it is up."""
    deadline = time.monotonic() + 30
    while True:
        up = any(w["name"] == name and w["up"] for w in rig.api("GET", "/v1/status").json["egress_workers"])
        for pid in children(children(House.vessel.p.pid)[0]) if up else []:
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read().strip() == name[:15]:
                        return pid
            except OSError:
                pass
        assert time.monotonic() < deadline, f"{name} is not up"
        time.sleep(0.05)


def busy(pid):
    """Its CPU time, in ticks; None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            fields = f.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except OSError:
        return None


def events():
    """(event, job, data) of every death in the log."""
    found = []
    for name in sorted(glob.glob(rig.D + "/data/audit/segment-*.jsonl")):
        with open(name, encoding="utf-8") as f:
            for line in f:
                if "daemon" in line and line.endswith("\n"):
                    walk(json.loads(line), found)
    return found


def walk(j, found):
    if isinstance(j, dict):
        if j.get("event") in ("daemon.died", "detection.daemon_died"):
            found.append((j["event"], int(j["metadata"].get("correlation_uid", 0)), j.get("unmapped")))
        for v in j.values():
            walk(v, found)


def of(job):
    return [(e, d["daemon"], d["read"], d["times"]) for e, j, d in events() if j == job]


def until(what, seconds=15):
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


# ---- jobs ----

class Job:
    """Leased by a tomb for as long as the test needs; asks."""

    def __init__(self):
        self.id = rig.submit(egress="brokered", limits={"timeout_ms": 3600000})
        for _ in range(100):
            row = rig.psql(f"SELECT job_id, epoch, token FROM tomb_api.claim('main', 1, 300, '{rig.BOOT}', '{uuid.uuid4()}')")
            if row and int(row.split("|")[0]) == self.id:
                job, epoch, token = row.split("|")
                self.lease = int(job), int(epoch), token
                break
            time.sleep(0.05)
        else:
            raise AssertionError(f"job {self.id} was not handed out")
        self.seq = 0
        self.lock = threading.Lock()

    def ask(self, text, stream=False, timeout=60):
        with self.lock:
            self.seq += 1
            seq = self.seq
        body = {"seq": seq, "dialect": "openai", "stream": stream, "request": {
            "model": "m", "max_tokens": 50, "stream": stream, "messages": [{"role": "user", "content": text}]}}
        return rig.call(rig.WORK, "POST", "/work/v1/ask", body, rig.lease_headers(self.lease), timeout)

    def ask_beside(self, text, **more):
        """In the background; what becomes of it is nobody's business."""
        def run():
            try:
                self.ask(text, **more)
            except OSError:
                pass
            except Exception:  # a reply that is cut, an answer that breaks off
                pass
        t = threading.Thread(target=run, daemon=True)
        t.start()
        return t

    def wait_for_ever(self):
        self.ask_beside("wait for ever", timeout=300)
        assert Provider.waiting.acquire(timeout=20), self.ask("hello")

    def shown(self):
        return rig.want(rig.api("GET", f"/v1/jobs/{self.id}"), 200).json

    def is_running(self):
        j = self.shown()
        return j["state"] in ("running", "preparing") and not j["taint"]

    def is_ended(self):
        j = self.shown()
        return j["state"] == "quarantined" and bool(j["taint"])


def quiet(*jobs):
    """None of these is named, and all go on."""
    time.sleep(1.5)
    for j in jobs:
        assert of(j.id) == [], of(j.id)
        assert j.is_running(), j.shown()


def ended(job):
    assert until(job.is_ended), job.shown()
    assert "daemon" in job.shown()["taint"], job.shown()
    rig.want(job.ask("more"), 410, "LYCH-RUN-004")
    said = [e for e, *_ in of(job.id)]
    assert said == ["daemon.died", "detection.daemon_died"], said
    metrics = rig.api("GET", "/metrics").body.decode()
    assert "lychgate_broker_signals_total 1" in metrics or "lychgate_broker_signals_total 2" in metrics, \
        [x for x in metrics.splitlines() if "signals" in x]


# ---- the vessel ----

def die_reading(job):
    """Its note outlives it: it is stopped until it is found with one, and killed there."""
    text = "x" * BIG
    for _ in range(200):
        t = job.ask_beside(text)
        while t.is_alive():
            House.vessel.p.send_signal(signal.SIGSTOP)
            with open(NOTE, "rb") as f:
                is_reading = any(f.read(8))
            if is_reading:
                House.kill()
                t.join(20)
                return
            House.vessel.p.send_signal(signal.SIGCONT)
            time.sleep(random.uniform(0.0005, 0.004))
    raise AssertionError("it never read")


def t_a_vessel_that_was_not_reading_blames_nobody():
    a = Job()
    a.wait_for_ever()
    House.kill()
    House.up()
    quiet(a)
    a.wait_for_ever()
    assert House.vessel.stop() == 0
    House.up()
    quiet(a)


def t_the_vessel_dies_twice_of_one_job():
    a, b = Job(), Job()
    assert a.ask("hello").status == 200
    b.wait_for_ever()
    die_reading(a)
    House.up()
    assert until(lambda: of(a.id) == [("daemon.died", "vessel", "request", 1)]), events()
    assert a.is_running(), a.shown()
    quiet(b)
    b.wait_for_ever()
    die_reading(a)
    House.up()
    ended(a)
    quiet(b)
    # a vessel later it is neither told nor counted again
    House.kill()
    House.up()
    time.sleep(1)
    assert len(of(a.id)) == 2, of(a.id)
    assert b.ask("hello").status == 200


def t_bytes_that_are_no_note_blame_nobody():
    a = Job()
    rng = random.Random(7)
    for n in range(6):
        House.kill()
        before = len(events())
        with open(NOTE, "r+b") as f:
            old = f.read()
            torn = bytearray(old)
            torn[n * 4] ^= 0x10
            f.seek(0)
            f.write(rng.randbytes(len(old)) if n < 4 else bytes(torn))
        House.up()
        time.sleep(0.5)
        assert len(events()) == before
    House.kill()
    os.truncate(NOTE, 3)
    with open(DEATHS, "wb") as f:
        f.write(b"{\"key\": nonsense")
    House.up()
    assert os.path.getsize(NOTE) == 4096 and os.stat(NOTE).st_mode & 0o777 == 0o600
    assert a.ask("hello").status == 200
    quiet(a)


def t_without_its_note_it_does_not_start():
    House.kill()
    os.rename(NOTE, NOTE + ".kept")
    for make in (lambda: os.symlink("/dev/zero", NOTE), lambda: os.mkdir(NOTE), lambda: os.mkfifo(NOTE),
                 lambda: os.close(os.open(NOTE, os.O_CREAT | os.O_WRONLY, 0o644)) or os.chmod(NOTE, 0o644)):
        make()
        r = subprocess.run([*rig.ARGS, "--config", rig.D + "/codex.yaml"], env=rig.ENV, cwd=rig.D, timeout=60,
                           capture_output=True, text=True, check=False)
        assert r.returncode not in (0, -6, -11) and "LYCH-STARTUP-014" in r.stderr, r
        (os.rmdir if os.path.isdir(NOTE) and not os.path.islink(NOTE) else os.unlink)(NOTE)
    os.rename(NOTE + ".kept", NOTE)
    House.up()


# ---- its workers ----

def kill_at_work(name, ask):
    """When it has burnt six ticks of CPU for the request and goes on to."""
    pid = worker(name)
    before = busy(pid)
    t = ask()
    while t.is_alive():
        now = busy(pid)
        if now is None:
            return
        if now >= before + 6:
            os.kill(pid, signal.SIGKILL)
            t.join(60)
            return
        time.sleep(0.002)


def dies_twice(job, name, read, kill, *others):
    for _ in range(20):
        kill()
        time.sleep(1)
        seen = of(job.id)
        if len(seen) == 2:
            break
        if len(seen) == 1:
            assert seen == [("daemon.died", name, read, 1)], seen
            assert not job.shown()["taint"]
    ended(job)
    assert of(job.id)[1] == ("detection.daemon_died", name, read, 2), of(job.id)
    quiet(*others)


def words(n, seed):
    rng = random.Random(seed)
    return " ".join(rng.choice(("river", "a1b2c3", "x@", "4111", "key=", "stone", "Anna", "http://")) + str(rng.randrange(10 ** 6))
                    for _ in range(n // 12))


def t_the_gate_dies_twice_of_one_job():
    a, b = Job(), Job()
    text, other = words(GATE_BIG, 1), words(GATE_BIG, 2)
    dies_twice(a, "gate:large", "texts", lambda: kill_reading(a, text, b, other), b)


def kill_reading(a, text, b, other):
    """The gate's worker is stopped at a's text; b's waits behind it. Stopped too late, a's request comes to its end by
    itself: then nothing is killed, for the worker would next read what is b's."""
    pid = worker("gate:large")
    before = busy(pid)
    t = a.ask_beside(text)
    while t.is_alive() and busy(pid) == before:
        time.sleep(0.002)
    os.kill(pid, signal.SIGSTOP)
    t.join(2)
    if not t.is_alive():
        os.kill(pid, signal.SIGCONT)
        return
    u = b.ask_beside(other)
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    t.join(60)
    u.join(60)  # else the next worker reads b's, when it is stopped


def t_a_portals_worker_dies_twice_of_one_job():
    a, b = Job(), Job()

    def ask():
        b.wait_for_ever()  # at the same worker
        return a.ask_beside("flood", stream=True)
    dies_twice(a, "portal:main", "reply", lambda: kill_at_work("portal:main", ask), b)


def swallow(c):
    try:
        c.getresponse().read()
    except Exception:  # it is hung up
        pass


def t_who_hangs_up_meanwhile_is_found_all_the_same():
    a = Job()
    body = json.dumps({"dialect": "openai", "stream": True, "request": {
        "model": "m", "max_tokens": 50, "stream": True, "messages": [{"role": "user", "content": "flood"}]}})
    for n in range(1, 21):
        pid = worker("portal:main")
        before = busy(pid)
        c = rig.Unix(rig.WORK, 60)
        c.request("POST", "/work/v1/ask", f'{{"seq":{n},' + body[1:], rig.lease_headers(a.lease))
        sock = c.sock  # the answer takes it over
        threading.Thread(target=swallow, args=(c,), daemon=True).start()
        until(lambda: busy(pid) >= before + 6, 2)
        os.kill(pid, signal.SIGSTOP)
        sock.shutdown(socket.SHUT_RDWR)
        time.sleep(0.5)  # the vessel lets go of it
        os.kill(pid, signal.SIGKILL)
        time.sleep(1)
        if of(a.id):
            break
    assert of(a.id) == [("daemon.died", "portal:main", "reply", 1)], of(a.id)
    assert a.is_running(), a.shown()


def main():
    for path, text in ((rig.D + "/codex.yaml", CODEX), (rig.D + "/pg/secrets/portal_main", "sk-stand-in-0123456789abcdefghij")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o600)
    failed = []
    House.up()
    for name, fn in [(n, f) for n, f in globals().items() if n.startswith("t_")]:
        if os.environ.get("T") and os.environ["T"] not in name:
            continue
        began = time.monotonic()
        try:
            fn()
            print(f"ok {name[2:]} {time.monotonic() - began:.1f} s", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed.append(name)
            print("FAIL", name[2:], repr(e)[:1500], flush=True)
            traceback.print_exc()
            if House.vessel.p.poll() is not None:
                House.up()
            House.vessel.p.send_signal(signal.SIGCONT)
    if House.vessel.stop() != 0:
        failed.append("the vessel did not stop cleanly")
    if failed:
        print(open(rig.D + "/vessel.log", encoding="utf-8", errors="replace").read()[-4000:])
        print("failed:", ", ".join(failed))
    sys.exit(bool(failed))


main()
