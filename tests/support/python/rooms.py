# SPDX-License-Identifier: Apache-2.0
"""The rooms of the source and their borders, as docs/ARCHITECTURE.md has them in its tables.

tests/lint/layers and tests/lint/where judge by this, tests/support/rooms prints it.
"""
import pathlib
import re

TOPS = ("common", "sandbox", "vessel", "tomb", "cli", "secrets", "job")
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"\s*$')
ANGLED = re.compile(r'^\s*#\s*include\s*<([^>]+)>\s*$')
# whatever else a compiler takes for an include, or nearly
OTHER = re.compile(r'^\W*(#|%:|\?\?=)\s*(include|import|embed)|^\s*_Pragma|^\ufeff')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
ENDINGS = (".c", ".h", ".def")
# Written by the build, into build/VARIANT/gen.
GENERATED = {"schema.inc", "gate_db.inc"}


class Table:
    """rooms: name -> (what it runs in, the rooms it may include); libraries: ([header], [who])."""

    def __init__(self, text):
        self.rooms, self.libraries = {}, []
        for line in text.splitlines():
            cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
            names = [re.findall(r"`([^`]+)`", c) for c in cells]
            if len(cells) == 4 and len(names[0]) == 1 and names[0][0].split("/")[0] in TOPS and not names[1]:
                if names[0][0] in self.rooms:
                    raise SystemExit(f"the table has {names[0][0]} twice")
                self.rooms[names[0][0]] = (cells[1], names[3])
            elif len(cells) == 2 and names[0] and names[1] and names[1][0].split("/")[0] in TOPS:
                self.libraries.append((names[0], names[1]))


def read_table(tree):
    """Of the section "Rooms of the source" only."""
    text = (pathlib.Path(tree) / "docs/ARCHITECTURE.md").read_text()
    return Table(text.split("## Rooms of the source", 1)[1].split("\n## ", 1)[0])


def sources(tree):
    """Each C file and table of the product, as a path below tree."""
    tree = pathlib.Path(tree)
    return sorted(str(f.relative_to(tree)) for top in TOPS for f in (tree / top).rglob("*")
                  if f.suffix in (".c", ".h", ".def") and f.is_file())


def room_of(path):
    return path.rpartition("/")[0]


def lines_of(tree, path):
    """Its lines, one that goes on after a backslash as one."""
    text = (pathlib.Path(tree) / path).read_text(errors="replace").replace("\\\n", "")
    # A comment is a blank to the compiler; its lines stay, so that numbers do.
    text = COMMENT.sub(lambda m: " " + "\n" * m[0].count("\n") if m[0].startswith("/") else m[0], text)
    return text.split("\n")


def strangers(tree):
    """What lies among the sources and is none: no compiler of ours reads it, and no lint either."""
    for top in TOPS:
        for f in (pathlib.Path(tree) / top).rglob("*"):
            if f.is_symlink():
                yield f"{f.relative_to(tree)}: a symbolic link among the sources"
            elif f.suffix.lower() in (".inc", ".hpp", ".hh", ".hxx", ".cc", ".cpp", ".cxx", ".s", ".asm", ".inl"):
                yield f"{f.relative_to(tree)}: not a .c, .h or .def"
            elif f.suffix in ENDINGS and f.name in GENERATED:
                yield f"{f.relative_to(tree)}: the name of a file that the build writes"


def graph(tree):
    """room -> {room: how many includes}"""
    edges = {}
    for path in sources(tree):
        for line in lines_of(tree, path):
            m = QUOTED.match(line)
            if m and m[1] not in GENERATED and room_of(m[1]) != room_of(path):
                of = edges.setdefault(room_of(path), {})
                of[room_of(m[1])] = of.get(room_of(m[1]), 0) + 1
    return edges


def circle(edges):
    """Rooms that include each other, in a row; empty when there are none."""
    state, way = {}, []

    def visit(room):
        state[room] = "open"
        way.append(room)
        for other in sorted(edges.get(room, {})):
            if state.get(other) == "open":
                return way[way.index(other):] + [other]
            found = visit(other) if other not in state else []
            if found:
                return found
        way.pop()
        state[room] = "done"
        return []

    for room in sorted(edges):
        found = visit(room) if room not in state else []
        if found:
            return found
    return []
