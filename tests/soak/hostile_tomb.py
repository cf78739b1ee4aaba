# SPDX-License-Identifier: Apache-2.0
"""Run by hostile_tomb.sh (tests/support/rig): what a tomb that was taken over reads and forges, act by act. The
table "A tomb that was taken over" in docs/THREAT_MODEL.md is what these tests saw, and those of the storms.
Each function named t_* is one test."""
import array
import atexit
import hashlib
import json
import os
import random
import resource
import socket
import subprocess
import sys
import time
import uuid

import hostile
import hostile_storms
import rig
from hostile import (BOOT_2, MARK, OTHER, World, Witness, as_other, claim_as_other, head, heard, knock, leases_of_other,
                     login, row, settle_all, sql, status_of)
from rig import BOOT, D, WORK, Vessel, api, call, claim, finish_output, lease_headers, lych, psql, settle, submit, upload, want, work
from witness import Times

KEYS = {name: "sk-stand-in-" + uuid.uuid4().hex for name in ("main", "witness")}
CODEX = """
version: 1
portals:
  - name: main
    kind: openai
    url: "http://127.0.0.1:{main}/v1"
    secret: portal_main
    addresses:
      - 127.0.0.1
    models:
      - {{name: m, input: "0", output: "0"}}
  - name: witness
    kind: openai
    url: "http://127.0.0.1:{witness}/v1"
    secret: portal_witness
    addresses:
      - 127.0.0.1
    models:
      - {{name: w, input: "0", output: "0"}}
ward:
  - {{portal: main, action: allow}}
  - {{portal: witness, action: allow}}
budgets:
  job: {{requests: 100000, tokens: 1000000000000, money: "1000000", bytes: 100GiB, denials: 100000}}
  identity_day: {{requests: 1000000, tokens: 1000000000000, money: "1000000", bytes: 100GiB, denials: 1000000}}
  day: {{requests: 1000000, tokens: 1000000000000, money: "1000000", bytes: 100GiB, denials: 1000000}}
"""
G = {}


