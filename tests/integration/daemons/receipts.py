# SPDX-License-Identifier: Apache-2.0
"""receipts.py DIR: see test_receipts.sh. Receipts as lych-audit proves and judges them, and a third person beside it."""
import base64
import contextlib
import hashlib
import json
import os
import random
import re
import socket
import subprocess
import time

import seals
import third_person
from seals import BUILD, D, Log, Producer, Scribe, need, public_of, sign
from third_person import Note, Refused, leaf_hash, node

NONE = base64.b64encode(bytes(32)).decode()
DOCUMENT = {"v": 1, "job": 7, "state": "succeeded", "note": "\u2028\u202e \"unmapped\": — \\ \x1b", "spec": {"bytes": 2, "sha256": "0" * 64}}

# ---- the third person against the published vectors

# of certificate transparency: the inputs, the roots of the first n, paths and consistency
LEAVES = [bytes.fromhex(x) for x in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")]
ROOTS = [bytes.fromhex(x) for x in (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c", "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328")]
FIRST = ("96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7", "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
         "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4")
SIXTH = ("bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b", "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
         "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7")
INCLUSION = [(1, 8, FIRST), (6, 8, SIXTH)]
CONSISTENCY = [(1, 1, ()), (1, 8, FIRST), (6, 8, ("0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",) + SIXTH[1:]),
               (2, 5, (FIRST[1], SIXTH[0]))]
# RFC 8032, 7.1: public key, message, signature (openssl's command line signs and reads no empty file)
ED25519 = [("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
           ("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a")]


def refused(what, fn, *args):
    try:
        fn(*args)
    except (Refused, ValueError, KeyError):
        need(True, what)
    else:
        need(False, f"{what}: the third person takes it")


def t_vectors():
    def path(hexes):
        return [bytes.fromhex(x) for x in hexes]

    need(node(leaf_hash(LEAVES[0]), leaf_hash(LEAVES[1])) == ROOTS[1], "RFC 6962: a node")
    for n, size, hexes in INCLUSION:
        leaf = leaf_hash(LEAVES[n - 1])
        need(third_person.root_of_inclusion(leaf, n - 1, size, path(hexes)) == ROOTS[size - 1], f"RFC 6962: leaf {n} of {size}")
        need(third_person.root_of_inclusion(leaf_hash(b"x"), n - 1, size, path(hexes)) != ROOTS[size - 1], "another leaf")
        refused("a path too short", third_person.root_of_inclusion, leaf, n - 1, size, path(hexes[:-1]))
        refused("a path too long", third_person.root_of_inclusion, leaf, n - 1, size, path(hexes + hexes[:1]))
    for old, new, hexes in CONSISTENCY:
        third_person.check_consistency(old, ROOTS[old - 1], new, ROOTS[new - 1], path(hexes))
        refused("another root", third_person.check_consistency, old, ROOTS[old], new, ROOTS[new - 1], path(hexes))
        refused("a path too long", third_person.check_consistency, old, ROOTS[old - 1], new, ROOTS[new - 1], path(hexes + FIRST[:1]))
    for public, message, signature in ([bytes.fromhex(x) for x in v] for v in ED25519):
        need(third_person.is_signed(public, message, signature), "RFC 8032")
        need(not third_person.is_signed(public, message + b"x", signature), "RFC 8032: another message")
        need(not third_person.is_signed(public, message, signature[:-1] + bytes([signature[-1] ^ 1])), "RFC 8032: another signature")


# ---- lych-audit receipt

def judge(text, pin, *options, path=f"{D}/file", seconds=20):
    if text is not None:
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
    began = time.monotonic()
    r = subprocess.run([BUILD + "/lych-audit", "receipt", path, "--pin", pin, *options], capture_output=True, check=False, timeout=seconds,
                       cwd="/", env={"PATH": "/nowhere"}, stdin=subprocess.DEVNULL)
    need(time.monotonic() - began < seconds, "it waits for nobody")
    return r.returncode, r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace")


def verdict(what, want, text, pin, **more):
    code, out, err = judge(text, pin, "--json", **more)
    need(code == want and not err, f"{what}: exit {want} was expected, {code} it is: {out}{err}")
    j = json.loads(out)
    need(j["verdict"] == ("ok", "tampered", "truncated", "unsealed", "unknown")[want] and (want == 0 or (j["detail"] and j["error_code"] and "receipt" not in j)),
         f"{what}: {j}")
    return j


def event(producer, name, document=None):
    producer.last += 1
    job = {"metadata": {"correlation_uid": "7"}} if document else {}
    producer.sock.send(json.dumps({"pseq": producer.last, "event": {"event": name, **job, **({"unmapped": document} if document else {})}}).encode())
    while json.loads(producer.sock.recv(65536))["ack"] < producer.last:
        pass


def vessel_of(scribe):
    p = Producer.__new__(Producer)
    p.stream = "aaaaaaaa-1111-4222-8333-444444444444"
    p.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    p.sock.settimeout(20)
    p.sock.connect(scribe.sockets + "/scribe.sock")
    p.sock.send(json.dumps({"hello": 1, "prod": "vessel", "stream": p.stream}).encode())
    p.last = json.loads(p.sock.recv(65536))["last"]
    return p


def make(log):
    """Three lives, a receipt in the second, and its like from a producer who has none to give. The first public key."""
    os.mkdir(log, 0o700)
    for life in range(3):
        s = Scribe(log)
        need(s.is_ready, f"it starts: {s.said()}")
        queue = Producer(s)
        queue.send(7)
        if life == 1:
            event(vessel_of(s), "job.receipt", DOCUMENT)
            event(queue, "job.receipt", DOCUMENT)
            event(vessel_of(s), "job.removed", DOCUMENT)
        queue.send(3)
        need(s.stop() == 0, "a clean stop")
    return re.search(r"genesis=(\S+)", s.said())[1].strip('"')


def proof(log, seq, *options):
    r = subprocess.run([BUILD + "/lych-audit", "proof", log, "--record", str(seq), *options], capture_output=True, text=True, check=False)
    need(r.returncode == 0, f"record {seq}: {r.stderr}")
    return r.stdout


def again(j):
    """As lych-audit writes it."""
    return json.dumps(j, ensure_ascii=False, separators=(",", ":")) + "\n"


def t_changed(text, other, pin):
    """Each change that means something is refused by both; what only is another spelling by lych-audit."""
    good = json.loads(text)

    def both(what, want, **new):
        bad = again({**good, **new})
        verdict(what, want, bad, pin)
        refused(what, third_person.receipt, bad, pin)

    line = good["line"].replace('"succeeded"', '"failed"')
    both("a changed record", 1, line=line)
    both("a changed record and its hash", 1, line=line, leaf=leaf_hash(line.encode()).hex())
    both("another place", 1, seq=good["seq"] + 1)
    both("another path", 1, path=good["path"][::-1])
    both("no path", 1, path=[])
    both("a path that is longer", 1, path=good["path"] + good["path"][:1])
    both("the checkpoint of another log", 1, checkpoint=other["checkpoint"])
    both("checkpoint and keys of another log", 1, checkpoint=other["checkpoint"], keys=other["keys"], genesis=other["genesis"])
    both("keys of another log", 1, keys=other["keys"])
    both("a key left out", 3, keys=good["keys"][:1] + good["keys"][2:])
    both("the last keys left out", 3, keys=good["keys"][:1])
    both("no keys", 1, keys=[])
    both("a signature of another", 1, checkpoint=re.sub(r"\ntime \d", "\ntime 3", good["checkpoint"]))
    forged = Note(good["checkpoint"])
    seed = bytes(range(32))
    ident = hashlib.sha256(forged.origin.encode() + b"\n\1" + public_of(seed)).digest()[:4]
    both("a checkpoint that somebody else signed", 1,
         checkpoint=forged.text.decode() + "\n— " + forged.origin + " " + base64.b64encode(ident + sign(forged.text, seed)).decode() + "\n")
    verdict("another genesis than that of the keys", 1, again({**good, "genesis": other["genesis"]}), pin)
    verdict("another key is pinned", 1, text, other["genesis"])
    verdict("no key of anybody is pinned", 1, text, NONE)
    refused("another key is pinned", third_person.receipt, text, other["genesis"])

    for what, bad in (("a member more", again({**good, "more": 1})), ("a member less", again({k: v for k, v in good.items() if k != "leaf"})),
                      ("a member twice", text.replace('"seq":', '"seq":1,"seq":', 1)), ("another order", again(dict(reversed(good.items())))),
                      ("blanks", json.dumps(good, ensure_ascii=False)), ("another spelling", json.dumps(good, separators=(",", ":"))),
                      ("behind it", text + "{}"), ("two lines more", text + "\n"), ("before it", " " + text), ("no JSON", "receipt\n"), ("another proof", text.replace("inclusion", "consistency")),
                      ("a checkpoint that is none", again({**good, "checkpoint": "x"})), ("a long string", again({**good, "genesis": "A" * 500000})),
                      ("a path of many", again({**good, "path": good["path"][:1] * 5000})), ("a key that is none", again({**good, "keys": ["x\n\ny\n"]})),
                      ("keys that begin twice", again({**good, "keys": good["keys"][:1] + good["keys"]})),
                      ("null", again({**good, "line": None})), ("not UTF-8", text.encode().replace(b"succ", b"\xff\xfec"))):
        verdict(what, 4, bad, pin)
    for number in ("NaN", "Infinity", "-1", "0", "1e3", "1.0", "007", "9" * 19, "9" * 400, '"7"', "true", "", "9223372036854775808"):
        verdict(f"seq {number[:20]}", 4, re.sub(r'"seq":\d+', f'"seq":{number}', text, count=1), pin)
    for at in sorted({0, 1, len(text) // 2, len(text) - 2, len(text) - 1, *random.sample(range(len(text) - 2), 25)}):
        verdict(f"cut at {at}", 2, text[:at].encode(), pin)
    raw = text.encode()
    for at in random.sample(range(len(raw) - 1), 60):
        bad = raw[:at] + bytes([raw[at] ^ 1 << random.randrange(8)]) + raw[at + 1:]
        code, out, _ = judge(bad, pin)
        need(code in (1, 2, 3, 4), f"byte {at} of {bad[at - 20:at + 20]!r}: {code}: {out}")


def t_epochs(text):
    """Whoever has the key of an hour signs what they like, of that hour. Three keys, which end at 10 and 20 records."""
    good = json.loads(text)
    origin, seeds = Note(good["checkpoint"]).origin, [bytes([i]) * 32 for i in (1, 2, 3)]
    public = [base64.b64encode(public_of(seed)).decode() for seed in seeds]

    def note(size, root, epoch, minute, *more):
        said = "\n".join((origin, str(size), base64.b64encode(root).decode(), f"epoch {epoch}", f"time 2026-01-01T00:{minute:02}:00.000Z", "prev " + "0" * 64, *more)) + "\n"
        ident = hashlib.sha256(origin.encode() + b"\n\1" + public_of(seeds[epoch])).digest()[:4]
        return said + "\n— " + origin + " " + base64.b64encode(ident + sign(said.encode(), seeds[epoch])).decode() + "\n"
    none = bytes(32)
    keys = [note(1, none, 0, 0, "genesis " + public[0]), note(10, none, 0, 10, "next " + public[1]), note(20, none, 1, 20, "next " + public[2])]

    def forged(seq, size, epoch, minute):
        line = re.sub(r'"seq":\d+', f'"seq":{seq}', good["line"], count=1)
        for n in range(64):  # as long as the tree is high
            path = [hashlib.sha256(bytes([i])).digest() for i in range(n)]
            with contextlib.suppress(third_person.Refused):
                root = third_person.root_of_inclusion(leaf_hash(line.encode()), seq - 1, size, path)
                break
        return again({**good, "seq": seq, "line": line, "leaf": leaf_hash(line.encode()).hex(), "path": [x.hex() for x in path],
                      "checkpoint": note(size, root, epoch, minute), "genesis": public[0], "keys": keys})
    for seq, size, epoch, minute, want in ((5, 8, 0, 5, 0), (10, 10, 0, 10, 0), (11, 15, 1, 15, 0), (20, 20, 1, 20, 0), (21, 21, 2, 20, 0), (30, 99, 2, 50, 0),
                                           (5, 8, 1, 5, 1), (5, 8, 1, 15, 1), (5, 8, 2, 50, 1), (11, 15, 1, 9, 1), (11, 21, 1, 15, 1), (11, 15, 1, 21, 1), (11, 19, 2, 30, 1), (21, 22, 2, 19, 1),
                                           (5, 11, 0, 5, 1), (5, 8, 0, 11, 1), (5, 15, 1, 15, 3), (10, 10, 1, 15, 3), (11, 30, 2, 30, 3), (20, 21, 2, 20, 3)):
        what = f"record {seq} by {size} records of key {epoch} at minute {minute}"
        bad = forged(seq, size, epoch, minute)
        verdict(what, want, bad, public[0])
        if want:
            refused(what, third_person.receipt, bad, public[0])
        else:
            need(third_person.receipt(bad, public[0])[0] == DOCUMENT, what)
    more = {**json.loads(forged(5, 8, 0, 5)), "keys": [keys[0], note(9, none, 0, 9), *keys[1:]]}
    verdict("a seal that has no key", 4, again(more), public[0])


def t_files(text, pin):
    path = f"{D}/odd"
    os.symlink(f"{D}/file", path)
    judge(text, pin)
    verdict("a symbolic link", 4, None, pin, path=path)
    os.unlink(path)
    os.mkfifo(path)
    verdict("a pipe that nobody writes to", 4, None, pin, path=path)
    os.unlink(path)
    verdict("nothing", 4, None, pin, path=path)
    verdict("a directory", 4, None, pin, path=D)
    verdict("a device", 4, None, pin, path="/dev/zero")
    with open(path, "wb") as f:
        f.truncate((65 << 20) + 1)
    verdict("more than is taken", 4, None, pin, path=path)
    verdict("nothing in it", 2, b"", pin)
    for options in ((), ("--pin", "x"), ("--pin", pin, "--record", "1"), ("--pin", pin, "--anchor", "x"), ("--pin", pin, "--known", "1"), ("--pin", pin, "more")):
        r = subprocess.run([BUILD + "/lych-audit", "receipt", f"{D}/file", *options], capture_output=True, text=True, check=False)
        need(r.returncode == 2 and not r.stdout and r.stderr, f"usage: {options}: {r.returncode}")


def main():
    t_vectors()
    pin = make(f"{D}/log")
    make(f"{D}/other")
    log = Log(f"{D}/log")
    records = {(j["prod"], j["event"]): j["seq"] for j in map(json.loads, log.lines)}
    seq = records["vessel", "job.receipt"]
    text, other = proof(f"{D}/log", seq), json.loads(proof(f"{D}/other", seq))
    need(again(json.loads(text)) == text, "as this test writes one")
    t_changed(text, other, pin)
    t_files(text, pin)
    verdict("a record of who has no receipts to give", 4, proof(f"{D}/log", records["queue", "job.receipt"]), pin)
    verdict("another record of the vessel's", 4, proof(f"{D}/log", records["vessel", "job.removed"]), pin)

    # it holds, by each checkpoint of its own key that has it; and the newest of all goes on from the oldest of these
    notes = [n for n in (Note(s[:-1]) for s in log.seals) if n.size >= seq]
    own = {n.size for n in notes if n.more["epoch"] == notes[0].more["epoch"]}
    sizes = sorted(own)
    later = sorted({n.size for n in notes} - own)
    need(sizes and len(later) > 1, f"checkpoints: {sizes}, {later}")
    need(Note(json.loads(text)["checkpoint"]).size == sizes[0], "the first that has it")
    for size in later:
        r = subprocess.run([BUILD + "/lych-audit", "proof", f"{D}/log", "--record", str(seq), "--to", str(size)], capture_output=True, text=True, check=False)
        need(r.returncode == 4 and not r.stdout and "of a later key" in r.stderr, f"by {size}: {r}")
    t_epochs(text)
    document, digest = third_person.receipt(text, pin)
    need(document == DOCUMENT, f"what it says: {document}")
    for size in sizes:
        held = proof(f"{D}/log", seq, "--to", str(size))
        j = verdict(f"by the checkpoint of {size}", 0, held, pin)
        need((j["receipt"], j["receipt_sha256"], j["seq"], j["sealed"]) == (document, digest, seq, size), f"what it says: {j}")
        need(third_person.receipt(held, pin) == (document, digest), "the third person says the same")
    r = subprocess.run([BUILD + "/lych-audit", "proof", f"{D}/log", "--from", str(sizes[0]), "--to", str(later[-1])], capture_output=True, text=True, check=True)
    need(third_person.check(r.stdout, pin) == (sizes[0], later[-1]), "it goes on")
    code, out, _ = judge(text, pin)
    need(code == 0 and out.startswith(f"ok  record {seq} of log ") and digest in out and "\x1b" not in out and len(out.splitlines()) == 4, f"for people: {out}")
    print(f"receipts: {seals.checks} checks")


if __name__ == "__main__":
    main()
