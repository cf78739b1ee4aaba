# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's socket once more, in another directory: what goes through is held back as a test says, so
that an order of events that comes once in thousands comes each time.

    proxy = Proxy(DIR + "/pg/sock", DIR + "/proxy")
    with proxy.holding("show"):       # answers of the prepared statement of this name stay here
        proxy.wait_held("show")       # one has come: what it tells is decided, and older than what follows
"""
import contextlib
import os
import socket
import threading
import time

NAME = "/.s.PGSQL.5432"


class Proxy:
    def __init__(self, server_dir, own_dir):
        self.server = server_dir + NAME
        self.cond = threading.Condition()
        self.held = {}  # statement: answers that wait
        os.makedirs(own_dir, 0o700, exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(own_dir + NAME)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.server)
            except OSError:
                client.close()
                continue
            Connection(self, client, server)

    @contextlib.contextmanager
    def holding(self, statement):
        with self.cond:
            self.held.setdefault(statement, 0)
        try:
            yield
        finally:
            with self.cond:
                self.held.pop(statement, None)
                self.cond.notify_all()

    def wait_held(self, statement, seconds=10):
        end = time.monotonic() + seconds
        with self.cond:
            while not self.held.get(statement):
                assert self.cond.wait(end - time.monotonic()), f"no answer of {statement} came"

    def pass_on(self, statement):
        """Called with an answer in hand: returns when it may go on."""
        with self.cond:
            if statement not in self.held:
                return
            self.held[statement] += 1
            self.cond.notify_all()
            while statement in self.held:
                self.cond.wait()


class Connection:
    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.statement = ""  # that was sent last
        threading.Thread(target=self.pump, args=(self.to_server, client, server), daemon=True).start()
        threading.Thread(target=self.pump, args=(self.to_client, server, client), daemon=True).start()

    @staticmethod
    def pump(fn, a, b):
        try:
            fn(a, b)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def to_server(self, client, server):
        data, started = b"", False
        while True:
            more = client.recv(65536)
            if not more:
                return
            data += more
            server_bytes = b""
            while len(data) >= (5 if started else 4):
                at = 1 if started else 0
                size = at + int.from_bytes(data[at:at + 4], "big")
                if len(data) < size:
                    break
                if started and data[:1] == b"B":  # Bind: portal, statement
                    self.statement = data[5:].split(b"\0")[1].decode()
                elif started and data[:1] in (b"P", b"Q"):
                    self.statement = ""
                started = True
                server_bytes += data[:size]
                data = data[size:]
            if server_bytes:
                server.sendall(server_bytes)

    def to_client(self, server, client):
        while True:
            data = server.recv(65536)
            if not data:
                return
            # NOTIFY and the like come without a question: they are not held
            if data[:1] not in (b"A", b"N", b"S"):
                self.proxy.pass_on(self.statement)
            client.sendall(data)
