#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A picture of the walls that stood: from a job's result and from `lych status --json`."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    walls = json.load(f)["result"]["walls"]
with open(sys.argv[2], encoding="utf-8") as f:
    status = json.load(f)
WIDTH = 84


def row(text="", depth=0):
    bars = "|  " * depth
    inner = WIDTH - 2 * len(bars)
    right = "  |" * depth
    print(f"  {bars}{text:<{inner}.{inner}}{right}")


def edge(depth):
    bars = "|  " * depth
    right = "  |" * depth
    print(f"  {bars}+{'-' * (WIDTH - 2 * len(bars) - 2)}+{right}")


def wrapped(words, depth, width):
    line = ""
    for w in words:
        if line and len(line) + len(w) + 1 > width:
            row(line, depth)
            line = ""
        line = f"{line} {w}".strip()
    if line:
        row(line, depth)


held = sum(1 for w in status["vessel"]["walls"] if w["held"])
starter = status["starter"]
print("\n  The walls that stood\n")
edge(0)
row(f"you: home, keys, network, the owner's socket; starter pid {starter['pid']}", 1)
row(f"vessel: {held} of {len(status['vessel']['walls'])} forbidden acts refused in its self-test", 1)
row("PostgreSQL: unix socket only, scram, one narrow login for the tomb", 1)
row("", 1)
edge(1)
row("the tomb's wall: namespaces of its own, a root without home, api or bus" if starter["private_root"]
    else "the tomb's wall: no root of its own (no_private_root), no connect()", 2)
row("the tomb: confined (Landlock, seccomp, no capability), executes nothing", 2)
row("", 2)
edge(2)
row(f"the sandbox: grade {walls['grade']}, Landlock ABI {walls['landlock_abi']}", 3)
wrapped(walls["layers"], 3, WIDTH - 20)
for lim in walls["limits"]:
    row(f"{lim['name']:<12} {lim['value']:>12}  by {lim['mechanism']}", 3)
row("", 3)
edge(3)
row("the job: its folder, read-only system paths, nothing else", 4)
edge(3)
edge(2)
edge(1)
edge(0)
print(f"\n  cgroup: {starter['cgroup']}"
      + (f" ({starter['cgroup_reason']})" if starter["cgroup_reason"] else ""))
