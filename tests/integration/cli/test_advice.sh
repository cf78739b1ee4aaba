#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each command that an advice of lych why, a hint of an error or a limit names exists, with each
# option that it names: as the programs' own --help has them. No daemon runs.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin advice
python3 - "$LYCH_BIN" <<'END' || fail "an advice names what is not there"
import os, re, subprocess, sys
build, wrong, seen, helps = sys.argv[1], [], 0, {}

def text(*command):
    if command not in helps:
        path = build + "/" + command[0]
        r = os.path.exists(path) and subprocess.run([path, *command[1:], "--help"], capture_output=True, text=True,
                                                    timeout=60, stdin=subprocess.DEVNULL)
        helps[command] = r.stdout + r.stderr if r and r.returncode == 0 else None
    return helps[command]

def has(page, option):
    return re.search(r"(^|[\s,|(\[])" + re.escape(option) + r"($|[\s,=\[\]|;:])", page) is not None

def check(where, command):
    global seen
    seen += 1
    words = command.split()
    program = tuple(words[:1 if words[0] != "lych" or len(words) == 1 else 2])
    page = text(*program)
    if page is None:
        wrong.append((where, command, "no such command"))
        return
    for option in [w.split("=")[0] for w in words if re.match(r"--?[a-z]", w)]:
        if not has(page, option):
            wrong.append((where, command, option))

def source(path):
    # neighbouring strings of C are one
    return re.sub(r'"\s*\n\s*"', "", open(path, encoding="utf-8").read())

rows = re.findall(r'^X\((\w+), "([^"]+)", "([^"]+)"\)$', open("cli/jobs/why_advice.def").read(), re.M)
assert len(rows) >= 15 and len({r[0] for r in rows}) == len(rows), "the table is not read, or has a row twice"
errors = source("common/errors.def")
for symbol, command, what_for in rows:
    if not re.search(r"^X\(" + symbol + ",", errors, re.M):
        wrong.append((symbol, command, "no such error"))
    check(symbol, command)
# quoted commands in all that advises
for path in ("common/errors.def", "cli/jobs/why_advice.def", "cli/jobs/why.c", "cli/jobs/cmd_why.c"):
    for command in re.findall(r"'(lych(?:-[a-z]+)*(?: [^'\\\"%]*)?)['\"%]", source(path)):
        check(path, command)
for path in ("cli/base/mode.c", "cli/doctor/cmd_doctor.c", "cli/doctor/doctor_broker.c"):
    for text_ in re.findall(r'"(lych [^"]*)"', source(path)):
        for command in re.split("; | \\| ", text_):
            if command.startswith("lych "):
                check(path, re.sub("%[.0-9]*s", "x", command))
limits = re.findall(r'"[a-z]+", "[a-z_]+", "(--[a-z]+)"', source("cli/jobs/why.c"))
assert len(limits) == 5, limits
for option in limits:
    check("a limit", "lych run " + option)
for file in ("explain/grants.c", "keeper/notify_deny.c"):
    for option in set(re.findall(r'"(--[a-z]+)(?: [a-z]+)?"', source("sandbox/" + file))):
        check(file, "lych-sandbox " + option)
for secret in (".ssh", ".gnupg", ".env", ".aws", "credentials", "id_rsa"):
    wrong += [(r[0], r[1], "grants " + secret) for r in rows if secret in r[1]]
for w in wrong:
    print("   ", *w)
# the check itself finds what is wrong
n = len(wrong)
check("sin", "lych why --no-such-option"); check("sin", "lych no-such-command"); check("sin", "lych-sandbox --profile x")
assert len(wrong) == n + 3, wrong[n:]
print(f"{seen - 3} commands")
assert seen > 60, seen
sys.exit(n > 0)
END
