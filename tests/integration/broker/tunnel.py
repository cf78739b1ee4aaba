# SPDX-License-Identifier: Apache-2.0
"""Run by test_tunnel.sh: tunnel.py SOCKET full. A vessel that is none (broker_tomb.py) gives a tomb jobs that
use their broker as HTTPS proxy; judged by what the jobs were told and by the intents that came."""
import asyncio
import base64
import json
import os
import signal
import sys
import time
import uuid

from broker_tomb import Vessel

SOCKET = sys.argv[1]
WORK = os.path.dirname(SOCKET)

# What each job begins with.
COMMON = r"""
import os, socket, ssl, subprocess, sys, time, urllib.error, urllib.request
BROKER = ("127.0.0.1", 8787)
def check(name, ok, got=""):
    print(name, "ok" if ok else "BAD %r" % (got,), flush=True)
def receive(s):
    got = b""
    try:
        while True:
            part = s.recv(65536)
            if not part: break
            got += part
    except OSError:
        pass
    return got
def say(data, wait=20):
    s = socket.create_connection(BROKER, timeout=wait)
    s.sendall(data.encode('latin-1'))
    got = receive(s)
    s.close()
    return got.decode()
def connect(target="pages.example:443", more="", wait=20):
    s = socket.create_connection(BROKER, timeout=wait)
    s.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (target, target, more)).encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = s.recv(1)
        if not part: break
        head += part
    return s, head.decode()
def believe(path=os.environ["SSL_CERT_FILE"]):
    return ssl.create_default_context(cafile=path)
def tunnel(name="pages.example", target=None, ctx=None):
    s, head = connect(target or name + ":443")
    assert " 200 " in head, head
    return (ctx or believe()).wrap_socket(s, server_hostname=name)
def inside(data, **how):
    s = tunnel(**how)
    s.sendall(data.encode())
    got = receive(s)
    s.close()
    return got.decode()
def run(*argv):
    r = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    return r.returncode, r.stdout + r.stderr
"""

