# SPDX-License-Identifier: Apache-2.0
"""Run by test_bad_input.sh: bad_input.py SOCKET. Job descriptions that no client of ours would
send, put to the owner's socket of a running Lychgate: each is refused with a typed error and
leaves no job behind."""
import http.client
import json
import socket
import sys

SOCKET = sys.argv[1]
tried = 0


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(SOCKET)


def call(method, path, body=None):
    c = Unix("lychgate")
    c.request(method, path, body)
    r = c.getresponse()
    status, data = r.status, r.read()
    c.close()
    return status, data


def count():
    status, data = call("GET", "/v1/jobs?limit=500")
    assert status == 200, data
    return len(json.loads(data)["jobs"])


def refused(what, body, code, status=400):
    global tried
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    got, data = call("POST", "/v1/jobs", body)
    shown = data[:300]
    assert got == status, f"{what}: wanted {status} {code}, got {got} {shown}"
    e = json.loads(data)
    assert e["error_code"] in (code if isinstance(code, tuple) else (code,)), \
        f"{what}: wanted {code}: {shown}"
    assert all(e[k] for k in ("title", "detail", "hint", "request_id")), f"{what}: {shown}"
    tried += 1


def spec(**more):
    return {"argv": ["true"], **more}


def malformed():
    for what, body in (
            ("nothing", b""), ("blank", b"  \n"), ("an open brace", b"{"),
            ("cut", b'{"argv":["true"]'), ("a tail", b'{"argv":["true"]}x'),
            ("two objects", b'{"argv":["true"]}{"argv":["true"]}'),
            ("a NUL behind it", b'{"argv":["true"]}\0'),
            ("a NUL byte in a string", b'{"argv":["a\0b"]}'),
            ("a byte order mark", b'\xef\xbb\xbf{"argv":["true"]}'),
            ("a trailing comma", b'{"argv":["true",]}'),
            ("single quotes", b"{'argv':['true']}"), ("no quotes", b'{argv:["true"]}'),
            ("a comment", b'{"argv":["true"]/* */}'), ("NaN", b'{"argv":["true"],"priority":NaN}'),
            ("Infinity", b'{"argv":["true"],"priority":Infinity}'),
            ("a leading zero", b'{"argv":["true"],"priority":010}'),
            ("a plus sign", b'{"argv":["true"],"priority":+1}'),
            ("hex", b'{"argv":["true"],"priority":0x10}'),
            ("a raw line feed in a string", b'{"argv":["a\nb"]}'),
            ("an unknown escape", b'{"argv":["\\x41"]}'),
            ("half an escape", b'{"argv":["\\u00"]}'),
            ("a lone surrogate", b'{"argv":["\\ud800"]}'),
            ("True", b'{"argv":["true"],"priority":True}')):
        refused(what, body, "LYCH-SPEC-001")
    for what, body in (("an array", b'["true"]'), ("a string", b'"true"'), ("null", b"null")):
        refused(what, body, ("LYCH-SPEC-001", "LYCH-SPEC-003"))


def not_utf8():
    for what, raw in (("a stray byte", b"\xff"), ("a cut sequence", b"\xe2\x82"),
                      ("an overlong slash", b"\xc0\xaf"), ("an encoded surrogate", b"\xed\xa0\x80"),
                      ("beyond U+10FFFF", b"\xf4\x90\x80\x80")):
        refused(what, b'{"argv":["a' + raw + b'b"]}', "LYCH-SPEC-001")
        refused(what + " in a key", b'{"argv":["true"],"a' + raw + b'":1}', "LYCH-SPEC-001")


def duplicates():
    for body in ('{"argv":["true"],"argv":["false"]}', '{"argv":["true"],"\\u0061rgv":["false"]}',
                 '{"argv":["true"],"env":{"A":"1","A":"2"}}',
                 '{"argv":["true"],"limits":{"cpus":1,"cpus":2}}',
                 '{"argv":["true"],"files":[{"path":"a","path":"b","content":""}]}'):
        refused("a key twice", body, "LYCH-SPEC-001")


