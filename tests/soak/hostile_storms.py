# SPDX-License-Identifier: Apache-2.0
"""What a tomb that was taken over does as fast as it goes, or for as long as it can, while a witness counts how long
the owner and tomb_1 wait. Imported by hostile_tomb.py; tests/support/python/hostile.py has the means."""
import base64
import glob
import json
import os
import random
import socket
import struct
import time
import uuid

import hostile
from hostile import BOOT_2, Login, World, as_other, head, heard, knock, leases_of_other, login, row, settle_all, status_of, storm
from pgwire import CANCEL, PgError, connect, simple
from rig import D, WORK, api, claim, psql, submit, upload, want
from witness import Times

BROKEN = (ConnectionError, OSError, PgError)
PROVIDER_PAUSE = "slow 2"


def login_or_none(count, **more):
    try:
        return Login(**more)
    except BROKEN as e:
        count(getattr(e, "code", type(e).__name__))
        time.sleep(0.02)
        return None


def sessions(count, n=8):
    """As many as it gets."""
    return [c for c in (login_or_none(count) for _ in range(n)) if c]


def in_sessions(sql, n=8):
    """Each of n sessions runs it, again and again, in a new session when the last was ended."""
    def begin(c):
        c.s.settimeout(20)
        c.send(sql)
        c.s.settimeout(0.005)

    def look(c, count):
        """False: the session is over."""
        try:
            c.answer()
            count("ok")
        except TimeoutError:
            return True
        except PgError as e:
            count(e.code)
            if e.code.startswith("57P"):
                return False
        begin(c)
        return True

    def fn(count, on):
        held = []
        while on():
            if len(held) < n and (c := login_or_none(count, timeout=20)):
                begin(c)
                held.append(c)
            for c in list(held):
                try:
                    if look(c, count):
                        continue
                except (ConnectionError, OSError):
                    count("ended")
                held.remove(c)
            time.sleep(0.02)
    return fn


def t_20_quiet():
    World.quiet, _ = storm("nothing, for comparison", lambda count, on: [time.sleep(0.1) for _ in iter(on, False)])


# ---- at the database ----

def t_30_it_locks_the_jobs_of_others():
    job = World.witness.job

    def fn(count, on):
        while on():
            for c in sessions(count, 6):
                try:
                    c.ask("BEGIN")
                    for j in range(max(job - 5, 1), job + 5):
                        count(c.ask(f"SELECT tomb_api.ack({j}, 1, '{BOOT_2}', 'x')")[0][0])
                except BROKEN as e:
                    count(type(e).__name__)
            time.sleep(1.5)
    storm("SQL: ack() of others' jobs with made-up tokens, in transactions that stay open", fn, wanted=["denied"])


def t_31_it_locks_its_own_while_the_owner_cancels_them():
    leases = leases_of_other(24)

    def fn(count, on):
        mine, held = list(leases), []
        while on():
            for c in sessions(count, 8 - len(held)):
                key = "{}, {}, '{}'".format(*random.choice(mine))
                try:
                    c.ask("BEGIN")
                    c.send(f"SELECT tomb_api.release({key})")
                    held.append(c)
                    count("held")
                except BROKEN:
                    pass
            for c in list(held):
                try:  # never idle for long
                    c.s.settimeout(0.01)
                    c.send("SELECT 1")
                    c.answer()
                except TimeoutError:
                    pass
                except BROKEN:
                    count("ended")
                    held.remove(c)
            time.sleep(0.05)
    World.witness.theirs = [j for j, _, _ in leases] * 50
    storm("SQL: its own jobs' rows in transactions that stay open, while the owner cancels them", fn, seconds=8, wanted=["held", "ended"])
    World.witness.theirs = []
    settle_all()


def t_32_a_word_that_cannot_be_interrupted():
    """No function is its to call; what is left is the reading of a literal of any size."""
    lease, = leases_of_other(1)

    def fn(count, on):
        text = "'" + ",".join(["(1.5,2.5)"] * 1500000) + "'::path"
        while on():
            c = login_or_none(count, timeout=30)
            if not c:
                continue
            try:
                c.ask("BEGIN")
                c.ask("SELECT tomb_api.release({}, {}, '{}')".format(*lease))
                while on():
                    began = time.monotonic()
                    c.ask("SELECT " + text)
                    count(f"read in {time.monotonic() - began:.1f} s")
            except BROKEN as e:
                count(getattr(e, "code", "ended"))
    World.witness.theirs = [lease[0]] * 1000
    storm("SQL: literals of 15 MB, in a transaction that the owner waits for", fn, seconds=8, wanted=["ended|57P01"])
    World.witness.theirs = []
    settle_all()


