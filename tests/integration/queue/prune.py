# SPDX-License-Identifier: Apache-2.0
"""Run by test_prune.sh (tests/support/rig): jobs of many ages and states. What is refused first, then that each thing
goes that should, and nothing that shouldn't: what is young, runs, waits, is evidence, or is named by another job too."""
import hashlib
import json
import os
import pty
import re
import select
import time

import rig
from rig import D, Vessel, api, claim, lych, main, psql, submit, want

vessel = None  # the one that runs
# A test build, which sweeps soon after its start.
rig.ARGS[0] = os.path.join(os.environ["LYCH_BUILD"], "test-build/lych-vessel")
ids = {}


def make(name, state, age, klass="", taint=None, blobs=()):
    """A job that ended so many days ago (None: it has no end)."""
    job = int(psql(f"""INSERT INTO lych.job (queue, request_id, spec_sha, state, class, priority, max_attempts, max_lost,
        retry_on_lost, max_runtime_s, epoch, attempts, taint, created_at, started_at, finished_at)
        SELECT 'main', '{name}', sha256('{name}'), '{state}', '{klass}', 50, 3, 3, true, 600, 1, 1,
            {f"'{taint}'" if taint else "NULL"}, w.at, w.at, {"NULL" if age is None else "w.at"}
        FROM (SELECT now() - interval '{(age or 0) * 24} hours 1 minute' AS at) AS w RETURNING id""", "lych_migrate"))
    artifacts = [{"path": f"a{i}", "size": len(b), "sha256": hashlib.sha256(b).hexdigest(), "class": "file"}
                 for i, b in enumerate(blobs)]
    result = {"v": 1, "exit_code": 0, "stdout_bytes": 100, "stderr_bytes": 0, "artifacts": artifacts}
    psql(f"""INSERT INTO lych.payload VALUES ({job}, '{{"argv":["true"]}}');
        INSERT INTO lych.attempt (job_id, epoch, owner, boot_id, claim_id, token, phase, started_at, ended_at, outcome)
        VALUES ({job}, 1, 'tomb_1', gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'harvesting', now(), now(), 'succeeded');
        INSERT INTO lych.result VALUES ({job}, 1, '{json.dumps(result)}')""", "lych_migrate")
    for i, b in enumerate(blobs):
        sha = hashlib.sha256(b).hexdigest()
        kind = "input" if i == 0 else "artifact"
        psql(f"INSERT INTO lych.job_blob VALUES ({job}, '{sha}', '{kind}')", "lych_migrate")
        os.makedirs(f"{D}/data/vessel/blobs/{sha[:2]}", 0o700, exist_ok=True)
        with open(blob(b), "wb") as f:
            f.write(b)
    where = f"{D}/data/vessel/output/{job // 256}/{job}.1"
    os.makedirs(where, 0o700)
    with open(f"{where}/stdout", "wb") as f:
        f.write(b"x" * 100)
    ids[name] = job


def blob(b):
    sha = hashlib.sha256(b).hexdigest()
    return f"{D}/data/vessel/blobs/{sha[:2]}/{sha}"


def there():
    """The names of those that are there; what made the others go removed their output too."""
    left = {n for n, j in ids.items() if api("GET", f"/v1/jobs/{j}").status == 200}
    for n, j in ids.items():
        assert os.path.exists(f"{D}/data/vessel/output/{j // 256}/{j}.1") == (n in left) or n in ("waits", "runs"), n
    return left


def prune(*args):
    p = lych("prune", *args)
    out, err = p.communicate(timeout=60)
    return p.returncode, out, err


def answered(answer, *args):
    """On a terminal, where a person answers: the exit code, and what was shown."""
    parent, child = pty.openpty()
    p = lych("prune", *args, stdin=child, stdout=child, stderr=child)
    os.close(child)
    shown, end = b"", time.monotonic() + 60
    while b"[yes/no] " not in shown and p.poll() is None:
        assert time.monotonic() < end, shown
        if select.select([parent], [], [], 1)[0]:
            shown += os.read(parent, 65536)
    os.write(parent, answer)
    code = p.wait(60)
    try:
        while piece := os.read(parent, 65536):
            shown += piece
    except OSError:
        pass  # EIO: nobody has the other end, and all of it was read
    os.close(parent)
    return code, shown.decode().replace("\r\n", "\n")


def t_0_jobs():
    ids["runs"] = submit()
    claim(ids["runs"])
    ids["waits"] = submit()
    make("young", "succeeded", 0, blobs=(b"shared input",))
    make("week", "succeeded", 8)
    make("week_failed", "dead", 9, "crash")
    make("week_late", "dead", 9, "timeout_kill")
    make("week_cancelled", "cancelled", 9)
    make("evidence", "quarantined", None)
    make("contained", "dead", 40, "crash", taint="a canary")
    make("old", "succeeded", 31, blobs=(b"shared input", b"only of the old"))
    make("older", "succeeded", 32)


