# SPDX-License-Identifier: Apache-2.0
"""Run by test_follow.sh (tests/support/rig). Each function named t_* is one case. The vessel reaches its
database through pgproxy.py, which holds answers back where an order of events is to be forced."""
import json
import os
import signal
import socket
import subprocess
import threading
import time

import rig
from pgproxy import Proxy
from rig import API, ARGS, D, Unix, api, claim, finish_output, lych, main, psql, settle, submit, want, work

proxy = Proxy(D + "/pg/sock", D + "/proxy")
ARGS[ARGS.index("--pg-dir") + 1] = D + "/proxy"
vessel = None  # the one that runs
PATIENCE = 2.8  # seconds: a little less than the vessel has for a person's question
SOON = 3  # seconds: what is not there by then waits for something that does not come


class Follower(threading.Thread):
    """One connection's stream of a job, to its end or the test's."""

    def __init__(self, job, headers=None):
        super().__init__(daemon=True)
        self.c = Unix(API, timeout=60)
        self.job, self.headers = job, headers or {}
        self.events, self.comments, self.ids, self.status = [], [], [], None
        self.start()

    def run(self):
        self.c.request("GET", f"/v1/jobs/{self.job}/events", headers=self.headers)
        self.sock = self.c.sock  # the answer takes it over
        r = self.c.getresponse()
        self.status = r.status
        name = None
        for line in r:
            line = line.decode().rstrip("\n")
            if line.startswith(":"):
                self.comments.append(time.monotonic())
            elif line.startswith("id: "):
                self.ids.append(line[4:])
            elif line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                self.events.append((name, json.loads(line[6:])))

    def begun(self):
        until("it begins", lambda: self.events or self.status not in (None, 200))
        assert self.events, self.status
        return self

    def ended(self, state="succeeded"):
        self.join(SOON)
        assert not self.is_alive(), f"it waits on: {self.events}"
        assert self.events[-1][0] == "end" and self.events[-1][1]["state"] == state, self.events

    def leave(self):
        self.sock.shutdown(socket.SHUT_RDWR)


def until(what, fn, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if fn():
            return
        time.sleep(0.01)
    raise AssertionError(f"{what}: not within {seconds} s")


def finish(job):
    settle(claim(job), "ack", {"v": 1, "exit_code": 0})


def busy(job, n=400):
    """As many changes of another job, each a transaction of its own."""
    psql(f"DO $$ BEGIN PERFORM set_config('synchronous_commit', 'off', false); FOR i IN 1..{n} LOOP UPDATE lych.job SET state = state WHERE id = {job}; COMMIT; END LOOP; "
         "END $$", "lych_migrate")


# ---- what falls between a follower's question and its answer ----

def t_a_change_while_the_first_answer_is_on_its_way():
    """It has subscribed and asked how the job stands; the answer, already old, is still under way when the
    job ends and others' changes are told."""
    others = submit()
    other = Follower(others).begun()
    for _ in range(5):
        job = submit(priority=100)
        lease = claim(job)
        with proxy.holding("show"):
            f = Follower(job)
            proxy.wait_held("show")
            began = time.monotonic()
            settle(lease, "ack", {"v": 1, "exit_code": 0})
            busy(others)
            time.sleep(0.8)  # polls and hints of the fan-out go by
        held = time.monotonic() - began
        until("it is answered", lambda: f.status)
        if f.status == 200:
            break
        # on a slow machine: held for longer than the vessel waits, which says that the database is away
        assert f.status == 503 and held > PATIENCE, (f.status, held)
    f.begun()
    f.ended()
    other.leave()


def t_a_change_while_the_fan_out_asks():
    """The answer about what changed is older than the change that follows it."""
    job = submit(priority=100)
    f = Follower(job).begun()
    lease = claim(job)
    with proxy.holding("look"):
        want(work(lease, "POST", "/work/v1/phase", {"phase": "running"}), 200)
        proxy.wait_held("look")
        settle(lease, "ack", {"v": 1, "exit_code": 0})
        busy(submit())
    f.ended()


def t_an_old_transaction_of_anybody_holds_nobody():
    job = submit(priority=100)
    f = Follower(job).begun()
    sleeper = subprocess.Popen(["tests/support/pg", "psql", D + "/pg", "lych_migrate", "-At", "-c",
                                "BEGIN; SELECT pg_current_xact_id(); SELECT pg_sleep(20); COMMIT"],
                               stdout=subprocess.DEVNULL)
    until("it is open", lambda: psql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE "
                                     "'BEGIN; SELECT pg_current%' AND state = 'active' AND "
                                     "backend_xid IS NOT NULL", "lych_migrate") == "1")
    try:
        finish(job)
        f.ended()
    finally:
        psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; SELECT pg_current%'",
             "lych_migrate")
        sleeper.wait()


