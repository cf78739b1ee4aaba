#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Numbers of processes begin anew (pid_max), and a child is before its parent in every list. A child of vfork has no
# memory of its own all the same: a job in floor, which shares its numbers with the whole machine, is not ended for
# its parent's. In a pid namespace whose numbers are nearly used up; busy, so that children are met as they begin.
set -euo pipefail
cd "$(dirname "$0")/../../.."
sandbox=$(realpath "${LYCH_BUILD:-build/release}/lych-sandbox")
export sandbox
work=$(mktemp -d)
export work
burners=()
trap 'kill "${burners[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
cp tests/escape/within_limits.py "$work/"
for _ in 1 2 3 4; do
	(exec timeout 900 bash -c 'while :; do :; done') &
	burners+=($!)
done
for _ in 1 2 3 4 5 6; do
	unshare --user --map-current-user --keep-caps --pid --fork --mount-proc sh -c '
		echo $(($(cat /proc/sys/kernel/pid_max) - 40)) >/proc/sys/kernel/ns_last_pid
		exec setpriv --ambient-caps -all --inh-caps -all --bounding-set -all "$sandbox" --grade floor --workspace "$work" \
			--memory 512MiB --timeout 60 -- /usr/bin/python3 within_limits.py vfork 600'
done
echo "pid_wrap: a child of vfork costs nothing, whatever its number"
