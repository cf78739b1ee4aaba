#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 420
# Jobs that misbehave, through the real tomb: each is stopped at its limit and says why, leaves
# nothing, and neither its neighbour nor the tomb notices. Then the tomb, and the spawner, are
# killed while many of them run at once.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lych.sh
unruly=$LYCH_BIN/tests/escape/try_unruly
marked=$PWD/tests/support/marked
# The most that a daemon may grow while a job floods it, and in the whole.
GROWTH_KIB=$((6 << 10))
lych_begin unruly
cat >"$LYCH_CONFIG" <<'Y'
version: "1"
tomb:
  slots: "12"
Y
chmod 600 "$LYCH_CONFIG"
lych up --detach 2>/dev/null || fail "up"
cd "$LYCH_TMP" || exit 1
count=0
mark=lych-unruly-$$-$RANDOM

ok() { count=$((count + 1)); echo "ok $*"; }
json() { python3 -c 'import json,sys; j=json.load(sys.stdin); print(*eval("[" + sys.argv[1] + "]"))' "$@"; }
memory_kib() { sed -nE "s/^$2:\s*([0-9]+) kB/\1/p" "/proc/$1/status"; } # pid VmRSS|VmHWM
gone_within() { # seconds
	local end=$((SECONDS + $1))
	while [ -n "$("$marked" "$mark")" ]; do
		[ $SECONDS -lt $end ] || fail "left after $1 s: $("$marked" "$mark" | tr '\n' ' ')"
		sleep 0.05
	done
}
# The job's program is an input file; the last argument is how its processes are found.
start() { # options... -- argv of try_unruly...
	local options=()
	while [ "$1" != -- ]; do options+=("$1"); shift; done
	shift
	lych run -n --detach "${options[@]}" --file "$unruly=u" -- ./u "$@" "$mark"
}

# A neighbour that beats ten times a second, all the while.
beat='i=0; while [ $i -lt 300 ]; do date +%s%N; i=$((i + 1)); sleep 0.1; done'
neighbour=$(lych run -n --detach --timeout 280 -- sh -c "$beat")
lych run -n -- true || fail "an honest job" # and so the daemons are warm
tomb=$(lych_pid tomb) vessel=$(lych_pid vessel) spawner=$(lych_pid spawner)
daemons=(tomb "$tomb" vessel "$vessel" spawner "$spawner")
declare -A was
remember() { for ((d = 0; d < 6; d += 2)); do was[${daemons[d]}]=$(memory_kib "${daemons[d + 1]}" VmRSS); done; }
not_grown() { # what, field: against what was remembered
	local d now
	for ((d = 0; d < 6; d += 2)); do
		now=$(memory_kib "${daemons[d + 1]}" "$2")
		[ "$now" -le $((was[${daemons[d]}] + GROWTH_KIB)) ] ||
			fail "$1: the ${daemons[d]} grew from ${was[${daemons[d]}]} to $now KiB ($2)"
	done
}

# id state class what: waits for its end
judge() {
	local id=$1 got
	lych logs -f "$id" >/dev/null 2>&1
	got=$(lych show "$id" --json | json 'j["state"], j["class"] or "-", j["attempts"], j["result"]["tree_gone"]')
	[ "$got" = "$2 $3 1 True" ] || fail "$4: expected '$2 $3 1 True', got '$got': $(lych show "$id")"
	ok "$4: $2 $3: $(lych show "$id" --json | json 'j["result"]["wall_ms"], "ms", j["result"]["detail"]')"
}
# --- who asks for no limit gets all of them
id=$(lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]')
got=$(lych show "$id" --json | json '*((x["name"], x["value"]) for x in j["result"]["walls"]["limits"] if x["name"] in ("memory", "disk", "processes", "cpus", "timeout"))')
want="('memory', 536870912) ('disk', 1073741824) ('processes', 256) ('cpus', 1) ('timeout', 600000000)"
[ "$got" = "$want" ] || fail "the limits that stood: $got"
[ "$(lych show "$id" --json | json 'j["spec"]["limits"]["output_bytes"]')" = 67108864 ] || fail "the limit of output"
ok "the default limits stood"

