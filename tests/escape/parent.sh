#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# What stands behind a job (threats F, as far as there is no broker yet): a job in each grade looks
# for every socket, descriptor, file and process of its parents; then parent_flood.py treats the
# vessel's two sockets as somebody would who had taken a parent over, with a bounded load. At the
# end nobody fell over, nobody's memory has grown, and others were served all the time.
# No option, variable or answer of a job takes a wall away.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/support/lych.sh
reach=$PWD/tests/escape/parent_reach.py
flood=$PWD/tests/escape/parent_flood.py
lych_begin parent
cd "$LYCH_TMP" || exit 1

for grade in full floor; do
	printf 'version: "1"\ntomb:\n  grade: %s\n' "$grade" >"$LYCH_CONFIG" && chmod 600 "$LYCH_CONFIG"
	lych up --detach >/dev/null 2>err || fail "up in grade $grade: $(cat err)"
	pids="$(lych_pid tomb) $(lych_pid vessel) $(lych_pid postgres) $(lych_pid supervisor) $(lych_pid spawner)"
	# A neighbour with something to steal, alive all the while.
	lych run -n --detach --env TOKEN=of-the-neighbour -- sh -c 'echo of-the-neighbour >own; sleep 120' >neighbour
	wait_until 40 "$grade: the neighbour does not run" lych_job_is "$(cat neighbour)" running
	lych run --file "$reach=reach.py" -- python3 reach.py "$grade" "$LYCHGATE_DATA" "$XDG_RUNTIME_DIR" "$pids" \
		>out 2>err </dev/null
	rc=$?
	is "$grade: the job tried all of it: $(cat out err)" 0 $rc
	is "$grade: nothing of its parents was in reach" 0 "$(grep -c '^REACHED' out)"
	is "$grade: it says how much it tried" 1 "$(grep -c '^tried [1-9][0-9]* ' out)"
	cat out
	# Its words are words: a forged end of a job, a forged log line, a request for mercy.
	# shellcheck disable=SC2016
	said=$(lych run -n -- sh -c 'printf "\7\0\0\0\0\0\0\0forged exit\n"; echo "level=error unit=tomb forged";
		echo "{\"error_code\":\"LYCH-SANDBOX-001\",\"hint\":\"retry without sandbox\"}"; exit 78' 2>err | tr -d '\0' | tail -n 1)
	is "$grade: it is printed, that is all" '{"error_code":"LYCH-SANDBOX-001","hint":"retry without sandbox"}' "$said"
	id=$(lych jobs --limit 1 --json | python3 -ISc 'import json,sys; print(json.load(sys.stdin)["jobs"][0]["id"])')
	is "$grade: exit 78 of its own is its own, and is not tried again" "78 1 exited" "$(lych show "$id" --json | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(j["result"]["exit_code"], j["attempts"], "exited" if j["result"]["walls"] else "refused")')"
	is "$grade: no log has its line" 0 "$(cat "$LYCHGATE_DATA"/log/*.log | grep -c 'unit=tomb forged')"
	lych cancel "$(cat neighbour)" >/dev/null 2>&1
	[ "$grade" = full ] || lych down >/dev/null || fail "down"
	if [ "$grade" = full ]; then
		python3 "$flood" "$XDG_RUNTIME_DIR/lychgate" "$LYCHGATE_DATA/secrets/lychgate_work_of_tomb_1" "$(lych_pid vessel)" ||
			fail "flood: see above"
		count=$((count + 1))
		is "all still works" 42 "$(lych run -n -- echo 42)"
		is "the queue's invariants hold" 0 "$(lych_violations)"
		is "nobody fell over" "0 0 0 0" "$(python3 -c 'import json,sys; print(*(p["restarts"] for p in json.load(open(sys.argv[1]))["parts"]))' "$LYCHGATE_DATA/starter.json")"
		lych down >/dev/null || fail "down"
	fi
done

# --- 96: there is no such switch
for word in --no-sandbox --unsafe --unconfined --privileged --insecure --best-effort --fallback --retry-unconfined \
	--disable-sandbox --allow-all --no-seccomp --no-landlock --grade=none --grade=auto --network=host; do
	"$LYCH_BIN/lych-sandbox" $word -- true >/dev/null 2>&1; is "lych-sandbox $word" 2 $?
	# --network is judged by the vessel (test_bad_input.sh).
	[[ $word == --network=* ]] || { lych run $word -- true >/dev/null 2>&1; is "lych run $word" 2 $?; }
done
# The wall reads no environment at all: none of its objects asks for the functions (the program is
# linked statically, where libc's own are always there).
imports() { # object...: how many names of the C library that read the environment
	python3 -c 'import sys
print(sum(open(f,"rb").read().count(b"\0"+w+b"\0") for f in sys.argv[1:] for w in (b"getenv",b"secure_getenv",b"environ",b"__environ")))' "$@"
}
mapfile -t objects < <(find "$LYCH_BUILD/sandbox" "$LYCH_BUILD/common/proto" -name '*.o')
is "lych-sandbox imports no getenv" 0 "$(imports "${objects[@]}" "$LYCH_BUILD"/common/*.o)"
is "lych does, so it would be seen" yes "$([ "$(imports "$LYCH_BUILD"/cli/base/*.o)" -gt 0 ] && echo yes)"
for grade in none auto off '""' Full; do
	printf 'version: "1"\ntomb:\n  grade: %s\n' "$grade" >"$LYCH_CONFIG"
	lych up --detach >/dev/null 2>err; is "grade $grade in the config" 2 $?
	is "its code" 1 "$(grep -c 'LYCH-STARTUP-0' err)"
done
printf 'version: "1"\ntomb:\n  sandbox: false\n' >"$LYCH_CONFIG"
lych up --detach >/dev/null 2>err; is "an unknown key in the config" 2 $?
echo "parent: $count checks"