def too_deep_or_too_large():
    for n in (100, 10000, 400000):
        refused(f"{n} arrays", b'{"argv":' + b"[" * n + b"]" * n + b"}", "LYCH-SPEC-001")
        refused(f"{n} open arrays", b'{"argv":' + b"[" * n, "LYCH-SPEC-001")
    refused("100000 objects", b'{"env":' * 100000 + b"1" + b"}" * 100000, "LYCH-SPEC-001")
    refused("above 1 MiB", spec(stdin="x" * (1 << 20)), "LYCH-HTTP-004", 413)
    refused("a long number", b'{"argv":["true"],"priority":' + b"9" * 5000 + b"}",
            ("LYCH-SPEC-001", "LYCH-SPEC-003", "LYCH-SPEC-004"))
    refused("a large exponent", b'{"argv":["true"],"priority":1e400}',
            ("LYCH-SPEC-001", "LYCH-SPEC-003", "LYCH-SPEC-004"))
    refused("257 strings", {"argv": ["x"] * 257}, "LYCH-SPEC-007")
    refused("a string of 32769 bytes", {"argv": ["x" * 32769]}, "LYCH-SPEC-007")
    refused("no string", {"argv": []}, ("LYCH-SPEC-007", "LYCH-SPEC-004", "LYCH-SPEC-005"))
    refused("an empty program", {"argv": [""]}, "LYCH-SPEC-007")
    refused("1025 files", spec(files=[{"path": str(i), "content": ""} for i in range(1025)]),
            "LYCH-SPEC-004")
    refused("65 globs", spec(artifacts=["x"] * 65), "LYCH-SPEC-004")


def unknown_or_mistyped():
    for body in (spec(surprise=1), spec(Argv=[]), spec(limits={"surprise": 1}),
                 spec(files=[{"path": "a", "content": "", "surprise": 1}]),
                 spec(**{"__proto__": {}}), spec(**{"": 1})):
        refused("an unknown key", body, "LYCH-SPEC-002")
    for body in (spec(priority="1"), spec(priority=1.5), spec(priority=True), spec(priority=None),
                 {"argv": "true"}, {"argv": [1]}, spec(env=[]), spec(env={"A": 1}),
                 spec(files={}), spec(limits=1)):
        refused("a wrong type", body, ("LYCH-SPEC-003", "LYCH-SPEC-004", "LYCH-SPEC-007"))


def nul_in_argv():
    for argv in (["a\0b"], ["true", "\0"], ["\0"]):
        refused("NUL in argv", {"argv": argv}, ("LYCH-SPEC-007", "LYCH-SPEC-001"))
    refused("NUL in env", spec(env={"A": "x\0y"}), ("LYCH-SPEC-008", "LYCH-SPEC-001"))
    refused("NUL in a path", spec(files=[{"path": "a\0b", "content": ""}]),
            ("LYCH-SPEC-006", "LYCH-SPEC-001"))


def paths():
    for path in ("..", "../x", "a/../b", "a/..", "./a", ".", "", "/", "/etc/passwd", "a//b", "a/",
                 "a\x01b", "a\nb", "a\x7fb", "\x1b[31m", "x" * 256):
        refused(f"path {path[:20]!r}", spec(files=[{"path": path, "content": ""}]),
                "LYCH-SPEC-006")
    refused("a path of 6 KB", spec(files=[{"path": "/".join(["d"] * 3000), "content": ""}]),
            "LYCH-SPEC-004")
    for glob in ("../x", "/etc/*", "a/../*", "", "a\x01"):
        refused(f"glob {glob!r}", spec(artifacts=[glob]), ("LYCH-SPEC-006", "LYCH-SPEC-004"))
    f = {"content": ""}
    refused("a path twice", spec(files=[{"path": "a", **f}, {"path": "a", **f}]),
            "LYCH-SPEC-006")
    refused("a file that is a directory too",
            spec(files=[{"path": "a", **f}, {"path": "a/b", **f}]), "LYCH-SPEC-006")
    for interpreter in ("../sh", "a/b", "", "/bin/../bin/sh", "sh\n"):
        refused(f"interpreter {interpreter!r}", {"script": "true", "interpreter": interpreter},
                ("LYCH-SPEC-006", "LYCH-SPEC-004"))


before = count()
for group in (malformed, not_utf8, duplicates, too_deep_or_too_large, unknown_or_mistyped,
              nul_in_argv, paths):
    group()
assert count() == before, "a refused description left a job"
print(f"bad_input: {tried} descriptions refused, none left a job")
