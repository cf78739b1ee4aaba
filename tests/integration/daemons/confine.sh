#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# The daemons' self-confinement, judged by a daemon in miniature (tests/support/confined.c):
# what is forbidden is refused, ordinary work goes on, and a wall that cannot stand ends the start.
set -uo pipefail
confined=$LYCH_BUILD/tests/support/confined
scratch=$(mktemp -d)
pids=()
cleanup() {
	for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done
	rm -rf "$scratch"
}
trap cleanup EXIT
export HOME=$scratch/home XDG_RUNTIME_DIR=$scratch/run
mkdir -p "$HOME/.ssh" "$XDG_RUNTIME_DIR" "$scratch/own"
chmod 700 "$HOME/.ssh" "$XDG_RUNTIME_DIR"
echo key >"$HOME/.ssh/id"
failed=0
want() { # what, expected exit, pattern in the output, command...
	local what=$1 rc=0 out want_rc=$2 pattern=$3
	shift 3
	out=$("$@" 2>&1) || rc=$?
	if [ "$rc" -eq "$want_rc" ] && grep -qE "$pattern" <<<"$out"; then
		echo "ok $what"
	else
		echo "not ok $what: exit $rc"
		echo "${out//$'\n'/$'\n'    }"
		failed=1
	fi
}

# A bus that answers: without a private root Landlock (ABI 7) cannot keep a daemon from it, and
# the self-test must say so instead of passing.
python3 - "$XDG_RUNTIME_DIR/bus" <<'P' &
import os, signal, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
signal.alarm(60)
while True:
    s.accept()[0].close()
P
pids+=($!)
for _ in $(seq 600); do [ -S "$XDG_RUNTIME_DIR/bus" ] && break; sleep 0.05; done

want "a reachable user bus is found" 1 "LYCH-STARTUP-008.*connect:user bus.*succeeded" \
	"$confined" "$scratch/own" "$HOME/.ssh/id"
want "the private root hides bus, home and keys" 0 "held connect:user bus: ENOENT" \
	"$confined" --root "$scratch/own" "$HOME/.ssh/id" "$XDG_RUNTIME_DIR/bus"
want "without unix sockets the bus is EPERM" 0 "held connect:user bus: EPERM" \
	"$confined" --no-unix "$scratch/own" "$HOME/.ssh/id"
want "Landlock alone keeps the keys" 0 "held read:~/.ssh: EACCES" \
	"$confined" --no-unix "$scratch/own" "$HOME/.ssh/id"
want "a path that is not there ends the start" 78 "LYCH-STARTUP-008|LYCH-SANDBOX|nowhere" \
	"$confined" "$scratch/nowhere"
want "and with a private root too" 78 "nowhere" "$confined" --root "$scratch/nowhere"
want "a path that is granted is found open" 1 "LYCH-STARTUP-008.*read:$scratch/own" \
	"$confined" --root "$scratch/own" "$scratch/own"

# A host that refuses user namespaces: nothing is skipped, the start fails.
want "no user namespaces: exit 78 that names them" 78 "user and mount namespaces" \
	unshare --user --map-current-user --keep-caps bash -c \
	'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all "$@"' _ \
	"$confined" --root "$scratch/own"
want "capabilities are refused" 78 "LYCH-CORE-003" \
	unshare --user --map-current-user --keep-caps "$confined" "$scratch/own"
exit "$failed"
