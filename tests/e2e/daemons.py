#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""daemons.py lists PROFILE: writes probes-ROOM, what each daemon tries after it has confined itself.
daemons.py judge PROFILE TABLE SINCE: reads from the journal what the daemons of the pod answered, and appends
a table. Their containers are those of the units: mounts, secrets, filter and network as they run.
Exit 1: something went through, or a daemon could not do its own work."""
import os
import subprocess
import sys
import time

V, S = "/var/lib/lychgate", "/run/lychgate"
ROOMS = ["vessel", "scribe", "tomb"]
SECRETS = ["lychgate_db_migrate", "lychgate_db_vessel", "lychgate_db_watchdog", "lychgate_db_tomb", "lychgate_work",
           "lychgate_db_of_tomb_1", "lychgate_work_of_tomb_1", "portal_x"]
ALL = set(ROOMS)


def table(sovereign):
    """(what, attempts, who may). Where nobody may, the attempts are everybody's."""
    database = ALL - {"vessel"} if sovereign else ALL - {"vessel", "tomb"}
    return [
        ("execute anything", ["exec /usr/bin/true", "exec /bin/sh", "exec /with_probes", "fork", "mmap-exec"], ALL),
        ("a namespace of its own", ["unshare"], ALL),
        ("any network", ["socket inet", "socket inet6", "socket netlink", "socket packet"], ALL),
        ("its secrets, once read", ["read /run/secrets/" + s for s in SECRETS], ALL),
        ("the secrets' directory", ["list /run/secrets"], ALL),
        ("codex.yaml, once read", ["read /etc/lychgate/codex.yaml"], ALL),
        ("write its own image", ["write /usr/planted", "write /etc/planted", "write /planted", "write /tmp/planted"], ALL),
        ("other processes: signal, trace", ["kill 1", "ptrace 1"], ALL),
        ("the vessel's data", [f"list {V}/vessel"], ALL - {"vessel"}),
        ("job trees", [f"list {V}/tomb", f"list {V}/tomb/jobs", f"write {V}/tomb/jobs/1.1"], ALL),
        ("the cluster's files", [f"list {V}/phylactery"], ALL),
        ("the audit log", [f"list {V}/audit"], ALL - {"scribe"}),
        ("`api` socket", [f"connect unix:{S}/api/vessel.sock"], ALL - {"vessel"}),
        ("PostgreSQL's socket", [f"connect unix:{S}/pg/.s.PGSQL.5432"], database),
        ("scribe's socket", [f"list {S}/audit"], ALL - {"vessel"}),
    ]


OWN = {
    "vessel": [f"write {V}/vessel/probe", "socket unix"],
    "tomb": ["socket unix"],
    "scribe": [f"write {V}/audit/probe"],
}


def attempts(profile, room):
    return [a for _, tried, who in table(profile == "sovereign") if room in who for a in tried]


def answers(room, wanted, since):
    """The last complete round of a daemon that systemd starts again and again."""
    end = time.monotonic() + 90
    while True:
        said = subprocess.run(["journalctl", "--user", "--since", "@" + since, "-u", "lychgate-" + room, "-o", "cat", "--no-pager"],
                              capture_output=True, text=True, check=False).stdout
        got = dict(line.rsplit(": ", 1) for line in said.splitlines() if ": " in line)
        if all(w in got for w in wanted):
            return got
        if time.monotonic() > end:
            sys.exit(f"{room} did not answer: {[w for w in wanted if w not in got]}; it said: {said[-2000:]}")
        time.sleep(0.3)


def judge(profile, path, since):
    bad, tried, got = [], 0, {}
    for room in ROOMS:
        wanted = attempts(profile, room)
        tried += len(wanted)
        got[room] = answers(room, wanted + OWN[room], since)
        bad += [f"{room}: {w}: {got[room][w]}" for w in wanted if got[room][w] in ("ok", "unknown", "?")]
        bad += [f"{room} cannot do its own work: {w}: {got[room][w]}" for w in OWN[room] if got[room][w] != "ok"]
    lines = ["", "| tried by the confined daemon itself | " + " | ".join(ROOMS) + " |", "| --- " * (len(ROOMS) + 1) + "|"]
    for what, things, who in table(profile == "sovereign"):
        cells = [" ".join(sorted({got[r][t] for t in things})) if r in who else "its own" for r in ROOMS]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    with open(path, "a", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"NOTE {tried} attempts by the daemons themselves, {len(bad)} not as they must be")
    for b in bad:
        print("WRONG", b)
    sys.exit(bool(bad))


if sys.argv[1] == "lists":
    for name in ROOMS:
        with open("probes-" + name, "w", encoding="ascii") as f:
            f.write("\n".join(attempts(sys.argv[2], name) + OWN[name]) + "\n")
else:
    os.environ.setdefault("LANG", "C.UTF-8")
    judge(*sys.argv[2:])
