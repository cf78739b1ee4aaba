# SPDX-License-Identifier: Apache-2.0
"""Commands and options that there are, as each program's --help tells them, and what a line uses of others."""
import os, pathlib, re, subprocess

from reading import EXAMPLES

WORD = re.compile(r"""(?:[^\s;&|<>()'"`]|"(?:\\.|[^"\\])*"|'[^']*')+|&&|\|\||[;&|()<>\n]|[0-9]?>&[0-9-]""")
OPENERS = ("for", "while", "until", "if", "then", "do", "else", "!", "{", "time", "exec", "sudo", "done", "}")
# Words that stand for others: NAME, FILE-2, ..., …
STANDS = re.compile(r"^(\.\.\.|…|[A-Z][A-Z0-9_|-]*|\[.*)$")


class Table:
    def __init__(self, text, program):
        self.long, self.short = {}, {}
        for name, value in self._options(text):
            self.long[name] = self.long.get(name) or value
        for letter, name in re.findall(r"^\s+-(\w), --([a-z-]+)", text, re.M):
            self.short[letter] = self.long[name]
        self.words = set()
        usage = re.match(r"(Usage:.*\n(?:\s+.*\n)*)", text)
        for line in (usage[1] if usage else "").split("\n"):
            rest = re.sub(rf"^(Usage:|\s+or: )?\s*{program}\b", "", line).replace("[OPTION...]", "")
            first = rest.split()[:1]
            if first and re.fullmatch(r"[a-z][a-z|-]*", first[0]):
                self.words.update(first[0].split("|"))

    @staticmethod
    def _options(text):
        for m in re.finditer(r"(?<![\w-])--([a-z][a-z-]*)(?:\[?=(\S+)| ([A-Z][A-Z0-9_=|]*|[a-z_]+(?:\|[a-z_]+)+)(?![\w|]))?", text):
            yield m[1], m[2] or m[3]


