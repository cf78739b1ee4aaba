#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tables of what tests/bench/measure printed.

report.py quick RUN.tsv             the start-up table on standard output
report.py before RUN.tsv            starts of two builds, and the second's ratio to the first
report.py whole OUT-DIR RUN.tsv...  README.md, latest.json and plot data in OUT-DIR; the verdict on
                                    standard output; exit 1 when a must is missed in any run

OUT-DIR/steps-WHAT.txt (tests/bench/steps.py) becomes a part of README.md.
"""
import json
import os
import random
import sys

BOOTSTRAP_ROUNDS = 1000
ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rows.tsv")


def load(path):
    """A run: rows {row: {contestant: [values in order]}}, absent {contestant: why}, about {key: text}."""
    run = {"rows": {}, "absent": {}, "about": {}}
    with open(path, encoding="utf-8") as f:
        for line in f:
            field = line.rstrip("\n").split("\t")
            if field[0] in ("#absent", "#about"):
                run[field[0][1:]][field[1]] = field[2]
            elif not line.startswith("#"):
                run["rows"].setdefault(field[0], {}).setdefault(field[1], []).append(float(field[2]))
    return run


def whole_numbers(run):
    """The raw data for the file: nanoseconds have no fractions."""
    rows = {r: {n: [int(x) if x == int(x) else x for x in v] for n, v in c.items()} for r, c in run["rows"].items()}
    return {**run, "rows": rows}


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
    for _ in range(BOOTSTRAP_ROUNDS if n > 1 else 1):
        pick = [rnd.randrange(n) for _ in range(n)]
        drawn.append(median([mine[i] for i in pick]) / median([other[i] for i in pick]))
    return median(mine) / median(other), quantile(drawn, 0.025), quantile(drawn, 0.975)


def quick(path):
    run = load(path)
    start = run["rows"]["start"]
    print("start of /bin/true, from request to reaped, microseconds")
    print(f"{'':14}{'n':>5}{'min':>8}{'p50':>8}{'p90':>8}{'p99':>8}   {'× bare':<20}× bwrap")
    for name, values in sorted(start.items(), key=lambda kv: median(kv[1])):
        line = f"{name:14}{len(values):5}"
        for v in (min(values), median(values), quantile(values, 0.9), quantile(values, 0.99)):
            line += f"{v / 1000:8.0f}"
        for other in ("bare", "bwrap"):
            if other in start and other != name:
                line += "   {:5.2f} ({:.2f}–{:.2f})".format(*ratio(values, start[other]))
            else:
                line += " " * 19
        print(line)
    for name, why in run["absent"].items():
        print(f"{name}: absent: {why}")


def before(path):
    start = load(path)["rows"]["start"]
    print("start of /bin/true, from request to reaped, medians in microseconds")
    for name in sorted(n for n in start if n.startswith("this-")):
        kind = name.removeprefix("this-")
        old, new = start["before-" + kind], start[name]
        print(f"{kind:12}{median(old) / 1000:8.0f} ->{median(new) / 1000:8.0f}   "
              "× {:.2f} ({:.2f}–{:.2f})".format(*ratio(new, old)))


def difference(mine, other):
    """The difference of the medians in milliseconds, and its 95 % interval."""
    rnd = random.Random(1)
    drawn = [median(rnd.choices(mine, k=len(mine))) - median(rnd.choices(other, k=len(other)))
             for _ in range(BOOTSTRAP_ROUNDS)]
    return tuple(v / 1e6 for v in (median(mine) - median(other), quantile(drawn, 0.025), quantile(drawn, 0.975)))


def amount(mine, _):
    """A size in KiB, as MiB."""
    return (median(mine) / 1024,) * 3


# ---- the whole -------------------------------------------------------------------------

# How a row compares: by the word of its field, with the unit of its values and bounds.
COMPARISONS = {"<=": (ratio, "≤", "×"), ">=": (ratio, "≥", "×"), "+<=": (difference, "≤", " ms"),
               "size<=": (amount, "≤", " MiB")}


def read_rows():
    group = ""
    with open(ROWS, encoding="utf-8") as f:
        for line in f:
            field = line.rstrip("\n").split("\t")
            if line.startswith("= "):
                group = line[2:].strip()
            elif not line.startswith("#") and len(field) == 7:
                keys = ("what", "row", "mine", "other", "op", "must", "aim")
                yield dict(zip(keys, field), group=group)


def holds(value, op, bound):
    return value >= float(bound) if op == ">=" else value <= float(bound)


def judge(row, runs):
    """[(ratio, low, high) or None of each run], "PASS", "MISS" or "", and whether the aim is met."""
    got = []
    for run in runs:
        values = run["rows"].get(row["row"], {})
        both = row["mine"] in values and row["other"] in values
        compare = COMPARISONS[row["op"]][0]
        got.append(compare(values[row["mine"]], values[row["other"]]) if both else None)
    if row["must"] == "-":
        return got, "", ""
    met = [g is not None and holds(g[0], row["op"], row["must"]) for g in got]
    aim = [g is not None and holds(g[0], row["op"], row["aim"]) for g in got]
    return got, "PASS" if all(met) else "MISS", "met" if all(aim) else "not met"


def bound(row, key):
    if row[key] == "-":
        return ""
    _, sign, unit = COMPARISONS[row["op"]]
    return f"{sign} {row[key]}{unit}"


def ratio_tables(runs):
    lines, missed, group = [], [], None
    for row in read_rows():
        if row["group"] != group:
            group = row["group"]
            heads = [f"run {i + 1}" for i in range(len(runs))]
            lines += ["", f"### {group}", "", "| what | must | aim | " + " | ".join(heads) + " | verdict | aim |"]
            lines.append("| --- | --- | --- |" + " ---: |" * len(runs) + " --- | --- |")
        got, verdict, aim = judge(row, runs)
        unit = COMPARISONS[row["op"]][2]
        cells = ["not measured" if g is None else "**{:.2f}{}** ({:.2f}–{:.2f})".format(g[0], unit, *g[1:]) for g in got]
        lines.append("| " + " | ".join([row["what"], bound(row, "must"), bound(row, "aim"), *cells, verdict, aim]) + " |")
        if verdict == "MISS":
            missed.append(row["what"] + ": " + ", ".join(c.replace("**", "") for c in cells))
    return lines, missed


UNITS = [("start", "µs", 1e-3), ("ask", "µs", 1e-3), ("run", "µs", 1e-3), ("rate-", "a second", 1), ("work-", "ms", 1e-6), ("call-", "ns", 1), ("memory", "KiB", 1)]


def value_tables(runs):
    lines = []
    for prefix, unit, scale in UNITS:
        rows = sorted({r for run in runs for r in run["rows"] if r.startswith(prefix)})
        spread = prefix in ("start", "ask", "run")
        extra = " p90 | p99 |" if spread else ""
        heads = "".join(f" run {i + 1} |{extra}" for i in range(len(runs)))
        lines += ["", f"### {prefix.rstrip('-')}, medians ({unit})", "", f"| row | who | n |{heads}"]
        lines.append("| --- | --- | ---: |" + " ---: |" * (len(runs) * (3 if spread else 1)))
        for row in rows:
            names = sorted({n for run in runs for n in run["rows"].get(row, {})})
            names.sort(key=lambda n: median(next(r["rows"][row][n] for r in runs if n in r["rows"].get(row, {}))))
            for name in names:
                cells, n = [], 0
                for run in runs:
                    v = run["rows"].get(row, {}).get(name)
                    qs = (0.5, 0.9, 0.99) if spread else (0.5,)
                    cells += [f"{quantile(v, q) * scale:,.0f}" if v else "–" for q in qs]
                    n = len(v) if v else n
                lines.append("| " + " | ".join([row, name, str(n), *cells]) + " |")
    return lines


def steps(out_dir):
    lines = []
    titles = {"warm": "Warm, grade full", "full": "Cold, grade full", "floor": "Cold, grade floor"}
    for what, title in titles.items():
        path = os.path.join(out_dir, f"steps-{what}.txt")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                lines += ["", f"### {title}", "", *f.read().splitlines()]
    return lines


METHOD = """Made by `make bench` (tests/bench); every line of it is generated. How it is measured:

