# SPDX-License-Identifier: Apache-2.0
"""seeds.py BUILD TREE DIR: made-up pages, each with one sin, which documents.py must see, and honest ones, of which it must
say nothing."""
import pathlib, sys

sys.dont_write_bytecode = True
import documents, options  # noqa: E402

RUN = "lych run -- true"
TESTS = "tests"  # apart, for the lint that looks for names of tests


def block(*lines):
    return "Do:\n\n" + "".join(f"    {line}\n" for line in lines) + "\nDone.\n"


def row(what, where, command, page="README.md"):
    return f"{page}\t{what}\t{where}\t{command}"


# what, page, its text, rows, part of what is said of it (none: nothing is)
SINS = [
    ("honest", "README.md", block(f"{RUN}   # why", "lych jobs; lych show 3"), [row("syntax", "x", RUN), row("syntax", "x", "lych jobs; lych show 3")], None),
    ("a command without a row", "README.md", block(RUN, "lych jobs"), [row("syntax", "x", RUN)], "needs a row in pages.tsv: lych jobs"),
    ("so in a fence", "README.md", f"```sh\n{RUN}\n```\n", [], f"needs a row in pages.tsv: {RUN}"),
    ("so in a manual", "docs/man/x.1", ".Sh EXAMPLES\n.Dl lych jobs\n", [], "needs a row in pages.tsv: lych jobs"),
    ("so in a literal block of a manual", "docs/man/x.1", ".Bd -literal\nlych jobs\n.Ed\n", [], "needs a row"),
    ("so in an example of --help", "lych run --help", "Usage: lych run ARGV\n\nDo this:\n  lych jobs\n", [], "needs a row"),
    ("so when another program begins it", "lych run --help", "Usage: lych run ARGV\n\nExamples:\n  echo 1 | lych jobs\n", [], "needs a row"),
    ("below the examples", "lych run --help", "Usage: lych run ARGV\n\nExamples:\n  lych jobs\n\n  echo 1\n", [row("syntax", "x", "lych jobs", "lych run --help")], None),
    ("no example", "lych run --help", "Usage: lych run ARGV\n", [], "lych run --help: shows no example"),
    ("none is looked for", "lych react --help", "Usage: lych react\n", [], None),
    ("a synopsis in --help", "lych react --help", "Usage: lych react ARGV\n       lych run --list\n", [], None),
    ("one that goes on in the next line", "README.md", block("for i in 1 2; do", "  lych jobs", "done"), [row("syntax", "x", "for i in 1 2; do lych jobs done")], None),
    ("a row without a command", "README.md", block(RUN), [row("syntax", "x", RUN), row("syntax", "x", "lych jobs")], "has no such command: lych jobs"),
    ("one row for two", "README.md", block(RUN, RUN), [row("syntax", "x", RUN)], "needs a row"),
    ("a row of another page", "README.md", block(RUN), [row("syntax", "x", RUN, "SECURITY.md")], "needs a row"),
    ("a line of the table that is none", "README.md", block(RUN), [row("syntax", "x", RUN), "README.md typed x"], "not page, what, where, command"),
    ("an option that is not there", "README.md", block("lych run --tiemout 5 -- true"), [row("syntax", "x", "lych run --tiemout 5 -- true")], "lych run has no option '--tiemout'"),
    ("a letter", "README.md", block("lych run -Q -- true"), [row("syntax", "x", "lych run -Q -- true")], "lych run has no option '-Q'"),
    ("an option of the job's own", "README.md", block("lych run -- true --tiemout"), [row("syntax", "x", "lych run -- true --tiemout")], None),
    ("a command that is not there", "README.md", block("lych up && lych stauts"), [row("syntax", "x", "lych up && lych stauts")], "lych has no command 'stauts'"),
    ("so within another", "README.md", block("lych cancel $(lych rnu -- true)"), [row("syntax", "x", "lych cancel $(lych rnu -- true)")], "lych has no command 'rnu'"),
    ("a sub-command", "README.md", block("lych secret chex"), [row("syntax", "x", "lych secret chex")], "lych secret has no 'chex'"),
    ("a value", "README.md", block("lych run --egress open -- true"), [row("syntax", "x", "lych run --egress open -- true")], "egress is one of none|brokered|registry"),
    ("an option of another program", "README.md", block("lych-sandbox --egress none -- true"), [row("syntax", "x", "lych-sandbox --egress none -- true")], "lych-sandbox has no option '--egress'"),
    ("of a program inside", "README.md", block("lych run -- lych-ask --modle x"), [row("syntax", "x", "lych run -- lych-ask --modle x")], "lych-ask has no option '--modle'"),
    ("an option in the text", "README.md", "Say `lych jobs --al`.\n", [], "lych jobs has no option '--al'"),
    ("in a hint", "docs/ERRORS.md", "| X | List them with 'lych jobs --al'. |\n", [], "lych jobs has no option '--al'"),
    ("in the text of a manual", "docs/man/x.1", "as\n.Ql lych konfig check .\n", [], "lych has no command 'konfig'"),
    ("what stands for something in the text", "README.md", "`lych secret set … --generate`, `lych request WORD`, `lych logs -f`\n", [], None),
    ("a synopsis", "README.md", block("lych-audit verify DIR [--jsno]"), [row("synopsis", "x", "lych-audit verify DIR [--jsno]")], "lych-audit has no option '--jsno'"),
    ("a target of make", "README.md", block("make chekx"), [row("syntax", "x", "make chekx")], "make has no target 'chekx'"),
    ("a program of the tree", "README.md", block(f"{TESTS}/fresh/rnu x"), [row("syntax", "x", f"{TESTS}/fresh/rnu x")], "/fresh/rnu is no program of this tree"),
    ("its option", "README.md", block("containerfiles/build --bsae x"), [row("syntax", "x", "containerfiles/build --bsae x")], "has no option '--bsae'"),
    ("a test that does not cover it", "README.md", block(RUN), [row("covered", "Makefile~no such words in it", RUN)], "is not in Makefile, which is to cover it"),
    ("a test that is not there", "README.md", block(RUN), [row("covered", f"{TESTS}/nobody.sh~lych", RUN)], "which is to cover it"),
    ("commands that are said to be text", "README.md", block(RUN), [row("text", "-", RUN)], "a block of commands that is said to be text"),
    ("nothing is shown", "README.md", block(RUN), [row("shown", "seed", RUN)], "shows nothing of what it prints"),
    ("no JSON", "README.md", block('{"a": 1,}'), [row("json", "-", '{"a": 1,}')], "no JSON"),
]


def main():
    build, tree, home = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    programs, wrong = options.Programs(build, tree), []
    table = home / "table.tsv"
    for what, page, text, rows, said in SINS:
        table.write_text("\n".join(rows) + "\n")
        seen = documents.Documents(build, tree, table, programs, {page: text}).check()
        if (said is None and seen) or (said is not None and not any(said in s for s in seen)):
            wrong.append(f"{what}: {seen}, not {said}")
    for line in wrong:
        print("FAIL", line)
    print(f"documents: {len(SINS)} seeds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
