#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keepers and guards killed while they set a job up: each job runs to its end or is told as lost,
never as refused, and nothing of it is left. A guard that is kept back while it comes up keeps its
job back, too: what is refused to a job is told, whoever is slow. A meter that is stopped measures nothing, which is no
fault of its job: within seconds it is lost, too.

	lost.py SANDBOX TRIES"""
import os, signal, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "python"))
from spawner import Spawner, descendants

LOST = 12
# A call that a container's own filter lets through to ours: what that one refuses is not ours to tell.
DENIED = "import ctypes; ctypes.CDLL(None).unshare(0x10000000)"


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return {int(c) for c in f.read().split()}
    except OSError:
        return set()


def next_child(pid, known, seconds=5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        new = children(pid) - known
        if new:
            return new.pop()
    raise TimeoutError("nobody was forked")


def one(s, top, whom, pause):
    known = children(top)
    job = s.run("sleep", "0.05")
    victim = next_child(top, known)
    try:
        if whom == "guard":
            victim = next_child(victim, set())
        time.sleep(pause)
        os.kill(victim, signal.SIGKILL)
    except (TimeoutError, ProcessLookupError):
        pass  # it was over before
    s.wait(job, 30)
    return job


def stop_first_child(pid, pause, seconds=5):
    """Of a process that has none yet: stopped so many seconds after its birth, as near as can be."""
    end = time.monotonic() + seconds
    fd = os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY)
    try:
        while time.monotonic() < end:
            born = os.pread(fd, 64, 0).split()
            if born:
                end = time.monotonic() + pause
                while time.monotonic() < end:
                    pass
                os.kill(int(born[0]), signal.SIGSTOP)
                return int(born[0])
    finally:
        os.close(fd)
    raise TimeoutError("nobody was forked")


def kept_back(sandbox, grade, scratch, tries):
    """Of so many jobs whose guard was stopped for 0.15 s as it came up: told of no denial."""
    jobs = os.path.join(scratch, "kept_back")
    os.mkdir(jobs, 0o700)
    s = Spawner(sandbox, jobs, grade, "--pool", "0")
    top = s.process.pid if grade == "floor" else children(s.process.pid).pop()
    silent = met = 0
    for n in range(tries):
        known = children(top)
        job = s.run("/usr/bin/python3", "-c", DENIED)
        try:
            guard = stop_first_child(next_child(top, known), n % 7 * 0.00006)
            time.sleep(0.15)
            os.kill(guard, signal.SIGCONT)
            met += 1
        except (TimeoutError, ProcessLookupError):
            pass  # it was over before
        s.wait(job, 60)
        if job.refused or job.exited[0] != 0 or job.denied == 0:
            silent += 1
            print(f"FAIL {grade}: refused {job.refused}, ended {job.exited}, {job.denied} denials told")
    s.close()
    return silent, met


def stopped(sandbox, grade, scratch):
    """Seconds until a job whose meter is stopped was lost; None: it was not."""
    jobs = os.path.join(scratch, "stopped")
    os.mkdir(jobs, 0o700)
    s = Spawner(sandbox, jobs, grade, "--pool", "0")
    top = s.process.pid if grade == "floor" else children(s.process.pid).pop()
    known = children(top)
    job = s.run("sleep", "20")
    keeper = next_child(top, known)
    guard = next_child(keeper, set())
    meter = next_child(keeper, {guard})
    os.kill(meter, signal.SIGSTOP)
    at = time.monotonic()
    s.wait(job, 60)
    took = time.monotonic() - at
    s.close()
    return took if job.exited and job.exited[0] == LOST else None


def main():
    sandbox, tries = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    failed = 0
    for grade in ("full", "floor"):
        with tempfile.TemporaryDirectory() as scratch:
            took = stopped(sandbox, grade, scratch)
        print(f"{grade:5} kill -STOP of the meter: lost after {took} s")
        if took is None or took > 10:
            failed += 1
            print(f"FAIL {grade}: a stopped meter")
        with tempfile.TemporaryDirectory() as scratch:
            silent, met = kept_back(sandbox, grade, scratch, tries)
        print(f"{grade:5} guard kept back: {met} of {tries} met, {silent} silent")
        failed += silent + (met == 0)
        for whom in ("keeper", "guard"):
            with tempfile.TemporaryDirectory() as scratch:
                jobs = os.path.join(scratch, "jobs")
                os.mkdir(jobs, 0o700)
                s = Spawner(sandbox, jobs, grade, "--pool", "0")
                top = s.process.pid if grade == "floor" else children(s.process.pid).pop()
                ends = {"lost": 0, "early": 0, "done": 0}
                for n in range(tries):
                    job = one(s, top, whom, n % 10 * 0.0002)
                    if job.refused or job.exited[0] not in (0, LOST):
                        failed += 1
                        print(f"FAIL {grade} {whom}: {job.refused or job.exited}")
                    else:
                        ends["done" if job.exited[0] == 0 else "lost" if job.started else "early"] += 1
                s.wait(s.run("true"))
                left = descendants(top)
                for _ in range(200):
                    left = descendants(top)
                    if not left:
                        break
                    time.sleep(0.02)
                if left:
                    failed += 1
                    print(f"FAIL {grade} {whom}: left {left}")
                s.close()
                print(f"{grade:5} kill -9 of the {whom}: {ends['early']} before exec, {ends['lost']} after it, {ends['done']} too late")
                if not ends["early"]:
                    failed += 1
                    print("FAIL none was met while it was set up")
    return failed > 0


sys.exit(main())
