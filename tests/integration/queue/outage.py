# SPDX-License-Identifier: Apache-2.0
"""Run by test_outage.sh (tests/support/rig). Each function named t_* is one case."""
import glob
import json
import os
import signal
import subprocess
import time

from rig import ARGS, D, ENV, Vessel, api, claim, main, settle, submit, want

vessel = None  # the one that runs
# More than the scribe keeps streams of one producer, and than it once kept of all together.
STARTS = 40


def pg(verb):
    subprocess.run(["tests/support/pg", verb, D + "/pg"], check=True)


def records():
    """The log's complete lines."""
    lines = []
    for name in sorted(glob.glob(D + "/data/audit/segment-*.jsonl")):
        lines += [json.loads(l) for l in open(name) if l.endswith("\n")]
    return lines


def verify():
    """As its reader has it: lych-audit finds nothing amiss."""
    r = subprocess.run([os.environ["LYCH_BUILD"] + "/lych-audit", "verify", D + "/data/audit", "--json"],
                       capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stdout
    return json.loads(r.stdout)


def audit():
    return want(api("GET", "/v1/status"), 200).json["audit"]


def until(what, seconds, fn):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = fn()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s")


def claims_open(seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        a = audit()
        if a["ok"]:
            return
        time.sleep(0.1)
    raise AssertionError(f"claims stay closed: {a}")


def one_job():
    job = submit(priority=100)
    settle(claim(job), "ack", {"v": 1, "exit_code": 0})


def of_queue(lines):
    """(stream, number) of the outbox's events."""
    return [(r["stream"], r["pseq"]) for r in lines if r["prod"] == "queue"]


def count(lines, event):
    return sum(r["event"] == event for r in lines)


def t_claims_open_again_after_many_starts_without_a_database():
    global vessel
    claims_open()
    one_job()
    until("everything is shipped", 10, lambda: audit()["waiting"] == 0)
    assert vessel.stop() == 0
    before = records()  # what came until then is of a database that was there
    pg("stop")
    starts = count(records(), "vessel.start")
    for n in range(STARTS):
        with open(D + "/vessel.log", "ab") as log:
            p = subprocess.Popen(ARGS, env=ENV, stderr=log, cwd=D)
        until("it says that it started", 10, lambda: count(records(), "vessel.start") == starts + n + 1)
        p.send_signal(signal.SIGKILL if n % 2 else signal.SIGTERM)
        p.wait(10)
    away = records()[len(before):]
    assert not of_queue(away), "an event of a database that was away"
    pg("start")
    vessel = Vessel()
    claims_open()
    one_job()
    until("everything is shipped", 10, lambda: audit()["waiting"] == 0)
    after = records()
    # the evidence: the outbox's numbers go on where they were, nothing was begun anew, and each start
    # of the vessel stands there once
    numbers = of_queue(after)
    assert len({s for s, _ in numbers}) == 1, "the outbox has a second numbering"
    assert [n for _, n in numbers] == list(range(1, len(numbers) + 1))
    assert len(numbers) > len(of_queue(before))
    assert count(after, "audit.restarted") == 0
    # the starts without a database, and the one with it
    assert count(after, "vessel.start") == starts + STARTS + 1
    assert verify()["verdict"] == "ok"


def t_a_database_that_died_is_told_nothing_twice():
    for _ in range(10):
        one_job()
    pg("kill")
    pg("start")
    until("the database is up", 20, lambda: want(api("GET", "/v1/status"), 200).json["database"]["up"])
    claims_open()
    one_job()
    until("everything is shipped", 10, lambda: audit()["waiting"] == 0)
    numbers = [n for _, n in of_queue(records())]
    assert numbers == list(range(1, len(numbers) + 1)), "an event twice, or a gap"
    assert verify()["verdict"] == "ok"


main(globals())
