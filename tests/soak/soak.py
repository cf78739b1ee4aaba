# SPDX-License-Identifier: Apache-2.0
"""Run by run.sh: submits JOBS jobs, some of them unruly, through the vessel's API, up to WINDOW of
them waiting; compares what the daemons hold after a warm-up and at the end."""
import collections
import http.client
import json
import os
import socket
import subprocess
import sys
import time

JOBS = int(os.environ["JOBS"])
WARM_UP = min(400, JOBS)
WINDOW = 120
PER_JOB_SEC = 0.5  # far above what a job takes on a slow machine
SETTLE_SEC = 90
BIN = os.environ["LYCH_BIN"]
DATA = os.environ["LYCHGATE_DATA"]
SOCKET = os.environ["XDG_RUNTIME_DIR"] + "/lychgate/api/vessel.sock"
MIB = 1 << 20
NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")

# What each kind is, and how it must end.
SH = ["sh", "-c"]
BOMB = """import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""
KINDS = {
    "true": ({"argv": ["true"]}, "succeeded", None),
    "words": ({"argv": SH + ["echo word; echo other >&2"]}, "succeeded", None),
    "output": ({"argv": ["head", "-c", "300000", "/dev/zero"]}, "succeeded", None),
    "stdin": ({"argv": ["wc", "-c"], "stdin": "x" * 5000}, "succeeded", None),
    "files": ({"argv": SH + ["mkdir d; for i in 1 2 3; do cat in >d/$i; done"], "artifacts": ["d/*"],
               "files": [{"path": "in", "content": "y" * 3000}]}, "succeeded", None),
    "places": ({"argv": SH + ["echo x >/tmp/a; echo x >/dev/shm/b; mkfifo f; ln -s f l"]}, "succeeded", None),
    "orphan": ({"argv": SH + ["(setsid sleep 60 >/dev/null 2>&1 &); exit 0"]}, "succeeded", None),
    "exit": ({"argv": SH + ["exit 7"]}, "failed", "exit"),
    "signal": ({"argv": SH + ["kill -SEGV $$"]}, "failed", "crash"),
    "missing": ({"argv": ["no-such-program"]}, "failed", "crash"),
    "deaf": ({"argv": SH + ["trap '' TERM; sleep 60 & wait; sleep 60"], "limits": {"timeout_ms": 200}},
             "timed_out", "timeout_kill"),
    "memory": ({"argv": SH + ["head -c 200M /dev/zero >/dev/shm/x; sleep 60"],
                "limits": {"memory_bytes": 32 * MIB}}, "failed", "oom_kill"),
    "disk": ({"argv": SH + ["i=0; while :; do head -c 1M /dev/zero >f$i; i=$((i+1)); done"],
              "limits": {"disk_bytes": 8 * MIB}}, "failed", "disk_limit"),
    "flood": ({"argv": ["yes"], "limits": {"output_bytes": 1 * MIB}}, "failed", "output_limit"),
    "fork": ({"argv": ["python3", "-Sc", BOMB], "limits": {"processes": 16}}, "failed", "resource_kill"),
}
UNRULY = [k for k in KINDS if k != "true"]


def kind_of(n):
    """One job in ten is something else than true; each kind comes again and again."""
    if n % 10:
        return "true" if n % 3 else "words"
    return UNRULY[n // 10 % len(UNRULY)]


class Api(http.client.HTTPConnection):
    def __init__(self):
        super().__init__("lychgate")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(SOCKET)

    def call(self, method, path, body=None):
        self.request(method, path, json.dumps(body) if body else None)
        r = self.getresponse()
        data = json.loads(r.read())
        assert r.status in (200, 201), (method, path, r.status, data)
        return data


api = Api()


def open_jobs():
    return sum(len(api.call("GET", f"/v1/jobs?state={s}&limit=500")["jobs"])
               for s in ("queued", "preparing", "running", "cancelling"))


def submit(first, last):
    """Jobs first..last-1; no more than WINDOW of them not yet at an end."""
    ids, waiting = {}, 0
    deadline = time.monotonic() + 60 + PER_JOB_SEC * (last - first)
    for n in range(first, last):
        while waiting >= WINDOW:
            assert time.monotonic() < deadline, f"too slow: at job {n} of {last}"
            waiting = open_jobs()
            if waiting >= WINDOW:
                time.sleep(0.05)
        spec = dict(KINDS[kind_of(n)][0], request_id=f"soak-{n}")
        ids[api.call("POST", "/v1/jobs", spec)["id"]] = n
        waiting += 1
    while open_jobs():
        assert time.monotonic() < deadline, f"{open_jobs()} jobs never end"
        time.sleep(0.1)
    return ids


def verify(ids):
    """Each ended as its kind must, at its first attempt."""
    left, before, wrong = dict(ids), None, []
    while left:
        page = api.call("GET", "/v1/jobs?limit=500" + (f"&before={before}" if before else ""))["jobs"]
        assert page, f"{len(left)} jobs are not listed"
        for j in page:
            n = left.pop(j["id"], None)
            if n is None:
                continue
            _, state, cls = KINDS[kind_of(n)]
            if (j["state"], j["class"] or None, j["attempts"], j["lost"]) != (state, cls, 1, 0):
                wrong.append((kind_of(n), j))
        before = page[-1]["id"]
    whole = [(kind, api.call("GET", f"/v1/jobs/{j['id']}")) for kind, j in wrong[:3]]
    assert not wrong, f"{len(wrong)} jobs ended otherwise, the first: {whole}"


def read(pid, name):
    with open(f"/proc/{pid}/{name}") as f:
        return f.read()


def descendants(pid):
    found, todo = [], [pid]
    while todo:
        p = todo.pop()
        try:
            for t in os.listdir(f"/proc/{p}/task"):
                todo += [int(c) for c in read(p, f"task/{t}/children").split()]
            found.append(p)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def processes():
    """Pids by the part of Lychgate that they belong to. PostgreSQL's own are not ours to judge."""
    status = json.loads(subprocess.run(
        ["setpriv", "--ambient-caps", "-all", "--inh-caps", "-all", BIN + "/lych", "status", "--json"],
        stdout=subprocess.PIPE, check=True).stdout)
    top = status["processes"]
    postgres = set(descendants(top["postgres"]))
    below = set(descendants(top["spawner"]))
    files = {p for p in descendants(top["tomb"]) if read(p, "comm") == "lych-files\n"}
    rest = set(descendants(top["supervisor"])) - postgres - below - files
    return {"tomb": {top["tomb"]}, "vessel": {top["vessel"]}, "spawner": {top["spawner"]},
            "pool": below - {top["spawner"]}, "files": files,
            "other": rest - {top["tomb"], top["vessel"]}, "postgres": postgres}


