#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# What a job leaves behind (threats G): plant.py plants it through a real job in each grade, and
# what arrives on the trusted side is judged there, by the programs that would obey it. Refused
# before delivered; at the end the same traps are sprung outside of any job, so that the judges
# are known to be awake.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lych.sh
plant=$PWD/tests/escape/plant.py
judge=$PWD/tests/escape/judge_harvest.py
lych_begin harvest
cd "$LYCH_TMP" || exit 1
canary=$LYCH_TMP/canary

# What stands in a directory is obeyed: git asks it at each prompt, tar takes names for options,
# an interpreter loads what lies first.
spring() { # directory
	local d
	while IFS= read -r -d '' d; do
		# shellcheck disable=SC2035 # that is the trap
		(
			cd "$d" || exit
			git status
			tar cf /dev/null *
			PYTHONPATH=. python3 -c pass
		) >/dev/null 2>&1 </dev/null
	done < <(find "$1" -type d -not -path '*/deep/*' -not -path '*/long/*' -print0)
}

programs=$(cd "$LYCH_BIN" && sha256sum lych lych-vessel lych-tomb lych-sandbox lych-probe)
for grade in full floor; do
	rm -rf got out
	printf 'version: "1"\ntomb:\n  grade: %s\n' "$grade" >"$LYCH_CONFIG" && chmod 600 "$LYCH_CONFIG"
	config=$(sha256sum <"$LYCH_CONFIG")
	lych up --detach >/dev/null 2>err || fail "up in grade $grade: $(cat err)"
	# Another job's file: nothing of it may come out of this one.
	lych run -n --artifact good -- sh -c 'echo "of another job" >good' || fail "the other job"
	timeout 120 "$LYCH_BIN/lych" run --file "$plant=plant.py" --artifact '**' --out got \
		-- python3 plant.py "$canary" >out 2>err </dev/null || fail "$grade: plant: $(cat out err)"
	grep -qx 'planted [0-9]*' out || fail "$grade: plant.py said $(cat out)"
	id=$(lych jobs --limit 1 --json | python3 -ISc 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')
	lych show "$id" --json >show.json || fail "$grade: show"
	lych show "$id" >show.txt
	lych artifacts "$id" >list.txt
	python3 "$judge" "$grade" "$LYCHGATE_DATA" "$plant" show.json got || fail "$grade: see above"
	count=$((count + 1))
	LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]' show.json show.txt list.txt err &&
		fail "$grade: raw control characters in what a person is shown"
	spring got
	is "$grade: no trap was sprung by what arrived" no "$([ -e "$canary" ] && echo yes || echo no)"
	is "$grade: the programs are as they were" "$programs" \
		"$(cd "$LYCH_BIN" && sha256sum lych lych-vessel lych-tomb lych-sandbox lych-probe)"
	is "$grade: the config too" "$config" "$(sha256sum <"$LYCH_CONFIG")"
	is "$grade: nothing that it said is in a log" 0 "$(cat "$LYCHGATE_DATA"/log/*.log | grep -c 'planted')"
	is "$grade: all still works" 42 "$(lych run -n -- echo 42)"
	# More than the cap on count, and a plain tree beside it.
	lych run -n --artifact 'm/**' --out "many-$grade" -- sh -c \
		'mkdir m; i=0; while [ $i -lt 400 ]; do echo $i >m/$i; i=$((i+1)); done' 2>err || fail "many: $(cat err)"
	is "$grade: no more than the cap" 256 "$(find "many-$grade" -type f | wc -l)"
	is "$grade: the rest is counted" 1 "$(grep -c 'not fetched: [0-9]* more' err)"
	lych down >/dev/null || fail "down"
done

# --- the judges are awake: the same tree without a harvest in between
mkdir raw
(cd raw && python3 "$plant" "$canary" outside) >/dev/null 2>&1 || fail "plant outside"
for trap in raw/repo raw/bare raw/options; do
	rm -f "$canary"
	spring "$trap"
	is "$trap springs without a harvest" yes "$([ -e "$canary" ] && echo yes || echo no)"
done
echo "harvest: $count checks"
