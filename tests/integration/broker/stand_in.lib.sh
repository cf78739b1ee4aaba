# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A tomb whose vessel is a stand-in on the work socket. To be sourced, in the tree's root, under set -euo pipefail.
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
dir=$(mktemp -d /tmp/stand-in-XXXXXX)
pid=
stand_in=
tomb_by=()
stand_in_end() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || true
	[ -z "$stand_in" ] || kill -9 "$stand_in" 2>/dev/null || true
	chmod -R u+rwx "$dir"
	rm -rf "$dir"
}
trap stand_in_end EXIT
mkdir -m 700 "$dir/data" "$dir/work" "$dir/secrets"
printf 0123456789abcdef0123456789abcdef >"$dir/secrets/lychgate_work_of_tomb_1"
chmod 600 "$dir/secrets/lychgate_work_of_tomb_1"

# grade, the stand-in's program: it says by its exit whether all was as it should be. tomb_by: what starts the tomb, if it is
# not this shell itself. The tomb outlives it, and ends when it is told to.
tomb_beside() {
	local grade=$1 rc=0
	PYTHONPATH=tests/support/python python3 -B "$2" "$dir/work/vessel.sock" "$grade" &
	stand_in=$!
	for _ in $(seq 300); do
		[ ! -S "$dir/work/vessel.sock" ] || break
		sleep 0.1
	done
	"${tomb_by[@]}" "$build/lych-tomb" --name tomb_1 --data "$dir/data/tomb" --work-dir "$dir/work" --queue vessel \
		--secrets "$dir/secrets" --sandbox "$build/lych-sandbox" --slots 4 --grade "$grade" 2>"$dir/log" &
	pid=$!
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
}