def t_a_change_that_nobody_hints_at():
    job = submit(priority=100)
    f = Follower(job).begun()
    psql(f"UPDATE lych.job SET state = 'cancelled', finished_at = now() WHERE id = {job}", "lych_migrate")
    busy(submit())
    f.ended("cancelled")


def t_a_job_that_is_no_more():
    job = submit(priority=100)
    f = Follower(job).begun()
    finish_later = claim(job)
    psql(f"DELETE FROM lych.lease WHERE job_id = {job}; DELETE FROM lych.job WHERE id = {job}", "lych_migrate")
    f.join(SOON)
    assert not f.is_alive(), "it follows a job that is gone"
    assert finish_later and f.events[-1][0] == "state", f.events
    want(api("GET", f"/v1/jobs/{job}/events"), 404, "LYCH-RUN-001")


def t_each_of_many_followers_of_one_job():
    job = submit(priority=100)
    followers = [Follower(job).begun() for _ in range(40)]
    followers[7].leave()
    finish(job)
    for n, f in enumerate(followers):
        if n != 7:
            f.ended()


# ---- a stream that stands ----

def t_a_stream_says_that_it_is_there():
    job = submit()
    f = Follower(job).begun()
    # a reader that has stopped costs the vessel no stream, and is there when it goes on
    time.sleep(11)
    assert 1 <= len(f.comments) <= 3, f.comments
    want(api("POST", f"/v1/jobs/{job}/cancel"), 200)
    f.ended("cancelled")


def t_a_reader_goes_on_where_it_was():
    job = submit(priority=100)
    first = claim(job)
    put = lambda lease, off, data: want(work(lease, "POST", f"/work/v1/output?stream=stdout&offset={off}", data), 200)
    put(first, 0, b"one ")
    f = Follower(job).begun()
    until("its output", lambda: f.ids)
    assert f.ids[-1] == f"{first[1]}-4-0", f.ids
    f.leave()
    put(first, 4, b"two ")
    f = Follower(job, {"Last-Event-ID": f.ids[-1]})
    until("more output", lambda: f.ids)
    output = [d for n, d in f.events if n == "output"]
    assert [d["offset"] for d in output] == [4] and f.ids == [f"{first[1]}-8-0"], (output, f.ids)
    f.leave()
    # the attempt is lost; another prints as much: nothing of the two is spliced
    assert psql(f"SELECT tomb_api.release({first[0]}, {first[1]}, '{first[2]}')") == "ok"
    second = claim(job)
    put(second, 0, b"another attempt")
    f = Follower(job, {"Last-Event-ID": f"{first[1]}-8-0"}).begun()
    until("its output", lambda: f.ids)
    assert [d["offset"] for n, d in f.events if n == "output"] == [0], f.events
    finish_output(second, 15)
    settle(second, "ack", {"v": 1, "exit_code": 0})
    f.ended()
    for bad in ("x", "1", "1-2", "1-2-x", "-1-2-3", "1-2-3-4", "99999999999999999999-1-1"):
        want(api("GET", f"/v1/jobs/{job}/events", None, **{"Last-Event-ID": bad}), 400, "LYCH-HTTP-007")


def t_the_command_asks_again_when_nobody_speaks():
    """A vessel that is stopped, or lost the stream without closing it."""
    os.makedirs(D + "/mute/lychgate/api", 0o700)
    server = socket.socket(socket.AF_UNIX)
    server.bind(D + "/mute/lychgate/api/vessel.sock")
    server.listen(8)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    job = {"id": 1, "state": "running"}
    out = b'id: 4-2-0\nevent: output\ndata: {"stream":"stdout","offset":%d,"data":"%s"}\n\n'
    asked = []

    def chunk(data):
        return b"%x\r\n%s\r\n" % (len(data), data)

    def serve():
        for n in range(2):
            c, _ = server.accept()
            request = b""
            while b"\r\n\r\n" not in request:
                request += c.recv(4096)
            asked.append((time.monotonic(), request.decode()))
            c.sendall(head + chunk(b"event: state\ndata: %s\n\n" % json.dumps(job).encode()))
            if n == 0:
                c.sendall(chunk(out % (0, b"aGk=")))
                kept.append(c)  # open, and nothing more is said
            else:
                c.sendall(chunk(out % (2, b"IQo=") + b"event: end\ndata: %s\n\n" % json.dumps(
                    {**job, "state": "succeeded"}).encode()))
                c.close()

    kept = []
    threading.Thread(target=serve, daemon=True).start()
    began = time.monotonic()
    p = lych("logs", "-f", "1", runtime=D + "/mute")
    text, errors = p.communicate(timeout=40)
    assert p.returncode == 0 and text == "hi!\n", (p.returncode, text, errors)
    assert len(asked) == 2 and 14 < asked[1][0] - began < 25, asked
    assert "last-event-id" not in asked[0][1].lower(), asked
    assert "last-event-id: 4-2-0" in asked[1][1].lower(), asked


