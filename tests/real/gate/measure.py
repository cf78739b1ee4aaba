#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gate on other people's data (./corpora): what docs/GATE.md promises of it, as figures with their counts and
intervals. Exit 1 when one is missed. Nothing that is printed shows a text of the half that is reported; --notes FILE
gets what was missed in the other half.
    measure.py --programs build/release --corpora DIR [--write docs/GATE.md] [--notes FILE] [--issued N] [--only PARTS]
    measure.py --programs build/release --histories FILE...     the conversation alone, over these texts
"""
import argparse
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

sys.dont_write_bytecode = True
import evasion  # noqa: E402
import people  # noqa: E402
import plain  # noqa: E402
import rulesets  # noqa: E402
import talk  # noqa: E402
from common import HEAD, ROOT, Figure, Gate, Notes, Talk, half_of  # noqa: E402

MARK = ("<!-- generated: tests/real/gate/measure.py -->", "<!-- end of what it wrote -->")
SEED = 5
DOCUMENTED_SEED, DOCUMENTED_EACH = 6, 40  # of the evasion table: gate_corpus.py's own


class Run:
    def __init__(self, a):
        self.a = a
        self.notes = Notes()
        self.figures, self.tables = [], []
        self.gate = Gate(str(Path(a.programs, "tests/support/gate_measure")))

    def talk(self):
        return Talk(str(Path(self.a.programs, "tests/support/gate/gate_talk")))

    def rules(self):
        rules = list(rulesets.read_gitleaks(self.a.corpora / "debian/gitleaks/usr/bin/gitleaks"))
        total, by_spelling, by_rule = rulesets.measure(self.gate, rules, SEED, 1, self.notes)
        self.figures += rulesets.figures(total, by_rule)
        self.tables.append(("A secret by each rule, in each spelling of an assignment that the rule itself sees",
                            rulesets.table(total, by_spelling, by_rule)))

    def people(self):
        drawn = subprocess.run(["node", "people.mjs", str(SEED), "20"], cwd=self.a.corpora / "npm", check=True, stdout=subprocess.PIPE).stdout
        kinds, groups, alarms, harmless = people.measure(self.gate, drawn.decode(), self.notes)
        self.figures += people.figures(kinds)
        self.tables.append(("Personal data, in sentences and records", people.table(kinds, groups, alarms, harmless)))

    def plain(self):
        out = plain.measure(self.gate, self.a.limit, self.notes)
        self.figures += plain.figures(out)
        self.tables.append(("Texts without a secret", plain.table(out)))

    def lists(self):
        self.figures += plain.list_figures(plain.measure_lists(self.gate, self.a.corpora, self.notes))

    def random(self):
        self.figures += plain.random_figures(plain.measure_random(self.gate, SEED, 64, self.notes))

    def evasion(self):
        self.figures += evasion.figures(*evasion.measure(self.gate, DOCUMENTED_SEED, DOCUMENTED_EACH, self.notes))

    def pictures(self):
        self.figures += talk.picture_figures(talk.measure_pictures(self.talk(), self.a.corpora / "debian", 100, self.notes))

    def histories(self):
        rows = talk.measure_histories(self.talk(), changelogs(5), SEED, self.notes)
        self.figures += talk.history_figures(rows, f"{talk.TURNS} turns over the changelogs of five packages")

    def issued(self):
        """What a provider issued goes back: the test of that, with as many values."""
        n = self.a.issued
        program = Path(self.a.programs, "tests/unit/vessel/broker/gate/test_gate_issued").resolve()
        done = subprocess.run([program, "--timeout", "3600", "--verbose", "--filter", "gate_issued/what_providers_issue_goes_back_untouched"],
                              env={**os.environ, "LYCH_ISSUED": str(n)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        said = re.search(r"(\d+) values", done.stdout)
        if done.returncode or not said:
            print(done.stdout)
        self.figures.append(Figure("ids and signatures of providers that were touched", 0 if done.returncode == 0 and said else n, int(said[1]) if said else n,
                                   ("<=", 0.0)))

    def text(self):
        sources = [line.split("\t") for line in (self.a.corpora / "sources.tsv").read_text().splitlines()]
        out = [MARK[0], "", f"Measured on {date.today().isoformat()}; texts and their halves as said above. Intervals: Wilson, 95 %.", "",
               "| from | package | version | licence | for |", "|---|---|---|---|---|",
               *("| " + " | ".join(row) + " |" for row in sources), "", *HEAD, *(f.row() for f in self.figures)]
        for title, rows in self.tables:
            out += ["", f"**{title}.** " + rows[0], *rows[1:]]
        return "\n".join([*out, "", MARK[1]])


def changelogs(n):
    """The longest in the half that is reported, each once."""
    found = {}
    for p in sorted(Path("/usr/share/doc").glob("*/changelog*.gz")):
        data = p.read_bytes() if p.is_file() and not p.is_symlink() else b""
        if data and half_of(data) == "report":
            found.setdefault(data, p)
    return [found[data] for data in sorted(found, key=lambda d: (-len(d), d))[:n]]


PARTS = ("rules", "people", "plain", "lists", "random", "evasion", "pictures", "histories", "issued")


def write(path, text):
    old = path.read_text()
    head, rest = old.split(MARK[0])
    path.write_text(head + text + rest.split(MARK[1])[1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--programs", type=Path, default=ROOT / "build/release")
    p.add_argument("--corpora", type=Path)
    p.add_argument("--write", type=Path, help="put the tables into this document")
    p.add_argument("--notes", type=Path, help="what was missed in the half for tuning")
    p.add_argument("--issued", type=int, default=1000000)
    p.add_argument("--limit", type=float, default=30e6, help="bytes of each half of a place")
    p.add_argument("--only", default=",".join(PARTS))
    p.add_argument("--histories", nargs="+")
    a = p.parse_args()
    run = Run(a)
    if a.histories:
        rows = talk.measure_histories(run.talk(), a.histories, SEED, run.notes)
        print("\n".join([*talk.history_table(rows), "", *HEAD, *(f.row() for f in talk.history_figures(rows, "histories"))]))
        return any(r[2] for r in rows)
    for part in a.only.split(","):
        getattr(run, part)()
    text = run.text()
    print(text)
    if a.notes:
        a.notes.write_text("\n".join(run.notes.lines) + "\n")
    if a.write:
        write(a.write, text)
    missed = [f.what for f in run.figures if not f.holds()]
    print(f"{len(run.figures)} figures, {len(missed)} MISS" + "".join(f"\n  MISS {m}" for m in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
