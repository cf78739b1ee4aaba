# SPDX-License-Identifier: Apache-2.0
"""Run by test_tomb_identity.sh (tests/support/rig). The worst case throughout: tomb_2 has learned all there is
to know of a lease of tomb_1, and has its own secrets of this release. Each function named t_* is one test."""
import json
import os
import subprocess
import time
import uuid

from rig import (BOOT, D, SECRET, VESSEL, WORK, Vessel, api, bearer_of, call, claim, finish_output, lease_headers, main,
                 psql, settle, submit, want, work)

vessel = None  # the one that runs
OTHER = bearer_of("tomb_2")


def master(name):
    with open(f"{D}/pg/secrets/lychgate_{name}", encoding="ascii") as f:
        return f.read().strip()


def as_other(lease, method, path, body=None, **who):
    who = {"bearer": OTHER, "tomb": "tomb_2", **who}
    return call(WORK, method, "/work/v1/" + path, body, lease_headers(lease, **who))


def login(role, password, sql="SELECT session_user"):
    """What psql says: the answer, or the refusal."""
    r = subprocess.run(["psql", "-X", "-q", "-At", "-h", D + "/pg/sock", "-U", role, "-d", "lychgate", "-c", sql],
                       env={**os.environ, "PGPASSWORD": password}, capture_output=True, text=True, check=False)
    return r.stdout.strip() if r.returncode == 0 else r.stderr.strip()


def password_of(tomb):
    return master("db_of_" + tomb)


def migrate():
    return subprocess.run([VESSEL, "migrate", "--pg-dir", D + "/pg/sock", "--secrets", D + "/pg/secrets", "--tomb", "tomb_1",
                           "--tomb", "tomb_2"], capture_output=True, text=True, check=False)


def make(tomb):
    subprocess.run(["tests/support/python/tomb_secret.py", "make", D + "/pg/secrets", tomb], check=True)


def stored():
    """Every byte that a tomb can make the vessel keep."""
    return sorted(os.path.join(where, name) for top in ("output", "uploads", "blobs")
                  for where, _, names in os.walk(f"{D}/data/vessel/{top}") for name in names)


LEASED = [
    ("POST", "output?stream=stdout&offset=0", b"of another"),
    ("POST", "output/end", {"stdout_bytes": 0, "stderr_bytes": 0, "stdout_truncated": False, "stderr_truncated": False}),
    ("POST", "phase", {"phase": "running"}),
    ("GET", "blobs/" + "0" * 64, None),
    ("POST", "uploads", {}),
    ("PUT", "uploads/" + "0" * 32 + "?offset=0", b"x"),
    ("POST", "uploads/" + "0" * 32 + "/commit", {"sha256": "0" * 64, "size": 0}),
    ("POST", "ask", {"seq": 1, "dialect": "openai", "stream": False, "request": {"model": "m", "messages": []}}),
    ("POST", "fetch", {"seq": 2, "method": "GET", "url": "https://example.com/", "headers": [], "body": ""}),
    ("POST", "package", {"seq": 3, "registry": "npm", "path": "x"}),
    ("GET", "models?dialect=openai", None),
]


def t_a_bearer_is_of_one_name():
    for bearer, tomb in ((OTHER, "tomb_1"), (SECRET, "tomb_2"), (master("work"), "tomb_1"), (master("work"), "tomb_2"),
                         (SECRET, "TOMB_1"), (SECRET, "lych_vessel"), (SECRET, "tomb_10"),
                         (SECRET, None), (SECRET, "")):
        a = call(WORK, "GET", "/work/v1/ping", None, lease_headers(bearer=bearer, tomb=tomb))
        want(a, 401, "LYCH-HTTP-005")
    for bearer, tomb in ((SECRET, "tomb_1"), (OTHER, "tomb_2")):
        want(call(WORK, "GET", "/work/v1/ping", None, lease_headers(bearer=bearer, tomb=tomb)), 200)