def mute(name, serve):
    """A socket in the place of a vessel's; serve(connection) for each that comes."""
    os.makedirs(f"{D}/{name}/lychgate/api", 0o700)
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{D}/{name}/lychgate/api/vessel.sock")
    server.listen(8)

    def accept():
        while True:
            serve(server.accept()[0])

    threading.Thread(target=accept, daemon=True).start()
    return f"{D}/{name}"


def t_a_stream_that_ends_at_once_is_asked_for_less_and_less():
    asked = []

    def serve(c):
        asked.append(time.monotonic())
        c.recv(4096)
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        c.close()

    p = lych("logs", "-f", "1", runtime=mute("brief", serve))
    time.sleep(5)
    n = len(asked)
    p.send_signal(signal.SIGINT)
    assert p.wait(5) == 130, p.returncode
    assert 4 <= n <= 9, asked


def t_who_waits_for_a_reader_hears_an_interrupt():
    """Its output goes into a pipe that nobody reads."""
    kept = []

    def serve(c):
        kept.append(c)
        c.recv(4096)
        data = b"A" * 65536
        c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for n in range(4):
            event = b'id: 4-%d-0\nevent: output\ndata: {"stream":"stdout","offset":%d,"data":"%s"}\n\n' % (
                n * 49152, n * 49152, data)
            c.sendall(b"%x\r\n%s\r\n" % (len(event), event))

    p = lych("logs", "-f", "1", runtime=mute("full", serve))
    time.sleep(1)
    p.send_signal(signal.SIGINT)
    assert p.wait(5) == 130, p.returncode


def t_who_waits_for_an_answer_hears_an_interrupt():
    kept = []
    p = lych("run", "-n", "--", "true", runtime=mute("still", kept.append))
    until("it asks", lambda: kept)
    time.sleep(0.2)
    p.send_signal(signal.SIGINT)
    assert p.wait(5) == -signal.SIGINT, p.returncode


def t_who_waits_for_a_vessel_that_accepts_nobody_hears_an_interrupt():
    os.makedirs(f"{D}/closed/lychgate/api", 0o700)
    path = f"{D}/closed/lychgate/api/vessel.sock"
    waiting = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(0)
        try:
            while True:
                waiting.append(socket.socket(socket.AF_UNIX))
                waiting[-1].setblocking(False)
                waiting[-1].connect(path)
        except BlockingIOError:
            pass
        p = lych("logs", "-f", "1", runtime=f"{D}/closed")
        time.sleep(1)
        began = time.monotonic()
        p.send_signal(signal.SIGINT)
        assert p.wait(5) == 130 and time.monotonic() - began < 0.5, (p.returncode, time.monotonic() - began)


def t_the_colour_of_a_job_ends_with_its_output():
    """Its vessel says something that cannot be read, which a person is told on the same terminal."""

    def serve(c):
        c.recv(4096)
        c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for event in (b"output\ndata: " + json.dumps({"stream": "stdout", "offset": 0, "data": "G1szMW1yZWQ="}).encode(),
                      b"output\ndata: {"):
            event = b"id: 4-7-0\nevent: " + event + b"\n\n"
            c.sendall(b"%x\r\n%s\r\n" % (len(event), event))

    shown, terminal = os.openpty()
    p = subprocess.Popen([os.environ["LYCH_BUILD"] + "/lych", "logs", "-f", "1"], stdin=terminal, stdout=terminal,
                         stderr=terminal, env={**os.environ, "XDG_RUNTIME_DIR": mute("red", serve)})
    assert p.wait(10) == 1, p.returncode
    text = os.read(shown, 65536)
    assert b"\x1b[31mred" in text and b"\x1b[0m" in text[text.index(b"red"):text.index(b"lych: ")], text


def t_the_command_outlasts_a_vessel_that_is_killed():
    global vessel
    job = submit(priority=100)
    p = lych("logs", "-f", str(job))
    lease = claim(job)
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", b"before "), 200)
    time.sleep(0.3)
    vessel.stop(signal.SIGKILL)
    vessel = rig.Vessel()
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=7", b"after"), 200)
    finish_output(lease, 12)
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    text, errors = p.communicate(timeout=20)
    assert p.returncode == 0 and text == "before after", (p.returncode, text, errors)


main(globals())