def t_32_one_call_that_goes_on():
    """It gives its job back, and counts: at work, and waiting for nothing."""
    leases = leases_of_other(8)
    many = ",".join("(VALUES " + ",".join(["(1)"] * 20) + ")" + c for c in "abcdefg")

    def fn(count, on):
        while on():
            c = login_or_none(count, timeout=30)
            if not c:
                continue
            try:
                c.ask("SELECT tomb_api.release({}, {}, '{}'), (SELECT 1 FROM {} OFFSET 100000000000)".format(
                    *random.choice(leases), many))
            except BROKEN as e:
                count(getattr(e, "code", "ended"))
    World.witness.theirs = [j for j, _, _ in leases] * 100
    storm("SQL: a call that gives a job back and goes on, while the owner cancels it", fn, seconds=8, n=4, wanted=["57P01"])
    World.witness.theirs = []
    settle_all()


def t_33_it_burns():
    vals = ",".join(["(1)"] * 3000)
    storm("SQL: 8 sessions that count to 10^10 by joins", in_sessions(
        f"SELECT 1 FROM (VALUES {vals}) a, (VALUES {vals}) b, (VALUES {vals}) c OFFSET 100000000000"), seconds=8, wanted=["57P01"])


def t_34_it_takes_memory():
    def fn(count, on):
        big = simple("SELECT '" + "x" * (300 << 20) + "'")
        while on():
            for c in sessions(count):
                try:
                    c.s.sendall(big)
                    c.answer()
                    count("ok")
                except BROKEN as e:
                    count(getattr(e, "code", "ended"))
                c.close()
    storm("SQL: statements of 300 MB", fn, seconds=20, wanted=["53200"])
    storm("SQL: work_mem of 2 GB and a recursion that grows", in_sessions(
        "SET work_mem = '2GB'; WITH RECURSIVE t (a) AS (SELECT '" + "x" * 100 + "' UNION ALL SELECT a FROM t) SELECT a FROM t OFFSET 1000000000000"),
        wanted=["53"])


def t_35_it_takes_the_disk():
    storm("SQL: 8 cursors that outlive their transaction, 64 MB each", in_sessions(
        "DECLARE c CURSOR WITH HOLD FOR WITH RECURSIVE t (a) AS (SELECT '" + "x" * 100000 + "' UNION ALL SELECT a FROM t) SELECT a FROM t"),
        wanted=["53400"], disk=640)

    def fn(count, on):
        big = simple("SELECT '" + "e" * (20 << 20) + "' + 'log this'")
        c = login_or_none(count)
        c.ask("SET debug_print_plan = on; SET debug_print_parse = on; SET client_min_messages = 'debug5'")
        while on():
            try:
                c.s.sendall(big)
                c.answer()
            except BROKEN as e:
                count(getattr(e, "code", "ended"))
                if not isinstance(e, PgError):
                    c = login_or_none(count) or c
    storm("SQL: errors of 20 MB each, and plans to be printed", fn, wanted=["42"], disk=16)


