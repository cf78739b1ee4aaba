# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's protocol by hand: a login on the server's unix socket that can do what libpq never
does, such as stop in the middle of a connection, or send thousands of statements without reading.
It shares no code with the product."""
import base64
import hashlib
import hmac
import os
import select
import socket
import struct

CANCEL, PROTOCOL = 80877102, 196608


class PgError(Exception):
    """What the server refused: its five letters, and its words."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code = code


def connect(directory, timeout=30):
    """A connection on which nothing was said yet."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    s.connect(os.path.join(directory, ".s.PGSQL.5432"))
    return s


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def simple(sql):
    return message(b"Q", (sql if isinstance(sql, bytes) else sql.encode()) + b"\0")


class Pg:
    """One session. close() ends it; so does the server."""

    def __init__(self, directory, user, password, timeout=30, **settings):
        self.s = connect(directory, timeout)
        self.buf = b""
        self.key = None
        words = {"user": user, "database": "lychgate", **settings}
        body = struct.pack("!I", PROTOCOL) + b"".join(
            k.encode() + b"\0" + v.encode() + b"\0" for k, v in words.items()) + b"\0"
        self.s.sendall(struct.pack("!I", len(body) + 4) + body)
        self._log_in(password)

    def _exactly(self, n):
        while len(self.buf) < n:
            more = self.s.recv(max(65536, n - len(self.buf)))
            if not more:
                raise ConnectionError("the server closed the session")
            self.buf += more
        got, self.buf = self.buf[:n], self.buf[n:]
        return got

    def read(self):
        """One message: its kind, its body."""
        kind, length = struct.unpack("!cI", self._exactly(5))
        return kind, self._exactly(length - 4)

    @staticmethod
    def _error(body):
        fields = {f[:1]: f[1:].decode(errors="replace") for f in body.split(b"\0") if f}
        return PgError(fields.get(b"C", "?"), fields.get(b"M", "?"))

    def _log_in(self, password):
        nonce = base64.b64encode(os.urandom(18)).decode()
        first = "n=,r=" + nonce
        proof_for = None
        while True:
            kind, body = self.read()
            if kind == b"E":
                raise self._error(body)
            if kind == b"K":
                self.key = body
            if kind == b"Z":
                return
            if kind != b"R":
                continue
            what = struct.unpack("!I", body[:4])[0]
            if what == 10:  # SASL: the mechanisms
                mine = b"SCRAM-SHA-256\0" + struct.pack("!I", len(first) + 3) + b"n,," + first.encode()
                self.s.sendall(message(b"p", mine))
            elif what == 11:
                proof_for = body[4:].decode()
                self.s.sendall(message(b"p", self._proof(password, first, proof_for)))
            elif what not in (0, 12):
                raise PgError("?", f"authentication {what}")

    @staticmethod
    def _proof(password, first, server):
        said = dict(p.split("=", 1) for p in server.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(said["s"]), int(said["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        last = "c=biws,r=" + said["r"]
        text = f"{first},{server},{last}".encode()
        sign = hmac.digest(hashlib.sha256(key).digest(), text, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, sign))
        return f"{last},p={base64.b64encode(proof).decode()}".encode()

    def send(self, *statements):
        """Without waiting for an answer."""
        self.s.sendall(b"".join(simple(q) for q in statements))

    def answer(self):
        """Of one statement that was sent: its rows as text. Raises PgError."""
        rows, wrong = [], None
        while True:
            kind, body = self.read()
            if kind == b"D":
                n, at, row = struct.unpack("!H", body[:2])[0], 2, []
                for _ in range(n):
                    size = struct.unpack("!i", body[at:at + 4])[0]
                    at += 4
                    row.append(None if size < 0 else body[at:at + size].decode(errors="replace"))
                    at += max(size, 0)
                rows.append(row)
            elif kind == b"E":
                wrong = self._error(body)
            elif kind in b"GHW":  # COPY: nothing comes from us
                if kind != b"H":
                    self.s.sendall(message(b"f", b"no\0"))
            elif kind == b"Z":
                if wrong:
                    raise wrong
                return rows
            if wrong and wrong.code in ("57P01", "57P02", "53300"):
                raise wrong

    def ask(self, sql):
        self.send(sql)
        return self.answer()

    def try_(self, sql):
        """"ok" or the five letters of the refusal; "gone" when the session ended with it."""
        try:
            self.ask(sql)
            return "ok"
        except PgError as e:
            return e.code
        except (ConnectionError, OSError):
            return "gone"

    def close(self):
        try:
            self.s.close()
        except OSError:
            pass


class Logins:
    """Sessions that stay open between statements, in the place of a psql for each: one a role, and one more while
    that is at work. What a statement set or opened is gone before the next one of its session."""

    def __init__(self, cluster):
        self.cluster = cluster  # as tests/support/pg makes it
        self.free = {}

    def _login(self, role):
        whose = role.removeprefix("lych_") if role.startswith("lych_") else "of_" + role
        with open(f"{self.cluster}/secrets/lychgate_db_{whose}", encoding="ascii") as f:
            return Pg(self.cluster + "/sock", role, f.read().strip(), timeout=600)

    def _session(self, role):
        while True:
            try:
                session = self.free.setdefault(role, []).pop()
            except IndexError:
                return self._login(role)
            poll = select.poll()
            poll.register(session.s, select.POLLIN)
            if not poll.poll(0):  # to an idle session the server says nothing, but that it ends
                return session
            session.close()

    def ask(self, sql, role):
        """What psql -At would print. Raises PgError."""
        session = self._session(role)
        try:
            rows = session.ask(sql)
            session.ask("DISCARD ALL")
        except BaseException:
            session.close()
            raise
        self.free[role].append(session)
        return "\n".join("|".join(value or "" for value in row) for row in rows).strip()
