#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 900
# Two hundred jobs (JOBS) in real sandboxes that all ask their broker at once, and one that
# fetches a gigabyte: one vessel with its real database, scribe, gate and egress workers, and
# four tombs. Nobody is starved, and the daemons stay as large as they were.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
dir=$(mktemp -d /tmp/bmany-XXXXXX)
cleanup() {
	tests/support/pg stop "$dir/pg" >/dev/null 2>&1 || true
	chmod -R u+rwx "$dir"
	rm -rf "$dir"
}
trap cleanup EXIT
mkdir -p "$dir/data/vessel" "$dir/data/audit" "$dir/run/api" "$dir/run/work" "$dir/run/audit" "$dir/home"
chmod -R 700 "$dir"
tests/support/pg start "$dir/pg" log_statement=none
tests/support/python/tomb_secret.py make "$dir/pg/secrets" tomb_0 tomb_1 tomb_2 tomb_3
"$build/lych-vessel" migrate --pg-dir "$dir/pg/sock" --secrets "$dir/pg/secrets" --tomb tomb_0 --tomb tomb_1 \
	--tomb tomb_2 --tomb tomb_3
python3 -B tests/soak/broker_many.py "$dir" "$build"
