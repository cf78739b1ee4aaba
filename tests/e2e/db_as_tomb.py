#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run inside the tomb's container, where its secret and PostgreSQL's socket are: logs in as the tomb
does and tries what its role may not; then tries to be another role. A client of its own, of the
standard library, since the container has none. Exit 1: something went through, or nothing works."""
import base64
import hashlib
import hmac
import os
import socket
import struct
import sys

SOCKET = "/run/lychgate/pg/.s.PGSQL.5432"
with open("/run/secrets/lychgate_db_of_tomb_1", encoding="ascii") as f:
    PASSWORD = f.read().strip().encode()


class Refused(Exception):
    pass


class Session:
    def __init__(self, user, database):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)
        self.buffer = b""
        words = b"".join(w.encode() + b"\0" for w in ("user", user, "database", database)) + b"\0"
        self.sock.sendall(struct.pack("!II", len(words) + 8, 196608) + words)
        self.log_in()

    def take(self, n):
        while len(self.buffer) < n:
            more = self.sock.recv(65536)
            if not more:
                raise Refused("closed")
            self.buffer += more
        got, self.buffer = self.buffer[:n], self.buffer[n:]
        return got

    def message(self):
        kind, size = struct.unpack("!cI", self.take(5))
        body = self.take(size - 4)
        if kind == b"E":
            fields = {f[:1]: f[1:].decode() for f in body.split(b"\0") if f}
            raise Refused(fields[b"C"])
        return kind, body

    def answer(self, body):
        self.sock.sendall(b"p" + struct.pack("!I", len(body) + 4) + body)

    def log_in(self):  # SCRAM-SHA-256, RFC 5802 and 7677
        nonce = base64.b64encode(os.urandom(18)).decode()
        first = f"n=,r={nonce}"
        while True:
            kind, body = self.message()
            if kind == b"Z":
                return
            if kind != b"R":
                continue
            code = struct.unpack("!I", body[:4])[0]
            if code == 10:
                hello = ("n,," + first).encode()
                self.answer(b"SCRAM-SHA-256\0" + struct.pack("!I", len(hello)) + hello)
            elif code == 11:
                server = body[4:].decode()
                part = dict(p.split("=", 1) for p in server.split(","))
                salted = hashlib.pbkdf2_hmac("sha256", PASSWORD, base64.b64decode(part["s"]), int(part["i"]))
                key = hmac.digest(salted, b"Client Key", "sha256")
                last = "c=biws,r=" + part["r"]
                signed = hmac.digest(hashlib.sha256(key).digest(), f"{first},{server},{last}".encode(), "sha256")
                proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signed))).decode()
                self.answer(f"{last},p={proof}".encode())

    def query(self, sql):
        text = sql.encode() + b"\0"
        self.sock.sendall(b"Q" + struct.pack("!I", len(text) + 4) + text)
        rows, refused = [], None
        while True:
            try:
                kind, body = self.message()
            except Refused as e:
                refused = e
                if str(e) == "closed":
                    raise
                continue
            if kind == b"D":
                rows.append(body[6:].decode("utf-8", "replace"))
            if kind == b"Z":
                if refused:
                    raise refused
                return rows


FORBIDDEN = [
    "SELECT * FROM lych.job", "UPDATE lych.lease SET epoch = 1", "DELETE FROM lych.audit_outbox",
    "INSERT INTO lych.schema_version VALUES (99, 'x', 'x')", "SELECT vessel_api.enqueue('main', 'r', '', 1, 1, 1)",
    "SELECT * FROM vessel_api.show(1)", "SELECT lych.set_login('tomb_1', 'x')", "SELECT * FROM watch_api.sweep()",
    "CREATE TABLE public.mine ()", "CREATE TEMP TABLE mine ()", "CREATE SCHEMA mine", "CREATE ROLE mine",
    "ALTER ROLE tomb_1 SUPERUSER", "SET ROLE lych_owner", "SET ROLE lych_migrate", "GRANT lych_owner TO tomb_1",
    "SELECT pg_read_file('/run/secrets/lychgate_db_migrate')", "COPY (SELECT 1) TO PROGRAM 'id'",
    "COPY (SELECT 1) TO '/var/lib/lychgate/phylactery/mine'", "SELECT lo_import('/etc/passwd')",
    "SELECT rolpassword FROM pg_authid", "ALTER SYSTEM SET listen_addresses = '*'", "SELECT pg_reload_conf()",
    "DROP EXTENSION plpgsql CASCADE", "DROP SCHEMA lych CASCADE",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'lych_vessel'",
]


def main():
    bad = 0
    own = Session("tomb_1", "lychgate")
    if not own.query("SELECT session_user")[0].endswith("tomb_1"):
        sys.exit("the tomb's own login does not work")
    for sql in FORBIDDEN:
        try:
            answer = f"WENT THROUGH {own.query(sql)}"
            bad += 1
        except Refused as e:
            # insufficient privilege, or what it may not see does not exist for it
            answer = f"refused {e}"
            if str(e) not in ("42501", "42883", "42P01"):
                answer, bad = f"UNCLEAR {e}", bad + 1
        print(f"  {answer:<16} {sql}")
    for user, database in [("lych_migrate", "lychgate"), ("lych_vessel", "lychgate"), ("lych_watchdog", "lychgate"),
                           ("tomb_1", "postgres"), ("tomb_1", "template1"), ("postgres", "postgres")]:
        try:
            Session(user, database)
            answer = "WENT THROUGH"
            bad += 1
        except Refused as e:
            answer = f"refused {e}"
        print(f"  {answer:<16} log in as {user} to {database}")
    print(f"NOTE {len(FORBIDDEN) + 6} acts in the database as the tomb, {bad} not refused")
    sys.exit(bool(bad))


main()
