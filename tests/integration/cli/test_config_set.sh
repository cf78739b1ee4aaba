#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 60
# lych config set and edit: refusals first, each with the file untouched; then one value changed, and an editor's
# text taken when it is acceptable. No daemon runs.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin configset
cd "$LYCH_TMP" || exit 1
unset VISUAL EDITOR
codex=$LYCH_CONFIG

look() { stat -c '%i %a %s %Y' "$codex"; }
refused() { # code, text, lych's arguments: exit code, what is said, and nothing is touched
	local code=$1 text=$2 before
	before=$(look 2>/dev/null)
	shift 2
	lych config "$@" >out 2>err </dev/null; is "$* : exit code" "$code" $?
	grep -qF -- "$text" err || fail "$*: not '$text' but $(cat err)"
	is "$*: nothing on stdout" "" "$(cat out)"
	is "$*: the file is as it was" "$before" "$(look 2>/dev/null)"
	is "$*: nothing is left beside it" "$before" "$([ ! -e "$codex" ] || { [ "$(find "${codex%/*}" -mindepth 1 | wc -l)" = 1 ] && look; })"
}

# --- where there is no file, and what it may not be
refused 3 "'lych config init' writes one" set tomb.slots 4
refused 3 "'lych config init' writes one" edit
lych config init >/dev/null || fail "init"
is "nothing else is made in the home, by npm neither" ".config" "$(ls -A "$HOME")"
sed -i 's/^  slots: 8$/  slots: 8   # mine/' "$codex"
cp "$codex" first
for words in "" "set" "set tomb.slots" "set tomb.slots 4 5" unset "unset tomb.slots 4" "edit x" "check x" "frobnicate"; do
	# shellcheck disable=SC2086
	lych config $words >out 2>err; is "config $words" 2 $?
done
refused 2 "no key 'tomb.slot'; did you mean 'tomb.slots'?" set tomb.slot 4
refused 2 "'limits.memory' has keys of its own" set limits.memory 1GiB
refused 2 "no key 'tomb.slot'; did you mean 'tomb.slots'?" unset tomb.slot
refused 2 "'ward' is a list, not one value: 'lych config edit'" unset ward.0
refused 2 'version: "1" is required' unset version
refused 1 "there is no terminal for vi, and no other editor is named" edit
EDITOR='' refused 1 "LYCH-CORE-014" edit
refused 2 "'ward' is a list, not one value: 'lych config edit'" set ward.0.action allow
refused 2 "tomb.slots: '65' is not within 1..64" set tomb.slots 65
refused 2 "nothing was changed" set retention 30
refused 2 "above the ceiling" set limits.memory.default 65GiB
refused 2 "line " set tomb.jobs_dir $'/a\nqueue: vessel'
refused 2 "both kinds of quotes" set postgres.bin "/a\"b'c"
refused 2 "egress.authorities" set egress.authorities /nonexistent
chmod 0644 "$codex"
refused 1 "has mode 0644, not 0600" set tomb.slots 4
refused 1 "has mode 0644, not 0600" edit
chmod 0 "$codex"
refused 1 "Permission denied" set tomb.slots 4
is "whose it is, not what it says" 1 "$(grep -c LYCH-STARTUP-003 err)"
chmod 0400 "$codex"
refused 1 "has mode 0400: nothing was changed" set tomb.slots 4
refused 1 "has mode 0400: nothing was changed" unset tomb.slots
EDITOR=true refused 1 "has mode 0400: nothing was changed" edit
lych config check >/dev/null || fail "and is acceptable"
chmod 0600 "$codex"
ln "$codex" second
refused 1 "has 2 names (hard links)" set tomb.slots 4
rm second
mv "$codex" elsewhere && ln -s "$PWD/elsewhere" "$codex"
refused 1 "is a symbolic link to $PWD/elsewhere" set tomb.slots 4
refused 1 "is a symbolic link to $PWD/elsewhere" edit
is "what it leads to is as it was" "" "$(diff first elsewhere)"
rm "$codex" && mv elsewhere "$codex"
echo "frobnicate: 1" >>"$codex"
refused 2 "no key 'frobnicate'; codex.yaml(5) lists them" set tomb.slots 4
cp first "$codex"

