# SPDX-License-Identifier: Apache-2.0
"""task.py DIR: lays the project there that an agent is to mend. Twelve modules, each with one fault and a test, a history
to read and a lock file; forty calls mend it (STEPS). What a call is named, and its arguments, each agent has its own words for:
call_of() finds them among the tools that it offers."""
import base64
import collections
import hashlib
import json
import os
import random
import subprocess
import sys

RNG = random.Random(40)
PROMPT = ("Twelve modules below shop/ have one fault each, and a test below spec/ that shows it. Read the history and "
          "README.md, then mend one module after the other, and run its test each time. Go on without asking until all tests pass.")
# What is wrong in each: a function, its faulty line, the right one, a call and its result.
FAULTS = (
    ("total", "return sum(prices) + 1", "return sum(prices)", "[1, 2, 3]", "6"),
    ("cheapest", "return max(prices)", "return min(prices)", "[4, 2, 9]", "2"),
    ("count", "return len(prices) - 1", "return len(prices)", "[5, 5]", "2"),
    ("mean", "return sum(prices) // 2", "return sum(prices) / len(prices)", "[1, 2]", "1.5"),
    ("ordered", "return sorted(prices, reverse=True)", "return sorted(prices)", "[3, 1]", "[1, 3]"),
    ("doubled", "return [p * 3 for p in prices]", "return [p * 2 for p in prices]", "[1, 4]", "[2, 8]"),
    ("paid", "return [p for p in prices if p < 0]", "return [p for p in prices if p > 0]", "[-1, 7]", "[7]"),
    ("last", "return prices[0]", "return prices[-1]", "[8, 9]", "9"),
    ("label", "return f'{prices[0]} \u20ac'.upper()", "return f'\u201c{prices[0]} \u20ac\u201d'", "[12]", "'\u201c12 \u20ac\u201d'"),
    ("unique", "return list(prices)", "return sorted(set(prices))", "[2, 2, 1]", "[1, 2]"),
    ("spread", "return min(prices) - max(prices)", "return max(prices) - min(prices)", "[2, 7]", "5"),
    ("halves", "return [p // 2 for p in prices]", "return [p / 2 for p in prices]", "[3]", "[1.5]"),
)
PEOPLE = ("Ada Byron <ada@shop.example>", "Bo Li <bo.li@mail.example>", "Cleo Diaz <c.diaz@post.example>")


def module(i, line):
    name = FAULTS[i][0]
    notes = "\n".join(f"# {RNG.getrandbits(160):040x} was the commit that spoke of {name} in chapter {n}." for n in range(3))
    return f'"""What the shop knows of {name}."""\n\n{notes}\n\n\ndef {name}(prices):\n    """See spec/test_{name}.py."""\n    {line}\n'


def test_of(i):
    name, _, _, given, wanted = FAULTS[i]
    return (f"import unittest\n\nfrom shop.{name} import {name}\n\n\nclass Test(unittest.TestCase):\n    def test_{name}(self):\n"
            f"        self.assertEqual({name}({given}), {wanted})\n")


def lock():
    packages = {}
    for name in ("left", "right", "upper", "lower", "inner", "outer", "front", "back"):
        packages[f"node_modules/{name}"] = {
            "version": f"{RNG.randrange(9)}.{RNG.randrange(20)}.{RNG.randrange(9)}",
            "resolved": f"https://registry.example/{name}/-/{name}.tgz",
            "integrity": "sha512-" + base64.b64encode(RNG.randbytes(64)).decode()}
    return json.dumps({"name": "shop", "lockfileVersion": 3, "packages": packages}, indent=2) + "\n"


BROKEN = {f"shop/{f[0]}.py": module(i, f[1]) for i, f in enumerate(FAULTS)}
MENDED = {p: BROKEN[p].replace(f[1], f[2]) for p, f in zip(BROKEN, FAULTS)}
OTHERS = {f"spec/test_{f[0]}.py": test_of(i) for i, f in enumerate(FAULTS)}
OTHERS |= {"shop/__init__.py": "", "spec/__init__.py": "", "package-lock.json": lock(),
           "README.md": "# Shop\n\nPrices, twelve ways. Write to ada@shop.example when the till at 192.0.2.17 is silent.\n\n"
                        + "".join(f"- `{f[0]}`: `{f[0]}({f[3]})` is `{f[4]}`\n" for f in FAULTS)}

