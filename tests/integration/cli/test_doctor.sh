#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 200
# lych doctor: passes where the walls stand, and fails loudly where one is missing. The missing
# wall is a lych-sandbox that confines nothing.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin doctor

# --- without a wall
mkdir "$LYCH_TMP/bin"
cp "$LYCH_BIN"/lych "$LYCH_BIN"/lych-probe "$LYCH_TMP/bin/"
cat >"$LYCH_TMP/bin/lych-sandbox" <<'S'
#!/bin/bash
while [ "$1" != -- ]; do
	[ "$1" != --workspace ] || cd "$2" || exit 1
	shift
done
shift
exec setpriv --no-new-privs "$@"
S
chmod 755 "$LYCH_TMP/bin/lych-sandbox"
"$LYCH_TMP/bin/lych" doctor >"$LYCH_TMP/out" 2>&1
rc=$?
[ "$rc" -eq 1 ] || fail "no wall at all, and doctor exits $rc: $(tail -n 3 "$LYCH_TMP/out")"
for act in "read a key" "tcp to the host" "signal a process" "a new user namespace" "list the home"; do
	grep -q "^FAIL *full *$act " "$LYCH_TMP/out" || fail "doctor did not see: $act: $(head -n 12 "$LYCH_TMP/out")"
done
grep -q "^FAIL *full *seen from outside: victims" "$LYCH_TMP/out" || fail "the victims were not looked at"
grep -q "^FAIL *full *seen from outside: survivors" "$LYCH_TMP/out" || fail "the survivor was not seen"
grep -q "DO NOT" "$LYCH_TMP/out" || fail "not loud"
grep -qxF "Next: lych doctor | grep FAIL" "$LYCH_TMP/out" || fail "what is next: $(tail -n 1 "$LYCH_TMP/out")"

# --- the probe does nothing for who is not doctor: not its words, not a file that doctor made to be lost, or no sandbox
mine=$LYCH_TMP/mine lost=$LYCH_TMP/.lych-doctor-x/key
mkdir "${lost%/*}" && echo mine >"$mine" && echo lost >"$lost"
others="home=$HOME unix=/x abstract=x tcp=1 udp=1 pid=$$ api=/x survivor=$LYCH_TMP/left"
for words in "" "what" "secret" "secret=$mine home=$HOME" "secret=$lost $others" "nnp secret=$mine $others" "nnp secret=$lost"; do
	as=()
	[[ $words != nnp* ]] || as=(setpriv --no-new-privs)
	# shellcheck disable=SC2086 # none is one of them
	"${as[@]}" "$LYCH_BIN/lych-probe" ${words#nnp } >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" && fail "lych-probe $words: no refusal"
	[ "$(cat "$mine" "$lost")" = "mine"$'\n'"lost" ] || fail "lych-probe $words lost a file"
	[ ! -e "$LYCH_TMP/left" ] || fail "lych-probe $words left something"
	grep -q "outside of one, it does nothing" "$LYCH_TMP/err" || fail "lych-probe $words: not told: $(cat "$LYCH_TMP/err")"
	[ ! -s "$LYCH_TMP/out" ] || fail "lych-probe $words tried something"
done
"$LYCH_BIN/lych-probe" --help | grep -q "must not be able" || fail "lych-probe --help"

# --- without the sandbox program: refused, not skipped
rm "$LYCH_TMP/bin/lych-sandbox"
"$LYCH_TMP/bin/lych" doctor >/dev/null 2>"$LYCH_TMP/err" && fail "no sandbox program, and doctor is content"
grep -q LYCH-STARTUP-010 "$LYCH_TMP/err" || fail "the missing program is not named"

# --- interrupted: what it had made goes with it, and so does everything that it had started
python3 - "$LYCH_BIN/lych" <<'END' || fail "interrupted"
import glob, os, signal, subprocess, sys, time
def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)
def with_name(name):
    found = []
    for p in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            found += [p] if name.encode() in open(p, "rb").read() else []
        except OSError:
            pass
    return found
