#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# What a user tries (slips.list beside this): each ends in success or in an error that says what, why and
# what to do, with the exit code of its kind; none in a signal, an unclassified error or a bare usage line.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
list=$PWD/tests/integration/cli/slips.list
SCREEN=$PWD/tests/integration/cli/screen.py
lych_begin slips
CONFIG=$LYCH_CONFIG PATH=$LYCH_BIN:$PATH
export CONFIG PATH SCREEN
mkdir "$LYCH_TMP/try" && cd "$LYCH_TMP/try" || exit 1

wrong=0 count=0
bad() { # why
	echo "FAIL line $line: $command"
	echo "     > $*; exit $rc: $(head -c 600 ../out ../err | tr '\n' '~')"
	wrong=$((wrong + 1))
}
# An error of ours: the two lines of lych and of each other program.
explained() { # code
	grep -qE "^lych[a-z-]*: [^:]+: .+" ../err && grep -qE "^      ($1)  .{8}" ../err
}
judge() { # expected exit, pattern
	local exit=$1 pattern=$2 own=
	[[ $exit != "= "* ]] || own=1 exit=${exit#= }
	if [ "$rc" -eq 125 ] || { [ "$rc" -gt 128 ] && [ -z "$own" ] && [ "$exit" != '*' ]; }; then bad "a signal or no answer in time"; return; fi
	if [ "$exit" != '*' ] && [ "$rc" -ne "$exit" ]; then bad "exit $exit was expected"; return; fi
	if grep -qE 'LYCH-CORE-00[01]|Traceback|runtime error' ../out ../err || grep -q '^Try `' ../err; then bad "not explained"; return; fi
	if [[ $pattern == LYCH-* ]]; then
		explained "$pattern" || bad "not $pattern with its reason and what to do"
	elif [ -n "$pattern" ]; then
		cat ../out ../err | grep -qE -- "$pattern" || bad "nothing of $pattern"
	elif [ "$rc" -ne 0 ] && [ -z "$own" ] && [ "$exit" != '*' ]; then
		bad "no pattern for a failure"
	fi
}

line=0
while IFS= read -r text <&9; do
	line=$((line + 1))
	case $text in
	"" | "# "* | "#	"*) continue ;;
	"## nothing runs") continue ;;
	"## it runs") lych up --detach >/dev/null 2>../err 9<&- || fail "up: $(cat ../err)"; continue ;;
	esac
	exit=${text%%|*} rest=${text#*|}
	pattern=${rest%% | *} command=${rest#* | }
	exit=${exit% } pattern=${pattern# }
	timeout -k 5 60 bash -c "$command" >../out 2>../err </dev/null 9<&-
	rc=$?
	judge "$exit" "$pattern"
	count=$((count + 1))
done 9<"$list"
echo "slips: $count tried, $wrong not as they should be"
[ "$wrong" -eq 0 ] && [ "$count" -ge 120 ]
