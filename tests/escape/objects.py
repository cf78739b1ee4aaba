#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each kind of kernel object that a job can make (try_objects.c), made as fast as it goes: the job
is ended, or what it has is bounded. Judged by the machine's MemAvailable, from outside.

	objects.py SANDBOX TRY_OBJECTS [KIND...]

A line a kind and grade: how it ended, and what the machine lost at most. Exit 1: one lost more than
the limit and 128 MiB. Nothing else may work on the machine meanwhile."""
import json, os, shutil, subprocess, sys, tempfile, threading, time

MIB = 1 << 20
LIMIT = 128 * MIB
SLACK = 128 * MIB
PROCESSES = 100


def available():
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024


def settle():
    """What the last one left is given back by and by."""
    was, still = available(), 0
    for _ in range(200):
        time.sleep(0.05)
        now = available()
        still = still + 1 if abs(now - was) < MIB else 0
        was = now
        if still >= 5:
            break
    return was


class Watch(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.least, self.stop = available(), False

    def run(self):
        while not self.stop:
            self.least = min(self.least, available())
            time.sleep(0.005)


def run(sandbox, program, kind, grade, scratch):
    work = os.path.join(scratch, "work")
    os.mkdir(work, 0o700)
    shutil.copy(program, os.path.join(work, "o"))
    base = settle()
    watch = Watch()
    watch.start()
    start = time.monotonic()
    done = subprocess.run(
        [sandbox, "--grade", grade, "--json", "--workspace", work, "--timeout", "30s", "--memory", str(LIMIT), "--disk", "1GiB",
         "--processes", "256", "--nofile", "768", "--grace", "0", "--", "./o", kind, str(PROCESSES), "mark"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=180)
    seconds = time.monotonic() - start
    watch.stop = True
    watch.join()
    shutil.rmtree(work)
    out = [json.loads(l) for l in done.stderr.decode().splitlines() if l.startswith("{")]
    how = out[-1]["how"] if out else f"exit {done.returncode}"
    return how, (out[-1].get("detail") or "") if out else "", base - watch.least, seconds


def main():
    sandbox, program = map(os.path.abspath, sys.argv[1:3])
    kinds = sys.argv[3:] or subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            for grade in ("full", "floor"):
                how, detail, lost, seconds = run(sandbox, program, kind, grade, scratch)
                bad = lost > LIMIT + SLACK
                failed += bad
                print(f"{'FAIL' if bad else 'ok  '} {grade:5} {kind:18} {how:10} {lost / MIB:6.0f} MiB {seconds:5.1f} s  {detail[:90]}", flush=True)
    return failed > 0


sys.exit(main())
