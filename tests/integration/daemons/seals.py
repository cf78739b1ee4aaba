# SPDX-License-Identifier: Apache-2.0
"""seals.py DIR: see test_seals.sh. A producer that speaks to lych-scribe, a forger of logs, and verdicts."""
import base64
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid

import third_person
from third_person import Note, Refused, leaf_hash, node

D, BUILD = sys.argv[1], os.environ["LYCH_BUILD"]
NAMES = {0: "ok", 1: "tampered", 2: "truncated", 3: "unsealed", 4: "unknown"}
PKCS8 = bytes.fromhex("302e020100300506032b657004220420")
checks = 0


def need(ok, what):
    global checks
    checks += 1
    if not ok:
        sys.exit(f"FAIL: {what}")


def until(what, fn, seconds=30):
    end = time.monotonic() + seconds
    while not fn():
        if time.monotonic() > end:
            sys.exit(f"FAIL: {what}: not within {seconds} s")
        time.sleep(0.05)


class Scribe:
    """One life of a scribe over a directory."""
    def __init__(self, log, *options):
        self.log, self.sockets = log, f"{D}/sock"
        open(f"{D}/scribe.log", "w", encoding="utf-8").close()
        self.errors = open(f"{D}/scribe.log", "a+", encoding="utf-8")  # both of us: it writes at the end
        r, w = os.pipe()
        self.process = subprocess.Popen([BUILD + "/lych-scribe", "--dir", log, "--socket-dir", self.sockets, "--ready-fd", str(w), *options],
                                        pass_fds=[w], stderr=self.errors)
        os.close(w)
        self.ready = os.fdopen(r, "rb", buffering=0)  # it goes on to write there
        self.is_ready = b"READY=1" in self.ready.read(64)
        if not self.is_ready:
            self.code = self.process.wait(30)

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(30)


class Producer:
    def __init__(self, scribe, stream=None):
        self.stream = stream or str(uuid.uuid4())
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(20)
        self.sock.connect(scribe.sockets + "/scribe.sock")
        self.sock.send(json.dumps({"hello": 1, "prod": "queue", "stream": self.stream}).encode())
        self.last = json.loads(self.sock.recv(65536))["last"]

    def post(self, n):
        for _ in range(n):
            self.last += 1
            self.sock.send(json.dumps({"pseq": self.last, "event": {"event": "test.event", "n": self.last}}).encode())

    def send(self, n=1):
        self.post(n)
        while json.loads(self.sock.recv(65536))["ack"] < self.last:
            pass


def refuses(log, what, why="LYCH-AUDIT-008"):
    """A scribe does not go on with it."""
    s = Scribe(log)
    need(not s.is_ready, f"{what}: the scribe starts on it")
    need(s.code == 78 and why in s.said(), f"{what}: exit {s.code}: {s.said()}")


def verify(log, *options):
    r = subprocess.run([BUILD + "/lych-audit", "verify", log, "--json", *options], capture_output=True, text=True, check=False)
    j = json.loads(r.stdout)
    need(j["verdict"] == NAMES[r.returncode], f"exit {r.returncode}, verdict {j['verdict']}")
    return r.returncode, j


def verdict(what, want, log, *options):
    got, j = verify(log, *options)
    need(got == want, f"{what}: {NAMES[want]} was expected, {NAMES[got]} it is: {j['detail']}")
    need(want == 0 or j["detail"], f"{what}: no reason")
    return j


# ---- a log as bytes

class Log:
    def __init__(self, path):
        self.path = path
        self.lines = b"".join(open(f, "rb").read() for f in sorted(glob.glob(path + "/segment-*"))).splitlines()
        self.seals = self.notes()
        self.keys = self.read(".keys")

    def read(self, name):
        with open(f"{self.path}/{name}", "rb") as f:
            return f.read()

    def notes(self):
        text = self.read("seals").decode()
        return re.findall(r"lychgate\.audit/.*?\n\n— .*?\n\n", text, re.S)

    def copy(self, name):
        """Another directory with what this object says."""
        path = f"{D}/{name}"
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path, 0o700)
        for file, data in (("segment-0000000001.jsonl", b"".join(x + b"\n" for x in self.lines)), ("seals", "".join(self.seals).encode()),
                           (".keys", self.keys)):
            if data is not None:
                with open(f"{path}/{file}", "wb") as f:
                    f.write(data)
        return path

    def changed(self, **what):
        other = object.__new__(Log)
        other.__dict__ = {**self.__dict__, **what}
        return other


