# SPDX-License-Identifier: Apache-2.0
"""anchors.py DIR: see test_anchors.sh. Each attack on a log that an anchor was kept of, and on the anchor, and its verdict."""
import base64
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import seals
from seals import BUILD, D, Log, Producer, Scribe, need, rehashed, root, seed_of, sign, until, verify
from third_person import Note, leaf_hash

ANCHOR = f"{D}/anchor.jsonl"


def lives(log, n, *options, each=12):
    os.makedirs(log, 0o700, exist_ok=True)
    for _ in range(n):
        s = Scribe(log, *options)
        need(s.is_ready, f"it starts: {s.said()}")
        Producer(s).send(each)
        need(s.stop() == 0, "a clean stop")


def verdict(what, want, found, log, *anchors):
    options = [x for a in anchors for x in ("--anchor", a)]
    got, j = verify(log, *options)
    need(got == want, f"{what}: exit {want} was expected, {got} it is: {j['detail']}")
    need(not anchors or j["anchors"][-1]["found"] == found, f"{what}: found {j['anchors']}")
    need(want == 0 or j["detail"], f"{what}: no reason")
    return j


def cannot_tell(what, log, anchor):
    r = subprocess.run([BUILD + "/lych-audit", "verify", log, "--anchor", anchor], capture_output=True, text=True, check=False, timeout=30)
    need(r.returncode == 4 and r.stdout.startswith("cannot tell  LYCH-AUDIT-009") and anchor in r.stdout, f"{what}: exit {r.returncode}: {r.stdout}")


def lines_of(path):
    with open(path, "rb") as f:
        return f.read().split(b"\n")[:-1]


def anchor_of(lines, name="changed.jsonl"):
    path = f"{D}/{name}"
    with open(path, "wb") as f:
        f.write(b"".join(x + b"\n" for x in lines))
    return path


def records(log, event):
    return [j for j in (json.loads(x) for x in Log(log).lines) if j["event"] == event]


def anew(whole, lines):
    """The seals of the last epoch made anew for other lines, by the key of that epoch, which a thief of today has."""
    seed, leaves = seed_of(whole.keys), [leaf_hash(x) for x in lines]
    notes = [Note(s[:-1]) for s in whole.seals]
    kept = [s for s, n in zip(whole.seals, notes) if n.more["epoch"] != notes[-1].more["epoch"]]
    ident = base64.b64decode(whole.seals[-1].rstrip("\n").rsplit(" ", 1)[1])[:4]
    note = notes[-1]
    text = re.sub(r"^([^\n]*)\n\d+\n[^\n]*\n", lambda m: f"{m[1]}\n{len(lines)}\n{base64.b64encode(root(leaves)).decode()}\n", note.text.decode(), count=1)
    text = re.sub(r"\nprev [0-9a-f]+\n", "\nprev " + hashlib.sha256(kept[-1].encode()).hexdigest() + "\n", text, count=1)
    both = base64.b64encode(ident + sign(text.encode(), seed)).decode()
    return kept + [f"{text}\n— {note.origin} {both}\n\n"]


