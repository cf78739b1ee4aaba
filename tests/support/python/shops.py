# SPDX-License-Identifier: Apache-2.0
"""shops.py FOLDER COMMAND...: a network of its own (lab.py) with name server and HTTPS servers outside, in which COMMAND runs
as an ordinary user. Run by `unshare -Urnm python3`.

At https://pypi.shop.example, npm., crates. and go. are the packages of registry.py, at private.shop.example/npm npm's for who
has TOKEN (and moved, whose file is at files.); files.shop.example has
/bin/every-byte (their SHA-256 is FOLDER/every-byte.sum), /echo (says how it was asked) and /text. FOLDER/ca.pem is
the authority of them all, FOLDER/asked has a line "HOST METHOD PATH" for each request."""
import hashlib
import http.server
import os
import ssl
import subprocess
import sys
import threading

import lab
import registry

D = sys.argv[1]
ADDRESS = "93.184.216.34"
NAMES = [f"{name}.shop.example" for name in ("files", "pypi", "npm", "crates", "go", "denied", "private")]
TOKEN = "shop-4f7Qz2Lm9XcV"
EVERY_BYTE = bytes(range(256)) * 4000
BELOW = {"pypi": "/pypi", "npm": "/npm", "go": "/go", "crates": ""}  # where in registry.py's tree a shop begins


class Shop(registry.Registry):
    def answer(self, status, kind, body):
        """Its links are to itself, whatever name and port it has in there."""
        host = self.headers["Host"].encode()
        below = b"/npm/" if host.startswith(b"private.") else b"/"
        for own in (b"http://" + host + b"/npm/", b"http://127.0.0.1:443/"):
            body = body.replace(own, b"https://" + host + below)
        if self.command != "HEAD":
            return super().answer(status, kind, body)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        return self.end_headers()

    def note(self, line):  # pylint: disable=arguments-differ
        with open(D + "/asked", "a", encoding="utf-8") as log:
            log.write(f"{self.headers['Host']} {line}{' with a key' if 'Authorization' in self.headers else ''}\n")

    def read(self):
        if "Transfer-Encoding" in self.headers:
            raise OSError("a worker sends no chunks")
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def files(self):
        body = self.read()
        self.note(f"{self.command} {self.path}")
        if self.path == "/bin/every-byte":
            return self.answer(200, "application/x-bytes", EVERY_BYTE)
        if self.path.startswith("/bin/moved"):
            self.send_response(302)
            self.send_header("Location", "/bin/every-byte")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if self.path == "/echo":
            return self.answer(200, "text/plain", f"{self.command} {len(body)} {hashlib.sha256(body).hexdigest()}\n".encode())
        if self.path == "/nothing":
            self.send_response(204)
            return self.end_headers()
        return self.answer(200, "text/plain", b"a text\n")

    def private(self):
        if self.headers.get("Authorization") != "Bearer " + TOKEN:
            self.note(f"{self.command} {self.path}")
            return self.answer(401, "text/plain", b"who are you")
        if self.path != "/npm/moved/-/moved-1.0.0.tgz":
            return super().do_GET()
        self.note(f"{self.command} {self.path}")
        self.send_response(302)
        self.send_header("Location", "https://files.shop.example/bin/every-byte")
        self.send_header("Content-Length", "0")
        return self.end_headers()

    def do_GET(self):
        shop = self.headers["Host"].split(".")[0]
        if shop == "private":
            return self.private()
        if shop not in BELOW:
            return self.files()
        if not self.path.startswith("/dl/") and not (shop == "pypi" and self.path.startswith("/files/")):
            self.path = (BELOW[shop] or "/crates") + self.path
        return super().do_GET()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def server_activate(self):
        super().server_activate()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(f"{D}/ca-server.pem", f"{D}/ca-server.key")

    def finish_request(self, request, client_address):
        """In a thread of its own: who is slow in its handshake delays nobody."""
        try:
            with self.tls.wrap_socket(request, server_side=True) as secure:
                self.RequestHandlerClass(secure, client_address, self)
        except OSError:
            pass


def outside(stream):
    lab.NameServer({name: [ADDRESS] for name in NAMES})
    threading.Thread(target=Server(("", 443), Shop).serve_forever, daemon=True).start()
    print("[]", file=stream, flush=True)
    stream.read()


def main():
    lab.make_ca(D, NAMES)
    for name, text in (("resolv", f"nameserver {lab.NAME_SERVER}\n"), ("hosts", "127.0.0.1 localhost\n"), ("asked", ""),
                       ("every-byte.sum", hashlib.sha256(EVERY_BYTE).hexdigest())):
        with open(f"{D}/{name}", "w", encoding="ascii") as f:
            f.write(text)
    for name, at in (("resolv", "/etc/resolv.conf"), ("hosts", "/etc/hosts")):
        subprocess.run(["mount", "--bind", f"{D}/{name}", at], check=True)
    world = lab.Outside(outside)
    code = subprocess.run(["unshare", "-U", "--map-user=1000", "--map-group=1000", *sys.argv[2:]], check=False).returncode
    world.end()
    sys.exit(code)


if __name__ == "__main__":
    main()