def rehashed(lines, since=0):
    """The chain made to hold again, numbers too: what whoever can write the file can do."""
    out, prev, numbers = [], "0" * 64, {}
    for i, line in enumerate(lines):
        prod = re.search(rb'"prod":"([a-z]+)","stream":"([^"]+)"', line).groups()
        numbers[prod] = numbers.get(prod, 0) + 1
        line = re.sub(rb'"seq":\d+,"prev":"[0-9a-f]+"', b'"seq":%d,"prev":"%s"' % (i + 1, prev.encode()), line, count=1)
        line = re.sub(rb'"pseq":\d+', b'"pseq":%d' % numbers[prod], line, count=1)
        prev = leaf_hash(line).hex()
        out.append(line)
    return out


def root(leaves):
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return node(root(leaves[:k]), root(leaves[k:]))


def public_of(seed):
    der = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"], input=PKCS8 + seed, capture_output=True, check=True).stdout
    return der[-32:]


def sign(text, seed):
    with open(f"{D}/forger", "wb") as f:
        f.write(PKCS8 + seed)
    with open(f"{D}/text", "wb") as f:
        f.write(text)
    return subprocess.run(["openssl", "pkeyutl", "-sign", "-keyform", "DER", "-inkey", f"{D}/forger", "-rawin", "-in", f"{D}/text"],
                          capture_output=True, check=True).stdout


def resealed(notes, lines, seed):
    """The same checkpoints of other lines, signed anew as far as one key can."""
    leaves, prev, out = [leaf_hash(x) for x in lines], "0" * 64, []
    for note in (Note(n[:-1]) for n in notes):
        text = re.sub(rb"\n[^\n]*\nepoch", b"\n" + base64.b64encode(root(leaves[:note.size])) + b"\nepoch", note.text, count=1)
        text = re.sub(rb"\nprev [0-9a-f]+\n", b"\nprev " + prev.encode() + b"\n", text, count=1)
        ident = hashlib.sha256(note.origin.encode() + b"\n\1" + public_of(seed)).digest()[:4]
        whole = text.decode() + "\n— " + note.origin + " " + base64.b64encode(ident + sign(text, seed)).decode() + "\n\n"
        prev = hashlib.sha256(whole.encode()).hexdigest()
        out.append(whole)
    return out


def seed_of(keys):
    """The private key of today, as a thief of the directory has it."""
    return next(keys[at + 24:at + 56] for at in (0, 512) if keys[at:at + 4] == b"lych")


# ---- the cases

def make(log, lives=4, each=12):
    """Some lives of a scribe; a clean stop each. The first public key."""
    os.mkdir(log, 0o700)
    producer = None
    for _ in range(lives):
        s = Scribe(log)
        need(s.is_ready, f"it starts: {s.said()}")
        producer = Producer(s, producer and producer.stream)
        producer.send(each)
        need(s.stop() == 0, "a clean stop")
    return re.search(r"genesis=(\S+)", s.said())[1].strip('"')


