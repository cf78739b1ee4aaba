#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# lych backup and restore: what a damaged, cut, foreign or newer archive changes (nothing), then a
# destroyed installation that comes back with its jobs, results, blobs, output and audit log, here
# and, with the recovery code, on another machine. What others forge: test_backup_forged.sh.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin backup
refused() { # what, code, command...
	local what=$1 code=$2
	shift 2
	"$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" </dev/null && fail "$what: not refused"
	grep -q "$code" "$LYCH_TMP/err" || fail "$what: $(cat "$LYCH_TMP/err")"
	count=$((count + 1))
}
A=$LYCH_TMP/saved.tar
key=$(dirname "$LYCH_CONFIG")/backup.key
state() { # everything that a user can see of the jobs, and the bytes behind it
	lych jobs --json --limit 500 | python3 -c '
import json, sys
for j in sorted(json.load(sys.stdin)["jobs"], key=lambda j: j["id"]):
    print(j["id"], j["request_id"], j["state"], j["class"], j["attempts"], j["finished_at"])' >"$1"
	awk '{ print $1 }' "$1" >"$1.ids"
	while read -r id; do
		lych show "$id" --json
		lych logs "$id"
		lych artifacts "$id" --json
	done <"$1.ids" >>"$1" 2>&1
	(cd "$LYCHGATE_DATA" && find vessel/blobs vessel/output -type f -exec sha256sum {} + | sort -k 2) >>"$1"
}

# --- refusals
refused "a backup of nothing that runs" LYCH-BACKUP-001 lych backup "$A"
refused "a restore from nothing" LYCH-CORE-010 lych restore "$A"
head -c 5000 /dev/urandom >"$LYCH_TMP/noise"
refused "noise is no backup" LYCH-BACKUP-003 lych restore "$LYCH_TMP/noise"
(cd "$LYCH_TMP" && tar cf foreign.tar noise)
refused "another tar is no backup" LYCH-BACKUP-003 lych restore "$LYCH_TMP/foreign.tar"
refused "a directory" LYCH-BACKUP-003 lych restore "$LYCH_TMP"
[ ! -e "$LYCHGATE_DATA" ] || [ -z "$(find "$LYCHGATE_DATA" -type f)" ] || fail "a refusal made something"

# --- something to save
lych config init >/dev/null
lych up --detach || fail up
echo "an input" >"$LYCH_TMP/input"
lych run -n -f "$LYCH_TMP/input" -a 'out/*' -- sh -c 'mkdir out; cat input; head -c 300000 /dev/urandom >out/blob; echo done' >/dev/null || fail "a job"
lych run -n -- sh -c 'echo fails >&2; exit 7'
is "a job that fails" 7 "$?"
for i in $(seq 12); do lych run -n -- echo "job $i" >/dev/null || fail "job $i"; done
echo sk-not-a-real-key-0123456789 | lych secret set portal_x >/dev/null
state "$LYCH_TMP/before"
[ "$(wc -l <"$LYCH_TMP/before")" -gt 40 ] || fail "there is little to compare"
# --- the key and its code: made once, shown once
refused "a backup that cannot be written" LYCH-BACKUP-002 lych backup "$LYCH_TMP/nowhere/a.tar"
[ ! -e "$key" ] || fail "there is a key, and nobody has seen its code"
for nowhere in /dev/null /dev/full; do
	lych backup "$A" >/dev/null 2>$nowhere && fail "a first backup, whose code is shown to $nowhere"
	lych backup --json "$A" >$nowhere 2>"$LYCH_TMP/said" && fail "a first backup, whose code is said to $nowhere"
done
lych backup "$A" >/dev/null 2>&- && fail "a first backup without a stderr"
is "there is neither a key nor an archive" 0 "$(find "$key" "$A"* 2>/dev/null | wc -l)"
codes='([0-9A-HJKMNP-TV-Z]{4}-){7}[0-9A-HJKMNP-TV-Z]{4}'
first=()
for i in 1 2 3; do
	lych backup "$LYCH_TMP/first.$i" >/dev/null 2>"$LYCH_TMP/first.$i.said" &
	first+=($!)
