# SPDX-License-Identifier: Apache-2.0
"""Run by test_bad_input.sh: odd_archives.py SOCKET OUTSIDE. Input archives with names that the job's files have too, or
with a word on the folder itself: the job runs, or is told what is in the way of what; nothing is written at OUTSIDE."""
import hashlib, http.client, io, json, os, socket, sys, tarfile, time

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
    data = out.getvalue()
    upload = call("POST", "/v1/uploads", {})["upload"]
    call("PUT", f"/v1/uploads/{upload}?offset=0", data)
    digest = hashlib.sha256(data).hexdigest()
    call("POST", f"/v1/uploads/{upload}/commit", {"sha256": digest, "size": len(data)})
    return digest


def run(entries, *files):
    job = call("POST", "/v1/jobs", {"argv": ["find", ".", "-printf", "%p %m\\n"], "input": archive(*entries),
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
    assert os.listdir(OUTSIDE) == [], what
print("odd_archives: 7 jobs")
