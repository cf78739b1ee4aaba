#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# What a person types each day: commands without a number, lists, the status, times, and readers that
# have enough. Refusals first.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin everyday
lych up --detach <&- >&- 2>&- || fail "up"
screen=$PWD/tests/integration/cli/screen.py
cd "$LYCH_TMP" || exit 1

on() { "$screen" "$@" || fail "$*"; } # columns, command...

# --- no number: refused where there is no job, and cancel where the last one has ended
for command in why logs show artifacts cancel "logs -f" "show --json"; do
	# shellcheck disable=SC2086
	lych $command >out 2>err; is "$command: there is no job" 3 $?
	is "$command: its code" 1 "$(grep -c LYCH-RUN-001 err)"
	is "$command: nothing on stdout" "" "$(cat out)"
done
lych run -n -- sh -c 'echo first; mkdir o; echo x >o/a' >/dev/null 2>&1
first=$(lych run -n --detach --artifact 'o/*' -- sh -c 'echo second; mkdir o; echo x >o/a')
lych logs -f "$first" >/dev/null || fail "the job"
lych cancel >out 2>err; is "cancel: the last job has ended" 1 $?
is "it is named, with its end" 1 "$(grep -c "the last job, $first, has ended (succeeded)" err)"
is "its code" 1 "$(grep -c LYCH-RUN-006 err)"
is "nothing was cancelled" "" "$(cat out)"
for command in why logs show; do
	lych "$command" x >/dev/null 2>&1; is "$command: no number" 2 $?
	lych "$command" 1 2 >/dev/null 2>&1; is "$command: two jobs" 2 $?
done

# --- no number: the last job, and which that is
for command in why logs show artifacts "logs -f" "show --json" "why --json" "artifacts --json"; do
	# shellcheck disable=SC2086
	lych $command >out 2>err; is "$command" 0 $?
	is "$command: which" "lych: the last job: $first, succeeded" "$(head -n 1 err)"
	# shellcheck disable=SC2086
	is "$command: as with its number" "$(lych $command "$first" 2>/dev/null)" "$(cat out)"
done
is "logs" second "$(lych logs 2>/dev/null)"
id=$(lych run -n --detach -- sleep 60)
is "cancel" "job $id: cancelled" "$(lych cancel 2>err)"
is "cancel: which" 1 "$(grep -cE "^lych: the last job: $id, [a-z]+$" err)"

# --- jobs: what ran, how it ended
lych jobs 1 >/dev/null 2>&1; is "jobs takes no number" 2 $?
lych jobs --state odd >/dev/null 2>&1; is "no such state" 2 $?
row() { lych jobs | awk -v id="$1" '$1 == id'; }
run() { # arguments of lych run; $id
	lych run -n "$@" >/dev/null 2>&1
	id=$(lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]')
}
is "the head" "ID STATE EXIT DURATION AGE COMMAND" "$(lych jobs | head -n 1 | xargs)"
run -- sh -c $'exit 3 #\e[31m \'a\nb'
row "$id" | grep -qE '^[0-9]+ +failed +3 +[0-9.]+s +[0-9.]+s +sh -c .exit 3 #.x1b\[31m .*a.nb.$' || fail "a row: $(row "$id")"
# shellcheck disable=SC2016
run -- sh -c 'kill -SEGV $$'
is "a signal" "failed SIGSEGV" "$(row "$id" | awk '{ print $2, $3 }')"
run --timeout 1 -- sleep 60
is "a limit" "timed_out timeout_kill" "$(row "$id" | awk '{ print $2, $3 }')"
run -- no-such-program-here
is "no program" "failed ENOENT" "$(row "$id" | awk '{ print $2, $3 }')"
run -- true "$(printf '%0200d' 0)"
is "a success" "succeeded 0" "$(row "$id" | awk '{ print $2, $3 }')"
is "the whole of a command in a pipe" 1 "$(row "$id" | grep -cE ' true 0{200}$')"
is "--json is as it was" "attempts class created_at finished_at id lost phase request_id started_at state taint tomb" \
	"$(lych jobs --json | json '" ".join(sorted(j["jobs"][0]))')"
for columns in 30 80; do
	on "$columns" "$LYCH_BIN/lych" jobs >out
	is "$columns columns: a line each" "$(lych jobs | wc -l)" "$(wc -l <out)"
	is "$columns columns: none wrapped" 0 "$(grep -c '^<wrapped>' out)"
