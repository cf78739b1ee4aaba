# SPDX-License-Identifier: Apache-2.0
"""Of the cases against a job's HTTPS proxy (tunnel_cases.py) those below HTTP: the handshake, and the records."""
import os
import ssl
import subprocess
import time

import tunnel_client as t
from tunnel_client import ALERTS, CIPHER, DATA, HANDSHAKE, HEARTBEAT, HOST, Mangled, alpn, extension, get, handshake, hello, record, records, sni

END = r"closed|alert \d+"
DISBELIEVED = "the client does not believe it"
H = HOST.encode()


def with_hello(**how):
    return lambda at: records(record(HANDSHAKE, hello(**how), 0x0301))


def with_records(data):
    return lambda at: records(data)


def old(version):
    """By hand, in records of that version: no library here speaks it any more."""
    return lambda at: records(record(HANDSHAKE, hello(version=version, versions=b"", ciphers=bytes.fromhex("c009c00a002f")), version))


# ---- what the library's own client does ----

def offers(*protocols):
    ctx = t.believe()
    ctx.set_alpn_protocols(list(protocols))
    return ctx


def chosen(at):
    with t.tls(offers("h2", "http/1.1")) as s:
        return f"{s.selected_alpn_protocol()}"


def resumed(version):
    def go(at):
        ctx = t.believe()
        ctx.minimum_version = ctx.maximum_version = version
        with t.tls(ctx) as first:
            first.sendall(get("/", "none").encode())  # refused; what comes with the answer has come then
            t.rest(first)
            session = first.session
        with t.tls(ctx, session=session) as second:
            return "resumed" if second.session_reused or session.has_ticket else "a new handshake"
    return go


def renegotiated(at):
    code, text = t.s_client("-tls1_2", say="R\n")
    return "refused" if "RENEGOTIATING" in text and "no renegotiation" in text.lower() and code else f"{code} {text[-300:]}"


def with_certificate(at):
    key, cert = "client.key", "client.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=a client",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    ctx = t.believe()
    ctx.load_cert_chain(cert, key)
    return t.inside(get(at + "/x", more="Connection: close\r\n"), ctx=ctx)


def foreign(name):
    return lambda at: handshake(t.believe(name))


# ---- records on their way ----

def in_pieces(data):
    """A plain handshake record as records of one byte each; what is encrypted stays as it is."""
    if data[0] != HANDSHAKE:
        return data
    n = int.from_bytes(data[3:5], "big")
    return b"".join(record(HANDSHAKE, data[i:i + 1], 0x0301) for i in range(5, 5 + n)) + data[5 + n:]


def pieces(at):
    m = Mangled(in_pieces)
    m.send(m.say(get(at + "/x", more="Connection: close\r\n")))
    return m.answer()


def changed(at):
    m = Mangled()
    m.send(m.say(get(at + "/x")[:-2]))
    last = bytearray(m.say("\r\n"))
    last[-1] ^= 1
    m.send(bytes(last))
    return m.answer()


def twice(at):
    m = Mangled()
    m.send(m.say(get(at + "/x")[:-2]))
    end = m.say("X: a\r\n")
    m.send(end + end + m.say("\r\n"))
    return m.answer()


def moved(at):
    """What was said in one tunnel, in another."""
    one, two = Mangled(), Mangled()
    two.send(one.say(get(at + "/x")))
    one.s.close()
    return two.answer()


def left_out(at):
    m = Mangled()
    m.send(m.say(get(at + "/x")[:-2]))
    m.say("X: a\r\n")
    m.send(m.say("\r\n"))
    return m.answer()


def early(at):
    """Data with the hello, by a ticket that nobody gave."""
    ticket = t.long_(t.long_(os.urandom(32)) + b"\0\0\0\1") + t.long_(t.long_(os.urandom(32), 1))
    data = hello(more=extension(42, b"") + extension(45, b"\1\1"), last=extension(41, ticket))
    return records(record(HANDSHAKE, data, 0x0301) + record(DATA, get(at + "/early").encode()))


# ---- what takes the ten seconds of a handshake ----

def silent(data):
    return lambda at: records(data(), stay=True)


def one_by_one(at):
    """A byte each half a second: its time does not begin anew."""
    data, began = record(HANDSHAKE, hello(), 0x0301), time.monotonic()
    with t.open_tunnel() as s:
        s.settimeout(0.5)
        for i in range(120):
            t.push(s, data[i:i + 1])
            try:
                if not s.recv(1):
                    return "closed"
            except TimeoutError:
                pass
            except OSError:
                return "closed"
    return f"open after {time.monotonic() - began:.0f} s"


half_record, no_finish, nothing = silent(lambda: b"\x16\x03\x01"), silent(lambda: record(HANDSHAKE, hello(), 0x0301)), silent(lambda: b"")
SLOW = (half_record, no_finish, nothing, one_by_one)

