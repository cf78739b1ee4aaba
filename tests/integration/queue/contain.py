# SPDX-License-Identifier: Apache-2.0
"""Run by test_contain.sh (tests/support/rig). Each function named t_* is one case: lych contain, its steps and what is
refused afterwards. The tomb is SQL, so that each step comes when the case says so."""
import hashlib
import json
import threading
import time
import uuid

from rig import BOOT, D, Events, Vessel, api, claim, database, finish_output, lych, main, psql, settle, submit, upload, want, work

vessel = None  # the one that runs
STEPS = ["lease_revoked", "broker_closed", "tree_dead", "evidence_sealed", "logged"]
EVENTS = {"attempt.revoked": 1, "job.contained": 1, "containment.broker_closed": 1, "containment.tree_dead": 1,
          "containment.sealed": 1, "containment.done": 1}
TAINTED = (403, "LYCH-RUN-012")


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while not (got := what()):
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)
    return got


def contain(job, reason="it was seen to attack"):
    return want(api("POST", f"/v1/jobs/{job}/contain", {"reason": reason} if reason else None), 200).json


def shown(job):
    return want(api("GET", f"/v1/jobs/{job}/containment"), 200).json


def taken(job):
    return [s["step"] for s in shown(job)["steps"] if s["ms"] is not None]


def job_of(job):
    return want(api("GET", f"/v1/jobs/{job}"), 200).json


def events_of(job):
    rows = psql(f"SELECT event, count(*) FROM lych.audit_outbox WHERE job_id = {job} AND (event ~ 'contain' OR "
                "event = 'attempt.revoked') GROUP BY 1", "lych_migrate")
    return {name: int(n) for name, n in (line.split("|") for line in rows.splitlines())}


def release(lease):
    return psql(f"SELECT tomb_api.release({lease[0]}, {lease[1]}, '{lease[2]}', true)")


def running(out=b"so far"):
    job = submit(priority=100)
    lease = claim(job)
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", out), 200)
    return job, lease


def say(*args, code=0):
    p = lych(*args)
    text, errors = p.communicate(timeout=60)
    assert p.returncode == code, (args, p.returncode, text, errors)
    return text, errors


# ---- what is refused ----

def t_what_is_no_containment_is_refused():
    job = submit()
    want(api("POST", "/v1/jobs/999999/contain"), 404, "LYCH-RUN-001")
    want(api("GET", "/v1/jobs/999999/containment"), 404, "LYCH-RUN-001")
    want(api("GET", f"/v1/jobs/{job}/containment"), 404, "LYCH-RUN-001")
    for wrong in ("x", "0", "-1", "1e3", str(1 << 64)):
        want(api("POST", f"/v1/jobs/{wrong}/contain"), 400, "LYCH-HTTP-007")
    want(api("POST", f"/v1/jobs/{job}/contain?force=1"), 400, "LYCH-HTTP-007")
    want(api("GET", f"/v1/jobs/{job}/containment?x=1"), 400, "LYCH-HTTP-007")
    for body in ("{", "[]", '"x"', {"why": "x"}, {"reason": 1}, {"reason": None}, {"reason": ""}, {"reason": "x" * 201},
                 {"reason": "two\nlines"}, {"reason": "\x1b[31mred"}, {"reason": "\x7f"}, {"reason": "nothing \u202e amiss"},
                 {"reason": "\u0085"}, b'{"reason":"\xff"}', {"reason": "x", "reasons": "y"},
                 {"reason": "trigger denials: no person can say so"}):
        a = api("POST", f"/v1/jobs/{job}/contain", body)
        assert a.status == 400 and a.code.startswith("LYCH-"), (body, a)
    want(api("POST", f"/v1/jobs/{job}/contain", {"reason": "x" * 8000}), 413)
    assert job_of(job)["state"] == "queued" and not job_of(job)["taint"]
    assert "LYCH-RUN-001" in say("contain", "999999", code=3)[1]
    for wrong in ((), ("x",), ("0",), (str(job), str(job)), ("--reason",), ("--nothing", str(job))):
        say("contain", *wrong, code=2)
    assert "LYCH-SPEC-" in say("contain", "--reason", "two\nlines", str(job), code=2)[1]
    assert not job_of(job)["taint"]


