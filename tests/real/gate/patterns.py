# SPDX-License-Identifier: Apache-2.0
"""Texts that an expression matches, drawn by lot. Expressions as Go (RE2) and JavaScript write them."""
import re
import string
import warnings

try:
    from re import _constants as sc, _parser as sp
except ImportError:  # Python below 3.11
    import sre_constants as sc
    import sre_parse as sp

ALNUM = string.ascii_letters + string.digits
MORE = 24  # what a count without an upper bound, or with a far one, gives above its lower bound
POSIX = {"alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "digit": "0-9", "lower": "a-z", "upper": "A-Z", "word": r"\w",
         "space": r"\s", "xdigit": "0-9a-fA-F", "punct": r"!-/:-@\[-`{-~"}


def group_end(text, at):
    """Where the group ends that the place `at` lies in: the place of its bracket, or of an alternative's end
    (a flag of RE2 goes on over those, so they are not asked for)."""
    depth, in_class, i = 0, False, at
    while i < len(text):
        c = text[i]
        if c == "\\":
            i += 2
            continue
        if in_class:
            in_class = c != "]"
        elif c == "[":
            in_class = True
            if text[i + 1:i + 2] == "]" or text[i + 1:i + 3] == "^]":
                i = text.index("]", i + 1)
        elif c == "(":
            depth += 1
        elif c == ")":
            if depth == 0:
                return i
            depth -= 1
        i += 1
    return len(text)


def to_python(text):
    """The same expression for Python's re, which takes flags at the beginning only."""
    text = re.sub(r"\[:(\w+):\]", lambda m: POSIX[m[1]], text)
    text = text.replace(r"\z", r"\Z").replace(r"\/", "/")
    text = re.sub(r"\(\?<(?![=!])", "(?P<", text)
    text = re.sub(r"\\x\{([0-9A-Fa-f]{2})\}", r"\\x\1", text)
    while m := re.search(r"(?<!\\)\(\?([imsU]+)\)", text):
        end = group_end(text, m.end())
        flags = m[1].replace("U", "")
        inside = text[m.end():end]
        text = text[:m.start()] + (f"(?{flags}:{inside})" if flags else f"(?:{inside})") + text[end:]
    return text


def compiled(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "[[" and its like
        return re.compile(to_python(text))


class Drawer:
    def __init__(self, r):
        self.r = r

    def expression(self, text, group=None):
        """A text that it should match (lookarounds are not looked at); group: only what that group takes, None
        when the expression has none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = sp.parse(to_python(text))
        self.groups = {}
        whole = self.sequence(tree)
        return whole if not group else self.groups.get(group)

    def sequence(self, items):
        return "".join(self.item(op, arg) for op, arg in items)

    def item(self, op, arg):
        if op is sc.LITERAL:
            return chr(arg)
        if op is sc.NOT_LITERAL:
            return self.r.choice([c for c in ALNUM if ord(c) != arg])
        if op is sc.ANY:
            return self.r.choice(ALNUM)
        if op is sc.IN:
            return self.one_of(arg)
        if op is sc.BRANCH:
            return self.sequence(self.r.choice(arg[1]))
        if op is sc.SUBPATTERN:
            number, _, _, items = arg
            text = self.sequence(items)
            if number:
                self.groups[number] = text
            return text
        if op in (sc.MAX_REPEAT, sc.MIN_REPEAT, getattr(sc, "POSSESSIVE_REPEAT", None)):
            low, high, items = arg
            high = min(int(high), low + MORE)
            return "".join(self.sequence(items) for _ in range(self.r.randint(low, high)))
        if op is getattr(sc, "ATOMIC_GROUP", None):
            return self.sequence(arg)
        if op is sc.GROUPREF:
            return self.groups.get(arg, "")
        return ""  # places, lookarounds

    def one_of(self, items):
        negated = items[0][0] is sc.NEGATE
        have = set()
        for op, arg in items:
            if op is sc.LITERAL:
                have.add(chr(arg))
            elif op is sc.RANGE:
                have |= {chr(c) for c in range(arg[0], min(arg[1], 0x7e) + 1)}
            elif op is sc.CATEGORY:
                have |= {sc.CATEGORY_DIGIT: set(string.digits), sc.CATEGORY_WORD: set(ALNUM + "_"),
                         sc.CATEGORY_SPACE: {" "}, sc.CATEGORY_NOT_SPACE: set(ALNUM),
                         sc.CATEGORY_NOT_WORD: set(" "), sc.CATEGORY_NOT_DIGIT: set(string.ascii_letters)}[arg]
        if negated:
            have = set(ALNUM) - have
        return self.r.choice(sorted(have)) if have else ""
