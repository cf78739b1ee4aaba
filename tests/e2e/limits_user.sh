#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by limits.sh in the virtual machine, as its user. Everything takes its time there. The file parts
# says which of them: sandbox up apparmor pod.
set -uo pipefail
cd ~/in || exit 1
umask 022
export PATH=/usr/local/bin:/usr/local/libexec/lychgate:/usr/bin:/usr/sbin LYCH_BIN=/usr/local/bin
manager=/sys/fs/cgroup/user.slice/user-$(id -u).slice/user@$(id -u).service
unit=$manager/app.slice/lychgate-tomb.service
units=$HOME/.config/containers/systemd
passed=0 failed=0
read -ra parts <parts
say() { echo "$((SECONDS))s $*"; }
is() { # what, expected, found
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
		say "ok   $1: $3"
	else
		failed=$((failed + 1))
		say "FAIL $1: expected '$2', got '$3'"
		tail -n 3 out err 2>/dev/null | cut -c1-400
	fi
}
end() {
	say "the end"
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
	exit
}
give_up() {
	failed=$((failed + 1))
	say "FAIL $*"
	tail -n 5 out err 2>/dev/null | cut -c1-400
	systemctl --user list-units --plain --no-legend --all 'lychgate*'
	for name in phylactery migrate vessel tomb; do journalctl --user -u lychgate-$name -n 6 --no-pager -o cat | cut -c1-300; done
	end
}
until_true() { # seconds, command...
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.5
	done
}
# Where a whole script is the part: its lines are "ok   what" and "FAIL what".
whole() { # script
	local log=$1.log began=$SECONDS rc good bad
	bash "src/tests/e2e/$1" >"$log" 2>&1
	rc=$?
	good=$(grep -c '^ok ' "$log") bad=$(grep -c '^FAIL ' "$log")
	[ $rc -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
	sed 's/^/    /' "$log" | cut -c1-300
	passed=$((passed + good)) failed=$((failed + bad))
	say "$1: $good ok, $bad failed, exit $rc, $((SECONDS - began)) s"
}

# ---- AppArmor ----

label_of() { # command...: what the kernel calls a program that waits
	local pid
	"$@" >/dev/null 2>&1 &
	pid=$!
	sleep 2
	cat "/proc/$pid/attr/current"
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
}
apparmor() {
	is "AppArmor is on" Y "$(cat /sys/module/apparmor/parameters/enabled)"
	is "aa-status --enabled" 0 "$(aa-status --enabled >/dev/null 2>&1; echo $?)"
	is "Ubuntu's sysctl is not in this kernel" no "$([ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ] && echo yes || echo no)"
	is "our profile is loaded at boot" "/usr/local/bin/lych (unconfined)" "$(aa-exec -p /usr/local/bin/lych -- cat /proc/self/attr/current 2>&1)"
	is "lych-sandbox is under its own" "/usr/local/bin/lych-sandbox (unconfined)" "$(label_of lych-sandbox -- sleep 30)"
	is "a program of another path is not" unconfined "$(cp /usr/local/bin/lych-sandbox . && label_of ./lych-sandbox -- sleep 30)"
	is "and makes its walls, grade full" 0 "$(lych-sandbox --grade full -- true >out 2>err </dev/null; echo $?)"
	# refused as Ubuntu's kernel refuses programs without a profile: nothing runs
	is "without user namespaces nothing runs" 78 "$(/opt/refused/lych-sandbox --grade full -- touch ran >out 2>err </dev/null; echo $?)"
	is "it did not" no "$([ -e ran ] && echo yes || echo no)"
	tail -n 2 err | cut -c1-300
	/opt/refused/lych doctor 2>&1 | grep -iE 'apparmor|mount in a user namespace' >out
	is "lych doctor fails where it is refused" 1 "$(grep -c 'FAIL.*mount in a user namespace' out)"
	cut -c1-300 out
	lych doctor 2>&1 | grep -iE 'apparmor|mount in a user namespace' >out
	is "lych doctor passes where it is not" 1 "$(grep -c 'PASS.*mount in a user namespace' out)"
	cut -c1-300 out
}

# ---- the pod ----

# Asked seldom: to ask is a second of work here.
all_active() {
	[ "$(systemctl --user is-active lychgate-{pod,phylactery,scribe,migrate,vessel,tomb} | grep -cx active)" -eq 6 ] || { sleep 10; false; }
}
run() { lych run --json --no-stdin --timeout 300 "$@" >out 2>err </dev/null; }
end_of() { # limit: class and mechanism, of the last run's result
	tail -n 1 out | python3 -c '
import json, sys
r = json.load(sys.stdin)["job"]["result"]
limits = {l["name"]: l["mechanism"] for l in r["walls"]["limits"]}
print(r["class"] or "none", limits[sys.argv[1]])' "$1" 2>&1 | tail -n 1
}
# The leaf of a job that runs. Warm sandboxes wait in leaves too, which get their limits with the job.
leaf() {
	find "$unit" -type d -name 'lych-job-*' 2>/dev/null | while read -r at; do
		grep -qsvx max "$at/memory.max" && echo "$at"
	done
}
no_leaf() { [ -z "$(leaf)" ]; }
started() { grep -qs started "$1"; }
killed() { cat "$(dirname "$1")/memory.events" | sed -n 's/^oom_group_kill //p'; }

pod() {
	local name conf=~/.config/lychgate/codex.yaml neighbour at pid before after id since
	{
		printf 'version: "1"\ntomb: {slots: 3}\npod:\n  profile: golden-mean\n  cgroups: required\n'
		for name in vessel scribe tomb phylactery; do
			printf '  %s:\n    image: localhost/lychgate-%s:vm\n' $name $name
		done
		printf '    memory: 512MiB\n'
	} >$conf
	lych bind --install >out 2>err || give_up "bind"
	# Nothing here is as fast as a unit may expect, and four health checks every ten seconds would be all that
	# this machine does. What is tried here are limits.
	sed -i 's/^HealthOnFailure=.*/HealthCmd=none/' "$units"/lychgate-*.container
	mkdir -p ~/.config/systemd/user/lychgate-.service.d
	printf '[Service]\nTimeoutStartSec=1200\n' >~/.config/systemd/user/lychgate-.service.d/slow.conf
	systemctl --user daemon-reload
	say "bound and installed"
	systemctl --user start lychgate-pod 2>err
	until_true 1500 all_active || give_up "it did not start"
	say "the pod runs"

	run -- true
	is "a job runs, its memory is the kernel's to limit" "none cgroup2+supervised" "$(end_of memory)"
	is "its processes" "none cgroup2+rlimit" "$(end_of processes)"
	is "its CPUs" "none cgroup2+affinity" "$(end_of cpus)"
	is "in grade" full "$(tail -n 1 out | python3 -c 'import json,sys; print(json.load(sys.stdin)["job"]["result"]["walls"]["grade"])')"
	pid=$(podman inspect -f '{{.State.Pid}}' lychgate-tomb)
	is "the tomb's container has a seccomp filter" 2 "$(sed -n 's/^Seccomp:\t//p' "/proc/$pid/status")"
	is "Podman's default one" "" "$(podman inspect -f '{{.HostConfig.SecurityOpt}}' lychgate-tomb | grep -o 'seccomp[^] ]*')"

	lych run --no-stdin --timeout 900 --memory 96MiB --processes 30 --cpus 1 -- python3 -c '
import time
x = bytearray(40 << 20)
print("started", flush=True)
time.sleep(90)
print("unharmed")' >neighbour 2>&1 </dev/null &
	neighbour=$!
	until_true 180 started neighbour || give_up "no neighbour"
	at=$(leaf)
	is "memory.max" $((96 << 20)) "$(cat "$at/memory.max")"
	is "memory.swap.max" 0 "$(cat "$at/memory.swap.max" 2>/dev/null || echo 0)"
	is "memory.oom.group" 1 "$(cat "$at/memory.oom.group")"
	is "pids.max" 30 "$(cat "$at/pids.max")"
	is "cpu.max" "100000 100000" "$(cat "$at/cpu.max")"
	is "memory.peak is above what it holds" yes "$([ "$(cat "$at/memory.peak")" -gt $((40 << 20)) ] && echo yes || cat "$at/memory.peak")"
	is "the container of the database has its own" $((512 << 20)) \
		"$(find "$manager/app.slice/lychgate-phylactery.service" -name memory.max -exec cat {} + | grep -v max | sort -n | head -n 1)"
	before=$(killed "$at")
	run --memory 64MiB -- python3 -c 'x = bytearray(400 << 20)'
	is "a memory bomb" "oom_kill cgroup2+supervised" "$(end_of memory)"
	is "the kernel killed one group" $((before + 1)) "$(killed "$at")"
	is "not the neighbour's" "oom_kill 0" "$(grep '^oom_kill ' "$at/memory.events")"
	wait $neighbour
	is "the neighbour" "unharmed" "$(tail -n 1 neighbour)"
	run --processes 20 -- python3 -c '
import os, time
try:
    while True:
        if os.fork() == 0: time.sleep(60)
except OSError: time.sleep(60)'
	is "a fork bomb" "resource_kill cgroup2+rlimit" "$(end_of processes)"

	# One CPU is all of this machine: a fifth of it shows that it is kept.
	lych run --no-stdin --timeout 300 -- sh -c 'echo started; i=0; while [ $i -lt 100000000 ]; do i=$((i + 1)); done' >burner 2>&1 </dev/null &
	neighbour=$!
	until_true 120 started burner || give_up "no burner"
	at=$(leaf)
	echo '20000 100000' >"$at/cpu.max"
	before=$(sed -n 's/^usage_usec //p' "$at/cpu.stat")
	sleep 5
	after=$(sed -n 's/^usage_usec //p' "$at/cpu.stat")
	say "a CPU burner used $((after - before)) µs of 5 s"
	is "cpu.max holds it" yes "$([ $((after - before)) -lt 1500000 ] && echo yes)"
	is "the kernel throttled it" yes "$(grep -qE '^nr_throttled [1-9]' "$at/cpu.stat" && echo yes)"
	id=$(lych jobs --limit 1 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')
	lych cancel "$id" >out 2>err
	wait $neighbour
	until_true 60 no_leaf
	is "no job's leaf is left" "" "$(leaf)"
	is "the unit is up still" active "$(systemctl --user is-active lychgate-tomb)"
	cant_enter
	without
}

# The trap that the unit's comment names: limits can be set, and no process be moved under them.
cant_enter() {
	local id
	cp "$units/lychgate-tomb.container" kept
	sed -i '/^PodmanArgs=--cgroupns=host/d' "$units/lychgate-tomb.container"
	systemctl --user daemon-reload
	systemctl --user restart --no-block lychgate-tomb
	sleep 20
	lych run --detach --no-stdin --retry never -- sh -c 'echo ran' >out 2>err </dev/null
	id=$(lych jobs --limit 1 --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')
	sleep 60
	is "what can't be put under its limits did not run" "" "$(lych logs "$id" --only stdout 2>/dev/null)"
	say "it is $(lych jobs --limit 1 --json | python3 -c 'import json,sys; j=json.load(sys.stdin)["jobs"][0]; print(j["state"], j.get("class"))'); the tomb's unit is $(systemctl --user is-active lychgate-tomb)"
	journalctl --user -u lychgate-tomb -n 40 --no-pager -o cat | grep -a 'LYCH-' | tail -n 2 | cut -c1-400
	is "it says why" yes "$(journalctl --user -u lychgate-tomb --no-pager -o cat | grep -qaE 'cgroup.procs' && echo yes)"
	cp kept "$units/lychgate-tomb.container"
	systemctl --user daemon-reload
}

# A user manager that is not given the controllers, as on a host whose administrator does not delegate them:
# required means refused. (The user could not take them away: a delegated unit switches its own on again.)
without() {
	local since
	systemctl --user stop lychgate-pod
	touch ~/take-controllers
	until_true 120 test -s ~/controllers-now || give_up "the administrator does nothing"
	is "the manager has no memory and pids" "" "$(grep -owE 'memory|pids' ~/controllers-now)"
	# as on its first day: the units of this pod were changed here
	mkdir -p other/lychgate
	cp -p ~/.config/lychgate/codex.yaml other/lychgate/
	XDG_CONFIG_HOME=$PWD/other LYCHGATE_DATA=$PWD/other/data lych bind --install >out 2>err
	is "lych bind --install refuses" 4 $?
	is "and says why" 1 "$(grep -c 'LYCH-BIND-015' err)"
	cut -c1-300 err
	lych doctor >out 2>&1
	is "lych doctor names it" 1 "$(grep -c 'FAIL.*controllers for the limits.*your user manager has no memory, pids' out)"
	since=$(date '+%Y-%m-%d %H:%M:%S')
	systemctl --user start --no-block lychgate-pod
	refusal() { journalctl --user --since "$since" --no-pager -o cat | grep -aE '^Error: .*(memory.max|controller|cgroup)' >refused; }
	until_true 300 refusal || {
		journalctl --user --since "$since" --no-pager -o cat | grep -a -v -e conmon -e '^lychgate-' | cut -c1-300 | sort | uniq -c | sort -rn | head -n 40
		give_up "no refusal"
	}
	sort refused | uniq -c | tail -n 4 | cut -c1-400
	sleep 20
	is "without controllers the tomb is not up" no "$([ "$(systemctl --user is-active lychgate-tomb)" = active ] && echo yes || echo no)"
	is "no container of a job's side runs" 0 "$(podman ps -q --filter name=lychgate-tomb | wc -l)"
	systemctl --user stop lychgate-pod
	rm ~/controllers-now
	touch ~/give-controllers
	until_true 120 grep -qsw memory ~/controllers-now || give_up "they are not given back"
	systemctl --user start lychgate-pod
	until_true 1500 all_active || give_up "it did not come back"
	run -- true
	is "with controllers again" "none cgroup2+supervised" "$(end_of memory)"
}

say "Linux $(uname -r), $(podman --version), systemd $(systemctl --version | sed -n '1s/[^0-9]*\([0-9]*\).*/\1/p'), delegated: $(cat "$manager/cgroup.controllers")"
for part in "${parts[@]}"; do
	say "== $part"
	case $part in
	sandbox) whole cgroup_sandbox.sh ;;
	up) whole cgroup_up.sh ;;
	*) $part ;;
	esac
done
end