REFUSED = COMMON + r"""
for target in ("10.0.0.1:443", "127.0.0.1:8788", "127.0.0.1:443", "[::1]:443", "1.2.3:443", "*.example:443", "pages.example", "pages.example:0",
               "pages.example:65536", "pages.example:0443", "Pages.example:443", "pages.example.:443", "a..example:443"):
    _, head = connect(target)
    got = say("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target))
    check("CONNECT " + target, head.startswith("HTTP/1.1 403 LYCH-TUNNEL-001 " + target) and
          '"LYCH-TUNNEL-001"' in got and got.count(target) >= 2, got)
for name, text in {
        "a path": "CONNECT pages.example:443/x HTTP/1.1\r\nHost: pages.example:443\r\n\r\n",
        "a user": "CONNECT a@pages.example:443 HTTP/1.1\r\nHost: a@pages.example:443\r\n\r\n",
        "another Host": "CONNECT pages.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n",
        "two Hosts": "CONNECT pages.example:443 HTTP/1.1\r\nHost: pages.example:443\r\nHost: pages.example:443\r\n\r\n",
        "a body": "CONNECT pages.example:443 HTTP/1.1\r\nHost: pages.example:443\r\nContent-Length: 5\r\n\r\nhello",
        "chunks": "CONNECT pages.example:443 HTTP/1.1\r\nHost: pages.example:443\r\nTransfer-Encoding: chunked\r\n\r\n",
        "bytes before the answer": "CONNECT pages.example:443 HTTP/1.1\r\nHost: pages.example:443\r\n\r\n\x16\x03\x01",
        "HTTP/2.0": "CONNECT pages.example:443 HTTP/2.0\r\n\r\n",
        "a proxy of http": "GET http://pages.example/ HTTP/1.1\r\nHost: pages.example\r\n\r\n"}.items():
    got = say(text)
    check(name, " 400 " in got and "LYCH-HTTP-001" in got and " 200 " not in got, got)

# a handshake that is none of its own
for name, server in (("another name in the handshake", "other.example"), ("an address in the handshake", "127.0.0.1")):
    ctx = believe()
    ctx.check_hostname = False
    ctx.verify_mode = ssl.CERT_NONE
    try:
        tunnel(server, "pages.example:443", ctx)
        check(name, False)
    except (ssl.SSLError, OSError) as e:
        check(name, True, e)
s, head = connect()
s.sendall(b"GET / HTTP/1.1\r\nHost: pages.example\r\n\r\n")
got = receive(s)
check("no TLS in a tunnel", b"HTTP/" not in got and b"pages" not in got, got)
try:
    tunnel(ctx=ssl.create_default_context(cafile="other.pem"))
    check("another job's authority", False)
except ssl.SSLCertVerificationError as e:
    check("another job's authority", True)

# what is said inside: the framing gate, and the name that CONNECT had
HEAD = "Host: pages.example\r\n"
for name, text in {
        "another Host inside": "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
        "no Host inside": "GET / HTTP/1.1\r\n\r\n",
        "another port inside": "GET / HTTP/1.1\r\nHost: pages.example:8443\r\n\r\n",
        "the broker inside": "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:8787\r\n\r\n",
        "absolute form": "GET https://other.example/ HTTP/1.1\r\n" + HEAD + "\r\n",
        "two lengths": "POST / HTTP/1.1\r\n" + HEAD + "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}GET /smuggled HTTP/1.1\r\n\r\n",
        "length and chunks": "POST / HTTP/1.1\r\n" + HEAD + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "chunks with an extension": "POST / HTTP/1.1\r\n" + HEAD + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n",
        "chunks with a trailer": "POST / HTTP/1.1\r\n" + HEAD + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nHost: other.example\r\n\r\n",
        "chunks, packed": "POST / HTTP/1.1\r\n" + HEAD + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "a chunk of more than a body may be": "POST / HTTP/1.1\r\n" + HEAD + "Transfer-Encoding: chunked\r\n\r\n100001\r\n",
        "a folded line": "GET / HTTP/1.1\r\n" + HEAD + "X: a\r\n b\r\n\r\n",
        "CONNECT inside": "CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n",
        "CONNECT of a path": "CONNECT / HTTP/1.1\r\n" + HEAD + "\r\n",
        "an upgrade": "GET / HTTP/1.1\r\n" + HEAD + "Upgrade: h2c\r\n\r\n"}.items():
    got = inside(text)
    check(name, got.startswith("HTTP/1.1 4") and "LYCH-HTTP-" in got and got.count("HTTP/1.1") == 1, got)
got = inside("GET /one HTTP/1.1\r\n" + HEAD + "\r\nGET /smuggled HTTP/1.1\r\n" + HEAD + "\r\n")
check("pipelining", got.count("HTTP/1.1") == 1 and "/one" in got, got)

# nothing is allowed by itself: the refusal is the vessel's, and names the host
got = inside("GET /secret HTTP/1.1\r\nHost: denied.example\r\nConnection: close\r\n\r\n", name="denied.example")
check("default deny", " 403 " in got and "LYCH-WARD-001" in got and "denied.example:443" in got and "hint" in got, got)
code, got = run("curl", "-sS", "https://denied.example/")
check("curl is told", code == 0 and "LYCH-WARD-001" in got and "denied.example" in got, got)
try:
    urllib.request.urlopen("https://denied.example/", timeout=30)
    check("python is told", False)
except urllib.error.HTTPError as e:
    got = e.read().decode()
    check("python is told", e.code == 403 and "denied.example" in got, got)
try:
    urllib.request.urlopen("https://10.0.0.1/", timeout=30)
    check("python sees why", False)
except urllib.error.URLError as e:
    check("python sees why", "LYCH-TUNNEL-001 10.0.0.1:443" in str(e), e)
"""

