# SPDX-License-Identifier: Apache-2.0
"""Clients of a job's HTTPS proxy that keep to no rule: raw bytes in the place of CONNECT, TLS records written by hand, a TLS client
whose records are changed on their way. Run inside a job, by tunnel_cases.py. Each says what came back as one short text."""
import os
import re
import socket
import ssl
import struct
import subprocess

BROKER = ("127.0.0.1", 8787)
HOST = "api.allowed.example"
WAIT = 60


# ---- HTTP ----

def dial():
    return socket.create_connection(BROKER, timeout=WAIT)


def rest(s):
    """All that comes, until the end or a reset."""
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except OSError:
        pass
    return got


def push(s, data):
    """Who is refused early may find nobody who reads the rest."""
    try:
        s.sendall(data)
    except OSError:
        pass


def told(got):
    """"400 LYCH-HTTP-001" of one answer; "2 answers" of two; "closed" of none."""
    if isinstance(got, bytes):
        got = got.decode("latin-1")
    heads = re.findall(r"HTTP/1\.1 ([2-5][0-9][0-9]) ", got)
    if not heads:
        return "closed" if not got else "no HTTP"
    if len(heads) > 1:
        return f"{len(heads)} answers"
    code = re.search(r"LYCH-[A-Z]+-[0-9]{3}", got)
    return heads[0] + (" " + code[0] if code else "")


def raw(data):
    """Said to the proxy, byte by byte."""
    with dial() as s:
        push(s, data if isinstance(data, bytes) else data.encode("latin-1"))
        return told(rest(s))


def ask_tunnel(line, more="", behind=b""):
    """(socket, status) of a CONNECT."""
    s = dial()
    s.sendall(f"{line}\r\n{more}\r\n".encode("latin-1") + behind)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = s.recv(1)
        if not part:
            break
        head += part
    return s, told(head)


def open_tunnel(target=HOST + ":443"):
    s, status = ask_tunnel(f"CONNECT {target} HTTP/1.1", f"Host: {target}\r\n")
    if status != "200":
        s.close()
        raise ConnectionError(f"CONNECT {target}: {status}")
    return s


def connect(target, more=None, line=None):
    """A CONNECT and nothing else: what it is told."""
    s, status = ask_tunnel(line or f"CONNECT {target} HTTP/1.1", f"Host: {target}\r\n" if more is None else more)
    s.close()
    return status


# ---- TLS as it should be ----

def believe(path=None):
    return ssl.create_default_context(cafile=path or os.environ["SSL_CERT_FILE"])


def blind():
    """Whatever the server shows."""
    ctx = believe()
    ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
    return ctx


def tls(ctx=None, name=HOST, target=HOST + ":443", **more):
    s = open_tunnel(target)
    try:
        return (ctx or believe()).wrap_socket(s, server_hostname=name, **more)
    except OSError:
        s.close()
        raise


def get(path, host=HOST, more=""):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


def post(path, body="", more="", length=None):
    return f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\n{more}Content-Length: {len(body) if length is None else length}\r\n\r\n{body}"


def inside(data, **how):
    """Said within a tunnel of usual making."""
    with tls(**how) as s:
        push(s, data if isinstance(data, bytes) else data.encode("latin-1"))
        return told(rest(s))


ALERT = {"PROTOCOL_VERSION": 70, "UNRECOGNIZED_NAME": 112, "NO_APPLICATION_PROTOCOL": 120}


def handshake(ctx, **how):
    """What becomes of one: "open", or why not."""
    try:
        tls(ctx, **how).close()
        return "open"
    except ssl.SSLCertVerificationError:
        return "the client does not believe it"
    except ssl.SSLError as e:
        return next((f"alert {n}" for word, n in ALERT.items() if word in str(e)), "refused")
    except ConnectionError as e:
        return "refused" if "CONNECT" not in str(e) else str(e)