done
for i in "${first[@]}"; do wait "$i" || fail "one of three first backups at once: $(cat "$LYCH_TMP"/first.?.said)"; done
code=$(cat "$LYCH_TMP"/first.?.said | grep -oE "$codes")
is "of three at once one is the first, and shows the code" 39 "${#code}"
for i in 1 2 3; do tests/integration/cli/forge.py check "$LYCH_TMP/first.$i" "$code" || fail "it is not the code of archive $i"; done
rm "$key" "$LYCH_TMP"/first.*
lych backup "$A" >"$LYCH_TMP/out" 2>"$LYCH_TMP/said" || fail "backup"
code=$(grep -oE "$codes" "$LYCH_TMP/said")
is "it has 160 bits" 39 "${#code}"
is "and is not on stdout" 0 "$(grep -c "$code" "$LYCH_TMP/out")"
is "the key is private" "600 65" "$(stat -c '%a %s' "$key")"
lych backup "$LYCH_TMP/second.tar" --json >"$LYCH_TMP/out" 2>&1 || fail "a second backup"
is "it is not shown again" 0 "$(grep -ciE "$code|recovery" "$LYCH_TMP/out")"
tests/integration/cli/forge.py check "$A" "$code" || fail "the seal is not what is documented"
tests/integration/cli/forge.py check "$LYCH_TMP/second.tar" "$code" || fail "the second one has another key"
is "the log's checkpoints are in it, and not its key" "1 0" "$(tar tf "$A" | grep -cx audit/seals) $(tar tf "$A" | grep -cF .keys)"
grep -raqF -e "$code" -e "$(cat "$key")" "$A" "$LYCHGATE_DATA" && fail "code or key are in the archive, the data or the logs"
for mode in 640 604; do
	chmod "$mode" "$key"
	refused "a key that others can read ($mode)" LYCH-SECRET-001 lych backup "$LYCH_TMP/third.tar"
done
chmod 600 "$key"
chmod 720 "$(dirname "$key")"
refused "a key that others can replace" LYCH-SECRET-001 lych backup "$LYCH_TMP/third.tar"
chmod 700 "$(dirname "$key")"
mv "$key" "$key.real" && ln -s "$key.real" "$key"
refused "a key that is a link" LYCH-SECRET-001 lych backup "$LYCH_TMP/third.tar"
mv "$key.real" "$key"
: >"$LYCHGATE_DATA/vessel/blobs/stray"
refused "a file that no archive has" LYCH-BACKUP-002 lych backup "$LYCH_TMP/third.tar"
rm "$LYCHGATE_DATA/vessel/blobs/stray"
[ ! -e "$LYCH_TMP/third.tar" ] || fail "there is an archive all the same"
refused "a restore over what runs" LYCH-BACKUP-001 lych restore --force "$A"
is "the archive is private" 600 "$(stat -c %a "$A")"
refused "an archive is not written over" LYCH-STORE-006 lych backup "$A"
is "no option is named that it does not have" 1 "$(grep -c 'Give another name, or move it away' "$LYCH_TMP/err")"
is "tar can read it" 0 "$(tar tf "$A" >"$LYCH_TMP/list"; echo $?)"
for f in "$LYCHGATE_DATA"/secrets/*; do
	grep -qaF "$(cat "$f")" "$A" && fail "the value of ${f##*/} is in the archive"
