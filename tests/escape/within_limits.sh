#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# alone
# What stays below its limit is not ended: memory that is easily counted twice, or taken for more than it
# is, under 512 MiB, on a machine that is busy. What only looks as if it did is ended. Needs Python, and
# not to be root.
set -uo pipefail
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
scratch=$(mktemp -d)
burners=()
trap 'kill "${burners[@]}" 2>/dev/null; rm -rf "$scratch" "/dev/shm/within_limits.$$"' EXIT
cp "$(dirname "$0")/within_limits.py" "$scratch/"
for _ in 1 2 3 4 5 6; do
	(exec timeout 590 bash -c 'while :; do :; done') &
	burners+=($!)
done

failed=0
within() { # what, command...
	local what=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "ok    $what"
	else
		echo "FAIL  $what: ${said:0:600}"
		failed=$((failed + 1))
	fi
}
beyond() { # what, command...: ended for its memory
	local what=$1 said
	shift
	if said=$("$@" 2>&1) || ! grep -q 'oom: memory' <<<"$said"; then
		echo "FAIL  $what: ${said:0:600}"
		failed=$((failed + 1))
	else
		echo "ok    $what"
	fi
}
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
	job=("$sandbox" --grade "$grade" --workspace "$scratch" --memory 512MiB --timeout 60 -- /usr/bin/python3 within_limits.py)
	small=("$sandbox" --grade "$grade" --workspace "$scratch" --memory 128MiB --timeout 60 -- /usr/bin/python3 within_limits.py)
	# Beside somebody else on this machine who fills shared memory meanwhile: that is not the job's.
	within "$grade: 24 shared_pages beside a neighbour" beside_a_neighbour "${small[@]}" beside 24
	within "$grade: 200 shared_pages beside a neighbour" beside_a_neighbour "${small[@]}" beside 200
	beyond "$grade: remnants beside nobody" "${small[@]}" remnants 24
	for what in "shared_pages 24" "shared_pages 400" "vfork ${VFORKS:-1000}" "forked 8" "forked 24" "forked 100" "ending 24" "threads_end 8"; do
		# shellcheck disable=SC2086 # two words
		within "$grade: $what" "${job[@]}" $what
	done
	# In a container it is refused anyway.
	no_kcmp=("$bin/tests/support/lie" --no-kcmp --)
	[ -z "${LYCH_NESTED:-}" ] || no_kcmp=()
	within "$grade: vfork 300, kcmp refused" "${no_kcmp[@]}" "${job[@]}" vfork 300
	beyond "$grade: a copy behind vfork, kcmp refused" "${no_kcmp[@]}" "${job[@]}" waitcopy 440
done
exit $((failed > 0))