made = os.environ["HOME"] + "/.lych-doctor-*"
for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    p = subprocess.Popen([sys.argv[1], "doctor"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # the probe lies there when a sandbox is about to run it
    until(lambda: glob.glob(made + "/work/lych-probe"))
    name, = glob.glob(made)
    p.send_signal(signo)
    assert p.wait(60) == -signo, (signo, p.returncode)
    assert b"interrupted" in p.stderr.read()
    assert not glob.glob(made), glob.glob(made)
    until(lambda: not with_name(name))
END

# --- what a killed one left: the next one removes it, as is seen at the end
mkdir -p "$HOME/.lych-doctor-0123456789abcdef/work" && echo key >"$HOME/.lych-doctor-0123456789abcdef/key"
touch -d '2 hours ago' "$HOME/.lych-doctor-0123456789abcdef"

# --- with all walls, first alone, then with everything running
lych doctor >"$LYCH_TMP/out" || { grep -v ^PASS "$LYCH_TMP/out"; fail "doctor alone"; }
grep -q ^SKIP "$LYCH_TMP/out" || fail "what does not run is not said"
is_next() { grep -qxF "Next: $1" "$LYCH_TMP/out" || fail "what is next: '$(tail -n 1 "$LYCH_TMP/out")', not '$1'"; }
is_next "lych up --detach"
lych up --detach || fail "up"
lych doctor >"$LYCH_TMP/out" || { grep -v ^PASS "$LYCH_TMP/out"; fail "doctor"; }
grep -q ^SKIP "$LYCH_TMP/out" && fail "something was left out"
is_next "lych run -- echo hello"
lych doctor --json >"$LYCH_TMP/json" || fail "doctor --json"
python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
assert d["failed"] == 0 and d["passed"] > 150, d
assert {l["where"] for l in d["lines"]} >= {"kernel", "full", "floor", "job", "vessel", "tomb", "database"}
' "$LYCH_TMP/json" || fail "its JSON"

# --- everything runs, but nobody can reach it: the directory of the socket is gone
vessel=$(lych_pid vessel) starter=$(lych_pid supervisor)
kill -STOP "$starter" # who would mend it
rm -r "$XDG_RUNTIME_DIR/lychgate/api"
lych doctor >"$LYCH_TMP/out"
rc=$?
[ "$rc" -eq 1 ] || fail "no socket, and doctor exits $rc: $(grep -v ^PASS "$LYCH_TMP/out")"
grep -q "^FAIL *vessel *its socket .*process $starter .*'lych down', 'lych up'" "$LYCH_TMP/out" || fail "what is wrong is not said: $(grep -v ^PASS "$LYCH_TMP/out")"
grep -q ^SKIP "$LYCH_TMP/out" && fail "what runs is said not to run"
is_next "lych down; lych up --detach"
kill -CONT "$starter"
wait_until 20 "the socket did not come back" lych jobs >"$LYCH_TMP/jobs" 2>&1
[ "$(lych_pid vessel)" != "$vessel" ] || fail "the old vessel made a socket where it cannot"
[ "$(stat -c %a "$XDG_RUNTIME_DIR/lychgate/api")" = 700 ] || fail "its new directory is open"
lych_wait_up
[ "$(lych run -n -- echo again)" = again ] || fail "no job after that"
lych doctor >"$LYCH_TMP/out" || { grep -v ^PASS "$LYCH_TMP/out"; fail "doctor after that"; }
# the socket alone: the vessel sees to it, and goes on
vessel=$(lych_pid vessel)
rm "$XDG_RUNTIME_DIR/lychgate/api/vessel.sock"
wait_until 5 "the socket alone did not come back" lych jobs >"$LYCH_TMP/jobs" 2>&1
sleep 4
[ "$(lych_pid vessel)" = "$vessel" ] || fail "the vessel was ended for a socket that it made anew"
# the scribe's: by another scribe, and a vessel that starts after that finds it
rm "$XDG_RUNTIME_DIR/lychgate/audit/scribe.sock"
wait_until 15 "the scribe's socket did not come back" test -S "$XDG_RUNTIME_DIR/lychgate/audit/scribe.sock"
kill -KILL "$(lych_pid vessel)"
lych_wait_up
[ "$(lych run -n -- echo logged)" = logged ] || fail "no job with another scribe"

left=$(find "$HOME" -maxdepth 1 -name '.lych-doctor*')
[ -z "$left" ] || fail "left behind: $left"
tail -n 2 "$LYCH_TMP/out"