def t_attacks(log, genesis):
    whole = Log(log)
    lines, seals = whole.lines, whole.seals
    middle = len(lines) // 2
    thief = seed_of(whole.keys)
    j = verdict("as it is", 0, log)
    need(j["sealed"] == j["records"] == len(lines) and j["checkpoints"] == len(seals) and j["genesis"] == genesis and not j["pinned"], f"what it says: {j}")
    verdict("a copy", 0, whole.copy("copy"))
    verdict("with the key that was pinned", 0, log, "--pin", genesis)
    verdict("with another one", 1, log, "--pin", base64.b64encode(bytes(32)).decode())

    def log_of(name, new):
        return whole.changed(lines=new).copy(name)

    flipped = list(lines)
    flipped[middle] = flipped[middle].replace(b"test.event", b"test.evenx").replace(b"scribe.s", b"scribe.x")
    verdict("an edited record", 1, log_of("a", flipped))
    last = lines[:-1] + [lines[-1].replace(b'"scribe.stop"', b'"scribe.xtop"')]
    verdict("an edited last record, which the chain does not see", 1, log_of("a", last))
    refuses(f"{D}/a", "an edited last record")
    verdict("a record that is gone", 1, log_of("a", lines[:middle] + lines[middle + 1:]))
    verdict("a record twice", 1, log_of("a", lines[:middle] + [lines[middle - 1]] + lines[middle:]))
    verdict("two that changed places", 1, log_of("a", lines[:middle] + [lines[middle + 1], lines[middle]] + lines[middle + 2:]))
    out = verdict("twelve records taken out and the rest hashed anew", 1, log_of("a", rehashed(lines[:middle - 6] + lines[middle + 6:])))
    need(0 < out["first_bad_seq"] <= middle - 5, f"where: {out['first_bad_seq']}")
    refuses(f"{D}/a", "records taken out")
    verdict("the end cut", 2, log_of("a", lines[:-5]))
    refuses(f"{D}/a", "the end cut")
    verdict("an old copy put back, the checkpoints are newer", 2, log_of("a", lines[:Note(seals[3][:-1]).size]))
    pipe = whole.copy("a")
    os.unlink(f"{pipe}/segment-0000000001.jsonl")
    os.mkfifo(f"{pipe}/segment-0000000001.jsonl")
    verdict("a pipe in the place of a segment", 4, pipe)
    refuses(pipe, "a pipe in the place of a segment", "LYCH-AUDIT-002")
    verdict("no record left", 2, log_of("a", []))
    verdict("the log of another installation", 1, Log(f"{D}/other").changed(seals=seals, keys=whole.keys).copy("a"))

    def seals_of(new, **more):
        return whole.changed(seals=new, **more).copy("a")

    verdict("the last checkpoint cut", 3, seals_of(seals[:-1]))
    verdict("the last two cut", 3, seals_of(seals[:-2]))
    refuses(f"{D}/a", "checkpoints cut")
    verdict("a checkpoint left out", 3, seals_of(seals[:3] + seals[4:]))
    verdict("the first one left out", 3, seals_of(seals[1:]))
    verdict("no checkpoint left", 3, seals_of([]))
    refuses(f"{D}/a", "no checkpoint left")
    os.unlink(f"{D}/a/seals")
    verdict("no file of checkpoints", 3, f"{D}/a")
    os.unlink(f"{D}/a/.keys")
    refuses(f"{D}/a", "neither checkpoints nor key")
    forged = [re.sub(r"\nnext \S+\n", "\nnext " + base64.b64encode(public_of(bytes(32))).decode() + "\n", s) for s in seals]
    verdict("a key of an epoch that is the forger's", 1, seals_of(forged))
    verdict("checkpoints in another order", 3, seals_of(seals[:3] + [seals[4], seals[3]] + seals[5:]))
    verdict("a checkpoint twice", 1, seals_of(seals[:3] + [seals[2]] + seals[3:]))
    refuses(seals_of(seals, keys=bytes(1024)), "the key is gone")

    # a thief of today's key: not one record of an earlier epoch
    new = rehashed(lines[:10] + [lines[10].replace(b"test.event", b"nothing.at.all")] + lines[11:])
    verdict("rewritten and sealed anew with today's key", 1, whole.changed(lines=new, seals=resealed(seals, new, thief)).copy("a"))
    verdict("the last epoch alone rewritten so", 1, whole.changed(lines=new, seals=seals[:-1] + resealed(seals, new, thief)[-1:]).copy("a"))

    # what only a key that lies elsewhere shows: all of it made anew
    verdict("another log in its place", 0, f"{D}/other")
    verdict("another log in its place, and the key was pinned", 1, f"{D}/other", "--pin", genesis)


def t_rolled_back():
    """The whole directory as it was, keys too, and gone on with: seen by a checkpoint that lay elsewhere."""
    log, old, kept = f"{D}/rolled", f"{D}/yesterday", f"{D}/kept"
    first = make(log, lives=2)
    shutil.copytree(log, old)
    s = Scribe(log)
    Producer(s).send(5)
    need(s.stop() == 0, "a clean stop")
    newest = Log(log).seals[-1]
    for text in (newest, newest[:-1], "".join(Log(log).seals)):
        with open(kept, "w", encoding="utf-8") as f:
            f.write(text)
        verdict("the log that it is of", 0, log, "--checkpoint", kept)
        verdict("yesterday's", 2, old, "--checkpoint", kept)
    verdict("and by nothing that is in it", 0, old, "--pin", first)
    s = Scribe(old)
    need(s.is_ready, f"it can be gone on with: {s.said()}")
    Producer(s).send(5)
    need(s.stop() == 0, "a clean stop")
    need(len(Log(old).lines) == len(Log(log).lines), "as many records")
    verdict("a fork from yesterday", 2, old, "--checkpoint", kept)
    for text in ("", "no checkpoint\n", newest.replace("epoch ", "epoch 0")):
        with open(kept, "w", encoding="utf-8") as f:
            f.write(text)
        r = subprocess.run([BUILD + "/lych-audit", "verify", log, "--checkpoint", kept], capture_output=True, text=True, check=False)
        need(r.returncode == 4 and not r.stdout and kept in r.stderr, f"no checkpoint: {r.stderr}")