def t_1_refusals():
    for args, text in [([], "--older is missing"), (["--older", "7"], "'7' has no unit"), (["--older", "x"], "--older: "),
                       (["--older", "7d", "5"], "no arguments"), (["--older", "-1d"], "--older: "),
                       (["--older", "7d", "--state", "running"], "'running' is no state of a job that ended"),
                       (["--older", "7d", "--state", "odd"], "'odd' is no state"),
                       (["--older", "7d", "--state", "quarantined"], "evidence"),
                       (["--older", "7d"], "nobody can be asked here"), (["--older", "7d", "--json"], "nobody can be asked here")]:
        code, out, err = prune(*args)
        word = "LYCH-CORE-009" if text.startswith("nobody") else "LYCH-CORE-004"
        assert (code, out) == (2, "") and text in err and word in err, (args, code, out, err)
    for answer in b"no\n", b"\n", b"y\n", b"yes please\n", b"YES\n":
        code, shown = answered(answer, "--older", "7d")
        assert code == 1 and "the answer was not yes" in shown, (answer, code, shown)
    assert there() == set(ids)


def t_2_what_would_go():
    code, out, err = prune("--older", "7d", "--dry-run")
    assert (code, err) == (0, ""), (code, err)
    named = {int(line.split()[0]) for line in out.splitlines() if re.match(r"[0-9]+ +[a-z_]+ +[0-9-]{10} ", line)}
    want_names = {"week", "week_failed", "week_late", "week_cancelled", "old", "older"}
    assert named == {ids[n] for n in want_names}, out
    assert "6 jobs that ended 7d ago or earlier (3 succeeded, 1 failed, 1 cancelled, 1 timed_out), with at most 627 B" in out, out
    assert "1 were contained and stay" in out, out
    code, out, err = prune("--older", "7d", "--dry-run", "--json")
    j = json.loads(out)
    assert code == 0 and j["dry_run"] and j["bytes"] == 6 * 100 + 27 and j["contained"] == 1, out
    assert {o["id"]: o["then"] for o in j["jobs"]} == {ids[n]: "stays" for n in want_names}, out
    code, out, err = prune("--older", "7d", "--dry-run", "--state", "timed_out", "--json")
    assert [o["id"] for o in json.loads(out)["jobs"]] == [ids["week_late"]], out
    code, out, err = prune("--older", "40d", "--yes")
    assert (code, err) == (0, "") and out.startswith("0 jobs that ended 40d ago or earlier, with at most 0 B"), out
    assert there() == set(ids)


def t_3_they_go():
    code, out, err = prune("--older", "7d", "--state", "timed_out", "--yes", "--json")
    j = json.loads(out)
    assert (code, err) == (0, "") and not j["dry_run"], (code, err)
    assert [(o["id"], o["then"]) for o in j["jobs"]] == [(ids["week_late"], "removed")], out
    code, shown = answered(b"yes\n", "--older", "8d")
    assert code == 0 and shown.endswith("[yes/no] yes\n5 jobs removed\n"), (code, shown)
    assert there() == {"runs", "waits", "young", "evidence", "contained"}
    removed = psql("SELECT string_agg(DISTINCT job_id::text, ' ') FROM lych.audit_outbox WHERE event = 'job.removed'", "lych_migrate")
    assert set(removed.split()) == {str(j) for n, j in ids.items() if n.startswith("week") or n.startswith("old")}, removed


def t_4_everything_that_ended():
    code, out, err = prune("--older", "0", "--yes")
    assert code == 0 and "1 jobs removed" in out, (code, out, err)
    assert there() == {"runs", "waits", "evidence", "contained"}


def metric(name):
    text = want(api("GET", "/metrics"), 200).body.decode()
    return int(re.search(rf"^lychgate_{name} (\d+)$", text, re.M)[1])


def sweep(retention):
    """A vessel with this retention, and its first sweep."""
    global vessel
    assert vessel.stop() == 0
    fd = os.open(D + "/codex.yaml", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(fd, "w") as f:
        f.write(f'version: "1"\nretention: {retention}\n')
    vessel = Vessel(["--sweep-after", "1", "--config", D + "/codex.yaml"])
    end = time.monotonic() + 60
    while metric("sweeps_total") == 0:
        assert time.monotonic() < end, "the sweep does not end"
        time.sleep(0.1)


def t_5_retention():
    for name in [n for n in ids if n not in ("evidence", "contained")]:
        del ids[name]
    make("now", "succeeded", 0, blobs=(b"of two jobs",))
    make("day", "dead", 1, "crash", blobs=(b"of two jobs", b"of one job"))
    make("year", "succeeded", 365)
    sweep("keep")
    assert there() == set(ids) and os.path.exists(blob(b"of one job"))
    sweep("2d")
    assert there() == set(ids) - {"year"}
    sweep("12h")
    assert there() == {"now", "evidence", "contained"}
    assert os.path.exists(blob(b"of two jobs")), "an input that another job has too"
    # one that no job names goes an hour after it came (test_blobs)
    assert psql("SELECT string_agg(job_id::text, ' ') FROM lych.job_blob", "lych_migrate") == str(ids["now"])
    assert metric("jobs_retired_total") == 1


main(globals())
