# SPDX-License-Identifier: Apache-2.0
"""Compares what a piece of work did bare and inside.

compare.py GRADE ABOUT BARE INSIDE MESSAGES: the same outcomes with the same names, but for what
ABOUT names. "differs GRADE REGEX: why [REFUSAL]" must be seen (else the list is stale), and one of
the refusals that --explain tells in MESSAGES must match REFUSAL. "may-differ GRADE REGEX: why"
depends on the machine. In full nothing that is named may have failed: it is only skipped, unless
ABOUT says by a line "full:" that not all works. A test that is skipped bare and succeeds inside is
no loss.
"""
import re
import sys

grade, about, bare_path, inside_path, messages = sys.argv[1:]


def outcomes(path):
    seen = {}
    with open(path, errors="replace") as lines:
        for line in lines:
            m = re.match(r"(ok|skip|FAIL) (.+)$", line.rstrip("\n"))
            if m:
                if m[2] in seen:
                    sys.exit(f"{m[2]}: two outcomes")
                seen[m[2]] = m[1]
    return seen


named, bad, may_fail = [], [], grade != "full"
with open(about) as lines:
    for line in lines:
        m = re.match(r"(?:# )?(differs|may-differ) (full|floor) (\S+): (.+?)(?: \[(.+)\])?$", line)
        if m and m[2] == grade:
            named.append({"must": m[1] == "differs", "re": re.compile(m[3]), "n": 0, "why": m[4], "refusal": m[5]})
        may_fail |= re.match(r"(?:# )?full: ", line) is not None
with open(messages, errors="replace") as lines:
    told = [line for line in lines if re.match(r"lych-sandbox: .* (refused|not found) \(", line)]

bare, inside = outcomes(bare_path), outcomes(inside_path)
if not bare or "FAIL" in bare.values():
    bad.append(f"bare: {[n for n in bare if bare[n] == 'FAIL'] or 'nothing was done'}")
for name in sorted(bare.keys() | inside.keys()):
    was, is_now = bare.get(name), inside.get(name)
    if was == is_now or (was == "skip" and is_now == "ok"):
        continue
    why = next((w for w in named if w["re"].search(name)), None)
    if why is None or (not may_fail and is_now != "skip"):
        bad.append(f"{name}: bare {was}, {grade} {is_now}")
        continue
    why["n"] += 1
for w in named:
    if w["n"]:
        print(f"     {w['n']} outcomes of {w['re'].pattern} differ: {w['why']}")
    elif w["must"]:
        bad.append(f"{w['re'].pattern} does not differ any more: take it from the list")
    if not w["must"]:
        continue
    explained = w["refusal"] and next((t for t in told if re.search(w["refusal"], t)), None)
    if explained:
        print(f"       {explained.strip()}")
    else:
        bad.append(f"{w['re'].pattern}: --explain does not tell of {w['refusal']}")
for line in bad[:40]:
    print(f"     {line}")
if len(bad) > 40:
    print(f"     and {len(bad) - 40} more")
count = {s: sum(v == s for v in inside.values()) for s in ("ok", "skip", "FAIL")}
print(f"     bare {len(bare)} outcomes, {grade} {len(inside)}: "
      f"{count['ok']} ok, {count['skip']} skipped, {count['FAIL']} failed")
sys.exit(bool(bad))
