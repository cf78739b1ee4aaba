#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 900
# The end of a job, judged from outside: every way to outlive, outgrow or outrun its keeper, in
# both grades, which run at once: they wait most of the time. Survivors are found in /proc by a
# marker that only this job's arguments carry.
#	lifecycle.sh [GRADE]
set -uo pipefail
if [ $# -eq 0 ]; then
	said=$(mktemp)
	trap 'rm -f "$said"' EXIT
	"$0" floor >"$said" 2>&1 &
	"$0" full
	full=$?
	wait $!
	floor=$?
	cat "$said"
	exit $((full || floor))
fi
only=$1
sandbox=$LYCH_BUILD/lych-sandbox
unruly=$LYCH_BUILD/tests/escape/try_unruly
client=$LYCH_BUILD/tests/support/spawn_client
scratch=$(mktemp -d)
trap 'chmod -R u+rwx "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
mkfifo "$scratch/never"
failed=0 count=0

ok() { count=$((count + 1)); echo "ok $*"; }
bad() { count=$((count + 1)); failed=1; echo "not ok $*"; }

# What is asked again and again answers in a variable, and starts no program where bash can do without.
nap() { read -rt "$1" <>"$scratch/never" || :; }
clock() { ms=$((${EPOCHREALTIME/[.,]/} / 1000)); } # ms: milliseconds
survivors() { # marker; alive: pids
	local all=(/proc/[0-9]*/cmdline)
	mapfile -t alive < <(grep -lszxFf - "${all[@]}" <<<"$1")
	alive=("${alive[@]#/proc/}")
	alive=("${alive[@]%/cmdline}")
}
gone_within() { # ms marker
	local ms end
	clock
	end=$((ms + $1))
	while survivors "$2"; [ ${#alive[@]} -gt 0 ]; do
		clock
		[ "$ms" -lt "$end" ] || return 1
		nap 0.02
	done
}
fresh() { # a new workspace in $work, a new marker in $mark
	mark=lych-lifecycle-$$-$((serial = serial + 1))
	work=$scratch/$serial
	mkdir -m 700 "$work"
	cp "$unruly" "$work/u"
}
serial=0
judge() { # what, command...: its exit code is the verdict
	local what=$1
	shift
	if "$@"; then ok "$what"; else bad "$what"; fi
}
between() { [ "$2" -ge "$1" ] && [ "$2" -le "$3" ]; }
has() { [[ $2 == *"$1"* ]]; }
says() { [[ $2 =~ $1 ]]; }
# The last line of standard input that is a report; result is it.
last_report() {
	local line
	result=
	while read -r line; do [[ $line != "{"* ]] || result=$line; done
}
value() { # its number of that name; value
	value=
	[[ ! $result =~ .*\"$1\":([0-9]+) ]] || value=${BASH_REMATCH[1]}
}
sweep() { rm -rf "$work" 2>/dev/null || { chmod -R u+rwx "$work"; rm -rf "$work"; }; }

# grade, expected "how", act, argument, options...: runs, checks how, the tree and the time (40 s)
run() {
	local grade=$1 how=$2 act=$3 arg=$4 start ms got=
	shift 4
	[[ " $* " == *" --timeout "* ]] || set -- "$@" --timeout 40
	fresh
	[ "$arg" = WORK ] && { arg=/work; [ "$grade" = floor ] && arg=$work; }
	clock
	start=$ms
	last_report < <(timeout -k 1 90 "$sandbox" --grade "$grade" --json --workspace "$work" "$@" \
		-- "./u" "$act" "$arg" "$mark" 2>&1 >/dev/null </dev/null)
	wait $! # timeout closes what it writes to before it ends, and the marker is among its arguments too
	clock
	ms=$((ms - start)) detail=
	[[ ! $result =~ .*\"how\":\"([a-z]+)\" ]] || got=${BASH_REMATCH[1]}
	[[ ! $result =~ .*\"detail\":\"([^\"]*)\" ]] || detail=${BASH_REMATCH[1]}
	if [ "$got" != "$how" ]; then
		bad "$grade $act: $got instead of $how after $ms ms: $result"
	elif ! has '"tree_gone":true' "$result"; then
		bad "$grade $act: no proof of the end"
	elif ! gone_within 0 "$mark"; then
		bad "$grade $act: survivors"
	else
		ok "$grade $act: $how in $ms ms ${detail:+($detail)}"
	fi
	sweep
}

for grade in $only; do
	# Refused, or stopped.
	run "$grade" oom heap - --memory 96M
	value memory_peak_bytes
	mib=$((value >> 20))
	judge "$grade heap: $mib MiB of 96" [ "$mib" -lt 600 ]
	run "$grade" oom shared - --memory 96M
	run "$grade" oom memfd - --memory 96M
	run "$grade" oom leaderless - --memory 96M
	run "$grade" oom hide - --memory 96M
	# Of no process: each would hold 4 GiB. What was held before it was seen is measured
	# by hand (docs/SANDBOX.md); here it ends, in time and for the right reason.
	for act in remnant memfdpage nested "parked memory" "buffers pipes" "buffers sockets"; do
		arg=${act#* }
		[ "$arg" != "$act" ] || arg=-
		run "$grade" oom "${act% *}" "$arg" --memory 96M
	done
	run "$grade" disk filepage WORK --disk 32M
	run "$grade" exited honest - --memory 96M
	run "$grade" disk files WORK --disk 32M
	run "$grade" disk tiny WORK --disk 1M
	run "$grade" disk unlinked WORK --disk 32M
	run "$grade" disk onefile WORK --disk 32M
	run "$grade" disk onefile WORK --disk 64M --file-size 32M
	run "$grade" disk closed WORK --disk 32M
	run "$grade" disk deep WORK --disk 32M
	# Behind the first walk, which found nothing, and over before the next one.
	fresh
	last_report < <("$sandbox" --grade "$grade" --json --workspace "$work" --disk 4M -- /bin/sh -c \
		'sleep 0.1; for i in 1 2 3 4 5 6 7 8; do head -c 1048576 /dev/zero >"$i"; done' 2>&1 </dev/null)
	value wall_ms
	ms=$value
	value disk_peak_bytes
	judge "$grade between two walks: $value bytes of 4 MiB, $ms ms" has '"how":"disk"' "$result"
	rm -rf "$work"
	run "$grade" processes bomb - --processes 32
	run "$grade" processes threads - --processes 32
	run "$grade" cpu burn - --cpu-time 1
	run "$grade" timeout deaf - --timeout 500ms
	run "$grade" timeout stop - --timeout 500ms
	run "$grade" timeout regicide - --timeout 700ms
	value wall_ms
	judge "$grade regicide: the keeper kept time ($value ms for 700)" between 650 "$value" 1400
	run "$grade" timeout sleep - --timeout 400ms
	value wall_ms
	# not before, and soon after
	judge "$grade timeout: kept ($value ms for 400)" between 400 "$value" 800
	# Allowed.
	run "$grade" exited forkshare - --memory 300M
	run "$grade" exited links WORK --disk 32M
	run "$grade" exited zombies 2000 --processes 64 # a hundred thousand: soak/unruly_jobs
	# Left behind by the main process: gone within a second all the same.
	run "$grade" exited orphan - --grace 100ms
	value killed_strays
	judge "$grade orphan: counted" [ "$value" -ge 1 ]
done
if [ "$only" = full ]; then
	# So much that it is not full before anybody looked.
	run full oom files /tmp --memory 64M --tmp 2G
	run full oom files /dev/shm --memory 64M --tmp 2G
	run full exited shmfile /dev/shm --memory 250M --tmp 256M
	# Of no process, and of the kernel's.
	for act in segments semaphores undo messages; do
		run full oom sysv $act --memory 64M
	done
	run full exited sysvshare - --memory 180M
fi

# A grandchild that holds stdout open delays nothing, and nothing of it stays.
for grade in $only; do
	fresh
	clock
	start=$ms
	timeout -k 1 10 "$sandbox" --grade "$grade" --timeout 10 --workspace "$work" -- \
		sh -c 'exec 2>&1; ./u sleep - "$1" & exit 3' x "$mark" </dev/null | cat >/dev/null
	clock
	ms=$((ms - start))
	if [ "$ms" -lt 5000 ] && gone_within 0 "$mark"; then
		ok "$grade stdout held by a grandchild: $ms ms"
	else
		bad "$grade stdout held by a grandchild: $ms ms"
	fi
done

if [ "$only" = full ]; then
	# A neighbour of a fork bomb forks as it likes: each job has a user namespace of its own.
	fresh
	"$sandbox" --timeout 10 --workspace "$work" --processes 64 -- ./u bomb - "$mark" </dev/null >/dev/null 2>&1 &
	judge "full bomb: a neighbour is not touched" "$sandbox" --timeout 10 --processes 8 -- \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true || exit 1; done' </dev/null
	wait
fi

# Nobody asked for limits: they stand all the same.
for grade in $only; do
	out=$("$sandbox" --grade "$grade" --json -- true 2>&1 </dev/null)
	for limit in memory:536870912 disk:1073741824 processes:256 cpus:1 timeout:600000000; do
		judge "$grade: the default of ${limit/:/ is }" \
			has "{\"name\":\"${limit%:*}\",\"value\":${limit#*:}," "$out"
	done
done

# What cannot be enforced does not run.
for grade in $only; do
	for cg in "$scratch" "$scratch/nowhere"; do
		rc=0
		out=$("$sandbox" --grade "$grade" --timeout 5 --cgroup "$cg" -- sh -c 'echo it ran' 2>&1 </dev/null) || rc=$?
		judge "$grade: no cgroup at ${cg##*/} (exit $rc)" says 'LYCH-SANDBOX-008|LYCH-SPEC-006' "$out"
		judge "$grade: and nothing ran" [ "$rc" -ne 0 ]
		judge "$grade: really nothing" [ "${out/it ran/}" = "$out" ]
	done
done

# ---- killed by hand -----------------------------------------------------------------
# Of a process that is gone: nothing.
parent_of() { # pid; parent
	local stat=
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || :
	read -r _ parent _ <<<"${stat##*) }" || :
}
children_of() { # pid; children, the eldest first
	children=()
	{ read -ra children <"/proc/$1/task/$1/children"; } 2>/dev/null || :
}
status_of() { # pid, name; status
	local name rest
	status=
	{
		while read -r name rest; do
			[ "$name" != "$2:" ] || status=$rest
		done <"/proc/$1/status"
	} 2>/dev/null || :
}
# Where programs start slowly this takes long.
wait_until() { # seconds, command...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		nap 0.02
	done
}
are_alive() { survivors "$1" && [ ${#alive[@]} -ge "$2" ]; }
wait_job() { wait_until 40 are_alive "$1" "$2"; } # marker, how many

# Started means that exec worked; what the program then does to its signals takes it a moment more.
one_ignores_term() { # marker
	local pid
	survivors "$1"
	for pid in "${alive[@]}"; do
		status_of "$pid" SigIgn
		(((0x${status:-0} >> 14) & 1)) && return
	done
	return 1
}
ignores_term() { wait_until 40 one_ignores_term "$1"; }

# A job with a main process, a child, and a deaf orphan in a session of its own.
brood='./u deaf - "$1" & ./u sleep - "$1" & (setsid ./u deaf - "$1" &) ; ./u stop - "$1"'

# The command line: its parent process, its keeper, its guard.
for grade in $only; do
	for whom in parent keeper guard; do
		fresh
		"$sandbox" --grade "$grade" --timeout 60 --workspace "$work" -- \
			sh -c "$brood" "$mark" "$mark" </dev/null >/dev/null 2>&1 &
		command=$!
		wait_job "$mark" 5 || bad "$grade kill -9 $whom: the job did not start"
		case $whom in
		parent) victim=$command ;;
		keeper) children_of "$command" && victim=${children[0]} ;;
		guard) children_of "$command" && children_of "${children[0]}" && victim=${children[0]} ;;
		esac
		survivors "$mark"
		before=${#alive[@]}
		kill -KILL "$victim"
		if gone_within 5000 "$mark"; then
			ok "$grade kill -9 of the $whom: all $before gone"
		else
			bad "$grade kill -9 of the $whom: left ${alive[*]}"
			kill -KILL "${alive[@]}"
		fi
		wait "$command" 2>/dev/null
	done
done

# The spawner.
client_start() { # grade, warm sandboxes
	mkdir -p "$scratch/jobs/$serial/work"
	cp "$unruly" "$scratch/jobs/$serial/work/u"
	mkfifo "$scratch/in.$serial"
	"$client" "$sandbox" "$scratch/jobs" "$1" --pool "$2" <"$scratch/in.$serial" >"$scratch/out.$serial" 2>&1 &
	client_pid=$!
	exec 7>"$scratch/in.$serial"
	expect '^hello [0-9]+ abi='
	expect '^pid ([0-9]+)' && spawner=$group
}
tell() { echo "$*" >&7; }
has_said() { # pattern, how often; said, group
	local line lines
	said=0
	[ -e "$scratch/out.$serial" ] || return # it is just being started
	mapfile -t lines <"$scratch/out.$serial"
	for line in "${lines[@]}"; do
		[[ ! $line =~ $1 ]] || said=$((said + 1)) group=${BASH_REMATCH[1]:-}
	done
	[ $said -ge "${2:-1}" ]
}
expect() { wait_until 40 has_said "$@"; }
client_stop() { exec 7>&-; wait "$client_pid" 2>/dev/null; }
check() { # what, pattern
	if expect "$2"; then ok "$1"; else bad "$1: $(tail -n 3 "$scratch/out.$serial" | tr '\n' '|')"; fi
}

# The keepers: the children of the inner spawner (floor: of the only one). Below each its guard, below
# that the job; that of an idle one did not execute anything yet, so its arguments are still the spawner's.
keepers() { # keepers
	children_of "$spawner"
	[ "$grade" = floor ] || children_of "${children[0]:-}"
	keepers=("${children[@]}")
}
job_below() { # keeper; job
	children_of "$1"
	children_of "${children[0]:-}"
	job=${children[0]:-}
}
idle_keeper() { # idle, and its job
	local argv
	keepers
	for idle in "${keepers[@]}"; do
		job_below "$idle"
		{ mapfile -d '' -t argv <"/proc/$job/cmdline"; } 2>/dev/null && has --serve "${argv[*]}" && return
	done
	return 1
}
# Ready, and nothing else being built that a job could meet instead.
one_waits() {
	idle_keeper && status_of "$job" State && [[ $status == S* ]] && status_of "$job" Seccomp && [ "$status" = 2 ]
}
warm_waits() { wait_until 15 one_waits; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }
none_alive() { # pids
	local p
	for p; do wait_until 12 is_gone "$p" || return; done
}
among() { [[ " $1 " == *" $2 "* ]]; }

mkdir -m 700 "$scratch/jobs"
for kind in "$only cold" "$only warm"; do
	grade=${kind% *} pool=0
	[ "$kind" = "$grade cold" ] || pool=3
	fresh
	client_start "$grade" "$pool"
	w="--grade $grade --workspace $serial/work"
	check "$kind serve: hello" '^hello [0-9]+ abi=[0-9]+ rlimit\+supervision'
	# Refusals of single jobs.
	tell "run 1 $w --timeout 0 -- true"
	check "$kind serve: a job without an end is refused" '^refused 1 LYCH-SPEC-004 .*timeout'
	tell "run 2 --grade $([ "$grade" = full ] && echo floor || echo full) --timeout 5 -- true"
	check "$kind serve: the other grade is refused" '^refused 2 LYCH-SPEC-004 '
	tell "run 3 --grade $grade --timeout 5 --workspace ../x -- true"
	check "$kind serve: .. is refused" '^refused 3 LYCH-SPEC-006 '
	tell "run 4 --grade $grade --timeout 5 --workspace nowhere/work -- true"
	check "$kind serve: a missing workspace is refused" '^refused 4 LYCH-SANDBOX-012 '
	ln -s "$serial" "$scratch/jobs/link"
	tell "run 5 --grade $grade --timeout 5 --workspace link/work -- true"
	check "$kind serve: a symlink on the way is refused" '^refused 5 LYCH-SANDBOX-012 '
	rm "$scratch/jobs/link"
	tell "run 6 --grade $grade --timeout 5 --workspace /etc -- true"
	check "$kind serve: an absolute workspace is refused" '^refused 6 LYCH-SPEC-006 '
	tell "run 7 --grade $grade --timeout 5 --rw $scratch/jobs -- true"
	check "$kind serve: another writable tree is refused" '^refused 7 LYCH-SPEC-006 '
	tell "run 8 --grade $grade --timeout 5 --cgroup /sys/fs/cgroup -- true"
	check "$kind serve: a cgroup of the job's choice is refused" '^refused 8 LYCH-CORE-004 '
	# And jobs that run.
	tell "run 10 $w --timeout 30 -- ./u sleep - $mark"
	check "$kind serve: started" '^started 10 '
	tell "kill 10 8 100"
	check "$kind serve: cancelled" '^exited 10 how=8 code=15 gone=1'
	tell "run 11 $w --timeout 30 -- ./u deaf - $mark"
	check "$kind serve: started again" '^started 11 '
	judge "$kind serve: deaf by now" ignores_term "$mark"
	tell "kill 11 7 100"
	check "$kind serve: output limit, deaf job" '^exited 11 how=7 code=9 gone=1'
	tell "kill 11 7 100"
	tell "kill 99 8 0"
	tell "run 12 $w --timeout 5 -- nowhere-to-be-found"
	check "$kind serve: exec failed" '^exited 12 how=11 code=2 gone=1'
	tell "run 13 $w --timeout 300ms -- ./u sleep - $mark"
	check "$kind serve: timed out" '^exited 13 how=2 code=15 gone=1'
	tell "run 14 $w --timeout 5 -- sh -c :"
	check "$kind serve: exit 0" '^exited 14 how=0 code=0 gone=1'
	tell "tty 20 97 31 $w --timeout 30 -- stty size"
	if [ "$grade" = floor ]; then
		check "$kind serve: a terminal is refused" '^refused 20 LYCH-TTY-002 '
	else
		check "$kind serve: a terminal of its own" '^says 31 97'
		check "$kind serve: and its end" '^exited 20 how=0 code=0 gone=1'
	fi
	tell "run 15 $w --timeout 30 --memory 64M -- ./u hide - $mark"
	check "$kind serve: memory, hidden" '^exited 15 how=3 code=9 gone=1'
	tell "run 16 $w --timeout 30 --disk 16M -- ./u unlinked . $mark"
	check "$kind serve: disk, without names" '^exited 16 how=4 code=9 gone=1'
	tell "run 17 $w --timeout 30 --disk 16M -- ./u closed . $mark"
	check "$kind serve: disk, in a closed directory" '^exited 17 how=4 code=9 gone=1'
	chmod -R u+rwx "$scratch/jobs/$serial/work"; rm -rf "$scratch/jobs/$serial/work/closed"
	tell "run 18 $w --timeout 30 --processes 32 -- ./u bomb - $mark"
	check "$kind serve: processes" '^exited 18 how=5 code=9 gone=1'
	tell "run 19 $w --timeout 600ms -- ./u regicide - $mark"
	check "$kind serve: the keeper stays" '^exited 19 how=2 code=15 gone=1'
	judge "$kind serve: nothing of these is left" gone_within 0 "$mark"
	# Many at once, each ends once.
	for i in {100..139}; do tell "run $i $w --timeout 60 -- sleep 0.3"; done
	expect '^exited 1[0-3][0-9] how=0 code=0' 40
	judge "$kind serve: 40 at once ($said)" [ "$said" -eq 40 ]
	client_stop
	check "$kind serve: a clean end" '^end 0'

	# What waits is used once, by the next job, and what is killed while it waits harms none.
	if [ "$pool" -gt 0 ]; then
		fresh
		client_start "$grade" "$pool"
		w="--grade $grade --workspace $serial/work"
		# Its readiness is on the way to the spawner when we see it: it may be missed once.
		for try in 1 2 3 4 5; do
			judge "$kind: a sandbox waits" warm_waits
			keepers
			before="${keepers[*]}"
			tell "run $try $w --timeout 30 -- ./u sleep - $mark-$try"
			expect "^started $try "
			survivors "$mark-$try"
			parent_of "${alive[0]:-}"
			parent_of "$parent"
			among "$before" "$parent" && break
		done
		judge "$kind: the job is in what waited (try $try)" [ "$try" -lt 5 ]
		judge "$kind: another one waits" warm_waits
		idle_keeper
		victim=$idle
		kill -KILL "$victim"
		# Dead, it looks ready until its parent has fetched it: the next job could still be given to it.
		judge "$kind: killed while it waits, it is fetched" wait_until 12 is_gone "$victim"
		judge "$kind: killed while it waits, another one waits" warm_waits
		tell "run 9 $w --timeout 5 -- true"
		check "$kind: and jobs run" '^exited 9 how=0 code=0'
		judge "$kind: the first job did not notice" are_alive "$mark-$try" 1
		keepers
		client_stop
		judge "$kind: EOF ends what waits" none_alive "${keepers[@]}"
	fi

	# kill -9 of a keeper, of a guard: only its job, and no fault of it.
	for whom in keeper guard; do
		fresh
		client_start "$grade" 3
		w="--grade $grade --workspace $serial/work"
		tell "run 1 $w --timeout 60 -- ./u sleep - $mark"
		tell "run 2 $w --timeout 60 -- ./u sleep - $mark-other"
		expect '^started 1 ' && expect '^started 2 '
		survivors "$mark"
		parent_of "${alive[0]}"
		[ "$whom" = guard ] || parent_of "$parent"
		kill -KILL "$parent"
		check "$grade serve: kill -9 of a $whom is told" '^exited 1 how=12 code=9 gone=1'
		judge "$grade serve: kill -9 of a $whom ends its job" gone_within 5000 "$mark"
		judge "$grade serve: and no other" are_alive "$mark-other" 1
		client_stop
		judge "$grade serve: EOF ends the other" gone_within 5000 "$mark-other"
	done

	# kill -9 of the spawner (outer, inner) and of the client; protocol errors.
	for whom in outer inner client raw unsealed short_memfd both in_packet no_memfd empty twice no_cols wide no_rows; do
		[ "$grade/$whom" = floor/inner ] && continue
		fresh
		client_start "$grade" 3
		tell "run 1 --grade $grade --workspace $serial/work --timeout 60 -- ./u stop - $mark"
		tell "run 2 --grade $grade --workspace $serial/work --timeout 60 -- ./u orphan - $mark"
		tell "run 3 --grade $grade --workspace $serial/work --timeout 60 -- ./u deaf - $mark"
		wait_job "$mark" 6 || bad "$grade serve, $whom: jobs did not start"
		case $whom in
		outer) kill -KILL "$spawner" ;;
		inner) children_of "$spawner" && kill -KILL "${children[@]}" ;;
		client) kill -KILL "$client_pid" ;;
		raw) tell "raw 24" ;;
		unsealed) tell "wrong 9 100 100 0 0" ;;
		short_memfd) tell "wrong 9 100 99 1 0" ;;
		both) tell "wrong 9 100 100 1 100" ;;
		in_packet) tell "wrong 9 100 0 0 100" ;;
		no_memfd) tell "wrong 9 100 0 0 0" ;;
		empty) tell "wrong 9 0 0 0 0" ;;
		no_cols) tell "tty 9 0 24 --grade $grade -- true" ;;
		wide) tell "tty 9 4097 24 --grade $grade -- true" ;;
		no_rows) tell "resize 1 80 0" ;;
		twice) tell "run 3 --grade $grade --timeout 60 -- true" ;;
		esac
		if gone_within 5000 "$mark"; then
			ok "$grade serve, $whom: nothing left"
		else
			bad "$grade serve, $whom: left ${alive[*]}"
			kill -KILL "${alive[@]}"
		fi
		if ! wait_until 12 is_gone "$spawner" && [ "$whom" != client ]; then bad "$grade serve, $whom: the spawner lives on"; fi
		client_stop
	done
done
echo "$count checks"
exit "$failed"
