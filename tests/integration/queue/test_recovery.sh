#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recovery: 100 jobs are in flight while the tomb, the spawner, the vessel and PostgreSQL are
# killed with SIGKILL, one after another. Then: no accepted job lost, none completed twice, and
# no process of a job of the killed tomb or spawner left after one second.
# What a job did is told by a ledger that the database knows nothing of: its own output.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/support/lych.sh

JOBS=${JOBS:-100}
SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$((SEED % 32768))
echo "recovery: seed $SEED, $JOBS jobs, 16 at once"

lych_begin recovery
lych_config 'slots: "16"'
lych up --detach

marker="lych-recovery-$SEED"
for i in $(seq "$JOBS"); do
	ms=$((2000 + RANDOM % 4000))
	lych run --detach --request-id "$marker-$i" --timeout 60 -- \
		sh -c 'sleep "$2"; echo "$1"' "$marker" "$i" "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))" >/dev/null
done

job_processes() { tests/support/marked "$marker" | sort; }

wait_running() {
	for _ in $(seq 600); do
		[ "$(job_processes | wc -l)" -ge "$1" ] && return
		nap 0.05
	done
	fail "jobs did not start"
}

kill_and_look() { # name pid
	local before after
	wait_running 4
	before=$(job_processes)
	kill -KILL "$2"
	# soon: later they would have ended by themselves
	for _ in $(seq 30); do
		nap 0.1
		after=$(comm -12 <(echo "$before") <(job_processes))
		[ -n "$after" ] || break
	done
	echo "recovery: killed $1 (pid $2): $(wc -w <<<"$before") job processes before, $(wc -w <<<"$after") of them left"
	[ -z "$after" ] || fail "processes of jobs outlived the $1: $after"
}

kill_only() { # name pid
	wait_running 1
	kill -KILL "$2"
	echo "recovery: killed $1 (pid $2)"
}

kill_and_look tomb "$(lych_pid tomb)"
lych_wait_up
kill_and_look spawner "$(lych_pid spawner)"
lych_wait_up
wait_running 1
kill_only vessel "$(lych_pid vessel)"
lych_wait_up
kill_only postgres "$(lych_pid postgres)"
lych_wait_up

deadline=$((SECONDS + 240))
while :; do
	open=$(lych jobs --json --limit 500 | python3 -c '
import json, sys
final = {"succeeded", "failed", "cancelled", "timed_out", "lost", "quarantined"}
print(sum(j["state"] not in final for j in json.load(sys.stdin)["jobs"]))')
	[ "$open" -gt 0 ] || break
	[ $SECONDS -lt $deadline ] || fail "$open jobs never ended"
	sleep 1
done

lych jobs --json --limit 500 >"$LYCH_TMP/jobs.json"
JOBS=$JOBS MARKER=$marker python3 - "$LYCH_TMP/jobs.json" <<'P' || fail "the ledger does not hold"
import collections, json, os, sys
jobs = json.load(open(sys.argv[1]))["jobs"]
states = collections.Counter(j["state"] for j in jobs)
print("recovery: states", dict(states), "attempts", sum(j["attempts"] for j in jobs), "lost leases", sum(j["lost"] for j in jobs))
want = {f'{os.environ["MARKER"]}-{i}' for i in range(1, int(os.environ["JOBS"]) + 1)}
assert {j["request_id"] for j in jobs} == want, "an accepted job is missing or there are strangers"
assert len(jobs) == len(want), "a job twice"
assert states == {"succeeded": len(want)}, states
P
lych_ledger "$JOBS" "$LYCH_TMP/jobs.json"
[ "$(lych_violations)" = 0 ] || fail "invariants: $(lych_violations)"
lych down
[ -z "$(job_processes)" ] || fail "a process of a job is left after lych down"
echo "recovery: $JOBS of $JOBS succeeded once, outputs exact, invariants zero"