def provide(name):
    """A provider; what port it is at."""
    p = subprocess.Popen([sys.executable, "tests/support/python/provider.py", "--key", KEYS[name], "--log", f"{D}/{name}.provider"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    atexit.register(p.kill)
    write_private(D + "/pg/secrets/portal_" + name, KEYS[name])
    return p.stdout.readline().split()[1]


def migrate(*tombs):
    args = [a for tomb in tombs for a in ("--tomb", tomb)]
    return subprocess.run([rig.VESSEL, "migrate", "--pg-dir", D + "/pg/sock", "--secrets", D + "/pg/secrets", *args], check=False,
                          capture_output=True)


def write_private(path, text):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
        f.write(text)


def t_00_the_house():
    """A vessel with both doors, somebody to ask, and a witness with a job of tomb_1."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    assert G["vessel"].stop() == 0
    write_private(D + "/codex.yaml", CODEX.format(**{name: provide(name) for name in KEYS}))
    World.vessel = G["vessel"] = Vessel(["--tomb", "tomb_1", "--tomb", "tomb_2", "--config", D + "/codex.yaml"])
    for _ in range(100):
        if call(WORK, "POST", "/work/v1/extend", {"boot": BOOT, "ttl": 30, "leases": [{"job": 1, "epoch": 1, "token": BOOT}]},
                lease_headers()).status == 200:
            break
        time.sleep(0.1)
    World.witness = Witness()


# ---- what it reads ----

def t_01_it_guesses_leases():
    """Existing: with all there is to know of the lease it is refused too (tests/integration/daemons/tomb_identity.py)."""
    job, epoch, _ = World.witness.lease
    answers, c = set(), login()
    for _ in range(300):
        guess = (job, random.choice((epoch, epoch - 1, epoch + 1)), str(uuid.uuid4()))
        answers.add(as_other(guess, "POST", "output?stream=stdout&offset=0", b"x").code)
        answers.add(c.ask(f"SELECT tomb_api.ack({guess[0]}, {guess[1]}, '{guess[2]}', 'x')")[0][0])
        answers.add(c.ask(f"SELECT status FROM tomb_api.extend('{BOOT}', '{{{job}}}', '{{{guess[1]}}}', '{{{guess[2]}}}', 30)")[0][0])
    row("600 guessed tokens and epochs of a job of tomb_1", sorted(answers), ["LYCH-RUN-005", "denied", "lost"])
    missing = {as_other((n, 1, str(uuid.uuid4())), "POST", "phase", {"phase": "running"}).code for n in (job + 10 ** 6, 2 ** 62)}
    row("a job that is not there", sorted(missing), ["LYCH-RUN-005"])
    claim_id = psql(f"SELECT claim_id FROM lych.attempt WHERE job_id = {job}", "lych_migrate")
    got = c.ask(f"SELECT * FROM tomb_api.claim('main', 0, 30, '{BOOT}', '{claim_id}')")
    row("the claim_id and boot of tomb_1, by its own login", got, [])
    a = as_other(None, "POST", "claim", {"queue": "main", "n": 0, "ttl": 30, "boot": BOOT, "claim": claim_id})
    row("the same by the second door", a.json, {"jobs": []})
    for answer in (sql("SELECT * FROM tomb_api.claim('private', 1, 30, '%s', '%s')" % (BOOT_2, uuid.uuid4())),
                   as_other(None, "POST", "claim", {"queue": "private", "n": 1, "ttl": 30, "boot": BOOT_2,
                                                    "claim": str(uuid.uuid4())}).status):
        row("a queue that it was not given", answer, "42501", 403, 500)


def t_02_blobs_are_no_oracle():
    secret = (MARK + " in a blob\n").encode() * 100
    known = upload(secret)  # by the owner; a job of tomb_1 names it
    submit({"priority": 100, "files": [{"path": "secret", "blob": known}]})
    unknown = hashlib.sha256(b"nobody has this").hexdigest()
    lease, = leases_of_other(1)
    there, absent = (as_other(lease, "GET", "blobs/" + sha) for sha in (known, unknown))
    row("a blob of another job, by its sha256", (there.status, there.code), (404, "LYCH-STORE-001"), (403, "LYCH-RUN-005"))
    row("and one that is not there: the same answer", (absent.status, absent.code, absent.json["title"]),
        (there.status, there.code, there.json["title"]))
    answers = []
    for sha in (known, unknown):
        u = as_other(lease, "POST", "uploads", {}).json["upload"]
        as_other(lease, "PUT", f"uploads/{u}?offset=0", b"y" * len(secret))
        a = as_other(lease, "POST", f"uploads/{u}/commit", {"sha256": sha, "size": len(secret)})
        answers.append((a.status, a.code))
    row("to commit other bytes under that name", answers, [(409, "LYCH-STORE-002")] * 2)
    assert want(api("GET", f"/v1/jobs/{lease[0]}"), 200).json["state"] == "preparing"
    # it names in its result what it never sent
    result = {"v": 1, "exit_code": 0, "artifacts": [
        {"path": "theirs", "size": 1, "sha256": known, "class": "file"},
        {"path": "none", "size": 1, "sha256": unknown, "class": "file"}]}
    assert sql(f"SELECT tomb_api.ack({lease[0]}, {lease[1]}, '{lease[2]}', '\\x{json.dumps(result).encode().hex()}')") == "ok"
    row("a result with a blob that nobody sent", want(api("GET", f"/v1/jobs/{lease[0]}/artifacts/1"), 404).code, "LYCH-STORE-001")
    row("a result with the digest of another's blob: its owner sees what has that digest, the tomb nothing",
        api("GET", f"/v1/jobs/{lease[0]}/artifacts/0").body == secret, True)
    row("... and reads it no more than before", as_other(lease, "GET", "blobs/" + known).status, 410)


READS = """
42501 SELECT * FROM lych.job
42501 SELECT * FROM lych.lease
42501 SELECT * FROM lych.payload
42501 SELECT * FROM lych.result
42501 SELECT * FROM lych.tomb
42501 SELECT * FROM lych.audit_outbox
42501 SELECT vessel_api.show(1)
42501 SELECT * FROM vessel_api.lease_owner(1, 1, '00000000-0000-4000-8000-000000000001')
42501 SELECT vessel_api.contain(1, 'x')
42501 SELECT vessel_api.cancel(1)
42501 SELECT * FROM watch_api.sweep()
42501 SELECT query, application_name FROM pg_stat_activity
42501 SELECT pg_stat_get_backend_activity(1)
42501 SELECT * FROM pg_stat_get_activity(NULL)
42501 SELECT relname, n_live_tup FROM pg_stat_all_tables
42501 SELECT pg_relation_size('lych.job')
42501 SELECT * FROM pg_authid
42501 SELECT * FROM pg_roles
42501 SELECT * FROM pg_stats
42501 SELECT * FROM pg_locks
42501 SELECT prosrc FROM pg_proc
42501 SELECT pg_get_functiondef(1)
42501 SELECT * FROM pg_settings
42501 SELECT current_setting('data_directory')
42501 SELECT pg_read_file('PG_VERSION')
42501 SELECT pg_ls_dir('.')
42501 SELECT * FROM pg_hba_file_rules
42501 SELECT lo_import('/etc/passwd')
42501 SELECT lo_create(0)
42501 SELECT query_to_xml('SELECT 1', true, true, '')
42501 COPY lych.job TO STDOUT
42501 COPY pg_authid TO STDOUT
42501 COPY lych.job FROM STDIN
42501 COPY (SELECT 1) TO PROGRAM 'id'
42501 COPY (SELECT 1) TO '/tmp/x'
42501 SELECT * FROM information_schema.tables
42501 SET ROLE lych_owner
42501 SET SESSION AUTHORIZATION lych_vessel
42501 CREATE FUNCTION tomb_api.claim() RETURNS int LANGUAGE sql AS 'SELECT 1'
42501 CREATE TEMP TABLE t (a int)
42501 CREATE SCHEMA s
3F000 CREATE TABLE t (a int)
3F000 CREATE EXTENSION dblink
42501 DO $$ BEGIN END $$
42501 ALTER FUNCTION tomb_api.ack(bigint, bigint, uuid, bytea) RENAME TO x
42501 ALTER ROLE tomb_1 PASSWORD 'x'
42501 ALTER ROLE tomb_2 CONNECTION LIMIT -1
42501 ALTER ROLE tomb_2 SET temp_file_limit = -1
42501 ALTER ROLE ALL SET work_mem = '1GB'
42501 ALTER DATABASE lychgate SET work_mem = '1GB'
42501 ALTER SYSTEM SET work_mem = '1GB'
42501 SET log_min_messages = 'debug5'
42501 SET session_preload_libraries = 'x'
42501 LOAD 'plpgsql'
42501 CHECKPOINT
42501 REINDEX SYSTEM lychgate
42501 SELECT pg_advisory_lock(1)
42501 SELECT pg_sleep(10)
42501 SELECT pg_terminate_backend(1)
42501 SELECT pg_cancel_backend(1)
42501 SELECT pg_notify('lych', '')
42501 SELECT pg_current_xact_id()
42501 SELECT pg_export_snapshot()
42501 SELECT pg_logical_emit_message(true, 'a', 'b')
42501 SELECT count(*) FROM generate_series(1, 1000000000)
42501 SELECT repeat('x', 1000000000)
42501 SELECT regexp_count('aaaaaaaaaaaaaaaaaaaaaaaaa!', '^(a+)+$')
42501 SELECT (2::numeric) ^ 0.5
42501 SELECT xpath('//*', '<a/>')
42501 GRANT lych_tomb TO tomb_1
55000 BEGIN; PREPARE TRANSACTION 'x'
42501 LOCK TABLE pg_catalog.pg_class IN ACCESS SHARE MODE
"""


def t_03_at_the_database_it_reads_nothing():
    for line in READS.strip().splitlines():
        code, statement = line.split(" ", 1)
        if statement.startswith("LOCK"):
            statement = "BEGIN; " + statement
        row("SQL: " + statement, sql(statement), code, "42501")


def t_04_what_it_changes_of_itself_touches_nobody():
    """DROP OWNED and the like of the group that all tombs are in; its own password and settings."""
    c = login()
    for statement in ("DROP OWNED BY lych_tomb CASCADE", "REASSIGN OWNED BY lych_tomb TO tomb_2", "SET ROLE lych_tomb",
                "ALTER ROLE lych_tomb SET statement_timeout = 1", "ALTER ROLE lych_tomb PASSWORD 'x'",
                "DROP OWNED BY lych_tomb CASCADE", "RESET ROLE", "ALTER ROLE tomb_2 SET search_path = x",
                "ALTER ROLE tomb_2 SET default_transaction_read_only = on", "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
                "VACUUM", "VACUUM FULL", "ANALYZE", "CLUSTER"):
        row("SQL: " + statement, c.try_(statement), "ok", "42501", "2BP01", "0A000")
    World.witness.once(Times())  # tomb_1 goes on
    row("and tomb_1 has its login, its functions and its settings", sql(
        f"SELECT * FROM tomb_api.claim('main', 0, 30, '{BOOT}', '{uuid.uuid4()}')", "tomb_1"), "ok")
    row("SQL: another password for itself", c.try_("ALTER ROLE tomb_2 PASSWORD 'mine'"), "ok")
    c.close()
    p = migrate("tomb_1", "tomb_2")
    row("and what it left of itself is gone at the next start", (p.returncode, sql("SELECT tomb_api.ack(1, 1, '%s', 'x')" % BOOT_2)), (0, "ok"))


# ---- what it forges ----

def t_05_results_that_are_none():
    """The owner's API and command stay upright; a result is taken once."""
    deep = b"[" * 100000
    good = {"v": 1, "exit_code": 0}
    lies = [b"", b"\0" * 10, b"not JSON", deep, b'{"a":' * 5000, b'{"v":1,"v":2}', b'{"v":1e999}', b'{"v":1,"x":"\xff"}',
            b'{"v":1,"x":"' + b"y" * 1040000 + b'"}', json.dumps([good] * 20000).encode(), b'"x"', b"null", b"-0"]
    for walls in ("full", 7, [], {"grade": {"x": 1}}, {"grade": "full", "layers": "all", "limits": [1] * 50000},
                  {"grade": "\x1b[2Jfull", "landlock_abi": "x", "layers": [{}], "limits": [{"name": []}], "gaps": 3}):
        lies.append(json.dumps({**good, "walls": walls}).encode())
    for more in ({"exit_code": "0"}, {"signal": 9, "class": "\u202e"}, {"artifacts": "x"}, {"denials": [{}] * 100}, {"stdout_bytes": -1},
                 {"wall_ms": 10 ** 30}, {"detail": "\x1b]0;x\x07" * 100}, {"refused": [1], "quarantined": {"a": 1}},
                 {"artifacts": [{"path": p, "size": 1, "sha256": "0" * 64, "class": "file"} for p in
                                ("../x", "/etc/passwd", "a/../../b", ".git/hooks/pre-commit", "a\nb", "\x1b[2J")]},
                 {"x": {str(i): i for i in range(60000)}},
                 {"artifacts": [{"path": str(i), "size": 1, "sha256": "%064d" % i, "class": "file"} for i in range(5000)]}):
        lies.append(json.dumps({**good, **more}).encode())
    c = login()
    for n, lie in enumerate(lies):
        lease, = leases_of_other(1)
        said = c.ask(f"SELECT tomb_api.ack({lease[0]}, {lease[1]}, '{lease[2]}', '\\x{lie.hex()}')")[0][0]
        assert said == "ok", (n, said)
        shown = want(api("GET", f"/v1/jobs/{lease[0]}"), 200).json
        assert shown["state"] == "succeeded", shown
        for a in api("GET", f"/v1/jobs/{lease[0]}/artifacts").json.get("artifacts", []):
            assert not a["path"].startswith((".", "/")) and ".." not in a["path"], a
        for args in (("show", str(lease[0])), ("why", str(lease[0])), ("artifacts", str(lease[0])), ("logs", str(lease[0]))):
            began = time.monotonic()
            p = lych(*args)
            out, err = p.communicate(timeout=200)
            assert time.monotonic() - began < 5, (n, args, time.monotonic() - began)
            assert p.returncode in range(0, 5) and "\x1b" not in out + err, (n, args, p.returncode, out[:200], err[:200])
    row(f"{len(lies)} results that are none, or lie about walls, limits, ends, files", "shown without them, or as v 0", "shown without them, or as v 0")
    kept = psql("SELECT max(n) FROM (SELECT count(*) AS n FROM lych.job_blob GROUP BY job_id) x", "lych_migrate")
    row("of 5000 artifacts the database keeps", int(kept), 256)


def t_06_a_result_is_taken_once_and_in_size():
    lease, second = leases_of_other(2)
    big = b"x" * ((1 << 20) + 1)
    c = login()
    key = f"{lease[0]}, {lease[1]}, '{lease[2]}'"
    row("a result of a MiB and a byte, by its login", c.ask(f"SELECT tomb_api.ack({key}, '\\x{big.hex()}')")[0][0], "too_big")
    row("the same by the second door", as_other(lease, "POST", "ack", big).json, {"answer": "too_big"})
    row("a result of 10 MiB by the second door", as_other(lease, "POST", "ack", b"x" * (10 << 20)).status, 413)
    row("its own, twice", [c.ask(f"SELECT tomb_api.ack({key}, '\\x{t}')")[0][0] for t in ("7b7d", "7b7d", "7b7e")],
        ["ok", "already", "conflict"])
    row("and then otherwise, by the second door", as_other(lease, "POST", "fail?class=crash&retry=true", b"{}").json["answer"], "conflict")
    row("to give it back after that", c.ask(f"SELECT tomb_api.release({key}, true)")[0][0], "conflict")
    psql(f"SELECT vessel_api.contain({second[0]}, 'test')", "lych_vessel")
    row("an ack after its lease was taken back", c.ask(f"SELECT tomb_api.ack({second[0]}, {second[1]}, '{second[2]}', 'x')")[0][0], "revoked")
    row("output after it", as_other(second, "POST", "output?stream=stdout&offset=0", b"x").status, 410, 403)
    row("a model after it", as_other(second, "POST", "ask", {"seq": 1, "dialect": "openai", "stream": False, "request": {
        "model": "m", "messages": [{"role": "user", "content": "x"}]}}).status, 410, 403)


def t_07_lies_on_the_work_socket():
    lease, = leases_of_other(1)
    for what, got, wanted in (
            ("a release with an escape sequence in hello", as_other(None, "POST", "hello", {
                "door": "postgres", "release": "\x1b[2J", "boot": BOOT_2, "slots": 1}).status, 400),
            ("10^9 slots in hello", as_other(None, "POST", "hello", {
                "door": "postgres", "release": "1", "boot": BOOT_2, "slots": 10 ** 9}).status, 400),
            ("the name of tomb_1 with its own bearer", as_other(None, "GET", "ping", tomb="tomb_1").status, 401),
            ("its own name with the bearer of tomb_1's form", as_other(None, "GET", "ping", bearer=OTHER.swapcase()).status, 401),
            ("a path of the owner's", call(WORK, "GET", "/v1/jobs", None, lease_headers(lease, bearer=OTHER, tomb="tomb_2")).status, 404),
            ("a phase that is none", as_other(lease, "POST", "phase", {"phase": "done"}).status, 400),
            ("output behind a gap of 2^62", as_other(lease, "POST", f"output?stream=stdout&offset={2 ** 62}", b"x").status, 409),
            ("an end of output that is not there", as_other(lease, "POST", "output/end", {
                "stdout_bytes": 10 ** 18, "stderr_bytes": 0, "stdout_truncated": False, "stderr_truncated": False}).status, 409),
            ("a stream that is none", as_other(lease, "POST", "output?stream=../../boot&offset=0", b"x").status, 400),
            ("an upload's id that is a path", as_other(lease, "PUT", "uploads/..%2f..%2fboot?offset=0", b"x").status, 400),
            ("an upload of the owner's", as_other(lease, "PUT", f"uploads/{api('POST', '/v1/uploads', {}).json['upload']}?offset=0",
                                                  b"x").status, 404),
            ("a portal that it was not given", as_other(lease, "POST", "ask", {"seq": 1, "dialect": "openai", "stream": False,
                                                                               "request": {"model": "m", "messages": []}}).status, 403)):
        row(what, got, wanted)
    st = want(api("GET", "/v1/status"), 200).json
    assert "\x1b" not in json.dumps(st["tombs"], ensure_ascii=False)


def descriptors(pid):
    """The size of a process's table of them."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(line for line in f if line.startswith("FDSize:"))


def t_08_bytes_that_are_no_request():
    s = knock()
    s.sendall(b"GET /work/v1/ping HTTP/1.1\r\n" + b"X: " + b"y" * (10 << 20))
    row("a head of 10 MiB", status_of(s), "400", "413", "431", "closed", "ConnectionResetError")
    s = knock()
    s.sendall(head("GET", "ping") * 50)
    s.settimeout(3)
    data = b""
    try:
        while chunk := s.recv(65536):
            data += chunk
    except OSError:
        pass
    row("50 requests at once", data.count(b"HTTP/1.1 "), 1)
    s = knock()
    s.sendall(head("GET", "ping"))
    s.shutdown(socket.SHUT_WR)
    row("half a connection", status_of(s), "200", "closed")
    s = knock()
    r, w = os.pipe()
    s.sendmsg([head("GET", "ping")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r] * 200).tobytes())])
    row("200 descriptors with a request", status_of(s), "200")
    before = descriptors(World.vessel.p.pid)
    os.close(r)
    os.close(w)
    for _ in range(50):
        t = knock()
        a, b = os.pipe()
        t.sendmsg([head("GET", "ping")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [a] * 200).tobytes())])
        status_of(t)
        t.close()
        os.close(a)
        os.close(b)
    row("10,000 descriptors leave the vessel with no more", descriptors(World.vessel.p.pid), before)
    for junk in (b"\0" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /work/v1/ping HTTP/1.1\r\nHost: lychgate\r\nHost: x\r\n\r\n",
                 b"POST /work/v1/hello HTTP/1.1\r\nHost: lychgate\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
        s = knock()
        s.sendall(junk)
        s.settimeout(3)
        row(f"{junk[:20]!r}", status_of(s), "400", "closed", "TimeoutError")


def t_09_the_work_socket_is_removed():
    """What the tomb's own walls let it do with files in work/ is theirs; the vessel has its socket again at once."""
    os.unlink(WORK)
    began = time.monotonic()
    while True:
        try:
            ok = as_other(None, "GET", "ping").status
            break
        except OSError:
            assert time.monotonic() - began < 5
            time.sleep(0.01)
    took = time.monotonic() - began
    row("the vessel's socket in work/ removed", ok, 200)
    assert took < 1, took
    print(f"      there again after {1000 * took:.0f} ms")
    os.unlink(WORK)
    impostor = socket.socket(socket.AF_UNIX)
    impostor.bind(WORK)
    impostor.listen()
    time.sleep(0.6)
    impostor.close()
    row("another one in its place", as_other(None, "GET", "ping").status, 200)


def t_10_the_control_socket_of_another_tomb():
    """tomb_3 is a real one; work/ is every tomb's. Only the queue grants and cancels, whoever asks there."""
    settle_all()
    assert migrate("tomb_1", "tomb_2", "tomb_3").returncode == 0
    for _ in range(200):  # the vessel hears of it
        if call(WORK, "GET", "/work/v1/ping", None, lease_headers(bearer=rig.bearer_of("tomb_3"), tomb="tomb_3")).status == 200:
            break
        time.sleep(0.05)
    build = os.environ["LYCH_BUILD"]
    with open(D + "/tomb_3.log", "wb") as log:
        tomb = subprocess.Popen([build + "/lych-tomb", "--name", "tomb_3", "--data", D + "/data/tomb_3", "--work-dir", D + "/run/work",
                                 "--queue", "postgres", "--pg-dir", D + "/pg/sock", "--secrets", D + "/pg/secrets", "--sandbox",
                                 build + "/lych-sandbox", "--slots", "1", "--grade", "full"], stderr=log, env=rig.ENV)
    path = D + "/run/work/tomb-tomb_3.sock"
    try:
        for _ in range(1200):
            if os.path.exists(path):
                break
            time.sleep(0.05)
        else:
            raise AssertionError(open(D + "/tomb_3.log", encoding="utf-8").read())
        control(path)
    finally:
        tomb.terminate()
        tomb.wait(20)


def rpc(s, method, **params):
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}).encode() + b"\n")
    data = b""
    while not data.endswith(b"\n"):
        chunk = s.recv(65536)
        if not chunk:
            return {}
        data += chunk
    heard.extend(data)
    return json.loads(data)


