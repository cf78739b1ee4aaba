# SPDX-License-Identifier: Apache-2.0
"""What test_doors.sh says on the work socket by itself: doors.py VERB DIR [...]

refused   what a tomb must not say, one line each: STATUS CODE what
hints     a question is held until a job changes (a line on stdin after "held")
claim BOOT ID / lost BOOT ID
          claim; with `lost` the answer is not read: "sent", then wait for stdin to end
ack JOB EPOCH TOKEN / ack-lost
fake PROTOCOL|404
          a vessel that answers hello with another version, or does not know it
"""
import json
import os
import socket
import sys

verb, base, args = sys.argv[1], sys.argv[2], sys.argv[3:]
path = base + "/work/vessel.sock"


def bearer_of(tomb):
    path = f"{base}/pg/secrets/lychgate_work_of_{tomb}"
    return open(path, encoding="ascii").read().strip() if os.path.exists(path) else "x" * 64



def send(method, target, body=b"", headers=None, tomb="tomb_1", version="1", bearer=None):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(40)
    s.connect(path)
    lines = [f"{method} /work/v1/{target} HTTP/1.1", "Host: lychgate", "Connection: close",
             f"Authorization: Bearer {bearer or bearer_of(tomb or 'tomb_1')}", f"Lychgate-Version: {version}"]
    if tomb is not None:
        lines.append(f"Lychgate-Tomb: {tomb}")
    lines += [f"{k}: {v}" for k, v in (headers or {}).items()]
    if method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    s.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
    return s


def answer(s):
    data = b""
    while chunk := s.recv(65536):
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body or b"{}")


def ask(*a, **k):
    return answer(send(*a, **k))


def claim_body(boot, claim, **more):
    return json.dumps({"queue": "main", "n": 1, "ttl": 30, "boot": boot, "claim": claim, **more}).encode()


def lease(job, epoch, token):
    return {"Lychgate-Job": job, "Lychgate-Epoch": epoch, "Lychgate-Token": token}


U = "00000000-0000-4000-8000-00000000000%d"
if verb == "refused":
    key = lease("1", "1", U % 1)
    hello = json.dumps({"door": "vessel", "release": "1", "boot": U % 1, "slots": 1}).encode()
    table = [
        ("no name", ("POST", "claim", claim_body(U % 1, U % 2)), {"tomb": None}),
        ("a name that is none", ("POST", "claim", claim_body(U % 1, U % 2)), {"tomb": "Tomb;1"}),
        ("a name that is nobody's", ("POST", "claim", claim_body(U % 1, U % 2)), {"tomb": "tomb_9"}),
        ("a tomb that does not claim through the vessel", ("POST", "claim", claim_body(U % 1, U % 2)), {"tomb": "tomb_3"}),
        ("the vessel's own role", ("POST", "claim", claim_body(U % 1, U % 2)), {"tomb": "lych_vessel"}),
        ("the superuser's role", ("POST", "claim", claim_body(U % 1, U % 2)), {"tomb": "lych_migrate"}),
        ("a wrong bearer", ("POST", "claim", claim_body(U % 1, U % 2)), {"bearer": "x" * 48}),
        ("another tomb's bearer", ("POST", "claim", claim_body(U % 1, U % 2)), {"bearer": bearer_of("tomb_2")}),
        ("another tomb's name", ("POST", "claim", claim_body(U % 1, U % 2)), {"tomb": "tomb_2", "bearer": bearer_of("tomb_1")}),
        ("the master itself", ("POST", "claim", claim_body(U % 1, U % 2)),
         {"bearer": open(base + "/pg/secrets/lychgate_work", encoding="ascii").read().strip()}),
        ("an older version", ("POST", "claim", claim_body(U % 1, U % 2)), {"version": "0"}),
        ("a newer version", ("POST", "claim", claim_body(U % 1, U % 2)), {"version": "2"}),
        ("hello, not registered", ("POST", "hello", hello), {"tomb": "tomb_3"}),
        ("hello without a name", ("POST", "hello", hello), {"tomb": None}),
        ("hello by a third door", ("POST", "hello", hello.replace(b"vessel", b"window")), {}),
        ("fewer than none", ("POST", "claim", claim_body(U % 1, U % 2, n=-1)), {}),
        ("too many jobs", ("POST", "claim", claim_body(U % 1, U % 2, n=9)), {}),
        ("a lease for ever", ("POST", "claim", claim_body(U % 1, U % 2, ttl=100000)), {}),
        ("an unknown key", ("POST", "claim", claim_body(U % 1, U % 2, role="tomb_2")), {}),
        ("SQL for a boot", ("POST", "claim", claim_body("x'; DROP TABLE", U % 2)), {}),
        ("a queue not granted", ("POST", "claim", claim_body(U % 1, U % 2, queue="other")), {}),
        ("no lease", ("POST", "extend", json.dumps({"boot": U % 1, "ttl": 30, "leases": []}).encode()), {}),
        ("65 leases", ("POST", "extend", json.dumps({"boot": U % 1, "ttl": 30, "leases": [
            {"job": 1, "epoch": 1, "token": U % 1}] * 65}).encode()), {}),
        ("ack without a lease", ("POST", "ack", b"{}"), {}),
        ("an unknown class", ("POST", "fail?retry=true&class=bored", b""), {"headers": key}),
        ("fail without retry", ("POST", "fail?class=crash", b""), {"headers": key}),
        ("neither dead nor alive", ("POST", "release?died=maybe", b""), {"headers": key}),
        ("a body on release", ("POST", "release", b"x"), {"headers": key}),
        ("a query on ack", ("POST", "ack?x=1", b"{}"), {"headers": key}),
    ]
    for what, a, k in table:
        status, body = ask(*a, **k)
        print(status, body.get("error_code"), what, "|", body.get("detail"))
elif verb == "hints":
    first = ask("GET", "hints?after=0")[1]["seq"]
    s = send("GET", f"hints?after={first}")
    s.settimeout(1)
    try:
        s.recv(1, socket.MSG_PEEK)
        sys.exit("answered before anything happened")
    except TimeoutError:
        print("held", flush=True)
    sys.stdin.readline()
    s.settimeout(10)
    print(answer(s)[1]["seq"] != first)
elif verb in ("claim", "lost"):
    s = send("POST", "claim", claim_body(args[0], args[1]))
    if verb == "lost":
        print("sent", flush=True)
        sys.stdin.read()
    else:
        for j in answer(s)[1]["jobs"]:
            print(j["job"], j["epoch"], j["token"])
elif verb in ("ack", "ack-lost"):
    s = send("POST", "ack", b'{"v":1}', lease(*args[:3]), tomb=args[3] if len(args) > 3 else "tomb_1")
    if verb == "ack-lost":
        print("sent", flush=True)
        sys.stdin.read()
    else:
        status, body = answer(s)
        print(status, body.get("answer") or body.get("error_code"))
elif verb == "fake":
    if os.path.exists(path):
        os.unlink(path)
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen()
    print("listening", flush=True)
    if args[0] == "404":
        body, status = b'{"error_code":"LYCH-HTTP-002","title":"No such route"}', "404 Not Found"
    else:
        body, status = json.dumps({"protocol": int(args[0]), "release": "9.9"}).encode(), "200 OK"
    while True:
        c, _ = s.accept()
        c.recv(65536)
        c.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        c.close()