# state class what options... -- argv
row() {
	local state=$1 class=$2 what=$3 id
	shift 3
	id=$(start --timeout 60 "$@") || fail "$what was not accepted"
	judge "$id" "$state" "$class" "$what"
	gone_within 0
}

# --- the table; two that take a while run beside it
remember
zombies=$(mark=$mark-z start --timeout 200 --processes 64 -- zombies 100000)
million=$(mark=$mark-m start --timeout 200 --disk 16MiB -- million .)
row failed oom_kill "heap" --memory 96MiB -- heap -
row failed oom_kill "shared memory" --memory 96MiB -- shared -
row failed oom_kill "memfds" --memory 96MiB -- memfd -
row failed oom_kill "a tmpfs" --memory 96MiB -- files /dev/shm
row failed oom_kill "pipes" --memory 96MiB -- buffers pipes
row failed oom_kill "socket buffers" --memory 96MiB -- buffers sockets
row failed oom_kill "descriptors in a socket's queue" --memory 96MiB -- parked memory
row failed oom_kill "memory of which a page is mapped" --memory 96MiB -- remnant -
row failed oom_kill "a leaderless process" --memory 96MiB -- leaderless -
row failed resource_kill "a fork bomb" --processes 64 -- bomb -
row failed resource_kill "a thread bomb" --processes 64 -- threads -
row failed disk_limit "one file" --disk 64MiB -- onefile .
row failed disk_limit "many files" --disk 64MiB -- files .
row failed disk_limit "unlinked files" --disk 64MiB -- unlinked .
row failed disk_limit "unlinked files of which a page is mapped" --disk 64MiB -- filepage .
row failed disk_limit "directories without a bottom" --disk 64MiB -- deep .
row timed_out timeout_kill "SIGTERM ignored" --timeout 1 -- deaf -
row timed_out timeout_kill "stopped by itself" --timeout 1 -- stop -
row timed_out timeout_kill "the keeper attacked" --timeout 1 -- regicide -
row succeeded - "an orphan in its own session" -- orphan -
not_grown "the table" VmRSS

# --- stdout in the hands of a grandchild: the end is not waited for
start=$(date +%s%N)
out=$(lych run -n --timeout 60 --file "$unruly=u" -- sh -c 'echo mine; ./u sleep - "$1" & exit 3' x "$mark")
rc=$?
took=$((($(date +%s%N) - start) / 1000000))
[ "$rc/$out" = 3/mine ] || fail "stdout held: exit $rc, '$out'"
[ $took -lt 5000 ] || fail "stdout held: the job's end took $took ms"
gone_within 0
ok "stdout held by a grandchild: exit 3 after $took ms"

# --- 10 GiB of output, in one line without an end and on both streams in turn
for how in line both; do
	remember
	start=$(date +%s%N)
	lych run -n --timeout 60 --file "$unruly=u" -- ./u flood "$how" "$mark" 2>err | tail -c 1 >/dev/null
	took=$((($(date +%s%N) - start) / 1000000))
	id=$(lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]')
	lych show "$id" --json >flood.json
	got=$(json 'j["state"], j["class"], j["result"]["tree_gone"], j["result"]["stdout_truncated"] or j["result"]["stderr_truncated"]' <flood.json)
	[ "$got" = "failed output_limit True True" ] || fail "flood $how: $got: $(tail -c 500 err)"
	kept=$(json 'j["result"]["stdout_bytes"] + j["result"]["stderr_bytes"]' <flood.json)
	[ "$kept" -le $((64 << 20)) ] || fail "flood $how: $kept bytes were kept"
	# HWM: not even for a moment
	not_grown "flood $how" VmHWM
	gone_within 0
	ok "a flood of 10 GiB ($how): output_limit after $took ms, $((kept >> 20)) MiB kept"
done

