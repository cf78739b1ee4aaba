#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# alone
# A job under 128 MiB beside somebody else on this machine who fills shared memory meanwhile, which is not the job's; and
# with remnants of its own beside nobody, which are: so no other test may take or free memory then. And crowds of children
# of a large process: each fork holds the lock that the meter waits for, and where many others want a processor as
# well it can hold it for the second that ends a job (docs/SANDBOX.md, "unmeasured"). Needs Python.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/escape/limits.lib.sh
# It begins when the job has what it wants, and what it filled is still there when the job has ended.
beside_a_neighbour() { # command...
	local rc=0 filled=/dev/shm/within_limits.$$ writer
	rm -f "$scratch/made" "$scratch/filled"
	(
		for _ in {1..600}; do [ -e "$scratch/made" ] && break || sleep 0.05; done
		dd if=/dev/zero of="$filled" bs=1M count=150 2>/dev/null && : >"$scratch/filled"
	) &
	writer=$!
	"$@" || rc=$?
	wait "$writer" || rc=99
	rm -f "$filled"
	return "$rc"
}
for grade in full floor; do
	small=("$sandbox" --grade "$grade" --workspace "$scratch" --memory 128MiB --timeout 60 -- /usr/bin/python3 within_limits.py)
	within "$grade: 24 shared_pages beside a neighbour" beside_a_neighbour "${small[@]}" beside 24
	within "$grade: 200 shared_pages beside a neighbour" beside_a_neighbour "${small[@]}" beside 200
	large=("$sandbox" --grade "$grade" --workspace "$scratch" --memory 512MiB --timeout 60 -- /usr/bin/python3 within_limits.py)
	within "$grade: forked 24" "${large[@]}" forked 24
	within "$grade: forked 100" "${large[@]}" forked 100
	beyond "$grade: remnants beside nobody" "${small[@]}" remnants 24
done
exit $((failed > 0))