def t_another_tombs_lease_is_nothing_to_it():
    job = submit(priority=100)
    lease = claim(job)
    before = stored()
    for _ in range(2):  # not known yet, and known
        for method, path, body in LEASED:
            want(as_other(lease, method, path, body), 403, "LYCH-RUN-005")
        want(work(lease, "POST", "/work/v1/phase", {"phase": "preparing"}), 200)
    assert stored() == before
    assert want(api("GET", f"/v1/jobs/{job}"), 200).json["state"] == "preparing"
    # it goes on as if nothing had been said
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", b"mine"), 200)
    finish_output(lease, 4)
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    assert want(api("GET", f"/v1/jobs/{job}/output?stream=stdout"), 200).body == b"mine"
    # nor when it has ended
    want(as_other(lease, "POST", "output?stream=stdout&offset=4", b"late"), 403, "LYCH-RUN-005")


def t_an_upload_is_of_the_tomb_that_began_it():
    mine, other = claim(submit(priority=100)), claim(submit(priority=100))
    u = want(work(mine, "POST", "/work/v1/uploads", {}), 201).json["upload"]
    for lease in (mine, other):
        want(as_other(lease, "PUT", f"uploads/{u}?offset=0", b"x"), 403, "LYCH-RUN-005")
    want(work(other, "PUT", f"/work/v1/uploads/{u}?offset=0", b"x"), 404, "LYCH-STORE-003")
    want(work(mine, "PUT", f"/work/v1/uploads/{u}?offset=0", b"x"), 200)
    for lease in (mine, other):
        settle(lease, "ack", {"v": 1, "exit_code": 0})


def t_by_the_second_door_too():
    global vessel
    assert vessel.stop() == 0
    vessel = Vessel(["--tomb", "tomb_1", "--tomb", "tomb_2"])
    job = submit(priority=100)
    lease = claim(job)
    boot = {"boot": BOOT, "ttl": 30}
    for _ in range(100):
        a = as_other(None, "POST", "extend", {**boot, "leases": [{"job": job, "epoch": lease[1], "token": lease[2]}]})
        if a.status != 503:  # its login
            break
        time.sleep(0.05)
    assert want(a, 200).json["leases"][0]["status"] == "lost", a
    for path, body in (("ack", {"v": 1}), ("fail?class=crash&retry=false", {"v": 1}), ("release", None)):
        assert want(as_other(lease, "POST", path, body), 200).json["answer"] == "denied", path
        want(as_other(lease, "POST", path, body, tomb="tomb_1"), 401, "LYCH-HTTP-005")
    want(as_other(None, "POST", "claim", {"queue": "main", "n": 1, **boot, "claim": str(uuid.uuid4())}, tomb="tomb_1"), 401,
         "LYCH-HTTP-005")
    assert psql(f"SELECT owner, ended_at IS NULL FROM lych.attempt WHERE job_id = {job}", "lych_migrate") == "tomb_1|t"
    settle(lease, "ack", {"v": 1, "exit_code": 0})


