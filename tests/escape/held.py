#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guards that are stopped, in both grades at a time: a job that is ended by the tomb and one that runs out of time
are told as lost when their end is overdue, nothing of them is left, and their neighbour's job ends as ever.

	held.py SANDBOX"""
import contextlib, os, signal, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "python"))
from spawner import Spawner, descendants

LOST, OVERDUE_SEC, SETUP_SEC, SLACK_SEC = 12, 65, 15, 8


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def sleeper(s, *options):
    """(job, its process), once it runs; its guard is stopped."""
    before = descendants(s.process.pid)
    job = s.run("sleep", "3600", options=options)
    while not job.started:
        s.turn()
    for pid in descendants(s.process.pid) - before:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline") as f:
            if f.read().startswith("sleep"):
                os.kill(parent_of(pid), signal.SIGSTOP)
                return job, pid
    raise AssertionError("the job's process is not seen")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        held = []
        for grade in ("full", "floor"):
            jobs = os.path.join(scratch, grade)
            os.mkdir(jobs, 0o700)
            s = Spawner(os.path.abspath(sys.argv[1]), jobs, grade, "--pool", "0")
            killed, late = sleeper(s), sleeper(s, "--timeout", "1")
            s.kill(killed[0])
            assert s.wait(s.run("true")).exited == (0, 0)
            held.append((grade, s, time.monotonic(), killed, late))
        for which, limit in enumerate((OVERDUE_SEC, OVERDUE_SEC + SETUP_SEC + 1.25)):
            for grade, s, began, *both in held:
                job, pid = both[which]
                s.wait(job, limit + SLACK_SEC)
                took = time.monotonic() - began
                assert job.exited[0] == LOST and not os.path.exists(f"/proc/{pid}"), (grade, job.exited)
                assert limit - 1 < took < limit + SLACK_SEC, (grade, took)
                print(f"held: {grade}: ended after {took:.1f} s")
        for _, s, *_ in held:
            assert s.wait(s.run("true")).exited == (0, 0)
            s.process.kill()


main()
