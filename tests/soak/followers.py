# SPDX-License-Identifier: Apache-2.0
"""Run by followers.sh (tests/support/rig): FOLLOWERS jobs, each with somebody who follows it to its end, CROWD
of them at a time. The jobs are null: tombs made of SQL claim, lose, give back, fail and finish them as fast as the
database goes, while others change jobs, keep transactions open and hang up. Nobody may be left waiting."""
import asyncio
import collections
import contextlib
import json
import os
import random
import subprocess
import threading
import time
import uuid

import sse
from rig import API, BOOT, D, api, main, psql, want

FOLLOWERS = int(os.environ.get("FOLLOWERS", "1000"))
CROWD = 150
PATIENCE = 30  # seconds for a job of milliseconds
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
vessel = None  # the one that runs
left = 0  # jobs that are still to be submitted
waiting = []  # who was left waiting, and what it had heard
ends = collections.Counter()
stop = threading.Event()

# One statement a way for a job to go: all of a claim in one transaction, or step by step.
CLAIM = "SELECT * FROM tomb_api.claim('main', {n}, 30, '%s', '{id}')" % BOOT
AT_ONCE = "SELECT tomb_api.ack(c.job_id, c.epoch, c.token, '\\x7b7d') FROM (" + CLAIM + ") c;"


class Psql:
    """One session; ask() answers with its rows."""

    def __init__(self, role):
        self.p = subprocess.Popen(["tests/support/pg", "psql", D + "/pg", role, "-At", "-F", "|"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.ask("SET synchronous_commit = off;")

    def ask(self, sql):
        self.p.stdin.write(sql + "\n\\echo .\n")
        rows = []
        for line in self.p.stdout:
            if line == ".\n":
                return rows
            rows.append(line.rstrip("\n").split("|"))
        raise AssertionError("psql ended: " + sql)


def tomb(seed):
    rng, s, v = random.Random(seed), Psql("tomb_1"), Psql("lych_vessel")
    while not stop.is_set():
        if rng.random() < 0.4:
            s.ask(AT_ONCE.format(n=rng.randint(1, 16), id=uuid.uuid4()))
            continue
        for job, epoch, token, *_ in s.ask(CLAIM.format(n=rng.randint(1, 8), id=uuid.uuid4()) + ";"):
            lease = f"{job}, {epoch}, '{token}'"
            for phase in ("running", "harvesting"):
                if rng.random() < 0.5:
                    v.ask(f"SELECT vessel_api.set_phase({lease}, '{phase}');")
            way = rng.random()
            if way < 0.1:
                s.ask(f"SELECT tomb_api.release({lease});")
            elif way < 0.2:
                s.ask(f"SELECT tomb_api.fail({lease}, false, 'crash', '\\x7b7d');")
            elif way < 0.3:
                v.ask(f"SELECT * FROM vessel_api.cancel({job});")
                s.ask(f"SELECT tomb_api.fail({lease}, false, '', '\\x7b7d');")
            else:
                s.ask(f"SELECT tomb_api.ack({lease}, '\\x7b7d');")


def disturb(seed):
    """Transactions that stay open, and hundreds of ids that nobody follows."""
    rng, s = random.Random(seed), Psql("lych_migrate")
    while not stop.is_set():
        s.ask(f"BEGIN; SELECT pg_current_xact_id(); SELECT pg_sleep({rng.random() * 0.4}); COMMIT;")
        s.ask("DO $$ BEGIN PERFORM set_config('synchronous_commit', 'off', false); FOR i IN 1..300 LOOP "
              "PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$;")


async def submit():
    status, answer = await sse.ask(API, "POST", "/v1/jobs", {"argv": ["true"], "request_id": uuid.uuid4().hex})
    assert status == 201, answer
    return json.loads(answer)["id"]


async def follow(job, rng, heard):
    """To the end event; some hang up on the way and come back."""
    last = ""
    while True:
        async with contextlib.aclosing(sse.events(API, job, last)) as stream:
            async for name, data, last in stream:
                heard.append((name, data["state"]))
                if name == "end":
                    return heard[-1][1]
                if rng.random() < 0.02:
                    break


async def person(seed):
    global left
    rng = random.Random(seed)
    while left > 0:
        left -= 1
        heard = []
        job = await submit()
        if rng.random() < 0.5:
            await asyncio.sleep(rng.random() * 0.05)
        try:
            ends[await asyncio.wait_for(follow(job, rng, heard), PATIENCE)] += 1
        except asyncio.TimeoutError:
            waiting.append((job, heard))


async def crowd():
    await asyncio.gather(*(person(SEED + i) for i in range(CROWD)))


def t_nobody_is_left_waiting():
    global left
    print(f"followers: seed {SEED}, {FOLLOWERS} jobs, {CROWD} at a time", flush=True)
    psql("UPDATE lych.worker_queue SET max_leases = 1024, claim_rate = 1000000, claim_burst = 1000000, "
         "tokens = 1000000", "lych_migrate")
    left = FOLLOWERS
    others = [threading.Thread(target=fn, args=(SEED + i,), daemon=True)
              for i, fn in enumerate([tomb, tomb, tomb, disturb])]
    for t in others:
        t.start()
    began = time.monotonic()
    asyncio.run(crowd())
    took = time.monotonic() - began
    stop.set()
    print(f"followers: {sum(ends.values())} ends in {took:.0f} s ({FOLLOWERS / took:.0f} a second): {dict(ends)}, "
          f"{len(waiting)} left waiting", flush=True)
    assert not waiting, [(j, h[-2:], want(api("GET", f"/v1/jobs/{j}"), 200).json["state"]) for j, h in waiting[:5]]
    assert sum(ends.values()) == FOLLOWERS
    assert set(ends) <= {"succeeded", "failed", "cancelled", "lost"} and len(ends) >= 3, ends


main(globals())
