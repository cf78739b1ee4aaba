# SPDX-License-Identifier: Apache-2.0
"""A server of git over https on 127.0.0.1: git's own http-backend behind it.  git_server.py ROOT CERTIFICATE LOG

Prints its port. ROOT has the repositories; a line of JSON a request goes to LOG: method, target, and the fields
that matter, so that a test judges from the other side. Below /private/ it wants its key, as forges do (Basic,
any user). Some names answer otherwise: see odd()."""
import base64
import http.server
import json
import os
import ssl
import subprocess
import sys

ROOT, CERTIFICATE, LOG = sys.argv[1:4]
KEY = os.environ.get("GIT_SERVER_KEY", "")
KEPT = ("content-type", "content-encoding", "git-protocol", "authorization", "accept-encoding", "user-agent", "cookie")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, kind, body, **more):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **more}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def odd(self, path):
        """What no server of git should say."""
        if path.startswith("/team/page.git/"):
            self.reply(200, "text/html", b"<p>not git</p>")
        elif path.startswith("/team/moved.git/"):
            self.reply(301, "text/plain", b"", Location=self.path.replace("moved", "project"))
        elif path.startswith("/private/silly.git/"):
            self.reply(200, "application/x-git-receive-pack-advertisement", b"this is no advertisement")
        else:
            return False
        return True

    def is_known(self):
        said = self.headers.get("authorization", "")
        return said.startswith("Basic ") and base64.b64decode(said[6:]).decode().endswith(":" + KEY)

    def backend(self, path, query, body):
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": ROOT, "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command,
               "PATH_INFO": path, "QUERY_STRING": query, "CONTENT_TYPE": self.headers.get("content-type", ""),
               "CONTENT_LENGTH": str(len(body)), "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
               "GIT_PROTOCOL": self.headers.get("git-protocol", ""), "REMOTE_USER": "somebody", "REMOTE_ADDR": "127.0.0.1"}
        out = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=env, check=False).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.reply(int(fields.get("Status", "200").split()[0]), fields.get("Content-Type", "text/plain"), rest)

    def serve(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        with open(LOG, "a", encoding="utf-8") as f:
            f.write(json.dumps([self.command, self.path, {k: self.headers[k] for k in KEPT if k in self.headers}, len(body)]) + "\n")
        path, _, query = self.path.partition("?")
        if path.startswith("/private/") and not self.is_known():
            self.reply(401, "text/plain", b"who are you", **{"WWW-Authenticate": "Basic realm=x"})
        elif not self.odd(path):
            self.backend(path, query, body)

    do_GET = do_POST = do_HEAD = do_PUT = serve


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