done
tar xOf "$A" database.copy >"$LYCH_TMP/rows"
is "its rows are of fourteen sections" 14 "$(grep -cFx '\.' "$LYCH_TMP/rows")"
is "each begins with its columns" 1 "$(head -n 1 "$LYCH_TMP/rows" | grep -c '^id	queue	request_id	')"
# shellcheck disable=SC2016
grep -qaF 'SCRAM-SHA-256$4096:' "$A" && fail "a password's verifier is in the archive"
is "secrets are named" 1 "$(tar xOf "$A" BACKUP.json | grep -c '"portal_x"')"
sh -c 'umask 777; exec "$@"' - "$LYCH_BIN/lych" backup "$LYCH_TMP/masked.tar" >/dev/null 2>"$LYCH_TMP/err" || fail "umask 777: $(cat "$LYCH_TMP/err")"
is "an archive can be read by its owner, whatever the umask" 600 "$(stat -c %a "$LYCH_TMP/masked.tar")"
refused "an archive that is larger than a file may be" LYCH-BACKUP-002 sh -c 'ulimit -f 20; exec "$@"' - "$LYCH_BIN/lych" backup "$LYCH_TMP/third.tar"
is "no remains" 0 "$(find "$LYCHGATE_DATA" "$LYCH_TMP" -maxdepth 1 -name '*.part' -o -maxdepth 1 -name 'backup.*' | wc -l)"
# --- of one that was killed the next one takes the place; of no other file
# On a busy machine a backup may be over before this shell comes to its turn, or before the signal has come: once more then.
begin_backup() { # signal, file: $pid got the signal in the middle of it
	local i
	for i in {1..20}; do
		rm -f "$2"
		env --default-signal=INT "$LYCH_BIN/lych" backup "$2" >/dev/null 2>&1 &
		pid=$!
		until [ -e "$2.part" ] || ! kill -0 "$pid" 2>/dev/null; do :; done
		kill -"$1" "$pid" 2>/dev/null
		until grep -q '^State:	[TZX]' "/proc/$pid/status" 2>/dev/null || ! kill -0 "$pid" 2>/dev/null; do :; done
		[ -e "$2" ] || return 0
		kill -CONT "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	fail "each of $i was over before it got $1"
}
for sig in KILL TERM INT; do
	P=$LYCH_TMP/killed.$sig.tar
	begin_backup "$sig" "$P"
	wait "$pid" 2>/dev/null
	is "no archive ($sig)" 0 "$(find "$P" 2>/dev/null | wc -l)"
	lych backup "$P" >/dev/null 2>"$LYCH_TMP/err" || fail "after $sig: $(cat "$LYCH_TMP/err")"
	is "it is private ($sig)" 600 "$(stat -c %a "$P")"
	tests/integration/cli/forge.py check "$P" "$code" || fail "the archive after $sig is not whole"
	is "nothing is left of it ($sig)" 0 "$(find "$P.part" 2>/dev/null | wc -l)"
	is "nor of its rows ($sig)" 0 "$(find "$LYCHGATE_DATA" -maxdepth 1 -name 'backup.*' | wc -l)"
done
P=$LYCH_TMP/two.tar
begin_backup STOP "$P"
refused "a second backup to one file" LYCH-BACKUP-002 lych backup "$P"
is "it says who writes there" 1 "$(grep -c 'another backup is writing' "$LYCH_TMP/err")"
kill -CONT "$pid"
wait "$pid" || fail "the first of two backups"
tests/integration/cli/forge.py check "$P" "$code" || fail "the first of two is not whole"
P=$LYCH_TMP/mine.tar
echo mine >"$P.part"
for mode in 600 200; do
	refused "a file of mine ($mode)" LYCH-BACKUP-002 lych backup "$P"
	is "it says what to do" 1 "$(grep -c 'move it away' "$LYCH_TMP/err")"
	chmod 600 "$P.part"
	is "and leaves it" mine "$(cat "$P.part")"
	ln -f "$P.part" "$P.other" && chmod 200 "$P.part"
done
rm "$P.part" "$P.other"
echo mine >"$P.other" && ln -s "$P.other" "$P.part"
refused "a link" LYCH-BACKUP-002 lych backup "$P"
is "nothing was written through it" mine "$(cat "$P.other")"
rm "$P.part" "$P.other"
(cd "$LYCHGATE_DATA" && find audit -type f ! -name lock -exec sha256sum {} +) >/dev/null
lych down >/dev/null

# --- a damaged one changes nothing: bits all over it, and cuts
tree() { (cd "$LYCHGATE_DATA" && find . -printf '%p %s %T@ %i\n' | sort | sha256sum); }
whole=$(tree) size=$(stat -c %s "$A")
python3 - "$A" "$LYCH_TMP/bad" >"$LYCH_TMP/places" <<'EOF'
import os, random, sys
size = os.path.getsize(sys.argv[1])
rng = random.Random(1)
# headers, padding and both ends densely, the rest by chance
places = list(range(0, 600, 37)) + [size - 1, size - 513, size - 1025] + [rng.randrange(size) for _ in range(40)]
print(*places, sep="\n")
EOF
while read -r at; do
	cp "$A" "$LYCH_TMP/bad"
	python3 -c '
import sys
f = open(sys.argv[1], "r+b"); at = int(sys.argv[2]); f.seek(at); b = f.read(1)[0]; f.seek(at); f.write(bytes([b ^ 1 << at % 8]))' "$LYCH_TMP/bad" "$at"
	"$LYCH_BIN/lych" restore --force "$LYCH_TMP/bad" </dev/null >/dev/null 2>"$LYCH_TMP/err" && fail "a bit at $at was not seen"
	# in the seal itself: another one, or of another key
	grep -qE 'LYCH-BACKUP-00[369]' "$LYCH_TMP/err" || fail "a bit at $at: $(cat "$LYCH_TMP/err")"
	grep -q 'LYCH-BACKUP-003' "$LYCH_TMP/err" || [ "$at" -gt $((size - 2048)) ] || fail "a bit at $at: $(cat "$LYCH_TMP/err")"
	count=$((count + 1))
