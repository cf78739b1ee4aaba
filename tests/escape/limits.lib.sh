# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests of limits, on a machine that is busy: what stays below its limit is not ended (within), what does not is
# (beyond). Source it at the tree's root; scratch is a job's, with within_limits.py in it.
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
scratch=$(mktemp -d)
trap 'kill "$busy" 2>/dev/null; rm -rf "$scratch" "/dev/shm/within_limits.$$"' EXIT
cp tests/escape/within_limits.py "$scratch/"

# Two for each processor that want it: those of the others on this machine, and as many of ours as are missing.
keep_busy() {
	local want running burners=()
	want=$((2 * $(nproc)))
	trap 'kill "${burners[@]}" 2>/dev/null; exit' TERM
	while :; do
		running=$(sed -n 's/^procs_running //p' /proc/stat)
		if [ "$running" -lt $want ]; then
			(exec timeout 590 bash -c 'while :; do :; done') &
			burners+=($!)
		elif [ "$running" -gt $((want + 2)) ] && [ ${#burners[@]} -gt 0 ]; then
			kill "${burners[-1]}"
			unset 'burners[-1]'
		fi
		sleep 0.2
	done
}
keep_busy &
busy=$!

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