def finished(job, seconds=20):
    for _ in range(seconds * 20):
        state = want(api("GET", f"/v1/jobs/{job}"), 200).json["state"]
        if state in ("succeeded", "failed", "lost"):
            return state
        time.sleep(0.05)
    return state


def control(path):
    running = submit({"priority": 100, "argv": ["sh", "-c", f"sleep 6; echo {MARK}"]})
    for _ in range(200):
        if want(api("GET", f"/v1/jobs/{running}"), 200).json["state"] == "running":
            break
        time.sleep(0.05)
    s = knock(path)
    row("health of another tomb: counts and walls, nothing of jobs", sorted(rpc(s, "healthCheck").get("result", {})),
        ["database", "jobs", "name", "queue", "slots", "spawner", "version", "walls"])
    row("to cancel its job there", rpc(s, "cancelStage", job=running), {"jsonrpc": "2.0", "id": 1, "result": {}})
    row("to cancel one that it has not", rpc(s, "cancelStage", job=10 ** 9)["error"]["data"]["error_code"], "LYCH-RUN-001")
    row("to have it begin one", rpc(s, "startStage", job=10 ** 9).get("result"), {})
    row("another method", "error" in rpc(s, "exec", argv=["id"]), True)
    s.sendall(b"x" * 200000 + b"\n")
    row("a line of 200 kB", status_of(s), "closed", "ConnectionResetError")
    began, n = time.monotonic(), 0
    s = knock(path)
    while time.monotonic() - began < 3:
        s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"startStage","params":{"job":1}}\n' * 100)
        got = 0
        while got < 100:
            got += s.recv(65536).count(b"\n")
        n += 100
    print(f"      {n} times startStage in 3 s")
    held = [knock(path) for _ in range(40)]
    row("its job, through all of that and 40 connections", finished(running), "succeeded")
    row("and the next one", finished(submit({"priority": 100, "argv": ["true"]})), "succeeded")
    for h in held:
        h.close()