def t_36_notify():
    def small(count, on):
        c = login_or_none(count)
        while on():
            c.send(*["NOTIFY lych"] * 200)
            for _ in range(200):
                c.answer()
            count("notified", 200)
    storm("SQL: NOTIFY on the channel of all, 4 sessions", small, n=4, wanted=["notified"])

    def large(size, parts):
        def fn(count, on):
            texts = [";".join(f"NOTIFY lych, '{os.getpid()}.{i}.{k}'" for k in range(size)) for i in range(parts)]
            while on():
                c = login_or_none(count, timeout=20)
                if not c:
                    continue
                try:
                    c.ask("BEGIN")
                    for t in texts:
                        c.ask(t)
                    c.ask("COMMIT")
                    count("committed")
                except BROKEN as e:
                    count(getattr(e, "code", "ended"))
                c.close()
        return fn
    storm("SQL: transactions with 300,000 NOTIFYs", large(20000, 15), seconds=8, n=2, wanted=["57P01|ended"], disk=256)
    storm("SQL: with as many as pass, 8 sessions", large(5000, 2), seconds=8, n=8, wanted=["committed"], disk=256)

    def deaf(count, on):
        ears = sessions(count, 3)
        for c in ears:
            c.ask("LISTEN flood")
        payload = "x" * 7900
        texts = [";".join(f"NOTIFY flood, '{i}.{k}.{payload}'" for k in range(500)) for i in range(4)]
        c = login_or_none(count)
        while on():
            try:
                for t in texts:
                    c.ask("BEGIN; " + t + "; COMMIT")
                    count("MiB", 4)
            except BROKEN as e:
                count(getattr(e, "code", "ended"))
                c = login_or_none(count) or c
    storm("SQL: listeners that never read, and NOTIFYs of 8 kB", deaf, seconds=12, wanted=["MiB"], disk=2048)
    used = float(psql("SELECT pg_notification_queue_usage()", "lych_migrate"))
    row("the notifications' queue after it", used < 0.25, True)


def t_37_transactions_that_hold_the_log_back():
    leases = leases_of_other(32)

    def fn(count, on):
        left, held = list(leases), []
        while on() and left:
            for c in sessions(count, 8 - len(held)):
                try:
                    c.ask("BEGIN; NOTIFY x")
                    c.ask("SELECT tomb_api.release({}, {}, '{}')".format(*left.pop()))
                    held.append((c, time.monotonic()))
                    count("begun")
                except (*BROKEN, IndexError):
                    pass
            for c, since in list(held):
                try:
                    c.ask("ROLLBACK" if time.monotonic() - since > 4 else "SELECT 1")
                    if time.monotonic() - since > 4:
                        held.remove((c, since))
                except BROKEN:
                    count("ended")
                    held.remove((c, since))
            time.sleep(0.1)

    def claims_are_open():
        assert psql("SELECT ok_until > now() FROM lych.audit_state", "lych_migrate") == "t", "nobody may claim"
    storm("SQL: transactions with a number, one after the other, that hold back what the log may have", fn, seconds=14,
          during=claims_are_open, wanted=["begun"])
    settle_all()


def t_38_logins():
    def fn(count, on):
        held = []
        while on():
            held.append(login_or_none(count))
            count("open" if held[-1] else "refused")
            held = [c for c in held if c]
    storm("SQL: logins as fast as they go, never closed", fn, n=2, wanted=["53300", "open"], disk=32)

    def wrong(count, on):
        while on():
            for role in ("tomb_1", "lych_vessel", "lych_migrate", "postgres"):
                try:
                    hostile.Pg(D + "/pg/sock", role, "guess")
                    count("in")
                except BROKEN as e:
                    count(getattr(e, "code", type(e).__name__))
    _, words = storm("SQL: guessed passwords of others", wrong, n=2, disk=32)
    assert "in" not in words, words

    def cancels(count, on):
        while on():
            try:
                s = connect(D + "/pg/sock")
                s.sendall(struct.pack("!IIII", 16, CANCEL, random.randrange(1, 100000), random.getrandbits(32)))
                s.close()
                count("sent")
            except OSError as e:
                count(type(e).__name__)
    storm("cancel requests for made-up sessions", cancels, n=2, disk=32)


def t_39_half_a_login():
    """Known gap: PostgreSQL has only so many connections that have not said who they are. Those who are in go on."""
    def fn(count, on):
        held = []
        while on():
            try:
                held.append(connect(D + "/pg/sock", timeout=1))
                count("held")
                if len(held) > 400:
                    held.pop(0).close()
            except OSError as e:
                count(type(e).__name__)
                time.sleep(0.05)
    storm("PostgreSQL's socket: connections that never log in", fn, wanted=["held"], disk=32)
    times = Times()
    World.witness.until(times, "a new session", lambda: Answered(Login("tomb_1")), 200)
    print(f"      a new session of tomb_1 after it: {times.table()} ms")


class Answered:
    status = 200

    def __init__(self, login):
        login.close()


# ---- claims ----