def t_a_reason_may_be_left_out():
    job = submit()
    assert contain(job, None) == {"id": job, "new": True}
    assert "no reason" in job_of(job)["taint"]
    job = submit()
    assert contain(job, "größer, böser: \u00bbwhy\u00ab")["new"]
    assert job_of(job)["taint"] == "größer, böser: \u00bbwhy\u00ab"


# ---- its steps ----

def t_step_by_step():
    job, lease = running(b"it printed this\n")
    ev = Events(job)
    assert contain(job)["new"]
    assert job_of(job)["state"] == "quarantined"
    # at once: nothing more of it is taken, or given to it
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=16", b"more"), 410, "LYCH-RUN-004")
    want(work(lease, "POST", "/work/v1/phase", {"phase": "running"}), 410, "LYCH-RUN-004")
    until(lambda: "broker_closed" in taken(job))
    assert taken(job) == ["lease_revoked", "broker_closed"], taken(job)
    time.sleep(0.3)
    assert not shown(job)["done"] and shown(job)["tree_dead_by"] is None
    assert contain(job) == {"id": job, "new": False}
    assert psql(f"SELECT status FROM tomb_api.extend('{BOOT}', '{{{lease[0]}}}', '{{{lease[1]}}}', '{{{lease[2]}}}', 30)"
                ) == "revoked"
    assert release(lease) == "revoked"
    until(lambda: shown(job)["done"])
    s = shown(job)
    assert [x["step"] for x in s["steps"]] == STEPS and all(x["ms"] is not None for x in s["steps"]), s
    assert s["tree_dead_by"] == "worker" and s["state"] == "quarantined" and s["reason"] == "it was seen to attack", s
    assert events_of(job) == EVENTS, events_of(job)
    ev.join(10)
    assert ev.states()[-1] == "quarantined" and ev.events[-1][0] == "end", ev.events
    assert ev.out["stdout"] == b"it printed this\n"
    # a third person's look at the evidence
    assert hashlib.sha256(s["evidence"].encode()).hexdigest() == s["evidence_sha256"]
    e = json.loads(s["evidence"])
    assert e["output"]["stdout"] == {"bytes": 16, "sha256": hashlib.sha256(b"it printed this\n").hexdigest()}, e
    assert e["output"]["stderr"]["bytes"] == 0 and e["attempts"][0]["outcome"] == "revoked" and e["job"] == job, e
    log = [json.loads(x) for x in say("audit", "tail", "-n", "500", "--json")[0].splitlines()]
    seal, = [x for x in log if x["event"] == "containment.sealed" and x["metadata"]["correlation_uid"] == str(job)]
    assert seal["unmapped"]["sha256"] == s["evidence_sha256"], seal


def t_lych_says_what_was_done():
    job, lease = running()
    p = lych("contain", "--reason", "a canary", str(job))
    until(lambda: "broker_closed" in (taken(job) if job_of(job)["taint"] else []))
    time.sleep(1.3)
    assert p.poll() is None
    release(lease)
    text, errors = p.communicate(timeout=30)
    assert p.returncode == 0 and "waiting for its worker" in errors, (text, errors)
    assert f"job {job}: contained: a canary" in text and text.count(" ms") == 5 and "its worker has seen to it" in text, text
    text, errors = say("contain", str(job))
    assert "was contained before: a canary" in text and errors == "", (text, errors)
    j = json.loads(say("contain", "--json", str(job))[0])
    assert j["done"] and j["reason"] == "a canary", j
    other, lease = running()
    text, _ = say("contain", "--no-wait", str(other))
    assert "not yet" in text, text
    release(lease)
    until(lambda: shown(other)["done"])