def t_98_nothing_of_others_was_read():
    for what, text in (("a spec, output, blob or result", MARK), ("the bearer of tomb_1", rig.SECRET), ("a provider's key", KEYS["witness"]),
                       ("a token of tomb_1", World.witness.lease[2]), ("a password", hostile.password_of("tomb_1"))):
        row(f"in {len(heard)} bytes of answers: {what}", text.encode() in bytes(heard), False)


def t_99_everything_works_as_before():
    settle_all()
    w = World.witness
    t = Times()
    for _ in range(20):
        w.once(t)
    print(f"   afterwards: {t.table()}")
    assert t.worst() < hostile.LIMIT
    job, epoch, token = w.lease
    want(work(w.lease, "POST", "/work/v1/output?stream=stderr&offset=0", b"done"), 200)
    finish_output(w.lease, w.offset, 4)
    sha = upload(b"of tomb_1", lambda m, p, b=None: work(w.lease, m, p, b))
    settle(w.lease, "ack", {"v": 1, "exit_code": 0, "artifacts": [{"path": "out", "size": 9, "sha256": sha, "class": "file"}]})
    got = want(api("GET", f"/v1/jobs/{job}/output?stream=stdout&limit=1048576"), 200).body
    row("the output of tomb_1's job is what it wrote, to the byte", got == (MARK + "\n").encode() * (len(got) // (len(MARK) + 1)) and
        len(got) == min(w.offset, 1 << 20), True)
    row("and its artifact", api("GET", f"/v1/jobs/{job}/artifacts/0").body, b"of tomb_1")
    other = submit({"priority": 100})
    settle(claim(other), "ack", {"v": 1, "exit_code": 0})
    row("jobs go their way", want(api("GET", f"/v1/jobs/{other}"), 200).json["state"], "succeeded")
    row("the queue's invariants", psql("SELECT sum(bad) FROM lych.invariants()", "lych_migrate"), "0")
    row("no lease of tomb_1 was lost", psql("SELECT count(*) FROM lych.attempt WHERE owner = 'tomb_1' AND outcome = 'lost'",
                                            "lych_migrate"), "0")
    G["vessel"].stop()
    p = subprocess.run([os.environ["LYCH_BUILD"] + "/lych-audit", "verify", D + "/data/audit"], capture_output=True, text=True, check=False)
    row("the log is whole", p.returncode, 0)
    G["vessel"] = Vessel()
    print(f"{len(hostile.rows)} acts")


tests = {**{k: v for k, v in globals().items() if k.startswith("t_")}, **hostile_storms.TESTS}
G.update({k: tests[k] for k in sorted(tests)})
rig.main(G)
