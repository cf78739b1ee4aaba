# SPDX-License-Identifier: Apache-2.0
"""The bypass cases of docs/EGRESS.md: the table, the rules they are tried under, and the lying name server and servers outside.
Tried by tests/integration/broker/egress_bypass.py (the workers alone) and tests/soak/bypass_job.py (a job in the whole house)."""
import base64
import gzip
import json
import time

import lab

GOOD, GOOD6, OTHER = "93.184.216.34", "2606:2800:220:1::1", "151.101.1.69"
ALLOWED = "api.allowed.example"
KEY = "sk-lab-4f7Qw9ZtL2xV8bN3mR6"
RULES = [
    {"host": ALLOWED, "method": "GET"}, {"host": ALLOWED, "method": "POST"},
    {"host": "other.allowed.example", "method": "GET", "credential": "lab"}, {"host": "other.allowed.example", "method": "POST"},
    {"host": "prefix.allowed.example", "path": "/open"}, {"host": "\"*.wild.example\""}, {"host": "\"*.dns.example\""},
    {"host": "named.example", "addresses": ["10.0.0.7"]}, {"host": "foreign.example"},
]


# keys for hosts, and the rules that give them: for those who have the secrets (egress_bypass.py)
CREDENTIALS = [
    {"name": "forge", "host": "other.allowed.example", "path": "/team/repo", "header": "basic", "user": "git", "secret": "host_forge"},
    {"name": "field", "host": "other.allowed.example", "path": "/keyed", "header": "X-Api-Key", "secret": "host_field"},
    {"name": "token", "host": "other.allowed.example", "path": "/token", "header": "bearer", "secret": "host_token"},
]
KEYED_RULES = [
    *({"host": "other.allowed.example", "path": "/team", "method": m, "credential": "forge"} for m in ("GET", "PUT")),
    {"host": "other.allowed.example", "path": "/keyed", "method": "DELETE", "credential": "field"},
    {"host": "other.allowed.example", "path": "/token", "credential": "token"},
]


def codex(authorities=None, credentials=(), rules=RULES):
    out = ["version: 1", "portals:", "  - name: lab", "    kind: openai", "    url: https://other.allowed.example/v1", "    secret: portal_lab",
           "    models:", "      - name: m", '        input: "0"', '        output: "0"']
    out += ["credentials:"] if credentials else []
    out += ["  - {" + ", ".join(f"{key}: {value}" for key, value in c.items()) + "}" for c in credentials]
    out.append("ward:")
    for rule in rules:
        out.append("  - action: allow")
        for key, value in rule.items():
            out.append(f"    {key}: {value}" if isinstance(value, str) else f"    {key}:")
            out += [f"      - {v}" for v in value] if isinstance(value, list) else []
    out += ["egress:", f'  authorities: "{authorities}"'] if authorities else []
    return "\n".join(out) + "\n"


def zone():
    both = [GOOD, GOOD6]
    rebind = lambda first: lambda count: first if count <= 2 else ["10.0.0.1!"]  # the first A and AAAA
    chain = {f"chain{n}.dns.example": [f"=c{i}.dns.example" for i in range(n)] + [GOOD] for n in (8, 9)}
    return {
        ALLOWED: both, "other.allowed.example": [OTHER], "prefix.allowed.example": both, "*.wild.example": both, "foreign.example": [GOOD],
        "metadata.google.internal": ["169.254.169.254"], "allowed.example": both, "a.api.allowed.example": both,
        "evilapi.allowed.example": both, "api.allowed.example.evil.test": both, "xn--pi-6kc.allowed.example": both, "api": both,
        "private.dns.example": ["127.0.0.1"], "mixed.dns.example": [GOOD, "10.0.0.1"], "mixed6.dns.example": [GOOD, "fd00::1"],
        "mapped.dns.example": [GOOD, "::ffff:10.0.0.1"], "nat64.dns.example": ["64:ff9b::a9fe:a9fe"], "sixtofour.dns.example": ["2002:7f00:1::1"],
        "meta.dns.example": ["169.254.169.254"], "azure.dns.example": ["168.63.129.16"], "alibaba.dns.example": ["100.100.100.200"],
        "zero.dns.example": ["0.0.0.0"], "self.dns.example": [lab.CLIENT], "self6.dns.example": [lab.CLIENT6],
        "rebind.dns.example": rebind([GOOD + "!"]), "loop.dns.example": "loop", "refused.dns.example": "refused", "silent.dns.example": "silent",
        "junk.dns.example": "junk", "nothing.dns.example": [], **chain,
        "alias.dns.example": ["=end.dns.example", GOOD], "elsewhere.dns.example": ["=private.dns.example", "127.0.0.1"],
        "named.example": ["10.0.0.7"],
    }