def t_log():
    """The log: cut, rewritten, put back; each is ok without the anchor."""
    log, old = f"{D}/log", f"{D}/old"
    lives(log, 2, "--anchor", ANCHOR)
    shutil.copytree(log, old)
    lives(log, 2, "--anchor", ANCHOR)
    j = verdict("as it is", 0, "holds", log, ANCHOR)
    need(j["anchors"][0]["newest"] == j["records"] == len(Log(log).lines), f"up to the last record: {j}")
    need(len(lines_of(ANCHOR)) == j["anchors"][0]["checkpoints"] == 8, "a line for each checkpoint")
    need(os.stat(ANCHOR).st_mode & 0o777 == 0o600, "the file is its owner's alone")
    need([r["ok"] for r in records(log, "scribe.anchor")] == [True] * 4, "each life says that it stands")

    verdict("an old copy, which nothing in it shows", 0, None, old)
    j = verdict("an old copy put back", 2, "cut off", old, ANCHOR)
    need("cut off" in j["detail"], f"it says so: {j['detail']}")
    whole, n = Log(log), Note(Log(log).seals[4][:-1]).size
    cut = whole.changed(lines=whole.lines[:n], seals=whole.seals[:5]).copy("cut")
    verdict("the end cut with its checkpoints", 2, "cut off", cut, ANCHOR)
    shutil.rmtree(cut)
    os.mkdir(cut, 0o700)
    verdict("no log any more", 2, None, cut, ANCHOR)
    lives(cut, 2)
    verdict("another log in its place", 2, "other log", cut, ANCHOR)

    # put back, and gone on with: by who has no anchor, until it is longer than the anchor
    fork = f"{D}/fork"
    shutil.copytree(old, fork)
    lives(fork, 4, each=20)
    verdict("a fork, which nothing in it shows", 0, None, fork)
    j = verdict("a fork", 2, "rewritten", fork, ANCHOR)
    need("rewritten" in j["detail"], f"it says so: {j['detail']}")

    # and by the scribe itself: it says so, leaves the anchor as it is, and goes on
    before = lines_of(ANCHOR)
    lives(old, 1, "--anchor", ANCHOR)
    need(lines_of(ANCHOR) == before, "the evidence stays as it is")
    r = records(old, "scribe.anchor")[-1]
    need(not r["ok"] and "put back" in r["detail"], f"a record says it: {r}")
    s = Scribe(old, "--anchor-required", ANCHOR)
    need(not s.is_ready and s.code == 4 and "LYCH-AUDIT-009" in s.said(), f"a required one ends the start: {s.said()}")
    verdict("and the anchor's log", 0, "holds", log, ANCHOR)


def t_rewritten():
    """Records of the running epoch, by who has its key: hashed and sealed anew, which only the anchor shows."""
    log, anchor = f"{D}/running", f"{D}/running.jsonl"
    lives(log, 1, "--anchor", anchor)
    s = Scribe(log, "--anchor", anchor)
    p = Producer(s)
    n = len(Log(log).seals)

    def sealed():
        p.send(100)
        return len(Log(log).seals) > n
    until("a checkpoint for many records", sealed)
    until("it is in the anchor", lambda: len(lines_of(anchor)) == len(Log(log).seals) - 1)
    s.stop(signal.SIGKILL)
    whole = Log(log)
    size = Note(whole.seals[-1][:-1]).size
    lines = whole.lines[:size]
    verdict("as it was killed", 0, "holds", log, anchor)
    at = next(i for i in range(len(lines) - 100, len(lines)) if b"test.event" in lines[i])
    for what, new, found in (("38 records taken out", lines[:at] + lines[at + 38:], "cut off"),
                             ("one record changed", lines[:at] + [lines[at].replace(b"test.event", b"nothing.at")] + lines[at + 1:], "rewritten"),
                             ("38 others in their place", lines[:at] + lines[at + 38:] + [lines[at]] * 50, "rewritten")):
        new = rehashed(new)
        forged = whole.changed(lines=new, seals=anew(whole, new)).copy("forged")
        verdict(f"{what}, which nothing in it shows", 0, None, forged)
        verdict(what, 2, found, forged, anchor)


