# SPDX-License-Identifier: Apache-2.0
"""Run by attended_restart.sh (tests/support/rig): whom a vessel misses that was away for longer than anybody may be gone."""
import signal
import sys
import time

import rig
sys.path.insert(0, "tests/integration/queue")
from attended import GONE_SEC, SLACK_SEC, attended, detached, state, when_cancelled
from rig import main

BACK_SEC = 60
vessel = None  # the one that runs


def t_a_restart_gives_a_minute_to_come_back():
    """The vessel was away for longer than anybody may be gone."""
    global vessel
    p, job = attended()
    q, kept = attended()
    other = detached()
    vessel.stop(signal.SIGKILL)
    p.kill()
    time.sleep(GONE_SEC + SLACK_SEC)
    vessel = rig.Vessel()
    began = time.monotonic()
    time.sleep(BACK_SEC - 5)
    assert state(job) == "queued", "before a minute is over"
    when_cancelled(job, 5 + SLACK_SEC)
    print(f"cancelled {time.monotonic() - began:.1f} s after the restart")
    assert (state(kept), state(other)) == ("queued", "queued")
    assert q.poll() is None
    q.kill()
    took = when_cancelled(kept, GONE_SEC + SLACK_SEC)
    assert took > GONE_SEC - 1, took


main(globals())