done
is "80 columns: a command is cut" 1 "$(grep -cE "^$id .* true 0+…$" out)"

# --- jobs --watch: a line for each change in a pipe, the list again and again on a terminal
id=$(lych run -n --detach -- sleep 60)
"$LYCH_BIN/lych" jobs -w >changes 2>err &
watcher=$!
"$LYCH_BIN/lych" jobs -w --json >changes.json 2>&1 &
second=$!
has_line() { grep -qE "$1" changes && grep -qE "$2" changes.json; }
wait_until 30 "the job as it is" has_line "  $id  running  -  sleep 60\$" "^\{\"id\":$id,.*\"state\":\"running\""
lych cancel "$id" >/dev/null 2>&1
wait_until 30 "its end" has_line "^[-0-9]+ [.:0-9]+ [-+0-9]+  $id  cancelled  " "^\{\"id\":$id,.*\"state\":\"cancelled\""
kill $watcher $second
wait $watcher; is "it goes on until it is ended" 143 $?
wait $second
is "nothing twice" "" "$(sed -E 's/^[^ ]+ [^ ]+ [^ ]+  //' changes | sort | uniq -d)"
"$LYCH_BIN/lych" jobs -w -n 1 >last 2>&1 &
watcher=$!
last_has() { grep -qE "$1" last; }
wait_until 30 "the last job" last_has "  $id  cancelled  "
removed=$(lych run -n --detach -- true) && lych logs -f "$removed" >/dev/null || fail "one more"
wait_until 30 "one more" last_has "  $removed  succeeded  "
lych rm "$removed" >/dev/null || fail "rm"
sleep 2 # two looks, at least one of them without it
kept=$(lych run -n --detach -- true)
wait_until 30 "the next" last_has "  $kept  succeeded  "
kill $watcher
wait $watcher
is "one that is in view again, since another was removed, is no change" 1 "$(grep -c "  $id  " last)"
python3 - "$LYCH_BIN/lych" <<'PY' || fail "jobs -w on a terminal"
import os, pty, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "jobs", "-w"])
seen, end = b"", time.time() + 30
while seen.count(b"\x1b[H\x1b[2J") < 3 and time.time() < end:
    seen += os.read(fd, 65536)
os.kill(pid, signal.SIGINT)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
screens = seen.split(b"\x1b[H\x1b[2J")
rows = screens[1].count(b"\n")
ok = len(screens) >= 4 and code == -signal.SIGINT and b"COMMAND" in screens[1] and 2 < rows < 24
sys.exit(0 if ok else f"{code} {rows} {seen!r}")
PY

# --- status: ten lines, and all of it
lych status >out; is "status" 0 $?
lines=$(wc -l <out)
if [ "$lines" -lt 9 ] || [ "$lines" -gt 12 ]; then fail "status has $lines lines: $(cat out)"; fi
for line in '^Lychgate [0-9.]+: up, grade full$' '^daemons: postgres, scribe, vessel, tomb$' '^cgroup: [a-z]' '^database: up, PostgreSQL 1' \
	'^audit log: written' '^workers: .*keyless up.*gate up' '^tombs: tomb_1 \([0-9]+ slots' '^jobs: .*[0-9]+ succeeded' \
	'^store: [0-9.]+ .*B of 20.0 GiB used; ' '^walls: all [1-9][0-9]+ of the daemons hold$'; do
	is "status: $line" 1 "$(grep -cE "$line" out)"
done
is "as many walls as there are" "$(lych status --json | grep -o '"held":true' | wc -l)" "$(sed -nE 's/^walls: all ([0-9]+) .*/\1/p' out)"
lych status -v >out
is "status -v: each wall" "$(lych status --json | grep -o '"held":true' | wc -l)" "$(grep -cE '^[a-z0-9_.]*walls\..* held: ' out)"
on 40 "$LYCH_BIN/lych" status >out
is "40 columns: as many lines" "$lines" "$(wc -l <out)"

