#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 200
# The queue under kill -9 of its users and of PostgreSQL. CHAOS_SECONDS (20), SEED (random).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${LYCH_BUILD:-build/${VARIANT:-release}}
seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}
dir=$(mktemp -d /tmp/ly-chaos-XXXXXX)
end() {
	tests/support/pg stop "$dir" || true
	rm -rf "$dir"
}
trap end EXIT

tests/support/pg start "$dir" log_statement=none
"$build/lych-vessel" migrate --pg-dir "$dir/sock" --secrets "$dir/secrets" \
	--tomb tomb_1 --tomb tomb_2
"$build/tests/support/chaos_queue" "$dir" "${CHAOS_SECONDS:-20}" "$seed"
