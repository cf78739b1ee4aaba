#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The embedded starter: refusals, first and second start, locks, a killed starter, a clean stop.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin up
alive() { # pids that are not dead; without a process for each, which would take longer than what is measured
	local pid stat
	for pid; do
		{ read -r stat <"/proc/$pid/stat"; } 2>/dev/null || continue
		stat=${stat##*) }
		[[ $stat == [ZX]* ]] || echo "$pid"
	done
}
pids() {
	lych status --json | python3 -c 'import json,sys; print(*[p for p in json.load(sys.stdin)["processes"].values() if p])'
}

# --- refusals; nothing is made by them
chmod 755 "$XDG_RUNTIME_DIR"
lych up --detach 2>"$LYCH_TMP/err" && fail "an open runtime directory was accepted"
is "open runtime directory" 1 "$(grep -c LYCH-STARTUP-009 "$LYCH_TMP/err")"
chmod 700 "$XDG_RUNTIME_DIR"
long=$LYCH_TMP/$(printf 'x%.0s' $(seq 90))
mkdir -m 0700 "$long"
XDG_RUNTIME_DIR=$long lych up --detach 2>"$LYCH_TMP/err" && fail "a path too long for a socket was accepted"
is "too long for a socket" 1 "$(grep -c LYCH-STARTUP-009 "$LYCH_TMP/err")"
printf 'version: "1"\nno_such_key: "1"\n' >"$LYCH_CONFIG" && chmod 600 "$LYCH_CONFIG"
lych up --detach 2>"$LYCH_TMP/err" && fail "an unknown key was accepted"
is "unknown key" 1 "$(grep -c LYCH-STARTUP-002 "$LYCH_TMP/err")"
lych config check 2>/dev/null && fail "config check took it"
rm "$LYCH_CONFIG"
lych config init >/dev/null || fail "config init"
lych config init 2>/dev/null && fail "config init overwrote a file"
is "config check of the template" 0 "$(lych config check >/dev/null; echo $?)"
chmod 644 "$LYCH_CONFIG"
lych config check 2>"$LYCH_TMP/err" && fail "an open config was accepted"
is "open config" 1 "$(grep -c LYCH-STARTUP-003 "$LYCH_TMP/err")"
chmod 600 "$LYCH_CONFIG"
is "down when nothing runs" 0 "$(lych down >/dev/null; echo $?)"
is "status when nothing runs" 4 "$(lych status >/dev/null 2>&1; echo $?)"

# --- an interrupted first start is done again
mkdir -p "$LYCHGATE_DATA/phylactery/data.tmp/half"
chmod 700 "$LYCHGATE_DATA" "$LYCHGATE_DATA/phylactery"
lych up --detach || fail "first start"
[ ! -e "$LYCHGATE_DATA/phylactery/data.tmp" ] || fail "data.tmp is still there"
is "secrets are private" "600 600 600 600 600 600 600 600" "$(stat -c %a "$LYCHGATE_DATA"/secrets/* | tr '\n' ' ' | sed 's/ $//')"
is "no TCP" "''" "$(sed -n "s/^listen_addresses = //p" "$LYCHGATE_DATA/phylactery/data/postgresql.conf")"

# --- what a login of the database can ask of the machine
is "memory of one process of the server" 268435456 "$(sed -n 's/^Max data size *\([0-9]*\) .*/\1/p' "/proc/$(lych_pid postgres)/limits")"
is "and no process beside it" 0 "$(sed -n 's/^max_worker_processes = //p' "$LYCHGATE_DATA/phylactery/data/postgresql.conf")"
log=$LYCHGATE_DATA/phylactery/log/postgres.log
head -c 17M /dev/zero >>"$log"
for _ in $(seq 200); do
	[ "$(stat -c %s "$log")" -gt 1000000 ] || break
	nap 0.1
done
is "a log that grew large begins anew while it is written" "yes 17" \
	"$([ "$(stat -c %s "$log")" -lt 1000000 ] && echo yes) $(($(stat -c %s "$log.1") >> 20))"

# --- one starter, and a second one is fast
start=$(date +%s%3N)
is "a second start" 0 "$(lych up --detach >"$LYCH_TMP/out"; echo $?)"
took=$(($(date +%s%3N) - start))
[ "$took" -lt 5000 ] || fail "a second start took $took ms"
is "it says who runs" 1 "$(grep -c "already running (pid $(lych_pid supervisor))" "$LYCH_TMP/out")"
LYCHGATE_DATA=$LYCH_TMP/other lych up --detach 2>"$LYCH_TMP/err" && fail "two data directories share a runtime directory"
is "the runtime directory is locked" 1 "$(grep -c LYCH-STARTUP-001 "$LYCH_TMP/err")"
is "it still works" hello "$(lych run -n -- echo hello)"

# --- what dies comes back by itself
for part in tomb vessel postgres; do
	kill -KILL "$(lych_pid $part)"
	nap 0.2
	lych_wait_up
	is "after kill -9 of the $part" back "$(lych run -n -- echo back)"
done

# --- down leaves nothing, up again loses nothing
id=$(lych jobs --limit 1 --json | python3 -ISc 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')
all=$(pids)
lych down >/dev/null || fail "down"
# shellcheck disable=SC2086
is "down leaves no process" "" "$(alive $all)"
is "nor a socket of PostgreSQL" 0 "$(find "$XDG_RUNTIME_DIR/lychgate/pg" -name '.s.*' | wc -l)"
start=$(date +%s%3N)
lych up --detach >/dev/null || fail "up again"
echo "up_down: a start with a cluster took $(($(date +%s%3N) - start)) ms"
is "jobs are still there" succeeded "$(lych show "$id" --json | python3 -ISc 'import json,sys; print(json.load(sys.stdin)["state"])')"

# --- a killed starter takes all with it within two seconds, and the next one starts
below() { # pid: it and everything that it started
	local child
	echo "$1"
	for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do below "$child"; done
}
killed_starter() { # how
	local all start took left pid starter
	starter=$(lych_pid supervisor)
	all=$(below "$starter")
	start=$(date +%s%3N)
	kill -KILL "$starter"
	while [ $(($(date +%s%3N) - start)) -lt 10000 ]; do
		# shellcheck disable=SC2086
		left=$(alive $all)
		[ -n "$left" ] || break
		[ $(($(date +%s%3N) - start)) -lt 1900 ] || for pid in $left; do
			grep -sE '^(Name|State|PPid|ShdPnd)' "/proc/$pid/status" | tr '\n\t' '  ' && echo "$pid is still there"
		done
		nap 0.02
	done
	took=$(($(date +%s%3N) - start))
	echo "up_down: $(wc -w <<<"$all") processes, $1: the last was gone $took ms after the starter's kill"
	# shellcheck disable=SC2086
	is "a killed starter leaves nobody, $1" "" "$(alive $all)"
	[ "$took" -le 2000 ] || fail "the last process, $1, was gone after $took ms"
	lych up --detach >/dev/null || fail "up after a killed starter, $1"
	is "and works" again "$(lych run -n -- echo again)"
}
killed_starter "idle"
lych run --detach -- sh -c 'trap "" TERM INT HUP; sleep 60 & sleep 60' >/dev/null
sleep 1
killed_starter "with a deaf job"
# Who is stopped hears of no signal but one.
guard=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$(lych_pid tomb)/status")
kill -STOP "$guard" "$(lych_pid vessel)" "$(lych_pid tomb)" "$(lych_pid scribe)" "$(lych_pid spawner)"
killed_starter "most of them stopped"

# --- a PostgreSQL that is stopped outlives its starter: the next one ends it
born() { # pid: when it began; of two processes that have had one number it differs
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	cut -d ' ' -f 20 <<<"${stat##*) }"
}
pg=$(lych_pid postgres)
pg_born=$(born "$pg")
kill -STOP "$pg" "$(pgrep -P "$pg" -f 'lych_vessel' | head -n 1)"
kill -KILL "$(lych_pid supervisor)"
start=$(date +%s%3N)
lych up --detach >/dev/null || fail "up beside a stopped PostgreSQL"
echo "up_down: a start beside a stopped PostgreSQL took $(($(date +%s%3N) - start)) ms"
# Its number may be another's by now: beside a build they are all given out within seconds.
[ "$(born "$pg")" != "$pg_born" ] || is "it is gone" "" "$(alive "$pg")"
is "and a job runs" again "$(lych run -n -- echo again)"
lych down >/dev/null || fail "down"

# --- the lock of somebody else, who is left alone, and a starter that somebody has stopped
python3 -ISc 'import fcntl, sys, time
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(60)' "$LYCHGATE_DATA/lock" >"$LYCH_TMP/locked" &
other=$!
until [ -s "$LYCH_TMP/locked" ]; do nap 0.02; done
for what in "down" "up --detach" "status"; do
	# shellcheck disable=SC2086 # a command and its option
	lych $what 2>"$LYCH_TMP/err" && fail "$what beside another's lock"
	is "$what: no lych holds it: $(cat "$LYCH_TMP/err")" 1 "$(grep -c 'is no lych' "$LYCH_TMP/err")"
done
is "who holds it is left alone" "$other" "$(alive "$other")"
kill "$other"
wait "$other" 2>/dev/null
lych up --detach >/dev/null || fail "up after another's lock"
kill -STOP "$(lych_pid supervisor)"
start=$(date +%s%3N)
lych down >/dev/null || fail "down of a stopped starter"
echo "up_down: a stopped starter was down after $(($(date +%s%3N) - start)) ms"

# --- who waits for it goes on when every part answers
lych status --wait 1 2>"$LYCH_TMP/err" && fail "waited for nothing, and it was there"
is "nobody starts it" 1 "$(grep -c 'after 1 s: lych up (' "$LYCH_TMP/err")"
is "its code" 1 "$(grep -c LYCH-STARTUP-019 "$LYCH_TMP/err")"
lych up >/dev/null 2>&1 &
is "in the foreground, and waited for" 0 "$(lych status --wait 120 >/dev/null; echo $?)"
is "and a job runs at once" hello "$(lych run -n -- echo hello)"
lych down >/dev/null || fail "down"
wait $!

# --- stopped while it starts: whoever started it learns that, unless it was up already
lych up --detach >/dev/null 2>"$LYCH_TMP/err" &
up=$!
for _ in {1..600}; do
	if lych down 2>/dev/null | grep -q stopped; then break; fi
done
wait $up
case $? in
0) ;;
*) is "it was stopped before it was up" 1 "$(grep -c LYCH-STARTUP-021 "$LYCH_TMP/err")" ;;
esac
is "nothing is left of it" "" "$(lych_pid supervisor 2>/dev/null)"

