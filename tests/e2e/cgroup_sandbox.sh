#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lych-sandbox --cgroup on a host with a systemd user manager that was given memory, pids and
# cpu: each limit is kept by the kernel, no leaf stays behind, and where the leaf can't be made,
# limited or entered nothing runs (78).
# Not part of make check: it needs such a host. Run it there as an ordinary user:
#	LYCH_BIN=build/release tests/e2e/cgroup_sandbox.sh
# shellcheck disable=SC2317 # functions are called through check
set -uo pipefail
bin=$(realpath "${LYCH_BIN:-build/release}")
sandbox=$bin/lych-sandbox
in_scope() {
	systemd-run --user --scope --quiet --collect --property=Delegate=yes "$@"
}

# From a login session, which shares no delegated ancestor with the leaf, the kernel refuses the
# move into it: every limit is set by then, and the job must not run without them.
cant_enter() {
	local dir rc
	dir=$(mktemp -d)
	mkdir "$dir/work"
	in_scope --setenv=LYCH_BIN="$bin" bash "$0" --hold "$dir/jobs" &
	for _ in $(seq 100); do
		[ -e "$dir/jobs" ] && break
		sleep 0.1
	done
	"$sandbox" --json --workspace "$dir/work" --cgroup "$(cat "$dir/jobs")" -- touch ran \
		2>"$dir/err" </dev/null
	rc=$?
	if [ $rc -eq 78 ] && [ ! -e "$dir/work/ran" ] && grep -q 'cgroup.procs' "$dir/err" &&
		! compgen -G "$(cat "$dir/jobs")/lych-job-*" >/dev/null; then
		echo "ok   a leaf that can't be entered is a refusal"
		rc=0
	else
		echo "FAIL a leaf that can't be entered: exit $rc: $(cat "$dir/err")"
		rc=1
	fi
	rm -rf "$dir"
	wait
	return $rc
}

