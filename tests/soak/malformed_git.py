# SPDX-License-Identifier: Apache-2.0
"""Runs in the clients and in the provider of malformed.py: what a client of git sends and a server of git says, as bytes. A
vessel knows a request by its path and reads the body by that; so the bytes are wrong, within a request that is whole."""
import gzip
import hashlib
import zlib

from malformed_grammar import damage

FLUSH, DELIM = b"0000", b"0001"
OLD, NEW = b"0" * 40, b"6" * 40


def line(text):
    return b"%04x%s" % (len(text) + 4, text)


def entry(kind, data, before=b""):
    """An object of a pack: a type, its size, what a delta is of, and its bytes."""
    size, head = len(data), []
    byte = kind << 4 | size & 15
    size >>= 4
    while size:
        head.append(byte | 128)
        byte, size = size & 127, size >> 7
    return bytes([*head, byte]) + before + zlib.compress(data)


def pack(entries):
    body = b"PACK\x00\x00\x00\x02" + len(entries).to_bytes(4, "big") + b"".join(entries)
    return body + hashlib.sha1(body).digest()


BLOB = b"hello, this is a file\n" * 9
TREE = b"100644 a\x00" + hashlib.sha1(b"blob %d\x00" % len(BLOB) + BLOB).digest()
COMMIT = (b"tree " + b"7" * 40 + b"\nauthor A <a@b.example> 1 +0000\ncommitter A <a@b.example> 1 +0000\n\nit does\n")
DELTA = bytes([len(BLOB) & 127 | 128, len(BLOB) >> 7, 9, 0x90, 9])  # copies its first nine bytes
FIRST = entry(3, BLOB)
PACKS = [pack([FIRST]), pack([FIRST, entry(2, TREE), entry(1, COMMIT)]), pack([]),
         pack([FIRST, entry(6, DELTA, bytes([len(FIRST)]))]),
         pack([FIRST, entry(7, DELTA, hashlib.sha1(b"blob %d\x00" % len(BLOB) + BLOB).digest())]),
         pack([entry(7, DELTA, b"\x07" * 20)]), pack([entry(4, b"object " + NEW + b"\ntype commit\ntag t\n\nx\n")]), pack([entry(3, b"\xff" * 2000)] * 20)]
UPDATES = line(OLD + b" " + NEW + b" refs/heads/main\x00 report-status side-band-64k agent=git/2.39.5") + FLUSH
PUSHES = [UPDATES + p for p in PACKS] + [line(NEW + b" " + OLD + b" refs/heads/x\x00report-status") + FLUSH, FLUSH]
FETCHES = [
    line(b"command=ls-refs") + line(b"agent=git/2.39.5") + line(b"object-format=sha1") + DELIM + line(b"peel") + line(b"symrefs") +
    line(b"ref-prefix refs/heads/") + FLUSH,
    line(b"command=fetch") + DELIM + line(b"thin-pack") + line(b"ofs-delta") + line(b"want " + NEW) + line(b"have " + NEW) + line(b"done") + FLUSH,
    line(b"want " + NEW + b" multi_ack_detailed side-band-64k ofs-delta agent=git/2.39.5") + line(b"deepen 1") + FLUSH + line(b"done"), FLUSH]
REFS = (line(b"# service=git-receive-pack\n") + FLUSH +
        line(NEW + b" HEAD\x00 report-status delete-refs side-band-64k ofs-delta push-options agent=git/2.39.5\n") + line(NEW + b" refs/heads/main\n") + FLUSH)


def wrong(text, rng):
    """Of a body: a few bytes, or the whole of it in gzip, that too wrong now and then."""
    for _ in range(rng.choice((0, 1, 1, 2))):
        text = damage(text, rng)
    if rng.random() < 0.2:
        text = gzip.compress(text * rng.choice((1, 1, 50)), mtime=0)
        return (damage(text, rng) if rng.random() < 0.5 else text), True
    return text, rng.random() < 0.03


def request(rng):
    """(method, path below the repository, fields, body, is it in gzip)"""
    service = rng.choice(("git-upload-pack", "git-receive-pack"))
    version = [["git-protocol", rng.choice(("version=2", "version=1", "version=0", "version=3", "version=2:x", ""))]] if rng.random() < 0.5 else []
    if rng.random() < 0.25:
        query = rng.choice((f"service={service}",) * 4 + ("", f"service={service}&x=1", "service=x", f"service={service}\x00", "service=git%2dupload-pack"))
        return rng.choice(("GET", "GET", "GET", "HEAD", "POST")), f"/info/refs?{query}", version, b"", False
    body, is_gzip = wrong(rng.choice(PUSHES if "receive" in service else FETCHES), rng)
    fields = [["content-type", f"application/x-{service}-request" if rng.random() < 0.97 else "text/plain"], *version]
    if is_gzip:
        fields.append(["content-encoding", "gzip"])
    return rng.choice(("POST",) * 12 + ("PUT", "GET")), "/" + service, fields, body, is_gzip