MANY = COMMON + r"""
# as many as there may be, and then a thousand more; one that says nothing lives for 30 s
began = time.monotonic()
ctx = believe()
held = [tunnel(ctx=ctx) for _ in range(32)]
told = []
while len(told) < 1000 and time.monotonic() < began + 20:
    s, head = connect()
    s.close()
    told.append(head)
check("each is told that it is one too many", len(told) > 9 and all(x.startswith("HTTP/1.1 429 LYCH-TUNNEL-004") for x in told), (len(told), [x for x in told if " 429 " not in x][:3]))
print("so many:", len(told), flush=True)
for s in held: s.close()
for i in range(200):
    s, head = connect()
    if " 200 " in head: break
    time.sleep(0.1)
s = ctx.wrap_socket(s, server_hostname="pages.example")
s.sendall(b"GET /after HTTP/1.1\r\nHost: pages.example\r\nConnection: close\r\n\r\n")
check("and then it goes on", b"/after" in receive(s))
"""

SERVED = COMMON + r"""
print("authority", open(os.environ["SSL_CERT_FILE"]).read().encode().hex(), flush=True)
for name in ("HTTPS_PROXY", "https_proxy"): check(name, os.environ[name] == "http://127.0.0.1:8787")
for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "PIP_CERT", "NPM_CONFIG_CAFILE"):
    check(name, os.environ[name] == os.environ["SSL_CERT_FILE"])
code, got = run("curl", "-sS", "https://pages.example/a/b?c=%2f&d")
check("curl", code == 0 and got == "GET https://pages.example/a/b?c=%2f&d ", got)
code, got = run("curl", "-sS", "--http1.1", "https://pages.example:8443/", "https://pages.example:8443/again")
check("another port, and one tunnel for two", got == "GET https://pages.example:8443/ GET https://pages.example:8443/again ", got)
code, got = run("curl", "-sS", "-d", "name=value", "-H", "X-Own: 1", "https://pages.example/post")
check("curl posts", got == "POST https://pages.example/post name=value", got)
code, got = run("curl", "-sS", "-I", "https://pages.example/head")
check("curl -I", got.startswith("HTTP/1.1 200") and "GET" not in got, got)
code, got = run("curl", "-sS", "-X", "DELETE", "https://pages.example/")
check("a method is the vessel's to judge", got == "DELETE https://pages.example/ ", got)
open("body", "wb").write(b"0123456789abcdef" * 50000)
for how, argv in (("in chunks, and waits to be told", ("-T", "-")), ("of a known length", ("-T", "body")), ("waits, and posts", ("-H", "Expect: 100-continue", "--data-binary", "@body"))):
    r = subprocess.run(["curl", "-sS", "-v", *argv, "https://pages.example/sent"], stdin=open("body"), capture_output=True, text=True, timeout=60)
    check("curl sends a body " + how, r.stdout.split(" ")[2:] == [open("body").read()] and
          ("Expect" not in r.stderr or "100 Continue" in r.stderr), (r.stdout[:99], r.stderr[-2000:]))
    if argv == ("-T", "-"): check("it was in chunks", "Transfer-Encoding: chunked" in r.stderr and "100 Continue" in r.stderr, r.stderr[-2000:])
for method in ("PUT", "PATCH", "DELETE"):
    code, got = run("curl", "-sS", "-X", method, "-d", "x=y", "https://pages.example/%s" % method)
    check(method, got == "%s https://pages.example/%s x=y" % (method, method), got)
code, got = run("curl", "-sS", "-i", "--suppress-connect-headers", "https://pages.example/status/204", "--next", "-sS", "https://pages.example/next")
head, _, rest = got.partition("\n\n")
check("204 has no body, and its connection goes on", head.startswith("HTTP/1.1 204") and rest == "GET https://pages.example/next ", got)
got = urllib.request.urlopen("https://pages.example/bytes", timeout=30)
check("bytes", got.read() == bytes(range(256)) * 1000 and got.headers["Content-Type"] == "application/x-bytes" and got.headers["ETag"] == '"b"', got.headers)
got = urllib.request.urlopen("https://pages.example/python", timeout=30).read().decode()
check("python", got == "GET https://pages.example/python ", got)
got = urllib.request.urlopen("https://pages.example/large", timeout=60).read()
check("a large answer", len(got) == 3000000, len(got))
got = urllib.request.urlopen("http://127.0.0.1:8787/fetch?url=https://pages.example/plain", timeout=30).read().decode()
check("the broker itself is not asked through it", got == "GET https://pages.example/plain ", got)
for own in ("127.0.0.1:8787", "localhost:8787"):  # for who takes no notice of NO_PROXY
    s, head = connect(own)
    s.sendall(b"GET /fetch?url=https://pages.example/plain HTTP/1.1\r\nHost: " + own.encode() + b"\r\nConnection: close\r\n\r\n")
    got = receive(s).decode()
    check("a way to the broker itself", " 200 " in head and got.startswith("HTTP/1.1 200") and "GET https://pages.example/plain " in got, got)
for asked in ("POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:8787\r\nContent-Length: 2\r\n\r\n{}",
              "CONNECT pages.example:443 HTTP/1.1\r\nHost: pages.example:443\r\n\r\n", "GET /fetch?url=https://pages.example/plain HTTP/1.1\r\nHost: pages.example\r\n\r\n"):
    s, head = connect("127.0.0.1:8787")
    s.sendall(asked.encode())
    got = receive(s).decode()
    check("and nothing more than it is", " 200 " in head and got.startswith("HTTP/1.1 4") and got.count("HTTP/1.1") == 1, got)
many = [connect("127.0.0.1:8787") for _ in range(40)]
opened = sum(" 200 " in head for _, head in many)
check("32 of them", 0 < opened <= 32 and " LYCH-TUNNEL-004 " in many[-1][1], (opened, many[-1][1]))
for s, _ in many: s.close()
ctx = believe()
der = tunnel().getpeercert(True)
check("each host has its own certificate", der != tunnel("other.example").getpeercert(True))
"""

