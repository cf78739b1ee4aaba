#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tables of what tests/bench/measure printed.

report.py quick RUN.tsv     the start-up table on standard output
"""
import random
import sys

BOOTSTRAP_ROUNDS = 1000


def load(path):
    """{row: {contestant: [values in order]}}, {contestant: why it is absent}"""
    rows, absent = {}, {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            field = line.rstrip("\n").split("\t")
            if field[0] == "#absent":
                absent[field[1]] = field[2]
            elif not line.startswith("#"):
                rows.setdefault(field[0], {}).setdefault(field[1], []).append(float(field[2]))
    return rows, absent


def quantile(values, q):
    s = sorted(values)
    at = q * (len(s) - 1)
    low = int(at)
    high = min(low + 1, len(s) - 1)
    return s[low] + (s[high] - s[low]) * (at - low)


def median(values):
    return quantile(values, 0.5)


def ratio(mine, other):
    """The ratio of the medians, and its 95 % interval. Sample i of both is of round i, so whole
    rounds are drawn: what disturbed a round disturbed both."""
    n = min(len(mine), len(other))
    rnd = random.Random(1)
    drawn = []
    for _ in range(BOOTSTRAP_ROUNDS):
        pick = [rnd.randrange(n) for _ in range(n)]
        drawn.append(median([mine[i] for i in pick]) / median([other[i] for i in pick]))
    return median(mine) / median(other), quantile(drawn, 0.025), quantile(drawn, 0.975)


def quick(path):
    rows, absent = load(path)
    start = rows["start"]
    print("start of /bin/true, from request to reaped, microseconds")
    print(f"{'':14}{'n':>5}{'min':>8}{'p50':>8}{'p90':>8}{'p99':>8}   {'× bare':<20}× bwrap")
    for name, values in start.items():
        line = f"{name:14}{len(values):5}"
        for v in (min(values), median(values), quantile(values, 0.9), quantile(values, 0.99)):
            line += f"{v / 1000:8.0f}"
        for other in ("bare", "bwrap"):
            if other in start and other != name:
                r, low, high = ratio(values, start[other])
                line += f"   {r:5.2f} ({low:.2f}–{high:.2f})"
            else:
                line += " " * 19
        print(line)
    for name, why in absent.items():
        print(f"{name}: absent: {why}")


if sys.argv[1:2] == ["quick"] and len(sys.argv) == 3:
    quick(sys.argv[2])
else:
    sys.exit(__doc__)
