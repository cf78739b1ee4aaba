# SPDX-License-Identifier: Apache-2.0
"""A proof of `lych-audit proof`, checked by somebody who has the log's first public key and nothing else of ours:
RFC 9162's two algorithms over hashlib, C2SP's signed notes, signatures by `openssl pkeyutl`."""
import base64
import functools
import hashlib
import json
import subprocess
import tempfile

SPKI = bytes.fromhex("302a300506032b6570032100")  # RFC 8410, before the 32 bytes of an Ed25519 key


class Refused(Exception):
    pass


def need(ok, why):
    if not ok:
        raise Refused(why)


def leaf_hash(data):
    return hashlib.sha256(b"\0" + data).digest()


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


@functools.cache
def is_signed(public, message, signature):
    with tempfile.TemporaryDirectory() as d:
        for name, data in (("key", SPKI + public), ("text", message), ("signature", signature)):
            with open(f"{d}/{name}", "wb") as f:
                f.write(data)
        return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", f"{d}/key", "-rawin", "-in", f"{d}/text",
                               "-sigfile", f"{d}/signature"], capture_output=True, check=False).returncode == 0


class Note:
    """A checkpoint: text, an empty line, one signature."""
    def __init__(self, note):
        text, mark, line = note.partition("\n\n")
        need(mark and line.startswith("— ") and line.endswith("\n") and line.count("\n") == 1, "no signed note")
        self.raw, self.text = note.encode(), (text + "\n").encode()
        lines = text.split("\n")
        self.origin, self.size, self.root = lines[0], int(lines[1]), base64.b64decode(lines[2], validate=True)
        self.more = dict(x.split(" ", 1) for x in lines[3:])
        name, signature = line[2:-1].split(" ")
        need(name == self.origin, "signed by another name")
        signature = base64.b64decode(signature, validate=True)
        self.key_id, self.signature = signature[:4], signature[4:]

    def key(self, what):
        return base64.b64decode(self.more[what], validate=True)

    def signed_by(self, public):
        need(self.key_id == hashlib.sha256(self.origin.encode() + b"\n\1" + public).digest()[:4], "the id of another key")
        need(is_signed(public, self.text, self.signature), "a signature that does not verify")


class Key:
    """Of one epoch. It speaks for what was sealed between the seal that began it and the one that ended it, if that is known; and of the
    records for those that no key before it sealed."""
    def __init__(self, public, begin, before):
        self.public, self.begin, self.before, self.end = public, begin, before, None


def keys_of(proof, genesis):
    """epoch -> its key, from the first one on: each signs the next one."""
    keys, now, epoch = {}, None, None
    for note in map(Note, proof["keys"]):
        if "genesis" in note.more:
            need(note.key("genesis") == genesis, "keys begin that nobody pinned")
            now, epoch = Key(genesis, note, 0), int(note.more["epoch"])
        need(now is not None and int(note.more["epoch"]) == epoch, "an epoch is missing")
        note.signed_by(now.public)
        keys[epoch] = now
        if "next" in note.more:
            now.end = note
            now, epoch = Key(note.key("next"), note, note.size), epoch + 1
            keys[epoch] = now
    return keys


def checkpoint(note, keys):
    note = Note(note)
    epoch = int(note.more["epoch"])
    need(epoch in keys, "a checkpoint of an unknown epoch")
    key = keys[epoch]
    note.signed_by(key.public)
    need(key.begin.size <= note.size and key.begin.more["time"] <= note.more["time"], "a checkpoint that is older than its key")
    need(not key.end or (note.size <= key.end.size and note.more["time"] <= key.end.more["time"]), "a checkpoint that is younger than its key's end")
    return note


def up(fn, sn):
    return fn >> 1, sn >> 1


def root_of_inclusion(leaf, index, size, path):
    """RFC 9162, 2.1.3.2."""
    need(index < size, "behind the tree")
    fn, sn, r = index, size - 1, leaf
    for p in path:
        need(sn != 0, "a longer path than the tree is high")
        if fn & 1 or fn == sn:
            r = node(p, r)
            while not fn & 1 and fn:
                fn, sn = up(fn, sn)
        else:
            r = node(r, p)
        fn, sn = up(fn, sn)
    need(sn == 0, "a shorter path than the tree is high")
    return r


def check_consistency(first, old_root, second, new_root, path):
    """RFC 9162, 2.1.4.2."""
    need(0 < first <= second, "it goes backwards")
    if first == second:
        need(not path and old_root == new_root, "two trees of one size")
        return
    need(path, "no path")
    if first & (first - 1) == 0:
        path = [old_root] + path
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = up(fn, sn)
    fr = sr = path[0]
    for c in path[1:]:
        need(sn != 0, "a longer path than the tree is high")
        if fn & 1 or fn == sn:
            fr, sr = node(c, fr), node(c, sr)
            while not fn & 1 and fn:
                fn, sn = up(fn, sn)
        else:
            sr = node(sr, c)
        fn, sn = up(fn, sn)
    need(fr == old_root and sr == new_root and sn == 0, "the newer tree does not go on from the older one")


def check(text, genesis):
    """Refused, or what it proves: (record, its line), or (older, newer size)."""
    proof = json.loads(text)
    keys = keys_of(proof, base64.b64decode(genesis, validate=True))
    new = checkpoint(proof["checkpoint"], keys)
    path = [bytes.fromhex(x) for x in proof["path"]]
    if proof["proof"] == "inclusion":
        line = proof["line"].encode()
        need(json.loads(line)["seq"] == proof["seq"], "another record")
        need(proof["seq"] > keys[int(new.more["epoch"])].before, "a record that is older than the key of its checkpoint")
        need(root_of_inclusion(leaf_hash(line), proof["seq"] - 1, new.size, path) == new.root, "the record is not in the tree")
        return proof["seq"], line
    old = checkpoint(proof["from"], keys)
    need(old.origin == new.origin, "of another log")
    check_consistency(old.size, old.root, new.size, new.root, path)
    return old.size, new.size


def receipt(text, genesis):
    """Of the file of a receipt: what the vessel said of the job, and its digest."""
    _, line = check(text, genesis)
    record = json.loads(line)
    need(record["prod"] == "vessel" and record["event"] == "job.receipt", "the record is no receipt")
    raw = line[line.index(b',"unmapped":') + 12:-1]
    need(json.loads(raw) == record["unmapped"] and record["unmapped"]["job"] == int(record["metadata"]["correlation_uid"]), "the receipt of another job")
    return record["unmapped"], hashlib.sha256(raw).hexdigest()
