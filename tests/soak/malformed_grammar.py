# SPDX-License-Identifier: Apache-2.0
"""Runs in the clients and in the provider of malformed.py: JSON that is wrong in one place or in a
few. A seed is written once, and where each of its values begins and ends is known; a mutation is
other bytes in the place of some, so that making one costs a few microseconds."""
import json

HUGE = b'"' + b"A" * 70000 + b'"'


def nested(opening, closing, depth, inside=b""):
    return opening * depth + inside + closing * depth


# What takes a value's place: each stands alone in each place of each seed.
JSON_VALUES = [
    b"null", b"true", b"false", b"0", b"7", b"-1", b"-1.5", b"1e308", b"5e-324", b"0.1e1",
    b"18446744073709551615", b"18446744073709551616", b"9223372036854775807", b"-9223372036854775809",
    b"4294967296", b"2147483648", b"1" * 400, b'""', b'"x"', b'" "', b'"\\ud83d\\ude00"', b'"\xe2\x80\xae"', b'"\x7f"', b'"\\u001b[31m"',
    b'"https://far.example/x"', b'"data:image/png;base64,AA=="', b'"data:"', b'"../../etc/passwd"', b'"%n%s%s"', b'"$(id)"',
    b'"0123456789abcdef"', b'"00000000-0000-0000-0000-000000000000"', b'"Bearer x"', b'"a\\r\\nX: y"', b'"\\n"',
    b"[]", b"[[]]", b"[null]", b"[true]", b"[7]", b'["x"]', b"[{}]", b"[[[[7]]]]", b'["x",7,null,{}]',
    b"{}", b'{"type":7}', b'{"type":null}', b'{"type":"text"}', b'{"type":"text","text":7}', b'{"":""}', b'{"a":{}}',
    b'{"url":["https://far.example/x"]}', b'{"k":[{"k":[{"k":null}]}]}',
]
# What no strict reader takes.
NO_JSON_VALUES = [
    b"1e999", b"-1e999", b"007", b"0x10", b"+1", b".5", b"1.", b"NaN", b"Infinity", b'"\\u0000"', b'"\\ud800"', b'"\\udc00\\ud800"',
    b'"\xff\xfe"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\x00"', b'"\x1b[31m"', b'"\n"', b'"\\x"', b'"\\u12"',
    b"'x'", b"x", b"[,]", b"[1,]", b'{"a":1,"a":2}', b"{7:7}", b'{"a"}', b'{"a":}', b"", b" ", b"//x", b"/**/1",
]
VALUES = JSON_VALUES + NO_JSON_VALUES
NO_JSON_SHARE = 0.1
# The large ones stand in some.
LARGE = [
    HUGE, b'"' + b"\\u0041" * 12000 + b'"', b'"' + b"\xf0\x9f\x98\x80" * 9000 + b'"',
    nested(b"[", b"]", 20), nested(b"[", b"]", 23), nested(b"[", b"]", 24), nested(b"[", b"]", 27), nested(b"[", b"]", 28),
    nested(b"[", b"]", 100), nested(b"[", b"]", 30000), b"[" * 60000, nested(b'{"a":', b"}", 22, b"1"),
    nested(b'{"a":', b"}", 27, b"1"), nested(b'{"a":', b"}", 5000, b"1"), b"[" + b"0," * 70000 + b"0]", b"[" + b"{}," * 9000 + b"{}]",
    b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(3000)) + b"}", b'"' + b" " * 1000000 + b'"', b"1" * 100000,
]
LARGE_SHARE = 0.006