ONE = ("GET {}/x",)
LAYERS = [
    ("an ordinary hello, written by hand, and the end (so that what follows is refused for what is odd in it)", "handshake", (), with_hello()),
    ("HTTP in the place of a handshake", END, (), lambda at: records(get(at + "/x").encode())),
    ("a hello of SSL 2", END, (), with_records(b"\x80\x2e\x01\x03\x01\x00\x15\0\0\0\x10" + bytes.fromhex("01008003008006004000000a0000050000640000") + b"\0" * 64)),
    ("SSL 3", r"alert \d+", (), old(0x0300)),
    ("TLS 1.0", "alert 70", (), old(0x0301)),
    ("TLS 1.1", "alert 70", (), old(0x0302)),
    ("TLS 1.1 as the only one of a new hello's versions", "alert 70", (), with_hello(versions=b"\x03\x02")),
    ("a version that does not exist", "alert 70", (), with_hello(versions=b"\x03\x09")),
    ("a fallback to TLS 1.2", END, (), with_hello(versions=b"", ciphers=bytes.fromhex("c02b5600"))),
    ("ciphers without secrecy, or without any encryption", END, (), with_hello(versions=b"", ciphers=bytes.fromhex("002f000100000006"))),
    ("no way but compression", END, (), with_hello(versions=b"", methods=b"\1")),
    ("another name", "alert 112", (), lambda at: handshake(t.blind(), name="other.example")),
    ("no name", "alert 112", (), with_hello(names=b"")),
    ("an address as name", "alert 112", (), with_hello(names=sni(b"127.0.0.1"))),
    ("the name's parent", "alert 112", (), with_hello(names=sni(H.split(b".", 1)[1]))),
    ("a name below it", "alert 112", (), with_hello(names=sni(b"x." + H))),
    ("the name with a dot at its end", "alert 112", (), with_hello(names=sni(H + b"."))),
    ("the name, a NUL, and more", END, (), with_hello(names=sni(H + b"\0.other.example"))),
    ("a name of 255 bytes", END, (), with_hello(names=sni(b"a" * 255))),
    ("a name of 5,000 bytes", END, (), with_hello(names=sni(b"a" * 5000))),
    ("two names", END, (), with_hello(names=sni(H, b"other.example"))),
    ("the name twice, as two extensions", END, (), with_hello(names=sni(H) + sni(b"other.example"))),
    ("a list without a name", END, (), with_hello(names=sni())),
    ("a name of an unknown kind", END, (), with_hello(names=sni((1, H)))),
    ("the name in capitals", "handshake", (), with_hello(names=sni(H.upper()))),
    ("ALPN h2 alone", "alert 120", (), with_hello(more=alpn(b"h2"))),
    ("ALPN h2 and http/1.1", r"http/1\.1", (), chosen),
    ("ALPN of a protocol that is none", "alert 120", (), with_hello(more=alpn(b"x"))),
    ("an ALPN list that ends early", END, (), with_hello(more=extension(16, b"\0\x09\x02h2"))),
    ("data with the hello (early data), by a ticket that nobody gave", rf"handshake|{END}", (), early),
    ("a session of TLS 1.2, again", "a new handshake", (), resumed(ssl.TLSVersion.TLSv1_2)),
    ("a session of TLS 1.3, again", "a new handshake", (), resumed(ssl.TLSVersion.TLSv1_3)),
    ("a second handshake inside of the first (TLS 1.2)", "refused", (), renegotiated),
    ("a client's certificate (it is not asked for)", "200", ONE, with_certificate),
    ("the authority of a job that ended", DISBELIEVED, (), foreign("earlier.pem")),
    ("the authority of another job that runs", DISBELIEVED, (), foreign("neighbour.pem")),
    ("a hello in records of one byte", "200", ONE, pieces),
    ("a thousand empty records", END, (), with_records(record(HANDSHAKE, b"") * 1000)),
    ("a record of 64 KiB", END, (), with_records(record(HANDSHAKE, b"\1" * 70000, length=65535))),
    ("a hello of 16 MiB, announced", END, (), with_records(record(HANDSHAKE, b"\1\xff\xff\xff" + b"x" * 100))),
    ("a hello whose lengths lie", END, (), with_records(record(HANDSHAKE, hello()[:-40]))),
    ("ten thousand warnings", END, (), with_records(record(ALERTS, b"\1\x5a") * 10000)),
    ("a heartbeat that asks for more than it has", END, (), with_records(record(HEARTBEAT, b"\1\xff\xff"))),
    ("a record of no known kind", END, (), with_records(record(99, b"x"))),
    ("data before any hello", END, (), with_records(record(DATA, b"GET / HTTP/1.1\r\n\r\n"))),
    ("a change of ciphers before any hello", END, (), with_records(record(CIPHER, b"\1") * 100)),
    ("a record of which a bit was changed", "refused", (), changed),
    ("a record twice", "refused", (), twice),
    ("a record left out", "refused", (), left_out),
    ("a record of another tunnel", "refused", (), moved),
    ("nothing at all", "closed", (), nothing),
    ("half a record, and silence", "closed", (), half_record),
    ("a hello, and silence", "handshake", (), no_finish),
    ("a hello, a byte each half a second", "closed", (), one_by_one),
]
