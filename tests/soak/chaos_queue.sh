#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 200
# The queue under kill -9 of its users, of PostgreSQL and, through the vessel's door, of that.
# CHAOS_SECONDS (20), SEED (random), LYCH_QUEUE: postgres, vessel, or both for half the time each.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${LYCH_BUILD:-build/${VARIANT:-release}}
seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}
seconds=${CHAOS_SECONDS:-20}
doors=("${LYCH_QUEUE:-both}")
if [ "${doors[0]}" = both ]; then
	doors=(postgres vessel)
	seconds=$(((seconds + 1) / 2))
fi
dir=
end() {
	[ -n "$dir" ] || return 0
	tests/support/pg stop "$dir" || true
	rm -rf "$dir"
	dir=
}
trap end EXIT

for door in "${doors[@]}"; do
	dir=$(mktemp -d /tmp/ly-chaos-XXXXXX)
	tests/support/pg start "$dir" log_statement=none
	"$build/lych-vessel" migrate --pg-dir "$dir/sock" --secrets "$dir/secrets" \
		--tomb tomb_1 --tomb tomb_2
	tests/support/pg open "$dir"
	"$build/tests/support/chaos_queue" "$dir" "$seconds" "$seed" "$door"
	end
done