if [ $# -eq 0 ]; then
	if grep -q 'user@' /proc/self/cgroup; then
		echo "start it from a login session, not from the user manager" >&2
		exit 1
	fi
	rc=0
	cant_enter || rc=1
	in_scope --setenv=LYCH_BIN="$bin" bash "$0" --inside || rc=1
	exit $rc
fi

scope=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
mkdir "$scope/self" "$scope/jobs" || exit 1
echo $$ >"$scope/self/cgroup.procs" || exit 1
echo "+memory +pids +cpu" >"$scope/cgroup.subtree_control" || exit 1
if [ "$1" = --hold ]; then
	echo "$scope/jobs" >"$2.new"
	mv "$2.new" "$2"
	while [ -e "$2" ]; do sleep 0.1; done
	exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/work"
cd "$scratch/work" || exit 1
failed=0

check() { # what command...
	local what=$1
	shift
	if "$@"; then
		echo "ok   $what"
	else
		echo "FAIL $what"
		failed=$((failed + 1))
	fi
}

# The last line on stderr of --json is the end; the job's own output is in out.
job() { # option... -- command...
	"$sandbox" --json --workspace "$scratch/work" --cgroup "${group:-$scope/jobs}" "$@" \
		>"$scratch/out" 2>"$scratch/err" </dev/null
	rc=$?
	tail -n 1 "$scratch/err" >"$scratch/end"
}
says() { grep -qF -- "$1" "$scratch/end" || { cat "$scratch/err"; return 1; }; }
leaves() { find "$scope/jobs" -mindepth 1 -maxdepth 1 -type d | wc -l; }
no_leaf() { [ "$(leaves)" -eq 0 ]; }
no_leaf_of() { ! compgen -G "$1/lych-job-*" >/dev/null; }
leaf_of_running() { # the leaf, once its job has made the file "started"
	for _ in $(seq 200); do
		[ -e "$scratch/work/started" ] && break
		sleep 0.05
	done
	leaf=$(echo "$scope"/jobs/lych-job-*)
	[ -n "$(cat "$leaf/cgroup.procs")" ]
}
refused() { # word...: 78, the word is in the reason, nothing ran, no leaf
	if [ "$rc" -ne 78 ] || [ -e "$scratch/work/ran" ] || ! no_leaf ||
		! grep -qi -- "$1" "$scratch/err"; then
		echo "exit $rc: $(cat "$scratch/err")"
		return 1
	fi
}

echo "kernel $(uname -r), controllers: $(cat "$scope/cgroup.controllers")"
for grade in full floor; do
	job --grade $grade --memory 64MiB -- python3 -c 'x = bytearray(400 << 20)'
	check "$grade: a memory bomb ends as oom" says '"how":"oom"'
	check "$grade: it was the kernel" says '"detail":"memory.max of the cgroup"'
	check "$grade: the result says so" says '{"name":"memory","value":67108864,"mechanism":"cgroup2+supervised"}'
	check "$grade: it never had more than its limit" python3 -c '
import json, sys
sys.exit(json.load(open(sys.argv[1]))["memory_peak_bytes"] > 64 << 20)' "$scratch/end"
	check "$grade: no leaf is left" no_leaf
done
check "the kernel counted its kills" grep -qE '^oom_group_kill [1-9]' "$scope/jobs/memory.events"

# What the kernel holds is what was asked for, and a bomb beside it is not this one's end.
"$sandbox" --json --workspace "$scratch/work" --cgroup "$scope/jobs" --memory 96MiB --processes 30 --timeout 600 -- python3 -c '
import os, time
x = bytearray(40 << 20)
open("started", "w").close()
while not os.path.exists("go"):
    time.sleep(0.05)
print("unharmed")' >"$scratch/neighbour" 2>"$scratch/neighbour.err" </dev/null &
neighbour=$!
check "a neighbour is in its leaf" leaf_of_running
near=$leaf
holds() { grep -qx -- "$2" "$near/$1" || { cat "$near/$1"; return 1; }; } # file, line
killed() { sed -n 's/^oom_group_kill //p' "$scope/jobs/memory.events"; }
check "memory.max" holds memory.max $((96 << 20))
check "memory.swap.max" holds memory.swap.max 0
check "memory.oom.group" holds memory.oom.group 1
check "pids.max" holds pids.max 30
check "cpu.max" holds cpu.max '100000 100000'
peak=$(cat "$near/memory.peak")
check "memory.peak: $peak" [ "$peak" -ge $((40 << 20)) ]
before=$(killed)
job --memory 64MiB -- python3 -c 'x = bytearray(400 << 20)'
check "a bomb beside it ends as oom" says '"how":"oom"'
check "the kernel killed one group" [ "$(killed)" -eq $((before + 1)) ]
check "not the neighbour's" holds memory.events 'oom_kill 0'
touch go
wait $neighbour
check "the neighbour ended well" [ $? -eq 0 ]
check "and unharmed" grep -qx unharmed "$scratch/neighbour"
check "its peak is the kernel's" python3 -c '
import json, sys
sys.exit(json.loads(open(sys.argv[1]).read().splitlines()[-1])["memory_peak_bytes"] < int(sys.argv[2]))' "$scratch/neighbour.err" "$peak"
check "no leaf is left of them" no_leaf
rm -f started go

# shellcheck disable=SC2016
bomb=':(){ :|:& }; :; sleep 30'
job --processes 20 --timeout 60 -- bash -c "$bomb"
check "a fork bomb ends as processes" says '"how":"processes"'
check "its limit was the leaf's too" says '{"name":"processes","value":20,"mechanism":"cgroup2+rlimit"}'
check "all of it is gone" says '"tree_gone":true'
check "no leaf is left after it" no_leaf

# The rlimit and pids.max are the same number; lowered from outside, the leaf's alone holds.
rm -f started
job --processes 50 --timeout 60 -- python3 -c '
import os, time
open("started", "w").close()
while not os.path.exists("go"):
    time.sleep(0.05)
n = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        n += 1
except OSError:
    print(n, flush=True)
os.kill(0, 9)' &
check "a running job is in its leaf" leaf_of_running
check "pids.max is what was asked for" grep -qx 50 "$leaf/pids.max"
# shellcheck disable=SC2016
check "no swap" sh -c '[ ! -e "$1" ] || grep -qx 0 "$1"' - "$leaf/memory.swap.max"
check "cpu.max is one CPU" grep -qx '100000 100000' "$leaf/cpu.max"
echo 7 >"$leaf/pids.max"
touch go
wait
check "pids.max alone holds a fork bomb" grep -qx 6 "$scratch/out"
rm -f started go

job --timeout 60 -- sh -c 'touch started; while [ ! -e go ]; do :; done' &
check "a busy job is in its leaf" leaf_of_running
echo '10000 100000' >"$leaf/cpu.max"
before=$(sed -n 's/^usage_usec //p' "$leaf/cpu.stat")
sleep 3
after=$(sed -n 's/^usage_usec //p' "$leaf/cpu.stat")
check "cpu.max holds it: $((after - before)) µs of 3 s" [ $((after - before)) -lt 600000 ]
check "the kernel throttled it" grep -qE '^nr_throttled [1-9]' "$leaf/cpu.stat"
touch go
wait
rm -f started go
check "no leaf is left after it, either" no_leaf

# Whoever is in the leaf dies by cgroup.kill, however it got there.
job --timeout 60 -- sh -c 'touch started; sleep 3' &
sleeper=$!
check "a sleeping job is in its leaf" leaf_of_running
sleep 30 &
stray=$!
echo $stray >"$leaf/cgroup.procs"
wait $sleeper
wait $stray
check "a stranger in the leaf was killed with it" [ $? -eq 137 ]
check "and the leaf is gone" no_leaf
rm -f started

# Refusals. The parent of the leaf keeps our processes: no controller can be switched on below.
group=$scope/self job -- touch ran
check "a group with processes of its own is refused" refused 'memory and pids are not delegated'
check "its leaf is gone" no_leaf_of "$scope/self"
group=$scratch job -- touch ran
check "a directory that is no cgroup is refused" refused 'not a cgroup v2 directory'
echo 0 >"$scope/jobs/cgroup.max.descendants"
job -- touch ran
check "a leaf that can't be made is a refusal" refused 'make a leaf'
echo max >"$scope/jobs/cgroup.max.descendants"

exit $((failed != 0))
