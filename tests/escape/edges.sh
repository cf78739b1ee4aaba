#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The sandbox started in odd places and with odd arguments, and what its exit code says (threats 68,
# 87, 106, 107). It works, or refuses with the right reason; it never runs half of it.
# Needs the programs in LYCH_BUILD (build/release), bash and coreutils, and not to be root. Where
# namespaces or mounts are refused the checks that need one of their own say so.
set -uo pipefail
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
lie=$(realpath "$bin/tests/support/lie") || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
work=$scratch/work
mkdir "$work"
failed=0 count=0

report() { # ok|FAIL what detail
	count=$((count + 1))
	[ "$1" = ok ] || failed=$((failed + 1))
	printf '%-5s %s%s\n' "$1" "$2" "${3:+ ($3)}"
}
# ends CODE WHAT COMMAND...: with this exit code; what it said is in $said
ends() {
	local want=$1 what=$2 rc=0
	shift 2
	said=$(timeout 30 "$@" 2>&1 </dev/null) || rc=$?
	if [ $rc -eq "$want" ]; then
		report ok "$what"
	else
		report FAIL "$what" "exit $rc instead of $want: ${said:0:400}"
	fi
}
# how WORD WHAT: the end that the last command reported as JSON
how() {
	if grep -q "\"how\":\"$1\"" <<<"$said"; then
		report ok "$2: $1"
	else
		report FAIL "$2: not $1" "${said:0:200}"
	fi
}

if [ "$(id -u)" -eq 0 ]; then
	echo "run as an ordinary user: the sandbox refuses root" >&2
	exit 1
fi

printf 'no program\n' >"$work/noexec"
printf '#!/bin/sh\nexit 0\n' >"$work/closed"
printf '#!/no/such/interpreter\n' >"$work/lost"
printf '#!%s/interpreter\n' "$scratch" >"$work/hidden"
printf '#!/bin/sh\nexit 0\n' >"$scratch/interpreter"
chmod 700 "$work/noexec" "$work/lost" "$work/hidden" "$scratch/interpreter"
chmod 600 "$work/closed"

