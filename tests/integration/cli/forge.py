#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Archives of `lych backup` as somebody else may make them: whole, with right hashes, and anything in
them. A second implementation of the format (docs/OPERATIONS.md), so it also says whether that is true.

  forge.py check ARCHIVE CODE            its seal is the one that this recovery code makes
  forge.py rows ARCHIVE TABLE            a section of database.copy
  forge.py make ARCHIVE OUT [WHAT]...    the same with other contents, in this order:
      NAME=FILE        this file of the archive, or one more, with these bytes
      NAME-            not this file
      rows:TABLE=FILE  this section of database.copy (job, payload, ..., number)
      rows:TABLE-      not this section
      info:KEY=JSON    one member of its description
      seal=keep|none|CODE|copy:ARCHIVE   (keep: the bytes that stood there)
      format=N         that of the manifest's first line
"""
import hashlib
import hmac
import json
import sys
import tarfile

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
SECTIONS = "job payload attempt lease result job_blob audit_outbox audit_state budget broker_call removed wish number".split()
ORDER = ["BACKUP.json", "database.copy", "config/codex.yaml", "vessel/private", "vessel/blobs/", "vessel/output/", "audit/"]


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def key_of(code):
    bits = "".join(f"{ALPHABET.index(c):05b}" for c in code.replace("-", ""))
    key = mac(int(bits, 2).to_bytes(20, "big"), b"lychgate backup key 1")
    return key, mac(key, b"lychgate backup key id 1")[:8].hex()


def seal_line(code, manifest):
    key, name = key_of(code)
    return f"seal {name} {mac(key, manifest).hex()}\n".encode()


def read(path):
    with tarfile.open(path) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


def split_manifest(text):
    head, sep, seal = text.rpartition(b"\nseal ")
    return (head + b"\n", b"seal " + seal) if sep else (text, b"")


def header(name, size):
    h = bytearray(512)
    h[0 : len(name)] = name.encode()
    h[100:107], h[108:115], h[116:123] = b"0000600", b"0000000", b"0000000"
    h[124:135], h[136:147], h[148:156] = b"%011o" % size, b"0" * 11, b" " * 8
    h[156] = ord("0")
    h[257:265] = b"ustar\00000"
    h[148:155] = b"%06o\0" % sum(h)
    return bytes(h)


def entry(name, data):
    return header(name, len(data)) + data + b"\0" * (-len(data) % 512)


def rank(name):
    return next((i for i, prefix in enumerate(ORDER) if name == prefix or (prefix[-1] == "/" and name.startswith(prefix))), len(ORDER)), name


def replace_section(rows, which, data):
    parts = rows.split(b"\n\\.\n")
    parts[SECTIONS.index(which)] = data
    return b"\n\\.\n".join(parts)


def make(source, target, changes):
    files = read(source)
    old = split_manifest(files.pop("MANIFEST"))[1]
    seal, number = "none", 2
    for change in changes:
        what, _, value = change.partition("=")
        if what == "seal":
            seal = value
        elif what == "format":
            number = int(value)
        elif what.startswith("rows:") and what.endswith("-"):
            parts = files["database.copy"].split(b"\n\\.\n")
            del parts[SECTIONS.index(what[5:-1])]
            files["database.copy"] = b"\n\\.\n".join(parts)
        elif what.startswith("rows:"):
            files["database.copy"] = replace_section(files["database.copy"], what[5:], open(value, "rb").read().removesuffix(b"\n"))
        elif what.startswith("info:"):
            info = json.loads(files["BACKUP.json"])
            info[what[5:]] = json.loads(value)
            files["BACKUP.json"] = json.dumps(info).encode()
        elif not value and what.endswith("-"):
            del files[what[:-1]]
        else:
            files[what] = open(value, "rb").read()
    manifest = b"lychgate-backup %d\n" % number
    with open(target, "wb") as out:
        for name in sorted(files, key=rank):
            out.write(entry(name, files[name]))
            manifest += f"{hashlib.sha256(files[name]).hexdigest()} {len(files[name])} {name}\n".encode()
        manifest += f"end {hashlib.sha256(manifest).hexdigest()}\n".encode()
        if seal == "keep":
            manifest += old
        elif seal.startswith("copy:"):
            manifest += split_manifest(read(seal[5:])["MANIFEST"])[1]
        elif seal != "none":
            manifest += seal_line(seal, manifest)
        out.write(entry("MANIFEST", manifest) + b"\0" * 1024)


def check(path, code):
    manifest, seal = split_manifest(read(path)["MANIFEST"])
    return 0 if seal == seal_line(code, manifest) else 1


if __name__ == "__main__":
    if sys.argv[1] == "check":
        sys.exit(check(sys.argv[2], sys.argv[3]))
    if sys.argv[1] == "rows":
        sys.stdout.buffer.write(read(sys.argv[2])["database.copy"].split(b"\n\\.\n")[SECTIONS.index(sys.argv[3])] + b"\n")
        sys.exit()
    make(sys.argv[2], sys.argv[3], sys.argv[4:])
