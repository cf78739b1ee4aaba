# SPDX-License-Identifier: Apache-2.0
"""A network of its own for egress tests: two network namespaces and a wire between.

This process is the client's side. The other side, "outside", owns every address there is: a name server that
lies, HTTP(S) servers, and for any other connection a victim that counts it. What crosses the wire, and
what the client says to itself on loopback, is captured. Needs unprivileged user namespaces; nothing leaves
the machine. Run by `unshare -Urnm python3 ...`."""
import contextlib
import ctypes
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

NAME_SERVER = "192.0.2.53"
CLIENT, CLIENT6 = "203.0.114.2", "2606:4700:aa::2"  # public ones, and the client's own
OUTSIDE, OUTSIDE6 = "203.0.114.1", "2606:4700:aa::1"
MARK = {"wire": "192.0.2.99", "lo": "127.0.0.99"}
PORTS = [22, 25, 53, 80, 443, 444, 853, 2375, 5432, 6379, 8080, 8443]
CLONE_NEWNET = 0x40000000


def ip(*args):
    subprocess.run(["ip", *args], check=True)


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.01)


def make_ca(folder, names):
    """A CA, and one certificate for all names; another CA's certificate for evil ones."""
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for who in ("ca", "foreign"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN=lab {who}",
                "-keyout", f"{who}.key", "-out", f"{who}.pem")
        with open(f"{folder}/{who}.ext", "w", encoding="ascii") as f:
            f.write("subjectAltName=" + ",".join(("IP:" if n.replace(".", "").isdigit() else "DNS:") + n for n in names))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN=server {who}",
                "-keyout", f"{who}-server.key", "-out", f"{who}-server.csr")
        openssl("x509", "-req", "-in", f"{who}-server.csr", "-CA", f"{who}.pem", "-CAkey", f"{who}.key", "-CAcreateserial", "-days", "2",
                "-extfile", f"{who}.ext", "-out", f"{who}-server.pem")


# ---- the wire -----------------------------------------------------------------------------

class Capture:
    """What an interface of this namespace sees: each datagram and each SYN as (protocol, source, target, target's port)."""

    def __init__(self, interface):
        self.interface, self.lock, self.seen, self.all = interface, threading.Lock(), [], 0
        self.ports = []  # the source's, of each that was seen
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.htons(3))
        self.socket.bind((interface, 0))
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            packet = self.socket.recv(65536)
            kind, p = struct.unpack(">H", packet[12:14])[0], packet[14:]
            if kind == 0x0800 and len(p) >= 24:
                at, proto = (p[0] & 15) * 4, p[9]
                source, target = socket.inet_ntop(socket.AF_INET, p[12:16]), socket.inet_ntop(socket.AF_INET, p[16:20])
            elif kind == 0x86dd and len(p) >= 44:
                at, proto = 40, p[6]
                source, target = socket.inet_ntop(socket.AF_INET6, p[8:24]), socket.inet_ntop(socket.AF_INET6, p[24:40])
            else:
                continue
            if proto not in (6, 17) or len(p) < at + 14 - 10 * (proto == 17):
                continue
            # Of TCP what begins a connection.
            if proto == 6 and p[at + 13] & 0x12 != 2:
                continue
            sender, port = struct.unpack(">HH", p[at:at + 4])
            with self.lock:
                self.ports.append(sender)
                self.all += target not in MARK.values()
                self.seen.append((proto, source, target, port))

    def take(self, mark):
        """What was seen up to the datagram that send_mark() sent, and not before that was seen."""
        def marked():
            with self.lock:
                return any(p == 17 and t == MARK[self.interface] and port == mark for p, _, t, port in self.seen)
        wait_for(marked)
        with self.lock:
            seen, self.seen, self.ports = self.seen, [], []
        return [x for x in seen if x[2] not in MARK.values()]

    def take_before(self, sender):
        """What was seen before the connection that came from this port of the other side; that one is taken too."""
        def began():
            with self.lock:
                return any(p == sender and x[0] == 6 for p, x in zip(self.ports, self.seen))
        wait_for(began)
        with self.lock:
            at = next(i for i, (p, x) in enumerate(zip(self.ports, self.seen)) if p == sender and x[0] == 6)
            seen, self.seen, self.ports = self.seen[:at], self.seen[at + 1:], self.ports[at + 1:]
        return seen


def send_mark(mark):
    """One datagram over the wire and one over loopback: what was sent before them comes before them."""
    for target in MARK.values():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"mark", (target, mark))


# ---- the name server -----------------------------------------------------------------------

def dns_name(text):
    return b"".join(bytes([len(p)]) + p.encode() for p in text.split(".") if p) + b"\0"


def dns_record(owner, value, ttl=60):
    if value.startswith("="):
        kind, data = 5, dns_name(value[1:])
    elif ":" in value:
        kind, data = 28, socket.inet_pton(socket.AF_INET6, value)
    else:
        kind, data = 1, socket.inet_pton(socket.AF_INET, value)
    return kind, dns_name(owner) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


