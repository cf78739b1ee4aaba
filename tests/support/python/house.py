# SPDX-License-Identifier: Apache-2.0
"""The processes of an embedded Lychgate as /proc shows them, by what they are; and signals to just those."""
import collections
import json
import os
import signal

KINDS = ("starter", "postmaster", "backend", "scribe", "vessel", "egress parent", "egress worker", "gate",
         "guard of tomb", "tomb", "files' parent", "file worker", "TLS parent", "outer spawner", "spawner", "keeper", "guard", "meter", "job")


class Process:
    """One process for good: who has its pid later is somebody else."""

    def __init__(self, pid):
        self.pid = pid
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            head, _, rest = f.read().rpartition(")")
        rest = rest.split()
        self.comm = head.partition("(")[2]
        self.state, self.parent, self.start = rest[0], int(rest[1]), int(rest[19])

    def argv(self):
        try:
            with open(f"/proc/{self.pid}/cmdline", encoding="utf-8", errors="replace") as f:
                return f.read().split("\0")
        except OSError:
            return []

    def is_there(self):
        try:
            now = Process(self.pid)
            return now.start == self.start and now.state not in "ZX"
        except OSError:
            return False

    def signal(self, signo):
        """False: it is no more."""
        try:
            fd = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            if not self.is_there():
                return False
            signal.pidfd_send_signal(fd, signo)
            return True
        except OSError:
            return False
        finally:
            os.close(fd)


class House:
    """Who is there now. Of keepers only those whose job runs; argv of jobs have the marker."""

    def __init__(self, data, marker):
        self.marker = marker
        self.of = {kind: [] for kind in KINDS}
        self.jobs = {}  # a keeper's pid -> its job
        self.children = {}
        self.twice = []  # jobs that run in two processes, wherever: neither was forked by the other
        try:
            with open(data + "/starter.json", encoding="utf-8") as f:
                starter = Process(json.load(f)["pid"])
        except (OSError, ValueError):
            return
        everybody = [p for p in map(self._read, filter(str.isdigit, os.listdir("/proc"))) if p and p.state not in "ZX"]
        for p in everybody:
            self.children.setdefault(p.parent, []).append(p)
        self.twice = self._twice({p.pid: p for p in everybody if p.argv()[:1] == ["sh"] and marker in p.argv()})
        if starter.comm == "lych":
            self._sort(starter)

    @staticmethod
    def _read(pid):
        try:
            return Process(int(pid))
        except OSError:
            return None

    def _twice(self, marked):
        numbers = [self.number_of(p) for p in marked.values() if p.parent not in marked]
        return [n for n, times in collections.Counter(numbers).items() if n is not None and times > 1]

    def below(self, p):
        return sorted(self.children.get(p.pid, []), key=lambda c: (c.start, c.pid))

    def number_of(self, job):
        """What stands behind the marker."""
        argv = job.argv()
        return int(argv[argv.index(self.marker) + 1]) if self.marker in argv else None

    def jobs_below(self, kind, p):
        """The numbers of the jobs that end with it."""
        if kind in ("keeper", "guard", "meter"):
            keeper = p.pid if kind == "keeper" else p.parent
            jobs = [self.jobs[keeper]] if keeper in self.jobs else []
        elif kind == "job":
            jobs = [p]
        else:
            jobs = self.of["job"]
        return [n for n in map(self.number_of, jobs) if n is not None]

    def everybody(self):
        return [p for kind in self.of.values() for p in kind]

    def _sort(self, starter):
        self.of["starter"] = [starter]
        for p in self.below(starter):
            if p.comm == "postgres":
                self.of["postmaster"].append(p)
                self.of["backend"] += [c for c in self.below(p) if any("[local]" in a for a in c.argv())]
            elif p.comm == "lych-scribe":
                self.of["scribe"].append(p)
            elif p.comm == "lych-vessel":
                self._sort_vessel(p)
            elif p.comm == "lych" and "_tomb" in p.argv():
                self.of["guard of tomb"].append(p)
                for tomb in self.below(p):
                    self._sort_tomb(tomb)

    def _sort_vessel(self, vessel):
        self.of["vessel"].append(vessel)
        for parent in self.below(vessel):
            self.of["egress parent"].append(parent)
            for worker in self.below(parent):
                self.of["gate" if worker.comm == "gate" else "egress worker"].append(worker)

    def _sort_tomb(self, tomb):
        self.of["tomb"].append(tomb)
        for outer in self.below(tomb):
            if outer.comm == "lych-tls":
                self.of["TLS parent"].append(outer)
                self.of["TLS process"] += self.below(outer)
                continue
            if "--serve" not in outer.argv():
                self.of["files' parent"].append(outer)
                self.of["file worker"] += self.below(outer)
                continue
            self.of["outer spawner"].append(outer)
            for inner in self.below(outer):
                self.of["spawner"].append(inner)
                for keeper in self.below(inner):
                    self._sort_keeper(keeper)

    def _sort_keeper(self, keeper):
        for child in self.below(keeper):
            jobs = [j for j in self.below(child) if self.marker in j.argv()]
            if jobs:
                self.jobs[keeper.pid] = jobs[0]
                self.of["keeper"].append(keeper)
                self.of["guard"].append(child)
                self.of["job"].append(jobs[0])
                self.of["meter"] += [c for c in self.below(keeper) if c is not child]
