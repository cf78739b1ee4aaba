#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small honest package registry on loopback: PyPI's simple index (PEP 503, 691, 658), npm's packuments, crates (cargo's
sparse protocol) and Go modules (GOPROXY).

registry.py LOG PORT_FILE [ADDRESS]: writes its port, appends "METHOD PATH" to LOG for each request.
Packages: pypi tiny 1.0 (a wheel that says "tiny works"), npm pad 1.0.0 and @acme/pad 2.0.0 (module.exports),
npm nosy 1.0.0, whose install script tries to reach this very server and leaves a note; crates tiny 1.0.0 and false 1.0.0
(of another checksum than its index says), linked (a link out of its folder) and elsewhere (it depends on a crate of another
registry, this very server), Go module example.org/Tiny v1.0.0 (Works()).
"""
import base64
import hashlib
import http.server
import io
import json
import os
import sys
import tarfile
import zipfile


def wheel(name, version, text):
    body = io.BytesIO()
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{n},,\n" for n in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(body, "w") as z:
        for n, t in {**files, f"{info}/RECORD": record}.items():
            z.writestr(n, t)
    return body.getvalue()


def tarball(package, files):
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as t:
        for name, text in {"package.json": json.dumps(package), **files}.items():
            data = text.encode()
            info = tarfile.TarInfo("package/" + name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return body.getvalue()


WHEEL = wheel("tiny", "1.0", "print('tiny works')\n")
METADATA = zipfile.ZipFile(io.BytesIO(WHEEL)).read("tiny-1.0.dist-info/METADATA")
METADATA_SHA = hashlib.sha256(METADATA).hexdigest()
WHEEL_SHA = hashlib.sha256(WHEEL).hexdigest()
WHEEL_PATH = f"/files/{WHEEL_SHA[:2]}/{WHEEL_SHA[2:4]}/{WHEEL_SHA[4:]}/tiny-1.0-py3-none-any.whl"
# Directories that hold more than a digest: a term that somebody may have registered, a token by its form.
ODD_PATHS = [f"/files/{text.hex()}/odd-1.0-py3-none-any.whl"
             for text in (b"Project Nachtigall", b"glpat-x7Kq2mZv9LsT4bNcW8Rd")]
NOSY = """
const net = require("net"), fs = require("fs");
const tries = (process.env.NOSY_PORTS || "8787").split(",").map((p) => new Promise((done) => {
  const s = net.connect(+p, "127.0.0.1", () => { s.write("GET /phoned-home HTTP/1.0\\r\\n\\r\\n"); s.end(); done("reached"); });
  s.on("error", (e) => done(e.code));
}));
Promise.all(tries).then((r) => fs.writeFileSync("note.txt", r.join(" ")));
"""
TARBALLS = {
    "pad": ("1.0.0", tarball({"name": "pad", "version": "1.0.0"}, {"index.js": "module.exports = 'pad works';\n"})),
    "@acme/pad": ("2.0.0", tarball({"name": "@acme/pad", "version": "2.0.0"},
                                   {"index.js": "module.exports = 'scoped pad works';\n"})),
    "nosy": ("1.0.0", tarball({"name": "nosy", "version": "1.0.0", "scripts": {"install": "node nosy.js"}},
                              {"nosy.js": NOSY, "index.js": "module.exports = 1;\n"})),
}


# A wheel that requires a source archive by its URL, which is the mirror's own: pip would run its backend.
DIRECT = wheel("direct", "1.0", "print('direct works')\n")


def direct_wheel():
    body = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(DIRECT)) as old, zipfile.ZipFile(body, "w") as z:
        for n in old.namelist():
            text = old.read(n).decode()
            if n.endswith("METADATA"):
                text += "Requires-Dist: built @ http://127.0.0.1:8787/registry/pypi/simple/files/built-1.0.tar.gz\n"
            z.writestr(n, text)
    return body.getvalue()


def source_archive():
    body = io.BytesIO()
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:8787/registry/pypi/simple/phoned-home/')\n",
    }
    with tarfile.open(fileobj=body, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo("built-1.0/" + name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    return body.getvalue()


def quality(accept, *kinds):
    best = 0.0
    for part in accept.split(","):
        kind, *params = [p.strip() for p in part.split(";")]
        if kind in kinds:
            best = max(best, next((float(p[2:]) for p in params if p.startswith("q=")), 1.0))
    return best


def crate(name, link=None):
    """link: also one by this name out of its folder, and a file behind it."""
    body = io.BytesIO()
    files = {"Cargo.toml": f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2018"\n',
             "src/lib.rs": f'pub fn works() -> &\'static str {{ "{name} works" }}\n'}
    with tarfile.open(fileobj=body, mode="w:gz") as t:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{name}-1.0.0/{path}")
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
        if link:
            info = tarfile.TarInfo(f"{name}-1.0.0/{link}")
            info.type, info.linkname = tarfile.SYMTYPE, "/work"
            t.addfile(info)
            t.addfile(tarfile.TarInfo(f"{name}-1.0.0/{link}/escaped"))
    return body.getvalue()


CRATES = {"tiny": crate("tiny"), "false": crate("false"), "linked": crate("linked", "out"), "elsewhere": crate("elsewhere")}


def crate_line(name, cksum, deps=()):
    return json.dumps({"name": name, "vers": "1.0.0", "deps": deps, "cksum": cksum, "features": {}, "yanked": False}) + "\n"


def dependency(registry):
    return {"name": "x", "req": "*", "features": [], "optional": False, "default_features": True, "target": None,
            "kind": "normal", "registry": registry, "package": None}


def crates(port):
    """Path -> type and body. An index of a crate lies below its first letters, which "cksum" must be the crate's."""
    base = f"http://127.0.0.1:{port}"
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in CRATES.items()}
    ret = {"/crates/config.json": ("application/json", json.dumps({"dl": base + "/dl", "api": base + "/secret"}).encode()),
           "/crates/ti/ny/tiny": ("text/plain", crate_line("tiny", sums["tiny"]).encode()),
           "/crates/fa/ls/false": ("text/plain", crate_line("false", sums["tiny"]).encode()),
           "/crates/li/nk/linked": ("text/plain", crate_line("linked", sums["linked"]).encode()),
           "/crates/el/se/elsewhere": ("text/plain", crate_line("elsewhere", sums["elsewhere"],
                                                                [dependency(f"sparse+{base}/phoned-home/")]).encode()),
           "/crates/li/ar/liar": ("text/plain", (crate_line("liar", "0" * 64) + '{"name":"liar","vers":"2.0.0"}\n').encode())}
    for name, data in CRATES.items():
        ret[f"/dl/{name}/1.0.0/download"] = ("application/x-tar", data)
    return ret