judge "$million" failed disk_limit "a million files"
judge "$zombies" succeeded - "100,000 zombies"
mark=$mark-z gone_within 0
mark=$mark-m gone_within 0
not_grown "zombies and files" VmRSS

# --- the neighbour
stamps=$(lych logs -f "$neighbour" 2>/dev/null)
[ "$(lych show "$neighbour" --json | json 'j["state"], j["attempts"], j["lost"]')" = "succeeded 1 0" ] || fail "the neighbour: $(lych show "$neighbour")"
gap=$(python3 -c '
import sys
t = [int(x) for x in sys.argv[1].split()]
assert len(t) == 300, len(t)
print(max(b - a for a, b in zip(t, t[1:])) // 1000000)' "$stamps") || fail "a beat is missing"
[ "$gap" -lt 3000 ] || fail "the neighbour stood still for $gap ms"
ok "the neighbour: 300 beats, the longest pause $gap ms"
[ "$(lych_pid tomb) $(lych_pid vessel) $(lych_pid spawner)" = "$tomb $vessel $spawner" ] || fail "a daemon was started again"

# --- SIGKILL of the tomb, then of the spawner, while all of these run
ids=()
while read -r options act arg; do
	# shellcheck disable=SC2086
	ids+=("$(start --timeout 280 ${options//,/ } -- "$act" "$arg")")
done <<'ROWS'
--memory,200MiB hold 100
--processes,128 churn -
--processes,64 zombies 100000000
--disk,1GiB tiny .
--processes,9 deaf -
--memory,200MiB stop -
--memory,200MiB regicide -
--memory,200MiB sleep -
ROWS
# shellcheck disable=SC2016
ids+=("$(lych run -n --detach --timeout 280 --file "$unruly=u" -- sh -c \
	'./u deaf - "$1" & (setsid ./u deaf - "$1" &); ./u stop - "$1"; :' x "$mark")")
wait_running() { # attempt: all of them
	local n
	for _ in $(seq 1200); do
		n=$(lych jobs --limit 30 --json | json 'sum(x["state"] == "running" and x["attempts"] == int(sys.argv[2]) and str(x["id"]) in sys.argv[3:] for x in j["jobs"])' "$1" "${ids[@]}")
		[ "$n" = ${#ids[@]} ] && return
		sleep 0.1
	done
	fail "attempt $1: ${n:-0} of ${#ids[@]} jobs run: $(lych jobs)"
}
attempt=1
for victim in tomb spawner; do
	wait_running $attempt
	attempt=$((attempt + 1))
	before=$("$marked" "$mark" | sort)
	start=$(date +%s%N)
	kill -KILL "$(lych_pid $victim)"
	for _ in $(seq 500); do
		left=$(comm -12 <(echo "$before") <("$marked" "$mark" | sort))
		[ -z "$left" ] && break
		sleep 0.01
	done
	took=$((($(date +%s%N) - start) / 1000000))
	[ -z "$left" ] || fail "SIGKILL of the $victim: left: $left"
	lych_wait_up
	[ "$(lych run -n -- echo well)" = well ] || fail "an honest job after SIGKILL of the $victim"
	ok "SIGKILL of the $victim: $(wc -w <<<"$before") processes of ${#ids[@]} jobs, none left after $took ms"
done
# Nobody knows how they ended, so each runs again; then they are cancelled.
wait_running $attempt
for id in "${ids[@]}"; do lych cancel "$id" >/dev/null 2>&1 & done
wait
for id in "${ids[@]}"; do
	lych logs -f "$id" >/dev/null 2>&1
	got=$(lych show "$id" --json | json 'j["state"], j["attempts"], (j["result"] or {}).get("tree_gone")')
	[ "$got" = "cancelled 3 True" ] || fail "job $id: $got: $(lych show "$id")"
done
gone_within 2
ok "each ran again and was cancelled"
[ "$(lych_violations)" = 0 ] || fail "the queue's invariants"
echo "unruly: $count checks"
