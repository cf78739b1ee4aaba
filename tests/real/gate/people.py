# SPDX-License-Identifier: Apache-2.0
"""Personal data that other people's packages draw (people.mjs), in sentences and in records; and texts in which nobody
is, for false alarms."""
import json
from collections import defaultdict

from common import Figure, half, overlaps, wilson

FAMILY = {"street": "address", "phone_national": "phone", "phone_country": "phone", "phone_international": "phone",
          "card": "card", "iban": "iban", "email": "email", "ipv4": "ip", "mac": "mac", "jwt": "jwt",
          "name": "name"}
SENTENCES = {
    "street": ["I live at {v}.", "Address: {v}", "please send it to {v}, second floor", "street = \"{v}\"",
               "The office moved to {v} last year.", '{{"customer": "4711", "street": "{v}"}}'],
    "phone": ["Call me at {v} after six.", "Phone: {v}", "my mobile number is {v}, thanks", "tel: {v}",
              "You can reach the office on {v}.", '{{"customer": "4711", "phone": "{v}"}}'],
    "card": ["I paid with {v} yesterday.", "Card number: {v}", "please charge {v}, it is valid until May",
             "card = \"{v}\"", '{{"customer": "4711", "card": "{v}"}}'],
    "name": ["My name is {v}.", "Dear {v},", "ask {v} about it", "author = \"{v}\"", '{{"customer": "4711", "name": "{v}"}}'],
    "other": ["It is {v}, as you know.", "{v}", "see {v} for more", "value = \"{v}\"", '{{"customer": "4711", "it": "{v}"}}'],
}
MUST = {"card": (">=", 1.0), "phone_national": (">=", 0.8), "phone_country": (">=", 0.8), "street": (">=", 0.5)}
SAID = {"street": "streets", "phone_national": "national phone numbers", "phone_country": "national phone numbers, a country's example and its neighbours",
        "phone_international": "international phone numbers", "card": "cards", "iban": "IBANs", "email": "e-mail addresses",
        "ipv4": "IPv4 addresses", "mac": "MAC addresses", "jwt": "JSON web tokens", "name": "names"}


def sentences_of(kind):
    return SENTENCES.get(kind.split("_")[0], SENTENCES["other"])


def measure(gate, lines, notes):
    """{(half, kind): [texts, found]}, {(half, kind, group): [texts, found]}, {(half, family): false alarms}, {half: harmless texts}"""
    drawn = [json.loads(line) for line in lines.splitlines()]
    drawn = [d for d in drawn if d["value"]]
    kinds, groups, alarms, harmless = defaultdict(lambda: [0, 0]), defaultdict(lambda: [0, 0]), defaultdict(int), defaultdict(int)
    texts = []
    for i, d in enumerate(drawn):
        forms = sentences_of(d["kind"])
        form = "{v}\n" if d["kind"] == "nothing" else forms[i % len(forms)]
        value = d["value"] if "{{" not in form else json.dumps(d["value"], ensure_ascii=False)[1:-1]
        text = form.format(v=value)
        start = len(text[:text.index(value)].encode())
        texts.append((text, start, start + len(value.encode())))
    for d, (text, start, end), said in zip(drawn, texts, gate.scan_all(t[0].encode() for t in texts)):
        kind, side = d["kind"], half(f"{d['kind']}:{d['group']}")
        name = f"{kind}:{d['group']}"
        hit = False
        for f in said["findings"]:
            if kind != "nothing" and overlaps(f, start, end):
                hit |= f["family"] == FAMILY[kind]
                continue
            alarms[side, f["family"]] += 1
            notes.add(f"false alarm {f['family']}/{f['rule']}", name, text)
        if kind == "nothing":
            harmless[side] += 1
            continue
        for tally in (kinds[side, kind], groups[side, kind, d["group"]]):
            tally[0] += 1
            tally[1] += hit
        if not hit:
            notes.add(f"not found {FAMILY[kind]}", name, text)
    return kinds, groups, alarms, harmless


def figures(kinds):
    return [Figure(SAID[kind], found, texts, MUST.get(kind)) for (side, kind), (texts, found) in sorted(kinds.items())
            if side == "report"]


def table(kinds, groups, alarms, harmless):
    """Recall and precision of each family, over the half that is reported."""
    out = [f"A false alarm is a finding of the family in one of {harmless['report']} texts of the same packages in which nobody is, or beside "
           "what was to be found. Precision is of the family.", "",
           "| kind | family | groups | texts | recall | interval | false alarms | precision | interval |", "|---|---|---|---|---|---|---|---|---|"]
    by_family = defaultdict(int)
    for (side, kind), (_, found) in kinds.items():
        if side == "report":
            by_family[FAMILY[kind]] += found
    for (side, kind), (texts, found) in sorted(kinds.items()):
        if side != "report":
            continue
        family = FAMILY[kind]
        false, right = alarms[side, family], by_family[family]
        low, high = wilson(found, texts)
        plow, phigh = wilson(right, right + false)
        n = len([1 for s, k, _ in groups if (s, k) == (side, kind)])
        precision = right / (right + false) if right + false else 1.0
        out.append(f"| {SAID[kind]} | {family} | {n} | {texts} | {found / texts:.3f} | {low:.3f}-{high:.3f} | {false} | {precision:.3f} | {plow:.3f}-{phigh:.3f} |")
    return out
