# SPDX-License-Identifier: Apache-2.0
"""What the strict stand-in says: to an agent the forty calls of task.py, to an SDK what its words ask for."""
import base64
import hashlib
import threading
import time

import task
from common import GIVEN, Bad, Turn, instance, written

LOCK = threading.Lock()
ONCE = {}


def answer(talk, text, **more):
    return Turn(text=text if talk.schema is None else written(instance(talk.schema, **more)))


class Agent:
    """A request without a tool that runs commands is one of the agent's own (a title, a summary): it gets an answer that fits; to one
    who asks how sure it is that the agent goes in circles that is: hardly."""

    def __init__(self, directory):
        self.directory = directory

    def say(self, talk):
        if not task.run_of(talk.tools, ""):
            return answer(talk, "Shop mended", number=0.1)
        done = {}
        for ident, text in talk.results:
            step = GIVEN.steps.get(ident)
            if step is not None:
                done[step] = text
        n = max(done, default=-1) + 1
        if n and task.STEPS[n - 1].wanted not in done[n - 1]:
            talk.unexpected = (n, done[n - 1][:1000])
        if n == len(task.STEPS):
            return Turn(text="All twelve modules are mended, and their tests pass.", step=n)
        return Turn(text=f"Step {n + 1}: “{task.STEPS[n].verb}”, I’d say.", step=n, is_task=True, calls=[
            task.call_of(talk.tools, task.STEPS[n], self.directory)])


class Sdk:
    """By the words of the last message: busy; once ID; endless; turns N; anything else is said again, with the pictures that came."""

    def say(self, talk):
        what, *rest = talk.words.split() or [""]
        if what == "busy":
            raise Bad("slow down", 429)
        if what == "once":
            with LOCK:
                first, ONCE[rest[0]] = rest[0] not in ONCE, time.monotonic() - ONCE.get(rest[0], 0)
            if first:
                ONCE[rest[0]] = time.monotonic()
                raise Bad("slow down", 429)
            return answer(talk, f"again after {'long enough' if ONCE[rest[0]] > 0.9 else ONCE[rest[0]]}")
        if what == "endless":
            return Turn(is_endless=True)
        if what == "turns":
            return self.turns(talk, int(rest[0]))
        seen = "".join(f", and saw {kind} {hashlib.sha256(base64.b64decode(data)).hexdigest()[:16]}" for kind, data in talk.pictures)
        return answer(talk, f"you said: {talk.words}{seen}")

    @staticmethod
    def turns(talk, wanted):
        """The n-th call asks for n, and its result says n."""
        for n, (ident, text) in enumerate(talk.results):
            if GIVEN.steps.get(ident) != n or f"step {n} is done" not in text:
                raise Bad(f"the result of call {n} is {text[:80]!r}")
        n = len(talk.results)
        if n < wanted:
            name = next(iter(talk.tools))
            return Turn(text=f"Call {n + 1}.", step=n, calls=[(name, {"n": n, "note": "“é” \\ \" \n\t€"})])
        return Turn(text=f"done after {n} calls", step=n)