def t_40_it_claims_everything_and_sits_on_it():
    ids = [submit({"priority": 90}) for _ in range(150)]
    c, got, empty = login(), 0, 0
    while empty < 3:
        n = len(hostile.claim_as_other(32, c))
        got += n
        empty += n == 0
    row("leases at once", got, 64)

    def fn(count, on):
        session = login()
        while on():
            count("more" if hostile.claim_as_other(32, session) else "none")
            a = as_other(None, "POST", "claim", {"queue": "main", "n": 8, "ttl": 300, "boot": BOOT_2, "claim": str(uuid.uuid4())})
            count(f"{a.status}, {len(a.json.get('jobs', []))} jobs")
    _, words = storm("claims by both doors, with 64 leases that it sits on", fn, n=4, wanted=["none"])
    assert "more" not in words and "200, 0 jobs" in words, words
    left = [i for i in ids if want(api("GET", f"/v1/jobs/{i}"), 200).json["state"] == "queued"]
    lease = claim(left[0])
    row("and tomb_1 has the 65th", lease[0], left[0])
    psql(f"SELECT vessel_api.contain({lease[0]}, 'done')", "lych_vessel")
    settle_all()


def t_41_it_extends():
    leases = leases_of_other(4)
    key = lambda f, n: "{" + ",".join(str(f(random.choice(leases))) for _ in range(n)) + "}"

    def fn(count, on):
        c = login()
        while on():
            for n in (64, 65, 100000):
                try:
                    c.ask(f"SELECT * FROM tomb_api.extend('{BOOT_2}', '{key(lambda x: x[0], n)}', '{key(lambda x: x[1], n)}', "
                          f"'{key(lambda x: x[2], n)}', 2147483647)")
                    count(f"{n}: ok")
                except PgError as e:
                    count(f"{n}: {e.code}")
            a = as_other(None, "POST", "extend", {"boot": BOOT_2, "ttl": 300, "leases": [
                {"job": j, "epoch": e, "token": t} for j, e, t in leases * 16]})
            count(f"2nd door: {a.status}")
            count(f"2nd door, 65: {as_other(None, 'POST', 'extend', {'boot': BOOT_2, 'ttl': 300, 'leases': [dict(job=1, epoch=1, token=BOOT_2)] * 65}).status}")
    storm("extends of 64, 65 and 10^5 leases", fn, n=3, wanted=["65: 22023", "100000: 22023", "2nd door, 65: 400"])
    longest = psql("SELECT max(expires_at - now()) < '301 s' FROM lych.lease WHERE owner = 'tomb_2'", "lych_migrate")
    row("a lease for ever", longest, "t")
    settle_all()


# ---- on the work socket ----

def t_50_connections():
    def idle(count, on):
        held = []
        while on():
            held.append(knock())
            count("open")
            if len(held) > 4000:
                held.pop(0).close()
    storm("connections that say nothing", idle, wanted=["open"])

    def drip(count, on):
        held = [knock() for _ in range(1200)]
        text = head("GET", "ping")
        at = 0
        while on():
            for i, s in enumerate(held):
                try:
                    s.send(text[at:at + 1])
                except OSError:
                    count("cut off")
                    held[i] = knock()
            at = (at + 1) % (len(text) - 1)
            time.sleep(0.1)
        count("held", len(held))
    storm("heads that come a byte at a time, on 1200 connections", drip, wanted=["held"])

    def known(count, on):
        held = []
        while on():
            s = knock()
            s.sendall(head("GET", "ping"))
            count(status_of(s))
            held.append(s)
            if len(held) > 4000:
                held.pop(0).close()
    storm("connections under its own name, never closed", known, wanted=["200", "503"])


def t_51_bodies():
    def fn(count, on):
        held, part = [], b"x" * ((4 << 20) - 1)
        none = (10 ** 9, 1, str(uuid.uuid4()))
        for _ in range(200):
            s = knock()
            s.sendall(head("PUT", "uploads/" + "0" * 32 + "?offset=0", 4 << 20, none))
            held.append(s)
        for s in held:
            try:
                s.sendall(part)
            except OSError:
                count("cut off")
        for s in held:
            try:
                s.sendall(b"x")
            except OSError:
                pass
        for s in held:
            count(status_of(s))
        while on():
            time.sleep(0.1)
    storm("200 bodies of 4 MiB at once, each short of a byte, then all of them", fn, seconds=8, wanted=["503"])


