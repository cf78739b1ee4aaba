#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The whole system on a host with a systemd user manager: the tomb in a delegated scope, runaways
# ended by the kernel, nothing left after lych down; and the same where the scope is not given
# memory and pids: limits by rlimits and supervision, and lych status says why.
# Not part of make check: it needs such a host. Run it there as an ordinary user:
#	LYCH_BIN=build/release tests/e2e/cgroup_up.sh
# shellcheck disable=SC2317 # functions are called through check
set -uo pipefail
PATH=$(realpath "${LYCH_BIN:-build/release}"):$PATH
scratch=$(mktemp -d /tmp/ly-cgroup-XXXXXX)
export LYCHGATE_DATA=$scratch/data
manager=/sys/fs/cgroup/user.slice/user-$(id -u).slice/user@$(id -u).service
dropin=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/app.slice.d/lychgate-test.conf
failed=0
finish() {
	lych down >/dev/null 2>&1
	rm -f "$dropin"
	systemctl --user daemon-reload
	rm -rf "$scratch"
}
trap finish EXIT

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
# What the starter says; whether the vessel answers in time is not judged here.
status_says() {
	lych status >"$scratch/status"
	grep -F -m 1 -- "$1" "$scratch/status" || { cat "$scratch/status"; return 1; }
}
# Which mechanism held a limit, from the result of the last lych run --json.
mechanism() {
	python3 -c '
import json, sys
end = json.loads(open(sys.argv[1]).read().splitlines()[-1])
limits = {l["name"]: l["mechanism"] for l in end["job"]["result"]["walls"]["limits"]}
print(end["job"]["result"]["class"] or "none", limits[sys.argv[2]])' "$scratch/out" "$1"
}
says() { # limit class mechanism
	[ "$(mechanism "$1")" = "$2 $3" ] || { tail -n 1 "$scratch/out"; return 1; }
}
scopes() { find "$manager" -type d -name 'lychgate-tomb-*' | wc -l; }
nothing_left() { [ "$(scopes)" -eq 0 ] && ! systemctl --user list-units --all --plain --no-legend 'lychgate-*' | grep -q .; }
wait_for() { # command...
	for _ in $(seq 300); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.2
	done
	return 1
}
tomb_is_back() {
	lych status --json | python3 -c 'import json,sys
s = json.load(sys.stdin)
sys.exit(not (s["ready"] and s["processes"].get("tomb")))' && [ ! -e "$first" ]
}
run() { lych run --json "$@" >"$scratch/out" 2>"$scratch/err" </dev/null; }
hog='x = bytearray(400 << 20)'
bomb='
import os, time
try:
    while True:
        if os.fork() == 0: time.sleep(60)
except OSError: time.sleep(60)'

try() { # memory processes
	run -- true
	check "a job runs" says memory none "$1"
	run --memory 64MiB --timeout 120 -- python3 -c "$hog"
	check "a memory bomb is ended: $1" says memory oom_kill "$1"
	run --processes 20 --timeout 120 -- python3 -c "$bomb"
	check "a fork bomb is ended: $2" says processes resource_kill "$2"
}

lych up --detach || exit 1
check "status: delegated scope" status_says 'cgroup: delegated scope'
check "the tomb is in one scope" [ "$(scopes)" -eq 1 ]
try cgroup2+supervised cgroup2+rlimit
jobs=$(find "$manager" -type d -path '*lychgate-tomb-*/jobs')
check "the kernel counted its kill" grep -qE '^oom_group_kill [1-9]' "$jobs/memory.events"
# Warm sandboxes wait in leaves too, which get their limits with the job.
no_leaf() { ! find "$jobs" -mindepth 2 -name memory.max -exec cat {} + | grep -v max && [ "$(find "$jobs" -mindepth 1 -type d | wc -l)" -le 16 ]; }
check "no job's leaf is left" wait_for no_leaf

# systemd, or a crash, takes the scope away: the tomb comes back in a new one.
first=$(find "$manager" -type d -name 'lychgate-tomb-*')
systemctl --user stop "${first##*/}"
check "the tomb comes back" wait_for tomb_is_back
check "in one scope, another" [ "$(scopes)" -eq 1 ]
run -- true
check "and jobs run" says memory none cgroup2+supervised
kill -KILL "$(lych status --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["processes"]["supervisor"])')"
check "after SIGKILL of the starter no scope is left" wait_for nothing_left
lych up --detach || exit 1
check "status: delegated scope, again" status_says 'cgroup: delegated scope'
lych down
check "lych down leaves no scope and no cgroup" nothing_left

# Controllers that are there but not ours: no way back to the other mechanism.
mkdir -p "$scratch/t"
(cd "$scratch/t" && mkdir -p tomb work pg secrets)
lych _tomb --scope --data "$scratch/t/tomb" --work "$scratch/t/work" --queue postgres --pg "$scratch/t/pg" \
	--secrets "$scratch/t/secrets" --tomb "$(command -v lych-tomb)" \
	--sandbox "$(command -v lych-sandbox)" --tools "$(dirname "$(command -v lych-tomb)")/tools" --slots 1 --grade full --record "$scratch/t/process" >"$scratch/out" 2>&1
check "a group that isn't delegated is fatal (78)" [ $? -eq 78 ]
check "and it says so" grep LYCH-SANDBOX-008 "$scratch/out"

mkdir -p "${dropin%/*}"
printf '[Slice]\nDisableControllers=memory pids\n' >"$dropin"
systemctl --user daemon-reload
check "the manager still has them" grep -qw memory "$manager/cgroup.controllers"
lych up --detach || exit 1
check "status: why there are no cgroup limits" \
	status_says "cgroup: none (the tomb's scope was given no memory and pids controller)"
try supervised rlimit+supervised
lych down
check "lych down leaves no scope and no cgroup behind" nothing_left

printf '[Slice]\nDisableControllers=cpu\n' >"$dropin"
systemctl --user daemon-reload
lych up --detach || exit 1
check "without cpu: delegated scope" status_says 'cgroup: delegated scope'
run -- true
check "memory is the kernel's" says memory none cgroup2+supervised
check "cpu is affinity's" says cpus none affinity
lych down
exit $((failed != 0))