def snapshot():
    """The pool of waiting sandboxes, and the file workers that were busy in the last half a minute, are as
    many as the last load made them: what one of their processes has is compared, not how many there are."""
    s = collections.OrderedDict()
    roles = processes()
    for part, pids in roles.items():
        if part == "postgres":
            s[part, "processes"] = len(pids)
            continue
        each = max(len(pids), 1) if part in ("pool", "files") else 1
        memory = [line.split() for p in pids for line in read(p, "smaps_rollup").splitlines()]
        spaces = {os.readlink(f"/proc/{p}/ns/{n}") for p in pids for n in NAMESPACES}
        s[part, "processes"] = len(pids)
        s[part, "fds"] = sum(len(os.listdir(f"/proc/{p}/fdinfo")) for p in pids) / each
        s[part, "mounts"] = sum(read(p, "mountinfo").count("\n") for p in pids) / each
        s[part, "namespaces"] = len(spaces) / each
        for what, name in (("PSS KiB", "Pss:"), ("heap KiB", "Pss_Anon:")):
            s[part, what] = sum(int(m[1]) for m in memory if m[0] == name) / each
    s["all", "job folders"] = len(os.listdir(DATA + "/tomb/jobs"))
    return s


def settled():
    """The same counts for three seconds."""
    deadline = time.monotonic() + SETTLE_SEC
    last, since = None, 0.0
    while True:
        try:
            now = snapshot()
            counts = {k: v for k, v in now.items() if "KiB" not in k[1]}
        except (FileNotFoundError, ProcessLookupError):
            counts = None  # something was just ending
        if counts is None or counts != last:
            last, since = counts, time.monotonic()
        elif time.monotonic() - since > 3:
            return now
        assert time.monotonic() < deadline, "it does not come to rest"
        time.sleep(0.2)


# More than this beyond the baseline is a leak. 10,000 jobs that leave 100 bytes each are 1 MiB.
# PSS also grows when a stranger that shared libc with us ends; connections come and go.
# What depends on how many sandboxes wait: a keeper and its child each, three descriptors; file workers: one for
# each slot.
POOL = {("pool", "processes"): 2 * 16, ("spawner", "fds"): 3 * 16, ("files", "processes"): 8}
SPARE = {"heap KiB": 1024, "PSS KiB": 4096, "fds": 8, "namespaces": 0.5, "mounts": 0.5}


def main():
    verify(submit(0, WARM_UP))
    base = settled()
    roles = processes()
    start = time.monotonic()
    ids = submit(WARM_UP, WARM_UP + JOBS)
    took = time.monotonic() - start
    print(f"soak: {JOBS} jobs in {took:.0f} s: {JOBS / took:.0f} a second", flush=True)
    end = settled()
    leaks = []
    for (part, what), was in base.items():
        now = end[part, what]
        allowed = POOL.get((part, what), SPARE.get(what, 0))
        mark = ""
        if part != "postgres" and now > was + allowed:
            leaks.append((part, what, was, now))
            mark = "  LEAK"
        print(f"soak: {part:9} {what:12} {was:8.0f} -> {now:8.0f}{mark}")
    verify(ids)
    again = processes()
    assert all(again[p] == roles[p] for p in ("tomb", "vessel")), "a daemon was started again"
    checked = api.call("GET", "/v1/check")
    assert checked["violations"] == 0, checked
    assert not leaks, leaks
    print(f"soak: every job ended as it must, {len(KINDS)} kinds, nothing is left of them")


if __name__ == "__main__":
    sys.exit(main())
