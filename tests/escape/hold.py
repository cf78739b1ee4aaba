#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that hold locks against their supervisor (try_hold.c), and how long their last instruction
comes after the decision to end them. Judged by what they themselves wrote into a shared file.

	hold.py SANDBOX TRY_HOLD ROUNDS [SEED [SECONDS]]

ROUNDS of (grade, act, cause, pool) in turns: every act and every cause in the first as many as there are acts, and
every act with every cause before any comes again. After SECONDS no further one begins, once every act was tried
and every cause had a round that was measured.
How long the kernel takes to take them down is told apart. Exit 1: one took longer than a second, or ended
before the decision, or by something else than it (what holds its meter for a second may be ended for that:
such a round says nothing of the second, and they may be no more than half of all)."""
import array, itertools, json, math, os, random, select, shutil, signal, statistics, struct, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "python"))
from spawner import Spawner, descendants

MUST = 1.0
BURNERS = 240
RUN = 1.0  # seconds, once it is under way
BEGIN_MAX = 60
TRIES = 3  # to get a job under way: some acts hold up their own beginning on a busy disk
GRADES = ("full", "floor")
ACTS = ("storm", "mprotect", "exec", "link", "rename", "directory", "metadata", "locks", "futex", "burn", "attack")
CAUSES = ("timeout", "cancel", "down", "keeper", "guard", "spawner", "inner", "parent")
ENDS = {"timeout": 2, "cancel": 8, "keeper": 12, "guard": 12}  # enum spawn_end; of the others nobody is left to tell
UNMEASURED = 13
MAY_HOLD_THE_METER = ("storm", "mprotect", "exec", "link", "rename", "directory", "metadata", "locks")
STALE = 2.0  # seconds in which no task of it executed anything before the decision
OPTIONS = ("--processes", "600", "--memory", "1GiB", "--disk", "1GiB", "--nofile", "512")


def boot():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def stamps(work):
    try:
        with open(os.path.join(work, "stamps"), "rb") as f:
            return [v / 1e9 for v in struct.unpack("<4096Q", f.read(4096 * 8)) if v]
    except (OSError, struct.error):
        return []


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(c) for c in f.read().split()]


def marked(mark):
    """Processes that have this argument, but for ourselves."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if mark.encode() in f.read().split(b"\0")[-2:]:
                    found.append(int(pid))
        except OSError:
            pass
    return found


def watched(pid):
    """What a job would want to change of its keeper, guard or meter."""
    with open(f"/proc/{pid}/status") as f:
        status = dict(line.split(":", 1) for line in f)
    with open(f"/proc/{pid}/stat") as f:
        nice = f.read().rsplit(")", 1)[1].split()[16]
    with open(f"/proc/{pid}/limits") as f:
        limits = f.read()
    with open(f"/proc/{pid}/oom_score_adj") as f:
        adj = int(f.read())
    with open(f"/proc/{pid}/cgroup") as f:
        cgroup = f.read()
    return {"stopped": status["State"].split()[0] in "Tt", "nice": nice, "cpus": status["Cpus_allowed"].strip(),
            "limits": limits, "oom": adj, "cgroup": cgroup}


def until(what, seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.01)


