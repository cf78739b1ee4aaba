#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# lych quarantine: what was put aside is named, shown and, by a person alone, taken out. The copies lie where the tomb
# writes, so each of them, its list and every place that it would go to is tried as a trap first.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin quarantine
lych up --detach <&- >&- 2>&- || fail "up"
screen=$PWD/tests/integration/cli/screen.py
cd "$LYCH_TMP" || exit 1
held=$LYCHGATE_DATA/tomb/quarantine

refused() { # code, text, lych quarantine's arguments
	local code=$1 text=$2
	shift 2
	lych quarantine "$@" >out 2>err </dev/null; is "$* : exit code" "$code" $?
	grep -qF -- "$text" err || fail "$*: not '$text' but $(cat err)"
	is "$*: nothing on stdout" "" "$(cat out)"
}
events() { # the end of the name: released, release_requested, release_failed
	lych audit tail -n 500 --json | grep -c "\"event\":\"quarantine.${1:-released}\""
}
number() { awk -v path="$1" '$NF == path { print $2 }' <table; } # of the file with that path in the list

# --- nothing is held
is "an empty list" "no files are in quarantine" "$(lych quarantine list)"
is "in JSON" '{"files":[],"jobs":[]}' "$(lych quarantine list --json)"
for words in "" list\ 1 show "show 1 2 3" frobnicate "release 1 1" "release 1 --out o"; do
	# shellcheck disable=SC2086
	lych quarantine $words >/dev/null 2>&1; is "quarantine $words" 2 $?
done
refused 3 "no files of job 1 are in quarantine" show 1
refused 2 "'lych retry JOB'" release 1

# --- files that programs obey
cat >make.sh <<'JOB'
mkdir -p .git/hooks o
printf '#!/bin/sh\n# %300s evil\necho \033[31mhook\033[0m\n' '' >.git/hooks/pre-commit
echo 'export A=1' >.envrc
seq 30 >.gitattributes
echo fine >o/a
JOB
job=$(lych run -n --detach --file make.sh --artifact '**' -- sh make.sh) || fail "run"
lych logs -f "$job" >/dev/null || fail "the job"
lych quarantine list >table; is "list" 0 $?
is "its head" "JOB FILE SIZE WHY PATH" "$(head -n 1 table | xargs)"
hook=$(number .git/hooks/pre-commit) envrc=$(number .envrc) attributes=$(number .gitattributes)
is "a row" "$job $envrc 11 B direnv .envrc" "$(grep -F .envrc table | xargs)"
is "three of them" 4 "$(wc -l <table)"
is "of one job" "$(cat table)" "$(lych quarantine show "$job")"
is "in JSON" ".envrc direnv 11 $job" \
	"$(lych quarantine list --json | json '[" ".join((f["path"], f["why"], str(f["size"]), str(f["job"]))) for f in j["files"] if f["path"] == ".envrc"][0]')"
is "its bytes in a pipe" "export A=1" "$(lych quarantine show "$job" "$envrc")"
"$screen" 80 "$LYCH_BIN/lych" quarantine show "$job" "$hook" >out || fail "on a terminal"
is "what it is" "git metadata: hooks, config, attributes|program" "$(sed -n 's/^held *//p;s/^class *//p' out | paste -sd '|')"
is "each byte as what it is" '  | echo \x1b[31mhook\x1b[0m' "$(tail -n 1 out)"
is "no line of it is cut" 1 "$(grep -c ' evil$' out)"
is "its digest" "$(lych quarantine show "$job" "$hook" | sha256sum | cut -d ' ' -f 1)" "$(sed -n 's/^sha256 *//p' out)"

# --- release: refused where nobody can be asked, of what is not there, and by who says no
refused 2 "nobody can be asked here" release "$job" "$hook" --out o
refused 3 "no file 99 of job $job" release "$job" 99 --out o --yes
refused 3 "no file $hook of job 999" release 999 "$hook" --out o --yes
answer() { # answer, lych quarantine's arguments: on a terminal
	python3 - "$LYCH_BIN/lych" quarantine "${@:2}" "$1" <<'PY'
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:-1])
seen = b""
while b"[yes/no] " not in seen:
    seen += os.read(fd, 65536)
