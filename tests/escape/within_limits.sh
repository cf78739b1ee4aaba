#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# What stays below its limit is not ended: memory that is easily counted twice, or taken for more than it
# is, under 512 MiB, on a machine that is busy. What only looks as if it did is ended. Needs Python, and
# not to be root. Whole crowds of children: limits_beside.sh.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/escape/limits.lib.sh
for grade in full floor; do
	job=("$sandbox" --grade "$grade" --workspace "$scratch" --memory 512MiB --timeout 60 -- /usr/bin/python3 within_limits.py)
	for what in "shared_pages 24" "shared_pages 400" "vfork 1000" "forked 8" "ending 24" "threads_end 8"; do
		# shellcheck disable=SC2086 # two words
		within "$grade: $what" "${job[@]}" $what
	done
	# In a container it is refused anyway.
	no_kcmp=("$bin/tests/support/lie" --no-kcmp --)
	[ -z "${LYCH_NESTED:-}" ] || no_kcmp=()
	within "$grade: vfork 100, kcmp refused" "${no_kcmp[@]}" "${job[@]}" vfork 100
	beyond "$grade: a copy behind vfork, kcmp refused" "${no_kcmp[@]}" "${job[@]}" waitcopy 440
done
exit $((failed > 0))
