#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 900
# A job that holds locks of directories, files and the file system (tests/escape/try_hold.c), beside
# 240 processes that burn, in a real tomb: what its neighbours notice. Their jobs begin and end, in no
# more than three times what they take beside the burners alone, no lease is lost, and a cancel is
# done. ACTS, GRADES.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/support/lych.sh
hold=$LYCH_BIN/tests/escape/try_hold
marked=$PWD/tests/support/marked
lych_begin holdt

measure() { # seconds: how long `lych run -- true` took, in ms, a line each
	local end=$((SECONDS + $1)) t
	while [ $SECONDS -lt $end ]; do
		t=$(date +%s%N)
		lych run -n -- true || fail "a neighbour failed"
		echo $((($(date +%s%N) - t) / 1000000))
		sleep 0.1
	done
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
running() { [ "$("$marked" "$mark" | wc -l)" -gt 120 ]; }
class_of() { lych show "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["class"])'; }
ended() { lych show "$1" --json | python3 -c 'import json, sys; j = json.load(sys.stdin); sys.exit(not (j["state"] == "cancelled" or j["class"] == "resource_kill"))'; }
gone() { [ -z "$("$marked" "$mark")" ]; }

for grade in ${GRADES:-full floor}; do
	lych_config "grade: $grade" 'slots: "6"'
	lych up --detach 2>/dev/null || fail "up"
	lych run -n -- true # and so all is warm
	quiet=$(measure 4 | median)
	echo "hold: $grade: a neighbour alone: median $quiet ms"
	for act in burn ${ACTS:-rename link directory metadata mprotect storm locks}; do
		mark=lych-hold-$$-$RANDOM
		id=$(lych run -n --detach --timeout 300 --processes 400 --memory 1GiB --file "$hold=t" -- ./t "$act" 240 "$mark")
		wait_until 30 "$act did not begin" running
		measure 6 >"$LYCH_TMP/times"
		said=$(median <"$LYCH_TMP/times")
		t=$(date +%s%N)
		# one that could not be measured was ended before
		lych cancel "$id" >/dev/null || [ "$(class_of "$id")" = resource_kill ] || fail "$grade: $act ended: $(class_of "$id")"
		wait_until 60 "$act lives on" gone
		echo "hold: $grade: beside $act: $(wc -l <"$LYCH_TMP/times") neighbours, median $said ms, slowest $(sort -n "$LYCH_TMP/times" | tail -n 1) ms;" \
			"all of it gone $((($(date +%s%N) - t) / 1000000)) ms after the cancel"
		[ "$act" != burn ] || burning=$said
		[ "$said" -le $((3 * burning)) ] || fail "$grade: a neighbour takes $said ms beside $act, $burning beside the burners, $quiet alone"
		wait_until 30 "the end of $act is not told" ended "$id"
	done
	lych jobs --json --limit 500 | python3 -c '
import json, sys
bad = [j for j in json.load(sys.stdin)["jobs"] if j["lost"] or j["attempts"] > 1]
assert not bad, f"leases were lost: {bad[:3]}"'
	lych down
done
echo "hold: no lease lost, neighbours go on"
