#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A worker that died: where its namespace proves that nothing of it lives, the next one hands its
# leases back at once and its jobs run again within five seconds, whoever was killed. The third loss
# of a job quarantines it. Without the proof the lease runs out.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/support/lych.sh
LIMIT_MS=5000

lych_begin back
lych_config 'slots: "8"'
lych up --detach
marker=lych-back-$$
record=$LYCHGATE_DATA/tomb.process

now_ms() { date +%s%3N; }
of_job() { # id, expressions over j
	lych show "$1" --json | python3 -ISc 'import json,sys; j=json.load(sys.stdin); print(*eval("[" + sys.argv[1] + "]"))' "$2"
}
long_job() { lych run --detach --timeout 300 -- sh -c 'sleep 200' "$marker"; }
# The processes of jobs, by pid and start time: who runs again is somebody else.
jobs_alive() { tests/support/marked "$marker" | sort; }
guard_of_tomb() { sed -n 's/^PPid:[[:space:]]*//p' "/proc/$(lych_pid tomb)/status"; }
wait_running() { # how many
	for _ in $(seq 400); do
		[ "$(jobs_alive | wc -l)" -eq "$1" ] && return
		nap 0.05
	done
	fail "$(jobs_alive | wc -l) jobs run, not $1"
}
# Kill one process; the jobs run again in time, in new processes.
kill_and_wait() { # what, pid, how many jobs
	local before start took now
	before=$(jobs_alive)
	start=$(now_ms)
	kill -KILL "$2"
	while :; do
		now=$(jobs_alive)
		took=$(($(now_ms) - start))
		[ "$(wc -w <<<"$now")" -ne "$3" ] || [ -n "$(comm -12 <(echo "$before") <(echo "$now"))" ] || break
		[ $took -lt 60000 ] || fail "after the kill of the $1 $(wc -w <<<"$now") of $3 jobs run again"
		nap 0.02
	done
	echo "handback: killed the $1: $3 jobs ran again after $took ms"
	[ $took -le $LIMIT_MS ] || fail "killed the $1: the jobs ran again after $took ms"
}

# --- the tomb, its guard, its spawner: a loss each, and the third is one too many
jobs=()
for _ in 1 2 3; do jobs+=("$(long_job)"); done
wait_running 3
kill_and_wait tomb "$(lych_pid tomb)" 3
is_lost() { [ "$(of_job "$1" 'j["state"], j["lost"], j["attempts"]')" = "running $2 $3" ]; }
for id in "${jobs[@]}"; do is_lost "$id" 1 2 || fail "job $id: $(of_job "$id" 'j["state"], j["lost"], j["attempts"]')"; done
lych_wait_up
kill_and_wait "tomb's guard" "$(guard_of_tomb)" 3
for id in "${jobs[@]}"; do is_lost "$id" 2 3 || fail "job $id: $(of_job "$id" 'j["state"], j["lost"], j["attempts"]')"; done
lych_wait_up
more=$(long_job)
wait_running 4
kill -KILL "$(lych_pid spawner)"
for _ in $(seq 300); do
	lych_job_is "${jobs[0]}" quarantined && break
	nap 0.05
done
for id in "${jobs[@]}"; do
	[ "$(of_job "$id" 'j["state"], j["lost"]')" = "quarantined 3" ] || fail "a third loss: $(of_job "$id" 'j["state"], j["lost"]')"
done
wait_running 1
is_lost "$more" 1 2 || fail "the job beside them: $(of_job "$more" 'j["state"], j["lost"], j["attempts"]')"

# --- the starter, and everything with it; the next start hands back
lych_wait_up
before=$(jobs_alive)
kill -KILL "$(lych_pid supervisor)"
for _ in $(seq 100); do
	[ -n "$(jobs_alive)" ] || break
	nap 0.05
done
[ -z "$(jobs_alive)" ] || fail "a killed starter left a job: $(jobs_alive)"
lych up --detach >/dev/null || fail "up after a killed starter"
start=$(now_ms)
wait_running 1
took=$(($(now_ms) - start))
echo "handback: killed the starter: the job ran again $took ms after the next start"
[ $took -le $LIMIT_MS ] || fail "killed the starter: the job ran again after $took ms"
[ "$before" != "$(jobs_alive)" ] || fail "it is the same process"
# the house went down: that is no fault of a job, which is given back
is_lost "$more" 1 2 || fail "after the starter: $(of_job "$more" 'j["state"], j["lost"], j["attempts"]')"
lych cancel "$more" >/dev/null
wait_running 0

