#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""early_end.py SANDBOX: in both grades, cold and from the pool, jobs are ended as soon as the first byte is there."""
import os, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "python"))
from spawner import Spawner

ROUNDS, CANCEL = 40, 8  # CANCEL: what Spawner.kill() says
failed = 0


def until_written(job, seconds=20):
    end = time.monotonic() + seconds
    while not os.fstat(job.out.fileno()).st_size:
        assert time.monotonic() < end, "it wrote nothing"


with tempfile.TemporaryDirectory() as scratch:
    for grade in ("full", "floor"):
        for pool in ("0", "1"):
            jobs = os.path.join(scratch, grade + pool)
            os.mkdir(jobs, 0o700)
            s = Spawner(os.path.abspath(sys.argv[1]), jobs, grade, "--pool", pool)
            untold = 0
            for _ in range(ROUNDS):
                job = s.run("sh", "-c", "echo x; exec sleep 60")
                until_written(job)
                s.kill(job)
                s.wait(job)
                untold += not job.started or job.refused is not None or job.exited[0] != CANCEL
            print(f"{'FAIL' if untold else 'ok  '}  {grade}, pool {pool}: {untold} of {ROUNDS} told as not begun {job.refused or ''}")
            failed += untold
            s.close()
sys.exit(failed > 0)
