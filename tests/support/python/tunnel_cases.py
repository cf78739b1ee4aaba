# SPDX-License-Identifier: Apache-2.0
"""The cases against a job's HTTPS proxy: what a hostile job does to it, what it is told, and what the host that is named gets of it.

    tunnel_cases.py        docs/TUNNEL_CASES.md (`make docs`)
    tunnel_cases.py run    inside a job: a line for each, "case NUMBER WHAT WAS TOLD"

Each has a path of its own, so that whoever watches the host knows whose a request was. After each the job asks its broker for
/step/NUMBER, which has to be answered. Judged by judge(), outside."""
import re
import select
import sys
import threading
import time
import urllib.request
from collections import namedtuple

import tunnel_client as t
from tunnel_client import HOST, get, inside, post
from tunnel_layers import LAYERS, SLOW

# want: a pattern of what is told. host: the requests that it gets, "METHOD PATH" each, with {} for the case's own path.
Case = namedtuple("Case", "number part tried want host do")
BAD, NO_HOST, REFUSED = "400 LYCH-HTTP-001", "403 LYCH-TUNNEL-001", r"[45]\d\d LYCH-[A-Z]+-\d+"
PARTS = {"connect": "CONNECT", "tls": "The handshake, and the records", "inside": "Inside"}
WORDS = {REFUSED: "refused: 4xx or 501 with a code", BAD: BAD, NO_HOST: NO_HOST}

# ---- CONNECT ----

TARGETS = ["10.0.0.1:443", "203.0.113.7:443", "[::1]:443", "::1:443", "[2606:4700:aa::1]:443", "2130706433:443", "0x7f000001:443",
           "0177.0.0.1:443", "127.1:443", "127.0.0.1:8788", HOST, HOST + ":", HOST + ":0", HOST + ":65536", HOST + ":99999", HOST + ":0443",
           HOST + ":+443", HOST + ":443:443", HOST + ".:443", "Api.allowed.example:443", "*.allowed.example:443", "api..example:443",
           "-api.example:443", "api_x.example:443", "api%2eallowed.example:443", f"{HOST},other.example:443", ":443", "xn--a.example:443"]
