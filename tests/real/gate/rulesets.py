# SPDX-License-Identifier: Apache-2.0
"""Secrets by other people's rules: of each rule of a public set, texts that it says hold a secret, in each spelling of an
assignment. What a rule does not see itself, by its expression and its entropy, is left out."""
import math
import random
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

from common import FORBIDDEN, PORTAL, Figure, half, overlaps
from patterns import Drawer, compiled, group_end

SPELLINGS = {
    "ini": "{i}Token={s}", "ini, blanks": "{i}Token = {s}", "ini, quoted": '{i}Token="{s}"',
    "json": '{{\n  "{i}_token": "{s}"\n}}', "json in a string": '{{"out": "{{\\"{i}_token\\": \\"{s}\\"}}"}}',
    "xml element": "<{i}Token>{s}</{i}Token>", "xml, lines": "<{i}Token>\n    {s}\n</{i}Token>",
    "xml attribute": '<add key="{i}Token" value="{s}" />',
    "yaml": "{i}_token: {s}", "yaml, quoted": "{i}_token: '{s}'", "yaml, literal": "{i}_token: |\n  {s}",
    "yaml, folded": "{i}_token: >\n  {s}",
    "C#": 'string {i}Token = "{s}";', "go": 'var {i}Token string = "{s}"', "go, short": '{i}Token := "{s}"',
    "go, raw": "{i}Token := `{s}`", "kotlin": 'val {i}Token: String = "{s}"', "js": 'const {i}Token = "{s}";',
    "php": '${i}Token .= "{s}";', "python": "{i}Token = '{s}'", "java properties": 'setProperty("{i}.token", "{s}")',
    "csv": "{i}Token,{s},", "hash": '  "{i}Token" => "{s}"', "shell": 'export {I}_TOKEN="{s}"',
    "make :=": "{I}_TOKEN := {s}", "make ::=": "{I}_TOKEN ::= {s}", "make :::=": "{I}_TOKEN :::= {s}",
    "make ?=": "{I}_TOKEN ?= {s}", "make +=": "{I}_TOKEN += {s}", "option": "tool --{i}-token {s} run",
}
# An expression with a name in front of the secret, as this set's own generator writes them.
NAMED = "[\\w.-]{0,50}?"
TRIES = 60
WHOLE = "as the rule has it"


class Rule:
    def __init__(self, made_by, name, regex, group=None, entropy=0.0, keywords=()):
        self.set, self.name, self.regex = made_by, name, regex
        self.group, self.entropy, self.keywords = group, entropy, keywords
        self.re = compiled(regex)
        if not self.group and self.re.groups:
            self.group = 1
        self.is_named = NAMED in regex

    @property
    def key(self):
        return f"{self.set}:{self.name}"

    def identifier(self, drawer):
        """The name in front of the secret: by the expression, where it has one."""
        inner = re.search(re.escape(NAMED) + r"\((?:\?i?:)" + f"(?:{re.escape(NAMED)}" + r"\((?:\?i?:))?", self.regex)
        if self.is_named and inner:
            named = drawer.expression(self.regex[inner.end():group_end(self.regex, inner.end())])
            return re.sub(r"[^A-Za-z_-]", "", named) or "service"
        return re.sub(r"[^a-z]", "", self.name.split("-")[0]) or "service"


def text_in(program, begins):
    """The TOML that a program has in it, from those words on."""
    data = Path(program).read_bytes()
    at = data.index(begins)
    end = re.compile(rb"[^\t\n\r -~\x80-\xff]").search(data, at).start()
    lines = data[at:end].decode("utf-8", "replace").split("\n")
    while lines:  # what stands behind it may be text too
        try:
            return tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError:
            lines.pop()
    raise ValueError(f"{program}: no rules in it")


def read_gitleaks(program):
    made_by = "gitleaks"
    for r in text_in(program, b'title = "gitleaks config"')["rules"]:
        if "regex" not in r or "path" in r:
            continue  # a rule for names of files, or for certain files alone
        try:
            yield Rule(made_by, r["id"], r["regex"], r.get("secretGroup"), r.get("entropy", 0.0), r.get("keywords", ()))
        except re.error:
            continue


