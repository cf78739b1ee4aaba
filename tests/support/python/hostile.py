# SPDX-License-Identifier: Apache-2.0
"""A tomb that was taken over: tomb_2, with its login, its bearer and its leases, beside tomb_1 and the owner.
Over tests/support/python/rig.py. What it is answered is kept in `heard`; row() says what came of one act;
storm() lets it do something as fast as it goes and asks a Witness how long others wait."""
import json
import os
import socket
import time
import uuid

from pgwire import Pg, PgError
from rig import BOOT, D, WORK, Unix, Answer, api, bearer_of, call, lease_headers, psql, submit, want
from witness import Storm, Times, disk_kib, memory_kib

OTHER = bearer_of("tomb_2")
BOOT_2 = str(uuid.uuid4())
MARK = "only-of-tomb-1-" + uuid.uuid4().hex  # in everything that is not tomb_2's
LIMIT = 1.0  # seconds that nobody may wait longer
LONG = {"timeout_ms": 4 * 3600 * 1000}  # of jobs that are there from the first to the last act
MEMORY_MIB = 192  # that the vessel may grow by, for one tomb's sake: bodies 64, answers 64, and what carries them
heard = bytearray()
rows = []


def password_of(role):
    with open(f"{D}/pg/secrets/lychgate_db_{'of_' if role.startswith('tomb') else ''}{role.removeprefix('lych_')}",
              encoding="ascii") as f:
        return f.read().strip()


class Login(Pg):
    """A session of a tomb's role; what tomb_2 reads is kept."""

    def __init__(self, role="tomb_2", **more):
        self.role = role
        super().__init__(D + "/pg/sock", role, password_of(role), **more)

    def answer(self):
        got = super().answer()
        if self.role == "tomb_2":
            heard.extend(repr(got).encode())
        return got


def login(role="tomb_2"):
    """One more session; those that were closed are gone some milliseconds later."""
    for _ in range(200):
        try:
            return Login(role)
        except PgError as e:
            if e.code != "53300":
                raise
            time.sleep(0.02)
    raise AssertionError("no session is free")


def sql(statement, role="tomb_2"):
    """What becomes of a statement in a session of its own."""
    c = login(role)
    try:
        return c.try_(statement)
    finally:
        c.close()


def as_other(lease, method, path, body=None, **who):
    """On the work socket as tomb_2; path without its beginning."""
    a = call(WORK, method, "/work/v1/" + path, body, lease_headers(lease, **{"bearer": OTHER, "tomb": "tomb_2", **who}))
    heard.extend(a.body)
    return a