# --- where a directory has a control character in its name, no terminal gets it
odd=$PWD/$'esc\e[31m'
for words in check init check "set tomb.slots 3" "unset tomb.slots" "edit"; do
	# shellcheck disable=SC2086
	XDG_CONFIG_HOME=$odd EDITOR="sed -i s/^retention.*/retention:\ 40d/" lych config $words >out 2>&1 || fail "$words: $(cat out)"
	is "$words: escaped" "1 0" "$(grep -c 'esc\\x1b\[31m' out) $(grep -c $'\e' out)"
done

# --- what a killed one left is removed by the next: of this name, old enough, and no link
left() { (cd "${codex%/*}" && find . -mindepth 1 -name 'codex.yaml.*' | sort | xargs); }
a=codex.yaml.0123456789abcdef.tmp b=codex.yaml.1123456789abcdef.tmp c=codex.yaml.2123456789abcdef.tmp
(cd "${codex%/*}" && touch -d '2 hours ago' $a codex.yaml.bak.tmp codex.yaml.0.tmp && touch $b && ln -s "$codex" $c && touch -h -d '2 hours ago' $c)
lych config set tomb.slots 7 >/dev/null || fail "set beside them"
is "what is left" "./codex.yaml.0.tmp ./$c ./codex.yaml.bak.tmp" "$(left)"
rm "${codex%/*}"/codex.yaml.*
cp first "$codex"

# --- set: one line, and the file is another one with the same mode
is "set" "$codex: tomb.slots is 4 (it was 8); it counts from the next start" "$(lych config set tomb.slots 4)"
is "one line" "11c11 <   slots: 8   # mine --- >   slots: 4   # mine" "$(diff first "$codex" | xargs -d '\n')"
is "its mode" 600 "$(stat -c %a "$codex")"
lych config set limits.memory.max 2GiB >/dev/null || fail "a flow mapping"
is "in a flow mapping" 1 "$(grep -cx '  memory: {default: 512MiB, max: 2GiB}' "$codex")"
lowered() { # the line on stderr without its key, key, value
	lych config set "$2" "$3" >out 2>err || fail "set $2 $3: $(cat err)"
	is "$2 $3 lowers" "${1:+lych: this lowers a wall: $2: $1}" "$(cat err)"
}
cp "$codex" high
lowered "" tomb.queue vessel
lowered "the tomb has a login to the database" tomb.queue postgres
lowered "" tomb.queue postgres
lowered "a job may ask for more of this machine" limits.memory.max 3GiB
lowered "" limits.memory.max 2GiB
lowered "more private texts go out as they are" gate.portal_threshold 0.41
lowered "" gate.pictures refuse
lowered "what they show goes out unread" gate.pictures allow
lowered "what they show goes out unread" gate.pdf allow
lowered "jobs may use up more" budgets.day.money 41
lych config set registries.npm.url https://a.example.org/npm >/dev/null 2>&1 || fail "a registry"
lowered "jobs get packages from there, and from there alone" registries.npm.url https://b.example.org/npm
lowered "Podman hides nothing of /proc from the tomb" pod.unmask_proc yes
is "grade floor, --json" "1 tomb.grade" "$(lych config set --json tomb.grade floor 2>err | python3 -c 'import json, sys
d = json.load(sys.stdin)["lowers"]; print(len(d), d[0].split(":")[0])')"
is "and a line, too" 1 "$(grep -c '^lych: this lowers a wall: tomb.grade: jobs have no namespaces' err)"
lowered "the daemons have no root of their own; Landlock and a stricter filter are what stands" daemons no_private_root
lowered "" tomb.slots 4
lych config set tomb.slots 5 >/dev/full 2>err; is "a full stdout" 1 $?
is "says that it was done" 1 "$(grep -cF "$codex was changed, only not told: write to stdout" err)"
is "and it was" 1 "$(grep -c '^  slots: 5 ' "$codex")"
lych config set tomb.slots 5 >/dev/full 2>err; is "a full stdout, and nothing to do" 1 $?
is "says that it was not" 1 "$(grep -cF "$codex was not touched: write to stdout" err)"
EDITOR="sed -i s/slots:.5/slots:\ 6/" lych config edit >/dev/full 2>err; is "edit, with a full stdout" 1 $?
is "edit says that it was done" 1 "$(grep -cF "$codex was changed, only not told" err)"
cp high "$codex"
is "a key that was not there" '{"ok":true,"file":"'"$codex"'","key":"tomb.jobs_tmpfs","old":null,"new":"4GiB","lowers":[]}' \
	"$(lych config set --json tomb.jobs_tmpfs 4GiB)"