def t_at_the_database():
    job = submit(priority=100)
    lease = claim(job)
    key = f"{job}, {lease[1]}, '{lease[2]}'"
    for role, password in (("tomb_1", password_of("tomb_2")), ("tomb_2", password_of("tomb_1")), ("tomb_1", master("db_tomb")),
                           ("tomb_2", master("db_tomb")), ("tomb_1", SECRET), ("lych_vessel", password_of("tomb_1"))):
        assert "password authentication failed" in login(role, password), role
    for sql, answer in ((f"SELECT status FROM tomb_api.extend('{BOOT}', ARRAY[{job}]::bigint[], ARRAY[{lease[1]}]::bigint[], "
                         f"ARRAY['{lease[2]}']::uuid[], 30)", "lost"),
                        (f"SELECT tomb_api.ack({key}, '\\x7b7d')", "denied"),
                        (f"SELECT tomb_api.fail({key}, false, 'crash', '\\x7b7d')", "denied"),
                        (f"SELECT tomb_api.release({key})", "denied")):
        assert login("tomb_2", password_of("tomb_2"), sql) == answer, (sql, login("tomb_2", password_of("tomb_2"), sql))
    for sql in ("ALTER ROLE tomb_2 RENAME TO tomb_9", "SET ROLE tomb_1", "SET SESSION AUTHORIZATION tomb_1",
                "SELECT * FROM lych.tomb", "SELECT lych.set_generation('tomb_1', 9)", "SELECT * FROM vessel_api.tombs()",
                "SELECT * FROM vessel_api.lease_owner(1, 1, gen_random_uuid())"):
        said = login("tomb_2", password_of("tomb_2"), sql)
        assert said.startswith("ERROR:"), (sql, said)
    settle(lease, "ack", {"v": 1, "exit_code": 0})


def t_the_next_generation_ends_the_last_one():
    lease = claim(submit(priority=100))
    with subprocess.Popen(["psql", "-X", "-q", "-At", "-h", D + "/pg/sock", "-U", "tomb_2", "-d", "lychgate"], text=True,
                          env={**os.environ, "PGPASSWORD": password_of("tomb_2")}, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as session:
        session.stdin.write("SELECT session_user;\n")
        session.stdin.flush()
        assert session.stdout.readline() == "tomb_2\n"
        old = OTHER, password_of("tomb_2")
        make("tomb_2:7")
        assert migrate().returncode == 0
        # the vessel was told, and the session that the old password opened is gone
        began = time.monotonic()
        while as_other(None, "GET", "ping").status != 401:
            assert time.monotonic() - began < 2, "the old bearer still counts"
            time.sleep(0.02)
        print(f"   (the old bearer was refused after {(time.monotonic() - began) * 1000:.0f} ms)")
        out = session.communicate("SELECT session_user;\n", timeout=5)[0]
        assert "tomb_2" not in out and "terminat" in out, out
    assert "password authentication failed" in login("tomb_2", old[1])
    assert login("tomb_2", password_of("tomb_2")) == "tomb_2"
    want(as_other(None, "GET", "ping", bearer=bearer_of("tomb_2")), 200)
    # the other tomb never noticed
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=0", b"on"), 200)
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    # and it does not come back
    make("tomb_2:6")
    r = migrate()
    assert r.returncode != 0 and "generation 6 of tomb_2 is older than 7" in r.stderr and "lych secret rotate --tomb tomb_2" in r.stderr, r
    want(as_other(None, "GET", "ping", bearer=bearer_of("tomb_2")), 401, "LYCH-HTTP-005")
    assert "password authentication failed" in login("tomb_2", password_of("tomb_2"))
    want(as_other(None, "GET", "ping", bearer=old[0]), 401, "LYCH-HTTP-005")
    make("tomb_2:7")
    assert migrate().returncode == 0


def t_without_a_generation_there_is_no_tomb():
    os.rename(D + "/pg/secrets/lychgate_generation_of_tomb_2", D + "/kept")
    r = migrate()
    assert r.returncode != 0 and "LYCH-SECRET-002" in r.stderr, r
    for text in ("", "generation:", "generation:0", "generation:-1", "generation:1x", "7", "generation:99999999999999999999"):
        with open(os.open(D + "/pg/secrets/lychgate_generation_of_tomb_2", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w",
                  encoding="ascii") as f:
            f.write(text)
        r = migrate()
        assert r.returncode != 0 and "LYCH-SECRET-0" in r.stderr, (text, r)
    os.rename(D + "/kept", D + "/pg/secrets/lychgate_generation_of_tomb_2")
    assert migrate().returncode == 0
    assert json.loads(psql("SELECT json_agg(t.name ORDER BY t.name) FROM lych.tomb t", "lych_migrate")) == ["tomb_1", "tomb_2"]


main(globals())