def t_written_behind(log):
    """Records of somebody else behind the last checkpoint, as if minutes had passed: a scribe seals them, and says of what kind they are."""
    whole = Log(log)
    later = re.sub(rb'"up_ms":(\d+)', lambda m: b'"up_ms":%d' % (int(m[1]) + 200000), next(x for x in reversed(whole.lines) if b"test.event" in x))
    boot = re.search(rb'"boot":"[^"]+"', whole.lines[-1])[0]
    forged = [re.sub(rb'"boot":"[^"]+"', boot, x) for x in (next(x for x in reversed(whole.lines) if b"test.event" in x), later)]
    path = whole.changed(lines=rehashed(whole.lines + forged)).copy("behind")
    n = len(whole.lines)
    verdict("before a scribe starts", 3, path)
    s = Scribe(path)
    need(s.is_ready and s.stop() == 0, f"it goes on: {s.said()}")
    j = verdict("and afterwards", 3, path)
    need(j["unsealed_mark"] == n + 3 and j["sealed"] == j["records"], f"it is marked and sealed: {j}")
    mark = json.loads(Log(path).lines[n + 2])
    need((mark["event"], mark["from"], mark["to"]) == ("scribe.unsealed", n + 1, n + 2), f"the mark says which: {mark}")
    verdict("a person knows why", 0, path, "--known", str(n + 3))
    verdict("of another record", 3, path, "--known", str(n + 2))
    verdict("a record that is no mark", 4, log, "--known", "1")
    for options in (("--known", "0"), ("--known", "x"), ("--known", "1") * 65):
        r = subprocess.run([BUILD + "/lych-audit", "verify", path, *options], capture_output=True, text=True, check=False)
        need(r.returncode == 2 and not r.stdout, f"usage: {options}: {r.returncode}")
    marked = Log(path)
    without = marked.changed(lines=rehashed(marked.lines[:n + 2] + marked.lines[n + 3:])).copy("a")
    need(verify(without)[0] in (1, 2), "the mark can't be taken out any more")


def t_before_seals(log):
    """A log of a release that had none, made from this one: it is sealed from its next start on."""
    old = Log(log)
    bare = [re.sub(rb',"seal":"[0-9a-f]+"', b"", re.sub(rb',"tree":\[[^]]*\]', b"", x)) for x in old.lines]
    path = old.changed(lines=rehashed(bare), seals=[], keys=b"").copy("bare")
    os.unlink(path + "/seals"), os.unlink(path + "/.keys")
    j = verdict("a log without seals", 3, path)
    need("before Lychgate had any" in j["detail"] and j["genesis"] is None, f"it says so: {j}")
    s = Scribe(path)
    need(s.is_ready, f"a scribe takes it up: {s.said()}")
    need(s.stop() == 0, "a clean stop")
    j = verdict("sealed from then on", 0, path)
    need(j["sealed_from"] == len(bare) + 1 and j["sealed"] == j["records"] > len(bare), f"from where: {j}")
    sealed = Log(path)
    out = sealed.changed(lines=rehashed(sealed.lines[:5] + sealed.lines[6:])).copy("a")
    need(verify(out)[0] in (1, 2), "and what was before can't be changed any more")


def t_restored(log, genesis):
    """As lych restore leaves it: all but the private key, which is in no archive."""
    old = Log(log)
    path = old.changed(keys=b"restored\n", seals=old.seals[:-1]).copy("restored")
    s = Scribe(path)
    need(s.is_ready, f"it goes on: {s.said()}")
    need(s.stop() == 0, "a clean stop")
    fresh = re.search(r"genesis=(\S+)", s.said())[1].strip('"')
    need(fresh != genesis, "by new keys")
    s = Scribe(path)
    need(s.is_ready and s.stop() == 0, "and again")
    j = verdict("nobody vouches for the new keys", 3, path)
    need("other keys begin" in j["detail"], f"it says so: {j['detail']}")
    verdict("the old ones do not", 3, path, "--pin", genesis)
    verdict("a person does", 0, path, "--pin", fresh)