class Seed:
    """A value, as bytes, with its places: (begin, end) of each value, (begin, end) of its member with the
    comma beside it, (begin, end) of its key."""

    def __init__(self, value):
        self.places = []
        self.text = self.write(value, 0)
        self.whole = len(self.places) - 1

    def write(self, v, at):
        if isinstance(v, dict):
            text = self.members(list(v.items()), at, True)
        elif isinstance(v, list):
            text = self.members([(None, x) for x in v], at, False)
        else:
            text = json.dumps(v, ensure_ascii=False).encode()
        self.places.append([at, at + len(text), None, None])
        return text

    def members(self, items, at, named):
        text = b"{" if named else b"["
        for i, (name, v) in enumerate(items):
            begin = len(text)
            key = json.dumps(name).encode() if named else b""
            text += key + (b":" if named else b"")
            text += self.write(v, at + len(text))
            place = self.places[-1]
            last = i == len(items) - 1
            if not last:
                text += b","
            # of the last one the comma before it goes too
            cut = at + begin - (1 if last and i else 0)
            place[2] = (cut, at + len(text))
            place[3] = (at + begin, at + begin + len(key)) if named else None
        return text + (b"}" if named else b"]")

    # ---- edits: (begin, end, bytes in their place)

    def value(self, place, value):
        begin, end, _, _ = self.places[place]
        return (begin, end, value)

    def missing(self, place):
        cut = self.places[place][2]
        return (*cut, b"") if cut else self.value(place, b"")

    def around(self, place, before, behind):
        begin, end, _, _ = self.places[place]
        return (begin, end, before + self.text[begin:end] + behind)

    def twice(self, place):
        begin, end, cut, key = self.places[place]
        if not cut:
            return self.around(place, b"", self.text[begin:end])
        member = self.text[key[0] if key else begin:end]
        return (end, end, b"," + member)

    def extra(self, place, rng):
        end, key = self.places[place][1], self.places[place][3]
        names = (b'"X":7', b'"":7', b'"\\u0000":7', b'"__proto__":{}', b'"x\\u0000y":1', b'"type":"text"', b'"url":"https://far.example/"',
                 b'"role":"user"', b'"seq":1', b'"\xff":1')
        return (end, end, b"," + (rng.choice(names) if key else value(rng)))

    def key(self, place, rng):
        key = self.places[place][3]
        if not key:
            return self.twice(place)
        was = self.text[key[0]:key[1]]
        name = was[1:-1]
        return (*key, rng.choice((was.upper(), was.capitalize(), b'""', b"7", b'"\\u%04x%s"' % (name[0] if name else 65, name[1:]),
                                  b'"' + name + b'\\u0000"', b'" ' + name + b'"', b'"\xff' + name + b'"', name, b'"' + name * 40 + b'"')))

    def odd(self, place, rng):
        """What is not another value in its place."""
        if rng.random() < LARGE_SHARE:
            return self.value(place, rng.choice(LARGE))
        kind = rng.randrange(6)
        if kind == 0:
            return self.missing(place)
        if kind == 1:
            return self.twice(place)
        if kind == 2:
            return self.extra(place, rng)
        if kind == 3:
            return self.key(place, rng)
        if kind == 4:
            return self.around(place, b"[", b"]")
        return self.around(place, b'{"k":', b"}")

    def edit(self, edits):
        """Those that lie within another's bytes are left out."""
        text, before = self.text, len(self.text) + 1
        for begin, end, value in sorted(edits, key=lambda e: (e[0], e[1]), reverse=True):
            if end <= before:
                text = text[:begin] + value + text[end:]
                before = begin
        return text

    def sweep(self, n):
        """The n-th of each place x each value; None behind the last."""
        place, value = divmod(n, len(VALUES))
        return self.edit([self.value(place, VALUES[value])]) if place < len(self.places) else None

    def sweeps(self):
        return len(self.places) * len(VALUES)

    def random(self, rng):
        places = len(self.places)
        if rng.random() < 0.12:
            return damage(self.text, rng)
        edits = []
        for _ in range(rng.choice((1, 1, 2, 3, 6))):
            place = rng.randrange(places)
            edits.append(self.value(place, value(rng)) if rng.random() < 0.5 else self.odd(place, rng))
        text = self.edit(edits)
        return damage(text, rng) if rng.random() < 0.04 else text


def value(rng):
    return rng.choice(NO_JSON_VALUES if rng.random() < NO_JSON_SHARE else JSON_VALUES)


NOISE = (b"\x00", b"\xff", b"\xc3", b"\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\r", b"\n",
         b"\x1b", b"\x7f", b"0", b"e", b"-")


def damage(text, rng):
    """Bytes that are no JSON, most likely."""
    n = len(text)
    at, kind = rng.randrange(n + 1), rng.randrange(9)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[at:]
    if kind == 2:
        return text + text
    if kind == 3:
        return text[:at] + rng.choice(NOISE) + text[at:]
    if kind == 4:
        return text[:at] + rng.choice(NOISE) * rng.choice((2, 9, 300)) + text[at:]
    if kind == 5:
        return text[:at] + text[at + rng.randrange(1, 9):]
    if kind == 6:
        to = rng.randrange(n + 1)
        return text[:at] + text[min(at, to):max(at, to)] + text[at:]
    if kind == 7 and at < n:
        return text[:at] + bytes([text[at] ^ (1 << rng.randrange(8))]) + text[at + 1:]
    return text[:at] + rng.randbytes(rng.randrange(1, 40)) + text[at:]