refused 2 "or tomb.jobs_dir: not both" set tomb.jobs_dir /srv/jobs
lych config set postgres.bin "/opt/a b" >/dev/null || fail "a section that was not there"
is "it is at the end" 'postgres:|  bin: "/opt/a b"' "$(tail -n 2 "$codex" | paste -sd '|')"
lych config check >/dev/null || fail "check after all that"
is "the comments are all there" "$(grep -c '#' first)" "$(grep -c '#' "$codex")"
before=$(look)
lych config set tomb.slots 4 >/dev/null || fail "the same again"
is "the same again touches nothing" "$before" "$(look)"

# --- unset: what set has put there is taken away, with its section where nothing else is in it
cp "$codex" before
is "a key of two" "$codex: tomb.jobs_tmpfs is its default (it was 4GiB); it counts from the next start" \
	"$(lych config unset tomb.jobs_tmpfs)"
is "a section" '{"ok":true,"file":"'"$codex"'","key":"postgres.bin","old":"/opt/a b","new":null,"lowers":[]}' \
	"$(lych config unset --json postgres.bin)"
is "nothing but what was set" "" "$(diff before "$codex" | grep '^[<>]' | grep -vxE '<   jobs_tmpfs: "?4GiB"?|< postgres:|<   bin: "/opt/a b"')"
is "three lines" 3 "$(diff before "$codex" | grep -c '^<')"
before=$(look)
is "what is not there" "$codex: postgres.bin is its default (it was its default); it counts from the next start" \
	"$(lych config unset postgres.bin)"
is "touches nothing" "$before" "$(look)"
cp "$codex" before
for _ in 1 2; do lych config set postgres.bin /opt/x >/dev/null && lych config unset postgres.bin >/dev/null || fail "set and unset"; done
is "set and unset again and again adds nothing" "" "$(diff before "$codex")"
lych config set tomb.grade floor >/dev/null 2>&1 && lych config set daemons no_private_root >/dev/null 2>&1 || fail "floor"
refused 2 "no_private_root is for tomb.grade: floor" unset tomb.grade
lych config unset daemons >/dev/null && lych config set tomb.grade full >/dev/null || fail "and back"
is "a limit that was lower" "lych: this lowers a wall: limits.memory.max: a job may ask for more of this machine" \
	"$(lych config unset limits.memory.max 2>&1 >/dev/null)"

# --- a second opinion: on by one key, off by taking it away
refused 2 "gate.classifier: no portal of kind classifier has that name" set gate.classifier guard
cp "$codex" before
printf '%s\n' portals: "  - name: guard" "    kind: classifier" '    url: "http://127.0.0.1:9/v1"' "    addresses:" "      - 127.0.0.1" \
	"    models:" "      - {name: judge}" >>"$codex"
is "one that is not named is told" 1 "$(lych config check | grep -c '^nobody asks portal guard, of kind classifier')"
lowered "" gate.classifier guard
is "one that is asked is told" 1 "$(lych config check | grep -c '^the gate asks portal guard (http://127.0.0.1:9/v1) for a second opinion')"
is "without it" "lych: this lowers a wall: gate.classifier: nobody is asked for a second opinion" \
	"$(lych config unset gate.classifier 2>&1 >/dev/null)"
cp before "$codex"
lych config check >/dev/null || fail "check after unset"

# --- edit: an editor that fails, is not there, or leaves what is no codex.yaml
cp "$codex" first
EDITOR=false refused 1 "the editor, 'false', failed; nothing was changed" edit
EDITOR=no-such-editor refused 4 "set EDITOR to one that is there" edit
for editor in no-such-editor "/nonexistent/vi -n"; do
	EDITOR=$editor refused 4 '{"error_code":"LYCH-STARTUP-010"' edit --json
	is "no word of the shell's ($editor)" 1 "$(wc -l <err)"
