#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# lych run as a person meets it: output, exit codes, time-outs, cancel, request ids, inputs and
# artifacts, and 200 jobs at once with 8 running. Refusals first.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
marked=$PWD/tests/support/marked
lych_begin run
lych up --detach <&- >&- || fail "up"
cd "$LYCH_TMP" || exit 1

# --- refusals
lych run >/dev/null 2>&1; is "no command" 2 $?
lych run --timeout x -- true >/dev/null 2>&1; is "bad --timeout" 2 $?
lych run -n --env LD_PRELOAD=/x -- true >/dev/null 2>err; is "loader hook" 2 $?
is "its code" 1 "$(grep -c LYCH-SPEC-008 err)"
echo x >f
lych run -n --file f=../f -- true >/dev/null 2>err; is "path upwards" 2 $?
is "its code" 1 "$(grep -c LYCH-SPEC-006 err)"
lych run -n --memory 64TiB -- true >/dev/null 2>&1; is "limit above the ceiling" 2 $?
lych run -n -- no-such-program-here >/dev/null 2>err; is "a missing program" 127 $?
is "its code" 1 "$(grep -c LYCH-SANDBOX-010 err)"
lych run -n -- /etc >/dev/null 2>err; is "a directory as a program" 126 $?
lych run -n -- sh -c 'exit 127' >/dev/null 2>err; is "127 of the job's own" 127 $?
is "is not a missing program" 0 "$(grep -c LYCH-SANDBOX-010 err)"
is "a pipe whose reader ends, ends its writer" 100000 "$(lych run -n -- sh -c 'yes | head -c 100000 | wc -c' 2>&1)"
lych show 999999 >/dev/null 2>err; is "unknown job" 3 $?
is "its code" 1 "$(grep -c LYCH-RUN-001 err)"
lych show abc >/dev/null 2>&1; is "bad id" 2 $?
lych run -n --env A=1 --env A=2 -- true >/dev/null 2>err; is "a variable twice" 2 $?
is "its code" 1 "$(grep -c 'LYCH-SPEC-008' err)"
is "its name" 1 "$(grep -c -e '--env A is given twice' err)"
lych run -n --out got -- true >/dev/null 2>&1; is "--out without --artifact" 2 $?
lych run -n -d -a 'o/*' --out early -- true >out 2>err; is "--out with --detach" 2 $?
is "it says how to fetch them" 1 "$(grep -c 'lych artifacts -o DIR JOB' err)"
lych run -n -a 'o/*' --out early -o late -- true >/dev/null 2>err; is "--out twice" 2 $?
is "both are named" 1 "$(grep -c 'twice: early and late' err)"
is "nothing was made or begun" 0 "$(find early late out -size +0 2>/dev/null; find early late 2>/dev/null | wc -l)"
lych artifacts 1 -o early -o late >/dev/null 2>&1; is "artifacts: --out twice" 2 $?
lych budget 999999 >/dev/null 2>err; is "the budget of an unknown job" 3 $?
is "its code" 1 "$(grep -c LYCH-RUN-001 err)"
lych budget >/dev/null; is "the budget of the day" 0 $?
lych run -n --memory 1 -- true >/dev/null 2>err; is "too little memory" 2 $?
is "the range is the true one" 1 "$(grep -c 'limits.memory_bytes: not within 1048576 to 68719476736$' err)"
for limit in memory disk; do
	lych run -n --$limit 0 -- true >/dev/null 2>err; is "--$limit 0" 2 $?
	is "--$limit 0: the least is the true one" 1 "$(grep -cE -e "--$limit: '0' is not within (1MiB|64KiB) and" err)"
done
is "no document is named that has none" 0 "$(grep -c PROTOCOL.md err)"
for _ in 1 2; do XDG_CONFIG_HOME=$LYCH_TMP/other lych config init >/dev/null 2>err; done; is "a second codex.yaml" 1 $?
is "no option is named that it does not have" 1 "$(grep -c 'Give another name, or move it away' err)"
lych logs 1 --json >/dev/null 2>&1; is "logs --json without -f" 2 $?
XDG_RUNTIME_DIR=$LYCH_TMP/none lych jobs >/dev/null 2>err; is "nobody answers" 4 $?