class Held:
    """One job, as the spawner's or by the command line."""
    begin = 4.0  # seconds that half of the burners may take to come; more where a fork takes long

    def __init__(self, grade, act, cause, pool):
        self.mark = f"hold-{os.getpid()}-{random.getrandbits(32):08x}"
        self.cause, self.timeout = cause, RUN + 1 + self.begin if cause == "timeout" else 2 * BEGIN_MAX
        command = ["./try_hold", act, str(BURNERS), self.mark]
        options = (*OPTIONS, "--timeout", f"{int(self.timeout * 1000)}ms")
        self.spawner = self.job = self.cli = self.said = None
        if cause == "parent":
            self.work = os.path.join(jobs, self.mark)
            os.mkdir(self.work, 0o700)
            install(self.work)
            self.cli = subprocess.Popen([sandbox, "--json", "--grade", grade, "--workspace", self.work, *options, "--", *command],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        else:
            self.spawner = Spawner(sandbox, jobs, grade, "--pool", str(pool))
            # The first is cold whatever the pool; with one behind it a sandbox waits.
            self.spawner.wait(self.spawner.run("true"))
            if pool:
                time.sleep(0.1)
            self.work = os.path.join(jobs, str(self.spawner.next))
            make = os.mkdir

            def mkdir_with_program(path, mode):
                make(path, mode)
                install(path)
            os.mkdir = mkdir_with_program
            try:
                self.job = self.spawner.run(*command, options=options)
            finally:
                os.mkdir = make
        try:
            until(f"{act} began", self.begin if cause == "timeout" else BEGIN_MAX,
                  lambda: len(stamps(self.work)) > BURNERS // 2)
        except TimeoutError:
            self.finish()
            raise

    def keeper(self):
        if self.cli:
            return children(self.cli.pid)[0]
        top = self.spawner.process.pid
        for pid in marked(self.mark):  # the job's first process is the guard's child
            chain = [pid]
            try:
                while chain[-1] > 1 and chain[-1] != top:
                    with open(f"/proc/{chain[-1]}/stat") as f:
                        chain.append(int(f.read().rsplit(")", 1)[1].split()[1]))
            except OSError:
                continue  # gone meanwhile; there are others
            if chain[-1] == top:
                # ..., job, guard, keeper, [inner,] spawner
                return chain[-3 if self.spawner.grade == "full" else -2]
        raise LookupError("no keeper")

    def told(self, seconds=0.0):
        """How it ended, as its parent was told within so long; None: nobody said so."""
        if self.cli:
            try:
                self.said = self.said or self.cli.communicate(timeout=seconds)[1]
            except subprocess.TimeoutExpired:
                return None
            how = ([json.loads(x)["how"] for x in self.said.splitlines() if x.startswith("{")] or [f"exit {self.cli.returncode}"])[-1]
            return UNMEASURED if how == "unmeasured" else how
        until_then = time.monotonic() + seconds
        while not self.job.exited and not self.job.refused:
            left = max(0, until_then - time.monotonic())
            if self.spawner.sock.fileno() < 0 or not select.select([self.spawner.sock], [], [], left)[0]:
                return None
            self.spawner.turn()
        return self.job.exited[0] if self.job.exited else str(self.job.refused)

    def end(self):
        """Carries out the cause; returns when it was decided."""
        self.early = self.told()
        if self.early is not None:
            return boot()
        if self.cause == "timeout":
            return min(stamps(self.work)) and self.began + self.timeout
        victim = {"keeper": self.keeper, "guard": lambda: children(self.keeper())[0],
                  "parent": lambda: self.cli.pid, "spawner": lambda: self.spawner.process.pid,
                  "inner": lambda: children(self.spawner.process.pid)[0]}.get(self.cause)
        pid = victim() if victim else None
        decided = boot()
        if pid:
            os.kill(pid, signal.SIGKILL)
        elif self.cause == "cancel":
            self.spawner.kill(self.job)
        else:
            self.spawner.sock.close()
        return decided

    def finish(self):
        if self.cli:
            self.cli.kill()
            self.cli.wait()
        elif self.spawner.sock.fileno() >= 0:
            self.spawner.sock.close()
        if self.spawner:
            self.spawner.process.wait(60)


def install(directory):
    target = os.path.join(directory, "try_hold")
    with open(program, "rb") as source, open(target, "wb") as to:
        to.write(source.read())
    os.chmod(target, 0o700)


def watch(held, grade, act):
    """For the time that it runs: what the job changed of its supervision."""
    keeper = held.keeper()
    guard = children(keeper)[0]
    try:
        until("meter", 10, lambda: len(children(keeper)) > 1)
    except TimeoutError:
        pass  # told below
    supervision = {"keeper": keeper, "guard": guard, "meter": (set(children(keeper)) - {guard} or {guard}).pop()}
    before = [watched(p) for p in supervision.values()]
    time.sleep(max(0, held.began + RUN - boot()))
    after = [watched(p) for p in supervision.values()]
    # It is to be the first when memory runs out.
    job_oom = watched(children(guard)[0])["oom"]
    own = watched("self")
    worse = [] if job_oom == 1000 else [f"the job's oom_score_adj is {job_oom}"]
    if supervision["meter"] == guard:
        worse.append("no meter")
    for who, was, now in zip(supervision, before, after):
        worse += [f"{who}'s {what}" for what in was if was[what] != now[what]]
        if now["stopped"] or now["oom"] >= 1000 or now["cpus"] != own["cpus"]:
            worse.append(f"{who}: {now}")
    if worse:
        print(f"FAIL {grade} {act}: {worse}", flush=True)
    return worse


def one_round(grade, act, cause, pool):
    global jobs
    held, tries = None, 0
    while not held:
        jobs = tempfile.mkdtemp(dir=scratch)
        try:
            held = Held(grade, act, cause, pool)
        except TimeoutError as why:
            tries += 1
            if Held.begin > BEGIN_MAX or (cause != "timeout" and tries == TRIES):
                raise
            print(f"once more: {grade} {act} {cause}: {why}", flush=True)
            if cause == "timeout":
                Held.begin *= 2  # its time was over before it was under way
    held.began = min(stamps(held.work))
    try:
        worse = watch(held, grade, act)
    except (OSError, LookupError):  # not there: it ended before
        worse = []
        if held.told(20) is None:
            raise
    decided = held.end()
    time.sleep(max(0, decided - boot()))
    # All of it is dead when nobody has the mark any more: then nothing can be written.
    dead = None
    try:
        until("its end", 120, lambda: not marked(held.mark))
        dead = boot()
    except TimeoutError:
        for pid in marked(held.mark):
            os.kill(pid, signal.SIGKILL)
    last = max(stamps(held.work))
    how = held.early if held.early is not None else held.told(20) if cause in ENDS else None
    held.finish()
    shutil.rmtree(jobs, ignore_errors=True)
    if how == UNMEASURED and act in MAY_HOLD_THE_METER:
        return None, 0.0, bool(worse)
    if held.early is not None or how != ENDS.get(cause):
        detail = f" ({held.job.detail})" if held.job and held.job.detail else ""
        worse.append(f"how {how}{detail}, {'before' if held.early is not None else 'at'} the decision")
        print(f"FAIL {grade} {act} {cause}: it ended otherwise: {worse[-1]}", flush=True)
    elif last - decided < -STALE:
        worse.append("stale")
        print(f"FAIL {grade} {act} {cause}: nobody of it ran for {decided - last:.1f} s before the decision", flush=True)
    return last - decided, (dead - decided) if dead else 120.0, bool(worse)


def turn(rng):
    """All cases, the next one last: first each act once, and with them each cause."""
    cases = [(g, a, c) for g, a, c in itertools.product(GRADES, ACTS, CAUSES) if (g, c) != ("floor", "inner")]
    rng.shuffle(cases)
    acts = rng.sample(ACTS, len(ACTS))
    causes = rng.sample(CAUSES, len(CAUSES))
    first = [next(x for x in cases if x[1:] == pair) for pair in zip(acts, itertools.cycle(causes))]
    return [x for x in cases if x not in first] + first[::-1]


def main():
    rounds, seed = int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1
    enough = time.monotonic() + float(sys.argv[5]) if len(sys.argv) > 5 else math.inf
    rng = random.Random(seed)
    order, worst, failed, slow, unmeasured = [], {}, 0, [], 0
    untried = {*ACTS, *CAUSES}
    for n in range(rounds):
        if not untried and time.monotonic() > enough:
            rounds = n
            break
        order = order or turn(rng)
        grade, act, cause = order.pop()
        lived, dead, worse = one_round(grade, act, cause, n % 2 * 2)
        failed += worse
        if n % 100 == 99:
            print(f"{n + 1} rounds, {failed} failed so far", flush=True)
        untried -= {act} if lived is None else {act, cause}
        if lived is None:
            unmeasured += 1
            continue
        slow.append(dead)
        key = (grade, act)
        worst[key] = max(worst.get(key, (0, "")), (lived, cause))
        if lived > MUST:
            failed += 1
            print(f"FAIL {grade} {act} {cause}: the last instruction came {lived:.2f} s after the decision", flush=True)
    for (grade, act), (lived, cause) in sorted(worst.items()):
        print(f"{grade:5} {act:10} at most {lived * 1000:6.0f} ms ({cause})")
    if slow:
        print(f"taken down by the kernel after: median {statistics.median(slow) * 1000:.0f} ms, at most {max(slow) * 1000:.0f} ms")
    if unmeasured:
        print(f"{unmeasured} ended before, for holding their meter")
    if unmeasured * 2 > rounds:
        failed += 1
        print("FAIL too few are left that were ended by the decision")
    print(f"{rounds} rounds, seed {seed}, {failed} above {MUST:.0f} s, or not ended by the decision")
    return failed > 0


sandbox, program = map(os.path.abspath, sys.argv[1:3])
with tempfile.TemporaryDirectory() as scratch:
    sys.exit(main())
