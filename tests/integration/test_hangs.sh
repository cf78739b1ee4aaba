#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Hangs are seen: what is stopped (SIGSTOP) is missed, ended and replaced within 15 s, and the job
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
wait_until() { # seconds, what, command...
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "$what"
		sleep 0.05
	done
}
running() { [ "$(tests/support/marked "$marker" | wc -l)" -gt 0 ]; }
is_new() { # part, old pid
	local pid
	pid=$(lych_pid "$1" 2>/dev/null) && [ -n "$pid" ] && [ "$pid" != None ] && [ "$pid" != 0 ] && [ "$pid" != "$2" ]
}
# Stop a part: another process has its place in time.
stopped() { # part
	local pid start took
	pid=$(lych_pid "$1")
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
lych cancel "$id" >/dev/null
echo "hangs: all were replaced"
