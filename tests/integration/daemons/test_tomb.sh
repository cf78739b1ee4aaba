#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# The tomb judged from outside: what it refuses to start with, what it cannot do once it is
# confined (test builds), what its control socket answers, and that its end is clean.
# LYCH_QUEUE: postgres, vessel, or both one after the other (as without it).
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
case ${LYCH_QUEUE:-both} in
both) LYCH_QUEUE=postgres "$0" && LYCH_QUEUE=vessel exec "$0" ;;
postgres | vessel) ;;
*) echo "LYCH_QUEUE: postgres or vessel"; exit 1 ;;
esac
dir=$(mktemp -d /tmp/tomb-XXXXXX)
pid=
vessel=
cleanup() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true
	[ -z "$vessel" ] || kill -9 "$vessel" 2>/dev/null || true
	tests/support/pg stop "$dir/pg" >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap cleanup EXIT
fail() {
	echo "FAIL: $*" >&2
	[ ! -e "$dir/log" ] || tail -n 20 "$dir/log" >&2
	exit 1
}
mkdir -p "$dir/data/vessel" "$dir/work" "$dir/api" "$dir/home/.ssh"
chmod -R 700 "$dir"
echo key >"$dir/home/.ssh/id"
tests/support/pg start "$dir/pg"
"$build/lych-vessel" migrate --pg-dir "$dir/pg/sock" --secrets "$dir/pg/secrets" --tomb tomb_1 \
	>/dev/null 2>&1
tests/support/pg open "$dir/pg"
export HOME=$dir/home
# What a tomb of this door needs, and nothing else.
secrets=$dir/secrets
mkdir -m 700 "$secrets"
cp "$dir/pg/secrets/lychgate_work_of_tomb_1" "$secrets/"
door=(--queue "$LYCH_QUEUE")
vessel_door=()
if [ "$LYCH_QUEUE" = postgres ]; then
	cp "$dir/pg/secrets/lychgate_db_of_tomb_1" "$secrets/"
	door+=(--pg-dir "$dir/pg/sock")
else
	vessel_door=(--tomb tomb_1)
fi
chmod 600 "$secrets"/*
args=(--name tomb_1 --data "$dir/data/tomb" --work-dir "$dir/work" "${door[@]}" --secrets "$secrets"
	--sandbox "$build/lych-sandbox" --slots 2 --grade full)
tomb() { "$build/lych-tomb" "${args[@]}" "$@"; }
echo "door: $LYCH_QUEUE"
refused() { # EXIT TEXT [OPTION...]
	local want=$1 text=$2 rc=0
	shift 2
	tomb "$@" >"$dir/log" 2>&1 || rc=$?
	[ "$rc" -eq "$want" ] || fail "exit $rc, not $want: $*"
	grep -q -- "$text" "$dir/log" || fail "no '$text': $*"
	echo "ok: refused: $text"
}
refused 2 "slots: 1 to 64" --slots 0
refused 2 "full or floor" --grade auto
refused 2 "postgres or vessel" --queue auto
if [ "$LYCH_QUEUE" = postgres ]; then
	refused 2 "belongs to --queue postgres" --queue vessel
else
	refused 2 "belongs to --queue postgres" --queue postgres
	refused 2 "belongs to --queue postgres" --pg-dir "$dir/pg/sock"
fi
refused 2 "absolute paths" --data relative
refused 2 "a-z" --name 'x;y'
refused 78 "LYCH-SANDBOX-013" --sandbox /nonexistent
mv "$secrets/lychgate_work_of_tomb_1" "$secrets/kept"
refused 3 "LYCH-SECRET-002"
mv "$secrets/kept" "$secrets/lychgate_work_of_tomb_1"
chmod 644 "$secrets/lychgate_work_of_tomb_1"
refused 1 "LYCH-SECRET-001"
chmod 600 "$secrets/lychgate_work_of_tomb_1"

if tomb --help | grep -q probe-walls; then
	printf '%s\n' "read $dir/home/.ssh/id" "list $dir/home" "read $secrets/lychgate_work_of_tomb_1" \
		"list $dir/data/vessel" "exec /bin/true" "fork" "unshare" "mmap-exec" "kill 1" \
		"socket inet" "socket inet6" "socket netlink" "socket packet" >"$dir/probes"
	tomb --probe-walls "$dir/probes" >"$dir/answers" 2>"$dir/log" || fail "the probe ended badly"
	[ "$(wc -l <"$dir/answers")" -eq 13 ] || fail "answers are missing"
	if grep ': ok$' "$dir/answers"; then fail "a wall did not hold"; fi
	echo "ok: 13 forbidden acts refused"
fi

mkdir -p "$dir/data/tomb/jobs/7.1/work/closed"
chmod 000 "$dir/data/tomb/jobs/7.1/work/closed"
has() { # FILE TEXT
	for _ in $(seq 300); do
		! grep -q -- "$2" "$1" || return 0
		sleep 0.1
	done
	fail "no '$2'"
}
: >"$dir/log"
"$build/lych-tomb" "${args[@]}" 2>>"$dir/log" &
pid=$!
# Without a vessel nobody can say whether versions agree: nothing is claimed.
has "$dir/log" "waiting for the vessel"
! grep -q 'msg="ready"' "$dir/log" || fail "ready without a vessel"
"$build/lych-vessel" serve --data "$dir/data/vessel" --api-dir "$dir/api" --work-dir "$dir/work" \
	--pg-dir "$dir/pg/sock" --audit-dir "$dir/audit" --secrets "$dir/pg/secrets" "${vessel_door[@]}" 2>"$dir/vessel.log" &
vessel=$!
disown "$vessel"
has "$dir/log" 'msg="ready"'
[ ! -e "$dir/data/tomb/jobs/7.1" ] || fail "a folder of an earlier run is still there"
echo "ok: ready; what an earlier run left is gone"
refused 1 "LYCH-STARTUP-001"

ask() { python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(5)
s.connect(sys.argv[1])
s.sendall(sys.argv[2].encode() + b"\n")
print(s.recv(65536).decode(), end="")' "$dir/work/tomb-tomb_1.sock" "$1"; }
expect() { # TEXT QUESTION
	ask "$2" | grep -qF -- "$1" || fail "no '$1' for $2"
	echo "ok: control: $1"
}
expect '"code":-32700' 'nonsense'
expect '"code":-32600' '{"jsonrpc":"2.0","method":"healthCheck"}'
expect '"code":-32601' '{"jsonrpc":"2.0","id":1,"method":"exec"}'
expect '"code":-32602' '{"jsonrpc":"2.0","id":1,"method":"startStage","params":{"job":0}}'
expect 'LYCH-RUN-001' '{"jsonrpc":"2.0","id":1,"method":"cancelStage","params":{"job":1}}'
expect '"result":{}' '{"jsonrpc":"2.0","id":1,"method":"startStage","params":{"job":1}}'
expect '"spawner":"up"' '{"jsonrpc":"2.0","id":1,"method":"healthCheck"}'

kill -TERM "$pid"
rc=0
wait "$pid" || rc=$?
pid=
[ "$rc" -eq 0 ] || fail "exit $rc on SIGTERM"
[ ! -e "$dir/work/tomb-tomb_1.sock" ] || fail "the control socket stays"
echo "ok: a clean end"