done <"$LYCH_TMP/places"
for cut in 0 1 511 512 513 $((size / 2)) $((size - 1024)) $((size - 512)) $((size - 1)); do
	head -c "$cut" "$A" >"$LYCH_TMP/bad"
	refused "cut at $cut" LYCH-BACKUP-003 lych restore --force "$LYCH_TMP/bad"
done
cat "$A" "$LYCH_TMP/noise" >"$LYCH_TMP/bad"
refused "something after its end" LYCH-BACKUP-003 lych restore --force "$LYCH_TMP/bad"
refused "where something is" LYCH-BACKUP-005 lych restore "$A"
# a directory that has the name of what a restore makes, and is somebody's: of one that was cut off behind its exchange, it is
# what was there before
mkdir "$LYCHGATE_DATA.restore"
echo mine >"$LYCHGATE_DATA.restore/file"
refused "where it would be made something is" LYCH-BACKUP-002 lych restore --force "$A"
grep -q 'move it away' "$LYCH_TMP/err" || fail "nothing is advised: $(cat "$LYCH_TMP/err")"
is "what was in its place is there" mine "$(cat "$LYCHGATE_DATA.restore/file")"
rm -r "$LYCHGATE_DATA.restore"
# where nothing is, what is refused makes nothing; and few descriptors are not an installation
elsewhere() { LYCHGATE_DATA=$LYCH_TMP/elsewhere "$LYCH_BIN/lych" restore "$@"; }
mkdir -p "$LYCH_TMP/stranger"
echo hers >"$LYCH_TMP/stranger/file"
refused "a stranger's directory" LYCH-BACKUP-005 env LYCHGATE_DATA="$LYCH_TMP/stranger" "$LYCH_BIN/lych" restore "$A"
is "it is as it was" file "$(ls -A "$LYCH_TMP/stranger")"
(ulimit -n 8 && elsewhere "$A") >/dev/null 2>"$LYCH_TMP/err" </dev/null && fail "with eight descriptors"
! grep -q LYCH-BACKUP-005 "$LYCH_TMP/err" || fail "few descriptors are taken for an installation"
ln -s "$A" "$LYCH_TMP/link.tar"
refused "a link to an archive" 'LYCH-CORE-004' elsewhere "$LYCH_TMP/link.tar"
(ulimit -n 24 && elsewhere "$A") >/dev/null 2>"$LYCH_TMP/err" </dev/null && fail "with few descriptors"
! grep -q 'see /.*log' "$LYCH_TMP/err" || fail "a log is named that is not there: $(cat "$LYCH_TMP/err")"
is "what failed has left nothing" "" "$(find "$LYCH_TMP" -maxdepth 1 -name 'elsewhere*')"
refused "files that are larger than one may be" LYCH- sh -c 'ulimit -f 100; exec "$@"' - "$LYCH_BIN/lych" restore --force "$A"
is "none of them changed anything" "$whole" "$(tree)"
[ ! -e "$LYCHGATE_DATA.restore" ] || fail "something was left beside it"

# --- killed at any moment: nothing changed, and the next one works over what it left
for delay in 0.05 0.3 0.9 1.6; do
	"$LYCH_BIN/lych" restore --force "$A" >/dev/null 2>&1 </dev/null &
	pid=$!
	sleep "$delay"
	kill -KILL "$pid" 2>/dev/null || break # it was done: then what was there lies aside
	wait "$pid" 2>/dev/null
	for _ in $(seq 100); do pgrep -u "$(id -u)" -f "$LYCHGATE_DATA.restore" >/dev/null || break; nap 0.1; done
	[ "$(find "$LYCH_TMP" -maxdepth 1 -name 'data.before-*' | wc -l)" -gt 0 ] && break
	is "killed after $delay s" "$whole" "$(tree)"
done
rm -rf "$LYCHGATE_DATA".before-*

# --- destroyed, and back
cp -a "$LYCHGATE_DATA/audit" "$LYCH_TMP/audit.before"
rm -rf "$LYCHGATE_DATA"
rm "$LYCH_CONFIG"
# While it works nobody takes it for a running Lychgate: not even where it is stopped.
"$LYCH_BIN/lych" restore "$A" >"$LYCH_TMP/restored" 2>"$LYCH_TMP/restore.err" </dev/null &
restoring=$!
while kill -STOP "$restoring" 2>/dev/null; do
	grep -q "a 'lych restore'" <<<"$(lych status 2>&1)" && break
	kill -CONT "$restoring"
	nap 0.01