def entropy(text):
    n = Counter(text)
    return -sum(k / len(text) * math.log2(k / len(text)) for k in n.values()) if text else 0.0


def secret_of(rule, drawer):
    for _ in range(TRIES):
        text = drawer.expression(rule.regex, rule.group)
        if text and entropy(text) >= max(rule.entropy, 0.0) + 0.1 and len(text) < 4000:
            return text
    return None


def sees(rule, text, secret):
    m = rule.re.search(text)
    return bool(m) and secret in m[0]


def samples(rules, seed, each):
    """(rule, spelling, text, secret) of every rule in every spelling that it sees."""
    for rule in rules:
        drawer = Drawer(random.Random(f"{seed} {rule.key}"))
        found = False
        for spelling, form in SPELLINGS.items():
            for _ in range(each):
                secret = secret_of(rule, drawer)
                if not secret:
                    continue
                word = rule.identifier(drawer)
                text = form.format(i=word, I=word.upper(), s=secret)
                if sees(rule, text, secret):
                    found = True
                    yield rule, spelling, text, secret
        if not found:  # a rule for whole lines, such as a call of curl
            yield from whole_lines(rule, drawer, each)


def whole_lines(rule, drawer, each):
    for _ in range(10 * each):
        text = drawer.expression(rule.regex)
        secret = drawer.groups.get(rule.group or 0) or text
        if secret in text and entropy(secret) >= rule.entropy and sees(rule, text, secret):
            yield rule, WHOLE, text, secret


class Tally:
    def __init__(self):
        self.n = self.seen = self.refused = 0

    def add(self, is_seen, is_refused):
        self.n += 1
        self.seen += is_seen
        self.refused += is_refused


def measure(gate, rules, seed, each, notes):
    """Tallies of each half: of all, by spelling, by rule."""
    total, by_spelling, by_rule = defaultdict(Tally), defaultdict(Tally), defaultdict(Tally)
    todo = list(samples(rules, seed, each))
    lead = b"# settings of the service\n"
    texts = [lead + text.encode() + b"\n# end\n" for _, _, text, _ in todo]
    for (rule, spelling, text, secret), said in zip(todo, gate.scan_all(texts)):
        start = len(lead) + len(text[:text.index(secret)].encode())
        end = start + len(secret.encode())
        is_found = any(overlaps(f, start, end) for f in said["findings"])
        is_seen = is_found and said["score"] >= PORTAL
        is_refused = said["score"] >= FORBIDDEN
        side = half(rule.key)
        for tally in (total[side], by_spelling[side, spelling], by_rule[side, rule.key]):
            tally.add(is_seen, is_refused)
        if not is_seen or not is_refused:
            notes.add("unseen" if not is_seen else "not refused", rule.key, f"{spelling}: {text[:300]}")
    return total, by_spelling, by_rule


def figures(total, by_rule):
    rules = len([1 for side, _ in by_rule if side == "report"])
    t = total["report"]
    return [Figure(f"secrets by a public rule set, {rules} rules: seen", t.seen, t.n, (">=", 0.95)),
            Figure(f"secrets by a public rule set, {rules} rules: refused", t.refused, t.n, (">=", 0.85))]


def table(total, by_spelling, by_rule):
    """Of the half that is reported: by spelling, and of how many rules how much is refused."""
    side = "report"
    shares = sorted(t.refused / t.n for (s, _), t in by_rule.items() if s == side)
    none, all_of_it = sum(s == 0 for s in shares), sum(s == 1 for s in shares)
    out = [f"Of {len(shares)} rules {all_of_it} are refused in every spelling, {none} in none. The other half, which may be tuned on: seen "
           f"{total['tuning'].seen / max(1, total['tuning'].n):.3f}, refused {total['tuning'].refused / max(1, total['tuning'].n):.3f}.", "",
           "| spelling | texts | seen | refused |", "|---|---|---|---|"]
    return out + [f"| {name} | {t.n} | {t.seen / t.n:.2f} | {t.refused / t.n:.2f} |" for name in [*SPELLINGS, WHOLE]
                  if (t := by_spelling.get((side, name)))]
