#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""find_key.py TOMB_PID VESSEL_PID KEY_FILE...: by `podman unshare`, whose root is above the containers' users. Each
provider's key is nowhere in the tomb's container: no memory of a process in it (its jobs too), no environment, no
file but those of the image's /usr. That the search finds what is there: it is in a process of the vessel's."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support/python"))
import memory


def key_of(path):
    with open(path, "rb") as f:
        return f.read().strip()


KEYS = [key_of(path) for path in sys.argv[3:]]
SPELT = [k for key in KEYS for k in (key, key.hex().encode())]


def below(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            children = f.read().split()
    except FileNotFoundError:
        return []
    return [str(pid)] + [p for child in children for p in below(child)]


def environment(pid):
    with open(f"/proc/{pid}/environ", "rb") as f:
        return f.read()


def files(root):
    """Those that somebody could have written: the image is read-only and was built before."""
    for top, dirs, names in os.walk(root):
        if top == root:
            dirs[:] = [d for d in dirs if d not in ("proc", "sys", "usr")]
        for name in names:
            path = os.path.join(top, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def main():
    tomb, vessel = sys.argv[1], sys.argv[2]
    rooms, wrong, looked = below(tomb), [], 0
    memory_read = 0
    for pid in rooms:
        try:
            n, found = memory.search(pid, SPELT)
        except FileNotFoundError:
            continue  # it has ended
        memory_read += n
        wrong += found
        if any(s in environment(pid) for s in SPELT):
            wrong.append(f"{pid}: environment")
    for path in files(f"/proc/{tomb}/root"):
        with open(path, "rb") as f:
            looked += 1
            if any(s in f.read() for s in SPELT):
                wrong.append(path)
    there = [sum(len(memory.search(pid, [key])[1]) for pid in below(vessel)) for key in KEYS]
    print(f"NOTE {len(rooms)} processes of the tomb's container, {memory_read >> 20} MiB of memory, {looked} files: "
          f"{len(KEYS)} keys are in {len(wrong)}; in the vessel's at {there} places")
    for w in wrong:
        print("WRONG", w)
    sys.exit(bool(wrong or not all(there) or memory_read < 1 << 20 or looked < 10 or len(rooms) < 3))


main()