def t_whatever_its_state():
    queued = submit()
    held = submit()
    psql(f"UPDATE lych.job SET state = 'held' WHERE id = {held}", "lych_migrate")
    ended = []
    for how in ("ack", "fail"):
        job, lease = running()
        finish_output(lease, 6)
        settle(lease, how, {"v": 1, "exit_code": 0, "class": "exit"}, "exit")
        ended.append((job, job_of(job)["state"]))
    cancelled = submit()
    want(api("POST", f"/v1/jobs/{cancelled}/cancel"), 200)
    for job, state in [(queued, "quarantined"), (held, "quarantined"), (cancelled, "cancelled"), *ended]:
        text, _ = say("contain", "--json", str(job))
        s = json.loads(text)
        assert s["done"] and s["state"] == state == job_of(job)["state"] and s["tree_dead_by"] == "idle", s
    got = psql(f"SELECT job_id FROM tomb_api.claim('main', 32, 30, '{BOOT}', '{uuid.uuid4()}')").split()
    assert not {str(queued), str(held)} & set(got), got
    cancelling, lease = running()
    want(api("POST", f"/v1/jobs/{cancelling}/cancel"), 200)
    assert contain(cancelling)["new"] and release(lease) == "revoked"
    until(lambda: shown(cancelling)["done"])
    assert job_of(cancelling)["state"] == "quarantined"


def t_a_token_that_is_nobodys_is_a_signal_and_contains_nobody():
    job, lease = running()
    for forged in ((job, lease[1], str(uuid.uuid4())), (job, lease[1] + 1, lease[2]), (submit(), lease[1], lease[2])):
        want(work(forged, "POST", "/work/v1/output?stream=stdout&offset=6", b"more"), 403, "LYCH-RUN-005")
    found = until(lambda: [x for x in (json.loads(y) for y in say("audit", "tail", "-n", "500", "--json")[0].splitlines())
                           if x.get("event") == "detection.foreign_token"])
    # once in ten seconds, whatever it tries
    assert [(x["metadata"]["correlation_uid"], x["unmapped"]) for x in found] == [
        (str(job), {"tomb": "tomb_1", "token_of": "nobody"})], found
    assert "tomb_1 spoke for it by a token of nobody" in say("why", str(job))[0]
    status = {t["trigger"]: t for t in want(api("GET", "/v1/status"), 200).json["triggers"]}
    assert status["foreign_token"] == {"trigger": "foreign_token", "act": "signal", "pulled": 1, "contained": 0}, status
    # the holder of the lease goes on
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=6", b"more"), 200)
    assert not job_of(job)["taint"] and release(lease) == "ok"


# ---- afterwards ----

def t_nothing_of_it_comes_back():
    spec = {"argv": ["true"], "request_id": "contain-again", "priority": 100}
    job = want(api("POST", "/v1/jobs", spec), 201).json["id"]
    lease = claim(job)
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", b"secret words"), 200)
    finish_output(lease, 12)
    sha = upload(b"made by it", lambda m, p, b=None: work(lease, m, p, b))
    settle(lease, "ack", {"v": 1, "exit_code": 0, "stdout_bytes": 12,
                          "artifacts": [{"path": "a", "size": 10, "sha256": sha, "class": "file"}]})
    assert want(api("GET", f"/v1/jobs/{job}/artifacts/0"), 200).body == b"made by it"
    say("contain", str(job))
    at = f"/v1/jobs/{job}"
    for method, path, body in (("POST", at + "/retry", None), ("DELETE", at, None), ("POST", "/v1/jobs", spec),
                               ("GET", at + "/output?stream=stdout", None), ("GET", at + "/output?stream=stderr&tainted=0", None),
                               ("GET", at + "/order", None), ("GET", at + "/artifacts/0", None), ("GET", at + "/events", None),
                               ("POST", "/v1/jobs", {"argv": ["true"], "input": sha}),
                               ("POST", "/v1/jobs", {"argv": ["true"], "files": [{"path": "x", "blob": sha}]}),
                               ("POST", at + "/quarantine/release",
                                {"path": "a", "why": "x", "size": 1, "sha256": "0" * 64, "to": "/tmp"})):
        want(api(method, path, body), *TAINTED)
    want(work(lease, "GET", f"/work/v1/blobs/{sha}"), 410, "LYCH-RUN-004")
    want(api("GET", at + "/output?stream=stdout&tainted=2"), 400, "LYCH-HTTP-007")
    for command in (("retry", str(job)), ("rm", str(job)), ("logs", str(job)), ("logs", "-f", str(job)),
                    ("artifacts", "--out", D + "/out", str(job))):
        assert "LYCH-RUN-012" in say(*command, code=1)[1], command
    say("prune", "--older", "0s", "--yes")
    # it is still there, for who says that it wants the evidence
    assert say("logs", "--tainted", str(job))[0] == "secret words"
    say("artifacts", "--tainted", "--out", D + "/out", str(job))
    with open(D + "/out/a", "rb") as f:
        assert f.read() == b"made by it"
    assert want(api("GET", at + "/output?stream=stdout&tainted=1"), 200).body == b"secret words"
    assert job_of(job)["taint"] and "contained" in say("why", str(job))[0]
    e = json.loads(shown(job)["evidence"])
    assert e["artifacts"] == [sha] and e["result_sha256"] == e["attempts"][0]["result_sha256"], e


