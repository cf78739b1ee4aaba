# SPDX-License-Identifier: Apache-2.0
"""seeds_typed.py BUILD TREE DIR: a made-up page that is typed, whose sins, and nothing else of it, typed.py must see."""
import pathlib, subprocess, sys

sys.dont_write_bytecode = True
import reading  # noqa: E402
from seeds import block, row  # noqa: E402

# of a page that is typed, line by line: how it is judged, the line, part of what is said of it (none: it is right)
TYPED = [
    ("typed", "seed", "lych config init", None),
    ("typed", "seed", "lych config init", "exit 1, not 0: lych config init"),
    ("typed", "seed:1", "lych config init", None),
    ("typed", "seed", "lych config check", None),
    ("typed", "seed", "python3 agent.py", "exit 2, not 0: python3 agent.py"),
    ("typed", "seed", "lych-sandbox --nonsense", "exit 2, not 0"),
    ("typed", "seed", "(exit 3) | cat", "exit 3, not 0"),
    ("shown", "seed", "echo 20 22 | awk '{print $1+$2}'   # 42", None),
    ("shown", "seed", "echo 20 22 | awk '{print $1+$2+1}' # 42", "prints something else than the page shows ('42')"),
    ("shown", "seed", "echo 142                 # 42", "prints something else"),
    ("shown", "seed", "echo 'took 12 s, all'    # took N s; so long", None),
    ("shown", "seed", "echo 'took long'         # took N s; so long", "prints something else"),
    ("shown", "seed", "echo 'a: b; ended'       # a: … ended; it says", None),
    ("shown", "seed:7", "echo 7; (exit 7)       # 7: its exit code", None),
    ("typed", "seed", "mkdir ~/there && cd ~/there && here=5", None),
    ("shown", "seed", "basename $PWD-$here      # there-5", None),
]
# and what its text says of codex.yaml
SETTINGS = [
    ("config", "seed", "tomb.slots: 9", None),
    ("config", "seed", "tomb.slots: 900", "exit 2, not 0: tomb.slots: 900"),
    ("config", "seed", "pod: {profile: sovereign}", None),
    ("config", "seed", "pod: {profile: silver}", "exit 2, not 0"),
]


def main():
    build, tree, home = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    wrong, table = [], home / "table.tsv"
    made = home / "tree"
    made.mkdir()
    for name in ("Makefile", "mk"):
        (made / name).symlink_to(tree / name)
    page = block(*(line for _, _, line, _ in TYPED))
    steps = list(enumerate(TYPED, 3)) + list(enumerate(SETTINGS, page.count("\n") + 1))
    (made / "README.md").write_text(page + "".join(f"`{line}`\n" for _, _, line, _ in SETTINGS))
    keys = [" ".join(reading.split_comment(line)[0].split()) for _, (_, _, line, _) in steps]
    table.write_text("".join(row(what, where, key) + "\n" for (_, (what, where, _, _)), key in zip(steps, keys)))
    done = subprocess.run([sys.executable, pathlib.Path(__file__).parent / "typed.py", build, made, home / "typed", "seed", "--table", table],
                          capture_output=True, text=True)
    seen = [line for line in done.stdout.split("\n") if line.startswith("FAIL ")]
    want = [(n, said) for n, (_, _, _, said) in steps if said]
    if done.returncode != 1 or len(seen) != len(want):
        wrong.append(f"typed: exit {done.returncode}, {len(seen)} instead of {len(want)} seen: {done.stdout}{done.stderr}")
    for line, (n, said) in zip(seen, want):
        if f"README.md:{n} " not in line or said not in line:
            wrong.append(f"typed: {line}, not line {n}: {said}")
    for line in wrong:
        print("FAIL", line)
    print(f"documents: {len(steps)} typed seeds")
    return 1 if wrong else 0


sys.exit(main())