def s_client(*args, say="", host=HOST):
    """openssl s_client: (exit code, all that it wrote)."""
    argv = ["openssl", "s_client", "-proxy", "%s:%d" % BROKER, "-connect", f"{host}:443", "-servername", host,
            "-CAfile", os.environ["SSL_CERT_FILE"], *args]
    r = subprocess.run(argv, input=say.encode(), capture_output=True, timeout=WAIT, check=False)
    return r.returncode, (r.stdout + r.stderr).decode("latin-1")


# ---- records by hand ----

HANDSHAKE, ALERTS, DATA, CIPHER, HEARTBEAT = 22, 21, 23, 20, 24


def record(kind, data, version=0x0303, length=None):
    return struct.pack(">BHH", kind, version, len(data) if length is None else length) + data


def long_(data, size=2):
    return len(data).to_bytes(size, "big") + data


def extension(number, data):
    return struct.pack(">H", number) + long_(data)


def sni(*names):
    """Each is (type, name), or a name."""
    names = [n if isinstance(n, tuple) else (0, n) for n in names]
    return extension(0, long_(b"".join(bytes([kind]) + long_(n) for kind, n in names)))


def alpn(*names):
    return extension(16, long_(b"".join(long_(n, 1) for n in names)))


EC_CIPHERS = bytes.fromhex("130113021303c02bc02ccca9")
GROUPS = extension(10, long_(bytes.fromhex("001d0017"))) + extension(11, b"\1\0") + extension(13, long_(bytes.fromhex("040308040401")))
NAME = sni(HOST.encode())


def share():
    return extension(51, long_(b"\x00\x1d" + long_(os.urandom(32))))


def hello(names=NAME, more=b"", version=0x0303, versions=b"\x03\x04\x03\x03", ciphers=EC_CIPHERS, session=b"", methods=b"\0", last=b""):
    """A ClientHello that is answered, unless something about it is changed. last: the extension that stands at the end."""
    all_ = names + GROUPS + (extension(43, long_(versions, 1)) + share() if versions else b"") + more + last
    body = struct.pack(">H", version) + os.urandom(32) + long_(session, 1) + long_(ciphers) + long_(methods, 1) + long_(all_)
    return b"\1" + long_(body, 3)


def records(data, stay=False, s=None):
    """Raw bytes in a tunnel: "alert N", "handshake", "closed", or "bytes". stay: the sending side stays open, so that the other side
    has to end it."""
    with s or open_tunnel() as c:
        push(c, data)
        if not stay:
            try:
                c.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        got = rest(c)
    if not got:
        return "closed"
    if b"HTTP" in got:
        return "HTTP"
    return f"alert {got[6]}" if got[0] == ALERTS and len(got) == 7 else "handshake" if got[0] == HANDSHAKE else "bytes"


class Mangled:
    """A TLS client between which and the wire `mangle` stands: bytes that it would send -> what is sent."""

    def __init__(self, mangle=lambda data: data, ctx=None):
        self.s, self.mangle = open_tunnel(), mangle
        self.in_, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = (ctx or believe()).wrap_bio(self.in_, self.out, server_hostname=HOST)
        self.until(self.tls.do_handshake)

    def flush(self):
        if data := self.out.read():
            push(self.s, self.mangle(data))

    def until(self, what):
        while True:
            try:
                done = what()
                self.flush()
                return done
            except ssl.SSLWantReadError:
                self.flush()
                try:
                    part = self.s.recv(65536)
                except OSError:
                    part = b""
                if part:
                    self.in_.write(part)
                else:
                    self.in_.write_eof()

    def say(self, data):
        self.tls.write(data.encode("latin-1"))
        return self.out.read()

    def send(self, data):
        push(self.s, data)

    def answer(self):
        """What is told on it; "refused": an alert, or the end."""
        got = b""
        try:
            while part := self.until(lambda: self.tls.read(65536)):
                got += part
        except ssl.SSLError:
            pass
        self.s.close()
        return told(got) if got else "refused"
