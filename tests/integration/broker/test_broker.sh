#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The broker of the vessel judged from outside: a real PostgreSQL, a real scribe, real egress
# workers and the gate, a provider on loopback, and a tomb made of SQL and an HTTP client.
# The cases are in broker.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
dir=$(mktemp -d /tmp/broker-XXXXXX)
cleanup() {
	tests/support/pg stop "$dir/pg" >/dev/null 2>&1 || true
	[ -z "${KEEP:-}" ] || cp -r "$dir/vessel.log" "$dir/data/audit" "$KEEP"
	rm -rf "$dir"
}
trap cleanup EXIT
mkdir -p "$dir/data/vessel" "$dir/run/api" "$dir/run/work" "$dir/run/audit" "$dir/data/audit" "$dir/home"
chmod -R 700 "$dir"
tests/support/pg start "$dir/pg"
"$build/lych-vessel" migrate --pg-dir "$dir/pg/sock" --secrets "$dir/pg/secrets" --tomb tomb_1
PYTHONPATH=tests/support/python python3 tests/integration/broker/broker.py "$dir" "$build"
