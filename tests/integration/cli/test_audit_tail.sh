#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lych audit tail: the last records across segments, those that follow into a new one, what is torn, foreign or
# hostile. The files are made here: no daemon runs.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin audit-tail
cd "$LYCH_TMP" || exit 1
tail_() { "$LYCH_BIN/lych" audit tail "$@" 2>err; }
numbers() { awk '{ print $1 }' | tr '\n' ' '; }
log=$LYCHGATE_DATA/audit
record() { # number, event, job
	printf '{"v":1,"seq":%d,"ts":"2026-01-01T00:00:00.000Z","event":"%s","metadata":{"correlation_uid":"%s"}}\n' "$@"
}
until_holds() { # what, command
	for _ in $(seq 600); do
		eval "$2" && return
		nap 0.05
	done
	fail "$1"
}

tail_ >out; is "no directory" 3 $?
is "no directory: it says so" 1 "$(grep -c "$log" err)"
(umask 077; mkdir -p "$log")
tail_ >out; is "no log" 3 $?
"$LYCH_BIN/lych" audit 2>/dev/null; is "no verb" 2 $?
tail_ -n -1 >out; is "no number" 2 $?

for i in $(seq 30); do record "$i" job.claimed "$i"; done >"$log/segment-0000000001.jsonl"
for i in $(seq 31 35); do record "$i" job.ended "$i"; done >"$log/segment-0000000002.jsonl"
echo x >"$log/segment-3.jsonl"
is "the last twenty, across segments" "$(seq -s ' ' 16 35) " "$(tail_ | numbers)"
is "of one segment" "34 35 " "$(tail_ -n 2 | numbers)"
is "just a segment" "$(seq -s ' ' 31 35) " "$(tail_ -n 5 | numbers)"
is "none" "" "$(tail_ -n 0)"
is "more than there are" "$(seq -s ' ' 35) " "$(tail_ -n 10000 | numbers)"
is "a record for people" "35  2026-01-01 00:00:00.000 UTC  job.ended  job 35" "$(tail_ -n 1 --utc | sed 's/^ *//')"
is "as it stands" "$(tail -n 3 "$log/segment-0000000002.jsonl")" "$(tail_ -n 3 --json)"

# what is being written, then a new segment
"$LYCH_BIN/lych" audit tail -n 1 -f >follow 2>err &
pid=$!
until_holds "it begins" '[ "$(numbers <follow)" = "35 " ]'
record 36 job.claimed 36 | head -c 40 >>"$log/segment-0000000002.jsonl"
record 36 job.claimed 36 | tail -c +41 >>"$log/segment-0000000002.jsonl"
until_holds "a record in two pieces" '[ "$(numbers <follow)" = "35 36 " ]'
record 37 job.claimed 37 >>"$log/segment-0000000002.jsonl"
record 38 scribe.segment "" >"$log/segment-0000000003.jsonl"
until_holds "a new segment" '[ "$(numbers <follow)" = "35 36 37 38 " ]'
kill -0 $pid || fail "it does not follow any more"
kill $pid
wait $pid 2>/dev/null

# nobody's text reaches a terminal, and a torn end is not shown
printf '{"seq":39,"ts":"\\u001b[2J","event":"a\\u202eb","metadata":{}}\nnoise \033[2J\n{"seq":40' >>"$log/segment-0000000003.jsonl"
is "a hostile record" '39 \x1b[2J a\u{202e}b' "$(tail_ -n 2 | head -n 1 | xargs -d '\n' printf %s | tr -s ' ' | sed 's/^ //')"
is "no record" 'not a record: noise \x1b[2J' "$(tail_ -n 1)"
rm "$log"/segment-*; ln -s /etc/passwd "$log/segment-0000000001.jsonl"
tail_ >out; is "a link" 1 $?
is "a link: nothing is shown" "" "$(cat out)"
echo "$count checks"