done
for what in "down" "up --detach" "status"; do
	# shellcheck disable=SC2086 # a command and its option
	refused "$what beside a restore" "LYCH-STARTUP-001" lych $what
	is "$what says what it is" 1 "$(grep -c "a 'lych restore' (pid" "$LYCH_TMP/err")"
done
kill -CONT "$restoring"
wait "$restoring" || fail "restore: $(cat "$LYCH_TMP/restore.err")"
mv "$LYCH_TMP/restored" "$LYCH_TMP/out"
is "it says what is missing" 1 "$(grep -c 'set again: lych secret set portal_x' "$LYCH_TMP/out")"
is "the configuration is back" "600" "$(stat -c %a "$LYCH_CONFIG")"
for f in "$LYCH_TMP"/audit.before/*; do
	[ "${f##*/}" != lock ] || continue
	saved=$LYCHGATE_DATA/audit/${f##*/}
	[ -e "$saved" ] || fail "audit: ${f##*/} is not there"
	cmp -n "$(stat -c %s "$saved")" "$saved" "$f" || fail "audit: ${f##*/} has other bytes"
done
lych up --detach || fail "up after the restore"
state "$LYCH_TMP/after"
diff "$LYCH_TMP/before" "$LYCH_TMP/after" >"$LYCH_TMP/diff" || fail "not the same: $(head -n 20 "$LYCH_TMP/diff")"
"$LYCH_BIN/lych-audit" verify "$LYCHGATE_DATA/audit" --json >"$LYCH_TMP/out"
is "the log goes on with new keys, for which nobody vouches yet" 3 $?
"$LYCH_BIN/lych-audit" verify "$LYCHGATE_DATA/audit" --pin "$(json 'j["genesis"]' <"$LYCH_TMP/out")" >"$LYCH_TMP/out" || fail "nor a person: $(cat "$LYCH_TMP/out")"
is "new jobs run" new "$(lych run -n -- echo new)"
is "with a number that is new" 15 "$(lych jobs --json --limit 500 | python3 -c 'import json,sys; print(len({j["id"] for j in json.load(sys.stdin)["jobs"]}))')"
lych secret check --json | python3 -c 'import json,sys; sys.exit(not all(s["ok"] for s in json.load(sys.stdin)["secrets"]))' || fail "secret check"
lych down >/dev/null

# --- over an installation: moved aside, not removed
lych restore --force "$A" --json >"$LYCH_TMP/out" || fail "restore --force"
kept=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["kept"])' "$LYCH_TMP/out")
[ -d "$kept/phylactery/data" ] || fail "what was there is not kept: $kept"
lych up --detach || fail "up after the second restore"
state "$LYCH_TMP/after"
diff "$LYCH_TMP/before" "$LYCH_TMP/after" >"$LYCH_TMP/diff" || fail "not the same the second time: $(head -n 20 "$LYCH_TMP/diff")"
lych down >/dev/null

# --- another machine: no key, so the code is asked for
mv "$key" "$key.first"
rm -rf "$LYCHGATE_DATA" "$LYCHGATE_DATA".before-* "$LYCH_CONFIG"
nothing() {
	if [ -e "$key" ] || [ -n "$(find "$LYCHGATE_DATA" -type f 2>/dev/null)" ]; then fail "$1: something was made"; fi
}
code_file() { printf '%s' "$1" >"$LYCH_TMP/code"; }
refused "no code" LYCH-BACKUP-009 lych restore "$A"
other=$(tr '0123456789' '1234567890' <<<"$code")
code_file "$other"
refused "another code" LYCH-BACKUP-008 lych restore --code-file "$LYCH_TMP/code" "$A"
for wrong in "" "${code%?}" "${code}0" "${code%?}U" "${code%?}!" "$(printf '%s\xff' "${code%?}")" "$(head -c 2000 /dev/zero | tr '\0' 0)"; do
	code_file "$wrong"
	"$LYCH_BIN/lych" restore --code-file "$LYCH_TMP/code" "$A" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" && fail "'$wrong' is taken as a code"
	grep -q LYCH-BACKUP-008 "$LYCH_TMP/err" || fail "'$wrong': $(cat "$LYCH_TMP/err")"
	[ -z "$wrong" ] || ! grep -qF -- "$wrong" "$LYCH_TMP/err" || fail "the code is told: $(cat "$LYCH_TMP/err")"
	count=$((count + 1))