def head(method, path, length=None, lease=None, more=""):
    """The bytes of a request's head, as tomb_2."""
    h = {**lease_headers(lease, bearer=OTHER, tomb="tomb_2"), "Host": "lychgate"}
    if length is not None:
        h["Content-Length"] = length
    return (f"{method} /work/v1/{path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in h.items()) + more + "\r\n").encode()


def knock(path=WORK, timeout=10):
    """A connection on which nothing was said yet; the kernel turns one away whose queue is full."""
    until = time.monotonic() + timeout
    while True:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        try:
            s.connect(path)
            return s
        except BlockingIOError:
            s.close()
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def status_of(s):
    """Of the answer that comes, or "closed"."""
    try:
        data = s.recv(65536)
    except OSError as e:
        return type(e).__name__
    return data[9:12].decode() if data.startswith(b"HTTP/1.1 ") else "closed"


def claim_as_first(job):
    """As rig.claim(), for five minutes: acts between two storms take their time."""
    for _ in range(50):
        got = psql(f"SELECT job_id, epoch, token FROM tomb_api.claim('main', 1, 300, '{BOOT}', '{uuid.uuid4()}')")
        if got:
            found, epoch, token = got.split("|")
            assert int(found) == job, "another job was first"
            return job, int(epoch), token
        time.sleep(0.1)
    raise AssertionError(f"job {job} was not handed out")


def claim_as_other(n=1, by=None):
    """[(job, epoch, token)] by its own login."""
    c = by or login()
    got = c.ask(f"SELECT job_id, epoch, token FROM tomb_api.claim('main', {n}, 300, '{BOOT_2}', '{uuid.uuid4()}')")
    if not by:
        c.close()
    return [(int(j), int(e), t) for j, e, t in got]


def leases_of_other(n, **spec):
    """n running jobs of tomb_2 (more than others wait)."""
    ids = {submit({"priority": 100, **spec}) for _ in range(n)}
    mine, c = [], login()
    for _ in range(100):
        mine += [x for x in claim_as_other(min(n - len(mine), 32), c) if x[0] in ids]
        if len(mine) == n:
            break
        time.sleep(0.05)
    assert len(mine) == n, (len(mine), n)
    c.close()
    return mine


def row(act, got, *wanted):
    """One act of the table: its answer, which must be one of these."""
    rows.append(act)
    print(f"   {act}: {got}", flush=True)
    assert got in wanted, f"{act}: {got!r}, wanted one of {wanted}"


class Witness:
    """What the owner and tomb_1 do all the time, timed. Whatever it is refused for a moment it tries again: the
    time counts until it went through."""

    def __init__(self):
        self.job = submit({"priority": 100, "argv": ["echo", MARK], "limits": LONG})
        self.lease = claim_as_first(self.job)
        self.pg = Login("tomb_1")
        self.work = None
        self.offset = self.turn = 0
        self.theirs = []  # jobs of tomb_2 that the owner cancels, one a turn
        self.asks = None  # a lease of tomb_1 that may ask a model
        self.seq = 0

    def login(self, sql):
        if self.pg is None:
            self.pg = Login("tomb_1")
        try:
            return self.pg.ask(sql)
        except (ConnectionError, OSError, PgError):
            self.pg = None
            raise

    def on_work(self, method, path, body, lease=None):
        """On a connection that is kept, as a tomb has it."""
        if self.work is None:
            self.work = Unix(WORK)
        try:
            self.work.request(method, "/work/v1/" + path, json.dumps(body) if isinstance(body, dict) else body,
                              lease_headers(lease))
            return Answer(self.work.getresponse())
        except Exception:
            self.work = None
            raise

    def until(self, times, what, fn, *statuses):
        began, why = time.monotonic(), None
        while time.monotonic() - began < 20:
            try:
                a = fn()
                if a.status in statuses:
                    times.add(what, time.monotonic() - began)
                    return a
                why = a
            except (OSError, ConnectionError, PgError, ValueError) as e:
                why = e
            except Exception as e:  # pylint: disable=broad-except
                if "HTTP" not in type(e).__module__.upper():
                    raise
                why = e
            time.sleep(0.01)
        raise AssertionError(f"{what}: {why}")

    def once(self, times):
        job, epoch, token = self.lease
        self.turn += 1
        self.until(times, "show", lambda: api("GET", f"/v1/jobs/{self.job}"), 200)
        a = self.until(times, "submit", lambda: api("POST", "/v1/jobs", {"argv": ["true"], "priority": 0}), 201)
        self.until(times, "cancel", lambda: api("POST", f"/v1/jobs/{a.json['id']}/cancel"), 200)
        if self.theirs:
            mine = self.theirs.pop()
            self.until(times, "cancel its", lambda: api("POST", f"/v1/jobs/{mine}/cancel"), 200)

        def by_login(sql):
            a = Answer.__new__(Answer)
            a.status, a.body = 200, self.login(sql)
            return a
        held = [self.lease] + ([self.asks] if self.asks else [])
        jobs, epochs, tokens = ("{" + ",".join(map(str, column)) + "}" for column in zip(*held))
        a = self.until(times, "extend", lambda: by_login(
            f"SELECT status FROM tomb_api.extend('{BOOT}', '{jobs}', '{epochs}', '{tokens}', 300)"), 200)
        assert a.body == [["ok"]] * len(held), f"a lease of tomb_1 was lost: {a.body}"
        self.until(times, "claim", lambda: by_login(
            f"SELECT job_id FROM tomb_api.claim('main', 0, 30, '{BOOT}', '{uuid.uuid4()}')"), 200)
        a = self.until(times, "extend, 2nd door", lambda: self.on_work("POST", "extend", {
            "boot": BOOT, "ttl": 300, "leases": [{"job": job, "epoch": epoch, "token": token}]}), 200)
        assert a.json["leases"][0]["status"] == "ok", a
        line = MARK.encode() + b"\n"
        self.until(times, "output", lambda: self.on_work(
            "POST", f"output?stream=stdout&offset={self.offset}", line, self.lease), 200)
        self.offset += len(line)
        self.until(times, "phase, anew", lambda: call(WORK, "POST", "/work/v1/phase", {
            "phase": "running" if self.turn % 2 else "harvesting"}, lease_headers(self.lease)), 200)
        if self.asks:
            self.seq += 1
            seq = self.seq
            self.until(times, "ask", lambda: call(WORK, "POST", "/work/v1/ask", {
                "seq": seq, "dialect": "openai", "stream": False,
                "request": {"model": "w", "messages": [{"role": "user", "content": "hello"}]}}, lease_headers(self.asks)), 200)


class World:
    """The vessel, the witness, and what was measured."""
    vessel = None
    witness = None
    quiet = None


def server_kib():
    """Of the database's processes."""
    with open(D + "/pg/data/postmaster.pid", encoding="ascii") as f:
        return memory_kib(int(f.readline()))


def one_storm(fn, seconds, n, during):
    w, times = World.witness, Times()
    before = memory_kib(World.vessel.p.pid), disk_kib(D + "/pg", D + "/data", D + "/run")
    most, most_pg = before[0], 0
    s = Storm(fn, seconds, n)
    while s.goes_on():
        w.once(times)
        most, most_pg = max(most, memory_kib(World.vessel.p.pid)), max(most_pg, server_kib())
        if during:
            during()
        time.sleep(0.03)
    words = s.end()
    return times, words, {"vessel": (most - before[0]) >> 10, "server": most_pg >> 10,
                          "disk": (disk_kib(D + "/pg", D + "/data", D + "/run") - before[1]) >> 10}


def storm(act, fn, seconds=5, n=1, *, memory=MEMORY_MIB, disk=64, wanted=None, during=None, limit=LIMIT):
    """fn as Storm's. Nobody waits for longer than the limit (an outlier, on a machine with other work, is looked at
    once more), the vessel stays small, and of the disk it takes so many MiB at most. wanted: an answer that
    must have come, so that the storm was one."""
    for again in (False, True):
        times, words, mib = one_storm(fn, seconds, n, during)
        print(f"   {act}: {', '.join(f'{v} {k}' for k, v in words.items())}\n"
              f"      longest {1000 * times.worst():.0f} ms, median {1000 * times.median():.0f} ms ({times.table()}); "
              f"vessel +{mib['vessel']} MiB, server {mib['server']} MiB, disk +{mib['disk']} MiB", flush=True)
        if times.worst() <= limit or again:
            break
        print("      once more", flush=True)
    rows.append(act)
    assert "broke off" not in words, words
    assert times.worst() <= limit, f"{act}: somebody waited for {times.worst():.2f} s"
    assert mib["vessel"] <= memory, f"{act}: the vessel grew by {mib['vessel']} MiB"
    assert mib["disk"] <= disk, f"{act}: {mib['disk']} MiB of the disk"
    assert World.vessel.p.poll() is None, f"{act}: the vessel ended"
    for word in wanted or ():
        assert any(w in k for k in words for w in word.split("|")), f"{act}: no {word!r} among {words}"
    return times, words


def settle_all():
    """What tomb_2 holds ends, so that the next act begins with nothing."""
    c = login("lych_vessel")
    for job, in c.ask("SELECT id FROM vessel_api.list('', 0, 500) WHERE owner = 'tomb_2'"):
        c.ask(f"SELECT vessel_api.contain({job}, 'the end of an act')")
    for job, in c.ask("SELECT id FROM vessel_api.list('queued', 0, 500)"):
        c.ask(f"SELECT vessel_api.cancel({job})")
    c.close()


def gone(path):
    try:
        os.unlink(path)
    except OSError:
        pass
