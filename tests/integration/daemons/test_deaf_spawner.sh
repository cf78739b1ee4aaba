#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job that meets a spawner which takes nothing any more is not its own failure: the tomb stops,
# with the reason, and the job runs to its end when a spawner is there again. Its output is told once.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/support/lych.sh

built=$LYCH_BIN
lych_begin deaf
LYCH_BIN=$LYCH_TMP/bin
mkdir "$LYCH_BIN"
for f in "$built"/lych* "$built"/tools; do
	if [ -x "$f" ]; then cp -r "$f" "$LYCH_BIN/"; fi
done
mv "$LYCH_BIN/lych-sandbox" "$LYCH_BIN/lych-sandbox.real"
cp "$built/tests/support/deaf_spawner" "$LYCH_BIN/lych-sandbox"
lych up --detach

n=3
for i in $(seq $n); do
	lych run --detach --request-id "deaf-$i" -- sh -c "echo $i" >/dev/null
done
log=$LYCHGATE_DATA/log/tomb.log
met() { grep -q "LYCH-SANDBOX-013.*takes no jobs any more" "$log"; }
for _ in $(seq 300); do
	if met; then break; fi
	nap 0.05
done
mv "$LYCH_BIN/lych-sandbox.real" "$LYCH_BIN/lych-sandbox"
met || fail "the tomb did not say that its spawner is gone"

states() {
	lych jobs --json --limit 500 | python3 -c '
import json, sys
print(*sorted({j["state"] for j in json.load(sys.stdin)["jobs"]}))'
}
for _ in $(seq 600); do
	case $(states) in
	succeeded) break ;;
	*dead* | *quarantined* | *lost* | *failed*) fail "a job ended with a spawner that never took it: $(lych jobs --json)" ;;
	esac
	nap 0.2
done
lych jobs --json --limit 500 >"$LYCH_TMP/jobs.json"
[ "$(states)" = succeeded ] || fail "states: $(states): $(cat "$LYCH_TMP/jobs.json")"
lych_ledger $n "$LYCH_TMP/jobs.json"
echo "deaf spawner: $n jobs succeeded once after it"