# ---- a vessel that is killed ----

class Held:
    """The database stops at this step, until it is let go; and what of the saga waits there."""

    def __init__(self, step):
        self.step = step
        self.session = database._login("lych_migrate")  # pylint: disable=protected-access

    def __enter__(self):
        self.session.ask(f"SELECT pg_advisory_lock(4711, {self.step})")
        return self

    def __exit__(self, *_):
        self.session.close()

    def reached(self):
        until(lambda: psql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "lych_migrate") != "0")


TRIGGER = """
CREATE OR REPLACE FUNCTION public.stop_here() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	PERFORM pg_advisory_xact_lock_shared(4711, CASE WHEN TG_OP = 'INSERT' THEN 1
		WHEN OLD.cut_at IS NULL AND NEW.cut_at IS NOT NULL THEN 2
		WHEN OLD.dead_at IS NULL AND NEW.dead_at IS NOT NULL THEN 3
		WHEN OLD.sealed_at IS NULL AND NEW.sealed_at IS NOT NULL THEN 4 ELSE 5 END);
	RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER stop_here BEFORE INSERT OR UPDATE ON lych.containment
	FOR EACH ROW EXECUTE FUNCTION public.stop_here()"""


def kill():
    vessel.p.kill()
    vessel.p.wait(10)


def ends_the_same(job):
    until(lambda: shown(job)["done"], 40)
    s = shown(job)
    assert s["tree_dead_by"] == "worker" and taken(job) == STEPS and s["state"] == "quarantined", s
    assert events_of(job) == EVENTS, events_of(job)
    e = json.loads(s["evidence"])
    assert e["output"]["stdout"]["sha256"] == hashlib.sha256(b"so far").hexdigest(), e
    want(api("POST", f"/v1/jobs/{job}/retry"), *TAINTED)


def once(fn, *args):
    t = threading.Thread(target=lambda: quietly(fn, *args), daemon=True)
    t.start()
    return t


def quietly(fn, *args):
    try:
        fn(*args)
    except (OSError, AssertionError, ValueError):
        pass  # its vessel was killed


def t_killed_within_each_step():
    global vessel
    psql(TRIGGER, "lych_migrate")
    for step in range(1, 6):
        job, lease = running()
        with Held(step) as held:
            asked = once(contain, job)
            if step >= 3:
                until(lambda: "broker_closed" in (taken(job) if job_of(job)["taint"] else []))
                said = once(release, lease)
            held.reached()
            kill()
        asked.join(20)
        vessel = Vessel()
        contain(job)  # it may have been killed before anything of it was written
        if step >= 3:
            said.join(20)
        else:
            until(lambda: "broker_closed" in taken(job))
            assert release(lease) == "revoked"
        ends_the_same(job)
    psql("DROP TRIGGER stop_here ON lych.containment", "lych_migrate")


def t_killed_at_any_time():
    global vessel
    for ms in (0, 4, 9, 15, 25, 40, 70):
        job, lease = running()
        contain(job)
        said = once(release, lease)
        time.sleep(ms / 1000)
        kill()
        said.join(20)
        vessel = Vessel()
        ends_the_same(job)


def t_killed_while_the_worker_is_silent():
    global vessel
    job, lease = running()
    contain(job)
    kill()
    vessel = Vessel()
    until(lambda: "broker_closed" in taken(job))
    psql(f"UPDATE lych.containment SET dead_by = clock_timestamp() WHERE job_id = {job}", "lych_migrate")
    until(lambda: shown(job)["done"])
    assert shown(job)["tree_dead_by"] == "lease"
    assert release(lease) == "revoked"
    assert events_of(job) == EVENTS


main(globals())