def t_anchor():
    """The anchor: cut, edited, forged, exchanged."""
    log, lines = f"{D}/log", lines_of(ANCHOR)
    name = os.path.basename(ANCHOR)
    os.mkdir(f"{D}/kept")

    def changed(new):
        return anchor_of(new, f"kept/{name}")
    j = verdict("its newest lines cut", 2, "shortened", log, changed(lines[:3]))
    need("it was cut" in j["detail"], f"it says so: {j['detail']}")
    verdict("a copy of another name, which the log does not know", 0, "holds", log, anchor_of(lines[:3]))
    middle = json.loads(lines[3])
    for what, line in (("a size", lines[3].replace(b'"size":%d' % middle["size"], b'"size":%d' % (middle["size"] + 1))),
                       ("a time", lines[3].replace(b'"time":"20', b'"time":"21')), ("no line", b"{}"), ("a note", b"# of mine"),
                       ("half a line", lines[3][:len(lines[3]) // 2] + b"x")):
        verdict(f"edited: {what}", 1, "forged", log, changed(lines[:3] + [line] + lines[4:]))
    forger = base64.b64encode(base64.b64decode(middle["signature"])[:4] + bytes(64)).decode()
    verdict("a line of a forger", 1, "forged", log, changed(lines + [lines[3].replace(middle["signature"].encode(), forger.encode())]))
    verdict("lines of another log", 2, "other log", log, changed(lines + lines_of(f"{D}/running.jsonl")[:1]))
    verdict("emptied, and the log says what it had", 2, "shortened", log, changed([]))
    empty = anchor_of([], "empty")
    cannot_tell("nothing in it, and the log says nothing of it", log, empty)
    cannot_tell("not there", log, f"{D}/nowhere")
    whole = Log(log)
    cut = whole.changed(lines=whole.lines[:Note(whole.seals[4][:-1]).size], seals=whole.seals[:5]).copy("shorter")
    unsealed = whole.changed(seals=whole.seals[:-1]).copy("unsealed")
    for other, found in ((empty, "empty"), (f"{D}/nowhere", "unreadable")):
        verdict(f"beside one that is {found}, first", 2, "cut off", cut, other, anchor_of(lines, "whole"))
        verdict(f"beside one that is {found}, last", 2, found, cut, anchor_of(lines, "whole"), other)
        verdict(f"one that is {found} hides no missing checkpoint", 3, found, unsealed, other)
        verdict(f"one that is {found} is no proof", 4, found, log, ANCHOR, other)
    verdict("a long line", 1, "forged", log, changed(lines + [b"x" * 2000]))
    with open(changed(lines), "ab") as f:
        f.write(b"x" * 2000)
    cannot_tell("a line without end", log, f.name)
    os.mkfifo(f"{D}/pipe")
    cannot_tell("a pipe", log, f"{D}/pipe")

    # what is no sin
    verdict("a line twice", 0, "holds", log, changed(lines[:4] + [lines[3]] + lines[4:]))
    verdict("an empty line", 0, "holds", log, changed(lines[:4] + [b""] + lines[4:]))
    verdict("a line left out", 0, "holds", log, changed(lines[:4] + lines[5:]))
    verdict("a line that was not finished, and behind it the next", 0, "holds", log, changed(lines[:4] + [lines[4][:99]] + lines[4:]))
    path = changed(lines)
    with open(path, "ab") as f:
        f.write(lines[-1][:50])
    verdict("a last line that was not finished", 0, "holds", log, path)


def t_in_its_place():
    """Something else where the anchor is to be: the log goes on, and says it; a required one ends the start."""
    log, place = f"{D}/placed", f"{D}/placed.jsonl"
    makers = {"a pipe": lambda: os.mkfifo(place, 0o600), "a link": lambda: os.symlink(ANCHOR, place), "a second name": lambda: os.link(ANCHOR, place),
              "a directory": lambda: os.mkdir(place), "writable by others": lambda: os.close(os.open(place, os.O_CREAT | os.O_WRONLY)),
              "a link to root's": lambda: os.symlink("/etc/passwd", place)}
    before = lines_of(ANCHOR)
    for what, make in makers.items():
        make()
        if what == "writable by others":
            os.chmod(place, 0o666)
        lives(log, 1, "--anchor", place)
        r = records(log, "scribe.anchor")[-1]
        need(not r["ok"] and "placed.jsonl" in r["detail"], f"{what}: the log says it: {r}")
        s = Scribe(log, "--anchor-required", place)
        need(not s.is_ready and s.code == 4 and "LYCH-AUDIT-009" in s.said(), f"{what}: a required one ends the start: {s.said()}")
        os.rmdir(place) if what == "a directory" else os.unlink(place)
    s = Scribe(log, "--anchor", "/etc/passwd")
    need(s.is_ready and s.stop() == 0 and not records(log, "scribe.anchor")[-1]["ok"], "a file of root's")
    need(lines_of(ANCHOR) == before, "nothing was written to what it led to")
    lives(log, 1, "--anchor", place)
    need(records(log, "scribe.anchor")[-1]["ok"], "and then it stands")
    verdict("the log", 0, "holds", log, place)
    for options in (("--anchor", "relative"), ("--anchor", place) * 5):
        s = Scribe(log, *options)
        need(not s.is_ready and s.code == 2, f"usage: {options}")
    s = Scribe(log, "--anchor", place, "--anchor", f"{D}/small/placed.jsonl")
    need(not s.is_ready and "two of the name" in s.said(), "two of one name")


def t_innocent():
    """Killed between checkpoint and anchor, in the middle of a line, again and again."""
    log, anchor = f"{D}/innocent", f"{D}/innocent.jsonl"
    lives(log, 2, "--anchor", anchor)
    lines = lines_of(anchor)
    for cut in (len(lines[-1]) + 1, 1, 40):
        os.truncate(anchor, os.stat(anchor).st_size - cut)
        lives(log, 1, "--anchor-required", anchor)
        verdict(f"its last {cut} bytes were not written", 0, "holds", log, anchor)
    for _ in range(6):
        s = Scribe(log, "--anchor", anchor)
        Producer(s).post(30)
        verdict("live", 0, "holds", log, anchor)
        s.stop(signal.SIGKILL)
        verdict("dead", 0, "holds", log, anchor)
    os.rename(anchor, f"{D}/full-stick.jsonl")
    lives(log, 1, "--anchor", anchor)
    verdict("a new stick, and the old one", 0, "holds", log, anchor, f"{D}/full-stick.jsonl")


def t_full():
    """The anchor's disk is full: the log goes on and says so; with room again the anchor does."""
    log, anchor, ballast = f"{D}/full", f"{D}/small/full.jsonl", f"{D}/small/ballast"
    lives(log, 1)
    s = Scribe(log, "--anchor", anchor)
    p = Producer(s)
    with open(ballast, "wb", buffering=0) as f:
        try:
            while True:
                f.write(bytes(4096))
        except OSError:
            pass

    def told(ok):
        def ask():
            p.send(100)
            return [r["ok"] for r in records(log, "scribe.anchor")][-1:] == [ok]
        return ask
    until("it stands at first", told(True))
    until("it fails", told(False))
    need("No space" in records(log, "scribe.anchor")[-1]["detail"], "why")
    os.unlink(ballast)
    until("it stands again", told(True))
    need(s.stop() == 0, "a clean stop")
    verdict("and nothing is wrong", 0, "holds", log, anchor)
    with open(ballast, "wb", buffering=0) as f:
        try:
            while True:
                f.write(bytes(4096))
        except OSError:
            pass
    s = Scribe(log, "--anchor-required", anchor)
    if s.is_ready:  # the last page had room for some lines
        p = Producer(s)
        try:
            until("a required one ends it", lambda: p.send(100))
        except (OSError, KeyError, ValueError):
            pass
        need(s.process.wait(30) == 4, "with exit 4")
    need("LYCH-AUDIT-009" in s.said(), f"it says why: {s.said()}")
    os.unlink(ballast)
    lives(log, 1, "--anchor-required", anchor)
    verdict("and the log is whole", 0, "holds", log, anchor)


def t_that_falls():
    """A required one that is emptied while it is in use ends the scribe, and the log says so before that."""
    log, anchor = f"{D}/falls", f"{D}/falls.anchor"
    os.mkdir(log, 0o700)
    s = Scribe(log, "--anchor-required", anchor)
    p = Producer(s)

    def stands():
        p.send(300)
        return [r["ok"] for r in records(log, "scribe.anchor")] == [True]
    until("it stands", stands)
    os.truncate(anchor, 0)
    try:
        until("it ends", lambda: p.send(300))
    except (OSError, KeyError, ValueError):
        pass
    need(s.process.wait(30) == 4, "with exit 4")
    last = records(log, "scribe.anchor")[-1]
    need(not last["ok"] and "it was cut while it was in use" in last["detail"], f"the log says it: {last}")
    lives(log, 1, "--anchor-required", anchor)
    need([r["ok"] for r in records(log, "scribe.anchor")] == [True, False, True], "and that another is there")
    verdict("and the log is whole", 0, "holds", log, anchor)


t_log()
t_that_falls()
t_rewritten()
t_anchor()
t_in_its_place()
t_innocent()
t_full()
print(f"anchors: {seals.checks} checks")
sys.exit(0)
