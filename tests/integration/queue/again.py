# SPDX-License-Identifier: Apache-2.0
"""Run by test_again.sh (tests/support/rig). Each function named t_* is one case: what a person does with jobs that
have ended, lych why, retry and rm."""
import glob
import json
import os
import time

from rig import D, Events, api, claim, finish_output, lych, main, psql, settle, submit, upload, want, work

vessel = None  # the one that runs
BETWEEN_READINGS = 0.4  # seconds, on a machine that does much else


def say(*args, code=0):
    p = lych(*args)
    text, errors = p.communicate(timeout=20)
    assert p.returncode == code, (args, p.returncode, text, errors)
    return text, errors


def job_of(job):
    return want(api("GET", f"/v1/jobs/{job}"), 200).json


def die_under(job):
    """The worker that holds it dies; its successor says so."""
    psql("UPDATE lych.job SET run_at = now() WHERE state = 'queued'", "lych_migrate")
    lease = claim(job)
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", b"then it died"), 200)
    assert psql(f"SELECT tomb_api.release({lease[0]}, {lease[1]}, '{lease[2]}', true)") == "ok"


def quarantined():
    job = submit(priority=100)
    for _ in range(3):
        die_under(job)
    assert job_of(job)["state"] == "quarantined"
    return job


def failed(out=b"no", artifact=None):
    job = submit(priority=100)
    lease = claim(job)
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", out), 200)
    finish_output(lease, len(out))
    more = {}
    if artifact:
        sha = upload(artifact, lambda m, p, b=None: work(lease, m, p, b))
        more = {"artifacts": [{"path": "a", "size": len(artifact), "sha256": sha, "class": "file"}]}
    settle(lease, "fail", {"v": 1, "exit_code": 3, "class": "crash", **more}, "crash")
    return job


def of_state(state):
    """A job in each state of the table, by its name for people."""
    if state == "quarantined":
        return quarantined()
    if state == "failed":
        return failed()
    job = submit(priority=100)
    if state == "cancelled":
        want(api("POST", f"/v1/jobs/{job}/cancel"), 200)
    elif state == "held":
        psql(f"UPDATE lych.job SET state = 'held' WHERE id = {job}", "lych_migrate")
    elif state != "queued":
        lease = claim(job)
        if state == "succeeded":
            settle(lease, "ack", {"v": 1, "exit_code": 0})
        elif state == "timed_out":
            settle(lease, "fail", {"v": 1}, "timeout_kill")
        elif state == "lost":
            settle(lease, "fail", {"v": 1}, "transport_loss")
        elif state == "cancelling":
            want(api("POST", f"/v1/jobs/{job}/cancel"), 200)
        elif state == "running":
            want(work(lease, "POST", "/work/v1/phase", {"phase": "running"}), 200)
    assert job_of(job)["state"] == state
    return job


def t_what_may_be_done_in_which_state():
    yes, no = (200, None), (409, "LYCH-RUN-006")
    table = {"held": (no, no), "queued": (no, no), "preparing": (no, no), "running": (no, no), "cancelling": (no, no),
             "succeeded": (no, yes), "cancelled": (no, yes), "failed": (yes, yes), "timed_out": (yes, yes),
             "lost": (yes, yes), "quarantined": (yes, yes)}
    for state, (retry, remove) in table.items():
        job = of_state(state)
        want(api("POST", f"/v1/jobs/{job}/retry"), *retry)
        assert job_of(job)["state"] == ("queued" if retry is yes else state), state
        if retry is yes:
            want(api("POST", f"/v1/jobs/{job}/retry"), *no)
            want(api("DELETE", f"/v1/jobs/{job}"), *no)
            want(api("POST", f"/v1/jobs/{job}/cancel"), 200)
            want(api("DELETE", f"/v1/jobs/{job}"), 200)
            job = of_state(state)
        want(api("DELETE", f"/v1/jobs/{job}"), *remove)
        want(api("GET", f"/v1/jobs/{job}"), 404 if remove is yes else 200)
    want(api("POST", "/v1/jobs/999999/retry"), 404, "LYCH-RUN-001")
    want(api("DELETE", "/v1/jobs/999999"), 404, "LYCH-RUN-001")


def t_a_contained_job_is_evidence():
    for state in ("failed", "quarantined", "queued"):
        job = of_state(state)
        assert psql(f"SELECT vessel_api.contain({job}, 'a canary')", "lych_vessel") == "contained"
        want(api("POST", f"/v1/jobs/{job}/retry"), 403, "LYCH-RUN-012")
        a = want(api("DELETE", f"/v1/jobs/{job}"), 403, "LYCH-RUN-012")
        assert "consecrate" in a.json["hint"], a
        assert job_of(job)["taint"] == "a canary"
        for command in ("retry", "rm"):
            assert "LYCH-RUN-012" in say(command, str(job), code=1)[1]
    text, _ = say("why", str(job))
    assert "contained" in text and "a canary" in text and "consecrate" in text and "lych retry" not in text, text


def t_why_says_what_quarantined_it_and_what_to_do():
    job = quarantined()
    text, _ = say("why", str(job))
    assert "quarantined" in text and "died or fell silent 3 times" in text, text
    assert f"lych retry {job}" in text and f"lych rm {job}" in text, text
    answer = json.loads(say("why", "--json", str(job))[0])
    assert answer["state"] == "quarantined" and "3 times" in answer["reason"] and "lych retry" in answer["advice"]
    text, _ = say("why", str(of_state("lost")))
    assert "lych retry" in text, text