KILLED = COMMON + r"""
check("before", "/before" in inside("GET /before HTTP/1.1\r\nHost: pages.example\r\nConnection: close\r\n\r\n"))
urllib.request.urlopen("http://127.0.0.1:8787/fetch?url=https://pages.example/kill", timeout=60).read()
seen = []
for i in range(100):
    s, head = connect()
    s.close()
    seen.append(head)
    if "LYCH-TUNNEL-003" in head: break
    time.sleep(0.1)
check("a typed refusal", seen[-1].startswith("HTTP/1.1 503 LYCH-TUNNEL-003"), seen)
check("and nothing else", not any(" 200 " in x for x in seen), seen)
check("the rest goes on", b"/plain" in urllib.request.urlopen("http://127.0.0.1:8787/fetch?url=https://pages.example/plain", timeout=30).read())
"""


def tls_processes():
    """Of this tomb: {pid: its parent}, by what the kernel says of them."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                name, _, rest = f.read().rpartition(")")
            with open(f"/proc/{pid}/cmdline") as f:
                line = f.read()
        except OSError:
            continue
        if name.endswith("(lych-tls") and WORK in line:
            found[int(pid)] = int(rest.split()[1])
    return found


def of_jobs():
    all_ = tls_processes()
    return [pid for pid, parent in all_.items() if parent in all_]


class Tunnels(Vessel):
    def __init__(self):
        super().__init__()
        self.fetches = []

    def begin(self, name, script, files=()):
        job, self.next = self.next, self.next + 1
        token = str(uuid.uuid4())
        spec = {"argv": ["/usr/bin/python3", "-c", script], "egress": "brokered", "files": list(files)}
        self.waiting.append({"job": job, "epoch": 1, "token": token, "attempt": 1,
                             "spec": base64.b64encode(json.dumps(spec).encode()).decode()})
        self.ids[job], self.leases[str(job)], self.output[job] = name, token, b""
        self.seq += 1
        self.changed.set()
        return job

    async def fetch(self, intent, job, writer):
        if set(intent) != {"seq", "method", "url", "headers", "body"}:
            raise SystemExit(f"FAIL: intent {intent}")
        self.fetches.append(intent)
        url, body = intent["url"], base64.b64decode(intent["body"])
        if url.startswith("https://denied.example"):
            text = json.dumps({"error_code": "LYCH-WARD-001", "title": "The ward does not allow it",
                               "detail": "not_allowed: no rule allows this host", "hint": "Name it in a rule.",
                               "request_id": "r"}).encode()
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        else:
            if url.endswith("/kill"):
                await self.kill()
            status = int(url.split("/status/")[1]) if "/status/" in url else 200
            kind = b"application/x-bytes\r\nETag: \"b\"" if url.endswith("/bytes") else b"text/plain"
            text = b"x" * 3000000 if url.endswith("/large") else bytes(range(256)) * 1000 if url.endswith("/bytes") else b"" if status != 200 else b"%s %s %s" % (intent["method"].encode(), url.encode(), body)
            writer.write(b"HTTP/1.1 200 OK\r\nLychgate-Upstream-Status: %d\r\nContent-Type: %s\r\n"
                         b"Content-Length: %d\r\n\r\n%s" % (status, kind, len(text), text))
        await writer.drain()
        return True

    async def kill(self):
        pids = of_jobs()
        if len(pids) != 1:
            raise SystemExit(f"FAIL: one job runs, and there are {pids} of {tls_processes()}")
        os.kill(pids[0], signal.SIGKILL)
        until = time.monotonic() + 30
        while pids[0] in tls_processes() and time.monotonic() < until:
            await asyncio.sleep(0.02)

    async def job(self, name, script, files=()):
        said, end = await self.finished(self.begin(name, script, files), 60)
        lines = [x for x in said.splitlines() if not x.startswith("authority ")]
        print(f"--- {name}", *lines, sep="\n", flush=True)
        if end != "/work/v1/ack" or "BAD" in said or not lines:
            raise SystemExit(f"FAIL: {name}: {end}: {said[-3000:]}")
        until = time.monotonic() + 30
        while of_jobs():
            if time.monotonic() > until:
                raise SystemExit(f"FAIL: a TLS process outlived its job: {tls_processes()}")
            await asyncio.sleep(0.05)
        return said


def urls(fetches):
    return [(f["method"], f["url"]) for f in fetches]


async def main():
    v = Tunnels()
    server = await asyncio.start_unix_server(v.serve, SOCKET, limit=1 << 24)
    said = await v.job("served", SERVED)
    authority = bytes.fromhex(next(x for x in said.splitlines() if x.startswith("authority ")).split()[1]).decode()
    assert ("POST", "https://pages.example/post") in urls(v.fetches)
    post = next(f for f in v.fetches if f["url"].endswith("/post"))
    names = {n.lower(): value for n, value in post["headers"]}
    assert names["content-type"] == "application/x-www-form-urlencoded" and names["x-own"] == "1", post
    assert not {"host", "content-length", "proxy-connection"} & set(names), post

    v.fetches.clear()
    await v.job("refused", REFUSED, [{"path": "other.pem", "content": authority}])
    assert urls(v.fetches) == [("GET", "https://pages.example/one"), ("GET", "https://denied.example/secret"),
                               ("GET", "https://denied.example/"), ("GET", "https://denied.example/")], urls(v.fetches)
    v.fetches.clear()
    await v.job("many", MANY)
    assert urls(v.fetches) == [("GET", "https://pages.example/after")], urls(v.fetches)
    await v.job("killed", KILLED)
    server.close()
    print("PASS")


if __name__ == "__main__":
    asyncio.run(main())