# --- a job that was being cancelled is cancelled: nothing of it runs, that is proved
lych_wait_up
id=$(lych run --detach --timeout 300 -- sh -c 'trap "" TERM; sleep 200 & wait; sleep 200' "$marker")
wait_running 1
kill -STOP "$(lych_pid tomb)" # it does not hear of the cancel
(lych cancel "$id" >/dev/null 2>&1 || true) &
for _ in $(seq 300); do
	! lych_job_is "$id" cancelling || break
	nap 0.05
done
kill -KILL "$(lych_pid tomb)"
for _ in $(seq 300); do
	lych_job_is "$id" cancelling || break
	nap 0.05
done
[ "$(of_job "$id" 'j["state"]')" = cancelled ] || fail "a cancelled job of a dead worker: $(of_job "$id" 'j["state"]')"

# --- a worker that died again and again, each time when it had been ready, is not waited for
for _ in 1 2 3 4 5 6 7; do
	lych_wait_up
	kill -KILL "$(lych_pid tomb)"
	nap 0.2
done
lych_wait_up
id=$(long_job)
wait_running 1
kill_and_wait "tomb, an eighth time" "$(lych_pid tomb)" 1
lych cancel "$id" >/dev/null
wait_running 0

# --- a claim that was granted and whose answer nobody read: the successor asks what it brought
lych_wait_up
psql=$(dirname "$(readlink -f "/proc/$(lych_pid postgres)/exe")")/psql
export PGPASSWORD
PGPASSWORD=$(cat "$LYCHGATE_DATA/secrets/lychgate_db_migrate")
sql() { "$psql" -qXAt -h "$XDG_RUNTIME_DIR/lychgate/pg" -U lych_migrate -d lychgate "$@"; }
# No job is claimed while this is held: from before the job is there until the worker is dead.
sql -c BEGIN -c "SELECT 1 FROM lych.worker_queue FOR UPDATE" -c "\\! touch '$LYCH_TMP/held'" \
	-c "\\! until [ -e '$LYCH_TMP/let_go' ]; do sleep 0.05; done" -c COMMIT >/dev/null &
wait_until 30 "the queue is not locked" test -e "$LYCH_TMP/held"
id=$(long_job)
a_claim_waits() { [ "$(sql -c "SELECT count(*) FROM pg_locks WHERE NOT granted")" != 0 ]; }
wait_until 30 "no claim waits in the server" a_claim_waits
kill -KILL "$(lych_pid tomb)"
nap 1.5
touch "$LYCH_TMP/let_go"
wait $!
start=$(now_ms)
wait_running 1
took=$(($(now_ms) - start))
[ "$(of_job "$id" 'j["lost"]')" = 1 ] || fail "the claim was not granted to the dead one: $(of_job "$id" 'j["lost"]')"
echo "handback: killed with a claim under way: the job ran $took ms after it was granted"
[ $took -le $LIMIT_MS ] || fail "killed with a claim under way: the job ran after $took ms"
lych cancel "$id" >/dev/null
wait_running 0

# --- no proof: the lease runs out. Nobody knows who the tomb was
lych_wait_up
id=$(long_job)
wait_running 1
starter=$(lych_pid supervisor)
kill -STOP "$starter"
rm "$record"
kill -KILL "$(lych_pid tomb)"
wait_running 0
kill -CONT "$starter"
lych_wait_up
sleep 6
[ "$(of_job "$id" 'j["state"], j["lost"]')" = "running 0" ] || fail "handed back without a proof: $(of_job "$id" 'j["state"], j["lost"]')"
wait_running 0
[ ! -e "$LYCHGATE_DATA/tomb/gone" ] || fail "a proof is left"
for _ in $(seq 600); do
	lych_job "$id"
	[ "$job_lost" = 0 ] || break
	nap 0.1
done
[ "$(of_job "$id" 'j["lost"]')" = 1 ] || fail "its lease never ran out"
[ "$(stat -c %a "$LYCHGATE_DATA/tomb/leases")" = 600 ] || fail "the file of the leases is open to others"
[ "$(lych_violations)" = 0 ] || fail "invariants: $(lych_violations)"
echo "handback: all as they must"