MODULE = "module example.org/Tiny\n\ngo 1.15\n"


def module_zip():
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as z:
        z.writestr("example.org/Tiny@v1.0.0/go.mod", MODULE)
        z.writestr("example.org/Tiny@v1.0.0/tiny.go", 'package tiny\n\nfunc Works() string { return "tiny works" }\n')
    return body.getvalue()


def h1(files):
    """Go's hash of a list of files (golang.org/x/mod/sumdb/dirhash): of the lines that sha256sum would write, by name."""
    lines = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))
    return "h1:" + base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()


def go_sum():
    with zipfile.ZipFile(io.BytesIO(module_zip())) as z:
        whole = h1({n: z.read(n) for n in z.namelist()})
    return f"example.org/Tiny v1.0.0 {whole}\nexample.org/Tiny v1.0.0/go.mod {h1({'go.mod': MODULE.encode()})}\n"


def modules():
    """Path -> type and body; a capital of a module's name is "!" and its small letter."""
    info = b'{"Version":"v1.0.0","Time":"2020-01-02T03:04:05Z"}'
    at = "/go/example.org/!tiny/"
    return {at + "@v/list": ("text/plain; charset=UTF-8", b"v1.0.0\n"),
            at + "@v/v1.0.0.info": ("application/json", info), at + "@latest": ("application/json", info),
            at + "@v/v1.0.0.mod": ("text/plain", MODULE.encode()), at + "@v/v1.0.0.zip": ("application/zip", module_zip()),
            at + "@v/v9.0.0.info": ("text/html", b"<html>not here</html>"),
            "/go/sumdb/sum.example.org/latest": ("text/plain", b"go.sum database tree\n1\nx=\n\n\xe2\x80\x94 sum.example.org y=\n"),
            "/go/sumdb/sum.example.org/lookup/example.org/!tiny@v1.0.0": ("text/plain", b"1\nexample.org/Tiny v1.0.0 h1:x=\n")}


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def packument(self, name):
        version, data = TARBALLS[name]
        base = f"http://{self.headers['Host']}/npm/"
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        scripts = {"hasInstallScript": True} if name == "nosy" else {}
        return json.dumps({
            "name": name, "dist-tags": {"latest": version},
            "versions": {version: {
                "name": name, "version": version, **scripts,
                "dist": {"integrity": "sha512-" + digest, "tarball": f"{base}{name}/-/{name.split('/')[-1]}-{version}.tgz"},
            }},
        }).encode()

    def tiny(self):
        """In the form that Accept likes better, and in no other."""
        accept = self.headers.get("Accept", "")
        as_json = quality(accept, "application/vnd.pypi.simple.v1+json")
        as_html = quality(accept, "application/vnd.pypi.simple.v1+html", "text/html")
        if as_json == as_html == 0:
            return self.answer(406, "text/plain", b"neither")
        link = "../../.." + WHEEL_PATH
        if as_json <= as_html:
            page = (f'<!DOCTYPE html><html><body><a href="{link}#sha256={WHEEL_SHA}" data-core-metadata="sha256={METADATA_SHA}" '
                    f'data-dist-info-metadata="sha256={METADATA_SHA}">tiny-1.0-py3-none-any.whl</a>'
                    '<a href="https://elsewhere.example/tiny-2.0-py3-none-any.whl">tiny-2.0-py3-none-any.whl</a></body></html>')
            return self.answer(200, "text/html", page.encode())
        # PEP 714: PyPI has the old name so, since pips before 23.2 fail over it
        metadata = {"core-metadata": {"sha256": METADATA_SHA}, "data-dist-info-metadata": {"sha256": METADATA_SHA}}
        files = [{"filename": "tiny-1.0-py3-none-any.whl", "url": link, "hashes": {"sha256": WHEEL_SHA}, **metadata},
                 {"filename": "tiny-2.0-py3-none-any.whl", "url": "https://elsewhere.example/tiny-2.0-py3-none-any.whl", "hashes": {}}]
        page = {"meta": {"api-version": "1.0"}, "name": "tiny", "versions": ["1.0"], "files": files}
        return self.answer(200, "application/vnd.pypi.simple.v1+json", json.dumps(page).encode())

    @staticmethod
    def note(line):
        with open(sys.argv[1], "a") as log:
            log.write(line + "\n")

    def do_GET(self):
        self.note(f"GET {self.path}")
        path = self.path.replace("%2f", "/").replace("%2F", "/").replace("%21", "!")
        if path == "/pypi/simple/tiny/":
            return self.tiny()
        if path == WHEEL_PATH + ".metadata":
            return self.answer(200, "application/octet-stream", METADATA)
        if path == "/pypi/simple/direct/":
            return self.answer(200, "text/html", b'<a href="../../files/direct-1.0-py3-none-any.whl">direct</a>')
        if path == "/pypi/files/direct-1.0-py3-none-any.whl":
            return self.answer(200, "application/zip", direct_wheel())
        if path == "/pypi/simple/files/built-1.0.tar.gz":
            return self.answer(200, "application/gzip", source_archive())
        if path == "/pypi/simple/odd/":
            return self.answer(200, "text/html", "".join(f'<a href="../../..{p}">odd</a>' for p in ODD_PATHS).encode())
        if path in (WHEEL_PATH, *ODD_PATHS):
            return self.answer(200, "application/zip", WHEEL)
        there = {**crates(self.server.server_port), **modules()}.get(path)
        if there:
            return self.answer(200, *there)
        if path == "/npm/moved":
            self.send_response(302)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/secret")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if path == "/npm/liar":
            return self.answer(200, "application/json", b'{"versions":{"1":{"dist":{"tarball":"')
        if path == "/npm/twice":
            return self.answer(200, "application/json", b'{"tarball":"x.tgz","\\u0074arball":"https://elsewhere.example/y.tgz"}')
        if path == "/npm/escaped":
            return self.answer(200, "application/json",
                               b'{"\\u0074arball": "/npm/escaped/-/e.tgz", "dependencies": {"a\\\\b": "1"}, "\\u00e4": "\\ud83d\\ude00"}')
        for name in TARBALLS:
            if path == "/npm/" + name:
                return self.answer(200, "application/json", self.packument(name))
            if path == f"/npm/{name}/-/{name.split('/')[-1]}-{TARBALLS[name][0]}.tgz":
                return self.answer(200, "application/octet-stream", TARBALLS[name][1])
        return self.answer(404, "application/json", b'{"error":"where are you looking"}')


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer((sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1", 0), Registry)
    with open(sys.argv[2] + ".new", "w") as f:
        f.write(str(server.server_port))
    os.rename(sys.argv[2] + ".new", sys.argv[2])
    server.serve_forever()
