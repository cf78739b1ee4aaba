# SPDX-License-Identifier: Apache-2.0
"""An outcome of a piece of work that is written in Python, as step.sh says it."""
import sys
import traceback


def step(name):
    """Runs the function at once. What it returns is part of the outcome."""
    def run(act):
        try:
            said = act()
        except Exception:
            traceback.print_exc()
            print("FAIL", name)
        else:
            print("ok", name if said is None else f"{name}: {said}")
        sys.stdout.flush()
        return act
    return run
