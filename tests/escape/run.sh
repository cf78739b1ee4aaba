#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The attempts of probe_*.c inside both grades, and what they would have done judged from outside
# (victim_*.c): files as they were to the ctime, nothing reached a listener, the victim lives.
# Needs the programs in LYCH_BUILD (build/release), bash and coreutils, and not to be root.
# LYCH_NESTED=1: in a container, which may refuse with an errno of its own. GRADES=floor: this grade only. TTY=1: the job has a terminal of its own (--tty). PROBE=5b: this attempt only. PROBE_RESULTS: a file for the machine-readable lines.
set -uo pipefail
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
probe=$(realpath "$bin/tests/escape/try_probe") || exit 1
scratch=$(mktemp -d)
results=${PROBE_RESULTS:-$scratch/results}
outside=
cleanup() {
	[ -n "$outside" ] && kill -KILL "$outside" 2>/dev/null
	chmod -R u+rwX "$scratch" 2>/dev/null
	rm -rf "$scratch"
}
trap cleanup EXIT
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

if [ "$(id -u)" -eq 0 ]; then
	echo "run as an ordinary user: the sandbox refuses root" >&2
	exit 1
fi

# What must not arrive: descriptors, and names that a loader, shell or interpreter obeys.
poison=(LYCH_TEST_SECRET=must-not-arrive LD_LIBRARY_PATH=/nowhere LD_BIND_NOW=1 GCONV_PATH=/nowhere
	BASH_ENV=/nowhere ENV=/nowhere PYTHONPATH=/nowhere PYTHONSTARTUP=/nowhere NODE_OPTIONS=--help
	PERL5LIB=/nowhere RUBYOPT=-w GIT_DIR=/nowhere GIT_SSH_COMMAND=false 'BASH_FUNC_x%%=() { :; }'
	SSH_AUTH_SOCK=/nowhere DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere AWS_SECRET_ACCESS_KEY=x)

start_job() { # grade
	local job=(--grade "$1" --timeout 90 --workspace "$place/work" --ro "$place/shown" --ro "$place/later"
		-- ./try_probe "$1" ${PROBE:+"$PROBE"})
	if [ -z "${TTY:-}" ]; then
		env "${poison[@]}" "$probe" --terminal "$pts" "$sandbox" "${job[@]}"
	else
		python3 tests/escape/own_terminal.py "$sandbox" at env "${poison[@]}" "$sandbox" --tty "${job[@]}" | tr -d '\r'
	fi
}

: >"$results"
for grade in ${GRADES:-full floor}; do
	echo "== grade $grade"
	place=$scratch/$grade
	mkdir -p "$place/work"
	cp "$probe" "$place/work/try_probe"
	[ -z "${LYCH_NESTED:-}" ] || touch "$place/work/nested"
	"$probe" --outside "$place" >"$place/log" &
	outside=$!
	for _ in $(seq 200); do
		[ -e "$place/work/targets" ] && break
		kill -0 $outside || { cat "$place/log"; exit 1; }
		sleep 0.02
	done
	pts=$(sed -n 's/^pts //p' "$place/work/targets")
	port=$(sed -n 's/^inherit //p' "$place/work/targets")
	start_job $grade 7<"$place" 8<>"/dev/tcp/127.0.0.1/$port" 9<"$0" >"$place/log.inside"
	code=$?
	cat "$place/log.inside"
	grep -P '\t' "$place/log.inside" >>"$results"
	check "$grade: every attempt had an answer of the table" [ $code -eq 0 ]
	if [ -z "${PROBE:-}${TTY:-}" ]; then
		cp "$bin/tests/escape/try_syscalls" "$place/work/"
		"$sandbox" --grade $grade --timeout 90 --workspace "$place/work" \
			-- ./try_syscalls $grade </dev/null
		check "$grade: every system call number is answered as reviewed" [ $? -eq 0 ]
	fi
	kill -TERM "$outside"
	wait "$outside"
	code=$?
	cat "$place/log"
	check "$grade: outside nothing was reached or changed" [ $code -eq 0 ]
	outside=
	chmod -R u+rwX "$place"
	rm -rf "$place"
done
echo "$failed checks failed"
[ $failed -eq 0 ]
