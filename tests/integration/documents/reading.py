# SPDX-License-Identifier: Apache-2.0
"""What a page shows: commands and other blocks, in the order in which a reader meets them."""
import dataclasses, pathlib, re, subprocess

PROGRAMS = ("lych", "lych-sandbox", "lych-vessel", "lych-tomb", "lych-scribe", "lych-audit", "lych-ask", "lych-fetch",
            "lych-secret-driver")
EXAMPLES = "Examples:"  # of a --help, above them


@dataclasses.dataclass
class Found:
    """kind: command (of a block: needs a row), block (of text: its first line needs one), inline (may have one)"""
    page: str
    line: int
    kind: str
    text: str       # a command without its comment; of a block all of it
    comment: str = ""

    @property
    def key(self):
        return " ".join((self.text.strip().split("\n")[0] if self.kind == "block" else self.text).split())


def split_comment(line):
    """A line of a shell: what is typed, and the comment behind it."""
    quote = ""
    for i, c in enumerate(line):
        if quote:
            quote = "" if c == quote and not (c == '"' and line[i - 1] == "\\") else quote
        elif c in "'\"":
            quote = c
        elif c == "#" and (i == 0 or line[i - 1].isspace()):
            return line[:i].rstrip(), line[i + 1:].strip()
    return line.rstrip(), ""


def is_whole(text):
    """A shell would execute it now, and wait for no more lines."""
    if text.endswith("\\"):
        return False
    if not re.search(r"['\"({]|\b(for|while|until|if|case)\b|<<", text):
        return True
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True).returncode == 0


def commands_of(page, first, lines):
    """Of a block of commands each, with its lines joined."""
    gathered, comment, at = [], "", first
    for n, line in enumerate(lines, first):
        typed, said = split_comment(line)
        if not gathered:
            at, comment = n, ""
        comment = comment or said
        if not typed.strip():
            continue
        gathered.append(typed)
        text = "\n".join(gathered)
        if is_whole(text) and not (n < first + len(lines) - 1 and re.match(r"\s+[-\[]", lines[n - first + 1])):
            yield Found(page, at, "command", text.replace("\\\n", " "), comment)
            gathered = []
    if gathered:
        yield Found(page, at, "command", "\n".join(gathered), comment)


def markdown_blocks(lines):
    """(number of the first line, lines): indented by four after a blank line, or fenced; a blank line ends one."""
    block, start, fenced, open_to_code = [], 0, False, True
    for n, line in enumerate(lines + [""], 1):
        fence = re.match(r"\s*(```|~~~)", line)
        if fence:
            fenced = not fenced
        inside = (fenced and not fence and line.strip()) or (not fenced and (block or open_to_code) and line.startswith("    ") and line.strip())
        if inside:
            if not block:
                start = n
            block.append(line)
        else:
            if block:
                cut = min(len(b) - len(b.lstrip()) for b in block)
                yield start, [b[cut:] for b in block]
            block = []
            if not fence:
                open_to_code = not line.strip()


def roff(text):
    for a, b in ((r"\(aq", "'"), (r"\(dq", '"'), (r"\-", "-"), (r"\&", ""), (r"\en", r"\n"), (r"\e", "\\"), (r"\ ", " ")):
        text = text.replace(a, b)
    return text


def man_blocks(lines):
    start, block = 0, None
    for n, line in enumerate(lines, 1):
        if line.startswith(".Bd "):
            start, block = n + 1, []
        elif line.startswith(".Ed") and block is not None:
            yield start, block
            block = None
        elif line.startswith(".Dl "):
            yield n, [roff(line[4:])]
        elif block is not None:
            block.append(roff(line))


def help_blocks(lines):
    """Examples of a --help: the indented lines below EXAMPLES, and others that begin with a program's name and are no synopsis."""
    usage = example = False
    for n, line in enumerate(lines, 1):
        usage = line.startswith("Usage:") or (usage and bool(re.match(r" +(or: )?", line)))
        example = line == EXAMPLES or (example and line.startswith("  "))
        found = re.match(r"\s+(?:\$ )?((?:%s) .*)" % "|".join(PROGRAMS), line)
        if example and line != EXAMPLES:
            yield n, [line.strip()]
        elif found and not usage:
            yield n, [found[1]]


INLINE = {"md": re.compile(r"`([^`]+)`|(?<!\w)'(lych[ -][^'\n]+)'"), "man": re.compile(r"^\.[QD]l (.*)$", re.M), "help": re.compile(r"'([^'\n]+)'")}


def inline(page, kind, text, rows):
    """What the text itself names: programs of ours with more than a name, targets of make, and what has a row."""
    for m in INLINE[kind].finditer(text):
        said = next(g for g in m.groups() if g)
        words = " ".join((roff(said) if kind == "man" else said).split())
        if kind == "man":
            words = re.sub(r" [.,;:]$", "", words)
        if words in rows or (words.split(" ")[0] in PROGRAMS + ("make",) and " " in words):
            yield Found(page, text.count("\n", 0, m.start()) + 1, "inline", words)


def read_page(name, text, rows):
    """Everything in order. rows(page) has the first lines of the blocks that are no commands."""
    kind = "help" if " --help" in name else "man" if re.search(r"\.[158]$", name) else "md"
    lines = text.split("\n")
    blocks = {"md": markdown_blocks, "man": man_blocks, "help": help_blocks}[kind]
    found, quoted = [], set()
    for first, block in blocks(lines):
        quoted.update(range(first, first + len(block)))
        whole = Found(name, first, "block", "\n".join(block))
        if whole.key in rows:
            found.append(whole)
        else:
            found.extend(commands_of(name, first, block))
    found.extend(f for f in inline(name, kind, text, rows) if f.line not in quoted)
    return sorted(found, key=lambda f: f.line)


def pages(tree, help_of):
    """name -> text of all pages that a reader has."""
    tree = pathlib.Path(tree)
    names = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "containerfiles/README.md", "quadlet/README.md"]
    names += sorted(str(f.relative_to(tree)) for f in tree.glob("docs/*.md"))
    names += sorted(str(f.relative_to(tree)) for f in tree.glob("docs/man/*.[158]"))
    found = {n: (tree / n).read_text() for n in names if (tree / n).exists()}
    found.update(help_of)
    return found