# --- the issue's examples
# shellcheck disable=SC2016
is "stdin goes in" 42 "$(echo 20 22 | lych run -- awk '{print $1+$2}')"
lych run -n -- sh -c 'exit 7' 2>err; is "the job's exit code" 7 $?
is "and no word of ours about it" "" "$(cat err)"
is "an exit code's class" exit "$(lych show --json 2>/dev/null | json 'j["class"]')"
lych run -n -- sh -c 'kill -SEGV $$' 2>/dev/null; is "a signal" 139 $?
start=$(date +%s%3N)
lych run -n --timeout 1 -- sleep 60 2>err; is "a time-out" 124 $?
took=$(($(date +%s%3N) - start))
[ "$took" -lt 10000 ] || fail "the time-out took $took ms"
is "its class is told" 1 "$(grep -c 'class timeout_kill' err)"
is "its code too" 1 "$(grep -c LYCH-EXEC-002 err)"
is "both streams" "out err" "$(lych run -n -- sh -c 'echo out; echo err >&2' 2>err2) $(cat err2)"

# --- what leaves by other ways, from a sandbox of the spawner's
hard=1
[ "$(ulimit -H -c)" != 0 ] || hard=0
is "its crash starts no core handler" "$hard $hard" "$(lych run -n -- prlimit --core --raw --noheadings -o SOFT,HARD)"
is "no names of keys, no boot options" "0" "$(lych run -n -- cat /proc/keys /proc/cmdline | wc -c)"

# --- on a terminal, followed and afterwards
cat >terminal.py <<'END'
import os, pty, sys
def read(fd):
    got = os.read(fd, 4096)
    shown.append(got)
    return got
shown = []
os.close(1), os.open("/dev/null", os.O_WRONLY)
code = pty.spawn(sys.argv[1:], read)
print(repr(b"".join(shown))[2:-1], file=sys.stderr)
END
shows='rm -rf /\r\nlsa\\x08b\x1b[0m'
# shellcheck disable=SC2016
is "a terminal is shown what was written over, and what was concealed" "$shows" \
	"$(python3 terminal.py "$LYCH_BIN/lych" run -n -- printf 'rm -rf /\r\033[2Kls\033[8ma\bb' 2>&1 </dev/null)"
last=$(lych jobs --json | json 'j["jobs"][0]["id"]')
is "so it is afterwards" "$shows" "$(python3 terminal.py "$LYCH_BIN/lych" logs "$last" 2>&1 </dev/null)"
is "a pipe gets the bytes" "$(printf 'rm -rf /\r\033[2Kls\033[8ma\bb' | sha256sum)" "$(lych logs "$last" | sha256sum)"

is "output is marked as a job's own" "True" "$(lych run -n --json -- echo hi 2>/dev/null | python3 -ISc '
import json, sys
print(all(e["output"]["untrusted"] for e in map(json.loads, sys.stdin) if e["event"] == "output"))')"

# --- the whole of it as one object
sum() { # EXPRESSION OVER j, lych run's arguments
	local what=$1
	shift
	lych run -n --json --summary "$@" 2>err | json "$what"
}
is "one object" "3 3 failed exit True" "$(sum 'j["exit_code"], j["job"]["result"]["exit_code"], j["job"]["state"], j["job"]["class"], "stdout" in j["untrusted"]' -- sh -c 'exit 3' | tr -d "(),'")"
is "both streams in it" "out err False False" "$(sum 'j["stdout"], j["stderr"], j["stdout_cut"], j["stderr_cut"]' -- sh -c 'printf out; printf err >&2' | tr -d "(),'")"
is "the code is the job's too" 7 "$(lych run -n --json --summary -- sh -c 'exit 7' >/dev/null; echo $?)"
is "bytes that are no text" "AP8=" "$(sum 'j["stdout_base64"]' -- printf '\0\377')"
is "more than it takes, cut between letters" "1048575 True" "$(sum 'len(j["stdout"].encode()), j["stdout_cut"]' -- python3 -c 'print("\u20ac" * 400000, end="")' | tr -d '(),')"
lych run --summary -- true >/dev/null 2>err; is "--summary without --json" 2 $?
lych run --json --summary -d -- true >/dev/null 2>err; is "--summary with --detach" 2 $?

