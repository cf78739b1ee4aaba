#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Bad input against a whole Lychgate: job descriptions, arguments, paths, directories that go in,
# artifacts that come out. Each refusal says what, why and what to do, leaves no job behind, and
# exits by the table: 1 refused, 2 usage, 3 not found, 4 unavailable, 78 no sandbox.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
descriptions=$PWD/tests/integration/cli/bad_input.py
archives=$PWD/tests/integration/cli/odd_archives.py
lych_begin bad

json() { # expressions over j, printed side by side
	python3 -ISc 'import json,sys; j=json.load(sys.stdin); print(*eval("[" + sys.argv[1] + "]"))' "$1"
}
# Two lines on stderr: title and detail; code and hint. Nothing on stdout.
refused() { # what, exit code, error code, lych's arguments
	local what=$1 want=$2 code=$3 rc
	shift 3
	lych "$@" >out 2>err </dev/null
	rc=$?
	is "$what" "$want" "$rc"
	grep -qE '^lych: [^:]+: .+' err || fail "$what: no title and detail: $(cat err)"
	grep -qE "^      $code  .{8}" err || fail "$what: not $code with a hint: $(cat err)"
	[ ! -s out ] || fail "$what: something on stdout: $(head -c 200 out)"
	LC_ALL=C grep -q "[^[:print:][:space:]]" err && fail "$what: raw bytes on stderr"
}

# --- nobody there: the exit code says so
cd "$LYCH_TMP" || exit 1
for command in jobs "show 1" "logs 1" "cancel 1" "artifacts 1" "run -- true"; do
	# shellcheck disable=SC2086
	refused "$command without a vessel" 4 LYCH-HTTP-008 $command
done

printf 'version: "1"\nlimits:\n  memory:\n    max: "1GiB"\n' >"$LYCH_CONFIG" && chmod 600 "$LYCH_CONFIG"
lych up --detach 2>err || fail "up: $(cat err)"
api=$XDG_RUNTIME_DIR/lychgate/api/vessel.sock
first=$(lych run -n --detach -- true)

# --- descriptions that no client of ours sends
python3 "$descriptions" "$api" || fail "descriptions"

# --- what a program was called is not repeated
for program in "$LYCH_BIN"/lych{,-audit,-sandbox,-scribe,-secret-driver,-tomb,-vessel} "$LYCH_BIN"/tools/lych-{ask,fetch}; do
	(exec -a $'\e[31mx' "$program" --no-such-option) >out 2>&1 </dev/null && fail "$program takes --no-such-option"
	[ -s out ] && ! grep -q $'\e' out || fail "$program: $(cat -v out)"
done

