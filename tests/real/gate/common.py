# SPDX-License-Identifier: Apache-2.0
"""What the parts of this measurement share: halves, figures, intervals, the gate's two programs."""
import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/support/python"))
import gate_corpus  # noqa: E402
from gate_corpus import Gate, overlaps, wilson  # noqa: E402,F401

PORTAL, FORBIDDEN = 400, 700  # the thresholds, in thousandths
PIECE = 65536
HALVES = ("report", "tuning")


def half(name):
    """Which half it is in, by what it is called: a rule, a locale, a file. Texts of the half for reporting are never
    shown: who makes the rules better looks at the other one."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] & 1]


def half_of(data):
    """The same for a file that has copies under other names."""
    return half(hashlib.sha256(data).hexdigest())


class Figure:
    """So many of so many; must: (">=", 0.95), or None where nothing is promised."""

    def __init__(self, what, k, n, must=None, rate=None):
        self.what, self.k, self.n, self.must = what, k, n, must
        self.value = rate if rate is not None else (k / n if n else 0.0)
        self.is_rate = rate is not None

    def holds(self):
        if not self.must:
            return True
        if not self.n:
            return False  # nothing was measured
        sign, bound = self.must
        return self.value >= bound if sign == ">=" else self.value <= bound

    def row(self):
        low, high = wilson(self.k, self.n) if not self.is_rate else (None, None)
        interval = "" if low is None else f"{low:.3f}-{high:.3f}"
        must = f"{self.must[0]} {self.must[1]}" if self.must else ""
        verdict = "" if not self.must else "holds" if self.holds() else "MISS"
        of = f"{self.k}/{self.n}" if not self.is_rate else f"{self.k} in {self.n}"
        value = f"{self.value:.2f}" if self.is_rate else f"{self.value:.3f}"
        return f"| {self.what} | {of} | {value} | {interval} | {must} | {verdict} |"


HEAD = ["| what | count | figure | interval | must | |", "|---|---|---|---|---|---|"]


class Notes:
    """What can be looked at to do better: of the half for tuning only. Without the other half there is none."""

    def __init__(self):
        self.lines = []

    def add(self, part, name, text):
        if half(name) == "tuning":
            self.lines.append(f"{part}\t{name}\t{text!r}")

    def add_of(self, data, part, name, text):
        if half_of(data) == "tuning":
            self.lines.append(f"{part}\t{name}\t{text!r}")


class Talk:
    """A job that speaks with a portal (tests/support/gate/gate_talk.c)."""

    def __init__(self, program):
        self.p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def record(self, kind, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        self.p.stdin.write(b"%s %d\n" % (kind.encode(), len(body)) + body)
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def new_job(self):
        self.record("job")

    def hear(self, reply):
        self.record("hear", reply)

    def say(self, request):
        return self.record("say", request)


def pieces(data):
    """Of up to 64 KiB, cut at the ends of lines where there are some."""
    at = 0
    while at < len(data):
        end = min(at + PIECE, len(data))
        if end < len(data):
            cut = data.rfind(b"\n", at + 1, end)
            end = cut + 1 if cut > at else end
        yield data[at:end]
        at = end
