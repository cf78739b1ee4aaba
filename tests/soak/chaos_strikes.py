# SPDX-License-Identifier: Apache-2.0
"""What chaos.py does to the processes of a house: by turns it kills one, stops one for a while, or leaves one
stopped, which the watch must find. What is told of it is judged from outside, by /proc and by what jobs said."""
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time

from house import KINDS, House, Process

# Whose death proves that the jobs below it are dead, so that they may run again at once.
PROVED = ("guard of tomb", "tomb", "outer spawner", "spawner", "keeper", "guard", "meter")
AGAIN_SEC = 5  # they run again by then
STALLS_SEC = 1  # on a machine that stands still for no longer
# Who is missed when it does not move any more, and replaced.
WATCHED = ("tomb", "spawner", "vessel", "scribe", "egress parent", "egress worker", "gate", "postmaster")
MISSED_SEC = 15
# Who misses them.
WATCHING = ("starter", "tomb", "vessel", "egress parent")
# Who is needed for a job to run again.
NEEDED = ("starter", "postmaster", "backend", "scribe", "vessel", "egress parent", "guard of tomb", "tomb",
          "files' parent", "file worker", "TLS parent", "outer spawner", "spawner")
GONE_SEC = 2  # without its starter nobody lives on
# ... but who is stopped, and ends at its own hands: PostgreSQL shuts down, and a vessel in its Landlock scope may not
# kill who stands outside of it.
STAY_STOPPED = ("postmaster", "backend", "egress parent", "egress worker", "gate")
STOP_SEC = (0.1, 20)
PAUSE_SEC = (0.1, 1)
# kill: whatever else is wrong. measure: a kill while nothing is. stop: for a while. hold: until it is missed.
TURNS = ([(k, "kill") for k in KINDS + ("client",)] + [(k, "measure") for k in PROVED] +
         [(k, "stop") for k in KINDS + ("client",)] + [(k, "hold") for k in WATCHED])