def t_52_answers_that_nobody_takes():
    big = [submit({"priority": 100, "argv": ["x" * 30000] * 30}) for _ in range(8)]
    claim_id = str(uuid.uuid4())
    body = json.dumps({"queue": "main", "n": 8, "ttl": 300, "boot": BOOT_2, "claim": claim_id}).encode()
    got = as_other(None, "POST", "claim", body)
    assert {j["job"] for j in got.json["jobs"]} == set(big), got

    def fn(count, on):
        held = []
        while on():
            if len(held) < 300:
                s = knock()
                s.sendall(head("POST", "claim", len(body)) + body)
                held.append(s)
                count("asked")
            time.sleep(0.01)
        for s in held[-20:]:
            count(status_of(s))
    storm("300 claims of 10 MB each, of which it reads nothing", fn, seconds=8, wanted=["503"])
    settle_all()


def wide(requests, width=300):
    """Many connections, each with a request under way all the time."""
    def fn(count, on):
        held = [knock() for _ in range(width)]
        n = 0
        while on():
            for i, s in enumerate(held):
                try:
                    s.sendall(requests[n % len(requests)])
                except OSError:
                    held[i] = knock()
                n += 1
            for i, s in enumerate(held):
                word = status_of(s)
                count(word)
                if word not in ("200", "403", "404", "410"):
                    s.close()
                    held[i] = knock()
    return fn


def post(path, body, lease=None):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head("POST", path, len(raw), lease) + raw


def t_53_requests():
    lease, = leases_of_other(1)
    none = [(random.randrange(1, 2000), 1, str(uuid.uuid4())) for _ in range(500)]
    storm("300 connections with requests for leases that it has not", wide([post("phase", {"phase": "running"}, x) for x in none]),
          wanted=["403"])
    storm("300 connections that change its job's phase", wide([post("phase", {"phase": p}, lease) for p in ("running", "harvesting")]),
          wanted=["200"])
    storm("300 connections that say hello", wide([post("hello", {"door": "postgres", "release": "1", "boot": BOOT_2, "slots": 1})]),
          wanted=["200"])
    storm("300 connections that ask for a blob that they have not", wide([head("GET", "blobs/" + "0" * 64, None, lease)]), wanted=["40"])
    storm("300 connections with end after end", wide([post("ack", b"x" * 100000, x) for x in none]), wanted=["200"])
    settle_all()


def t_54_hints():
    def fn(count, on):
        held = []
        while on():
            s = knock()
            s.sendall(head("GET", "hints?after=0"))
            data = s.recv(65536)
            seq = json.loads(data.partition(b"\r\n\r\n")[2] or b"{}").get("seq")
            count(data[9:12].decode())
            if seq is None:
                continue
            s.sendall(head("GET", f"hints?after={seq}"))
            held.append(s)
            if len(held) > 2000:
                held.pop(0).close()
    storm("questions for a hint, by the thousand", fn, n=2, wanted=["200"])


def t_55_output():
    leases = leases_of_other(2)

    def fn(count, on):
        lease, at, part = random.choice(leases), 0, b"z" * (256 << 10)
        while on():
            a = as_other(lease, "POST", f"output?stream=stdout&offset={at}", part)
            count(a.code if a.status != 200 else "256 KiB")
            at = a.json.get("size", 0)
    heard_before = len(heard)
    # at most a stream's limit, for each stream of each lease: what is written here is what the machine writes
    storm("output as fast as it goes, for its own jobs", fn, n=2, wanted=["256 KiB"], disk=4096)
    del heard[heard_before:]
    row("output behind a stream's limit", output_behind_the_limit(leases[0]), (413, "LYCH-STORE-004"))
    settle_all()


def output_behind_the_limit(lease):
    """As if a gibibyte had come before: a sparse file, with its sums' slots."""
    a = as_other(lease, "POST", "output?stream=stderr&offset=0", b"x")
    assert a.status == 200, a
    path, = glob.glob(f"{D}/data/vessel/output/**/{lease[0]}.{lease[1]}", recursive=True)
    gone = f"{path}/stderr.sum"
    os.unlink(gone)
    os.truncate(f"{path}/stderr", (1 << 30) - 1)
    a = as_other(lease, "POST", f"output?stream=stderr&offset={(1 << 30) - 1}", b"ab")
    return a.status, a.code