def t_proofs(log, genesis):
    whole = Log(log)
    sizes = sorted({Note(s[:-1]).size for s in whole.seals} - {0})

    def proof(*options):
        return subprocess.run([BUILD + "/lych-audit", "proof", log, *options], capture_output=True, text=True, check=False)

    for seq in range(1, len(whole.lines) + 1, 3):
        r = proof("--record", str(seq))
        need(r.returncode == 0, f"record {seq}: {r.stderr}")
        need(third_person.check(r.stdout, genesis) == (seq, whole.lines[seq - 1]), f"record {seq}: proved")
    for i, old in enumerate(sizes):
        for new in sizes[i:]:
            r = proof("--from", str(old), "--to", str(new))
            need(r.returncode == 0 and third_person.check(r.stdout, genesis) == (old, new), f"{old} to {new}: {r.stderr}")
    good = json.loads(proof("--record", "7").stdout)
    for what, bad in (("another line", {"line": good["line"].replace("test.event", "test.evenx")}), ("another path", {"path": good["path"][::-1]}),
                      ("a key left out", {"keys": good["keys"][:1] + good["keys"][2:]}), ("no path", {"path": []}),
                      ("another root", {"checkpoint": re.sub(r"\n\d+\n", "\n8\n", good["checkpoint"], count=1)})):
        try:
            third_person.check(json.dumps({**good, **bad}), genesis)
        except Refused:
            need(True, what)
        else:
            need(False, f"{what} is taken by the third person")
    for options in (("--record", str(len(whole.lines) + 1)), ("--from", "3"), ("--record", "3", "--to", "2"), ("--record", str(sizes[-1]), "--to", str(sizes[0]))):
        r = proof(*options)
        need(r.returncode == 4 and not r.stdout and r.stderr, f"no such thing: {options}: {r.returncode}")
    for options in ((), ("--record", "1", "--from", "2"), ("--record", "0")):
        need(proof(*options).returncode == 2, f"usage: {options}")
    cut = whole.changed(lines=whole.lines[:-2]).copy("a")
    r = subprocess.run([BUILD + "/lych-audit", "proof", cut, "--record", "1"], capture_output=True, text=True, check=False)
    need(r.returncode == 2 and not r.stdout, "no proof of a log that does not verify")


def t_killed():
    """kill -9 while events come, again and again: nothing acknowledged is missing, and it always verifies."""
    log = f"{D}/killed"
    os.mkdir(log, 0o700)
    stream, acked = str(uuid.uuid4()), 0
    for life in range(12):
        s = Scribe(log)
        need(s.is_ready, f"life {life}: {s.said()}")
        if life % 4:
            p = Producer(s, stream)
            need(p.last >= acked, f"life {life}: {p.last} of {acked} are there")
            p.send(1 + 5 * life)
            acked = p.last
            verdict(f"life {life}, live", 0, log)
            p.post(100 if life % 4 == 3 else 0)
        s.stop(signal.SIGKILL)
        verdict(f"life {life}, dead", 0, log)
    s = Scribe(log)
    last = Producer(s, stream).last
    need(last >= acked and s.stop() == 0, "the last life")
    need(sum(b"test.event" in x for x in Log(log).lines) == last, "each once")


def t_full():
    """256 records make a checkpoint, but not sooner than a second after the last one."""
    log = f"{D}/many"
    os.mkdir(log, 0o700)
    s = Scribe(log)
    p = Producer(s)
    before = len(Log(log).seals)

    def another():
        p.send(100)
        return len(Log(log).seals) > before
    until("a checkpoint for many records", another)
    j = verdict("live", 0, log)
    need(j["sealed"] > 256, f"sealed: {j['sealed']}")
    need(s.stop() == 0, "a clean stop")
    verdict("stopped", 0, log)


def main():
    genesis = make(f"{D}/log")
    make(f"{D}/other", lives=2)
    t_attacks(f"{D}/log", genesis)
    t_rolled_back()
    t_written_behind(f"{D}/log")
    t_before_seals(f"{D}/log")
    t_restored(f"{D}/log", genesis)
    t_proofs(f"{D}/log", genesis)
    t_killed()
    t_full()
    print(f"seals: {checks} checks")


if __name__ == "__main__":
    main()
