# SPDX-License-Identifier: Apache-2.0
"""Run by test_git_pack.sh: git_pack.py PACK_READ DIR. Each function named t_* is one case."""
import hashlib
import os
import random
import struct
import subprocess
import sys
import traceback
import zlib

READ, D = sys.argv[1:3]
REPO = D + "/repo"
rng = random.Random(52)


def git(*args, data=None, repo=REPO):
    out = subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "gc.auto=0", "-c", "pack.threads=1", "-C", repo, *args],
                         input=data, capture_output=True, check=False)
    assert out.returncode == 0, (args, out.stderr)
    return out.stdout


def read(*packs):
    """What is said of each: (its objects' lines, "" or why it was refused)."""
    paths = []
    for i, pack in enumerate(packs):
        paths.append(f"{D}/{i}.pack")
        with open(paths[-1], "wb") as f:
            f.write(pack)
    out = subprocess.run([READ, *paths], capture_output=True, text=True, check=False)
    assert out.returncode == 0, (out.returncode, out.stderr[-2000:])
    said, lines = [], []
    for line in out.stdout.splitlines():
        if line.startswith(("ok ", "refused ")):
            said.append((lines, line.partition(": ")[2]))
            lines = []
        else:
            lines.append(line)
    assert len(said) == len(packs)
    return said


def refused(pack, why):
    [(_, said)] = read(pack)
    assert why in said, (why, said)


def signed(body):
    return body + hashlib.sha1(body).digest()


def pack_of(*entries):
    return signed(b"PACK" + struct.pack(">II", 2, len(entries)) + b"".join(entries))


def head(kind, n):
    out, n, byte = b"", n >> 4, kind << 4 | n & 15
    while n:
        out, byte, n = out + bytes([byte | 0x80]), n & 0x7f, n >> 7
    return out + bytes([byte])


def entry(kind, data, before=b""):
    return head(kind, len(data)) + before + zlib.compress(data)


def size(n):
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7f | 0x80]), n >> 7
    return out + bytes([n])


COMMIT, TREE, BLOB, TAG, OFS, REF = 1, 2, 3, 4, 6, 7


def make_repo():
    subprocess.run(["git", "init", "-q", "-b", "main", REPO], check=True)
    lines = [f"line {i} {rng.random()}" for i in range(300)]
    for i in range(40):
        lines[rng.randrange(300)] = f"other {i}"
        os.makedirs(REPO + "/a/b", exist_ok=True)
        for name, text in (("text", "\n".join(lines)), ("a/b/number", str(i)), (f"a/file{i}", "x" * i)):
            with open(f"{REPO}/{name}", "w", encoding="ascii") as f:
                f.write(text)
        with open(REPO + "/bytes", "wb") as f:
            f.write(rng.randbytes(2000))
        git("add", "-A")
        git("commit", "-qm", f"number {i}")
    os.symlink("text", REPO + "/link")
    git("add", "-A")
    git("commit", "-qm", "a link")
    git("tag", "-am", "a tag", "v1")


make_repo()
ALL = sorted(git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname) %(objectsize)").decode().splitlines())


def all_objects(*how):
    return git("pack-objects", "--all", "--stdout", "-q", "--no-reuse-delta", *how, data=b"")


# ---- refused ----

def t_thin_packs_are_refused():
    revs = b"main\n^main~3\n"
    refused(git("pack-objects", "--thin", "--revs", "--stdout", "-q", "--delta-base-offset", data=revs), "a thin pack")
    [(lines, said)] = read(git("pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset", data=revs))
    assert not said and lines, said


def t_what_is_no_pack_is_refused():
    whole = all_objects()
    for pack, why in ((b"", "it is none"), (whole[:31], "it is none"), (b"KCAP" + whole[4:], "it is none"), (whole[:-1], "digest"),
                      (whole + b"x", "digest"), (signed(b"PACK" + struct.pack(">II", 3, 0)), "version"),
                      (signed(b"PACK" + struct.pack(">II", 2, 16385)), "16384 objects"),
                      (signed(b"PACK" + struct.pack(">II", 2, 1)), "ends early"),
                      (signed(whole[:-20] + b"more"), "behind its objects"),
                      (pack_of(entry(5, b"x")), "no known type"), (pack_of(entry(0, b"x")), "no known type"),
                      (pack_of(b"\xb0" + b"\xff" * 20), "head"), (pack_of(head(BLOB, 4) + zlib.compress(b"five!")), "no zlib stream"),
                      (pack_of(head(BLOB, 6) + zlib.compress(b"five!")), "no zlib stream"), (pack_of(head(BLOB, 5) + b"junk" * 9), "no zlib stream"),
                      (pack_of(head(BLOB, 5) + zlib.compress(b"five!")[:-1]), "no zlib stream")):
        refused(pack, why)


