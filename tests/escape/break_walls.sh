#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each wall broken on purpose, by a kernel that lies (tests/support/lie.c): the
# sandbox must end with 78, must name the wall, and nothing may have run: the
# file that the job would have made is absent.
# LYCH_BIN: where the programs are (build/release). MUST_RUN=1: no skips.
set -uo pipefail
bin=${LYCH_BIN:-${LYCH_BUILD:-build/release}}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
lie=$(realpath "$bin/tests/support/lie") || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
work=$scratch/work
mkdir "$work" "$scratch/group"
failed=0
count=0

report() { # ok|FAIL what detail
	count=$((count + 1))
	[ "$1" = ok ] || failed=$((failed + 1))
	printf '%-5s %s%s\n' "$1" "$2" "${3:+ ($3)}"
}

# refuse NAME GRADE WANTED-CODE WANTED-WORD LIE... [-- sandbox option...]
refuse() {
	local name=$1 grade=$2 code=$3 word=$4 lies=() out rc
	shift 4
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		lies+=("$1")
		shift
	done
	[ $# -gt 0 ] && shift
	rm -f "$work/ran"
	out=$(timeout 30 "$lie" "${lies[@]}" -- "$sandbox" --grade "$grade" \
		--workspace "$work" "$@" -- touch ran 2>&1 </dev/null)
	rc=$?
	if [ $rc -ne 78 ]; then
		report FAIL "$grade: $name" "exit $rc: $out"
	elif [ -e "$work/ran" ]; then
		report FAIL "$grade: $name" "the job ran"
	elif ! grep -q "LYCH-$code" <<<"$out" || ! grep -qi -- "$word" <<<"$out"; then
		report FAIL "$grade: $name" "the reason does not name it: $out"
	else
		report ok "$grade: $name" "$(head -n 1 <<<"${out#*nothing ran: }")"
	fi
}

# The same command on an honest kernel runs: otherwise the above proves nothing.
works() { # NAME GRADE LIE...
	local name=$1 grade=$2 out rc
	shift 2
	rm -f "$work/ran"
	out=$(timeout 30 "$lie" "$@" -- "$sandbox" --grade "$grade" --workspace "$work" \
		-- touch ran 2>&1 </dev/null)
	rc=$?
	if [ $rc -eq 0 ] && [ -e "$work/ran" ]; then
		report ok "$grade: $name"
	else
		report FAIL "$grade: $name" "exit $rc: $out"
	fi
}

if [ "$(id -u)" -eq 0 ]; then
	echo "run as an ordinary user: the sandbox refuses root" >&2
	exit 1
fi

for grade in full floor; do
	works "an honest kernel runs the job" $grade
	refuse "Landlock not built in" $grade SANDBOX-002 landlock --landlock-errno 38
	refuse "Landlock switched off" $grade SANDBOX-002 landlock --landlock-errno 95
	refuse "Landlock ABI 2" $grade SANDBOX-001 "ABI 2" --landlock-abi 2
	refuse "Landlock ABI 5" $grade SANDBOX-001 "ABI 5" --landlock-abi 5
	refuse "seccomp refused" $grade SANDBOX-003 seccomp --no-seccomp
	refuse "Landlock that only pretends" $grade SANDBOX-009 landlock --landlock-pretends
	refuse "seccomp that only pretends" $grade SANDBOX-003 seccomp --seccomp-pretends
	refuse "a filter that lets through" $grade SANDBOX-009 seccomp --netlink-works
	refuse "somebody outside listens already" $grade SANDBOX-014 listener --listener
	refuse "a signal that gets out" $grade SANDBOX-009 signal --kill-works
	refuse "a session keyring that can't be left" $grade SANDBOX-011 keyring --keys-used-up
	works "runs where a container refuses keys" $grade --no-keys
	refuse "cgroup.procs cannot be written" $grade SANDBOX-008 cgroup.procs \
		--broken-cgroup -- --cgroup "$scratch/group"
done
refuse "a job that can't be born" full EXEC-001 "before it could execute" --no-parent
refuse "a job that can't be born" floor EXEC-001 "before it could execute" --no-death-signal
refuse "the canary can be opened" full SANDBOX-009 open --open /.lychgate-canary
refuse "the host's root can be listed" floor SANDBOX-009 open --open /
refuse "metadata that gets out" floor SANDBOX-009 metadata --utimes-work
refuse "user namespaces refused" full SANDBOX-004 "user namespace" --no-userns
refuse "user namespaces that give no right" full SANDBOX-004 "new user namespace: write /proc/self/setgroups: Permission denied" --userns-restricted
refuse "an ipc namespace that is not its own" full SANDBOX-005 "ipc namespace" --foreign-ipc
refuse "network namespaces refused" full SANDBOX-005 "net namespace" --no-netns
refuse "pivot_root refused" full SANDBOX-006 pivot_root --no-pivot
refuse "a host name that was asked for" full SANDBOX-005 sethostname --no-hostname -- --hostname mine
works "keeps the container's host name" full --no-hostname
works "keeps a container's lack of a domain name" full --no-domain
refuse "covers of /proc that only pretend" full SANDBOX-006 covered --binds-pretend
refuse "a network with a route" full SANDBOX-009 route --route-works
refuse "capabilities that stay" full SANDBOX-011 capabilities --caps-stay
refuse "a bounding set that stays" full SANDBOX-011 "capability 0 stayed" --bounding-stays
works "runs without any namespace" floor --no-userns --no-netns --no-pivot

out=$(unshare --user --map-root-user "$sandbox" -- touch "$scratch/ran" 2>&1 </dev/null)
rc=$?
if [ $rc -eq 78 ] && [ ! -e "$scratch/ran" ] && grep -q CORE-003 <<<"$out"; then
	report ok "root is refused"
else
	report FAIL "root is refused" "exit $rc: $out"
fi

# A masked /proc, as in a container: newer kernels give one of processes only,
# older ones refuse, and then nothing runs. In a container that is booted in another one
# (tests/e2e/) a whole one is still in sight, and the kernel gives it to anybody.
# shellcheck disable=SC2016 # the inner shell expands it
masked='mount -t tmpfs none "$2" || exit 99
[ -z "${LYCH_NESTED:-}" ] || ! unshare -r -m -p -f mount -t proc none /proc || echo anybody
exec "$1" -- cat /proc/self/comm /proc/meminfo'
out=$(unshare --map-current-user --keep-caps -m -p -f --mount-proc \
	sh -c "$masked" sh "$sandbox" /proc/bus 2>&1 </dev/null)
rc=$?
if { [ $rc -eq 78 ] && grep -q masked <<<"$out" && grep -q '^      LYCH-SANDBOX-006  ' <<<"$out"; } ||
	{ [ $rc -eq 1 ] && grep -q '^cat$' <<<"$out"; } ||
	{ [ $rc -eq 0 ] && grep -qx anybody <<<"$out"; }; then
	report ok "full: a masked /proc" "exit $rc"
else
	report FAIL "full: a masked /proc" "exit $rc: $out"
fi

# stdin that would be a right by itself.
for grade in full floor; do
	out=$("$sandbox" --grade $grade -- touch "$scratch/ran" 2>&1 <"$scratch")
	rc=$?
	if [ $rc -eq 78 ] && [ ! -e "$scratch/ran" ] && grep -q 'fds:' <<<"$out"; then
		report ok "$grade: a directory as stdin is refused"
	else
		report FAIL "$grade: a directory as stdin" "exit $rc: $out"
	fi
done

# A description that is no description, and places that are no workspace.
ln -s "$work" "$scratch/link"
mkdir -m 0700 "$scratch/file.d"
: >"$scratch/file"
for grade in full floor; do
	for place in "$scratch/link" "$scratch/file" "$scratch/missing" /usr /proc/self/cwd; do
		out=$(cd "$work" && "$sandbox" --grade $grade --workspace "$place" -- touch "$scratch/ran" 2>&1 </dev/null)
		rc=$?
		if [ $rc -eq 78 ] && [ ! -e "$scratch/ran" ] && grep -q SANDBOX-012 <<<"$out"; then
			report ok "$grade: workspace ${place##*/} refused"
		else
			report FAIL "$grade: workspace $place" "exit $rc: $out"
		fi
	done
done

echo "$count checks, $failed failed"
[ $failed -eq 0 ]