def t_56_uploads():
    lease, second = leases_of_other(2)

    def fn(count, on):
        part = b"u" * (4 << 20)
        while on():
            a = as_other(lease, "POST", "uploads", {})
            count(a.status)
            u = a.json.get("upload")
            for at in range(0, 64 << 20, 4 << 20):
                if not on():
                    return
                count(as_other(lease, "PUT", f"uploads/{u}?offset={at}", part).code if False else
                      f"part {as_other(lease, 'PUT', f'uploads/{u}?offset={at}', part).status}")
    storm("uploads of gibibytes, never committed", fn, wanted=["part 200"], disk=4300)
    kept = [n for n in os.listdir(D + "/data/vessel/uploads") if n.startswith(f"tomb_2.{lease[0]}.")]
    row("uploads of one lease", len(kept) <= 8, True)

    def tiny(count, on):
        while on():
            try:
                upload(os.urandom(10), lambda m, p, b=None: as_other(second, m, p.removeprefix("/work/v1/"), b))
                count("committed")
            except AssertionError as e:
                count(str(e)[:40])
    storm("blobs of ten bytes, committed", tiny, n=4, wanted=["committed"], disk=128)
    settle_all()


def t_57_asks():
    """With real egress workers and the gate; one ask of the witness's own beside them."""
    mine = hostile.claim_as_first(submit({"priority": 100, "egress": "brokered", "limits": hostile.LONG}))
    World.witness.asks, World.witness.seq = mine, 0
    leases = leases_of_other(40, egress="brokered")
    storm("nothing, with an ask", lambda count, on: [time.sleep(0.1) for _ in iter(on, False)], seconds=3)

    def asks(text):
        def fn(count, on):
            held, n = [], 0
            body = {"dialect": "openai", "stream": False, "request": {"model": "m", "messages": [{"role": "user", "content": text}]}}
            raw = json.dumps({"seq": 0, **body})
            while on():
                while len(held) < 300:
                    lease = leases[n % len(leases)]
                    n += 1
                    # numbers of different processes and storms do not meet
                    seq = int(time.monotonic() * 1000) * 1000 + n % 1000
                    s = knock()
                    try:
                        s.sendall(post("ask", raw.replace('"seq": 0', f'"seq": {seq}', 1).encode(), lease))
                        s.settimeout(0.002)
                        held.append(s)
                    except OSError:
                        count("cut off")
                for s in list(held):
                    try:
                        count(s.recv(65536)[9:12].decode() or "closed")
                        held.remove(s)
                        s.close()
                    except TimeoutError:
                        pass
                    except OSError:
                        held.remove(s)
                        count("closed")
        return fn
    # not "small": the asks of one job are few at a time, of one tomb 512
    storm("asks for 40 jobs, 300 at once", asks("hello"), seconds=6, wanted=["200"], disk=128)
    storm("asks that a slow provider answers in 2 s, 300 at once", asks(PROVIDER_PAUSE), seconds=8, wanted=["200"], disk=128)
    # in the vessel, the gate and an egress worker at once
    storm("asks of 200 kB, 300 at once", asks("some words that are long enough " * 6000), seconds=6, disk=256, memory=5 * 64)
    storm("asks of 4 MB of random text", asks(base64.b64encode(os.urandom(3 << 20)).decode()), seconds=8, disk=256, memory=8 * 64)
    World.witness.asks = None
    psql(f"SELECT vessel_api.contain({mine[0]}, 'done')", "lych_vessel")
    settle_all()


def t_58_fetches_and_packages():
    leases = leases_of_other(8, egress="brokered")
    n = iter(range(1, 10 ** 9))
    requests = []
    for i in range(3000):
        lease = leases[i % len(leases)]
        requests.append(post("fetch", {"seq": next(n), "method": "GET", "url": f"https://x{i}.example.org/", "headers": [], "body": ""}, lease))
        requests.append(post("package", {"seq": next(n), "registry": "npm", "path": f"x{i}"}, lease))
    storm("300 connections with fetches and packages that nothing permits", wide(requests), wanted=["403"], disk=128)
    settle_all()


TESTS = {k: v for k, v in globals().items() if k.startswith("t_")}