# --- bytes
head -c 300000 /dev/urandom >blob
is "binary stdin, above what fits the spec" "$(sha256sum <blob)" "$(lych run -- sha256sum <blob)"
head -c 1000 /dev/urandom >small
is "binary stdin in the spec" "$(sha256sum <small)" "$(lych run -- sha256sum <small)"
is "binary output" "$(sha256sum <blob)" "$(lych run -- cat <blob | sha256sum)"
is "--file small and large" "$(cat small blob | sha256sum)" \
	"$(lych run -n --file small=d/s --file blob -- sh -c 'cat d/s blob' | sha256sum)"
mkdir -p tree/sub && echo in >tree/sub/f && ln -s sub/f tree/link && ln -s /etc/passwd tree/out
printf '#!/bin/sh\necho ran\n' >tree/x.sh && chmod 755 tree/x.sh
is "--dir" "in in ran" "$(lych run -n --dir tree -- sh -c 'echo $(cat sub/f) $(cat link) $(./x.sh)' 2>err)"
is "a link that leads out is left out" 1 "$(grep -c 'left out: out' err)"
lych run -n --dir tree -- sh -c 'rm -rf ./*; echo new >n' 2>/dev/null
if [ -e tree/n ] || [ ! -e tree/sub/f ]; then fail "the user's tree was touched"; fi
# shellcheck disable=SC2016
is "--env NAME" "here= there=t w x=" "$(ly_here='' Ly_There='t w' LY_X=1 lych run -n --env ly_here --env Ly_There -- sh -c 'echo here=$ly_here there=$Ly_There x=$LY_X')"
lych run -n --env LY_NOT_SET -- true >/dev/null 2>err; is "one that is not set here" 2 $?
is "its name" 1 "$(grep -c -e '--env LY_NOT_SET: it is not set here' err)"
Https_Proxy=http://me:pw@127.0.0.1:9 lych run -n --env Https_Proxy -- true >/dev/null 2>err; is "a password in a URL, passed on" 1 $?
is "its name and not its value" "1 0" "$(grep -c -e '--env Https_Proxy: what it is here holds a password or token in a URL' err) $(grep -c me:pw err)"
# shellcheck disable=SC2016
is "one that is written" "p=http://me:pw@127.0.0.1:9" "$(lych run -n --env P=http://me:pw@127.0.0.1:9 -- sh -c 'echo p=$P' 2>err)"
lych run -n --env lychgate_broker= -- true >/dev/null 2>err; is "Lychgate's own, in lower case" 2 $?
LD_PRELOAD='' lych run -n --env LD_PRELOAD -- true >/dev/null 2>err; is "a loader's, passed on" 2 $?
# shellcheck disable=SC2016
is "Python's output comes as it is printed" 1 "$(lych run -n -- sh -c 'echo $PYTHONUNBUFFERED')"
A=1 lych run -n --env A=2 --env A -- true >/dev/null 2>err; is "passed on and set" 2 $?
is "--env" "v=1" "$(lych run -n --env V=1 -- sh -c 'echo v=$V')"
is "nothing is inherited" "" "$(SECRET=1 lych run -n -- sh -c 'echo $SECRET')"

# --- a word on slips, behind what the job said itself
says() { # what, exit code, words, lych run's arguments
	local what=$1 want=$2 words=$3
	shift 3
	lych run -n "$@" >/dev/null 2>err; is "$what: its exit code" "$want" $?
	grep -q -e "$words" err || fail "$what: no word on it: $(cat err)"
	count=$((count + 1))
}
echo 'print(1)' >agent.py && echo '#!/bin/sh' >tool && chmod 755 tool
says "a line that no shell reads" 127 "lych run -- sh -c 'LINE'" -- 'echo hi there'
says "a program that is not there" 127 'nothing was copied into the job' -- no-such-program-here
says "a program that is here" 127 './tool is here, but nothing was copied.*--file ./tool' -- ./tool
says "a script that is here" 2 'agent.py is here, but nothing was copied' -- python3 agent.py
says "a glob without a match" 0 "artifact o/\*: the job left no such file" -a 'o/*' -a 'p/**' -- sh -c 'mkdir -p o/d p && echo x >o/d/f && echo x >p/f'
is "nor is one named that has a match" 0 "$(grep -c 'p/' err)"
says "a shell without a terminal" 0 'a job has no terminal' -- sh
is "with a terminal of its caller's" 1 "$(python3 terminal.py "$LYCH_BIN/lych" run -- python3 2>&1 </dev/null | grep -c 'a job has no terminal')"
lych run -n --file agent.py -- python3 agent.py >/dev/null 2>err; is "none where all is well" "0 " "$? $(cat err)"
lych run -n --json -- no-such-program-here >out 2>err; is "none in JSON" 0 "$(cat out err | grep -c 'nothing was copied')"

