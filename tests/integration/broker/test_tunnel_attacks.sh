#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# docs/TUNNEL_CASES.md: real jobs attack their HTTPS proxy, below HTTP, in it and around it, while another's goes on (tunnel_attacks.py).
# The vessel is a stand-in on the work socket. In a user namespace whose root may look into the tomb: its descriptors, its memory.
set -euo pipefail
cd "$(dirname "$0")/../../.."
unshare -Ur true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
if [ -z "${LAB:-}" ]; then
	[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
	exec env LAB=1 unshare -Ur "$0" "$@"
fi
export LYCH_BUILD=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
build=$LYCH_BUILD
dir=$(mktemp -d /tmp/tunnel-XXXXXX)
pid=
stand_in=
cleanup() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true
	[ -z "$stand_in" ] || kill -9 "$stand_in" 2>/dev/null || true
	chmod -R u+rwx "$dir"
	rm -rf "$dir"
}
trap cleanup EXIT
mkdir -m 700 "$dir/data" "$dir/work" "$dir/secrets"
printf 0123456789abcdef0123456789abcdef >"$dir/secrets/lychgate_work_of_tomb_1"
chmod 600 "$dir/secrets/lychgate_work_of_tomb_1"
PYTHONPATH=tests/support/python python3 -B "${1:-tests/integration/broker/tunnel_attacks.py}" "$dir/work/vessel.sock" full &
stand_in=$!
for _ in $(seq 300); do
	[ ! -S "$dir/work/vessel.sock" ] || break
	sleep 0.1
done
# an ordinary user of a namespace below: the tomb refuses root, also this one
unshare -U --map-user=1000 --map-group=1000 "$build/lych-tomb" --name tomb_1 --data "$dir/data/tomb" --work-dir "$dir/work" --queue vessel \
	--secrets "$dir/secrets" --sandbox "$build/lych-sandbox" --slots 4 --grade full 2>"$dir/log" &
pid=$!
rc=0
wait "$stand_in" || rc=$?
stand_in=
if [ "$rc" -ne 0 ]; then
	tail -n 30 "$dir/log" >&2
	exit 1
fi
kill -0 "$pid" || { echo "FAIL: the tomb ended"; tail -n 30 "$dir/log"; exit 1; }
kill -TERM "$pid"
wait "$pid"
pid=
