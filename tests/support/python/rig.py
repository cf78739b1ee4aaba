# SPDX-License-Identifier: Apache-2.0
"""A vessel judged from outside, for tests that tests/support/rig runs as FILE.py DIR VESSEL: a real
PostgreSQL and scribe in DIR, an HTTP client on the vessel's two sockets, and a tomb made of SQL and
that client. Each function of the test named t_* is one case; main(globals()) runs them."""
import base64
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import uuid

from pgwire import Logins

D, VESSEL = sys.argv[1:3]
API, WORK = D + "/run/api/vessel.sock", D + "/run/work/vessel.sock"


def bearer_of(tomb):
    with open(D + "/pg/secrets/lychgate_work_of_" + tomb, encoding="ascii") as f:
        return f.read().strip()


SECRET = bearer_of("tomb_1")
BOOT = str(uuid.uuid4())
database = Logins(D + "/pg")
ARGS = [VESSEL, "serve", "--data", D + "/data/vessel", "--api-dir", D + "/run/api",
        "--work-dir", D + "/run/work", "--pg-dir", D + "/pg/sock",
        "--audit-dir", D + "/run/audit", "--secrets", D + "/pg/secrets"]
ENV = {"HOME": D + "/home", "PATH": os.environ["PATH"],
       **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}}


class Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout=20):
        super().__init__("lychgate", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, r):
        self.status, self.headers, self.body = r.status, r.headers, r.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json.get("error_code")

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


def call(sock, method, path, body=None, headers=None, timeout=20):
    c = Unix(sock, timeout)
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    c.request(method, path, body, headers or {})
    a = Answer(c.getresponse())
    c.close()
    return a


def api(method, path, body=None, **headers):
    return call(API, method, path, body, headers)


def lease_headers(lease=None, bearer=SECRET, version="1", tomb="tomb_1"):
    h = {"Lychgate-Tomb": tomb} if tomb else {}
    if bearer is not None:
        h["Authorization"] = "Bearer " + bearer
    if version is not None:
        h["Lychgate-Version"] = version
    if lease:
        h["Lychgate-Job"], h["Lychgate-Epoch"], h["Lychgate-Token"] = map(str, lease)
    return h


def work(lease, method, path, body=None):
    return call(WORK, method, path, body, lease_headers(lease))


def want(answer, status, code=None):
    assert answer.status == status, f"wanted {status} {code}: {answer}"
    if code:
        e = answer.json
        assert e["error_code"] == code, f"wanted {code}: {answer}"
        assert e["hint"] and e["title"] and e["request_id"], answer
        assert answer.headers["X-Request-Id"] == e["request_id"]
    return answer


def psql(sql, role="tomb_1"):
    return database.ask(sql, role)


def submit(spec=None, **more):
    spec = {"argv": ["true"], **(spec or {}), **more}
    return want(api("POST", "/v1/jobs", spec), 201).json["id"]


LEASE_SEC = 300  # nobody renews it: as long as a test may take on a slow machine


def claim(job):
    """As a tomb: claim until this job is ours (others are given back cancelled)."""
    for _ in range(50):
        row = psql(f"SELECT job_id, epoch, token FROM tomb_api.claim('main', 1, {LEASE_SEC}, '{BOOT}', "
                   f"'{uuid.uuid4()}')")
        if row:
            lease = row.split("|")
            if int(lease[0]) == job:
                return int(lease[0]), int(lease[1]), lease[2]
            settle(lease, "ack", {"v": 1, "exit_code": 0})
        time.sleep(0.05)
    raise AssertionError(f"job {job} was not handed out")


def settle(lease, how, result, klass=""):
    data = json.dumps(result).encode().hex() if not isinstance(result, bytes) else result.hex()
    job, epoch, token = lease
    if how == "ack":
        sql = f"SELECT tomb_api.ack({job}, {epoch}, '{token}', '\\x{data}')"
    else:
        again = "true" if how == "fail_again" else "false"
        sql = f"SELECT tomb_api.fail({job}, {epoch}, '{token}', {again}, '{klass}', '\\x{data}')"
    assert psql(sql) == "ok"