assert os.system(os.environ.get("MEANWHILE", "true")) == 0
os.write(fd, sys.argv[-1].encode() + b"\n")
try:
    while piece := os.read(fd, 65536):
        seen += piece
except OSError:
    pass
print(seen.decode().replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
}
answer y release "$job" "$attributes" --out o >out; is "y is not yes" 1 $?
is "nothing was written" 1 "$(grep -c 'the answer was not yes: nothing was written' out)"
is "it was shown first" "20 1" "$(grep -cE '^  \| [0-9]+$' out) $(grep -cE '^  … [0-9]+ more bytes$' out)"
is "no directory was made" "" "$(ls -A o 2>/dev/null)"

# --- places that lead elsewhere
mkdir -m 0700 elsewhere trap1 trap2 trap3
ln -s "$PWD/elsewhere" trap1/.git
mkdir trap2/.git && ln -s ../../elsewhere trap2/.git/hooks
ln -s "$PWD/elsewhere/new" trap3/.envrc
lych quarantine release "$job" "$hook" --out trap1 --yes >out 2>err; is "a link above it" 1 $?
lych quarantine release "$job" "$hook" --out trap2 --yes >out 2>err; is "a link in its folder's place" 1 $?
lych quarantine release "$job" "$envrc" --out trap3 --yes >out 2>err; is "a link of its name" 1 $?
is "it exists already" 1 "$(grep -c LYCH-STORE-006 err)"
lych quarantine release "$job" "$envrc" --out trap3 --yes --force >out 2>err; is "replaced with --force" 0 $?
is "the link, not what it names" "regular file 644 export A=1" "$(stat -c '%F %a' trap3/.envrc) $(cat trap3/.envrc)"
is "nothing came elsewhere" "" "$(ls -A elsewhere)"
is "one was released, one is in the log" 1 "$(events)"

# --- copies and lists that are not what they were
folder=$held/$(ls "$held")
cp -a "$folder" saved
again() { rm -rf "$folder" && cp -a saved "$folder"; }
damaged() { # what, exit code, text
	lych quarantine release "$job" "$envrc" --out new --yes >out 2>err; is "$1" "$2" $?
	grep -qF -- "$3" err || fail "$1: $(cat err)"
	is "$1: nothing is written" "" "$(ls -A new 2>/dev/null)"
	again
}
echo 'export A=2' >"$folder/$envrc"; damaged "other bytes" 1 "is not what the tomb put there"
echo 'more' >>"$folder/$envrc"; damaged "more bytes" 1 "is not what the tomb put there"
ln -sf "$HOME/.config" "$folder/$envrc"; damaged "a link for a copy" 1 "LYCH-CORE-002"
ln "$folder/$envrc" other; damaged "a second name" 1 "not a regular file with one name"
rm other "$folder/$envrc"; mkfifo "$folder/$envrc"; damaged "a FIFO" 1 "not a regular file with one name"
sed -i 's|".envrc"|"../escaped"|' "$folder/manifest.jsonl"; damaged "a path that leads out" 3 "its manifest is missing or damaged"
sed -i 's|"copy":|"kopy":|' "$folder/manifest.jsonl"; damaged "another form" 3 "its manifest is missing or damaged"
rm "$folder/manifest.jsonl"; ln -s "$PWD/saved/manifest.jsonl" "$folder/manifest.jsonl"; damaged "a list that is a link" 3 "its manifest is missing or damaged"
mv "$folder" moved; ln -s "$PWD/moved" "$folder"; damaged "a folder that is a link" 3 "its manifest is missing or damaged"
is "none of it is in the log" "1 1 0" "$(events) $(events release_requested) $(events release_failed)"