- All contestants take part in each round, in an order that changes, after 20 ms of rest; what
  disturbs the machine disturbs all alike. A ratio is that of the medians, in brackets its 95 %
  interval (bootstrap over rounds). Each run starts anew, spawner and all.
- Every sandbox shows the same system paths, a workspace, its own /proc, /dev, /tmp and /dev/shm;
  bubblewrap and minijail load the very filter of grade full, and have the same six namespaces
  (no cgroup namespace on either side: nothing is delegated here). They set no limits, supervise
  nothing, test no wall and report no end, which ours does within the time.
- bare is posix_spawn of the same command. full-cold and floor-cold are asked of a spawner without
  a pool, full-warm of one as it comes; full-cli and floor-cli are one lych-sandbox each.
- Work inside has two processors on every side (`--cpus 2`) and is done in the home directory's file
  system, see the table below. tar has the most to lose where files cost least, so it is done in memory
  (tmpfs) too: what a sandbox adds is the same in milliseconds (docs/adr/0031).
- minijail and landrun are the programs of Debian's next release, started by that release's own
  ld.so; landrun is a Landlock wall only, with no filter and no namespace. firejail is setuid.
- An ask is the same request of the same program (tests/bench/try_ask.c), by turns in a job of grade
  full, through tomb, vessel, PostgreSQL, gate, audit log and egress worker, and to the provider
  itself on loopback. warm: on a connection that is kept; fresh: with the connection. ask-step is
  the vessel's own count, a mean over all asks: what is not in it is the tomb's and the sockets'.
  "processors kept awake": the same again under SCHED_RR, with loops of SCHED_IDLE on every processor,
  so that none halts (tests/bench/awake): a chain of processes that wake one another is slowed most
  by a host that must first run a halted virtual processor again."""


def readme(runs, missed, table, out_dir):
    lines = ["# How fast", "", METHOD, ""]
    about = runs[-1]["about"]
    host = "taken by the host"
    about = {**about, **({host: "; ".join(r["about"][host] for r in runs)} if host in about else {})}
    lines += ["| | |", "| --- | --- |", *(f"| {k} | {v} |" for k, v in about.items())]
    absent = {k: v for run in runs for k, v in run["absent"].items()}
    lines += ["", *(f"Absent: {k}: {v}." for k, v in absent.items())]
    lines += ["", "![start-up and sustained rate](bench.svg)", "", "## Ratios"]
    lines += ["", "**MISS:** " + "; ".join(missed) + "." if missed else "Every *must* holds in every run."]
    lines += [*table, "", "## Values", *value_tables(runs)]
    parts = steps(out_dir)
    lines += ["", "## What a start still costs", ""]
    if parts:
        lines.append("Seen from outside by the kernel's tracer (tests/bench/steps.py), which itself costs.")
    else:
        lines.append("Not measured in this run: it needs root and tracefs.")
    return "\n".join(lines + parts) + "\n"


def plot_data(runs, out_dir):
    """start.dat: name, median, p90 (µs) of the last run, colour; rate.dat: under way, a column each."""
    rows = runs[-1]["rows"]
    start = sorted(rows["start"].items(), key=lambda kv: median(kv[1]))
    with open(os.path.join(out_dir, "start.dat"), "w", encoding="utf-8") as f:
        for name, v in start:
            colour = 0x2F6F8F if name.startswith("full") else 0x8FB8C9 if name.startswith("floor") else 0xC98F4F
            f.write(f'"{name}" {median(v) / 1000:.1f} {quantile(v, 0.9) / 1000:.1f} {colour}\n')
    with open(os.path.join(out_dir, "rate.dat"), "w", encoding="utf-8") as f:
        for p in (1, 2, 4, 8):
            row = rows.get(f"rate-{p}", {})
            f.write(" ".join([str(p)] + [f"{median(row[n]):.1f}" if n in row else "0" for n in ("full", "floor", "bwrap")]) + "\n")


def whole(out_dir, paths):
    runs = [load(p) for p in paths]
    table, missed = ratio_tables(runs)
    with open(os.path.join(out_dir, "README.md"), "w", encoding="utf-8") as f:
        f.write(readme(runs, missed, table, out_dir))
    with open(os.path.join(out_dir, "latest.json"), "w", encoding="utf-8") as f:
        json.dump(whole_numbers(runs[-1]), f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
    plot_data(runs, out_dir)
    print("\n".join(table))
    for m in missed:
        print(f"MISS {m}")
    return 1 if missed else 0


if sys.argv[1:2] == ["quick"] and len(sys.argv) == 3:
    quick(sys.argv[2])
elif sys.argv[1:2] == ["before"] and len(sys.argv) == 3:
    before(sys.argv[2])
elif sys.argv[1:2] == ["whole"] and len(sys.argv) > 3:
    sys.exit(whole(sys.argv[2], sys.argv[3:]))
else:
    sys.exit(__doc__)
