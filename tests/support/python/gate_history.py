#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sixty turns over the history of a project that is made here from a seed. gate_history.py --program PATH [--seed N]"""
import argparse
import base64
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "real/gate"))
from common import Talk  # noqa: E402
from gate_corpus import HEX, Maker  # noqa: E402
from talk import TURNS, converse  # noqa: E402

PAGE = 3072

PEOPLE = [("Zoë Kowalski", "zoe@kowalski.io"), ("José Ribeiro", "jr@ribeiro.dev"), ("Ann Lee", "ann.lee@corp-builds.net"),
          ("git", "svn@b2dd03c8-39d4-4d8f-98ff-823fe69b080e")]


def digest(maker):
    return "sha512-" + base64.b64encode(maker.bytes(64)).decode()


def commit(maker):
    """As git log -p writes one."""
    r, hexadecimal = maker.r, lambda n: maker.chars(HEX, n)
    who, at = r.choice(PEOPLE), f"2025-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d} {r.randrange(24):02d}:15:07 +0900"
    lines = [f"commit {hexadecimal(40)}", f"Author:     {who[0]} <{who[1]}>", f"AuthorDate: {at}",
             f"Commit:     {PEOPLE[2][0]} <{PEOPLE[2][1]}>", f"CommitDate: {at}", "", f"    {maker.sentence()}", ""]
    lines += r.choice([[], [f"    Reviewed-by: {PEOPLE[1][0]} <{PEOPLE[1][1]}>"], [f"    Fixes #{maker.digits(4)}, see {hexadecimal(12)}."],
                       [f"    (cherry picked from commit {hexadecimal(40)})"]])
    name = r.choice(["src/main.c", "package-lock.json", "go.sum"])
    lines += ["", f"diff --git a/{name} b/{name}", f"index {hexadecimal(10)}..{hexadecimal(10)} 100644", f"--- a/{name}", f"+++ b/{name}",
              "@@ -12,7 +12,9 @@"]
    for _ in range(r.randrange(4, 16)):
        sign = r.choice("+- ")
        if name == "package-lock.json":
            lines.append(f'{sign}      "integrity": "{digest(maker)}",')
        elif name == "go.sum":
            lines.append(f"{sign}example.org/{maker.word()} v1.{maker.digits(1)}.0 h1:{base64.b64encode(maker.bytes(32)).decode()}")
        else:
            lines.append(f"{sign}\t{maker.code().splitlines()[0]}")
    return "\n".join([*lines, "", ""])


def history(maker, size):
    out = []
    while sum(map(len, out)) < size:
        out.append(commit(maker))
    return "".join(out)


def unhurried(talk, *what):
    """The same again where a reading took its two seconds, which says something of the machine; not for ever."""
    for _ in range(3):
        said = converse(talk, *what)
        if not any(f["family"] == "unreadable" for s in said for f in s["findings"]):
            break
    return said


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--program", required=True)
    a.add_argument("--seed", type=int, default=5)
    a = a.parse_args()
    talk, bad = Talk(a.program), []
    text = history(Maker(a.seed), TURNS * PAGE)
    secret = Maker(a.seed).crc_token("ghp_")
    cut = text.rindex("\n", 0, 7 * PAGE // 2)
    said = unhurried(talk, text[:cut] + f"\n+token: {secret}" + text[cut:4 * PAGE], a.seed, 4, PAGE)
    if said[-1]["verdict"] != "refuse" or any(s["verdict"] == "refuse" for s in said[:-1]):
        bad.append(f"a token on the last of four pages: {[s['verdict'] for s in said]}")
    said = unhurried(talk, text, a.seed, TURNS, PAGE)
    for turn, s in enumerate(said):
        if s["verdict"] == "refuse":
            bad.append(f"turn {turn}: {s['why']}; {sorted({f['rule'] for f in s['findings']})}")
    print(f"{len(said)} turns, {sum(s['verdict'] == 'anonymise' for s in said)} rewritten, {len(bad)} as they must not be")
    print("\n".join(bad[:5]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
