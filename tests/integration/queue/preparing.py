# SPDX-License-Identifier: Apache-2.0
"""Run by test_preparing.sh (tests/support/rig). Each function named t_* is one case."""
import contextlib
import io
import os
import shutil
import socket
import subprocess
import tarfile
import threading
import time

import rig
from rig import D, ENV, WORK, api, main, submit, upload, want

PATIENCE = 5
LATE = D + "/late"
LOG = D + "/tomb.log"


class Deaf(threading.Thread):
    """The vessel's work socket once more. When it is deaf the next download of a blob is never answered."""

    def __init__(self):
        super().__init__(daemon=True)
        self.is_deaf, self.swallowed = False, 0
        os.makedirs(LATE, 0o700)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(LATE + "/vessel.sock")
        os.chmod(LATE + "/vessel.sock", 0o600)
        self.listener.listen(64)
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(WORK)
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, source, sink, is_question):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_question and self.is_deaf and data.startswith(b"GET /work/v1/blobs/"):
                    self.is_deaf = False
                    self.swallowed += 1
                    continue
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


class Tomb:
    def __init__(self, door):
        build = os.environ["LYCH_BUILD"]
        secrets = f"{D}/secrets-{door}"
        os.makedirs(secrets, 0o700)
        name = "tomb_1" if door == "postgres" else "tomb_2"
        shutil.copy(D + "/pg/secrets/lychgate_work_of_" + name, secrets)
        args = ["--pg-dir", D + "/pg/sock"] if door == "postgres" else []
        if args:
            shutil.copy(D + "/pg/secrets/lychgate_db_of_tomb_1", secrets)
        with open(LOG, "wb") as log:
            self.p = subprocess.Popen([build + "/test-build/lych-tomb", "--name", name, "--data", f"{D}/data/tomb-{door}", "--work-dir", LATE,
                                       "--queue", door, *args, "--secrets", secrets, "--sandbox", build + "/lych-sandbox",
                                       "--slots", "2", "--grade", "full", "--prepare-seconds", str(PATIENCE)], stderr=log, env=ENV)

    def stop(self):
        self.p.terminate()
        assert self.p.wait(30) == 0, open(LOG, encoding="utf-8").read()[-2000:]


def until(what, seconds, fn):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if got := fn():
            return got
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {seconds} s: {open(LOG, encoding='utf-8').read()[-2000:]}")


def ends():
    """The tomb's words about attempts that did not end well."""
    return [l for l in open(LOG, encoding="utf-8") if 'msg="job ended"' in l]


def shown(job):
    return want(api("GET", f"/v1/jobs/{job}"), 200).json


def archive():
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w") as t:
        info = tarfile.TarInfo("hello")
        info.size = 5
        t.addfile(info, io.BytesIO(b"hello"))
    return upload(b.getvalue())


deaf = None


def one(door, spec, name):
    """The first attempt hangs; meanwhile another job runs; the next attempt has its input."""
    deaf.is_deaf, before = True, deaf.swallowed
    job = submit(spec)
    until("a download that is not answered", 20, lambda: deaf.swallowed > before)
    began = time.monotonic()
    other = submit({"argv": ["/bin/true"]})
    until("a job without an input", PATIENCE + 20, lambda: shown(other)["state"] == "succeeded")
    end = until("the end of the attempt", PATIENCE + 15, ends)[0]
    took = time.monotonic() - began
    assert took > PATIENCE - 1, took
    for what in (f'job="{job}"', 'class="transport_loss"',
                 f'detail="prepare was not done within {PATIENCE} s: the vessel did not give all of {name}"'):
        assert what in end, end
    got = until("the next attempt", 40, lambda: shown(job)["finished_at"] and shown(job))
    assert (got["state"], got["attempts"]) == ("succeeded", 2), got
    print(f"{door}: missed after {took:.1f} s")


def case(door):
    global deaf
    deaf = deaf or Deaf()
    tomb = Tomb(door)
    try:
        one(door, {"argv": ["/bin/cat", "hello"], "input": archive()}, "input.tar")
        open(LOG, "wb").close()
        one(door, {"argv": ["/bin/cat"], "stdin_blob": upload(b"of " + door.encode())}, "stdin")
    finally:
        tomb.stop()


def t_a_vessel_that_gives_no_input_to_a_tomb_with_a_login():
    case("postgres")


def t_a_vessel_that_gives_no_input_to_a_tomb_without_one():
    case("vessel")


rig.ARGS += ["--tomb", "tomb_2"]
main(globals())
