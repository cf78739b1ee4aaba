#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""authority.py PROFILE TABLE: who may do what in the pod that runs, tried in each room.

Each object of the house is tried from inside each container (probe_room by `podman exec`, with the
container's mounts, user, capabilities and filter) and from inside a job. What a room may do must go
through, so that a refusal elsewhere means something; everything else must be refused. The answers are
written to TABLE. Exit 1: a cell is not as it must be."""
import os
import socket
import subprocess
import sys

PROFILE, TABLE = sys.argv[1], sys.argv[2]
SOVEREIGN = PROFILE == "sovereign"
HOME, RUNTIME = os.path.expanduser("~"), os.environ["XDG_RUNTIME_DIR"]
DATA, SOCKETS = HOME + "/.local/share/lychgate", RUNTIME + "/lychgate"
V, S = "/var/lib/lychgate", "/run/lychgate"
ROOMS = ["vessel", "scribe", "tomb", "phylactery", "job"]
PROGRAM = {"vessel": "lych-vessel", "scribe": "lych-scribe", "tomb": "lych-tomb"}


def secret(name, *who):
    return (f"secret `lychgate_{name}`", [f"read=/run/secrets/lychgate_{name}"], [], set(who))


LISTENER = socket.create_server(("127.0.0.1", 0))
PORT = LISTENER.getsockname()[1]
SHARED = {"vessel", "scribe", "tomb", "phylactery"}
TOMB_IN_DB = () if SOVEREIGN else ("tomb",)
# what; tried where a room would have it; tried at the host's own path, never anybody's; who may
OBJECTS = [
    ("vessel's data", [f"read={V}/vessel", f"write={V}/vessel"], [f"read={DATA}/vessel"], {"vessel"}),
    ("job trees", [f"read={V}/tomb/jobs", f"write={V}/tomb/jobs"], [f"read={DATA}/tomb"], {"tomb"}),
    ("the cluster's files", [f"read={V}/phylactery/data/PG_VERSION", f"write={V}/phylactery/data"],
     [f"read={DATA}/phylactery"], {"phylactery"}),
    ("audit log", [f"read={V}/audit", f"write={V}/audit"], [f"read={DATA}/audit"], {"scribe"}),
    ("scribe's socket", [f"seqpacket={S}/audit/scribe.sock"], [f"seqpacket={SOCKETS}/audit/scribe.sock"],
     {"vessel", "scribe"}),
    ("codex.yaml", ["read=/etc/lychgate/codex.yaml"], [f"read={HOME}/.config/lychgate/codex.yaml"], {"vessel"}),
    ("`api` socket", [f"connect={S}/api/vessel.sock"], [f"connect={SOCKETS}/api/vessel.sock"], {"vessel"}),
    ("`work` socket", [f"connect={S}/work/vessel.sock"], [f"connect={SOCKETS}/work/vessel.sock"], {"vessel", "tomb"}),
    ("PostgreSQL's socket", [f"connect={S}/pg/.s.PGSQL.5432"], [f"connect={SOCKETS}/pg/.s.PGSQL.5432"],
     {"vessel", "phylactery", *TOMB_IN_DB}),
    secret("db_migrate", "phylactery"),
    secret("db_vessel", "vessel"),
    secret("db_watchdog", "vessel"),
    secret("db_tomb", *(("vessel",) if SOVEREIGN else ())),
    secret("work", "vessel"),
    secret("db_of_tomb_1", *TOMB_IN_DB),
    secret("work_of_tomb_1", "tomb"),
    ("secret `portal_x`, a provider's key", ["read=/run/secrets/portal_x"], [], {"vessel"}),
    ("write its own image", ["write=/usr", "write=/etc", "write=/"], [], set()),
    ("a shell", ["exec=/bin/sh"], [], {"tomb", "phylactery", "job"}),
    ("a compiler", ["exec=/usr/bin/gcc"], [], {"tomb", "job"}),
    ("your home and keys", [], [f"read={HOME}/.ssh/id_ed25519", f"read={HOME}/.ssh", f"read={HOME}/in"], set()),
    ("your session bus", [], [f"connect={RUNTIME}/bus", f"connect={RUNTIME}/systemd/private"], set()),
    ("Podman and its storage", [], [f"read={HOME}/.local/share/containers/storage", f"read={RUNTIME}/containers",
                                    f"connect={RUNTIME}/podman/podman.sock"], set()),
    # golden-mean has one network namespace; who uses it is the matter of each daemon's own filter
    ("an interface besides loopback", ["interface="], [], {"vessel", "phylactery"} if SOVEREIGN else SHARED),
    ("a route out", ["route="], [], {"vessel"} if SOVEREIGN else SHARED),
    ("a listener of yours on 127.0.0.1", [], [f"listener=127.0.0.1:{PORT}"], set()),
    ("become root, mount, mknod", [], ["act=setuid-root", "act=mount", "act=device", "act=hostname"], set()),
    ("raw sockets, bpf", [], ["act=raw-socket", "act=bpf"], set()),
]
EXISTS = [DATA + "/vessel", DATA + "/tomb", DATA + "/phylactery/data/PG_VERSION", DATA + "/audit", HOME + "/in",
          HOME + "/.config/lychgate/codex.yaml", SOCKETS + "/api/vessel.sock", SOCKETS + "/work/vessel.sock",
          SOCKETS + "/pg/.s.PGSQL.5432", SOCKETS + "/audit/scribe.sock", HOME + "/.ssh/id_ed25519", RUNTIME + "/bus",
          HOME + "/.local/share/containers/storage"]


def ask(room, things):
    if room == "job":
        command = ["lych", "run", "--no-stdin", "--file", "probe/probe_room", "--", "./probe_room"]
    else:
        command = ["podman", "exec", "lychgate-" + room, "/probe_room"]
    done = subprocess.run(command + things, capture_output=True, text=True, timeout=120, check=False)
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    if done.returncode or [a[0] for a in answers] != things:
        sys.exit(f"{room}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return [a[1] for a in answers]


def main():
    missing = [path for path in EXISTS if not os.path.lexists(path)]
    if missing:
        sys.exit(f"not there, so a refusal would say nothing: {missing}")
    bad, tried = [], 0
    lines = ["| tried from inside | " + " | ".join(ROOMS) + " |", "| --- " * (len(ROOMS) + 1) + "|"]
    answers = {}
    for room in ROOMS:
        things = [t for o in OBJECTS for t in o[1] + o[2]]
        if room in PROGRAM:
            things.append("ptrace=" + PROGRAM[room])
        answers[room] = dict(zip(things, ask(room, things)))
        tried += len(things)
    for what, own, host, may in OBJECTS:
        cells = []
        for room in ROOMS:
            got = answers[room]
            wrong = [f"{t}: {got[t]}" for t in own if (got[t] == "yes") != (room in may)]
            wrong += [f"{t}: yes" for t in host if got[t] == "yes"]
            bad += [f"{room}: {what}: {w}" for w in wrong]
            refused = sorted({got[t] for t in own + host if got[t] != "yes"})
            cells.append("**may**" if room in may else " ".join(refused))
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    seized = [answers[room]["ptrace=" + PROGRAM[room]] if room in PROGRAM else "–" for room in ROOMS]
    bad += [f"{room}: looks into its daemon" for room, s in zip(ROOMS, seized) if s in ("yes", "ESRCH")]
    lines.append("| look into the daemon of the same container | " + " | ".join(seized) + " |")
    with open(TABLE, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"NOTE {tried} attempts in {len(ROOMS)} rooms, {len(bad)} not as they must be")
    for b in bad:
        print("WRONG", b)
    sys.exit(bool(bad))


main()
