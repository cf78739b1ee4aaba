#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The attempts of run.sh in a job of lych run, through vessel and tomb: with a terminal and without. Such a job is shown no directory
# of the host's and inherits nothing, so its answers need not be run.sh's: each attempt is to be refused, whatever by. The one outside
# sees nothing of the workspace, so attempt 28 waits in vain for what it asks to be done.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lych.sh
here=$PWD
lych_begin probes
lych up --detach <&- >&- || fail "up"
at_terminal() { python3 -B "$here/tests/escape/own_terminal.py" "$LYCH_BIN/lych-sandbox" at "$LYCH_BIN/lych" run --tty "$@"; }
for way in at_terminal lych; do
	place=$LYCH_TMP/$way
	mkdir -p "$place/work"
	cp "$LYCH_BIN/tests/escape/try_probe" "$place/work/"
	touch "$place/work/nested"
	"$LYCH_BIN/tests/escape/try_probe" --outside "$place" >"$place/log" &
	outside=$!
	wait_until 20 "the one outside" [ -e "$place/work/targets" ]
	if [ $way = lych ]; then job=(lych run); else job=(at_terminal); fi
	port=$(sed -n 's/^inherit //p' "$place/work/targets")
	"${job[@]}" --timeout 90 --dir "$place/work" -- ./try_probe full 7<"$place" 8<>"/dev/tcp/127.0.0.1/$port" 9<"$0" \
		>"$place/log.inside" 2>"$place/err"
	cat "$place/log.inside" "$place/err"
	kill -TERM $outside
	wait $outside || fail "$way: outside something was reached or changed: $(cat "$place/log")"
	cat "$place/log"
	is "$way: what was not refused" "28	SIGALRM" "$(grep -P '^FAIL' "$place/log.inside" | cut -f 3,4)"
	has "$way: all were tried" "400 probes, 1 failed" "$(grep -a probes, "$place/log.inside")"
done
