# SPDX-License-Identifier: Apache-2.0
"""Whether anybody is starved: a storm in processes of its own, what those were answered, and how long
what others do takes meanwhile."""
import multiprocessing
import os
import statistics
import time
import traceback


class Storm:
    """fn(count, goes_on) in n processes for some seconds. count("word") counts an answer."""

    def __init__(self, fn, seconds, n=1):
        self.seen = multiprocessing.Queue()
        self.until = time.monotonic() + seconds
        self.children = [multiprocessing.Process(target=self._run, args=(fn,), daemon=True) for _ in range(n)]
        for c in self.children:
            c.start()

    def _run(self, fn):
        words = {}

        def count(word, n=1):
            words[str(word)] = words.get(str(word), 0) + n
        try:
            fn(count, self.goes_on)
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
            count("broke off")
        self.seen.put(words)

    def goes_on(self):
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

    def add(self, what, seconds):
        self.took.setdefault(what, []).append(seconds)

    def worst(self):
        return max((max(v) for v in self.took.values()), default=0)

    def median(self):
        return statistics.median(x for v in self.took.values() for x in v) if self.took else 0

    def table(self):
        """Each kind: the median and the longest, in milliseconds."""
        return ", ".join(f"{k} {1000 * statistics.median(v):.0f}/{1000 * max(v):.0f}" for k, v in self.took.items())


def memory_kib(pid):
    """What a process and its children hold that is their own."""
    total = 0
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            total = sum(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            children = f.read().split()
    except OSError:
        return total  # it ended meanwhile
    return total + sum(memory_kib(int(child)) for child in children)


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