def finish_output(lease, out=0, err=0):
    want(work(lease, "POST", "/work/v1/output/end",
              {"stdout_bytes": out, "stderr_bytes": err, "stdout_truncated": False,
               "stderr_truncated": False}), 200)


class Vessel:
    def __init__(self, args=()):
        r, w = os.pipe()
        self.log = open(D + "/vessel.log", "a+b")
        self.p = subprocess.Popen([*ARGS, "--ready-fd", str(w), *args], env=ENV,
                                  stderr=self.log, pass_fds=[w], cwd=D)
        os.close(w)
        t = time.monotonic()
        with os.fdopen(r, "rb") as f:
            is_ready = b"READY=1\n" in f
        self.ready_after = time.monotonic() - t
        assert is_ready, open(D + "/vessel.log").read()[-2000:]

    def stop(self, signo=signal.SIGTERM):
        self.p.send_signal(signo)
        return self.p.wait(10)


def lych(*args, runtime=D + "/xdg", **more):
    """The command, on this vessel."""
    os.makedirs(D + "/xdg", 0o700, exist_ok=True)
    if not os.path.islink(D + "/xdg/lychgate"):
        os.symlink(D + "/run", D + "/xdg/lychgate")
    env = {**ENV, "XDG_RUNTIME_DIR": runtime, "LYCHGATE_DATA": D + "/data"}
    return subprocess.Popen([os.environ["LYCH_BUILD"] + "/lych", *args], env=env, **{
        "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more})


def upload(data, call_=None, part=1 << 20):
    call_ = call_ or api
    prefix = "/v1" if call_ is api else "/work/v1"
    u = want(call_("POST", prefix + "/uploads", {}), 201).json["upload"]
    for at in range(0, len(data), part):
        a = want(call_("PUT", f"{prefix}/uploads/{u}?offset={at}", data[at:at + part]), 200)
        assert a.json["received"] == min(at + part, len(data))
    sha = hashlib.sha256(data).hexdigest()
    want(call_("POST", f"{prefix}/uploads/{u}/commit", {"sha256": sha, "size": len(data)}), 201)
    return sha


class Events(threading.Thread):
    """Reads a job's stream to its end."""

    def __init__(self, job, query=""):
        super().__init__(daemon=True)
        self.c = Unix(API, timeout=30)
        self.c.request("GET", f"/v1/jobs/{job}/events{query}")
        self.sock = self.c.sock  # the answer takes it over
        self.r = self.c.getresponse()
        assert self.r.status == 200, self.r.read()
        self.events, self.out = [], {"stdout": b"", "stderr": b""}
        self.times = {}
        self.start()

    def run(self):
        name = None
        for line in self.r:
            line = line.decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
                self.events.append((name, data))
                self.times.setdefault(name + ":" + str(data.get("state")), time.monotonic())
                if name == "output":
                    if data["offset"] == 0:
                        self.out[data["stream"]] = b""
                    self.out[data["stream"]] += base64.b64decode(data["data"])

    def leave(self):
        self.sock.shutdown(socket.SHUT_RDWR)

    def states(self):
        return [d["state"] for n, d in self.events if n == "state"]


def cases(g):
    """Every case of a test, in order; T=text,text: those whose name contains one. Which of them failed."""
    failed = []
    for name, fn in [(n, f) for n, f in list(g.items()) if n.startswith("t_")]:
        if os.environ.get("T") and not any(t in name for t in os.environ["T"].split(",")):
            continue
        try:
            fn()
            print("ok", name[2:], flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed.append(name)
            print("FAIL", name[2:], repr(e)[:1500], flush=True)
            traceback.print_exc()
    return failed


def main(g):
    """The cases, while g["vessel"] runs."""
    g["vessel"] = Vessel()
    failed = cases(g)
    vessel = g["vessel"]
    if vessel.p.poll() is not None:
        failed.append("the vessel ended by itself")
    elif vessel.stop() != 0:
        failed.append("the vessel did not stop cleanly")
    if failed:
        sys.stdout.write(open(D + "/vessel.log").read()[-3000:])
        print("failed:", ", ".join(failed))
    sys.exit(bool(failed))