class Stalls(threading.Thread):
    """How long the machine let somebody wait who only looks up ten times a second, and makes once in a second what
    a tomb stands in: namespaces, for which the kernel has locks that all of its users share."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seconds = 0.0

    def run(self):
        make = ["unshare", "--user", "--mount", "--net", "--pid", "--fork", "true"]
        while True:
            for what, seconds in [(lambda: time.sleep(0.1), 0.2)] * 10 + [(lambda: subprocess.run(make, check=False), 0.5)]:
                before = time.monotonic()
                what()
                self.seconds += max(time.monotonic() - before - seconds, 0)


class Strikes(threading.Thread):
    """people: has begun(n, since), the time when job n next began, or None, ends(n), how often it ended,
    over(n), and clients(), who follows."""

    def __init__(self, seed, data, marker, people):
        super().__init__(daemon=True)
        self.rng = random.Random(seed)
        self.data, self.marker, self.people = data, marker, people
        self.lych = os.environ["LYCH_BIN"] + "/lych"
        self.over = threading.Event()
        self.out = {}  # threads of stops and holds -> (kind, how)
        self.done = collections.Counter()
        self.stalls = Stalls()
        self.unjudged = 0  # what was measured while the machine stood still
        self.again = collections.defaultdict(list)  # kind -> seconds until a job ran again
        self.missed = collections.defaultdict(list)  # kind -> seconds until a stopped one was gone
        self.gone = []  # seconds until the last process of a killed starter was gone
        self.struck = set()  # jobs whose own process was killed
        self.clients = set()  # ... and whose client
        self.wrong = []

    # ---- one strike ----

    def note(self, *words):
        """Beside the logs of the daemons."""
        with open(self.data + "/log/chaos.log", "a", encoding="utf-8") as f:
            print(time.strftime("%H:%M:%S", time.gmtime()) + f"{time.time() % 1:.3f}"[1:], *words, file=f)

    def kill(self, house, kind, p, how):
        victims = house.jobs_below(kind, p) if kind in PROVED + ("job",) else []
        if not p.signal(signal.SIGKILL):
            return
        at = time.time()
        self.done[kind, "kill"] += 1
        self.note(how, kind, p.pid, "jobs", victims)
        if kind == "job":
            self.struck.update(victims)
        elif kind == "starter":
            self.up_again(house, at)
        elif how == "measure":
            self.wait_again(kind, victims, at)

    def wait_again(self, kind, victims, at):
        """A job that ended meanwhile without running again had ended before."""
        left, times, stalls = set(victims), {}, self.stalls.seconds
        before = {n: self.people.ends(n) for n in victims}
        while left and time.time() < at + 3 * AGAIN_SEC:
            for n in list(left):
                began = self.people.begun(n, at)
                if began:
                    times[n] = began - at
                if began or self.people.over(n) or self.people.ends(n) > before[n]:
                    left.discard(n)
            time.sleep(0.02)
        times.update((n, time.time() - at) for n in left)
        self.note("again", {n: round(t, 2) for n, t in times.items()})
        if self.stalls.seconds - stalls > STALLS_SEC:
            self.unjudged += len(times)
            return
        self.again[kind] += times.values()
        self.wrong += [f"{kind} killed: job {n} ran again after {t:.1f} s" for n, t in times.items() if t > AGAIN_SEC]

    def up_again(self, house, at):
        """As a person would: lych up, when everything is gone."""
        was, stalls = house.everybody(), self.stalls.seconds
        stopped = self.stopped()
        while any(p.is_there() for p in was) and time.time() < at + 20:
            time.sleep(0.02)
        took = time.time() - at
        if not stopped.intersection(STAY_STOPPED):
            self.gone.append(took)
            if took > GONE_SEC and self.stalls.seconds - stalls <= STALLS_SEC:
                self.wrong.append(f"a killed starter's last process was gone after {took:.1f} s")
        for _ in range(20):
            r = subprocess.run([self.lych, "up", "--detach"], stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, check=False)
            if r.returncode == 0:
                return
            time.sleep(1)
        self.wrong.append("no start after a killed starter: " + r.stderr)

    def stop(self, kind, p):
        low, high = STOP_SEC
        seconds = low * (high / low) ** self.rng.random()
        if p.signal(signal.SIGSTOP):
            self.done[kind, "stop"] += 1
            self.note("stop", kind, p.pid, f"for {seconds:.1f} s")
            self.spawn(kind, "stop", lambda: (time.sleep(seconds), p.signal(signal.SIGCONT)))

    def hold(self, kind, p):
        at, stalls = time.time(), self.stalls.seconds

        def until_missed():
            while p.is_there() and time.time() < at + 3 * MISSED_SEC:
                time.sleep(0.05)
            took = time.time() - at
            self.note("missed", kind, p.pid, f"after {took:.1f} s")
            if self.stalls.seconds - stalls > STALLS_SEC:
                self.unjudged += 1
                p.signal(signal.SIGCONT)
                return
            self.missed[kind].append(took)
            if took > MISSED_SEC:
                self.wrong.append(f"a stopped {kind} was missed after {took:.1f} s")
                p.signal(signal.SIGCONT)

        if p.signal(signal.SIGSTOP):
            self.done[kind, "hold"] += 1
            self.note("hold", kind, p.pid)
            self.spawn(kind, "hold", until_missed)

    def spawn(self, kind, how, fn):
        t = threading.Thread(target=fn, daemon=True)
        self.out[t] = kind, how
        t.start()

    # ---- all of them ----

    def is_up(self):
        r = subprocess.run([self.lych, "status", "--json"], capture_output=True, text=True, check=False)
        try:
            s = json.loads(r.stdout)
            return s["ready"] and s["vessel"]["audit"]["ok"] and all(s["processes"].values())
        except (ValueError, KeyError, TypeError):
            return False

    def stopped(self):
        """The kinds of which one is stopped now."""
        self.out = {t: what for t, what in self.out.items() if t.is_alive()}
        return {k for k, _ in self.out.values()}

    def may(self, kind, how):
        """What is measured is not disturbed by what else goes on."""
        stopped = self.stopped()
        if how == "measure":
            return not stopped.intersection(NEEDED) and self.is_up()
        if how == "hold":
            return (not stopped.intersection(WATCHING + (kind,)) and not (kind in WATCHING and stopped) and self.is_up())
        held = {k for k, h in self.out.values() if h == "hold"}
        return not held or (kind not in WATCHING and not (how == "stop" and kind in held))

    def strike_client(self, how):
        now = sorted(self.people.clients().items())
        if not now:
            return
        n, pid = self.rng.choice(now)
        with contextlib.suppress(OSError):
            if how == "stop":
                self.stop("client", Process(pid))
            else:
                self.clients.add(n)
                self.done["client", "kill"] += Process(pid).signal(signal.SIGKILL)

    def strike(self, kind, how):
        if kind == "client":
            self.strike_client(how)
            return
        house = House(self.data, self.marker)
        self.wrong += [f"job {n} runs twice at a time" for n in house.twice]
        if not house.of[kind]:
            return
        p = self.rng.choice(house.of[kind])
        if how == "stop":
            self.stop(kind, p)
        elif how == "hold":
            self.hold(kind, p)
        else:
            self.kill(house, kind, p, how)

    def run(self):
        self.stalls.start()
        turns = []
        while not self.over.is_set():
            if not turns:
                turns = self.rng.sample(TURNS, len(TURNS))
            for turn in turns:
                if self.may(*turn):
                    turns.remove(turn)
                    self.strike(*turn)
                    break
            self.over.wait(self.rng.uniform(*PAUSE_SEC))
        for t in self.out:
            t.join()
        end = time.monotonic() + 60
        while not self.is_up():
            if time.monotonic() > end:
                self.wrong.append("it is not whole again after a minute")
                return
            time.sleep(0.1)
