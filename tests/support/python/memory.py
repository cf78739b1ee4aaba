# SPDX-License-Identifier: Apache-2.0
"""Looks for bytes in the readable memory of a process, by whoever may: root, or the root of a user namespace above it."""
import re


def search(pid, needles):
    """(how many bytes were read, ["pid: at address", ...])"""
    n, found = 0, []
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
            if not m or "[v" in line:
                continue
            at, end = int(m[1], 16), int(m[2], 16)
            blob = b""
            while at + len(blob) < end:
                try:
                    mem.seek(at + len(blob))
                    part = mem.read(end - at - len(blob))
                except OSError:
                    break
                if not part:
                    break
                blob += part
            n += len(blob)
            found += [f"{pid}: at {at + blob.index(needle):x}" for needle in needles if needle in blob]
    return n, found


def unlocked(pid, found):
    """Of the places that search() found those in pages that may be swapped out."""
    locked = []
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as smaps:
        for line in smaps:
            if m := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                area = int(m[1], 16), int(m[2], 16)
            elif line.startswith("VmFlags:") and "lo" in line.split():
                locked.append(area)
    return [f for f in found if not any(a <= int(f.split()[-1], 16) < b for a, b in locked)]