class NameServer:
    """zone: name -> what to answer: a list of addresses and "=alias", a function (queries so far) -> list, or one of
    "nx", "refused", "silent", "junk", "loop". A name that is none is "nx"; "*.x" is any below x."""

    def __init__(self, zone, address=NAME_SERVER):
        self.zone, self.queries, self.total, self.lock = zone, [], {}, threading.Lock()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((address, 53))
        threading.Thread(target=self.run, daemon=True).start()

    def find(self, name):
        if name in self.zone:
            return self.zone[name]
        for known, value in self.zone.items():
            if known.startswith("*.") and name.endswith(known[1:]):
                return value
        return "nx"

    def answer(self, query):
        at, labels = 12, []
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("ascii", "replace"))
            at += 1 + query[at]
        name, kind = ".".join(labels), struct.unpack(">H", query[at + 1:at + 3])[0]
        with self.lock:
            self.queries.append(name)
            count = self.total[name] = self.total.get(name, 0) + 1
        what = self.find(name)
        if callable(what):
            what = what(count)
        if what == "silent":
            return None
        code, records = 3 if what == "nx" else 5 if what == "refused" else 0, []
        if what == "junk":
            return query[:2] + b"\x81\x80\0\1\0\7\0\0\0\0" + query[12:at + 5] + b"\xc0\xff\xff"
        if what == "loop":
            records = [dns_record(name, "=b." + name)[1], dns_record("b." + name, "=" + name)[1]]
        elif isinstance(what, list):
            owner = name
            for value in what:
                ttl = 0 if value.endswith("!") else 60
                record_kind, data = dns_record(owner, value.rstrip("!"), ttl)
                if record_kind == 5:
                    owner = value[1:]
                if record_kind in (5, kind):
                    records.append(data)
        return query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0) + query[12:at + 5] + b"".join(records)

    def run(self):
        while True:
            query, peer = self.udp.recvfrom(512)
            reply = self.answer(query)
            if reply:
                self.udp.sendto(reply, peer)


# ---- servers and victims ---------------------------------------------------------------------

class Listener:
    """On every address of this namespace and some ports. on(connection, address, port) in a thread of its own; each
    connection is counted under (address, port)."""

    def __init__(self, ports, on, only=None):
        self.count, self.lock = {}, threading.Lock()
        for port in ports:
            for family, any_ in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                s = socket.socket(family, socket.SOCK_STREAM)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                s.bind((any_ if not only else only, port))
                s.listen(64)
                threading.Thread(target=self.run, args=(s, port, on), daemon=True).start()

    def run(self, s, port, on):
        while True:
            c, _ = s.accept()
            address = c.getsockname()[0]
            with self.lock:
                self.count[(address, port)] = self.count.get((address, port), 0) + 1
            threading.Thread(target=self.serve, args=(on, c, address, port), daemon=True).start()

    @staticmethod
    def serve(on, c, address, port):
        with contextlib.suppress(OSError, ssl.SSLError), c:
            c.settimeout(20)
            on(c, address, port)


def read_request(c):
    """(head as text, body) of one HTTP request; None at an early end."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = c.recv(65536)
        if not more:
            return None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    text = head.decode("latin-1")
    length = 0
    for line in text.split("\r\n")[1:]:
        if line.lower().startswith("content-length:"):
            length = int(line.split(":", 1)[1])
    while len(body) < length:
        more = c.recv(65536)
        if not more:
            return None
        body += more
    return text, body


class Outside:
    """The other namespace, as a child: it serves until its stdin ends. Calls go over a socketpair as JSON lines."""

    def __init__(self, serve):
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            code = 1
            try:
                ctypes.CDLL(None).prctl(1, signal.SIGKILL)
                if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) < 0:
                    raise OSError(ctypes.get_errno(), "unshare")
                stream = theirs.makefile("rw")
                stream.write("ready\n")
                stream.flush()
                stream.readline()
                self.addresses()
                serve(stream)
                code = 0
            except BaseException as e:  # pylint: disable=broad-except
                print(f"outside: {e!r}", file=sys.stderr, flush=True)
            os._exit(code)
        theirs.close()
        self.stream = ours.makefile("rw")
        assert self.stream.readline() == "ready\n"
        ip("link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", str(self.pid))
        ip("link", "set", "lo", "up")
        ip("addr", "add", f"{CLIENT}/30", "dev", "wire")
        ip("addr", "add", f"{CLIENT6}/64", "dev", "wire", "nodad")
        ip("link", "set", "wire", "up")
        ip("route", "add", "default", "via", OUTSIDE)
        ip("-6", "route", "add", "default", "via", OUTSIDE6)
        self.ask("go")

    @staticmethod
    def addresses():
        """All addresses of the world are here."""
        ip("link", "set", "lo", "up")
        ip("addr", "add", f"{OUTSIDE}/30", "dev", "wire")
        ip("addr", "add", f"{OUTSIDE6}/64", "dev", "wire", "nodad")
        ip("link", "set", "wire", "up")
        ip("route", "add", "default", "via", CLIENT)
        ip("-6", "route", "add", "default", "via", CLIENT6)
        for net in ("0.0.0.0/1", "128.0.0.0/1"):
            ip("route", "add", "local", net, "dev", "lo")
        ip("route", "add", f"{CLIENT}/32", "dev", "wire", "table", "local")
        for net in ("::/1", "8000::/1"):
            ip("-6", "route", "add", "local", net, "dev", "lo")
        ip("-6", "route", "add", f"{CLIENT6}/128", "dev", "wire", "table", "local")

    def ask(self, *what):
        self.stream.write(json.dumps(what) + "\n")
        self.stream.flush()
        line = self.stream.readline()
        if not line:
            raise RuntimeError("the outside is gone")
        return json.loads(line)

    def end(self):
        self.stream.close()
        os.waitpid(self.pid, 0)
