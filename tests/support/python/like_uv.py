#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs wheels as uv does, in its protocol: Simple API in JSON or HTML by Accept with weights (PEP 691, 503), the metadata
beside the wheel where the index names it (PEP 658, 714), else a HEAD to learn whether ranges of the wheel may be asked for, and
the whole wheel where they may not; all of it plain, with digests. Debian has no uv, whose strictness is this program's.

like_uv.py NAME...: from UV_DEFAULT_INDEX into ./t; says how each came by its metadata."""
import hashlib
import html.parser
import io
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile

PEP691 = "application/vnd.pypi.simple.v1+json"
ACCEPT = PEP691 + ", application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
NO_RANGES = (400, 403, 404, 405, 501)  # to a HEAD: uv takes the whole wheel then


def ask(url, method="GET", **headers):
    fields = {"User-Agent": "uv/0.5", "Accept": "*/*", **{k.replace("_", "-"): v for k, v in headers.items()}}
    r = urllib.request.urlopen(urllib.request.Request(url, method=method, headers=fields), timeout=60)
    body = r.read()
    if r.headers.get("Content-Encoding", "identity") != "identity":
        raise SystemExit(f"{url}: encoded, which was not asked for")
    if "Content-Length" in r.headers and method == "GET" and int(r.headers["Content-Length"]) != len(body):
        raise SystemExit(f"{url}: cut")
    return r, body


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.files = []

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag == "a" and a.get("href"):
            url, _, digest = a["href"].partition("#")
            self.files.append({"url": url, "filename": url.rsplit("/", 1)[-1], "hashes": dict([digest.split("=")] if digest else []),
                               "core-metadata": a.get("data-core-metadata", False)})


def index(name):
    url = urllib.parse.urljoin(os.environ["UV_DEFAULT_INDEX"].rstrip("/") + "/", name + "/")
    r, body = ask(url, Accept=ACCEPT, Accept_Encoding="gzip, deflate, br, zstd", Cache_Control="max-age=0")
    kind = r.headers.get("Content-Type", "").split(";")[0]
    if kind == PEP691:
        page = json.loads(body)
        if page["meta"]["api-version"].split(".")[0] != "1" or page["name"] != name:
            raise SystemExit(f"{name}: another page")
        files = page["files"]
    elif kind in ("text/html", "application/vnd.pypi.simple.v1+html"):
        reader = Links()
        reader.feed(body.decode())
        files = reader.files
    else:
        raise SystemExit(f"{name}: {kind} is neither JSON nor HTML")
    return kind, [{**f, "url": urllib.parse.urljoin(r.url, f["url"])} for f in files if f["url"]]


def check(f, data):
    want = f["hashes"].get("sha256")
    if want and hashlib.sha256(data).hexdigest() != want:
        raise SystemExit(f"{f['filename']}: another digest")


def metadata(f):
    """The metadata, and how it came."""
    named = f.get("core-metadata", f.get("data-dist-info-metadata", False))
    if named:
        _, body = ask(f["url"] + ".metadata", Accept_Encoding="gzip, deflate, br, zstd")
        want = named["sha256"] if isinstance(named, dict) else named.partition("=")[2]
        if hashlib.sha256(body).hexdigest() != want:
            raise SystemExit(f"{f['filename']}: metadata of another digest")
        return body, "metadata beside it"
    try:
        r, _ = ask(f["url"], "HEAD", Accept_Encoding="identity")
        if r.headers.get("Accept-Ranges") == "bytes":
            raise SystemExit("ranges are offered, and this program has none")
    except urllib.error.HTTPError as e:
        if e.code not in NO_RANGES:
            raise
    # who asks for a part all the same gets the whole, and is told so by the status
    r, data = ask(f["url"], Accept_Encoding="identity", Range="bytes=-16384")
    if r.status != 200 or r.headers.get("Content-Range"):
        raise SystemExit(f"{f['filename']}: {r.status} to a range")
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        name = next(n for n in z.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        return z.read(name), "metadata out of the wheel"


def main():
    for name in sys.argv[1:]:
        kind, files = index(name)
        f = next(f for f in files if f["filename"].endswith(".whl"))
        text, how = metadata(f)
        if not re.search(rb"(?m)^Metadata-Version: ", text):
            raise SystemExit(f"{name}: no metadata")
        _, wheel = ask(f["url"], Accept_Encoding="identity")
        check(f, wheel)
        with zipfile.ZipFile(io.BytesIO(wheel)) as z:
            z.extractall("t")
        print(f"{name}: {kind}, {how}")


if __name__ == "__main__":
    main()
