#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each kind of kernel object that a job can make (try_objects.c), made as fast as it goes: the job
is ended, or what it has is bounded. Judged by the machine's MemAvailable, from outside, without the
anonymous memory of processes.

	objects.py SANDBOX TRY_OBJECTS [KIND...]

A line a kind and grade: how it ended, what the machine lost at most, how many one of its processes
made where that is counted, and what refused the next. Then those that a job can't make at all. Exit 1:
one lost more than the limit and 128 MiB, or was made that is to be refused. GRADES (full floor),
TRIES (3): a figure that is too large is taken again, for others work on the machine too, and so is one
during which this program did not get to look. EACH_SEC (10): how long each may go on."""
import ctypes, json, os, shutil, subprocess, sys, tempfile, threading, time

MIB = 1 << 20
LIMIT = 128 * MIB
SLACK = 128 * MIB
TOO_MUCH = 1536 * MIB  # it has failed by then, and others need memory too
PROCESSES = 100
# What is hidden between two looks: a few are faster at it than many.
FEW = {"memfd-remnants": 2, "shared-remnants": 2, "small-remnants": 2, "regrown-remnants": 2, "huge-remnants": 2, "parked-memfds": 2, "parked-sockets": 2}
GRADES = os.environ.get("GRADES", "full floor").split()
TRIES = int(os.environ.get("TRIES", "3"))
EACH_SEC = os.environ.get("EACH_SEC", "10")
BLIND_SEC = 0.05  # between two looks
SYS_SCHED_SETATTR = 314


def available():
    """MemAvailable, and what processes have of their own: that is what others on the machine take and give
    back all the time, and what no job hides."""
    total = 0
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith(("MemAvailable:", "AnonPages:")):
                total += int(line.split()[1]) * 1024
    return total


def settle():
    """What the last one left is given back by and by."""
    was, still = available(), 0
    for _ in range(200):
        time.sleep(0.05)
        now = available()
        still = still + 1 if abs(now - was) < 2 * MIB else 0
        was = now
        if still >= 5:
            break
    return was


def be_next():
    """sched(7): a thread with a short slice is among the next to get a processor."""
    attr = (ctypes.c_uint64 * 6)(48, 0, 0, 100000, 0, 0)  # size, policy, flags; nice, priority; runtime
    ctypes.CDLL(None).syscall(SYS_SCHED_SETATTR, 0, ctypes.byref(attr), 0)


class Watch(threading.Thread):
    def __init__(self, base, job):
        super().__init__(daemon=True)
        self.base, self.least, self.job, self.stop, self.blind = base, base, job, False, 0.0

    def run(self):
        be_next()
        last = time.monotonic()
        while not self.stop:
            self.least = min(self.least, available())
            if self.base - self.least > TOO_MUCH:
                self.job.kill()
            time.sleep(0.004)
            self.blind, last = max(self.blind, time.monotonic() - last), time.monotonic()


class Run:
    """One kind in one grade, once."""

    def __init__(self, sandbox, program, kind, grade, scratch, processes):
        work = os.path.join(scratch, "work")
        os.mkdir(work, 0o700)
        shutil.copy(program, os.path.join(work, "o"))
        base = settle()
        start = time.monotonic()
        with subprocess.Popen(
                [sandbox, "--grade", grade, "--json", "--workspace", work, "--timeout", EACH_SEC + "s", "--memory", str(LIMIT), "--disk", "1GiB",
                 "--processes", "256", "--nofile", "768", "--grace", "0", "--", "./o", kind, str(processes), "mark"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as job:
            watch = Watch(base, job)
            watch.start()
            said, told = job.communicate(timeout=240)
        self.seconds = time.monotonic() - start
        watch.stop = True
        watch.join()
        subprocess.run(["rm", "-rf", work], check=True)
        end = [json.loads(x) for x in told.splitlines() if x.startswith("{")]
        self.how = end[-1]["how"] if end else f"exit {job.returncode}"
        self.detail = (end[-1].get("detail") or "") if end else told.strip()[-200:]
        self.lost, self.blind = base - watch.least, watch.blind
        self.made, self.refused = (said.split() + ["", ""])[:2] if said else ("", "")
        self.is_bad = self.lost > LIMIT + SLACK


def measure(sandbox, program, kind, grade, scratch):
    """The best of some that were seen: what others do meanwhile only adds to it."""
    best = None
    for _ in range(TRIES):
        r = Run(sandbox, program, kind, grade, scratch, FEW.get(kind, PROCESSES))
        if best is None or (r.blind > BLIND_SEC, r.lost) < (best.blind > BLIND_SEC, best.lost):
            best = r
        if r.lost > TOO_MUCH or (not best.is_bad and best.blind <= BLIND_SEC):
            break
    print(f"{'FAIL' if best.is_bad else 'ok  '} {grade:5} {kind:18} {best.how:10} {best.lost / MIB:6.0f} MiB {best.seconds:5.1f} s  "
          f"made {best.made or '-'} {best.refused or '-'}  {best.detail[:80]}"
          + (f" (not looked at for {best.blind * 1000:.0f} ms)" if best.blind > BLIND_SEC else ""), flush=True)
    return best.is_bad


def refused(sandbox, program, kind, grade, scratch):
    r = Run(sandbox, program, kind, grade, scratch, 1)
    bad = r.how != "exited" or r.made != "0"
    print(f"{'FAIL' if bad else 'ok  '} {grade:5} {kind:18} refused: {r.refused} {r.detail[:80] if bad else ''}", flush=True)
    return bad


def main():
    sandbox, program = map(os.path.abspath, sys.argv[1:3])
    lists = [subprocess.run([program, x], capture_output=True, text=True, check=True).stdout.split() for x in ("--list", "--refused")]
    wanted = sys.argv[3:] or lists[0] + lists[1]
    unknown = set(wanted) - set(lists[0] + lists[1])
    failed = [f"no such kind: {x}" for x in unknown]
    with tempfile.TemporaryDirectory() as scratch:
        for one, kinds in ((measure, lists[0]), (refused, lists[1])):
            for kind in (k for k in kinds if k in wanted):
                for grade in GRADES:
                    if one(sandbox, program, kind, grade, scratch):
                        failed.append(f"{kind} ({grade})")
    print("failed: " + ", ".join(failed) if failed else "each is ended, bounded or refused")
    return failed != []


sys.exit(main())
