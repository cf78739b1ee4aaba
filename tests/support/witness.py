# SPDX-License-Identifier: Apache-2.0
"""Whether anybody is starved: a storm in processes of its own, and meanwhile a witness that times what
others do. rig.py must have been imported (a vessel runs in its directory)."""
import multiprocessing
import os
import statistics
import time
import traceback

LIMIT = 1.0  # seconds that nobody may wait longer


class Storm:
    """fn(count, until) in n processes for some seconds. count("word") counts an answer."""

    def __init__(self, fn, seconds, n=1):
        self.seen = multiprocessing.Queue()
        self.until = time.monotonic() + seconds
        self.children = [multiprocessing.Process(target=self._run, args=(fn,), daemon=True) for _ in range(n)]
        for c in self.children:
            c.start()

    def _run(self, fn):
        words = {}

        def count(word, n=1):
            words[word] = words.get(word, 0) + n
        try:
            fn(count, lambda: time.monotonic() < self.until)
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            count("broke off")
        self.seen.put(words)

    def runs(self):
        return time.monotonic() < self.until

    def end(self):
        """What it was answered, by word."""
        words = {}
        for _ in self.children:
            for word, n in self.seen.get(timeout=60).items():
                words[word] = words.get(word, 0) + n
        for c in self.children:
            c.join(10)
            if c.is_alive():
                c.kill()
        return words


class Times:
    """How long each kind of act took."""

    def __init__(self):
        self.took = {}

    def time(self, what, fn):
        began = time.monotonic()
        answer = fn()
        self.took.setdefault(what, []).append(time.monotonic() - began)
        return answer

    def worst(self):
        return max((max(v) for v in self.took.values()), default=0)

    def table(self):
        return " ".join(f"{k} {1000 * statistics.median(v):.0f}/{1000 * max(v):.0f}" for k, v in self.took.items())


def memory_kib(pid):
    """What a process and its children hold that is their own."""
    total = 0
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("RssAnon:"):
                total += int(line.split()[1])
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        children = f.read().split()
    for child in children:
        try:
            total += memory_kib(int(child))
        except OSError:
            pass
    return total


def disk_kib(*tops):
    """What lies below these directories."""
    total = 0
    for top in tops:
        for where, _, names in os.walk(top):
            for name in names:
                try:
                    total += os.lstat(os.path.join(where, name)).st_blocks // 2
                except OSError:
                    pass
    return total
