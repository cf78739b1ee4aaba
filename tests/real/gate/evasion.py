# SPDX-License-Identifier: Apache-2.0
"""The table of evasions of docs/GATE.md, drawn again as it was: no figure of it may be lower now."""
from common import ROOT, Figure, gate_corpus


def documented():
    """{(family, encoding): share}, by the table in the document."""
    lines = iter((ROOT / "docs/GATE.md").read_text().split("\n"))
    families, out = None, {}
    for line in lines:
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("| written |"):
            families = cells[1:]
        elif families and not line.startswith("|"):
            break
        elif families and not line.startswith("|---"):
            out.update({(family, cells[0]): float(share) for family, share in zip(families, cells[1:])})
    return out


def measure(gate, seed, each, notes):
    """(cells that are worse, all)"""
    now = gate_corpus.evasion(gate, gate_corpus.Maker(seed), each)
    then = documented()
    worse = [cell for cell, share in then.items() if round(now.get(cell, 0.0), 2) < share]
    for family, encoding in worse:
        notes.lines.append(f"evasion\t{family} {encoding}\t{now[family, encoding]:.2f}, was {then[family, encoding]:.2f}")
    return len(worse), len(then)


def figures(worse, cells):
    return [Figure("the evasion table above: figures that are worse now", worse, cells, ("<=", 0.0))]
