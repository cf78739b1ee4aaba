# SPDX-License-Identifier: Apache-2.0
"""Run by test_attended.sh (tests/support/rig). Each function named t_* is one case: what becomes of jobs whose
client is gone. No tomb claims them, so they wait in the queue until somebody cancels them."""
import json
import os
import pty
import signal
import subprocess
import time
import uuid

from rig import API, D, Events, api, call, claim, lych, main, psql, settle, submit, want

GONE_SEC = 10
SLACK_SEC = 3


def attended(*args, **more):
    """(the command, its job) of a `lych run`, once it follows."""
    request = uuid.uuid4().hex
    p = lych("run", "-n", "--json", "--request-id", request, *args, "--", "true", **more)
    line = json.loads(p.stdout.readline())
    return p, line["job"]["id"]


def detached():
    return int(lych("run", "-n", "-d", "--", "true").communicate(timeout=20)[0])


def state(job):
    return want(api("GET", f"/v1/jobs/{job}"), 200).json["state"]


def when_cancelled(job, limit):
    """Seconds until it is."""
    began = time.monotonic()
    while state(job) != "cancelled":
        assert time.monotonic() - began < limit, f"job {job} is {state(job)} after {limit} s"
        time.sleep(0.05)
    return time.monotonic() - began


def t_a_client_that_is_killed():
    p, job = attended()
    other = detached()
    q, kept = attended()
    p.kill()
    took = when_cancelled(job, GONE_SEC + SLACK_SEC)
    assert took > GONE_SEC - 1, took
    assert state(other) == "queued" and state(kept) == "queued"
    # the one that still waits hears of its end
    settle(claim(kept), "ack", {"v": 1, "exit_code": 0})
    assert q.wait(10) == 0
    # it is in the log, and told by whom
    events = psql(f"SELECT string_agg(event, ' ' ORDER BY id) FROM lych.audit_outbox WHERE job_id = {job}", "lych_migrate")
    assert events == "job.enqueued job.abandoned job.cancelled", events


def t_one_that_runs_is_cancelled_too():
    p, job = attended()
    claim(job)
    p.kill()
    began = time.monotonic()
    while state(job) != "cancelling":
        assert time.monotonic() - began < GONE_SEC + SLACK_SEC, state(job)
        time.sleep(0.1)


def t_a_terminal_that_is_closed():
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"XDG_RUNTIME_DIR": D + "/xdg", "HOME": D + "/home", "LYCHGATE_DATA": D + "/data"})
        os.execv(os.environ["LYCH_BUILD"] + "/lych", ["lych", "run", "-n", "--request-id", "terminal", "--", "true"])
    for _ in range(100):
        rows = psql("SELECT id FROM lych.job WHERE request_id = 'terminal'", "lych_migrate")
        if rows:
            break
        time.sleep(0.05)
    time.sleep(0.5)
    os.close(terminal)
    when_cancelled(int(rows), GONE_SEC + SLACK_SEC)
    os.waitpid(pid, 0)


def t_a_client_that_only_stands_still():
    p, job = attended()
    p.send_signal(signal.SIGSTOP)
    time.sleep(GONE_SEC + SLACK_SEC)
    assert state(job) == "queued"
    p.send_signal(signal.SIGCONT)
    settle(claim(job), "ack", {"v": 1, "exit_code": 0})
    assert p.wait(30) == 0


def t_who_comes_back_in_time():
    job = want(api("POST", "/v1/jobs?attended=1", {"argv": ["true"]}), 201).json["id"]
    for _ in range(3):
        time.sleep(GONE_SEC * 0.6)
        ev = Events(job, "?attended=1")
        time.sleep(0.2)
        ev.leave()
    # who only looks does not wait for it
    looker = Events(job)
    took = when_cancelled(job, GONE_SEC + SLACK_SEC)
    assert took > GONE_SEC - 2, took
    looker.join(10)
    assert looker.events[-1][0] == "end", looker.events


def t_who_submits_it_once_more_without_waiting():
    spec = {"argv": ["true"], "request_id": uuid.uuid4().hex}
    job = want(api("POST", "/v1/jobs?attended=1", spec), 201).json["id"]
    want(api("POST", "/v1/jobs", spec), 200)
    # and a detached one is not made to depend on somebody who waits
    other = {"argv": ["true"], "request_id": uuid.uuid4().hex}
    free = want(api("POST", "/v1/jobs", other), 201).json["id"]
    want(api("POST", "/v1/jobs?attended=1", other), 200)
    time.sleep(GONE_SEC + SLACK_SEC)
    assert (state(job), state(free)) == ("queued", "queued")


def t_one_that_is_tried_again_by_a_person():
    job = want(api("POST", "/v1/jobs?attended=1", {"argv": ["true"]}), 201).json["id"]
    settle(claim(job), "fail", {"v": 1}, "crash")
    want(api("POST", f"/v1/jobs/{job}/retry"), 200)
    time.sleep(GONE_SEC + SLACK_SEC)
    assert state(job) == "queued"


def t_bad_words():
    for bad in ("2", "x", "-1", ""):
        want(api("POST", f"/v1/jobs?attended={bad}", {"argv": ["true"]}), 400, "LYCH-HTTP-007")
    want(api("GET", f"/v1/jobs/{submit()}/events?attended=yes"), 400, "LYCH-HTTP-007")


def t_while_the_database_is_away_nobody_is_missed():
    p, job = attended()
    q, kept = attended()
    p.kill()
    time.sleep(2)
    subprocess.run(["tests/support/pg", "stop", D + "/pg"], check=True)
    time.sleep(GONE_SEC + SLACK_SEC)
    subprocess.run(["tests/support/pg", "start", D + "/pg"], check=True)
    for _ in range(200):
        if call(API, "GET", f"/v1/jobs/{job}").status == 200:
            break
        time.sleep(0.1)
    when_cancelled(job, 2 * GONE_SEC)
    time.sleep(2)
    assert state(kept) == "queued"
    q.kill()


if __name__ == "__main__":
    main(globals())