# --- what the command line refuses, and how it says so
bad=$(printf 'a\377b')
mkdir dir && echo x >dir/f && ln -s dir link && echo y >file && mkfifo fifo
refused "argv that is not UTF-8" 2 LYCH-SPEC-007 run -- echo "$bad"
refused "argv that is too long" 2 LYCH-SPEC-007 run -- echo "$(head -c 33000 /dev/zero | tr '\0' x)"
# shellcheck disable=SC2046
refused "too many arguments" 2 LYCH-SPEC-007 run -- $(yes x | head -n 300)
refused "env that is not UTF-8" 2 LYCH-SPEC-008 run --env "A=$bad" -- true
refused "env without a value" 2 LYCH-SPEC-008 run --env A -- true
refused "a loader's hook" 2 LYCH-SPEC-008 run --env LD_PRELOAD=/x -- true
refused "a glob that is not UTF-8" 2 LYCH-SPEC-006 run --artifact "$bad" -- true
refused "a glob upwards" 2 LYCH-SPEC-006 run --artifact '../x' -- true
refused "a path upwards" 2 LYCH-SPEC-006 run --file file=../x -- true
refused "a path upwards inside" 2 LYCH-SPEC-006 run --file file=a/../../x -- true
refused "an absolute path" 2 LYCH-SPEC-006 run --file file=/etc/x -- true
refused "a control character" 2 LYCH-SPEC-006 run --file "file=$(printf 'a\033[31mb')" -- true
refused "a path that is not UTF-8" 2 LYCH-SPEC-006 run --file "file=$bad" -- true
refused "an empty path" 2 LYCH-SPEC-006 run --file file= -- true
refused "a file that is missing" 3 LYCH-CORE-010 run --file none -- true
refused "a file that is a directory" 2 LYCH-CORE-011 run --file dir -- true
refused "a file that is a FIFO" 2 LYCH-CORE-011 run --file fifo -- true
refused "a file that is a device" 2 LYCH-CORE-011 run --file /dev/zero=z -- true
refused "a workspace that is a symlink" 2 LYCH-SPEC-013 run --dir link -- cat f
refused "with a slash behind it" 2 LYCH-SPEC-013 run --dir link// -- cat f
refused "a workspace that is missing" 2 LYCH-SPEC-013 run --dir none -- true
refused "a workspace that is a file" 2 LYCH-SPEC-013 run --dir file -- true
refused "a workspace that is a FIFO" 2 LYCH-SPEC-013 run --dir fifo -- true
refused "a request id" 2 LYCH-SPEC-004 run --request-id '../x' -- true
refused "a limit below all sense" 2 LYCH-SPEC-004 run --memory 1 -- true
refused "a limit above the ceiling" 2 LYCH-SPEC-012 run --memory 2GiB -- true
refused "a limit that is no number" 2 LYCH-CORE-004 run --memory 12abc -- true
refused "a time of nothing" 2 LYCH-CORE-004 run --timeout 0 -- true
refused "a network that does not exist" 2 'LYCH-SPEC-00[0-9]' run --network host -- true
refused "no command" 2 LYCH-CORE-004 run
refused "no such job" 3 LYCH-RUN-001 show 999999
refused "no such job to cancel" 3 LYCH-RUN-001 cancel 999999
refused "an id that is none" 2 LYCH-CORE-004 show "$bad"
refused "an unknown command" 2 LYCH-CORE-004 frobnicate
lych run -n --request-id once --detach -- true >/dev/null || fail "request id"
refused "the same id, other content" 1 LYCH-RUN-002 run --request-id once -- false
lych run -n --json --env LD_PRELOAD=/x -- true 2>err
is "as JSON" "LYCH-SPEC-008 True" "$(json 'j["error_code"], all(j[k] for k in ("title","detail","hint"))' <err)"
is "no job was left by all this" "$first $((first + 1))" \
	"$(lych jobs --json | json '*sorted(x["id"] for x in j["jobs"])')"

# --- a workspace at the two other doors: the sandbox alone, and the tomb's own folder
"$LYCH_BIN/lych-sandbox" --workspace link -- true 2>err; is "the sandbox refuses a link" 78 $?
is "its code" 1 "$(grep -c LYCH-SANDBOX-012 err)"
next=$((first + 2))
mkdir victim && ln -s "$LYCH_TMP/victim" "$LYCHGATE_DATA/tomb/jobs/$next.1"
is "a folder that was made a link beforehand" "/work" "$(lych run -n -- sh -c 'echo x >f; pwd')"
is "is the one that was tried" "$next 2" "$(lych jobs --json --limit 1 | json '*(j["jobs"][0][k] for k in ("id","attempts"))')"
is "nothing was written through it" 0 "$(find victim -mindepth 1 | wc -l)"
is "nor removed with it" 1 "$(find . -maxdepth 1 -name victim | wc -l)"

