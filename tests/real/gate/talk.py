# SPDX-License-Identifier: Apache-2.0
"""Conversations and pictures, through all that the vessel does with a request (tests/support/gate/gate_talk.c)."""
import base64
import gzip
import random
import string
from collections import Counter
from pathlib import Path

from common import Figure

TURNS = 60
PAGE = 8192  # bytes of text that a call of a tool gives back, at the most
ALNUM = string.ascii_letters + string.digits


def draw_id(r, prefix, n):
    return prefix + "".join(r.choice(ALNUM) for _ in range(n))


def converse(talk, text, seed, turns=TURNS, page=PAGE):
    """An agent that reads a text by calls of a tool, and sends the whole conversation at each turn. What the gate said
    at each turn."""
    r = random.Random(seed)
    pages = cut_at_lines(text, turns, page)
    talk.new_job()
    messages = [{"role": "system", "content": "You read the history of a project. Use the tool."},
                {"role": "user", "content": "What has changed, and who did it?"}]
    said = []
    for turn in range(turns):
        call = draw_id(r, "call_", 24)
        arguments = f'{{"command": "git log -p --skip={turn * 5} -n 5"}}'
        asked = {"role": "assistant", "content": None,
                 "tool_calls": [{"id": call, "type": "function", "function": {"name": "shell", "arguments": arguments}}]}
        talk.hear({"id": draw_id(r, "chatcmpl-", 29), "choices": [{"index": 0, "message": asked}]})
        messages += [asked, {"role": "tool", "tool_call_id": call, "content": pages[turn]}]
        said.append(talk.say({"model": "m", "messages": messages}))
    return said


def cut_at_lines(text, turns, page):
    """So many pages of a text, each of whole lines (but of one that is longer than a page)."""
    pages, at = [], 0
    size = min(page, -(-len(text) // turns))
    for _ in range(turns):
        end = text.rfind("\n", at + 1, at + size) + 1
        end = end if end > at else at + size
        pages.append(text[at:end])
        at = end
    return pages


def history(path):
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if str(path).endswith(".gz") else data).decode("utf-8", "replace")


def measure_histories(talk, paths, seed, notes):
    """[(name, turns, refused, rewritten, what refused)]"""
    rows = []
    for path in paths:
        text = history(path)
        said = converse(talk, text, f"{seed} {Path(path).name}")
        refused = [s for s in said if s["verdict"] == "refuse"]
        why = Counter(f["rule"] for s in refused[:1] for f in s["findings"] if f["severity"] >= 400)
        name = Path(path).name
        if refused:
            notes.add("history refused", name, f"{refused[0]['score']} {refused[0]['why']} {dict(why)}")
        rows.append((name, len(said), len(refused), sum(s["verdict"] == "anonymise" for s in said),
                     ", ".join(f"{r} {n}" for r, n in why.most_common(5))))
    return rows


def history_figures(rows, what):
    return [Figure(f"{what}: requests refused", sum(r[2] for r in rows), sum(r[1] for r in rows), ("<=", 0.0))]


def history_table(rows):
    return ["| text | turns | refused | rewritten | what refused first |", "|---|---|---|---|---|",
            *(f"| {name} | {turns} | {refused} | {rewritten} | {why} |" for name, turns, refused, rewritten, why in rows)]


# ---- pictures --------------------------------------------------------------------------------

TYPES = {b"\x89PNG": "png", b"GIF8": "gif", b"\xff\xd8\xff": "jpeg", b"RIFF": "webp"}


def pictures(folder, of_each):
    """(name, type, bytes), so many of each type, every n-th of those that there are."""
    by_type = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            kind = TYPES.get(data[:4]) or TYPES.get(data[:3])
            if kind and len(data) < (2 << 20):
                by_type.setdefault(kind, []).append((str(path.relative_to(folder)), kind, data))
    for some in by_type.values():
        step = max(1, len(some) // of_each)
        yield from some[::step][:of_each]


def as_part(kind, data, i):
    """As OpenAI, Anthropic and Gemini have them, in turn."""
    text = base64.b64encode(data).decode()
    return [{"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{text}"}},
            {"type": "image", "source": {"type": "base64", "media_type": f"image/{kind}", "data": text}},
            {"inlineData": {"mimeType": f"image/{kind}", "data": text}}][i % 3]


def measure_pictures(talk, folder, of_each, notes):
    count = {}
    for i, (name, kind, data) in enumerate(pictures(folder, of_each)):
        talk.new_job()
        said = talk.say({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "What is in this picture?"},
                                                                                 as_part(kind, data, i)]}]})
        row = count.setdefault(kind, [0, 0, 0])
        row[0] += 1
        row[1] += said["verdict"] == "refuse"
        row[2] += said["verdict"] == "anonymise"
        if said["verdict"] != "pass":
            notes.add("picture", name, f"{said['verdict']} {said['score']} {[(f['rule'], f['severity']) for f in said['findings']][:4]}")
    return count


def picture_figures(count):
    n = sum(r[0] for r in count.values())
    of = ", ".join(f"{r[0]} {kind}" for kind, r in sorted(count.items()))
    return [Figure(f"pictures ({of}): refused", sum(r[1] for r in count.values()), n, ("<=", 0.0)),
            Figure("pictures: rewritten", sum(r[2] for r in count.values()), n, ("<=", 0.0))]
