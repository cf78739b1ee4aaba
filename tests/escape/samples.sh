#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 150
# alone
# A sample has a bound: beside sixty processes with 60,000 mappings each (fewer on a small machine) a time limit of 5 s
# ends the job within a second, and a disk limit holds. What has more than can be counted in time may be ended for
# that. By what the job itself wrote last, and by what is on the disk. Not to be root.
set -uo pipefail
bin=${LYCH_BUILD:-build/release}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
timeout_sec=5 slack_ms=1000 start_ms=1000
limit=128 slack=128
failed=0

# 65,530 mappings are some 40 MB of the kernel's memory, with what finds them.
available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
many=$((available / 4 / 40))
[ "$many" -le 60 ] || many=60
[ "$many" -ge 4 ] || many=4
some=$(((many + 2) / 3))

report() { # right? what detail
	if [ -n "$1" ]; then
		echo "ok    $2 ($3)"
	else
		echo "FAIL  $2 ($3): ${told:0:400}"
		failed=$((failed + 1))
	fi
}
begin() {
	rm -rf "$scratch/work"
	mkdir "$scratch/work"
	cp "$bin/tests/escape/try_objects" "$scratch/work/o"
}
job() { # grade processes timeout script: its end, in $how
	told=$("$sandbox" --grade "$1" --json --workspace "$scratch/work" --processes 256 --memory 8GiB --disk ${limit}MiB \
		--timeout "$3" -- /bin/sh -c "$4" sh "$2" 2>&1 </dev/null)
	how=$(grep -o '"how":"[^"]*"' <<<"$told" | cut -d'"' -f4)
}

for grade in full floor; do
	for n in "$some" "$many"; do
		begin
		# The time of each stamp is that of its file: nothing else has to be started for it.
		# shellcheck disable=SC2016 # the job's own
		job "$grade" "$n" ${timeout_sec}s ': >first; ./o mappings "$1" mark 60 & while :; do : >last; done'
		took=$(($(stat -c %.3Y "$scratch/work/last" | tr -d .) - $(stat -c %.3Y "$scratch/work/first" | tr -d .)))
		right=
		[ "$took" -le $((timeout_sec * 1000 + slack_ms + start_ms)) ] && [[ $how == timeout || $how == unmeasured ]] && right=1
		report "$right" "$grade: $n processes with all the mappings that there may be: the last instruction" "$took ms, $how"
	done
	begin
	# shellcheck disable=SC2016
	job "$grade" "$some" 60s './o mappings "$1" mark 60 >made & while [ ! -s made ]; do :; done; exec dd if=/dev/zero of=filled bs=1M count=2000'
	took=$(du -sm "$scratch/work" | cut -f1)
	right=
	[ "$took" -le $((limit + slack)) ] && [[ $how == disk || $how == unmeasured ]] && right=1
	report "$right" "$grade: a disk that is filled meanwhile" "$took MiB, $how"
done
exit $((failed > 0))
