# SPDX-License-Identifier: Apache-2.0
"""documents.py check|rows BUILD TREE [TABLE]: each command that a page shows has a row in the table, each row a command,
and all options and commands that pages name are there. "rows" prints the rows that are missing, to be filled in."""
import collections, json, pathlib, re, sys

sys.dont_write_bytecode = True
import options, reading  # noqa: E402

# what a row says is done with its command, and of which blocks (that are no commands) it may say so
KINDS = {
    "typed": "command inline", "shown": "command inline",   # where: place, or place:exit
    "written": "block", "config": "block inline",           # where: place:FILE below HOME (>FILE: anew), place
    "covered": "command inline", "used": "block",           # where: test~text that is in it
    "syntax": "command inline", "synopsis": "command",      # where: why it is not typed
    "json": "block", "text": "block",                       # where: -
}
Row = collections.namedtuple("Row", "number page what where command")
# Of which nobody would look for an example: a unit or a starter runs it, or there is nothing to say to it.
NO_EXAMPLE = ("lych react", "lych version", "lych-tomb", "lych-scribe")


class Documents:
    def __init__(self, build, tree, table, programs=None, only=None):
        self.tree = pathlib.Path(tree)
        self.programs = programs or options.Programs(build, tree)
        self.wrong = []
        self.rows = self.read_table(pathlib.Path(table))
        firsts = collections.defaultdict(set)
        for row in self.rows:
            if row.what in KINDS and "block" in KINDS[row.what]:
                firsts[row.page].add(row.command)
        self.texts = only or reading.pages(tree, self.programs.pages())
        self.found = [f for name, text in self.texts.items() for f in reading.read_page(name, text, firsts[name])]
        self.pairs = self.match()

    def say(self, where, what):
        self.wrong.append(f"{where}: {what}")

    def read_table(self, path):
        rows = []
        for n, line in enumerate(path.read_text().split("\n"), 1):
            if not line or line.startswith("#"):
                continue
            fields = line.split("\t")
            if len(fields) != 4 or fields[1] not in KINDS:
                self.say(f"{path.name}:{n}", "not page, what, where, command with a tab between each")
                continue
            rows.append(Row(n, *fields))
        return rows

    def match(self):
        """(found, row or None): rows in the order of the page, each for one command."""
        left = collections.defaultdict(list)
        for row in self.rows:
            left[row.page, row.command].append(row)
        taken = {}
        for inline in (False, True):  # blocks choose first
            for i, f in enumerate(self.found):
                rows = left[f.page, f.key]
                fits = next((r for r in rows if (f.kind == "inline") == inline and f.kind in KINDS[r.what].split()), None)
                if fits:
                    rows.remove(fits)
                    taken[i] = fits
        pairs = [(f, taken.get(i)) for i, f in enumerate(self.found)]
        for rows in left.values():
            for row in rows:
                self.say(f"pages.tsv:{row.number}", f"{row.page} has no such {'block' if KINDS[row.what] == 'block' else 'command'}: {row.command}")
        return pairs

    def missing(self):
        return [f for f, row in self.pairs if row is None and f.kind == "command"]

    def check(self):
        for f in self.missing():
            self.say(f"{f.page}:{f.line}", f"a new command in a document needs a row in pages.tsv: {f.key}")
        shown = {f.page for f in self.found if f.kind == "command"}
        for page in self.texts:
            program, is_help, _ = page.partition(" --help")
            if is_help and page not in shown and program not in NO_EXAMPLE:
                self.say(page, "shows no example")
        for f, row in self.pairs:
            where = f"{f.page}:{f.line}"
            if f.kind != "block":
                is_synopsis = row is not None and row.what == "synopsis"
                for wrong in self.programs.synopsis(f.text) if is_synopsis else self.programs.check(f.text, f.kind == "inline"):
                    self.say(where, f"{wrong}: {f.key}")
            if row is not None:
                self.judge(where, f, row)
        return self.wrong

    def judge(self, where, f, row):
        if row.what in ("covered", "used"):
            test, _, text = row.where.partition("~")
            path = self.tree / test
            if not path.is_file() or not text or text not in path.read_text(errors="replace"):
                self.say(where, f"'{text}' is not in {test}, which is to cover it: {f.key}")
        elif row.what == "json":
            try:
                json.loads(f.text)
            except ValueError as e:
                self.say(where, f"no JSON ({e}): {f.key}")
        elif row.what == "text" and re.match(r"\s*(%s|make|systemctl|podman|sudo)\s" % "|".join(reading.PROGRAMS), f.text) and "─" not in f.text:
            self.say(where, f"a block of commands that is said to be text: {f.key}")
        elif row.what == "shown" and not f.comment:
            self.say(where, f"the page shows nothing of what it prints: {f.key}")


def main():
    mode, build, tree = sys.argv[1:4]
    here = pathlib.Path(__file__).parent
    documents = Documents(build, tree, sys.argv[4] if len(sys.argv) > 4 else here / "pages.tsv")
    if mode == "rows":
        for f in documents.missing():
            print(f.page, "?", "?", f.key, sep="\t")
        return 0
    wrong = documents.check()
    for line in wrong:
        print("FAIL", line)
    kinds = collections.Counter(row.what for _, row in documents.pairs if row)
    print(f"documents: {sum(1 for f in documents.found if f.kind != 'block')} commands on {len({f.page for f in documents.found})} pages: "
          + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))
    if sum(kinds.values()) < 60:
        print("FAIL the pages were not read")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
