# SPDX-License-Identifier: Apache-2.0
"""Run by test_faults.sh: faults_load.py HOW PID BIN CLUSTER. 60 jobs by 8 clients, while PostgreSQL
is stopped for 10 s (stop), killed (kill) or shut down at once (immediate). Each submission brings a
job's id or a typed 503, and is sent again with its request_id until it brings an id: then each job
exists once, has succeeded and said its own word once."""
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

HOW, PID, BIN, CLUSTER = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
SOCKET = os.environ["XDG_RUNTIME_DIR"] + "/lychgate/api/vessel.sock"
JOBS, CLIENTS = 60, 8
RUN = f"load-{HOW}-{os.getpid()}"
lock = threading.Lock()
todo = list(range(JOBS))
ids, refusals, strange, longest = {}, 0, [], 0.0


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(SOCKET)


def call(method, path, body=None):
    c = Unix("lychgate")
    try:
        c.request(method, path, json.dumps(body) if body else None)
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


def submit(n):
    global refusals, longest
    body = {"request_id": f"{RUN}-{n}", "argv": ["sh", "-c", f"sleep 0.3; echo {RUN}-{n}"]}
    while True:
        start = time.monotonic()
        status, data = call("POST", "/v1/jobs", body)
        answer = json.loads(data)
        with lock:
            longest = max(longest, time.monotonic() - start)
            if status in (200, 201):
                ids.setdefault(n, set()).add(answer["id"])
                return
            refusals += 1
            if status != 503 or answer["error_code"] != "LYCH-RUN-007" or not answer["hint"]:
                strange.append((status, data[:200]))
                return
        time.sleep(0.1)


def client():
    while True:
        with lock:
            if not todo:
                return
            n = todo.pop()
        try:
            submit(n)
            submit(n)  # once more, as after a lost answer: the same job
        except Exception as e:  # an answer is owed, whatever happens below
            with lock:
                strange.append(("no answer", n, repr(e)))


def fault():
    if HOW == "stop":
        tree = [PID] + [int(p) for p in
                        open(f"/proc/{PID}/task/{PID}/children").read().split()]
        for p in tree:
            os.kill(p, signal.SIGSTOP)
        time.sleep(10)
        for p in tree:
            with contextlib.suppress(ProcessLookupError):  # whoever keeps it found it stopped
                os.kill(p, signal.SIGCONT)
    elif HOW == "kill":
        os.kill(PID, signal.SIGKILL)
    else:
        subprocess.run([BIN + "/pg_ctl", "-D", CLUSTER, "-m", "immediate", "-W", "stop"],
                       check=True, stdout=subprocess.DEVNULL)


threads = [threading.Thread(target=client, daemon=True) for _ in range(CLIENTS)]
for t in threads[:2]:
    t.start()
while len(ids) < 12:
    time.sleep(0.01)
breaker = threading.Thread(target=fault)
breaker.start()
for t in threads[2:]:
    t.start()
for t in threads:
    t.join(60)
    assert not t.is_alive(), "a client still waits"
breaker.join()
assert not strange, strange[:3]
assert len(ids) == JOBS and all(len(s) == 1 for s in ids.values()), "a request_id has two jobs"
assert longest < 15, f"a client waited {longest:.1f} s for an answer"

deadline = time.monotonic() + 90
left = {n: next(iter(s)) for n, s in ids.items()}
attempts = 0
while left:
    assert time.monotonic() < deadline, f"{len(left)} jobs never ended: {left}"
    for n, job in list(left.items()):
        status, data = call("GET", f"/v1/jobs/{job}")
        if status == 503:
            break
        assert status == 200, (n, job, data)
        j = json.loads(data)
        if j["state"] in ("queued", "preparing", "running"):
            break
        assert j["state"] == "succeeded" and j["request_id"] == f"{RUN}-{n}", j
        status, out = call("GET", f"/v1/jobs/{job}/output?stream=stdout")
        assert status == 200 and out == f"{RUN}-{n}\n".encode(), (n, out)
        attempts += j["attempts"]
        del left[n]
    time.sleep(0.1)
print(f"faults: {HOW}: {JOBS} jobs once each, {attempts} attempts, {refusals} typed refusals, "
      f"longest answer {longest:.1f} s")
