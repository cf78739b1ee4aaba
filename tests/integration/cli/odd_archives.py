# SPDX-License-Identifier: Apache-2.0
"""Run by test_bad_input.sh: odd_archives.py SOCKET OUTSIDE. Input archives with names that the job's files have too, or
with a word on the folder itself: the job runs, or is told what is in the way of what; nothing is written at OUTSIDE."""
import gzip, hashlib, http.client, io, json, os, socket, sys, tarfile, time

SOCKET, OUTSIDE = sys.argv[1:]
DIRECTORY, LINK, FILE = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.REGTYPE


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(SOCKET)


def call(method, path, body=None):
    c = Unix("lychgate")
    c.request(method, path, body if isinstance(body, bytes) or body is None else json.dumps(body))
    r = c.getresponse()
    data = json.loads(r.read())
    c.close()
    assert r.status < 300, (method, path, r.status, data)
    return data


def blob(data):
    upload = call("POST", "/v1/uploads", {})["upload"]
    call("PUT", f"/v1/uploads/{upload}?offset=0", data)
    digest = hashlib.sha256(data).hexdigest()
    call("POST", f"/v1/uploads/{upload}/commit", {"sha256": digest, "size": len(data)})
    return digest


def archive(*entries):
    """(name, type, link or content, mode) each; as a blob."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as t:
        for name, kind, what, mode in entries:
            i = tarfile.TarInfo(name)
            i.type, i.mode = kind, mode
            if kind == LINK:
                i.linkname = what
            i.size = len(what) if kind == FILE else 0
            t.addfile(i, io.BytesIO(what.encode()) if kind == FILE else None)
    return blob(out.getvalue())


def run(entries, *files):
    """entries: a list of them, or bytes that are no archive."""
    digest = blob(entries) if isinstance(entries, bytes) else archive(*entries)
    job = call("POST", "/v1/jobs", {"argv": ["find", ".", "-printf", "%p %m\\n"], "input": digest,
                                    "files": [{"path": p, "content": "x"} for p in files]})["id"]
    for _ in range(600):
        shown = call("GET", f"/v1/jobs/{job}")
        if shown["state"] in ("succeeded", "failed", "cancelled", "quarantined"):
            return shown
        time.sleep(0.05)
    raise AssertionError(shown)


for mode in (0o644, 0o000, 0o777):
    got = run([("./", DIRECTORY, "", mode), ("a", FILE, "hello", 0o644)])
    assert got["state"] == "succeeded", got
got = run([("d/", DIRECTORY, "", 0o755), ("a", FILE, "old", 0o644)], "a", "d/b")
assert got["state"] == "succeeded", got
for what, entries, file in (
        ("a directory of the file's name", [("a/", DIRECTORY, "", 0o755)], "a"),
        ("a link in its way", [("a", LINK, OUTSIDE, 0o777)], "a/b"),
        ("a file in its way", [("a", FILE, "x", 0o644)], "a/b")):
    got = run(entries, file)
    text = json.dumps(got)
    assert got["state"] == "failed" and "LYCH-SPEC-006" in text and "in its place" in text, (what, text)
    assert got["class"] == "input", (what, text)
    assert os.listdir(OUTSIDE) == [], what
# What tar says is none of the job's output: it is in the detail when nothing ran, and nowhere when all went well.
for what, data in (("text", b"no archive \x1b[31m\xff" * 100), ("compressed", gzip.compress(b"x" * 20000))):
    got = run(data)
    text = json.dumps(got)
    assert got["state"] == "failed" and got["class"] == "input" and got["result"]["exit_code"] is None, (what, text)
    assert got["result"]["stderr_bytes"] == 0, (what, text)
    assert "the input archive could not be unpacked" in got["result"]["detail"] and "tar:" in text, (what, text)
    print(got["id"])
got = run([("/" + "a", FILE, "hello", 0o644)])
assert got["state"] == "succeeded" and got["result"]["stderr_bytes"] == 0, got
print("odd_archives: 10 jobs")
