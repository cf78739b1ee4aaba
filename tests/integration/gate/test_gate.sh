#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# lych gate scan and lych private with the real services: what is found is told by family and
# place, never the text; a registered term counts at once and is nowhere in clear; the gate's
# worker killed: refused, then there again, with the terms.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin gate
lych up --detach <&- >&- 2>&- || fail "up"
cd "$LYCH_TMP" || exit 1

token=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
secret="Project Nachtigall-$$"

# --- refusals
lych gate scan >/dev/null 2>&1; is "no file" 2 $?
lych gate read x >/dev/null 2>&1; is "no such verb" 2 $?
lych gate scan /nonexistent >/dev/null 2>&1; is "no such file: not what 1 means" 3 $?
lych private >/dev/null 2>&1; is "no verb" 2 $?
lych private add </dev/null >/dev/null 2>&1; is "nothing to add" 2 $?
lych private add x --file y >/dev/null 2>&1; is "two things to add" 2 $?
echo abc | lych private add >/dev/null 2>&1; is "a term that is too short" 2 $?
head -c 5000 /dev/zero | tr '\0' a | lych private add >/dev/null 2>&1; is "a term that is too long" 1 $?
for form in "$secret" - "-- $secret"; do
	# shellcheck disable=SC2086
	out=$(echo abcdefgh | lych private add $form 2>&1); is "a term in the arguments" 2 $?
	grep -q 'read from stdin' <<<"$out" || fail "it is not said why: $out"
	! grep -q Nachtigall <<<"$out" || fail "the term is said again: $out"
done
is "and nothing was registered" "[]" "$(lych private list --json | json 'j["entries"]')"
lych private remove 99 >/dev/null 2>&1; is "nothing of that id" 3 $?
head -c 9000000 /dev/zero >big
lych gate scan big >/dev/null 2>&1; is "a file that is too large" 1 $?

# --- scan
printf 'a line\nthe key is %s, mail to john.smith@corp.io\n' "$token" >text
out=$(lych gate scan text); is "exit code when refused" 1 $?
grep -q 'score 1.00: refuse' <<<"$out" || fail "no verdict in: $out"
grep -q '^token .*18 .*40' <<<"$out" || fail "no token at 18, 40 bytes long, in: $out"
! grep -q "$token\|john.smith" <<<"$out" || fail "the text is shown"
out=$(lych gate scan --json - <text)
is "families" "['token', 'email']" "$(json '[f["family"] for f in j["findings"]]' <<<"$out")"
is "offset of the address" 68 "$(json 'j["findings"][1]["offset"]' <<<"$out")"
echo "nothing to see here" >plain
lych gate scan plain >/dev/null; is "exit code when it passes" 0 $?

# --- terms and files
echo "about $secret and others" >about
lych gate scan about >/dev/null; is "before it is registered" 0 $?
id=$(printf '%s\n' "$secret" | lych private add --name nightingale --json | json 'j["id"]')
out=$(lych gate scan about --json); is "a registered term" 1 $?
is "its family" exact "$(json 'j["findings"][0]["family"]' <<<"$out")"
printf %s "${secret^^}" | lych private add >/dev/null 2>&1; is "registered twice" 2 $?
seq 1000 1400 | sed 's/^/the private line number /' >doc
fileid=$(lych private add --file doc --json | json 'j["id"]')
sed -n 100,110p doc >part
lych gate scan part >/dev/null; is "a passage of a registered file" 1 $?
is "names" "['nightingale', 'doc']" "$(lych private list --json | json '[e["name"] for e in j["entries"]]')"
lych private list | grep -q nightingale || fail "no table"
! grep -raqsF -e "Nachtigall" -e "nachtigall" "$LYCHGATE_DATA" || fail "the term lies in clear below the data directory"
is "mode of the store" 600 "$(stat -c %a "$LYCHGATE_DATA/vessel/private")"

# --- at a terminal it is asked for, not shown, and can be put right; Ctrl-C registers nothing
at_terminal() { # what is typed
	python3 - "$1" <<'END'
import os, pty, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(os.environ["LYCH_BIN"] + "/lych", ["lych", "private", "add", "--name", "typed"])
seen = b""
while b"not shown" not in seen:
    seen += os.read(fd, 1000)
os.write(fd, sys.argv[1].encode().decode("unicode_escape").encode("latin-1"))
while True:
    try:
        more = os.read(fd, 1000)
    except OSError:
        break
    if not more:
        break
    seen += more
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
}
out=$(at_terminal 'quiet grumblf\x7fe\r'); is "typed" 0 $?
! grep -q grum <<<"$out" || fail "it is shown: $out"
typed=$(lych private list --json | json '[e["id"] for e in j["entries"] if e["name"] == "typed"][0]')
echo "a quiet grumble" | lych gate scan - >/dev/null; is "what was typed counts" 1 $?
out=$(at_terminal 'another term\x03'); is "given up" 1 $?
out=$(at_terminal 'wrong\x15\x04'); is "nothing typed" 2 $?
is "no more is registered" 3 "$(lych private list --json | json 'len(j["entries"])')"

# --- removed only by who knows the passphrase
words="correct horse battery"
remove() { # ENTRY
	lych_typed "$words" -- private remove "$1" >/dev/null
}
lych private remove "$typed" >/dev/null 2>&1; is "no passphrase is set" 1 $?
lych_typed "$words" "$words" -- passphrase set >/dev/null || fail "set a passphrase"
words=wrong-$$-wrong remove "$typed"; is "a wrong one" 1 $?
remove "$typed" || fail "remove what was typed"

# --- the worker dies: refused or answered, never passed; then it is there again with the terms
parent_of() { awk '/^PPid:/ { print $2 }' "/proc/$1/status" 2>/dev/null; }
gate_worker() { # the process "gate" whose grandparent is our vessel
	local vessel p
	vessel=$(lych_pid vessel)
	for p in /proc/[0-9]*; do
		[ "$(cat "$p/comm" 2>/dev/null)" = gate ] || continue
		[ "$(parent_of "$(parent_of "${p#/proc/}")")" = "$vessel" ] && echo "${p#/proc/}"
	done
}
worker=$(gate_worker)
[ -n "$worker" ] || fail "the gate's worker is not found"
kill -9 "$worker"
for _ in $(seq 400); do
	lych gate scan about >out 2>&1
	is "never passed" 1 "$(($? != 0))"
	! grep -q exact out || break
	nap 0.05
done
grep -q exact out || fail "the worker did not come back: $(cat out)"
[ "$(gate_worker)" != "$worker" ] || fail "it is the same worker"

# --- kept over a restart, removed at once
lych down >/dev/null
lych up --detach <&- >&- 2>&- || fail "restart"
lych gate scan about >/dev/null; is "after a restart" 1 $?
remove "$id" || fail "remove"
lych gate scan about >/dev/null; is "after it is removed" 0 $?
lych gate scan part >/dev/null; is "the file still counts" 1 $?
remove "$fileid" || fail "remove the file"
lych gate scan part >/dev/null; is "the file is removed" 0 $?

# --- a damaged store ends the start
printf %s "$secret" | lych private add >/dev/null || fail "add again"
lych down >/dev/null
printf x >>"$LYCHGATE_DATA/vessel/private"
! lych up --detach <&- >&- 2>&- || fail "started with a damaged private store"
echo "$count checks"
