#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# Hangs are seen: who is stopped (SIGSTOP) is missed, ended and replaced within 15 s, and the job
# that it held runs again. A machine that only stood still hangs nobody.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/support/lych.sh
LIMIT_MS=15000

lych_begin hangs
lych up --detach
marker=lych-hangs-$$

now_ms() { date +%s%3N; }
state() { lych show "$1" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["state"])'; }
# A job that runs for as long as nobody writes into its go file: told by what it says.
long_job() { lych run --detach --timeout 300 -- sh -c 'echo begun; sleep 120' "$marker"; }
running() { [ "$(tests/support/marked "$marker" | wc -l)" -gt 0 ]; }
child() { # pid, name: the first of its children that is called so
	local pid
	for pid in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$pid/comm")" != "$2" ] || echo "$pid"
	done | head -n 1
}
pid_of() { # as lych_pid, and the egress processes by their names
	case $1 in
	lych-egress) child "$(lych_pid vessel)" "$1" ;;
	keyless | gate) child "$(pid_of lych-egress)" "$1" ;;
	*) lych_pid "$1" ;;
	esac
}
is_new() { # part, old pid
	local pid
	pid=$(pid_of "$1" 2>/dev/null) && [ -n "$pid" ] && [ "$pid" != None ] && [ "$pid" != 0 ] && [ "$pid" != "$2" ]
}
# Stop a part: another process has its place in time.
stopped() { # part
	local pid start took
	pid=$(pid_of "$1")
	start=$(now_ms)
	kill -STOP "$pid"
	wait_until 40 "the stopped $1 (pid $pid) was not replaced" is_new "$1" "$pid"
	took=$(($(now_ms) - start))
	echo "hangs: a stopped $1 was replaced after $took ms"
	[ "$took" -le $LIMIT_MS ] || fail "the stopped $1 was replaced after $took ms"
	[ ! -e "/proc/$pid" ] || fail "the stopped $1 (pid $pid) is still there"
	lych_wait_up
	[ "$(lych run -n -- echo back)" = back ] || fail "no job runs after the stop of the $1"
}

# --- the spawner, by the tomb, which ends with it
id=$(long_job)
wait_until 20 "the job did not start" running
stopped spawner
grep -q 'LYCH-SANDBOX-013.*does not answer' "$LYCHGATE_DATA/log/tomb.log" || fail "the tomb did not say why"
wait_until 60 "the job did not run again" running

# --- the others, by the starter, the egress workers by their parent and that by the vessel
for part in tomb vessel scribe postgres keyless gate lych-egress; do
	stopped $part
	wait_until 60 "the job does not run after the stop of the $part" running
done
lych cancel "$id" >/dev/null

# --- who only waits for another is missed when there is something to tell: the tomb's guard, and the spawner's
# parent outside its namespaces
parent_of() { awk '/^PPid:/ { print $2 }' "/proc/$1/status"; }
waits() { # part: stopped is who waits for it
	local part=$1 pid waiter
	id=$(long_job)
	wait_until 20 "the job did not start" running
	pid=$(pid_of "$part")
	waiter=$(parent_of "$pid")
	kill -STOP "$waiter"
	[ "$(lych run -n -- echo back)" = back ] || fail "no job runs while the $part's parent is stopped"
	kill -KILL "$pid"
	wait_until 15 "a killed $part whose parent is stopped was not replaced" is_new "$part" "$pid"
	[ ! -e "/proc/$waiter" ] || fail "the stopped parent of the $part (pid $waiter) is still there"
	lych_wait_up
	wait_until 60 "the job does not run after the stop of the $part's parent" running
	lych cancel "$id" >/dev/null
}
waits tomb
waits spawner
grep -q 'stopped or stuck; it is killed.*part="scribe"' "$LYCHGATE_DATA/log/starter.log" || fail "the starter did not say why"

# --- who was not looked at is not missed: all of them stood still together
pids() { for part in postgres scribe vessel guard tomb spawner lych-egress keyless gate; do pid_of $part; done; }
before=$(pids)
starter=$(lych_pid supervisor)
kill -STOP "$starter"
# shellcheck disable=SC2086
kill -STOP $before
sleep 20
kill -CONT "$starter"
# shellcheck disable=SC2086
kill -CONT $before
sleep 3
lych_wait_up
after=$(pids)
[ "$after" = "$before" ] || fail "somebody was replaced for standing still with all others: ${before//$'\n'/ } are ${after//$'\n'/ }"
[ "$(lych run -n -- echo back)" = back ] || fail "no job runs after all stood still"
echo "hangs: all were replaced"
