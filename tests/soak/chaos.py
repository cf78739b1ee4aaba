# SPDX-License-Identifier: Apache-2.0
"""Run by chaos.sh: CHAOS_JOBS jobs, each with somebody who follows it, CROWD of them at a time, while
chaos_strikes.py kills and stops every kind of process of the house. Each job says who it is and when it began,
line by line; so its output tells of one attempt, of two, or of a part. Whoever follows it knows one end."""
import asyncio
import base64
import collections
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import time

import sse
from chaos_strikes import AGAIN_SEC, MISSED_SEC, Strikes

JOBS = int(os.environ["CHAOS_JOBS"])
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
CROWD = 24  # no more than slots: what is to run again waits for nobody
PATIENCE_SEC = 240  # several leases that ran out, one after the other
SILENCE_SEC = 15  # as lych does
LYCH = os.environ["LYCH_BIN"] + "/lych"
DATA = os.environ["LYCHGATE_DATA"]
API = os.environ["XDG_RUNTIME_DIR"] + "/lychgate/api/vessel.sock"
MARK = f"chaos-{os.getpid()}-{SEED}"
SCRIPT = """b=$(date +%s%N) i=0
while [ $i -lt $3 ]; do echo "$1 $2 $b $i"; i=$((i + 1)); done
sleep $4
echo "$1 $2 $b end $(date +%s%N)"
"""


class Job:
    def __init__(self, n, rng):
        self.n, self.rng = n, rng
        self.lines = 3000 if n % 50 == 0 else rng.randrange(1, 20)
        seconds = rng.choice([0, 0, 0.1, 0.3, 1, 2])
        self.spec = {"argv": ["sh", "-c", SCRIPT, "sh", MARK, str(n), str(self.lines), str(seconds)],
                     "request_id": f"{MARK}-{n}", "limits": {"timeout_ms": 120000}}
        self.id = None
        self.attempt, self.out = "", {}  # what is heard, of which attempt
        self.begins = []  # of all attempts that were heard, in seconds
        self.ends = []  # states, one an end event
        self.ran = 0, 0  # from when to when, by its output
        self.abandoned = False  # its lych run was killed
        self.over = False

    def hear(self, name, data, place):
        """One event; the state when it is the end."""
        if name == "output" and data["stream"] == "stdout":
            self.hear_output(data["offset"], base64.b64decode(data["data"]), place.partition("-")[0])
        elif name == "damaged":
            wrong.append(f"job {self.n}: damaged output")
        elif name == "end":
            self.ends.append(data["state"])
            return data["state"]
        return None

    def hear_output(self, offset, data, attempt):
        if offset == 0:
            self.out[attempt] = b""
            self.begins.append(int(data.split()[2]) / 1e9)
        self.attempt = attempt
        if offset != len(self.out[attempt]):
            wrong.append(f"job {self.n}: at {offset} of attempt {attempt}, {len(self.out[attempt])} were heard")
        self.out[attempt] += data

    def check_output(self, out):
        """Of one attempt, all of it, in order."""
        lines = out.decode().splitlines()
        begin = lines[0].split()[2] if lines else ""
        want = [f"{MARK} {self.n} {begin} {i}" for i in range(self.lines)]
        if lines[:-1] != want or not lines[-1].startswith(f"{MARK} {self.n} {begin} end "):
            wrong.append(f"job {self.n} ({self.id}): its output is {len(lines)} lines: {lines[:2]} … {lines[-2:]}")
        self.ran = int(begin or 0) / 1e9, int(lines[-1].split()[-1]) / 1e9 if lines else 0
        if out != self.out.get(self.attempt, out):
            wrong.append(f"job {self.n} ({self.id}): its follower heard something else than what is stored")


class People:
    """What the strikes ask about jobs."""

    @staticmethod
    def begun(n, since):
        return min((b for b in jobs[n].begins if b > since), default=None)

    @staticmethod
    def clients():
        """Of the jobs that a command follows now: its pid, by their numbers."""
        return dict(clients)

    @staticmethod
    def ends(n):
        """How often it was told that it has ended; one that was quarantined goes on when somebody says so."""
        return len(jobs[n].ends)

    @staticmethod
    def over(n):
        return jobs[n].over


wrong, waiting, stuck = [], [], []
jobs = {}
clients = {}
told = collections.Counter()


async def patiently(method, target, body=None):
    """As somebody who asks again for as long as nobody answers, or the database is away."""
    while True:
        with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
            status, answer = await asyncio.wait_for(sse.ask(API, method, target, body), 20)
            if status not in (502, 503):
                return status, answer
        told["asked again"] += 1
        await asyncio.sleep(0.2)


async def submit(job):
    status, answer = await patiently("POST", "/v1/jobs", job.spec)
    assert status in (200, 201), (status, answer)
    job.id = json.loads(answer)["id"]