def t_a_quarantined_job_is_tried_again_and_ends_well():
    job = quarantined()
    text, _ = say("retry", str(job))
    assert text == f"job {job}: queued\n", text
    # what its lost attempts had printed is no output of this one
    assert want(api("GET", f"/v1/jobs/{job}/output?stream=stdout"), 200).body == b""
    ev = Events(job)
    lease = claim(job)
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", b"well"), 200)
    finish_output(lease, 4)
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    ev.join(10)
    shown = job_of(job)
    assert (shown["state"], shown["attempts"], shown["lost"]) == ("succeeded", 4, 3), shown
    assert ev.out["stdout"] == b"well" and ev.events[-1][1]["result"]["exit_code"] == 0


def t_again_it_has_as_many_tries_as_at_first():
    job = quarantined()
    want(api("POST", f"/v1/jobs/{job}/retry"), 200)
    for n in range(3):
        assert job_of(job)["state"] == "queued", n
        die_under(job)
    assert job_of(job)["state"] == "quarantined"
    once = submit(priority=100, retry="never")
    for _ in range(2):
        settle(claim(once), "fail", {"v": 1}, "transport_loss")
        assert job_of(once)["state"] == "lost"
        want(api("POST", f"/v1/jobs/{once}/retry"), 200)
    want(api("POST", f"/v1/jobs/{once}/cancel"), 200)
    psql(f"UPDATE lych.job SET attempts = 98, max_attempts = 100 WHERE id = {job}", "lych_migrate")
    assert "hundred" in want(api("POST", f"/v1/jobs/{job}/retry"), 409, "LYCH-RUN-006").json["detail"]


def pause(job):
    """From the end of its last attempt, however long it took us to come here to ask."""
    return float(psql(f"SELECT extract(epoch FROM run_at - (SELECT max(ended_at) FROM lych.attempt WHERE job_id = {job})) "
                      f"FROM lych.job WHERE id = {job}", "lych_migrate"))


def is_drawn(job, least, most):
    """The end of the attempt and run_at are two readings of the clock in one transaction, the end's the earlier."""
    seconds = pause(job)
    assert least <= seconds <= most + BETWEEN_READINGS, seconds


def t_again_its_pauses_begin_anew():
    job = quarantined()
    want(api("POST", f"/v1/jobs/{job}/retry"), 200)
    die_under(job)
    assert pause(job) <= 0, "the first loss costs none"
    die_under(job)
    is_drawn(job, 0.5, 1.5)
    job = submit(priority=100)
    for _ in range(3):
        psql(f"UPDATE lych.job SET run_at = now() WHERE id = {job}", "lych_migrate")
        settle(claim(job), "fail_again", {"v": 1}, "transport_loss")
    assert job_of(job)["state"] == "lost"
    want(api("POST", f"/v1/jobs/{job}/retry"), 200)
    settle(claim(job), "fail_again", {"v": 1}, "transport_loss")
    is_drawn(job, 1, 2)
    want(api("POST", f"/v1/jobs/{job}/cancel"), 200)


def t_the_new_attempt_replaces_result_and_artifacts():
    job = failed(b"the first", b"old bytes")
    say("retry", "--json", str(job))
    shown = job_of(job)
    assert shown["state"] == "queued" and shown["result"] is None and shown["class"] is None, shown
    assert want(api("GET", f"/v1/jobs/{job}/artifacts"), 200).json["artifacts"] == []
    lease = claim(job)
    sha = upload(b"new bytes", lambda m, p, b=None: work(lease, m, p, b))
    settle(lease, "ack", {"v": 1, "exit_code": 0, "artifacts": [
        {"path": "b", "size": 9, "sha256": sha, "class": "file"}]})
    assert [a["path"] for a in want(api("GET", f"/v1/jobs/{job}/artifacts"), 200).json["artifacts"]] == ["b"]


def events_of(job):
    found = []
    for name in sorted(glob.glob(D + "/data/audit/segment-*.jsonl")):
        for line in open(name):
            r = json.loads(line)
            if r.get("prod") == "queue" and r["metadata"].get("correlation_uid") == str(job):
                found.append(r["event"])
    return found


def t_a_removed_job_leaves_nothing_but_the_log():
    rid = "remove-me"
    job = submit(priority=100, request_id=rid)
    lease = claim(job)
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", b"bytes"), 200)
    finish_output(lease, 5)
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    where = f"{D}/data/vessel/output/{job // 256}/{job}.{lease[1]}"
    assert os.path.isdir(where)
    text, _ = say("rm", str(job))
    assert text == f"job {job}: removed\n", text
    assert not os.path.exists(where)
    want(api("GET", f"/v1/jobs/{job}"), 404, "LYCH-RUN-001")
    assert psql(f"SELECT count(*) FROM lych.payload WHERE job_id = {job}", "lych_migrate") == "0"
    assert psql("SELECT sum(bad) FROM lych.invariants()", "lych_migrate") == "0"
    end = time.monotonic() + 10
    while "job.removed" not in events_of(job) and time.monotonic() < end:
        time.sleep(0.1)
    assert events_of(job) == ["job.enqueued", "job.claimed", "attempt.succeeded", "job.removed"], events_of(job)
    # its request_id stands for nothing any more
    assert submit(priority=100, request_id=rid) != job


def t_one_that_is_refused_keeps_no_other_from_it():
    good, bad, other = failed(), of_state("queued"), quarantined()
    text, errors = say("retry", str(good), str(bad), str(other), code=1)
    assert text == f"job {good}: queued\njob {other}: queued\n" and "LYCH-RUN-006" in errors, (text, errors)
    for job in (good, bad, other):
        want(api("POST", f"/v1/jobs/{job}/cancel"), 200)
    text, _ = say("rm", "--json", str(good), str(bad), str(other))
    assert [json.loads(l) for l in text.splitlines()] == [{"id": good}, {"id": bad}, {"id": other}], text
    say("rm", code=2)
    say("retry", "x", code=2)


main(globals())
