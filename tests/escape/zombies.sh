#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# A job that forks more processes than there are numbers, and waits for hardly any of them, under a limit of
# 64 at a time: all are reaped, it ends by itself, and nothing of it is left. Needs not to be root.
set -uo pipefail
bin=${LYCH_BIN:-${LYCH_BUILD:-build/release}}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$bin/tests/escape/try_unruly" "$scratch/u"
failed=0
for grade in full floor; do
	many=40000 # the first numbers come again
	[ "$grade" = full ] || many=20000 # the same code: half the time
	mark=lych-zombies-$$-$grade
	out=$("$sandbox" --grade "$grade" --json --workspace "$scratch" --processes 64 --timeout 420 \
		-- ./u zombies "$many" "$mark" 2>&1 >/dev/null </dev/null | grep '^{' | tail -n 1)
	all=(/proc/[0-9]*/cmdline)
	if ! grep -q '"how":"exited".*"tree_gone":true\|"tree_gone":true.*"how":"exited"' <<<"$out"; then
		echo "FAIL  $grade: $out"
		failed=1
	elif grep -lszxFf - "${all[@]}" <<<"$mark"; then
		echo "FAIL  $grade: these are left"
		failed=1
	else
		echo "ok    $grade: $many came and went ($(sed -nE 's/.*"wall_ms":([0-9]+).*/\1/p' <<<"$out") ms)"
	fi
done
exit "$failed"