async def listen(job):
    """To the end event; some hang up on the way and come back."""
    last = ""
    while True:
        try:
            async with contextlib.aclosing(sse.events(API, job.id, last, SILENCE_SEC)) as stream:
                async for name, data, last in stream:
                    if state := job.hear(name, data, last):
                        return state
                    if job.rng.random() < 0.01:
                        break
        except sse.Refused as e:
            assert e.status == 503, f"job {job.n} ({job.id}): {e.status}"
        except (OSError, EOFError, ValueError, asyncio.TimeoutError):
            told["connected again"] += 1
        await asyncio.sleep(0.1)


async def command(job, *args):
    """lych run or lych logs -f, with --json; None: it gave up, as it says."""
    p = await asyncio.create_subprocess_exec(LYCH, *args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.DEVNULL, limit=1 << 20)
    state = None
    clients[job.n] = p.pid
    try:
        async for line in p.stdout:
            event = json.loads(line)
            if event.get("event") in ("state", "end"):
                job.id = event["job"]["id"]
            if event.get("event") == "end":
                state = job.hear("end", event["job"], "")
            elif event.get("event") == "output":
                job.hear("output", event["output"], str(len(job.begins) + (event["output"]["offset"] == 0)))
        await p.wait()
    finally:
        del clients[job.n]
        if p.returncode is None:
            p.kill()
    return state


async def lych_run(job, strikes):
    """Who was killed is called again, or the job is only looked at: then it is cancelled."""
    while True:
        state = await command(job, "run", "--json", "-n", "--timeout", "120", "--request-id", job.spec["request_id"],
                              "--", *job.spec["argv"])
        if state:
            return state
        told["lych run again"] += 1
        if job.id and job.n in strikes.clients and job.rng.random() < 0.5:
            return await lych_logs(job)
        await asyncio.sleep(0.5)


async def lych_logs(job):
    while not (state := await command(job, "logs", "-f", "--json", str(job.id))):
        told["lych logs again"] += 1
        await asyncio.sleep(0.5)
    return state


async def follow(job):
    if job.n % 10 == 3:
        return await lych_logs(job)
    return await listen(job)