# ---- the outside ------------------------------------------------------------------------------

REDIRECTS = {
    "/to-loopback": "https://127.0.0.1/", "/to-metadata": "http://169.254.169.254/latest/", "/to-other": f"https://other.allowed.example/echo",
    "/to-same": "/echo", "/to-network-path": "//127.0.0.1/", "/to-backslash": "\\\\127.0.0.1/", "/to-port": f"https://{ALLOWED}:8443/",
    "/to-self": "/to-self", "/to-http": f"http://{ALLOWED}/", "/to-file": "file:///etc/passwd", "/to-userinfo": f"https://a@{ALLOWED}/",
    "/to-key": "https://other.allowed.example/v1/echo", "/to-forge": "https://other.allowed.example/team/repo/echo",
    "/team/repo/to-api": f"https://{ALLOWED}/team/repo/echo", "/team/repo/to-beside": "/team/other/echo", "/team/repo/to-again": "/team/repo/echo",
    "/v1/to-api": f"https://{ALLOWED}/echo",
    "/to-private-name": "https://private.dns.example/", "/to-not-allowed": "https://evilapi.allowed.example/", "/to-fragment": "/echo#x",
}


def serve_http(requests, slow, on_step=None):
    def reply(c, status, body=b"", fields=(), length=True):
        head = [f"HTTP/1.1 {status} X", "Set-Cookie: a=b", "Server: secret", "Alt-Svc: h3=\":443\"", "x-request-id: r1"]
        head += fields
        if not any(f.lower().startswith("content-type") for f in fields):
            head.append("Content-Type: text/plain")
        if length:
            head.append(f"Content-Length: {len(body)}")
        c.sendall("\r\n".join(head).encode() + b"\r\nConnection: close\r\n\r\n" + body)

    def on(c, address, port):
        request = lab.read_request(c)
        if request is None:
            return
        head, body = request
        method, target, _ = head.split("\r\n")[0].split(" ")
        path = target.split("?")[0]
        if on_step and path.startswith("/step/"):
            on_step(c, path)
            reply(c, 200, b"go on")
            return
        requests.append({"address": address, "port": port, "head": head, "body": body.decode("latin-1")})
        if path in REDIRECTS:
            reply(c, 302, b"moved", [f"Location: {REDIRECTS[path]}"])
        elif path.endswith("/307-put"):
            reply(c, 307, b"", ["Location: /team/repo/echo"])
        elif path.endswith("/303-put"):
            reply(c, 303, b"", ["Location: /team/repo/echo"])
        elif path == "/307-other":
            reply(c, 307, b"", ["Location: https://other.allowed.example/echo"])
        elif path == "/307-same":
            reply(c, 307, b"", ["Location: /echo"])
        elif path == "/to-crlf":
            c.sendall(b"HTTP/1.1 302 X\r\nLocation: /ec\rho\r\nContent-Length: 0\r\n\r\n")
        elif path in ("/slow", "/slower"):
            c.sendall(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n")
            slow.append(target)
            try:
                for _ in range(100 if path == "/slow" else 900):
                    c.sendall(b"x")
                    time.sleep(0.1)
            finally:
                slow.remove(target)
        elif path == "/drip":
            c.sendall(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\nContent-Length: 20\r\nConnection: close\r\n\r\n")
            for _ in range(20):
                c.sendall(b"x")
                time.sleep(0.05)
        elif path == "/gzip":
            reply(c, 200, gzip.compress(b"0" * 10000000), ["Content-Encoding: gzip"])
        elif path == "/1xx":
            for _ in range(100000):
                c.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 50)
        elif path == "/chunks":
            c.sendall(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nTrailer: X-T, x-request-id\r\n\r\n"
                      b"4;ext=\"a\"\r\nabcd\r\n0\r\nX-T: 1\r\nx-request-id: trailer\r\n\r\n")
        elif path == "/500":
            reply(c, 500, b"\x00\x01trace", ["Content-Type: application/x-trace", "X-Trace: secret"])
        elif path == "/500-text":
            reply(c, 500, b"sorry", ["X-Trace: secret"])
        elif path == "/401":
            reply(c, 401, b"who", ['WWW-Authenticate: Basic realm="other"'])
        elif path == "/big":
            reply(c, 200, b"x" * 1000000)
        elif path == "/two-lengths":
            c.sendall(b"HTTP/1.1 200 X\r\nContent-Type: text/plain\r\nContent-Length: 1\r\nContent-Length: 5\r\n\r\nabcde")
        else:
            reply(c, 200, json.dumps({"method": method, "target": target, "head": head, "body": body.decode("latin-1")}).encode(),
                  ["Content-Type: application/json"])
    return on


class World:
    """The other namespace: the servers, the name server, and what they and the wire saw."""

    def __init__(self, folder, on_step=None):
        self.requests, self.slow, self.wire = [], [], lab.Capture("wire")
        good = lab.ssl.SSLContext(lab.ssl.PROTOCOL_TLS_SERVER)
        good.load_cert_chain(f"{folder}/ca-server.pem", f"{folder}/ca-server.key")
        foreign = lab.ssl.SSLContext(lab.ssl.PROTOCOL_TLS_SERVER)
        foreign.load_cert_chain(f"{folder}/foreign-server.pem", f"{folder}/foreign-server.key")

        def sni(c, name, _):
            if name == "foreign.example":
                c.context = foreign
        good.sni_callback = sni
        answer = serve_http(self.requests, self.slow, on_step and (lambda c, path: on_step(self, c, path)))

        def tls(c, address, port):
            with good.wrap_socket(c, server_side=True) as s:
                answer(s, address, port)
        self.dns = lab.NameServer(zone())
        self.listeners = [lab.Listener([443, 8443], tls), lab.Listener([p for p in lab.PORTS if p not in (443, 8443, 53)], lambda c, a, p: c.recv(100))]

    def take(self, wire):
        """What was seen since the last time; wire: what the capture has of it."""
        asked, self.dns.queries[:] = list(self.dns.queries), []
        seen = list(self.requests)
        self.requests.clear()
        return {"asked": asked, "requests": seen, "slow": len(self.slow), "wire": wire}


def outside(folder, stream):
    world = World(folder)
    print("[]", file=stream, flush=True)
    for line in stream:
        what, mark = json.loads(line)
        assert what == "take"
        print(json.dumps(world.take(world.wire.take(mark))), file=stream, flush=True)


# ---- the cases -----------------------------------------------------------------------------------

def get(url, **more):
    return {"method": "GET", "url": url, **more}


def post(url, body=b"secret body", **more):
    return {"method": "POST", "url": url, "body": base64.b64encode(body).decode(), **more}


def change(method, url, body=b"secret body", **more):
    return {"method": method, "url": url, "body": base64.b64encode(body).decode(), **more}


A = f"https://{ALLOWED}"
SCHEMES = ["file:///etc/passwd", f"ftp://{ALLOWED}/", "gopher://127.0.0.1:6379/_x", "dict://127.0.0.1:6379/", f"ldap://{ALLOWED}/",
           f"tftp://{ALLOWED}/x", f"sftp://{ALLOWED}/", f"smb://{ALLOWED}/x", f"jar:{A}!/", "data:text/plain,x", "unix:/run/x",
           "http+unix://%2frun%2fx/", "javascript:x", f"ws://{ALLOWED}/", f"wss://{ALLOWED}/"]
# number, intent, reason; "" is a success
CASES = [
    (1, get("http://127.0.0.1/"), "scheme"), (2, get("https://127.0.0.1/"), "ip_literal"), (3, get("https://0x7f000001/"), "host_grammar"),
    (4, get("https://0x7f.1/"), "host_grammar"), (5, get("https://017700000001/"), "host_grammar"), (6, get("https://127.1/"), "host_grammar"),
    (7, get("https://127.0.0.1./"), "host_grammar"), (8, get("https://08.8.8.8/"), "host_grammar"), (9, get("https://4294967296/"), "host_grammar"),
    (10, get("https://[::1]/"), "ip_literal"), (11, get("https://[::ffff:127.0.0.1]/"), "ip_literal"),
    (12, get("https://[::ffff:7f00:1]/"), "host_grammar"), (13, get("https://[64:ff9b::a9fe:a9fe]/"), "ip_literal"),
    (14, get("https://[2002:7f00:1::]/"), "ip_literal"), (15, get("https://[fe80::1%25eth0]/"), "pct_host"),
    (16, get("https://[fd00:ec2::254]/"), "ip_literal"), (17, get("https://metadata.google.internal/"), "not_allowed"),
    (18, get("https://100.100.100.200/"), "ip_literal"), (19, get("https://8.8.8.8/"), "ip_literal"),
    (20, get("https://[2606:4700:4700::1111]/"), "ip_literal"),
    (21, get(f"https://127.0.0.1@{ALLOWED}/"), "userinfo"), (22, get(f"{A}\\@127.0.0.1/"), "backslash"), (23, get(f"{A}#@127.0.0.1/"), "fragment"),
    (24, get(f"{A}?@127.0.0.1/"), ""), (25, get(f"{A}%2eevil/"), "pct_host"), (26, get("https://127%2e0%2e0%2e1/"), "pct_host"),
    (27, get("https://127\u30020\u30020\u30021/"), "host_grammar"), (28, get("https://api\u00ad.allowed.example/"), "host_grammar"),
    (28, get("https://api\u200b.allowed.example/"), "host_grammar"), (29, get("https:///127.0.0.1/"), "syntax"),
    (29, get("https:/127.0.0.1/"), "syntax"), (29, get("https:127.0.0.1"), "syntax"), (29, get("//127.0.0.1/"), "syntax"),
    (30, get(f"{A}:443:80/"), "port"), (31, get(f"{A}:65536/"), "port"), (32, get(f"{A}:0/"), "port"),
    (33, get(f"https://[{ALLOWED}]/"), "host_grammar"), (34, get(f"{A}./"), "host_grammar"), (35, get(f"{A}.evil.test/"), "not_allowed"),
    (36, get("https://evilapi.allowed.example/"), "not_allowed"), (37, get("https://allowed.example/"), "not_allowed"),
    (38, get(f"https://a.{ALLOWED}/"), "not_allowed"), (38, get("https://a.wild.example/echo"), ""), (38, get("https://wild.example/"), "not_allowed"),
    (39, get(A + "/" + "a" * 8192), "too_long"), (40, get("https://xn--pi-6kc.allowed.example/"), "not_allowed"),
    (41, get("https://prefix.allowed.example/open/%252e%252e/x"), "path"), (41, get("https://prefix.allowed.example/%252e%252e/open"), "path"),
    (41, get("https://prefix.allowed.example/open/%2e%2e/x"), "dot_segment"), (41, get("https://prefix.allowed.example/opened"), "path"),
    *((42, get(u), "scheme") for u in SCHEMES),
    *((43, get(f"{A}:{p}/"), "port") for p in (22, 25, 6379, 5432)),
    (44, get("https://private.dns.example/"), "addr_private"), (44, get("https://meta.dns.example/"), "addr_private"),
    (44, get("https://azure.dns.example/"), "addr_private"), (44, get("https://alibaba.dns.example/"), "addr_private"),
    (44, get("https://zero.dns.example/"), "addr_private"), (44, get("https://elsewhere.dns.example/"), "addr_private"),
    (45, get("https://mixed.dns.example/"), "addr_private"), (45, get("https://mixed6.dns.example/"), "addr_private"),
    (48, get("https://mapped.dns.example/"), "addr_private"), (48, get("https://nat64.dns.example/"), "addr_private"),
    (48, get("https://sixtofour.dns.example/"), "addr_private"),
    (49, get("https://loop.dns.example/"), "dns"), (49, get("https://chain9.dns.example/"), "dns"), (49, get("https://chain8.dns.example/"), ""),
    (50, get("https://no-such.allowed.example/"), "not_allowed"), (50, get("https://refused.dns.example/"), "dns"),
    (50, get("https://silent.dns.example/"), "dns"), (50, get("https://junk.dns.example/"), "dns"), (50, get("https://nothing.dns.example/"), "dns"),
    (51, get("https://self.dns.example/"), "self"), (51, get("https://self6.dns.example/"), "self"),
    (52, get("https://api/"), "single_label"),
    (54, get(f"{A}/to-loopback"), "ip_literal"), (54, get(f"{A}/to-metadata"), "scheme"), (54, get(f"{A}/to-private-name"), "addr_private"),
    (54, get(f"{A}/to-not-allowed"), "not_allowed"), (54, get(f"{A}/to-http"), "scheme"), (54, get(f"{A}/to-file"), "scheme"),
    (55, post(f"{A}/307-other"), "redirect_method"), (56, get(f"{A}/to-same"), ""), (56, get(f"{A}/to-fragment"), ""),
    (56, get(f"{A}/to-self"), "redirect_limit"), (57, get(f"{A}/to-network-path"), "redirect_location"),
    (57, get(f"{A}/to-backslash"), "redirect_location"), (57, get(f"{A}/to-crlf"), ""),
    (57, get(f"{A}/to-userinfo"), "userinfo"), (58, get(f"{A}/to-port"), "port"), (59, get(f"{A}/401"), ""),
    (61, post(A + "/echo", headers=[["Content-Length", "1"], ["Content-Length", "2"]]), "header"),
    (61, post(A + "/echo", headers=[["Content-Length", "1"], ["Transfer-Encoding", "chunked"]]), "header"),
    (61, post(A + "/echo", headers=[["X", "a\r\nHost: b"]]), "header"),
    (67, post(A + "/echo", b"x" * 70000), "body_too_large"), (67, post(A + "/500-text", b"x" * 65536), ""),
    (71, get(f"{A}/slow"), "timeout"), (72, get(f"{A}/gzip"), "reply"),
    (73, get(f"{A}/1xx"), "reply"), (74, get(f"{A}/chunks"), ""), (76, get(f"{A}/500"), "reply_type"), (76, get(f"{A}/500-text"), ""),
    (76, get(f"{A}/big"), "reply_too_large"), (76, get("https://foreign.example/"), "tls"),
    (55, post(f"{A}/307-same"), ""), (55, get(f"{A}/to-other"), ""),
    (44, get("https://named.example/"), ""), (49, get("https://alias.dns.example/"), ""),
]
# methods that no rule names, or that are none
CHANGES = [(83, change(m, f"{A}/echo"), "method") for m in ("PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "put")]