for grade in full floor; do
	in=("$sandbox" --grade "$grade" --workspace "$work" --timeout 20)

	# 87: the command's own code, a signal, what could not be executed, and who did it
	for code in 0 1 2 3 77 78 124 125 126 127 128 129 137 143 254 255; do
		ends $code "$grade: exit $code" "${in[@]}" --json -- sh -c "exit $code"
		how exited "$grade: exit $code"
	done
	for sig in 1 2 3 4 6 8 9 10 11 13 14 15 31 34 64; do
		ends $((128 + sig)) "$grade: signal $sig" "${in[@]}" --json -- \
			sh -c "kill -$sig \$\$; sleep 5"
		how signalled "$grade: signal $sig"
	done
	# A limit's own signal is told as that limit, whoever sent it.
	ends 137 "$grade: SIGXCPU" "${in[@]}" --json -- sh -c 'kill -24 $$; sleep 5'
	how cpu "$grade: SIGXCPU"
	ends 137 "$grade: SIGXFSZ" "${in[@]}" --json -- sh -c 'kill -25 $$; sleep 5'
	how disk "$grade: SIGXFSZ"
	ends 127 "$grade: a missing command" "${in[@]}" --json -- no-such-command
	how exec "$grade: a missing command"
	ends 127 "$grade: a missing path" "${in[@]}" --json -- ./no-such-path
	ends 126 "$grade: no program (ENOEXEC)" "${in[@]}" --json -- ./noexec
	how exec "$grade: no program"
	ends 126 "$grade: not executable" "${in[@]}" --json -- ./closed
	ends 127 "$grade: an interpreter that is missing" "${in[@]}" --json -- ./lost
	# full does not have it, floor must not execute it
	ends "$([ $grade = full ] && echo 127 || echo 126)" "$grade: an interpreter outside" \
		"${in[@]}" --json -- ./hidden
	how exec "$grade: an interpreter outside"
	ends 124 "$grade: out of time" "$sandbox" --grade $grade --timeout 200ms --json -- sleep 9
	how timeout "$grade: out of time is not exit 124"

	# 107: arguments
	ends 0 "$grade: -- ends the options" "${in[@]}" -- echo --timeout --dev-bind /
	[ "$said" = "--timeout --dev-bind /" ] || report FAIL "$grade: arguments changed" "$said"
	ends 127 "$grade: a command that looks like an option" "${in[@]}" -- --dev-bind
	ends 2 "$grade: an option that is none" "${in[@]}" --dev-bind / / -- true
	ends 2 "$grade: no command" "${in[@]}"
	ends 2 "$grade: no command after --" "${in[@]}" --
	ends 0 "$grade: no -- before the command" "${in[@]}" -- true
	rc=0
	said=$("${in[@]}" -- '' 2>&1 </dev/null) || rc=$?
	if [ $rc -eq 2 ] || [ $rc -eq 126 ] || [ $rc -eq 127 ]; then
		report ok "$grade: an empty command" "exit $rc"
	else
		report FAIL "$grade: an empty command" "exit $rc: $said"
	fi
	ends 0 "$grade: an empty argv[0] of the sandbox" \
		bash -c 'exec -a "" "$@"' bash "${in[@]}" -- true
	# shellcheck disable=SC2016 # the inner shells expand it
	{
	long=$(head -c 100000 /dev/zero | tr '\0' x)
	args=()
	for _ in {1..14}; do args+=("$long"); done
	ends 0 "$grade: 1.4 MB of arguments arrive" "${in[@]}" -- \
		sh -c '[ $# -eq 14 ] && [ ${#14} -eq 100000 ]' sh "${args[@]}"
	ends 0 "$grade: odd bytes in arguments arrive" "${in[@]}" -- \
		sh -c '[ "$1" = "$(printf "a\nb\033\377")" ]' sh $'a\nb\033\377'
	}

	# 68, 106: where it is started
	ends 3 "$grade: SIGCHLD ignored" env --ignore-signal=CHLD "${in[@]}" -- sh -c 'exit 3'
	ends 3 "$grade: every signal blocked" env --block-signal "${in[@]}" -- sh -c 'exit 3'
	ends 3 "$grade: every signal ignored" env --ignore-signal "${in[@]}" -- sh -c 'exit 3'
	# shellcheck disable=SC2016 # the inner shell's
	ends 0 "$grade: and the job starts with none of it" \
		env --ignore-signal --block-signal=TERM,USR1 "${in[@]}" -- \
		sh -c '! grep -E "Sig(Ign|Blk):.*[1-9a-f]" /proc/self/status 2>/dev/null'
	ends 3 "$grade: descriptors 0, 1, 2 closed" \
		bash -c '"$@" <&- >&- 2>&-' bash "${in[@]}" -- sh -c 'exit 3'
	ends 3 "$grade: clone3 and openat2 refused by a container" "$lie" --no-new-calls -- \
		"${in[@]}" -- sh -c 'exit 3'
	ends 78 "$grade: Landlock refused by a container" "$lie" --landlock-errno 1 -- \
		"${in[@]}" -- touch ran
	grep -q LYCH-SANDBOX-002 <<<"$said" || report FAIL "$grade: the reason" "$said"
	for n in 8 16 24 64; do
		rc=0
		said=$(bash -c 'ulimit -n "$1" && shift && exec "$@"' bash "$n" \
			"${in[@]}" -- sh -c 'exit 3' 2>&1 </dev/null) || rc=$?
		if [ $rc -eq 3 ] || { [ $rc -ge 78 ] && grep -q LYCH- <<<"$said"; }; then
			report ok "$grade: $n descriptors" "exit $rc"
		else
			report FAIL "$grade: $n descriptors" "exit $rc: $said"
		fi
	done
	if [ -e "$work/ran" ]; then report FAIL "$grade: something ran"; fi
done

# In namespaces of our own: process 1, without /proc, with a root that is read-only.
own=(unshare --map-current-user --keep-caps)
if ! "${own[@]}" true 2>/dev/null; then
	report ok "user namespaces are refused here: full refuses too, floor is tried as it is"
	ends 78 "full: without user namespaces" "$sandbox" -- true
	ends 3 "floor: without user namespaces" "$sandbox" --grade floor -- sh -c 'exit 3'
else
	# A container with a masked /proc allows no new one, a locked mount no change.
	can_proc=$("${own[@]}" -p -f --mount-proc true 2>/dev/null && echo yes)
	can_mount=$("${own[@]}" -m sh -c 'mount -t tmpfs none /proc && mount -o remount,bind,ro /' 2>/dev/null && echo yes)
	[ -n "$can_proc" ] || report ok "a new /proc is refused here: not started as process 1"
	[ -n "$can_mount" ] || report ok "mounts are refused here: no read-only root, no empty /proc"
	for grade in full floor; do
		[ -z "$can_proc" ] || ends 3 "$grade: as process 1" "${own[@]}" -p -f --mount-proc -- \
			"$sandbox" --grade $grade --timeout 20 -- sh -c 'sleep 9 & exit 3'
		[ -n "$can_mount" ] || continue
		ends 3 "$grade: a read-only root" "${own[@]}" -m -- \
			sh -c 'mount -o remount,bind,ro / && exec "$@"' sh \
			"$sandbox" --grade $grade --timeout 20 -- sh -c 'exit 3'
		ends 78 "$grade: no /proc" "${own[@]}" -m -- \
			sh -c 'mount -t tmpfs none /proc && exec "$@"' sh \
			"$sandbox" --grade $grade --timeout 20 -- sh -c 'exit 3'
		grep -q LYCH-SANDBOX <<<"$said" || report FAIL "$grade: no reason" "$said"
	done
fi

echo "$count checks, $failed failed"
[ $failed -eq 0 ]