async def retry(job):
    """By the product's own rule it is not tried again by itself; a person decides otherwise."""
    told["retried, " + job.ends[-1]] += 1
    while True:
        p = await asyncio.create_subprocess_exec(LYCH, "retry", str(job.id), stdin=subprocess.DEVNULL,
                                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, text = await p.communicate()
        # an answer that got lost: it was tried again, and perhaps has ended since
        if p.returncode == 0 or b"LYCH-RUN-006" in text:
            return
        await asyncio.sleep(0.5)


async def see_through(job, strikes):
    if job.n % 10 == 7:
        state = await lych_run(job, strikes)
    else:
        await submit(job)
        state = await follow(job)
    while state in ("quarantined", "lost") or (state == "failed" and job.n in strikes.struck):
        strikes.struck.discard(job.n)
        await retry(job)
        state = await follow(job)
    if state == "cancelled" and job.n in strikes.clients:
        job.abandoned = True
        told["cancelled, its lych run was killed"] += 1
        return
    if state != "succeeded":
        wrong.append(f"job {job.n} ({job.id}) ended {state}")
        return
    status, out = await patiently("GET", f"/v1/jobs/{job.id}/output?stream=stdout")
    assert status == 200, (status, out)
    job.check_output(out)


async def person(numbers, strikes):
    """When there are no more jobs to submit the strikes are over: what is left would be struck again and again."""
    for n in numbers:
        job = jobs[n] = Job(n, random.Random(SEED + n))
        try:
            await asyncio.wait_for(see_through(job, strikes), PATIENCE_SEC)
        except asyncio.TimeoutError:
            _, answer = await patiently("GET", f"/v1/jobs/{job.id}")
            state = json.loads(answer).get("state", "not accepted")
            (stuck if state in ("not accepted", "queued", "preparing", "running", "cancelling")
             else waiting).append((n, job.id, state))
        except AssertionError as e:
            wrong.append(str(e))
        job.over = True
    strikes.over.set()


async def crowd(strikes):
    numbers = iter(range(1, JOBS + 1))
    await asyncio.gather(*(person(numbers, strikes) for _ in range(CROWD)))


def psql(sql):
    with open(DATA + "/secrets/lychgate_db_migrate", encoding="ascii") as f:
        env = {**os.environ, "PGPASSWORD": f.read().strip()}
    r = subprocess.run(["psql", "-qXAt", "-h", os.environ["XDG_RUNTIME_DIR"] + "/lychgate/pg", "-U", "lych_migrate",
                        "-d", "lychgate", "-c", sql], env=env, capture_output=True, text=True, check=True)
    return [line.split("|") for line in r.stdout.splitlines()]


def judge_database():
    """Each accepted job is there, ended once, by one attempt that succeeded; nothing is held any more."""
    rows = psql("SELECT j.request_id, j.id, j.state, j.attempts, j.lost, count(a.epoch), "
                "count(*) FILTER (WHERE a.outcome = 'succeeded'), count(*) FILTER (WHERE a.outcome IS NULL), "
                "extract(epoch FROM max(a.started_at) FILTER (WHERE a.outcome = 'succeeded')), "
                "extract(epoch FROM max(a.ended_at) FILTER (WHERE a.outcome = 'succeeded')) "
                "FROM lych.job j LEFT JOIN lych.attempt a ON a.job_id = j.id GROUP BY j.id")
    have = {r[0]: r for r in rows}
    for job in jobs.values():
        span = have.get(job.spec["request_id"], ["", ""])[-2:]
        if span[0] and job.ran[0] and not float(span[0]) <= job.ran[0] <= job.ran[1] <= float(span[1]):
            wrong.append(f"job {job.n} ({job.id}) says that it ran {job.ran}, its attempt was {span}")
    lost = [n for n, job in jobs.items() if have.pop(job.spec["request_id"], [None, None])[1] != str(job.id)]
    double = [r for r in rows if int(r[6]) > 1]
    abandoned = {job.spec["request_id"] for job in jobs.values() if job.abandoned}
    odd = [r for r in rows
           if (r[2], r[6], r[7]) != (("cancelled", "0", "0") if r[0] in abandoned else ("succeeded", "1", "0"))]
    if have:
        wrong.append(f"jobs that nobody submitted: {list(have)[:5]}")
    if odd:
        wrong.append(f"{len(odd)} jobs did not end once: {odd[:5]}")
    if (left := psql("SELECT count(*) FROM lych.lease")) != [["0"]]:
        wrong.append(f"leases are left: {left}")
    return lost, double, {int(r[1]): int(r[5]) for r in rows}


def judge_log(attempts):
    """The chain holds, and has of each job one beginning, a claim and an end of each attempt, and one success or why not."""
    r = subprocess.run([os.environ["LYCH_BIN"] + "/lych-audit", "verify", DATA + "/audit"], capture_output=True,
                       text=True, check=False)
    if r.returncode:
        wrong.append(f"lych-audit verify: {r.stdout} {r.stderr}")
    events = collections.defaultdict(collections.Counter)
    for name in sorted(os.listdir(DATA + "/audit")):
        if name.startswith("segment-"):
            with open(f"{DATA}/audit/{name}", encoding="utf-8") as f:
                for line in f:
                    e = json.loads(line)
                    if "correlation_uid" in e.get("metadata", {}):
                        events[int(e["metadata"]["correlation_uid"])][e["event"]] += 1
    for n, job in jobs.items():
        e, tries = events[job.id], attempts.get(job.id, 0)
        ends = sum(count for name, count in e.items() if name.startswith("attempt."))
        want = (1, tries, tries, 0 if job.abandoned else 1)
        if (e["job.enqueued"], e["job.claimed"], ends, e["attempt.succeeded"]) != want or job.abandoned > e["job.abandoned"]:
            wrong.append(f"job {n} ({job.id}), {tries} attempts: the log has {dict(e)}")


def wait_logged():
    """What is in the outbox reaches the log."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if psql("SELECT count(*) FROM lych.audit_outbox o, lych.audit_state s "
                "WHERE (o.xid, o.id) > (s.acked_xid, s.acked_id)") == [["0"]]:
            return
        time.sleep(0.2)
    wrong.append("events did not reach the log within 60 s")


def table(title, times, limit):
    for kind, t in sorted((k, t) for k, t in times.items() if t):
        print(f"chaos: {title:32} {kind:14} {len(t):5} times, median {statistics.median(t):6.2f} s, max {max(t):6.2f} s"
              f"{limit}", flush=True)


def main():
    print(f"chaos: seed {SEED}, {JOBS} jobs, {CROWD} at a time", flush=True)
    strikes = Strikes(SEED, DATA, MARK, People)
    began = time.monotonic()
    strikes.start()
    asyncio.run(crowd(strikes))
    strikes.join()
    took = time.monotonic() - began
    lost, double, attempts = judge_database()
    wait_logged()
    judge_log(attempts)
    if bad := psql("SELECT name, bad FROM lych.invariants() WHERE bad > 0"):
        wrong.append(f"invariants: {bad}")
    wrong.extend(strikes.wrong)
    table("jobs again after the kill of", strikes.again, f" (at most {AGAIN_SEC})")
    table("replaced after it was stopped", strikes.missed, f" (at most {MISSED_SEC})")
    table("the last process gone", {"starter": strikes.gone} if strikes.gone else {}, "")
    for how in ("kill", "stop", "hold"):
        print(f"chaos: {how}:", ", ".join(f"{k} {n}" for (k, h), n in sorted(strikes.done.items()) if h == how))
    print(f"chaos: {dict(sorted(told.items()))}; the machine stood still for {strikes.stalls.seconds:.0f} s, "
          f"{strikes.unjudged} times are not judged")
    print(f"chaos: {JOBS} jobs in {took:.0f} s, {sum(strikes.done.values())} strikes, {sum(attempts.values())} attempts: "
          f"lost {len(lost)}, double {len(double)}, followers left waiting {len(waiting)}, never ended {len(stuck)}, "
          f"otherwise wrong {len(wrong)}", flush=True)
    for line in [*wrong[:20], *map(str, (lost + double + waiting + stuck)[:20])]:
        print("chaos: WRONG", line)
    return bool(lost or double or waiting or stuck or wrong)


if __name__ == "__main__":
    sys.exit(main())