Step = collections.namedtuple("Step", "verb args wanted")  # wanted: what its result has in it


def steps():
    yield Step("run", {"command": "git log --stat -n 20 && ls shop spec"}, "test_halves.py")
    yield Step("read", {"path": "README.md"}, "Prices, twelve ways")
    for path, f in zip(BROKEN, FAULTS):
        yield Step("read", {"path": path}, f[1])
        yield Step("edit", {"path": path, "old": f[1], "new": f[2]}, "")
        yield Step("run", {"command": f"python3 -B -m unittest -v spec.test_{f[0]} 2>&1"}, "OK")
    yield Step("run", {"command": "cat package-lock.json"}, json.loads(OTHERS["package-lock.json"])["packages"]
               ["node_modules/back"]["integrity"])
    yield Step("run", {"command": "python3 -B -m unittest 2>&1; git diff --stat"}, "Ran 12 tests")


STEPS = list(steps())
assert len(STEPS) == 40


def digest(directory=None):
    """Of the twelve modules: as they lie there, or as they are to be."""
    h = hashlib.sha256()
    for path in sorted(MENDED):
        h.update(open(os.path.join(directory, path), "rb").read() if directory else MENDED[path].encode())
    return h.hexdigest()


# ---- the words of each agent ----

def patch(path, old, new):
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-    {old}\n+    {new}\n*** End Patch\n"


def filled(schema, args):
    """Those of args that the tool knows, and what else it wants."""
    known = schema.get("properties", {})
    given = {k: v for k, v in args.items() if k in known}
    for name in schema.get("required", []):
        kind = known.get(name, {}).get("type")
        given.setdefault(name, {"boolean": False, "integer": 60000, "number": 60000, "array": [], "object": {}}.get(kind, "so that the tests pass"))
    return given


def run_of(tools, command):
    for name in ("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell"):
        if name in tools:
            words = ["bash", "-lc", command] if tools[name].get("properties", {}).get("command", {}).get("type") == "array" else command
            return name, filled(tools[name], {"command": words, "cmd": command, "description": "Looks after the shop"})
    return None


def call_of(tools, step, directory):
    """The tool and its arguments (a text, of a tool that takes one); tools: by name their schema, None of one that takes a text."""
    a = step.args
    path = os.path.join(directory, a.get("path", ""))
    places = {"file_path": path, "filePath": path, "absolute_path": path, "path": path}
    if step.verb == "read":
        for name in ("Read", "read", "read_file"):
            if name in tools:
                return name, filled(tools[name], places)
        return run_of(tools, f"cat {a['path']}")
    if step.verb == "edit":
        for name in ("Edit", "edit", "replace"):
            if name in tools:
                return name, filled(tools[name], {**places, "old_string": a["old"], "new_string": a["new"],
                                                  "oldString": a["old"], "newString": a["new"]})
        if "apply_patch" in tools:
            text = patch(a["path"], a["old"], a["new"])
            return "apply_patch", text if tools["apply_patch"] is None else filled(tools["apply_patch"], {"input": text})
        return run_of(tools, f"apply_patch <<'END'\n{patch(a['path'], a['old'], a['new'])}END")
    return run_of(tools, a["command"])


if __name__ == "__main__":
    top = sys.argv[1]
    for path, text in {**BROKEN, **OTHERS}.items():
        os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
        with open(os.path.join(top, path), "w") as f:
            f.write(text)
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words, **more):
        subprocess.run(["git", *words], cwd=top, env={**env, **more}, check=True, stdout=subprocess.DEVNULL)
    git("init", "-q")
    for n, path in enumerate([*BROKEN, "."]):
        name, _, mail = PEOPLE[n % 3][:-1].partition(" <")
        git("add", path)
        who = {f"GIT_{kind}_{what}": v for kind in ("AUTHOR", "COMMITTER")
               for what, v in (("NAME", name), ("EMAIL", mail), ("DATE", f"{1790000000 + n * 3600} +0200"))}
        git("commit", "-qm", f"shop: {path}", **who)
