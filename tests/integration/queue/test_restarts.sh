#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# A dead worker of which there is no proof, while the vessel and PostgreSQL are killed in turn every
# twelve seconds, more often than the grace that a holder gets after a restart: its job is taken back
# all the same, when that grace has been served once, in pieces. A worker that lives keeps its own.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. tests/support/lych.sh
EVERY_SEC=12
LIMIT_SEC=110 # the rest of the lease, its grace, and what restarts take of it
lych_begin restarts
lych up --detach
marker=lych-restarts-$$

field() { lych show "$1" --json 2>/dev/null | python3 -ISc 'import json,sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2" 2>/dev/null || true; }
running() { [ "$(tests/support/marked "$marker" | wc -l)" -eq "$1" ]; }
until_running() {
	for _ in $(seq 400); do
		running "$1" && return
		nap 0.05
	done
	fail "$1 jobs do not run"
}

dead=$(lych run --detach --timeout 400 -- sh -c 'sleep 300' "$marker")
until_running 1
starter=$(lych_pid supervisor)
tomb=$(lych_pid tomb)
# its successor shall not know who it was
kill -STOP "$starter"
rm -f "$LYCHGATE_DATA/tomb.process"
kill -KILL "$tomb"
kill -CONT "$starter"
lych_wait_up
start=$SECONDS
live=$(lych run --detach --timeout 400 -- sh -c 'sleep 300' "$marker")
until_running 1

parts=(vessel postgres)
killed=0
next=$((SECONDS + EVERY_SEC))
while [ "$(field "$dead" lost)" != 1 ]; do
	[ $((SECONDS - start)) -lt $LIMIT_SEC ] || fail "$LIMIT_SEC s after its worker died the job is $(field "$dead" state), after $killed restarts"
	nap 0.5
	[ $SECONDS -ge $next ] || continue
	pid=$(lych_pid "${parts[killed % 2]}" 2>/dev/null || true)
	[[ ${pid:-0} =~ ^[1-9] ]] || continue
	kill -KILL "$pid"
	killed=$((killed + 1))
	next=$((SECONDS + EVERY_SEC))
done
took=$((SECONDS - start))
echo "restarts: taken back $took s after its worker died, $killed restarts of vessel and PostgreSQL meanwhile"
[ $killed -ge 3 ] || fail "only $killed restarts"
until_running 2
[ "$(field "$live" lost) $(field "$live" attempts)" = "0 1" ] || fail "the living one was lost: $(field "$live" lost) $(field "$live" attempts)"
[ "$(field "$dead" attempts)" = 2 ] || fail "attempts of the dead one: $(field "$dead" attempts)"
lych_wait_up
[ "$(lych_violations)" = 0 ] || fail "invariants: $(lych_violations)"