# --- artifacts
newest() { lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]'; }
id=$(newest)
lych run -n --artifact 'o/**' --out missing/got -- true >/dev/null 2>err; is "a place that can't be made" 1 $?
is "it is named" 1 "$(grep -c 'missing/got: No such file' err)"
is "so is what is missing" 1 "$(grep -c 'the directory that it would be in is missing' err)"
is "and what to do" 1 "$(grep -c 'LYCH-STORE-008.*mkdir -p' err)"
ln -s nowhere dangling
for place in "f:not a directory" "dangling:a link to something that is not there" ":the name is empty" "f/x:Not a directory"; do
	lych run -n --artifact 'o/**' --out "${place%%:*}" -- true >/dev/null 2>err; is "a place that is none: $place" 1 $?
	is "why: $place" 1 "$(grep -c "${place#*:}\$" err)"
	is "its code: $place" 1 "$(grep -c LYCH-STORE-008 err)"
done
is "and there is no job" "$id" "$(newest)"
lych run -n --artifact 'o/**' --out got -- sh -c 'mkdir -p o/p; echo a >o/a; echo b >o/p/b; ln -s /etc/passwd o/l' 2>/dev/null
is "artifacts come back" "a b" "$(cat got/o/a got/o/p/b | tr '\n' ' ' | sed 's/ $//')"
is "a symlink does not" 0 "$(find got -type l | wc -l)"
is "their mode" 644 "$(stat -c %a got/o/a)"
id=$(newest)
lych artifacts "$id" --out got >/dev/null 2>err; is "nothing is overwritten" 1 $?
is "its code" 1 "$(grep -c LYCH-STORE-006 err)"
is "its whole name" 1 "$(grep -c ': got/o/a$' err)"
lych run -n --artifact 'o/**' --out got -- sh -c 'mkdir o; echo c >o/a; exit 9' >/dev/null 2>err
is "the job's own code wins" 9 $?
is "the conflict is told" 1 "$(grep -c LYCH-STORE-006 err)"
is "and how to have them all the same" 1 "$(grep -c "lych artifacts -o DIR $(newest)'" err)"
lych budget "$id" >/dev/null; is "the budget of a job that used nothing" 0 $?
lych run -n --artifact 'l*' --out links -- ln -s /etc/passwd l 2>err; is "a link asked for" 0 $?
is "what does not come back is told" 1 "$(grep -c '^lych: not fetched: l: ' err)"
lych artifacts "$id" --out got --force >/dev/null 2>&1; is "but with --force" 0 $?
rm -rf got && mkdir got && ln -s "$HOME" got/o
lych artifacts "$id" --out got >/dev/null 2>&1 && fail "a symlink was followed"
is "nothing went through it" 0 "$(find "$HOME" -name a | wc -l)"

# --- an output that cannot be written, is closed, is slow
for json in "" --json; do
	# shellcheck disable=SC2086
	timeout 20 "$LYCH_BIN/lych" run -n $json -- echo hi >/dev/full 2>err; is "a full stdout $json" 1 $?
	is "its code $json" 1 "$(grep -c LYCH-CORE-006 err)"
done
lych jobs --json >/dev/full 2>err; is "a full stdout of a list" 1 $?
is "its code" 1 "$(grep -c LYCH-CORE-006 err)"
for json in "" --json; do
	# shellcheck disable=SC2086
	lych run -n $json -- echo hi >&- 2>err; is "a closed stdout $json" 1 $?
	is "its code $json" 1 "$(grep -c LYCH-CORE-006 err)"
done
for list in "ward list" "jobs --json" "show $id" "logs $last" version --help; do
	# shellcheck disable=SC2086
	lych $list >&- 2>err; is "a closed stdout: $list" 1 $?
	is "its code: $list" 1 "$(grep -c LYCH-CORE-006 err)"
done
lych run -n -- true >&-; is "a closed stdout that nothing is written to" 0 $?
lych run -- sh -c 'cat; exit 3' <&- >&- 2>&-; is "all three closed" 3 $?
is "a closed stdin is an empty one" 0 "$(lych run -- wc -c <&-)"
is "a non-blocking stdout" 3000000 "$(python3 -c 'import os, subprocess, sys, time
r, w = os.pipe()
os.set_blocking(w, False)
p = subprocess.Popen(sys.argv[1:], stdout=w)
os.close(w)
time.sleep(1)
n = 0
while b := os.read(r, 65536):
    n += len(b)
print(n if p.wait() == 0 else "failed")' "$LYCH_BIN/lych" run -n -- head -c 3000000 /dev/zero)"

# --- request ids
one=$(lych run -n --detach --request-id same-1 -- echo x)
two=$(lych run -n --detach --request-id same-1 -- echo x)
is "same id and content: one job" "$one" "$two"
lych run -n --detach --request-id same-1 -- echo y >/dev/null 2>err; is "other content" 1 $?
is "its code" 1 "$(grep -c LYCH-RUN-002 err)"

# --- cancel proves the tree gone
mark=lych-run-$$-$RANDOM
id=$(lych run -n --detach -- sh -c 'trap "" TERM; setsid sh -c "sleep 60; :" "$0" & sleep 60; :' "$mark")
wait_until 60 "it does not run" lych_job_is "$id" running
is "cancel" "job $id: cancelled" "$(lych cancel "$id" 2>/dev/null)"
is "its tree is gone" True "$(lych show "$id" --json | json 'j["result"]["tree_gone"]')"
is "nobody sleeps on" "" "$("$marked" "$mark")"
"$LYCH_BIN/lych" run -n -- sleep 77 2>/dev/null &
pid=$!
newest_runs() { [[ $(lych jobs --limit 1 --json) == *'"state":"running"'* ]]; }
wait_until 60 "it does not run" newest_runs
kill -TERM $pid
wait $pid; is "a signal cancels" 130 $?

# --- logs
id=$(lych run -n --detach -- sh -c 'echo one; sleep 0.5; echo two; echo e >&2')
is "logs -f" "one two" "$(lych logs -f "$id" 2>/dev/null | tr '\n' ' ' | sed 's/ $//')"
is "logs" "one two" "$(lych logs "$id" 2>/dev/null | tr '\n' ' ' | sed 's/ $//')"
is "logs --only stderr" e "$(lych logs "$id" --only stderr)"
is "logs -f --only stderr" e "$(lych logs -f "$id" --only stderr 2>/dev/null)"
is "logs -f --only stdout" "one two" "$(lych logs -f "$id" --only stdout 2>&1 | tr '\n' ' ' | sed 's/ $//')"
is "each limit in a row" 1 "$(lych show "$id" | grep -cE '^result\.walls\.limits\.memory[a-z_]* +[0-9]+ by [a-z]')"
is "no wall is cut" 0 "$(lych show "$id" | grep -c …)"
is "the layers to their end" 1 "$(lych show "$id" | grep -cE '^result\.walls\.layers +\["fds",.*"seccomp".*\]$')"
is "a daemon's walls in rows" 0 "$(lych status -v | grep -c …)"

# --- 200 at once, 8 running
ids=$(seq 200 | xargs -P 16 -I N "$LYCH_BIN/lych" run -n --detach --request-id "many-N" -- sh -c 'echo done-N')
is "200 jobs were accepted" 200 "$(sort -u <<<"$ids" | wc -l)"
for _ in $(seq 600); do
	left=$(lych status --json | json 'sum(v for k,v in j["vessel"]["queue"]["jobs"].items() if k in ("queued","running","preparing","cancelling"))')
	[ "$left" = 0 ] && break
	nap 0.1
done
is "all ended" 0 "$left"
ok=0
for id in $ids; do
	lych_job "$id"
	[ "$job_state $job_attempts" = "succeeded 1" ] && ok=$((ok + 1))
done
is "each succeeded, none ran twice" 200 "$ok"
is "the queue's invariants hold" 0 "$(lych_violations)"
echo "run: $count checks"
