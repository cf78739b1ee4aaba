# SPDX-License-Identifier: Apache-2.0
"""typed.py BUILD TREE DIR PLACE... [--table TABLE]: what readers type: pages in the table's order, each from its top, in its place
(places.sh), judged by its exit code and, where the page shows what it prints, by that."""
import os, pathlib, re, subprocess, sys

sys.dont_write_bytecode = True
import documents  # noqa: E402

HERE = pathlib.Path(__file__).parent


def shown(comment):
    """What a page says that a command prints: its comment up to the first ';', or ':'; N is a number, … anything."""
    text = comment.split(";")[0] if ";" in comment else comment.split(": ")[0]
    parts = re.split(r"(\bN\b|…)", text.strip())
    pattern = "".join({"N": "[0-9]+", "…": ".*"}.get(p) or re.escape(p) for p in parts)
    return re.compile(rf"^\s*{pattern}\b|(?:^|\b|\s){pattern}\s*$", re.M)


class Place:
    def __init__(self, name, home):
        self.name, self.dir, self.steps = name, home, []
        for d in ("home", "run", "steps"):
            (home / d).mkdir(mode=0o700, parents=True)

    def step(self, found, row):
        n = len(self.steps)
        self.steps.append((found, row))
        (self.dir / "steps" / str(n)).write_text(found.text + "\n")
        to = row.where.partition(":")[2] if row.what == "written" else ""
        (self.dir / "steps" / f"{n}.what").write_text(f"{row.what} {to}")

    def type_all(self, build, tree):
        keep = {k: v for k, v in os.environ.items() if k in ("VARIANT", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LYCH_PG_TEMPLATE")}
        env = {"HOME": str(self.dir / "home"), "XDG_RUNTIME_DIR": str(self.dir / "run"), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
               "TERM": "dumb", "SHELL": "/bin/bash", "DOC_BUILD": str(build), "DOC_TREE": str(tree), "DOC_DIR": str(self.dir), **keep}
        done = subprocess.run(["bash", "--noprofile", "--norc", HERE / "places.sh", self.name, str(len(self.steps))], env=env, cwd=tree,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        return [] if done.returncode == 0 else [f"place {self.name}: exit {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"]

    def judge(self):
        for n, (found, row) in enumerate(self.steps):
            at = f"{found.page}:{found.line} (place {self.name})"
            files = [self.dir / "steps" / f"{n}.{x}" for x in ("rc", "out")]
            if not files[0].exists():
                yield f"{at}: was not typed: {found.key}"
                return
            rc, out = int(files[0].read_text()), files[1].read_text(errors="replace")
            want = int(row.where.partition(":")[2] or 0) if row.what in ("typed", "shown") else 0
            if rc != want:
                yield f"{at}: exit {rc}, not {want}: {found.key}\n{out[-1500:]}"
            elif row.what == "shown" and not shown(found.comment).search(out):
                yield f"{at}: prints something else than the page shows ('{found.comment}'): {found.key}\n{out[-1500:]}"


def main():
    build, tree, home = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    names, table = sys.argv[4:], HERE / "pages.tsv"
    if "--table" in names:
        at = names.index("--table")
        names, table = names[:at], pathlib.Path(names[at + 1]).resolve()
    seen = documents.Documents(build, tree, table)
    wrong = count = 0
    for name in names:
        place = Place(name, home / name)
        here = [p for p in seen.pairs if p[1] and p[1].what in ("typed", "shown", "written", "config") and p[1].where.partition(":")[0] == name]
        order = {}  # of the pages: by their first rows of this place
        for row in sorted(p[1] for p in here):
            order.setdefault(row.page, row.number)
        for found, row in sorted(here, key=lambda p: order[p[1].page]):
            place.step(found, row)
        count += len(place.steps)
        for line in place.type_all(build, tree) + list(place.judge()):
            wrong += 1
            print("FAIL", line)
    print(f"documents: {count} commands typed in {', '.join(names)}")
    if count == 0:
        print("FAIL nothing was typed")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