class Programs:
    def __init__(self, build, tree):
        self.build, self.tree, self.tables = pathlib.Path(build), pathlib.Path(tree), {}
        self.commands = re.findall(r"^  ([a-z-]+) +\S", self.help("lych"), re.M)
        if len(self.commands) < 20:
            raise SystemExit("the commands of lych were not read")
        self.targets = set()
        for f in [self.tree / "Makefile", *self.tree.glob("mk/*.mk")]:
            for names in re.findall(r"^([a-z][a-z0-9 -]*):(?!=)", f.read_text(), re.M):
                self.targets.update(names.split())

    def help(self, program, *words):
        path = next(p for p in (self.build / program, self.build / "tools" / program) if p.exists())
        done = subprocess.run([path, *words, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        if words == ("migrate",) and " migrate --pg-dir" in done.stderr:  # it has its usage, and no --help
            return done.stderr
        if done.returncode != 0 or not done.stdout:
            raise SystemExit(f"{program} {' '.join(words)} --help: exit {done.returncode}: {done.stderr[:300]}")
        return done.stdout

    def without_examples(self, program, *words):
        """Those may name options of other programs."""
        return self.help(program, *words).partition(f"\n{EXAMPLES}\n")[0]

    def pages(self):
        """Each --help as a page."""
        found = {f"lych {c} --help": self.help("lych", c) for c in self.commands}
        for p in ("lych", "lych-sandbox", "lych-tomb", "lych-scribe", "lych-audit", "lych-ask", "lych-fetch", "lych-secret-driver"):
            found[f"{p} --help"] = self.help(p)
        return found

    def table(self, program, command=""):
        at = (program, command)
        if at not in self.tables:
            text = self.without_examples(program, *([command] if command else []))
            if at == ("lych", "sandbox"):
                text += self.without_examples("lych-sandbox")
            self.tables[at] = Table(text, f"{program} {command}".strip())
        return self.tables[at]

    # ---- what is wrong with a line

    def synopsis(self, line):
        """Options alone, of each program that is named: brackets and alternatives may stand anywhere."""
        wrong = []
        for at in re.finditer(r"(?<![\w/-])(lych(?:-[a-z]+)*)((?: [a-z]+)?)(.*?)(?=(?<![\w/-])lych[ -]|$)", line.replace("\n", " ")):
            program, sub = at[1], at[2].strip()
            sub = sub if program == "lych" or (program == "lych-vessel" and sub in ("serve", "migrate")) else ""
            table = self.table(program, sub)
            wrong += [f"{program} {sub}".strip() + f" has no option '--{o}'" for o in re.findall(r"(?<![\w-])--([a-z][a-z-]*)", at[3])
                      if o not in table.long and o not in ("help", "version")]
        return wrong

    def check(self, line, partly=False):
        """partly: as a text names it, perhaps without all of its values."""
        wrong, words = [], []
        for word in WORD.findall(line.replace("$(", " ( ")) + [";"]:
            if re.fullmatch(r"&&|\|\||[;&|()\n]", word):
                wrong += self.simple(words, partly)
                words = []
            else:
                words.append(word)
        return wrong

    def simple(self, words, partly):
        while words and (re.match(r"^\w+=", words[0]) or words[0] in OPENERS):
            words = words[1:]
        if not words:
            return []
        name = words[0].rsplit("/", 1)[-1]
        if name in ("lych-vessel", "lych-scribe", "lych-tomb", "lych-audit", "lych-sandbox", "lych-ask", "lych-fetch", "lych-secret-driver"):
            rest = words[1:]
            sub = rest[0] if name == "lych-vessel" and rest and rest[0] in ("serve", "migrate") else ""
            return self.uses(f"{name} {sub}".strip(), self.table(name, sub), rest[1 if sub else 0:], partly)
        if name == "lych":
            return self.lych(words[1:], partly)
        if name == "make":
            targets = [w for w in words[1:] if not w.startswith("-") and "=" not in w and not STANDS.match(w)]
            return [f"make has no target '{t}'" for t in targets if t not in self.targets]
        if re.match(r"^(tests|containerfiles|\.ci)/", words[0]):
            return self.script(words)
        return []

    def lych(self, words, partly):
        if not words or STANDS.match(words[0]) or words[0] in ("--help", "--version"):
            return []
        command = words[0]
        if command == "help":
            return [f"lych has no command '{w}'" for w in words[1:] if w not in self.commands and not STANDS.match(w)]
        if command.startswith("_"):
            return [] if f'"{command}"' in (self.tree / "cli/main.c").read_text() else [f"lych has no command '{command}'"]
        if command not in self.commands:
            return [f"lych has no command '{command}'"]
        return self.uses(f"lych {command}", self.table("lych", command), words[1:], partly)

    def script(self, words):
        path = self.tree / words[0]
        if not os.access(path, os.X_OK):
            return [f"{words[0]} is no program of this tree"]
        text = path.read_text()
        return [f"{words[0]} has no option '{w}'" for w in words[1:] if w.startswith("--") and w not in text]

    def uses(self, what, table, words, partly):
        wrong, value, seen_word = [], None, False
        for i, word in enumerate(words):
            word = word.strip("[]") if partly else word
            if value is not None:
                wrong += self.value(what, *value, word)
                value = None
            elif word == "--":
                inner = words[i + 1:]
                return wrong + (self.simple(inner, False) if inner and inner[0] in ("lych-ask", "lych-fetch") else [])
            elif word.startswith("--"):
                name, equals, given = word[2:].partition("=")
                if name in ("help", "version") or not re.fullmatch(r"[a-z-]+", name):
                    continue
                if name not in table.long:
                    wrong.append(f"{what} has no option '--{name}'")
                elif equals and not table.long[name]:
                    wrong.append(f"{what}: --{name} takes no value")
                elif equals:
                    wrong += self.value(what, name, table.long[name], given)
                elif table.long[name] and not partly:
                    value = (name, table.long[name])
            elif re.match(r"^-[A-Za-z]", word):
                if word[1] not in table.short:
                    wrong.append(f"{what} has no option '-{word[1]}'")
                elif table.short[word[1]] and len(word) == 2 and not partly:
                    value = (word[1], table.short[word[1]])
            elif not seen_word and not re.match(r"^[0-9]?[<>]", word):
                seen_word = True
                if table.words and word not in table.words and re.fullmatch("[a-z-]+", word):
                    wrong.append(f"{what} has no '{word}': it takes {', '.join(sorted(table.words))}")
        if value is not None and not partly:
            wrong.append(f"{what}: {value[0]} wants a value")
        return wrong

    @staticmethod
    def value(what, name, kinds, given):
        if re.fullmatch(r"[a-z_]+(\|[a-z_]+)+", kinds) and given not in kinds.split("|") and not STANDS.match(given):
            return [f"{what}: {name} is one of {kinds}, not '{given}'"]
        return []