# --- release: where it would have gone
answer yes release "$job" "$hook" --out new >out; is "yes" 0 $?
is "what is told last" "new/.git/hooks/pre-commit written, mode 0644; the audit log has it" "$(grep . out | tail -n 1)"
is "its bytes" "$(cat "$folder/$hook")" "$(cat new/.git/hooks/pre-commit)"
is "it can't be executed yet" 644 "$(stat -c %a new/.git/hooks/pre-commit)"
is "the log" 2 "$(events)"
is "with the file" "1" "$(lych audit tail -n 500 --json | grep '"event":"quarantine.released"' | grep '"correlation_uid":"'"$job"'"' | grep -c '"path":".git/hooks/pre-commit","why":"git metadata: hooks, config, attributes","size":')"
log=$(lych audit tail -n 500 --json | grep '"event":"quarantine.release' | grep pre-commit)
is "the wish before the end, and where to" "release_requested released 2" \
	"$(grep -oE '"event":"quarantine.[a-z_]+"' <<<"$log" | cut -d '"' -f 4 | cut -d . -f 2 | xargs) $(grep -cF "\"to\":\"$PWD/new\"" <<<"$log")"
is "the copy stays" 4 "$(lych quarantine list | wc -l)"
refused 1 "new/.git/hooks/pre-commit" release "$job" "$hook" --out new --yes
mkdir asked
MEANWHILE='mv asked away && ln -s elsewhere asked' answer yes release "$job" "$envrc" --out asked >out; is "exchanged while it was asked" 0 $?
is "it is where it was asked for" "export A=1" "$(cat away/.envrc)"
is "nothing came elsewhere" "" "$(ls -A elsewhere)"

# --- a scribe that answers too late (and a starter that does not begin another): refused, and the log says so
starter=$(lych_pid supervisor) scribe=$(lych_pid scribe)
kill -STOP "$starter" "$scribe" || fail "stop the scribe"
lych quarantine release "$job" "$envrc" --out slow --yes >out 2>err; code=$?
kill -CONT "$scribe" "$starter"
is "no answer of the scribe: refused" "4 1" "$code $(grep -c LYCH-AUDIT-004 err)"
is "nothing was written" "" "$(ls -A slow 2>/dev/null)"
failed() { [ "$(events release_failed)" = 1 ]; }
wait_until 60 "that it failed is not in the log" failed
is "it is not told as released" "4 3" "$(events release_requested) $(events)"

# --- jobs in quarantine, contained ones, one that is gone, and no vessel
lych_sql "UPDATE lych.job SET state = 'quarantined', finished_at = NULL WHERE id = $job"
is "a job" "job $job is in quarantine itself: 'lych why $job' tells why" "$(lych quarantine list | tail -n 1)"
is "in JSON" "[$job]" "$(lych quarantine list --json | json '[x["id"] for x in j["jobs"]]')"
lych_sql "UPDATE lych.job SET taint = 'a canary' WHERE id = $job"
lych quarantine release "$job" "$envrc" --out other --yes >out 2>err; is "contained" 1 $?
is "it says so" 1 "$(grep -c LYCH-RUN-012 err)"
lych quarantine show "$job" "$envrc" >out 2>err; is "contained: nor shown" "1 0 1" "$? $(wc -c <out) $(grep -c LYCH-RUN-012 err)"
is "but as evidence" "export A=1" "$(lych quarantine show --tainted "$job" "$envrc")"
lych_sql "UPDATE lych.job SET taint = NULL WHERE id = $job"
lych rm "$job" >/dev/null || fail "rm"
lych quarantine release "$job" "$envrc" --out other --yes >out 2>err; is "a job that is gone" 3 $?
is "what it left is still there" 4 "$(lych quarantine list | wc -l)"
is "and shown, as it was not contained" "export A=1" "$(lych quarantine show "$job" "$envrc")"
is "nothing was written" "" "$(ls -A other)"
lych down >/dev/null || fail "down"
lych quarantine list >out 2>err; is "no vessel: an error" 4 $?
is "but the files are told" 4 "$(wc -l <out)"
lych quarantine show "$job" "$envrc" >out 2>err; is "no vessel: was it contained?" "4 0 1" "$? $(wc -c <out) $(grep -c tainted err)"
is "who says so sees it" "export A=1" "$(lych quarantine show --tainted "$job" "$envrc")"
lych quarantine release "$job" "$envrc" --out other --yes >out 2>err; is "no vessel: nothing is released" 4 $?
lych quarantine release "$job" "$hook" --out other --yes >out 2>err; is "no vessel: nor with directories above it" 4 $?
is "nothing was written" "" "$(ls -A other)"
echo "quarantine: $count checks"
