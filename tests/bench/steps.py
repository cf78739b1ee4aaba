#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a start costs, step by step, seen from outside: system calls and function entries of the
release build, by the kernel's tracer (tracefs, an instance of our own). Root, x86-64.

steps.py SANDBOX full|floor|warm -- COMMAND...

full and floor are cold starts, warm is one of grade full.

COMMAND drives one contestant of the spawner (bench_latency). A start is what lies between two
rests of the driver. Tracing itself costs: the sum is larger than what `make bench` measures;
what counts is where it goes. A step ends where the next one begins; of a step that a wake-up
of another process ends, the wake-up is a part.
"""
import os
import re
import subprocess
import sys

TRACING = "/sys/kernel/tracing"
INSTANCE = TRACING + "/instances/lych-bench"
GROUP = "lychbench"
DRIVER = "bench_latency"
WAITS = ("ppoll", "poll", "recvfrom", "waitid", "wait4")

# step, who, what marks its beginning. who: driver, spawner, keeper, guard, job. A mark is the entry of
# a function of lych-sandbox, "> call" or "< call" (a system call begins or has returned),
# "born" (the first event of the process), "exec", "exit".
REQUEST = [
    ("the request, with its spec", "driver", "> sendmsg"),
    ("the spawner wakes up", "driver", "< sendmsg"),
    ("spawner: message, spec, workspace", "spawner", "< recvmsg"),
]
END = [
    ("job: limits", "job", "limits_apply"),
    ("job: Landlock in force", "job", "landlock_enforce"),
    ("job: self-test", "job", "selftest_run"),
    ("job: execve", "job", "> execve"),
    ("the command itself, with ld.so", "job", "exec"),
    ("its exit, the keeper wakes up", "job", "exit"),
    ("keeper: last look", "keeper", "last_look"),
    ("the guard wakes up", "keeper", "> write"),
    ("guard: report", "guard", "guard_report"),
    ("the spawner wakes up, EXITED", "guard", "> sendto"),
    ("the driver wakes up", "spawner", "> sendmsg"),
    ("", "driver", "< recvfrom"),
]
JOB = [
    ("keeper: fork of the guard", "keeper", "guard_fork"),
    ("guard: until it forks", "guard", "born"),
    ("guard: fork of the job", "guard", "> clone"),
    ("job: until its first stage", "job", "born"),
    ("job: descriptors", "job", "fds_arrange"),
    ("job: session, signals", "job", "> setsid"),
    ("job: cgroup", "job", "limits_enter"),
    ("job: /proc covered", "job", "root_cover_proc"),
    ("job: capabilities", "job", "walls_drop_caps"),
    ("job: seccomp", "job", "seccomp_install"),
    ("job: listener to the keeper, whose rules and go", "job", "notify_hand_over"),
    *END,
]
MARKS = {
    "full": [
        *REQUEST,
        ("spawner: keeper_start, limits", "spawner", "keeper_start"),
        ("clone with 6 namespaces", "spawner", "> clone"),
        ("keeper: identity maps", "keeper", "born"),
        ("keeper: descriptors, signals, session", "keeper", "keeper_main"),
        ("keeper: root from the template", "keeper", "root_from_template"),
        *JOB,
    ],
    "floor": [
        *REQUEST,
        ("spawner: keeper_start, limits", "spawner", "keeper_start"),
        ("fork of the keeper", "spawner", "> clone"),
        ("keeper: descriptors, signals, session", "keeper", "born"),
        *(step for step in JOB if step[2] != "root_cover_proc"),
    ],
    "warm": [
        *REQUEST,
        ("spawner: a warm one, limits, hand over", "spawner", "keeper_bind"),
        ("keeper: spec, workspace, limits", "keeper", "birth_bind"),
        ("keeper: its last rights, go", "keeper", "cpus_pin"),
        *END,
    ],
}


def put(path, text, flags=os.O_TRUNC):
    fd = os.open(path, os.O_WRONLY | flags)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def syscall_names():
    names = {}
    with open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", encoding="ascii") as f:
        for line in f:
            m = re.match(r"#define __NR_(\w+) (\d+)", line)
            if m:
                names[int(m[2])] = m[1]
    return names


def function_offsets(program, wanted):
    out = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = {w[2]: int(w[0], 16) for w in map(str.split, out.splitlines()) if len(w) == 3 and w[1] in "tT"}
    missing = [w for w in wanted if w not in address]
    if missing:
        sys.exit(f"steps: {program} has no {', '.join(missing)}: adapt MARKS")
    segments = []
    out = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        w = line.split()
        if w[:1] == ["LOAD"]:
            segments.append([int(x, 16) for x in (w[1], w[2], w[4])])
    offsets = {}
    for name in wanted:
        for offset, start, size in segments:
            if start <= address[name] < start + size:
                offsets[name] = address[name] - start + offset
    return offsets


def trace(program, functions, command):
    """The lines of the trace of command and all of its descendants."""
    if not os.path.isdir(TRACING + "/instances"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], check=True)
    os.makedirs(INSTANCE, exist_ok=True)
    try:
        for name, offset in function_offsets(program, functions).items():
            put(TRACING + "/uprobe_events", f"p:{GROUP}/{name} {program}:0x{offset:x}\n", os.O_APPEND)
        put(INSTANCE + "/buffer_size_kb", "40000")
        put(INSTANCE + "/trace_clock", "mono")
        put(INSTANCE + "/options/event-fork", "1")
        put(INSTANCE + "/trace", "")
        put(INSTANCE + "/set_event_pid", str(os.getpid()))
        for event in ("raw_syscalls", "sched/sched_process_fork", "sched/sched_process_exec",
                      "sched/sched_process_exit", GROUP):
            put(f"{INSTANCE}/events/{event}/enable", "1")
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        put(INSTANCE + "/tracing_on", "0")
        with open(INSTANCE + "/trace", encoding="ascii", errors="replace") as f:
            return f.readlines()
    finally:
        put(INSTANCE + "/tracing_on", "0")
        for event in ("raw_syscalls", "sched", GROUP):
            if os.path.exists(f"{INSTANCE}/events/{event}"):
                put(f"{INSTANCE}/events/{event}/enable", "0")
        os.rmdir(INSTANCE)
        for name in functions:
            try:
                put(TRACING + "/uprobe_events", f"-:{GROUP}/{name}\n", os.O_APPEND)
            except OSError:
                pass


LINE = re.compile(r"\s*(.+)-(\d+)\s+\[\d+\] \S+\s+(\d+\.\d+): (\w+): ?(.*)")


def events(lines, names):
    """(microsecond, pid, mark, text of the event or name of the process)"""
    for line in lines:
        m = LINE.match(line)
        if not m:
            continue
        at, pid, what, text = round(float(m[3]) * 1e6), int(m[2]), m[4], m[5]
        if what in ("sys_enter", "sys_exit"):
            nr = int(text.split()[1])
            mark = (">" if what == "sys_enter" else "<") + " " + names.get(nr, str(nr))
            mark, text = mark.replace("clone3", "clone"), m[1]
        elif what == "sched_process_fork":
            mark = "fork"
        else:
            mark = {"sched_process_exec": "exec", "sched_process_exit": "exit"}.get(what, what)
        yield at, pid, mark, text


def starts(stream):
    """The events of each start: from one rest of the driver to the next."""
    driver, current = None, None
    for event in stream:
        _, pid, mark, name = event
        if mark == "> sendmsg" and name == DRIVER:
            driver, current = pid, []
        elif pid == driver and mark in ("> clock_nanosleep", "> nanosleep") and current:
            yield driver, current
            current = None
        if current is not None:
            current.append(event)


def walk(driver, evs, marks):
    """[(time, pid)] of the marks, in order; None when one does not come."""
    who, parent, times = {"driver": driver}, {}, []
    child_of = {"keeper": "spawner", "guard": "keeper", "job": "guard"}
    i = 0
    for _, role, mark in marks:
        while True:
            if i == len(evs):
                return None, f"{role} {mark}"
            at, pid, what, text = evs[i]
            if what == "fork":
                child = re.search(r"child_pid=(\d+)", text)
                parent[int(child[1])] = pid
            if role in who:
                fits = pid == who[role] and (what == mark or (mark == "born" and what != "fork"))
            elif mark == "born":
                fits = what != "fork" and parent.get(pid) == who[child_of[role]]
            else:
                fits = what == mark and pid not in who.values()
            if fits:
                break
            i += 1
        who[role] = pid
        times.append((at, pid))
        i += 0 if mark == "born" else 1
    return times, None


def median(values):
    s = sorted(values)
    return (s[(len(s) - 1) // 2] + s[len(s) // 2]) / 2


def undisturbed(values):
    """The first decile: on a machine with other work, what it takes when nothing comes between."""
    return sorted(values)[len(values) // 10]


def calls_by_step(evs, found):
    """{(step, call): (number, microseconds)} of one start, of the process that the step is of."""
    spent, begun = {}, {}
    for at, pid, what, _ in evs:
        if what.startswith("> "):
            begun[pid] = (at, what[2:])
        elif what.startswith("< ") and pid in begun:
            since, call = begun.pop(pid)
            step = sum(1 for t, _ in found if t <= since) - 1
            if 0 <= step < len(found) - 1 and found[step][1] == pid and call not in WAITS:
                n, us = spent.get((step, call), (0, 0))
                spent[step, call] = (n + 1, us + at - since)
    return spent


def report(grade, all_starts):
    marks = MARKS[grade]
    chains, spent, lost = [], [], {}
    for driver, evs in all_starts:
        times, missing = walk(driver, evs, marks)
        if times is None:
            lost[missing] = lost.get(missing, 0) + 1
            continue
        chains.append([at for at, _ in times])
        spent.append(calls_by_step(evs, times))
    if len(chains) < 5:
        sys.exit(f"steps: only {len(chains)} whole starts; lost at {lost}")
    total = median([t[-1] - t[0] for t in chains])
    best = sum(undisturbed([t[i + 1] - t[i] for t in chains]) for i in range(len(marks) - 1))
    print(f"{grade}: {len(chains)} starts with tracing on (others lost: {lost or 'none'});")
    print(f"median {total:.0f} µs; the sum of the first deciles of the steps {best:.0f} µs\n")
    print("| step | p10 µs | share | median µs | calls | where (median µs × calls) |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for i, (label, _, _) in enumerate(marks[:-1]):
        took = [t[i + 1] - t[i] for t in chains]
        us, quiet = median(took), undisturbed(took)
        calls = {}
        for s in spent:
            for (step, call), sums in s.items():
                if step == i:
                    calls.setdefault(call, []).append(sums)
        inside = [(median([t for _, t in v]), median([n for n, _ in v]), c) for c, v in calls.items()
                  if len(v) > len(chains) / 2]
        count = sum(n for _, n, _ in inside)
        top = ", ".join(f"{c} {t:.0f} × {n:.0f}" for t, n, c in sorted(inside, reverse=True)[:4] if t >= 5)
        print(f"| {label} | {quiet:.0f} | {quiet / best:.0%} | {us:.0f} | {count:.0f} | {top} |")


def main():
    if len(sys.argv) < 5 or sys.argv[2] not in MARKS or sys.argv[3] != "--":
        sys.exit(__doc__)
    program, grade, command = sys.argv[1], sys.argv[2], sys.argv[4:]
    functions = sorted({m for _, _, m in MARKS[grade] if m[0] not in "<>" and m not in ("born", "exec", "exit")})
    lines = trace(program, functions, command)
    report(grade, list(starts(events(lines, syscall_names()))))


main()
