# SPDX-License-Identifier: Apache-2.0
"""render.py OUT ASKED: the table of what table.mjs said, client by call; 1 when something is not as it is to be."""
import json
import sys

cells = [json.loads(line[5:]) for line in open(sys.argv[1], errors="replace") if line.startswith("CELL ")]
asked = [json.loads(line) for line in open(sys.argv[2])]
calls = list(dict.fromkeys(call for _, call, _ in cells))
rows = {}
for client, call, cell in cells:
    rows.setdefault(client, {})[call] = cell
print("| client |", " | ".join(calls), "|")
print("| --- |", " | ".join("---" for _ in calls), "|")
for client, row in rows.items():
    print(f"| {client} |", " | ".join(row.get(call, "?") for call in calls), "|")
problems = [f"{client} {call}" for client, call, cell in cells if cell == "FAIL"]
problems += [f"{client} said {len(row)} of {len(calls)}" for client, row in rows.items() if len(row) != len(calls)]
# what the stand-in refused on purpose is the first of each "once"; all else came as it was given out
problems += [f"refused: {r['status']} {r.get('wrong', '')[:200]}" for r in asked if r["status"] not in (200, 429)]
problems += [f"the stand-in: {r['fault']}" for r in asked if "fault" in r]
ends = sum(r.get("end") == "the client hung up" for r in asked)
aborts = sum(row.get("abort") == "ok" for row in rows.values())
if ends != aborts:
    problems.append(f"of {aborts} aborts {ends} came to the provider")
print(*problems, sep="\n")
passed = sum(cell == "ok" for *_, cell in cells)
print(f"{passed} passed, {len(problems)} failed")
sys.exit(bool(problems) or not passed)