done
EDITOR="rm" refused 1 "the editor has removed its file; nothing was changed" edit
is "as it was" "" "$(diff first "$codex")"
kept() { grep -oE "/[^ ]*/codex-.{6}\.yaml" err | head -n 1; }
EDITOR="sed -i s/^retention.*/retention:never/" lych config edit >out 2>err </dev/null; is "a wrong text" 2 $?
is "nothing was changed" 1 "$(grep -c 'nothing was changed; your text is in ' err)"
copy=$(kept)
is "the text is kept, for its owner alone" "600 1" "$(stat -c %a "$copy") $(grep -c '^retention:never' "$copy")"
rm "$copy"
is "as it was" "" "$(diff first "$codex")"
EDITOR="chmod 0644" lych config edit >out 2>err </dev/null; is "a copy that others can read" 1 $?
rm -f "$(kept)"
EDITOR="sh -c 'echo \"# by another\" >>$codex; echo \"# mine\" >>\$1' -" lych config edit >out 2>err </dev/null
is "another one was faster" 1 $?
is "it says so" 1 "$(grep -c 'was changed by somebody else meanwhile' err)"
is "and what to do" 1 "$(grep -c 'LYCH-STARTUP-023  ' err)"
is "and is there" "# by another" "$(tail -n 1 "$codex")"
rm -f "$(kept)"
cp first "$codex"

# --- edit: what is right, with the editor that is wanted most
is "unchanged" "nothing was changed" "$(EDITOR=true lych config edit)"
cat >"an editor" <<'ED'
#!/bin/sh
sed -i 's/^retention: .*/retention: keep  # all/' "$1"
ED
chmod +x "an editor"
is "edited" "$codex written; it counts from the next start" "$(VISUAL="'$PWD/an editor'" EDITOR=false lych config edit)"
is "as it was written" 1 "$(grep -cx 'retention: keep  # all' "$codex")"
is "nothing else" 2 "$(diff first "$codex" | grep -c '^[<>]')"
is "its mode" 600 "$(stat -c %a "$codex")"
is "no copy is left" 1 "$(find "${codex%/*}" -mindepth 1 | wc -l)"
is "--json" '{"ok":true,"changed":false}' "$(EDITOR=true lych config edit --json)"

# --- two at once: each is done, or says that it was not
for round in 1 2 3 4 5 6 7 8; do
	lych config set retention "${round}d" >one 2>&1 & first=$!
	lych config set tomb.slots "$round" >two 2>&1; second=$?
	wait "$first"; first=$?
	if [ $first = 0 ]; then is "round $round: the first" 1 "$(grep -cE "^retention: '?${round}d'?" "$codex")"; fi
	if [ $second = 0 ]; then is "round $round: the second" 1 "$(grep -cE "^ *slots: '?$round'?( |\$)" "$codex")"; fi
	[ $first = 0 ] || [ $second = 0 ] || fail "round $round: neither: $(cat one two)"
done
# --- edit on a terminal: wrong, asked, and right the second time
cat >editor <<'ED'
#!/bin/sh
if [ -e been ]; then sed -i 's/^retention:.*/retention: 7d/' "$1"; else touch been; sed -i 's/^retention:.*/retention: 7x/' "$1"; fi
ED
chmod +x editor
EDITOR=$PWD/editor python3 - "$LYCH_BIN/lych" <<'PY' || fail "asked again"
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "config", "edit"])
seen = b""
while b"Edit it again? [yes/no] " not in seen:
    seen += os.read(fd, 65536)
os.write(fd, b"yes\n")
try:
    while True:
        seen += os.read(fd, 65536)
except OSError:
    pass
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
ok = code == 0 and b"retention: '7x'" in seen and b"written; it counts from the next start" in seen
sys.exit(0 if ok else f"{code} {seen!r}")
PY
is "the second text" 1 "$(grep -cx 'retention: 7d' "$codex")"
is "no copy is left" 1 "$(find "${codex%/*}" -mindepth 1 | wc -l)"
echo "config_set: $count checks"