def t_objects_that_are_none_are_refused():
    for kind, data in ((TREE, b"100644 a\0short"), (TREE, b"100644 a/b\0" + b"i" * 20), (TREE, b"100644 \0" + b"i" * 20),
                       (TREE, b"999999 a\0" + b"i" * 20), (TREE, b"0100644 a\0" + b"i" * 20), (TREE, b"hello"),
                       (COMMIT, b"hello"), (COMMIT, b""), (COMMIT, b"tree " + b"0" * 40 + b"\nsecret"), (COMMIT, b"tree xyz\nauthor a\n"),
                       (TAG, b"object " + b"0" * 40 + b"\nx"), (TAG, b"tag x\n")):
        refused(pack_of(entry(kind, data)), "that is none")


def t_deltas_that_lead_elsewhere_are_refused():
    base = entry(BLOB, b"0123456789")
    far = len(base)

    def delta(data, before=None):
        return pack_of(base, entry(OFS, data, bytes([far]) if before is None else before))
    ten = size(10) + size(10)
    [(lines, said)] = read(delta(ten + b"\x90\x0a"))
    assert len(lines) == 2 and not said, said
    for data, why in ((b"", "no sizes"), (b"\xff" * 9, "no sizes"), (size(9) + size(1) + b"\x01x", "another base"),
                      (size(10) + size(5 << 20) + b"\x01x", "more than is taken"), (ten + b"\x00", "leads out"), (ten + b"\x05abc", "leads out"),
                      (ten + b"\x91\x05\x0a", "leads out"), (ten + b"\x90\x0b", "leads out"), (ten + b"\x90", "leads out"),
                      (ten + b"\x90\x0a\x01x", "leads out"), (ten + b"\x90\x09", "less than it says"), (ten + b"\x80", "leads out"),
                      (ten + b"\xff\xff\xff\xff\xff\xff\xff\xff", "leads out"), (ten, "less than it says")):
        refused(delta(data), why)
    for before, why in ((b"\0", "a delta's base"), (bytes([far - 1]), "whose base is no object"), (b"\x7f", "base"), (b"\xff" * 12 + b"\x7f", "base")):
        refused(delta(ten + b"\x90\x0a", before), why)
    # by name: itself, one that comes later, one that is nowhere
    for name in (hashlib.sha1(b"blob 10\0abcdefghij").digest(), bytes(20)):
        refused(pack_of(base, entry(REF, ten + b"\x0aabcdefghij", name), entry(BLOB, b"abcdefghij")), "a thin pack")


def t_bombs_end_at_the_caps():
    refused(pack_of(entry(BLOB, bytes((4 << 20) + 1))), "more than 4 MiB")
    refused(pack_of(*[entry(BLOB, bytes(4 << 20))] * 5), "more than 16 MiB")
    refused(pack_of(head(BLOB, 10) + zlib.compress(bytes(1 << 26))), "no zlib stream")
    # each says little, and makes much of it
    base = entry(BLOB, bytes(65536))
    copies = size(65536) + size(4 << 20) + b"\x80" * 64
    name = hashlib.sha1(b"blob 65536\0" + bytes(65536)).digest()
    refused(pack_of(base, *[entry(REF, copies, name)] * 5), "more than")


def t_deltas_upon_deltas_have_an_end():
    def chain(n):
        entries, last = [entry(BLOB, b"0123456789")], 0
        for i in range(n):
            last = len(entries[-1])
            entries.append(entry(OFS, size(10) + size(10) + b"\x90\x09\x01" + bytes([65 + i % 26]), bytes([last])))
        return pack_of(*entries)
    [(lines, said)] = read(chain(64))
    assert len(lines) == 65 and not said, said
    refused(chain(65), "more than 64 deltas")


def t_no_byte_of_a_pack_breaks_the_reader():
    whole = git("pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset", data=b"main\n^main~2\n")[:-20]
    bad = []
    for _ in range(1500):
        pack = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8))):
            pack[rng.randrange(8, len(pack))] ^= 1 << rng.randrange(8)
        bad.append(signed(bytes(pack[:rng.randrange(12, len(pack))] if rng.random() < .2 else pack)))
    right = sorted(read(signed(whole))[0][0])
    for lines, said in read(*bad):
        # what can be changed and is still a pack has another name, or says nothing (zlib's own bits)
        assert said or sorted(lines) == right or len(lines) == len(right), said


# ---- taken ----

def t_what_git_packs_is_read_as_git_names_it():
    for how in ((), ("--delta-base-offset",), ("--window=0",), ("--delta-base-offset", "--depth=50", "--window=100"), ("--depth=50", "--window=100", "--compression=0")):
        pack = all_objects(*how)
        [(lines, said)] = read(pack)
        assert not said and sorted(lines) == ALL, (how, said, len(lines), len(ALL))
    assert read(signed(b"PACK" + struct.pack(">II", 2, 0))) == [([], "")]


failed = 0
for case, run in [(n[2:], f) for n, f in list(globals().items()) if n.startswith("t_")]:
    try:
        run()
        print("ok", case, flush=True)
    except Exception:  # pylint: disable=broad-except
        failed += 1
        print("FAIL", case, flush=True)
        traceback.print_exc()
sys.exit(failed > 0)