done
nothing "without the code"
# as a person copies it: small letters, no dashes, blanks, O for 0, L and I for 1, over two lines
odd=$(tr 'A-Z01' 'a-zol' <<<"$code" | sed 's/-/ /2; s/-//3; s/-/\n/4; s/l/I/2')
{ echo "$code"; echo "$odd"; tr -d - <<<"$code"; cat "$key.first"; } | grep . >"$LYCH_TMP/words"
while :; do grep -laF -f "$LYCH_TMP/words" /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; done >"$LYCH_TMP/told" &
looker=$!
printf ' %s \r\n' "$odd" | lych restore --code-file - --json "$A" >"$LYCH_TMP/out" || fail "the code in another spelling: '$odd'"
kill "$looker" && wait "$looker" 2>/dev/null
is "no argument or environment had code or key" "" "$(cat "$LYCH_TMP/told")"
is "the key is kept here now" "$(cat "$key.first") 600" "$(cat "$key") $(stat -c %a "$key")"
is "and the configuration taken" '"restored" true' "$(python3 -c 'import json,sys; o=json.load(open(sys.argv[1])); print(json.dumps(o["config"]), json.dumps(o["sealed"]))' "$LYCH_TMP/out")"
lych up --detach || fail "up on the other machine"
state "$LYCH_TMP/after"
diff "$LYCH_TMP/before" "$LYCH_TMP/after" >"$LYCH_TMP/diff" || fail "not the same elsewhere: $(head -n 20 "$LYCH_TMP/diff")"
lych down >/dev/null

# --- at a terminal: asked for, not shown, three times
cat >"$LYCH_TMP/type" <<'EOF'
import os, pty, sys, time
words = [w.encode() + b"\r" for w in sys.argv[1].split()]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
text = b""
while True:
    try:
        piece = os.read(fd, 4096)
    except OSError:
        break
    if not piece:
        break
    text += piece
    if words and text.endswith(b"archive: "):
        time.sleep(0.2)
        os.write(fd, words.pop(0))
sys.stdout.buffer.write(text)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
EOF
rm -rf "$LYCHGATE_DATA" "$key"
python3 "$LYCH_TMP/type" "no ${other} ${code%??}" "$LYCH_BIN/lych" restore "$A" >"$LYCH_TMP/out" && fail "three wrong codes are taken"
is "asked three times" 3 "$(grep -o 'Recovery code of this archive: ' "$LYCH_TMP/out" | wc -l)"
is "and then refused" 1 "$(grep -c LYCH-BACKUP-008 "$LYCH_TMP/out")"
nothing "three wrong codes"
python3 "$LYCH_TMP/type" "${other} ${code,,}" "$LYCH_BIN/lych" restore "$A" >"$LYCH_TMP/out" || fail "the code at a terminal: $(cat "$LYCH_TMP/out")"
is "it is not shown" 0 "$(grep -ciF -e "$code" -e "$other" "$LYCH_TMP/out")"
is "the key is kept" "$(cat "$key.first")" "$(cat "$key")"

# --- a machine with a key of its own: the archive's code is asked for, its own key stays
rm -rf "$LYCHGATE_DATA"
head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$key"
own=$(cat "$key")
code_file "$code"
refused "an archive of another machine" LYCH-BACKUP-009 lych restore "$A"
lych restore --code-file "$LYCH_TMP/code" "$A" >/dev/null || fail "restore beside a key of its own"
is "its own key stays" "$own" "$(cat "$key")"
# --- no room: told before anything is made
place=$LYCH_TMP/small
mkdir "$place"
enter=(unshare --user --map-current-user --keep-caps --mount)
"${enter[@]}" mount -t tmpfs -o size=64k,mode=0700 none "$place" 2>/dev/null || skip "an unprivileged mount is refused here"
# shellcheck disable=SC2016
refused "no room" LYCH-CORE-005 "${enter[@]}" sh -c 'mount -t tmpfs -o size=64k,mode=0700 none "$1" && mkdir "$1/data" &&
	LYCHGATE_DATA=$1/data setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$2" restore --code-file "$3" "$4"
	r=$?; find "$1" -mindepth 2 >"$5"; exit $r' sh "$place" "$LYCH_BIN/lych" "$LYCH_TMP/code" "$A" "$LYCH_TMP/left"
is "nothing was made there" "" "$(cat "$LYCH_TMP/left")"

echo "not a key" >"$key"
refused "a key that is none" LYCH-SECRET-001 lych restore --force "$A"
echo "$count checks"
