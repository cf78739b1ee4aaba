# SPDX-License-Identifier: Apache-2.0
"""Run by test_stored.sh (tests/support/rig). Each function named t_* is one case: the disk changes what the vessel
keeps, and nothing of it is given out as if nothing had happened."""
import glob
import hashlib
import json
import os
import shutil
import signal

import rig
from rig import D, Events, api, claim, finish_output, lych, main, settle, submit, upload, want, work

vessel = None  # the one that runs
BLOCK = 16384


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        c = f.read(1)[0]
        f.seek(at)
        f.write(bytes([c ^ 0x20]))


def job_that_printed(out, err=b"", chunk=50_000, state="succeeded"):
    job = submit(priority=100)
    lease = claim(job)
    for stream, data in (("stdout", out), ("stderr", err)):
        for at in range(0, len(data), chunk):
            want(work(lease, "POST", f"/work/v1/output?stream={stream}&offset={at}", data[at:at + chunk]), 200)
    if state == "succeeded":
        finish_output(lease, len(out), len(err))
        settle(lease, "ack", {"v": 1, "exit_code": 0, "stdout_bytes": len(out), "stderr_bytes": len(err)})
    return job, f"{D}/data/vessel/output/{job // 256}/{job}.{lease[1]}/", lease


def t_output_is_read_back_as_it_was_stored():
    out = os.urandom(200_000)
    job, where, _ = job_that_printed(out, b"oops")
    assert sorted(os.listdir(where)) == ["meta", "order", "stderr", "stderr.sum", "stdout", "stdout.sum"]
    got = b""
    while True:
        a = want(api("GET", f"/v1/jobs/{job}/output?stream=stdout&offset={len(got)}"), 200)
        assert a.headers["Lychgate-Size"] == "200000" and a.headers["Lychgate-Final"] == "1"
        if not a.body:
            break
        got += a.body
    assert got == out
    ev = Events(job)
    ev.join(10)
    assert ev.out == {"stdout": out, "stderr": b"oops"} and ev.events[-1][0] == "end"


def t_a_changed_byte_is_told_and_its_block_not_given_out():
    out = (b"0123456789abcdef" * 20_000)[:100_000]
    job, where, _ = job_that_printed(out)
    flip(where + "stdout", 40_000)
    # its block is 32768 to 49151
    a = want(api("GET", f"/v1/jobs/{job}/output?stream=stdout&offset=0"), 200)
    assert a.body == out[:2 * BLOCK], len(a.body)
    a = want(api("GET", f"/v1/jobs/{job}/output?stream=stdout&offset={2 * BLOCK}"), 502, "LYCH-STORE-007")
    assert a.json["expected"] == 3 * BLOCK and "bytes 32768 to 49151" in a.json["detail"], a
    a = want(api("GET", f"/v1/jobs/{job}/output?stream=stdout&offset={3 * BLOCK}"), 200)
    assert a.body == out[3 * BLOCK:]
    ev = Events(job)
    ev.join(10)
    damaged = [d for n, d in ev.events if n == "damaged"]
    assert len(damaged) == 1 and damaged[0]["offset"] == 2 * BLOCK and damaged[0]["bytes"] == BLOCK, damaged
    assert damaged[0]["error_code"] == "LYCH-STORE-007" and ev.events[-1][0] == "end"
    assert ev.out["stdout"] == out[:2 * BLOCK] + out[3 * BLOCK:]
    # the command gives what is good, says what is not, and does not exit as if all were well
    for args in (["logs", str(job)], ["logs", "-f", str(job)]):
        p = lych(*args)
        text, errors = p.communicate(timeout=20)
        assert p.returncode == 1 and text.encode() == out[:2 * BLOCK] + out[3 * BLOCK:], (p.returncode, len(text))
        assert "LYCH-STORE-007" in errors and "bytes 32768 to 49151" in errors, errors
    p = lych("logs", "-f", "--json", str(job))
    lines = [json.loads(l) for l in p.communicate(timeout=20)[0].splitlines()]
    assert [l["damaged"]["bytes"] for l in lines if l["event"] == "damaged"] == [BLOCK] and p.returncode == 1


def t_a_digest_that_rots_or_ends_that_are_missing_are_told_too():
    out = b"x" * (2 * BLOCK)
    for how in ("digest", "cut", "gone", "meta"):
        job, where, _ = job_that_printed(out)
        if how == "digest":
            flip(where + "stdout.sum", 10)
        elif how == "cut":
            os.truncate(where + "stdout", BLOCK)
        elif how == "gone":
            os.unlink(where + "stdout")
        else:
            flip(where + "meta", 0)
        ev = Events(job)
        ev.join(10)
        assert [d["error_code"] for n, d in ev.events if n == "damaged" and d["stream"] == "stdout"] == \
            ["LYCH-STORE-007"], (how, ev.events)
        assert ev.events[-1][0] == "end" and len(ev.out["stdout"]) == (BLOCK if how in ("digest", "cut") else 0), how


def t_output_that_is_gone_as_a_whole_is_told():
    """Not even its directory is there: a backup has none of what was removed while it was made."""
    job, where, _ = job_that_printed(b"precious")
    shutil.rmtree(where)
    for args in (["logs", str(job)], ["logs", "-f", str(job)], ["logs", "-f", "--json", str(job)], ["logs", "-n", "3", str(job)]):
        p = lych(*args)
        _, errors = p.communicate(timeout=20)
        assert p.returncode == 1 and "LYCH-STORE-007" in errors and "8 bytes of its stdout" in errors, (args, p.returncode, errors)
    job, _, _ = job_that_printed(b"")
    p = lych("logs", str(job))
    assert p.communicate(timeout=20) == ("", "") and p.returncode == 0


def t_a_vessel_that_is_killed_goes_on_with_its_digests():
    global vessel
    out = os.urandom(70_000)
    job, where, lease = job_that_printed(out[:30_000], chunk=7_000, state="running")
    vessel.stop(signal.SIGKILL)
    # bytes that it had written and told nobody of
    with open(where + "stdout", "ab") as f:
        f.write(os.urandom(5_000))
    vessel = rig.Vessel()
    assert want(api("GET", f"/v1/jobs/{job}/output?stream=stdout"), 200).body == out[:30_000]
    want(work(lease, "POST", "/work/v1/output?stream=stdout&offset=30000", out[30_000:]), 200)
    finish_output(lease, len(out))
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    assert want(api("GET", f"/v1/jobs/{job}/output?stream=stdout"), 200).body == out


def t_a_rotten_blob_is_healed_by_the_same_bytes():
    data = os.urandom(100_000)
    sha = upload(data)
    path, = glob.glob(f"{D}/data/vessel/blobs/*/{sha}")
    flip(path, 50_000)
    job = submit(files=[{"path": "in.bin", "blob": sha}], priority=100)
    lease = claim(job)
    got = want(work(lease, "GET", f"/work/v1/blobs/{sha}"), 200).body
    assert hashlib.sha256(got).hexdigest() != sha  # the tomb compares, and refuses to begin
    assert upload(data) == sha
    assert want(work(lease, "GET", f"/work/v1/blobs/{sha}"), 200).body == data
    settle(lease, "ack", {"v": 1, "exit_code": 0})
    used = want(api("GET", "/v1/status"), 200).json["store"]["used_bytes"]
    upload(data)
    assert want(api("GET", "/v1/status"), 200).json["store"]["used_bytes"] == used


main(globals())
