# SPDX-License-Identifier: Apache-2.0
"""For test_progress.sh: LYCH SOCKET DIR. A vessel's place where somebody slow answers, so that a transfer takes longer than a
second whatever the machine does; and the terminal of a person who waits."""
import hashlib
import json
import os
import pty
import re
import socket
import subprocess
import sys
import threading
import time

LYCH, SOCKET, DIR = sys.argv[1:]
PART, PARTS = b"x" * 65536, 8
WHOLE = PART * PARTS
pause = 0  # before each part


def serve(server):
    while True:
        c, _ = server.accept()
        threading.Thread(target=talk, args=(c,), daemon=True).start()


def answer(c, status, body):
    body = json.dumps(body).encode()
    c.sendall(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


def talk(c):
    f = c.makefile("rb")
    while True:
        line = f.readline().decode()
        if not line:
            return
        method, target = line.split()[:2]
        length = 0
        while (header := f.readline().decode().strip()):
            if header.lower().startswith("content-length:"):
                length = int(header.split(":")[1])
        if "/artifacts/" in target:
            c.sendall(f"HTTP/1.1 200 X\r\nContent-Type: application/octet-stream\r\nContent-Length: {len(WHOLE)}\r\n\r\n".encode())
            for _ in range(PARTS):
                time.sleep(pause)
                c.sendall(PART)
            continue
        if method == "PUT":
            time.sleep(3 * pause)
        f.read(length)
        if target.endswith("/artifacts"):
            answer(c, 200, {"artifacts": [{"n": 0, "path": "a", "size": len(WHOLE), "class": "file",
                                           "sha256": hashlib.sha256(WHOLE).hexdigest()}]})
        elif target == "/v1/uploads":
            answer(c, 201, {"upload": "0" * 32})
        elif method == "PUT":
            answer(c, 200, {"received": int(target.split("offset=")[1]) + length})
        else:
            answer(c, 409, {"error_code": "LYCH-RUN-002", "title": "T", "detail": "that is enough", "hint": "H"})


def on_terminal(*args):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(LYCH, [LYCH, *args])
    seen = b""
    try:
        while piece := os.read(fd, 65536):
            seen += piece
    except OSError:
        pass
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode()


def check(what, code, seen, line):
    """Lines of that form, each written over, and nothing of them left at the end."""
    shown = seen.split("\r\x1b[K")
    rows = [s for s in shown if re.fullmatch(line, s)]
    assert rows, f"{what}: {code}: no line of progress in {seen!r}"
    assert not re.search("iB/s", shown[0] + shown[-1]), f"{what}: {code}: {seen!r}"
    print(f"ok {what}: {rows[-1]}")


with socket.socket(socket.AF_UNIX) as s:
    s.bind(SOCKET)
    os.chmod(SOCKET, 0o600)
    s.listen(16)
    threading.Thread(target=serve, args=(s,), daemon=True).start()

    # in a pipe: not a byte of it
    p = subprocess.run([LYCH, "artifacts", "1", "--out", DIR + "/piped"], capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (p.returncode, p.stdout) == (0, b"") and b"\x1b" not in p.stderr and b"\r" not in p.stderr, p
    p = subprocess.run([LYCH, "artifacts", "1", "--json", "--out", DIR + "/json"], capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (p.returncode, p.stderr) == (0, b""), p

    pause = 0.25  # of a transfer two seconds and more
    rc, text = on_terminal("artifacts", "1", "--out", DIR + "/got")
    check("fetching", rc, text, r"fetching: [0-9.]+ KiB of 512\.0 KiB, [0-9.]+ [KM]?i?B/s, [0-9.]+s left")
    assert rc == 0 and text.endswith(f"lych: {DIR}/got/a\r\n"), (rc, text)
    with open(DIR + "/got/a", "rb") as got:
        assert got.read() == WHOLE

    os.mkdir(DIR + "/tree")
    for i in range(3):
        with open(f"{DIR}/tree/{i}", "wb") as out:
            out.truncate(4 << 20)
    with open(f"{DIR}/tree/.env", "w", encoding="ascii") as out:
        out.write("SECRET=1\n")
    rc, text = on_terminal("run", "--dir", DIR + "/tree", "--", "true")
    check("copying in", rc, text, r"copying in: [0-9.]+ [KM]iB of at most 12\.0 MiB, [0-9.]+ [KM]iB/s, [0-9.]+s left")
    assert rc == 1 and "lych: left out: .env" in text and "that is enough" in text, (rc, text)
