#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 150
# A job leaves 200,000 files behind. While its folder is removed the tomb answers, renews the lease of the
# neighbour, and starts other jobs.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
FILES=${FILES:-200000}
lych_begin large
lych up --detach 2>/dev/null || fail "up"
json() { python3 -ISc 'import json,sys; j=json.load(sys.stdin); print(*eval("[" + sys.argv[1] + "]"))' "$1"; }

neighbour=$(lych run -n --detach -- sh -c 'sleep 20; echo neighbour')
# While the walk over so many files takes its time, what others write on the file system counts against the disk limit
# (docs/SANDBOX.md): other tests write a gigabyte there.
id=$(lych run -n --detach --timeout 100 --memory 1GiB --disk 8GiB -- python3 -c '
import os, sys
for d in range(20):
    os.mkdir(f"d{d}")
    os.chdir(f"d{d}")
    for i in range(int(sys.argv[1]) // 20):
        os.mknod(str(i))
    os.chdir("..")
print("made")' "$FILES")
python3 - "$XDG_RUNTIME_DIR/lychgate/work/tomb-tomb_1.sock" "$LYCHGATE_DATA/tomb/jobs/$id.1" <<'P' || fail "the tomb was away"
import json, os, socket, sys, time
path, folder = sys.argv[1:3]
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(path)
f = s.makefile("rwb")
worst, asked, removing, seen = 0.0, 0, 0, False
begin = time.monotonic()
while True:
    assert time.monotonic() - begin < 110, "the folder is still there"
    start = time.monotonic()
    f.write(b'{"jsonrpc":"2.0","id":1,"method":"healthCheck"}\n')
    f.flush()
    answer = json.loads(f.readline())
    assert "result" in answer, answer
    took, asked = time.monotonic() - start, asked + 1
    if not os.path.isdir(folder):
        if seen:
            break
    elif not seen:
        seen = True
    if not os.path.isdir(folder + "/spool"):
        removing += seen  # its removal has begun
    worst = max(worst, took)
    time.sleep(0.005 if removing else 0.05)
print(f"large_workspace: {time.monotonic() - begin:.1f} s, {asked} questions, {removing} of them while it was removed, worst answer {worst * 1000:.0f} ms")
# a tomb that stood still while it removes them would be silent for as long as that takes
assert worst < 3.0
P
[ "$(lych show "$id" --json | json 'j["state"]')" = succeeded ] || fail "the job: $(lych show "$id" --json | json 'j["state"], j["class"], j["result"]')"
[ "$(lych run -n -- echo next)" = next ] || fail "another job"
[ "$(lych logs -f "$neighbour")" = neighbour ] || fail "the neighbour's output"
[ "$(lych show "$neighbour" --json | json 'j["state"], j["attempts"], j["lost"]')" = "succeeded 1 0" ] || fail "the neighbour lost its lease"
echo "large_workspace: $FILES files, the neighbour kept its lease"
