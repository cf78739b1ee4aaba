# SPDX-License-Identifier: Apache-2.0
"""Texts that hold no secret: what Debian installs, lock files, lists of checksums; and random bytes, which are to be found."""
import base64
import gzip
import os
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

from common import FORBIDDEN, PORTAL, Figure, half_of, pieces

# Of Python only what it is written in: among its tests there are private keys.
PLACES = {"/usr/share/perl": (["/usr/share/perl"], ""), "/usr/share/doc": (["/usr/share/doc"], ""),
          "Python's sources": (sorted(str(p) for p in Path("/usr/lib").glob("python3*")), ".py")}
LOCKS = ("package-lock.json", ".package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock", "go.sum",
         "poetry.lock", "Pipfile.lock", "composer.lock", "Gemfile.lock", "uv.lock", "flake.lock")


def files(places, suffix):
    """(name, bytes) of all text in them whose name ends so; what is compressed, unpacked."""
    for place in places:
        for folder, _, names in sorted(os.walk(place)):
            for name in sorted(names):
                path = Path(folder, name)
                if not name.endswith(suffix) or path.is_symlink() or not path.is_file():
                    continue
                try:
                    data = path.read_bytes()
                    if name.endswith(".gz"):
                        data = gzip.decompress(data)
                except (OSError, EOFError):
                    continue
                if data and b"\0" not in data[:4096] and is_utf8(data):
                    yield str(path), data


def is_utf8(data):
    try:
        data.decode()
        return True
    except UnicodeDecodeError:
        return False


class Place:
    def __init__(self):
        self.bytes = self.findings = self.pieces = self.refused = self.rewritten = 0
        self.by_rule, self.by_file = Counter(), Counter()


def measure(gate, limit, notes):
    """Of each place and each half: what is found at the forbidden level."""
    out = {}
    for place, (roots, suffix) in PLACES.items():
        sides = {"report": Place(), "tuning": Place()}
        for name, data in files(roots, suffix):
            # by what it holds: packages have copies of one another's
            p = sides[half_of(data)]
            if p.bytes >= limit:
                continue
            p.bytes += len(data)
            all_of_it = list(pieces(data))
            for piece, said in zip(all_of_it, gate.scan_all(all_of_it)):
                p.pieces += 1
                p.refused += said["score"] >= FORBIDDEN
                p.rewritten += PORTAL <= said["score"] < FORBIDDEN
                for f in said["findings"]:
                    if f["severity"] < FORBIDDEN:
                        continue
                    p.findings += 1
                    p.by_rule[f["rule"]] += 1
                    p.by_file[name] += 1
                    notes.add_of(data, f"harmless {place} {f['rule']}", name, piece[max(0, f["offset"] - 20):f["offset"] + f["len"] + 10][:120])
        out[place] = sides
    return out


def figures(out):
    found = []
    for place, sides in out.items():
        both = sides["report"].bytes + sides["tuning"].bytes
        for of, n, size in (("", sum(p.findings for p in sides.values()), both), (", half of it", sides["report"].findings, sides["report"].bytes)):
            found.append(Figure(f"findings a MB at the forbidden level: {place}{of}", n, f"{size / 1e6:.1f} MB", ("<=", 0.5),
                                n / max(size / 1e6, 0.001)))
    return found


def table(out):
    rows = ["What is found at the forbidden level in texts that hold no secret, by rule, and of the pieces of up to 64 KiB how many are "
            "refused or rewritten as a whole (for the addresses of their authors, for the most part):", "",
            "| place | MB | findings | a MB | pieces | refused | rewritten | rules |", "|---|---|---|---|---|---|---|---|"]
    for place, sides in out.items():
        both = list(sides.values())
        mb, n = sum(p.bytes for p in both) / 1e6, sum(p.findings for p in both)
        rules = sum((p.by_rule for p in both), Counter())
        rows.append(f"| {place} | {mb:.1f} | {n} | {n / max(mb, 0.1):.2f} | {sum(p.pieces for p in both)} | {sum(p.refused for p in both)} | "
                    f"{sum(p.rewritten for p in both)} | {', '.join(f'{r} {k}' for r, k in rules.most_common(8))} |")
    return rows


# ---- lock files, lists of checksums ----------------------------------------------------------


def lists(folder):
    """(kind, name, bytes)"""
    for path in sorted(Path(folder).rglob("*")):
        if path.name in LOCKS and path.is_file():
            yield path.name.lstrip("."), str(path.relative_to(folder)), path.read_bytes()
    for path in sorted(Path("/var/lib/dpkg/info").glob("*.md5sums")):
        yield "md5sums of dpkg", path.name, path.read_bytes()
    some = [str(p) for p in sorted(Path("/usr/share/perl").rglob("*.p[ml]"))[:400]]
    for tool in ("sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"):
        for i in range(0, len(some), 100):
            for option in ((), ("--tag",)):
                said = subprocess.run([tool, *option, *some[i:i + 100]], capture_output=True, check=True).stdout
                yield tool + ("".join(" " + o for o in option)), f"{tool}{i}{option}", said


def measure_lists(gate, folder, notes):
    count = {}
    for kind, name, data in lists(folder):
        if not is_utf8(data):
            continue
        row = count.setdefault(kind, [0, 0])
        for piece in pieces(data):
            said = gate.scan(piece)
            row[0] += 1
            row[1] += said["score"] >= PORTAL
            if said["score"] >= PORTAL:
                why = ", ".join(f"{r} {n}" for r, n in Counter(f["rule"] for f in said["findings"]).most_common(3))
                notes.add_of(data, f"list {kind}", name, f"{said['score']} {why}")
    return count


def list_figures(count):
    n, changed = sum(r[0] for r in count.values()), sum(r[1] for r in count.values())
    return [Figure("lock files and lists of checksums, in pieces of up to 64 KiB: rewritten or refused", changed, n, ("<=", 0.0))]


# ---- random bytes ----------------------------------------------------------------------------

ENCODINGS = {"base64": base64.b64encode, "base64url": lambda b: base64.urlsafe_b64encode(b).rstrip(b"="),
             "hex": lambda b: b.hex().encode(), "base32": base64.b32encode}


def measure_random(gate, seed, each, notes):
    r = random.Random(seed)
    count = {}
    for name, encode in ENCODINGS.items():
        for i in range(each):
            # as many of each power of two, from 96 B to 1 MB
            size = 96 if i % 16 == 0 else 1 << 20 if i % 16 == 1 else int(96 * (1e6 / 96) ** r.random())
            letters = encode(r.randbytes(size))
            for form in ("one line", "lines of 76"):
                text = letters if form == "one line" else re.sub(rb"(.{76})", rb"\1\n", letters)
                row = count.setdefault((name, form), [0, 0])
                said = gate.scan(b"the file is\n" + text + b"\nand no more\n")
                row[0] += 1
                row[1] += said["score"] >= PORTAL
                if said["score"] < PORTAL:
                    notes.add("random", f"{name} {form} {size} {i}", f"score {said['score']}")
    return count


def random_figures(count):
    return [Figure(f"random bytes of 96 B to 1 MB in {name}: found", sum(r[1] for (e, _), r in count.items() if e == name),
                   sum(r[0] for (e, _), r in count.items() if e == name), (">=", 1.0)) for name in ENCODINGS]