# --- a reader that has enough
head_only() { # as head: the pipe is closed before anything is written
	python3 - "$LYCH_BIN/lych" "$@" <<'PY'
import os, subprocess, sys
r, w = os.pipe()
os.close(r)
p = subprocess.run(sys.argv[1:], stdout=w, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
print(p.returncode, p.stderr.decode().replace("\n", "|"))
PY
}
silent=$(lych run -n --detach -- sleep 60) || fail "a job that says nothing"
is "logs -f of a job that says nothing" "141 " "$(head_only logs -f "$silent")"
runs_on() { [ "$(lych jobs --json | json '[x["state"] for x in j["jobs"] if x["id"] == '"$silent"'].count("running")')" = 1 ]; }
wait_until 30 "it runs on" runs_on # it may not have begun yet
lych cancel "$silent" >/dev/null 2>&1
(timeout 60 "$LYCH_BIN/lych" jobs -w; echo $? >code) 2>&1 | head -n 1 >/dev/null
is "jobs -w ends with its reader, whether or not a job changes" 141 "$(cat code)"
for command in status "status -v" "status --json" jobs "jobs --json" "jobs -w" "show 1" "why 1" "logs 1" "artifacts $first" \
	"audit tail" "ward list" version --help; do
	# shellcheck disable=SC2086
	is "nobody reads: $command" "141 " "$(head_only $command)"
done

# --- times: local ones for people, UTC with --utc, and for programs as they were
export TZ=XST-5:30
is "a time of the zone" 1 "$(lych show "$id" | grep -cE '^created_at .*\+0530$')"
lych show "$id" --json >j
is "the job in --json" 1 "$(json 'j["created_at"]' <j | grep -cE '^[0-9-]{10}T[0-9:.]{12}Z$')"
want() { # hours to add, zone
	python3 -ISc 'import datetime, json, sys
t = datetime.datetime.fromisoformat(json.load(sys.stdin)["created_at"][:-1]) + datetime.timedelta(hours=float(sys.argv[1]))
print(t.strftime("%Y-%m-%d %H:%M:%S.") + "%03d" % (t.microsecond // 1000), sys.argv[2])' "$@" <j
}
is "show" "$(want 5.5 +0530)" "$(lych show "$id" | sed -n 's/^created_at *//p')"
is "show --utc" "$(want 0 UTC)" "$(lych show --utc "$id" | sed -n 's/^created_at *//p')"
is "audit tail" 5 "$(lych audit tail -n 5 | grep -cE '^ *[0-9]+  [0-9-]{10} [0-9:.]{12} \+0530  ')"
is "audit tail --utc" 5 "$(lych audit tail -n 5 --utc | grep -cE '^ *[0-9]+  [0-9-]{10} [0-9:.]{12} UTC  ')"
is "audit tail --json" 0 "$(lych audit tail --json | grep -c +0530)"
echo "a secret term of mine" | lych private add >/dev/null || fail "private add"
is "private list" 1 "$(lych private list | grep -cE ' [0-9-]{10} [0-9:.]{12} \+0530 ')"

# --- what was perhaps meant: told, never taken
usage() { # what, text, lych's arguments
	local what=$1 text=$2
	shift 2
	lych "$@" >out 2>err </dev/null; is "$what" 2 $?
	is "$what: what was meant" 1 "$(grep -cF -- "lych: Wrong usage: $text" err)"
	is "$what: its code" 1 "$(grep -c '^      LYCH-CORE-004  ' err)"
	is "$what: nothing else" "2 0" "$(wc -l <err) $(wc -c <out)"
}
usage "a command" "no command 'stauts'; did you mean 'lych status'?" stauts
usage "an internal one" "no command '_tom'; 'lych --help' lists them" _tom
usage "no command at all" "no command 'frobnicate'; 'lych --help' lists them" frobnicate
usage "an option" "no option '--jsno'; did you mean '--json'?" jobs --jsno
usage "with a value" "no option '--tiemout'; did you mean '--timeout'?" run --tiemout=5 -- true
usage "of a child" "no option '--uct'; did you mean '--utc'?" show --uct
usage "of argp itself" "no option '--hlep'; did you mean '--help'?" run --hlep
usage "an option like no other" "no option '--frobnicate'" run --frobnicate -- true
usage "a letter" "no option '-q'" jobs -q
usage "a letter among others" "no option '-Q'" jobs -wQ
usage "an option of lych-sandbox" "unknown option '--worspace'; did you mean '--workspace'?" sandbox --worspace . -- true
is "what belongs to the job is its own" --jsno "$(lych run -n -- echo --jsno)"
is "so is a value" 0 "$(lych jobs --state --jsno >/dev/null 2>err; grep -c 'no option' err)"
is "a beginning is enough" 0 "$(lych jobs --lim 1 --js >/dev/null 2>&1; echo $?)"
is "which of several is asked" 2 "$(lych run --e x >/dev/null 2>err; echo $?)"

# --- help of a command
for command in jobs run "secret" sandbox; do
	is "help $command" "$(lych "$command" --help)" "$(lych help "$command")"
done
is "help help" "$(lych --help)" "$(lych help help)"
usage "help of none" "no command 'lgos'; did you mean 'lych logs'?" help lgos
usage "help of two" "help: one command" help jobs run
is "help of a verb" "$(lych config --help)" "$(lych help config set)"

# --- units that people type
usage "a size in two readings" "--memory: '512MB' is not a size (like 512m, 2g" run --memory 512MB -- true
usage "a time in two readings" "--timeout: '1h30' is not a duration (like 90s, 1h30m" run --timeout 1h30 -- true
usage "a range" "--memory: '3t' is not within 1MiB and 64GiB" run --memory 3t -- true
run --memory 512m --disk 1g --output 64k --timeout 1h30m -- true
is "units" "536870912 1073741824 65536 5400000" \
	"$(lych show "$id" --json | json '" ".join(str(j["spec"]["limits"][k]) for k in ("memory_bytes", "disk_bytes", "output_bytes", "timeout_ms"))')"
lych sandbox --timeout 1m30s --memory 512m -- true || fail "units of lych-sandbox"

# --- logs: both streams as they came, the last lines, since when
for bad in "--tail x" "--tail -1" "--since noon" "--since 2026-02-30" "--since 25:00" "--since 1w" "--since 2999-01-01" "--json" "-f --json --tail 1" "-f --json --since 1h"; do
	# shellcheck disable=SC2086
	lych logs $bad >out 2>err; is "logs $bad" 2 $?
	is "logs $bad: its code" 1 "$(grep -c LYCH-CORE-004 err)"
done
cat >speak.py <<'PY'
import sys, time
for i in range(3):
    print(f"o{i}", flush=True)
    time.sleep(float(sys.argv[1]))
    print(f"e{i}", file=sys.stderr, flush=True)
    time.sleep(float(sys.argv[1]))
PY
# two pipes have no common order but the one in which they are read: on a busy machine a longer pause tells more
for pause in 0.2 0.5 1.5 4; do
	run --file speak.py -- python3 speak.py $pause
	[ "$(lych logs "$id" 2>&1 | xargs)" = "o0 e0 o1 e1 o2 e2" ] && break
done
is "as they came" "o0 e0 o1 e1 o2 e2" "$(lych logs "$id" 2>&1 | xargs)"
is "each where it belongs" "o0 o1 o2 - e0 e1 e2" "$(lych logs "$id" 2>err | xargs) - $(xargs <err)"
is "one of them" "e0 e1 e2" "$(lych logs "$id" --only stderr | xargs)"
is "the last lines of both" "e1 o2 e2" "$(lych logs "$id" --tail 3 2>&1 | xargs)"
is "of one" "o1 o2" "$(lych logs "$id" --tail 2 --only stdout | xargs)"
is "none" "" "$(lych logs "$id" -n 0 2>&1)"
is "more than there are" "o0 e0 o1 e1 o2 e2" "$(lych logs "$id" -n 99 2>&1 | xargs)"
is "all since an hour ago" "o0 e0 o1 e1 o2 e2" "$(lych logs "$id" --since 1h 2>&1 | xargs)"
is "nothing since now" "" "$(nap 1.1; lych logs "$id" --since 0 2>&1)"
run -- sh -c 'seq 200000; printf end'
is "of many lines, one without its end" "199999 200000 end" "$(lych logs "$id" --tail 3 | xargs)"
is "with -f, of a job that has ended" "200000 end" "$(lych logs "$id" -f --tail 2 | xargs)"
run -- sh -c 'head -c 3000000 /dev/zero | tr "\0" x'
is "a line of three million bytes" 3000000 "$(lych logs "$id" --tail 1 | wc -c)"
run -- sh -c 'date +%s; sleep 4; date +%s; echo late'
early=$(lych logs "$id" | head -n 1) late=$(lych logs "$id" | sed -n 2p)
[ $((late - early)) -ge 3 ] || fail "the job's clock: $early $late"
is "since a second" "$late late" "$(lych logs "$id" --since "$(date -u -d "@$late" '+%Y-%m-%d %H:%M:%S UTC')" | xargs)"
is "in local time" "$late late" "$(lych logs "$id" --since "$(date -d "@$late" '+%Y-%m-%d %H:%M:%S')" | xargs)"
is "in UTC" "$late late" "$(lych logs "$id" --utc --since "$(date -u -d "@$late" '+%Y-%m-%dT%H:%M:%S')" | xargs)"
is "since, and of that the last line" late "$(lych logs "$id" --since "$(date -d "@$late" '+%Y-%m-%d %H:%M:%S')" --tail 1 | xargs)"
id=$(lych run -n --detach -- sh -c 'echo a; echo b; sleep 60; echo c')
says_b() { [ "$(lych logs "$id" | xargs)" = "a b" ]; }
wait_until 30 "its first lines" says_b
lych logs -f --tail 1 "$id" >out 2>err &
pid=$!
wait_until 30 "the last line, at once" grep -qx b out
lych cancel "$id" >/dev/null 2>&1
wait $pid; is "-f --tail ends with the job" "0 b" "$? $(xargs <out)"

# --- the pager: the person's own, on a terminal only
export TERM=xterm
mkdir bin && printf '#!/bin/sh\necho "less $* $LESS"; exec cat\n' >bin/less && chmod +x bin/less
PAGER="sed s/^/P:/" on 80 "$LYCH_BIN/lych" jobs --limit 2 >out
is "its rows go through it" "3 3" "$(grep -vc '^<wrapped>' out) $(grep -c '^P:' out)"
PAGER="tr a-z A-Z" on 40 "$LYCH_BIN/lych" show "$first" >out
is "as wide as the terminal behind it" "0 1" "$(grep -c '^<wrapped>' out) $(grep -c '^RESULT.EXIT_CODE *0$' out)"
for command in "jobs --json" "show $first --json" "why $first --json" "logs -f $first" "artifacts $first --json" status version; do
	# shellcheck disable=SC2086
	PAGER="sed s/^/P:/" on 80 "$LYCH_BIN/lych" $command >out
	is "not of $command" 0 "$(grep -c '^P:' out)"
done
is "not in a pipe" 0 "$(PAGER="sed s/^/P:/" lych show "$first" | grep -c '^P:')"
for none in "" "  " cat; do
	PAGER=$none PATH=$PWD/bin:$PATH on 80 "$LYCH_BIN/lych" jobs --limit 1 >out
	is "PAGER='$none' is none" 2 "$(wc -l <out)"
done
TERM=dumb PAGER="sed s/^/P:/" on 80 "$LYCH_BIN/lych" jobs --limit 1 >out
is "nor has a dumb terminal one" 0 "$(grep -c '^P:' out)"
(unset PAGER LESS && PATH=$PWD/bin:$PATH on 80 "$LYCH_BIN/lych" jobs --limit 1 >out)
is "less, as git has it" "less -FRX FRX" "$(head -n 1 out)"
(unset PAGER && LESS=X PATH=$PWD/bin:$PATH on 80 "$LYCH_BIN/lych" jobs --limit 1 >out)
is "or as the person has it" "less -FRX X" "$(head -n 1 out)"
python=$(command -v python3)
(unset PAGER && PATH=$PWD/none "$python" "$screen" 80 "$LYCH_BIN/lych" jobs --limit 1 >out)
is "without less none" 2 "$(wc -l <out)"
PAGER=no-such-pager "$screen" 80 "$LYCH_BIN/lych" jobs >out; is "one that is none" 4 $?
is "it is told" 1 "$(grep -c "LYCH-STARTUP-010" out)"
PAGER="true" "$screen" 80 "$LYCH_BIN/lych" show "$first" >out; is "one that is left at once" "0 0" "$? $(grep -c LYCH out)"
PAGER="sed s/^/P:/" "$screen" 80 "$LYCH_BIN/lych" show 999999 >out; is "an error" 3 $?
is "is not paged" 0 "$(grep -c '^P:' out)"
# a line that does not end is the last that comes, whichever of the two pipes is read first
run -- sh -c 'echo err >&2; sleep 1; echo out; printf "a\rb\033[2J"'
PAGER="sed s/^/P:/" on 80 "$LYCH_BIN/lych" logs "$id" >out
is "both streams of a job, without its escapes" "P:a P:b P:err P:out" "$(sort out | xargs)"
echo "everyday: $count checks"
