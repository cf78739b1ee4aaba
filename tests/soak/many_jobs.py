# SPDX-License-Identifier: Apache-2.0
"""Run by many_jobs.sh (tests/support/rig): MANY (20000) jobs that have ended, made of SQL and of files, four tenths
of them past their time. A vessel retires these while a person looks at jobs, lists them, asks for the status and
submits. Judged by the person's watch and by the vessel's own figure of its longest turn."""
import hashlib
import os
import re
import threading
import time

import rig
from rig import D, Vessel, api, main, psql, want

MANY = int(os.environ.get("MANY", "20000"))
OLD = MANY * 4 // 10
TURN_MAX = 20_000  # microseconds of processor time
WAIT_MAX = 1.0
vessel = None  # the one that runs
# A test build, which retires soon after its start.
rig.ARGS[0] = os.path.join(os.environ["LYCH_BUILD"], "test-build/lych-vessel")

MAKE = f"""
INSERT INTO lych.job (id, queue, request_id, spec_sha, state, priority, max_attempts, max_lost, retry_on_lost,
	max_runtime_s, epoch, attempts, started_at, finished_at)
OVERRIDING SYSTEM VALUE
SELECT i, 'main', 'many-' || i, sha256(i::text::bytea), 'succeeded', 50, 3, 3, true, 600, 1, 1, w.at, w.at
FROM generate_series(1, {MANY}) AS i,
	LATERAL (SELECT now() - CASE WHEN i <= {OLD} THEN interval '31 days' ELSE interval '1 day' END AS at) AS w;
INSERT INTO lych.payload SELECT i, '{{"argv":["true"]}}' FROM generate_series(1, {MANY}) AS i;
INSERT INTO lych.attempt (job_id, epoch, owner, boot_id, claim_id, token, phase, started_at, ended_at, outcome)
SELECT i, 1, 'tomb_1', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'harvesting', j.started_at,
	j.finished_at, 'succeeded' FROM generate_series(1, {MANY}) AS i JOIN lych.job j ON j.id = i;
INSERT INTO lych.result SELECT i, 1, '{{"v":1,"exit_code":0}}' FROM generate_series(1, {MANY}) AS i;
INSERT INTO lych.job_blob SELECT i, encode(sha256(i::text::bytea), 'hex'), 'artifact'
	FROM generate_series(1, {MANY}) AS i;
SELECT setval(pg_get_serial_sequence('lych.job', 'id'), {MANY});
ANALYZE lych.job, lych.attempt, lych.job_blob;
"""


def make_files():
    for i in range(1, MANY + 1):
        where = f"{D}/data/vessel/output/{i // 256}/{i}.1"
        os.makedirs(where, 0o700)
        for name in ("stdout", "stdout.sum", "meta"):
            with open(f"{where}/{name}", "wb") as f:
                f.write(b"x" * 100)
        sha = hashlib.sha256(str(i).encode()).hexdigest()
        os.makedirs(f"{D}/data/vessel/blobs/{sha[:2]}", 0o700, exist_ok=True)
        with open(f"{D}/data/vessel/blobs/{sha[:2]}/{sha}", "wb") as f:
            f.write(str(i).encode())


def metric(name):
    text = want(api("GET", "/metrics"), 200).body.decode()
    return int(re.search(rf"^lychgate_{name} (\d+)$", text, re.M)[1])


class Person(threading.Thread):
    """One question after the other, and how long each took."""

    def __init__(self):
        super().__init__(daemon=True)
        self.took, self.stop, self.n = {}, False, 0

    def ask(self, what, method, path, body=None):
        began = time.monotonic()
        a = api(method, path, body)
        took = time.monotonic() - began
        assert a.status in (200, 201), (what, a)
        self.took[what] = max(self.took.get(what, 0), took)

    def run(self):
        while not self.stop:
            self.n += 1
            self.ask("show", "GET", f"/v1/jobs/{MANY - self.n % 100}")
            self.ask("list", "GET", "/v1/jobs?limit=50")
            self.ask("list of a state", "GET", "/v1/jobs?limit=50&state=succeeded")
            self.ask("status", "GET", "/v1/status")
            self.ask("submit", "POST", "/v1/jobs", {"argv": ["true"]})
            time.sleep(0.05)


def t_old_jobs_are_retired_while_people_work():
    global vessel
    assert vessel.stop() == 0
    began = time.monotonic()
    psql(MAKE, "lych_migrate")
    make_files()
    print(f"   ({MANY} jobs made in {time.monotonic() - began:.0f} s)", flush=True)
    vessel = Vessel(["--sweep-after", "2"])
    print(f"   (the vessel was ready after {vessel.ready_after * 1000:.0f} ms)")
    while api("POST", "/v1/jobs", {"argv": ["true"]}).status == 503:  # it doesn't own the database yet
        time.sleep(0.05)
    person = Person()
    person.start()
    began = time.monotonic()
    while metric("jobs_retired_total") < OLD:
        assert time.monotonic() - began < 300, f"{metric('jobs_retired_total')} of {OLD} retired"
        time.sleep(0.2)
    retired = time.monotonic() - began
    # and the rest of the sweep: the blobs of 256 directories, output without a job, the invariants
    turn_retired = metric("loop_longest_turn_usec")
    while metric("sweeps_total") == 0:
        assert time.monotonic() - began < 400, "the sweep does not end"
        time.sleep(0.2)
    swept = time.monotonic() - began
    person.stop = True
    person.join()
    turn = metric("loop_longest_turn_usec")
    print(f"   ({OLD} retired in {retired:.0f} s, all swept after {swept:.0f} s; the longest turn took {turn / 1000:.1f} ms of the "
          f"processor ({turn_retired / 1000:.1f} while jobs were retired); at most: " + ", ".join(f"{w} {t * 1000:.0f} ms" for w, t in person.took.items()) + ")", flush=True)
    assert turn <= TURN_MAX, f"a turn of {turn} us"
    slow = {w: t for w, t in person.took.items() if t > WAIT_MAX}
    assert not slow, slow
    left = sum(len(os.listdir(f"{D}/data/vessel/output/{fan}")) for fan in os.listdir(f"{D}/data/vessel/output"))
    # what is made above has no record in the audit, and the sweep's last step sees that
    assert metric("queue_violations") == MANY - OLD
    assert left == MANY - OLD, f"output of {left} jobs is left, not of {MANY - OLD}"
    assert psql("SELECT count(*) FROM lych.job WHERE request_id LIKE 'many-%'", "lych_migrate") == str(MANY - OLD)


main(globals())