# --- a lock that somebody removed: what runs is found by the other one, and ended
lych up --detach >/dev/null || fail "up"
starter=$(lych_pid supervisor)
rm "$LYCHGATE_DATA/lock"
lych down >/dev/null || fail "down without a lock"
is "nobody is left" "" "$(alive "$starter")"

# --- a caller that ignores the ends of its children; and who followed a job hears that the vessel is gone
python3 -ISc 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$LYCH_BIN/lych" up --detach >/dev/null || fail "up, with SIGCHLD ignored"
starter=$(lych_pid supervisor)
lych run -n -- sh -c 'echo begun; sleep 100' >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" &
run=$!
wait_until 60 "the job does not run" grep -q begun "$LYCH_TMP/out"
# a tomb that is told to stop as soon as it is started: it hears that
lych request restart-tomb >/dev/null || fail "restart-tomb"
lych request --no-wait restart-tomb >/dev/null || fail "restart-tomb, at once"
is "it is back" 0 "$(lych status --wait 120 >/dev/null; echo $?)"
is "nobody had to be killed" "" "$(grep 'does not stop' "$LYCHGATE_DATA/log/starter.log")"
is "it can be stopped" 0 "$(timeout 100 "$LYCH_BIN/lych" down >/dev/null; echo $?)"
is "nobody is left, with SIGCHLD ignored" "" "$(alive "$starter")"
wait_until 30 "who follows a job is not told" grep -q "the vessel does not answer" "$LYCH_TMP/err"
kill -KILL $run
wait $run 2>/dev/null
chmod 0400 "$LYCHGATE_DATA/lock"
for what in "up --detach" down; do
	# shellcheck disable=SC2086 # a command and its option
	lych $what 2>"$LYCH_TMP/err" && fail "$what with a lock that can't be taken"
	is "$what: $(cat "$LYCH_TMP/err")" 1 "$(grep -c LYCH-STARTUP-016 "$LYCH_TMP/err")"
done
chmod 0600 "$LYCHGATE_DATA/lock"
LYCHGATE_DATA=$LYCH_TMP/err lych status 2>"$LYCH_TMP/err2" && fail "a file as data directory"
is "a file is no data directory: $(cat "$LYCH_TMP/err2")" 1 "$(grep -c LYCH-STARTUP-016 "$LYCH_TMP/err2")"

# --- a cluster of another major version is refused and not touched
echo 9 >"$LYCHGATE_DATA/phylactery/data/PG_VERSION"
before=$(find "$LYCHGATE_DATA/phylactery/data" -printf '%p %T@ %s\n' | sort | sha256sum)
lych up --detach 2>"$LYCH_TMP/err" && fail "another major version was accepted"
is "another major version" 1 "$(grep -c LYCH-STARTUP-005 "$LYCH_TMP/err")"
is "nothing was touched" "$before" "$(find "$LYCHGATE_DATA/phylactery/data" -printf '%p %T@ %s\n' | sort | sha256sum)"
echo "up_down: $count checks"