OK = f"CONNECT {HOST}:443 HTTP/1.1\r\n"
OWN = f"Host: {HOST}:443\r\n"
# what is tried, the bytes
LINES = [
    ("a user name: `CONNECT a@HOST:443`", f"CONNECT a@{HOST}:443 HTTP/1.1\r\n\r\n"),
    ("`CONNECT https://HOST:443`", f"CONNECT https://{HOST}:443 HTTP/1.1\r\n{OWN}\r\n"),
    ("`CONNECT HOST:443/path`", f"CONNECT {HOST}:443/path HTTP/1.1\r\n{OWN}\r\n"),
    ("`CONNECT HOST:443?query`", f"CONNECT {HOST}:443?x HTTP/1.1\r\n{OWN}\r\n"),
    ("two blanks before the host", f"CONNECT  {HOST}:443 HTTP/1.1\r\n{OWN}\r\n"),
    ("two blanks behind it", f"CONNECT {HOST}:443  HTTP/1.1\r\n{OWN}\r\n"),
    ("a tab in the place of a blank", f"CONNECT\t{HOST}:443 HTTP/1.1\r\n{OWN}\r\n"),
    ("lines that end in LF alone", f"CONNECT {HOST}:443 HTTP/1.1\n{OWN.strip()}\n\n"),
    ("a CR in a line", f"CONNECT {HOST}:443 HTTP/1.1\r\nX: a\rHost: b\r\n\r\n"),
    ("an empty line before it", "\r\n" + OK + OWN + "\r\n"),
    ("a folded line", OK + OWN + "X: a\r\n b\r\n\r\n"),
    ("a NUL", f"CONNECT {HOST}\0.other.example:443 HTTP/1.1\r\n\r\n"),
    ("letters beyond ASCII", f"CONNECT \xe4pi.example:443 HTTP/1.1\r\n\r\n"),
    ("another `Host`", OK + "Host: other.example:443\r\n\r\n"),
    ("two `Host`s", OK + OWN + OWN + "\r\n"),
    ("a body, with its length", OK + OWN + "Content-Length: 5\r\n\r\nhello"),
    ("a body in chunks", OK + OWN + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("bytes behind it, before the answer", OK + OWN + "\r\n\x16\x03\x01\x00\x05"),
    ("a second CONNECT behind it", (OK + OWN + "\r\n") * 2),
    ("`Upgrade`", OK + OWN + "Upgrade: h2c\r\n\r\n"),
    ("`Expect`", OK + OWN + "Expect: 100-continue\r\n\r\n"),
    ("HTTP/2.0", OK.replace("1.1", "2.0") + OWN + "\r\n"),
    ("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("`connect`", OK.lower().replace("http", "HTTP") + OWN + "\r\n"),
    ("a head of 9 KiB", OK + OWN + "X: " + "x" * 9216 + "\r\n\r\n"),
    ("a head of 80 fields", OK + OWN + "".join(f"X-{i}: a\r\n" for i in range(80)) + "\r\n"),
    ("a proxy's request without a tunnel: `GET http://HOST/`", f"GET http://{HOST}/ HTTP/1.1\r\nHost: {HOST}\r\n\r\n"),
    ("`OPTIONS *`", "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:8787\r\n\r\n"),
]


def by_the_broker(data):
    """What is said by CONNECT to the broker itself, which is a way for clients that take no notice of NO_PROXY."""
    with t.open_tunnel("127.0.0.1:8787") as s:
        t.push(s, data.encode())
        return t.told(t.rest(s))


def connect_rows():
    for target in TARGETS:
        yield f"`CONNECT {target}`", NO_HOST, (), lambda at, x=target: t.connect(x)
    yield "a label of 64 letters", NO_HOST, (), lambda at: t.connect("a" * 64 + ".example:443")
    yield "a name of 254 bytes", NO_HOST, (), lambda at: t.connect("a." * 124 + "toplev:443")
    for tried, data in LINES:
        yield tried, BAD, (), lambda at, x=data: t.raw(x)
    yield "HTTP/1.0", "200", (), lambda at: t.connect("", OWN, line=OK.strip().replace("1.1", "1.0"))
    yield "no `Host`", "200", (), lambda at: t.connect(f"{HOST}:443", more="")
    yield "`Proxy-Authorization`, with a password", "200", (), lambda at: t.connect(f"{HOST}:443", more="Proxy-Authorization: Basic YTpi\r\n")
    yield "`CONNECT 127.0.0.1:8787`, the broker itself, and in it CONNECT to a host", BAD, (), lambda at: by_the_broker(OK + OWN + "\r\n")
    yield ("the same, and in it a request without the job's key", "401 LYCH-BROKER-020", (),
           lambda at: by_the_broker("POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:8787\r\nContent-Length: 2\r\n\r\n{}"))
    yield "`CONNECT HOST:22`, and then SSH", r"closed|alert \d+", (), lambda at: t.records(b"SSH-2.0-x\r\n", s=t.open_tunnel(f"{HOST}:22"))
    yield "`CONNECT HOST:80`, and then HTTP", r"closed|alert \d+", (), lambda at: t.records(get(at).encode(), s=t.open_tunnel(f"{HOST}:80"))


# ---- inside ----

MINE = f"Host: {HOST}\r\n"
SMUGGLED = "GET {}/smuggled HTTP/1.1\r\n" + MINE + "\r\n"  # {}: the case's own path


def with_fields(more, body="hello"):
    return "POST {}/x HTTP/1.1\r\n" + MINE + more + "\r\n" + body + SMUGGLED


def with_host(line):
    return "GET {}/x HTTP/1.1\r\n" + line + "\r\n"


def chunks(body):
    return with_fields("Transfer-Encoding: chunked\r\n", body)


def field(line):
    return "GET {}/x HTTP/1.1\r\n" + MINE + line + "\r\n\r\n"


LENGTHS = ["+5", "-1", "0x5", "5, 5", "5 5", "5;", "", "9223372036854775808", "18446744073709551621", "\xb2"]
ENCODINGS = ["xchunked", "chunked, chunked", "gzip, chunked", "identity", "chunked;q=1", "\x0bchunked", "chunked\0", "[]"]
HOSTS = ["other.example", "a@" + HOST, HOST + ":8443", HOST + ":0443", HOST + ".", HOST + ", other.example", "https://" + HOST, "127.0.0.1:8787", "",
         "[::1]"]
REFUSALS = [
    ("`Content-Length` and `Transfer-Encoding`", with_fields("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
    ("the same in the other order", with_fields("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")),
    ("two `Content-Length`s that differ", with_fields("Content-Length: 5\r\nContent-Length: 50\r\n")),
    ("two `Content-Length`s that do not", with_fields("Content-Length: 5\r\nContent-Length: 5\r\n")),
    *((f"`Content-Length: {x}`".replace("\xb2", "²"), with_fields(f"Content-Length: {x}\r\n")) for x in LENGTHS),
    ("a blank before the colon of `Content-Length`", with_fields("Content-Length : 5\r\n")),
    *((f"`Transfer-Encoding: {x}`".replace("\x0b", "<VT>").replace("\0", "<NUL>"), with_fields(f"Transfer-Encoding: {x}\r\n")) for x in ENCODINGS),
    ("a blank before the colon of `Transfer-Encoding`", with_fields("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")),
    ("`Transfer-Encoding` twice", with_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n")),
    ("a chunk of more than 64 bits", chunks("1000000000000000005\r\nhello\r\n0\r\n\r\n")),
    ("a chunk of -1", chunks("-1\r\nhello\r\n0\r\n\r\n")),
    ("a chunk of 0x5", chunks("0x5\r\nhello\r\n0\r\n\r\n")),
    ("a chunk of +5", chunks("+5\r\nhello\r\n0\r\n\r\n")),
    ("a chunk's size that ends in LF", chunks("5\nhello\r\n0\r\n\r\n")),
    ("a chunk that is longer than it says", chunks("5\r\nhello, all\r\n0\r\n\r\n")),
    ("a chunk with nothing behind it", chunks("5\r\nhello0\r\n\r\n")),
    ("a chunk with an extension", chunks("5;x=\"\r\nhello\r\n0\r\n\r\n")),
    ("a trailer that is a length", chunks("5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n")),
    ("no `Host`", with_host("")),
    ("`Host` twice", with_host(MINE + MINE)),
    ("`Host` twice, and they differ", with_host(MINE + "Host: other.example\r\n")),
    *((f"`Host: {x}`", with_host(f"Host: {x}\r\n")) for x in HOSTS),
    ("an absolute target at another host", "GET https://other.example{}/x HTTP/1.1\r\n" + MINE + "\r\n"),
    ("an absolute target at this host", "GET https://" + HOST + "{}/x HTTP/1.1\r\n" + MINE + "\r\n"),
    ("a target without a slash", "GET x{}/x HTTP/1.1\r\n" + MINE + "\r\n"),
    ("`OPTIONS *`", "OPTIONS * HTTP/1.1\r\n" + MINE + "\r\n"),
    ("a second CONNECT", "CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n"),
    ("CONNECT of a path", "CONNECT {}/x HTTP/1.1\r\n" + MINE + "\r\n"),
    ("HTTP/1.0", "GET {}/x HTTP/1.0\r\n" + MINE + "\r\n"),
    ("HTTP/0.9", "GET {}/x\r\n\r\n"),
    ("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("an empty line before the request", "\r\nGET {}/x HTTP/1.1\r\n" + MINE + "\r\n"),
    ("lines that end in LF alone", "GET {}/x HTTP/1.1\n" + MINE.strip() + "\n\n"),
    ("a field behind a bare CR", field("X: a\rContent-Length: 5")),
    ("a field behind a bare LF", field("X: a\nContent-Length: 5")),
    ("a folded line", field("X: a\r\n b")),
    ("a NUL in a field", field("X: a\0b")),
    ("a control character in a field", field("X: a\x01b")),
    ("a DEL in a field", field("X: a\x7fb")),
    ("a byte beyond ASCII in a field", field("X: \xe4")),
    ("a blank in a field's name", field("X Y: a")),
    ("a field without a name", field(": a")),
    ("a field without a colon", field("X")),
    ("a field twice", field("X: a\r\nx: b")),
    ("a field of 64 KiB", field("X: " + "x" * 65536)),
    ("100,000 fields", field("\r\n".join(f"X-{i}: a" for i in range(100000)))),
    ("65 fields", field("\r\n".join(f"X-{i}: a" for i in range(64)))),
    ("a target of 9 KiB", "GET {}/" + "x" * 9216 + " HTTP/1.1\r\n" + MINE + "\r\n"),
    ("a method of 17 letters", "ABCDEFGHIJKLMNOPQ {}/x HTTP/1.1\r\n" + MINE + "\r\n"),
    ("`TRACE`", "TRACE {}/x HTTP/1.1\r\n" + MINE + "Connection: close\r\n\r\n"),
    ("`get`", "get {}/x HTTP/1.1\r\n" + MINE + "Connection: close\r\n\r\n"),
    ("100 MiB announced", "POST {}/x HTTP/1.1\r\n" + MINE + "Content-Length: 104857600\r\n\r\n"),
    ("`Upgrade: h2c`", field("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk")),
    ("`Upgrade: websocket`", field("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13")),
    ("an `Expect` that is none", field("Expect: 200-maybe")),
]


def half(at):
    """A body that never comes to its end, and that of the connection told as TLS has it."""
    with t.tls() as s:
        s.sendall(post(at + "/x", "hello", length=10).encode())
        try:
            s.unwrap()
        except OSError:
            pass
        return t.told(t.rest(s))


def cut(at):
    """The same, and its end is not told."""
    m = t.Mangled()
    m.send(m.say(post(at + "/x", "hello", length=10)))
    m.s.shutdown(t.socket.SHUT_WR)
    return m.answer()


def gone(at):
    """A reset in the middle of a reply."""
    with t.tls() as s:
        s.sendall(get(at + "/large").encode())
        s.recv(1)
        s.setsockopt(t.socket.SOL_SOCKET, t.socket.SO_LINGER, t.struct.pack("ii", 1, 0))
    return "a reset"


def slowly(at):
    with t.tls() as s:
        s.sendall(get(at + "/large").encode())
        for _ in range(20):
            s.recv(100)
            time.sleep(0.01)
    return "a part"


held = []


def hold(data, answered=False, deaf=False):
    """Left open until the job ends. deaf: with the least room for what comes."""
    s = t.tls()
    if deaf:
        s.setsockopt(t.socket.SOL_SOCKET, t.socket.SO_RCVBUF, 1)
    s.sendall(data.encode())
    if answered:
        select.select([s], [], [], t.WAIT)
    held.append(s)
    return "held"


def hold_half(at):
    """A reply that nobody reads, to who has said that it sends no more."""
    m = t.Mangled()
    m.s.setsockopt(t.socket.SOL_SOCKET, t.socket.SO_RCVBUF, 1)
    m.send(m.say(get(at + "/large")))
    select.select([m.s], [], [], t.WAIT)
    m.s.shutdown(t.socket.SHUT_WR)
    held.append(m)
    return "held"


def again(at):
    """One after the other in one tunnel."""
    with t.tls() as s:
        for n in (1, 2):
            s.sendall(get(f"{at}/{n}", more="Connection: close\r\n" if n == 2 else "").encode())
            got = b""
            while not got.endswith(b"\r\n0\r\n\r\n") and (part := s.recv(65536)):
                got += part
            if t.told(got) != "200":
                return t.told(got)
    return "200, 200"


def inside_rows():
    for tried, data in REFUSALS:
        yield tried, REFUSED, (), lambda at, x=data: inside(x.replace("{}", at))
    yield "CONNECT, name in the handshake and `Host` are three", "alert 112", (), lambda at: t.handshake(t.blind(), name="second.example")
    one = ("GET {}/x",)
    yield "`Host` in capitals", "200", one, lambda at: inside(get(at + "/x", HOST.upper(), "Connection: close\r\n"))
    yield "`Host` with the port", "200", one, lambda at: inside(get(at + "/x", HOST + ":443", "Connection: close\r\n"))
    yield "another host in the path: `//other.example/`", "200", ("GET //other.example{}/x",), \
        lambda at: inside(get(f"//other.example{at}/x", more="Connection: close\r\n"))
    yield "1,000 requests at once", "200", one, lambda at: inside(get(at + "/x") + get(at + "/smuggled") * 999)
    yield "a request behind the length of a body", "200", ("POST {}/x",), lambda at: inside(post(at + "/x", "{}" + get(at + "/smuggled"), length=2))
    yield "a body that is a request", "200", ("POST {}/x",), lambda at: inside(post(at + "/x", get(at + "/smuggled"), more="Connection: close\r\n"))
    yield "a request behind `Connection: close`", "200", one, lambda at: inside(get(at + "/x", more="Connection: close\r\n") + get(at + "/smuggled"))
    yield "two requests, one after the other's answer", "200, 200", ("GET {}/1", "GET {}/2"), again
    yield "half a body, `close_notify`, the end", "closed", (), half
    yield "half a body, the end without `close_notify`", "refused", (), cut
    yield "half a body, and silence", "held", (), lambda at: hold(post(at + "/x", "hello", length=10))
    yield "half a head, and silence", "held", (), lambda at: hold(get(at + "/x")[:-2])
    yield "a reply that is never read", "held", ("GET {}/large",), lambda at: hold(get(at + "/large"), True, True)
    yield "the same, and the sending side is shut", "held", ("GET {}/large",), hold_half
    yield "a reply that is never read, and requests without end", "held", ("GET {}/large",), \
        lambda at: hold(get(at + "/large") + get(at + "/smuggled") * 1000, True, True)
    yield "a reply that is read byte by byte, and left", "a part", ("GET {}/large",), slowly
    yield "a reset in the middle of a reply", "a reset", ("GET {}/large",), gone


# ---- all ----

def cases():
    rows = [("connect", *r) for r in connect_rows()] + [("tls", *r) for r in LAYERS] + [("inside", *r) for r in inside_rows()]
    return [Case(n, *r) for n, r in enumerate(rows, 1)]


def ask(path):
    with urllib.request.urlopen(f"http://{t.BROKER[0]}:{t.BROKER[1]}/fetch?url=https://{HOST}{path}", timeout=120) as r:
        return r.read()


speaking = threading.Lock()


def tell(case):
    try:
        what = case.do(f"/c{case.number}")
    except Exception as e:  # pylint: disable=broad-except
        what = f"{type(e).__name__}: {e}".replace("\n", " ")
    with speaking:  # a print is two writes
        print(f"case {case.number} {what}", flush=True)


def run():
    all_ = cases()
    threads = [threading.Thread(target=tell, args=(c,)) for c in all_ if c.do in SLOW]
    for thread in threads:
        thread.start()
    for case in all_:
        if case.do not in SLOW:
            tell(case)
            ask(f"/step/{case.number}")
    for thread in threads:
        thread.join()
    ask("/step/end")
    print("the end", flush=True)


def judge(said, sent):
    """said: what the job wrote; sent: "METHOD PATH" of what the host got, in its order. What is wrong, as lines."""
    told = dict(re.findall(r"^case (\d+) (.*)$", said, re.M))
    got, bad = {}, []
    for line in sent:
        number = re.search(r"/c(\d+)/", line)
        got.setdefault(number[1] if number else "0", []).append(line)
    for c in cases():
        n, want = str(c.number), [x.replace("{}", f"/c{c.number}") for x in c.host]
        if not re.fullmatch(c.want, told.get(n, "nothing")):
            bad.append(f"{n}, {c.tried[:80]}: told {told.get(n)!r} instead of {c.want!r}")
        if sorted(got.get(n, [])) != want:
            bad.append(f"{n}, {c.tried[:80]}: the host got {got.get(n, [])} instead of {want}")
    return bad + [f"the host got {x}" for x in got.get("0", [])] + ([] if said.rstrip().endswith("the end") else ["it did not come to its end"])


def page():
    print("# The cases against the proxy\n\nWritten from `tests/support/python/tunnel_cases.py` by `make docs`. A hostile job tries them on its own"
          " HTTPS proxy\n(docs/EGRESS.md), in `tests/integration/broker/test_tunnel_attacks.sh` with a stand-in for the vessel,\nand in"
          " `tests/soak/tunnel_house.sh` with all of Lychgate and a host outside. After each the job's own next\nrequest is answered,"
          " and after every tenth one of another job. HOST is an allowed one. An alert is one of TLS, by its number.")
    part = None
    for c in cases():
        if c.part != part:
            part = c.part
            print(f"\n## {PARTS[part]}\n\n| case | tried | told | the host gets |\n| --- | --- | --- | --- |")
        want = WORDS.get(c.want, c.want).replace(r"alert \d+", "an alert").replace("|", " or ")
        host = ", ".join(f"`{x.replace('{}', '')}`" for x in c.host) or "nothing"
        print(f"| {c.number} | {c.tried.replace(HOST, 'HOST').replace('|', chr(92) + '|')} | {want} | {host} |")


if __name__ == "__main__":
    run() if sys.argv[1:] == ["run"] else page()