# --- artifacts: what is not a plain file of its own stays where it is, and is named
lych run -n --disk 700MiB --artifact '**' --out got -- sh -c '
	mkfifo fifo; ln -s /etc/passwd link; ln -s /etc up; echo h >hard; ln hard hard2
	truncate -s 300M sparse; head -c 600000000 /dev/zero >huge
	printf x >"$(printf "new\nline")"; printf x >"$(printf "\377")"; mkdir -p .git/hooks
	echo "#!/bin/sh" >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
	mkdir deep; cd deep; i=0; while [ $i -lt 60 ]; do mkdir d; cd d; i=$((i+1)); done; echo x >bottom
	cd /work; echo good >good; mkdir -p sub; echo good >sub/good' 2>err || fail "artifacts: $(cat err)"
id=$(lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]')
lych show "$id" --json >show
why() { json "next((r['why'] for r in j['result']['refused_artifacts'] if r['path'].startswith('$1')), None)" <show; }
is "a FIFO" fifo "$(why fifo)"
is "a symlink" symlink "$(why link)"
is "a symlink to a directory" symlink "$(why up)"
is "a hard link" "hard link" "$(why hard)"
is "its other name" "hard link" "$(why hard2)"
is "a sparse file" sparse "$(why sparse)"
is "a name with a line feed" name "$(why new)"
is "a path that is too deep" "too deep" "$(why deep)"
is "a hook is held, not delivered" .git/hooks/pre-commit "$(json "j['result']['quarantined'][0]['path']" <show)"
is "what is in order came" "good good" "$(cat got/good got/sub/good | tr '\n' ' ' | sed 's/ $//')"
is "a large file came whole" 600000000 "$(stat -c %s got/huge)"
is "nothing else" 3 "$(find got -type f | wc -l)"
is "no gap in grade full" "[]" "$(json "j['result']['walls']['gaps']" <show)"
lych artifacts "$id" --out got >/dev/null 2>err </dev/null; is "nothing is overwritten" 1 $?
rm -rf got/huge "$LYCHGATE_DATA"/vessel/blobs/*/"$(json "next(a['sha256'] for a in j['result']['artifacts'] if a['path']=='huge')" <show)"
refused "an artifact whose bytes are gone" 3 LYCH-STORE-001 artifacts "$id" --out again
is "half a file is not left" 0 "$(find again -name huge 2>/dev/null | wc -l)"

is "all still works" 42 "$(lych run -n -- echo 42)"
is "the queue's invariants hold" 0 "$(lych_violations)"
is "nobody fell over" "0 0 0 0" "$(json '*(p["restarts"] for p in j["parts"])' <"$LYCHGATE_DATA/starter.json")"
mkdir tree && ln -s nowhere tree/a
lych run -n --dir tree --file file=a/b -- true 2>err; is "a file behind a link of the tree" 65 $?
is "its code" 1 "$(grep -c 'LYCH-EXEC-011  See the detail' err)"
is "no walls are blamed" 0 "$(grep -c doctor err)"

# --- the lesser grade names what it does not close
lych down >/dev/null && printf 'version: "1"\ntomb:\n  grade: floor\n' >"$LYCH_CONFIG" && lych up --detach >/dev/null 2>err ||
	fail "up in grade floor: $(cat err)"
is "a job in grade floor" floor "$(lych run -n -- echo floor)"
id=$(lych jobs --limit 1 --json | json 'j["jobs"][0]["id"]')
is "its gap is named" "floor 1 True" "$(lych show "$id" --json |
	json 'j["result"]["walls"]["grade"], len(j["result"]["walls"]["gaps"]), "metadata" in j["result"]["walls"]["gaps"][0]')"
is "and shown" 1 "$(lych show "$id" | grep -c '^result.walls.gaps .*metadata of other files')"
# --- archives that are accepted, and what is in them
mkdir outside
python3 "$archives" "$api" "$PWD/outside" >out || fail "input archives"
id=$(head -n 1 out)
lych why "$id" >out; is "why of a bad archive" 1 "$(grep -c "nothing ran: its input could not be taken: the input archive" out)"
echo "bad_input: $count checks"
