#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The vessel judged from outside: a real PostgreSQL, a real vessel, an HTTP client on its two
# sockets, and a tomb made of psql and that client. The cases are in vessel_api.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
# Sockets have short names: a path of at most 107 bytes.
dir=$(mktemp -d /tmp/vessel-api-XXXXXX)
cleanup() {
	[ -z "${scribe:-}" ] || kill "$scribe" 2>/dev/null || true
	tests/support/pg stop "$dir/pg" >/dev/null 2>&1 || true
	[ -z "${KEEP:-}" ] || cp "$dir/vessel.log" "$KEEP"
	rm -rf "$dir"
}
trap cleanup EXIT
mkdir -p "$dir/data/vessel" "$dir/data/tomb" "$dir/run/api" "$dir/run/work" "$dir/data/audit" "$dir/home/.ssh"
chmod -R 700 "$dir"
echo key >"$dir/home/.ssh/id"
tests/support/pg start "$dir/pg"
"$build/lych-vessel" migrate --pg-dir "$dir/pg/sock" --secrets "$dir/pg/secrets" --tomb tomb_1
"$build/lych-scribe" --dir "$dir/data/audit" --socket-dir "$dir/run/audit" 2>"$dir/scribe.log" &
scribe=$!
python3 tests/integration/vessel_api.py "$dir" "$build/lych-vessel"
