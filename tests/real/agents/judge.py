# SPDX-License-Identifier: Apache-2.0
"""judge.py STRICT ASKED OUT CODE: prints how many of the task's calls came back, and the outcome; 0 when it is as it is to be."""
import json
import re
import sys

sys.path.insert(0, sys.argv[1])
import task

asked = [json.loads(line) for line in open(sys.argv[2])]
out = open(sys.argv[3], errors="replace").read()
calls = max((r["step"] for r in asked if "step" in r), default=0)
wrong = [r["unexpected"] for r in asked if "unexpected" in r]
refused = [r for r in asked if r["status"] != 200 or "fault" in r]
ended = re.search(r"^ended (\d+)$", out, re.M)
problems = []
if int(sys.argv[4]) != 0:
    problems.append(f"the job ended with {sys.argv[4]}")
if not ended or ended[1] != "0":
    problems.append(f"the agent ended with {ended and ended[1]}")
if calls != len(task.STEPS):
    problems.append(f"it stopped after {calls} calls")
if refused:
    problems.append(f"{len(refused)} refused: {refused[0]['status']} {refused[0].get('wrong', refused[0].get('fault', ''))[:200]}")
if wrong:
    problems.append(f"{len(wrong)} results were not as they are: call {wrong[0][0]}: {wrong[0][1][:200]!r}")
if f"modules {task.digest()}" not in out:
    problems.append("the modules are not mended")
if re.search(r"LYCH-[A-Z]+-\d+", out):
    problems.append("it met " + ", ".join(sorted(set(re.findall(r"LYCH-[A-Z]+-\d+", out)))))
print(calls, "; ".join(problems).replace("|", "/").replace("\n", " ") or f"mended, {len(asked)} requests")
sys.exit(bool(problems))
