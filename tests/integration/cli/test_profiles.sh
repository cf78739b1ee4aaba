#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# lych sandbox --profile: a profile that others could change, that the job could change, or that says
# something unknown is refused, with its file and line; each profile that is shipped does its work,
# as make install puts it there.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin profiles
tree=$PWD
make -s install VARIANT="${VARIANT:-release}" DESTDIR="$LYCH_TMP/dest" PREFIX=/usr >"$LYCH_TMP/install.log" 2>&1 ||
	fail "make install: $(tail -3 "$LYCH_TMP/install.log")"
LYCH=$LYCH_TMP/dest/usr/bin/lych
mine=$HOME/.config/lychgate/profiles
mkdir -p "$mine" "$LYCH_TMP/w/sub"
cd "$LYCH_TMP/w" || exit 1

count=0
is() { # what, expected, got
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'; stderr: $(tail -3 err 2>/dev/null)"
	count=$((count + 1))
}
sandbox() { timeout 120 "$LYCH" sandbox "$@" 2>"$LYCH_TMP/w/err"; }
profile() { cat >"$mine/$1" && chmod 0644 "$mine/$1"; } # name, from stdin
refused() { # what, code, text in the message, arguments of lych sandbox
	local what=$1 code=$2 words=$3
	shift 3
	: >ran
	sandbox "$@" -- sh -c 'echo yes >ran'; is "$what" 2 $?
	is "$what: nothing ran" 0 "$(stat -c %s ran)"
	is "$what: code" 1 "$(grep -c "$code" err)"
	is "$what: words" 1 "$(grep -cF -- "$words" err)"
}

# --- refusals of the command line
sandbox >/dev/null; is "nothing" 2 $?
sandbox --profile look >/dev/null; is "no command" 2 $?
sandbox --profile >/dev/null; is "no name" 2 $?
refused "an unknown option" LYCH-CORE-004 "--dev-bind" --dev-bind /
refused "the spawner's option" LYCH-CORE-004 "--serve" --serve 3
refused "twice" LYCH-CORE-004 "given twice" --memory 1GiB --limit memory=2GiB
refused "a name that is none" LYCH-SPEC-014 "there is no profile nowhere" --profile nowhere
refused "an odd name" LYCH-SPEC-014 "a profile is a name" --profile -x
refused "a name upwards" LYCH-SPEC-014 "a profile is a name" --profile ..

# --- never from the working directory, unless it is named as a file
echo '--network none' >local && chmod 0644 local
refused "a file of the working directory" LYCH-SPEC-014 "there is no profile local" --profile local
sandbox --profile ./local -- true; is "named as a file" 0 $?

# --- refusals of a line, with file and line
printf '# one\n\n--ro /usr/share\n--dev-bind /\n' | profile p
refused "an unknown key" LYCH-SPEC-002 "$mine/p:4: unknown option '--dev-bind'" --profile p
# shellcheck disable=SC2016
for line in 'ro /usr' '--' '-- sh' '--ro' '--memory' '--json 1' '--json=1' '--ro $HOME/x' '--ro ${HOME}' \
	'--ro relative' '--rw ../x' '--ro ~other/x' '--include ./look' '--include nowhere' "--ro $(printf '/a\033b')"; do
	printf '\n%s\n' "$line" | profile p
	refused "line: $line" LYCH-SPEC-014 "$mine/p:2: " --profile p
done
for line in '--serve 3' '--profile look' '--jobs /x' '--print'; do
	printf '%s\n' "$line" | profile p
	refused "line: $line" LYCH-SPEC-002 "$mine/p:1: unknown option" --profile p
done
printf -- '--network none\r\n' | profile p
refused "a DOS line" LYCH-SPEC-014 "control byte (0x0d)" --profile p
printf -- '--env A=\000b\n' | profile p
refused "a NUL" LYCH-SPEC-014 "control byte (0x00)" --profile p
head -c 70000 /dev/zero | tr '\0' '#' | profile p
refused "a long file" LYCH-SPEC-014 "above 65536 bytes" --profile p
printf -- '--include q\n' | profile p
printf -- '--include look\n' | profile q
refused "an include in an include" LYCH-SPEC-014 "an included profile includes no other" --profile p
printf -- '--include p\n' | profile p
refused "itself" LYCH-SPEC-014 "an included profile includes no other" --profile p
printf -- '--memory 12abc\n' | profile p
sandbox --profile p -- true; is "a value is judged by lych-sandbox" 2 $?
is "its words" 1 "$(grep -c '^lych-sandbox: [^:]*: .*12abc' err)"
is "its code" 1 "$(grep -c '^      LYCH-SPEC-[0-9]*  ' err)"

# --- refusals of a file that is not the owner's alone
printf -- '--network none\n' | profile p
chmod 0664 "$mine/p"; refused "group-writable" LYCH-SPEC-014 "can be written by others" --profile p
chmod 0646 "$mine/p"; refused "writable by all" LYCH-SPEC-014 "can be written by others" --profile p
chmod 0644 "$mine/p"
chmod 0777 "$mine"; refused "in a directory of all" LYCH-SPEC-014 "can be written by others" --profile p
chmod 0755 "$mine"
mkdir -m 0777 open && ln -s "$mine/p" open/link
refused "a link that all can replace" LYCH-SPEC-014 "can be written by others" --profile ./open/link
ln -s "$mine/p" link && sandbox --profile ./link -- true; is "a link that only you can replace" 0 $?
mkfifo "$mine/fifo"; refused "a pipe" LYCH-SPEC-014 "not a regular file" --profile fifo
mkdir "$mine/dir"; refused "a directory" LYCH-SPEC-014 "not a regular file" --profile dir
refused "a device" LYCH-SPEC-014 "not a regular file" --profile /dev/null
chmod 000 "$mine/p"; refused "unreadable" LYCH-SPEC-014 "Permission denied" --profile p
chmod 0644 "$mine/p"

# --- a job must not be able to write its own profile, whoever grants that
refused "in a --rw of the command line" LYCH-SPEC-014 "could grant itself more" --profile p --rw "$HOME/.config"
refused "in the workspace" LYCH-SPEC-014 "could grant itself more" --profile ./local --workspace .
printf -- '--rw ~/.config/lychgate\n' | profile p
refused "in its own --rw" LYCH-SPEC-014 "could grant itself more" --profile p
printf -- '--include q\n--rw %s\n' "$LYCH_TMP/w" | profile p
printf -- '--network none\n' >w-q && ln -sf "$LYCH_TMP/w/w-q" "$mine/q2"
printf -- '--include q2\n--rw %s\n' "$LYCH_TMP/w" | profile p
refused "an included file in a --rw" LYCH-SPEC-014 "could grant itself more" --profile p
refused "a link to it in a --rw" LYCH-SPEC-014 "could grant itself more" --profile ./link --rw .

# --- the home directory is not shown by a dot
(cd "$HOME" && "$LYCH" sandbox --profile look -- true 2>"$LYCH_TMP/w/err"); is "'.' at home" 2 $?
is "its words" 1 "$(grep -c 'would show your home directory' err)"
(cd / && "$LYCH" sandbox --profile look -- true 2>"$LYCH_TMP/w/err"); is "'.' at the root" 2 $?

# --- nor by any other path, but with a word of its own
listed=$(getent passwd "$(id -u)" | cut -d: -f6)
ln -s "$listed" home-link
for way in "--ro $listed" "--rw $listed/" "--rox home-link" "--workspace $listed" "--workspace-ro $listed" "--rw home-link/../${listed##*/}/."; do
	# shellcheck disable=SC2086
	refused "$way" LYCH-SPEC-006 "is your home directory" $way
done
refused "what holds it" LYCH-SPEC-006 "holds your home directory" --ro "${listed%/*}"
env -i "$LYCH_TMP/dest/usr/libexec/lychgate/lych-sandbox" --ro "$listed" -- true 2>err; is "without a variable" 2 $?
is "by the user's line in /etc/passwd" 1 "$(grep -c "$listed is your home directory" err)"
is "with it" "$listed" "$(sandbox --home --ro "$listed" -- ls -d "$listed")"
is "a directory in it needs none" 0 "$(mkdir -p "$HOME/a" && sandbox --ro "$HOME/a" -- true; echo $?)"

# --- how it reads
printf '\t# c\n\n  --env  A=b c  \n--env=B==x\n--ro ~/r\n--limit memory=64MiB\n--json' | profile p
mkdir -p "$HOME/r"
is "blanks, '=', '~', a last line without its end" "--env|A=b c|--env|B==x|--ro|$HOME/r|--limit|memory=64MiB|--json|--|true|" \
	"$(sandbox --print --profile p -- true | tail -n +2 | tr '\n' '|')"
is "the command line wins" "--env|A=1|--env|B==x|--ro|$HOME/r|--memory|1GiB|--json|--|true|" \
	"$(sandbox --print --env A=1 --profile p --memory 1GiB -- true | tail -n +2 | tr '\n' '|')"
is "a job's own option is not ours" "--|--profile|x|" "$(sandbox --print -- --profile x | tail -n +2 | tr '\n' '|')"
printf -- '--include look\n--network loopback\n' | profile p
is "an include comes first" "--network loopback" "$(sandbox --print --profile p -- true | grep -A1 -e --network | tr '\n' ' ' | sed 's/ $//')"
printf -- '--network none\n' | profile look
is "your own comes before the installed one" 0 "$(sandbox --print --profile look -- true | grep -c -e --ro)"
rm "$mine/look"
is "the shipped ones are listed" "$(find "$tree/cli/profiles" -maxdepth 1 -type f -printf "%f\n" | sort)" "$("$LYCH" sandbox --list | grep "$LYCH_TMP/dest/usr/lib/lychgate" | awk '{print $1}')"
sandbox -- sh -c 'exit 7'; is "the exit code" 7 $?
is "stdin and stdout" hello "$(echo hello | sandbox -- cat)"

# --- what is shipped does its work
echo secret >"$HOME/secret"
sandbox --profile look -- sh -c 'ls sub && touch /tmp/x && ! touch x'; is "look" 0 $?
[ ! -e x ] || fail "look: it wrote"
sandbox --profile look -- cat "$HOME/secret" >out; is "look: not your home" 1 $?
is "look: nothing of it" "" "$(cat out)"
cat >t.py <<'PY'
import http.server, os, tempfile, threading, unittest, urllib.request
class T(unittest.TestCase):
    def test_loopback(self):
        s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=s.handle_request).start()
        self.assertEqual(urllib.request.urlopen(f"http://127.0.0.1:{s.server_port}/t.py").status, 200)
        s.server_close()
    def test_tree_is_read_only(self):
        self.assertRaises(OSError, open, "new", "w")
        tempfile.TemporaryFile().close()
unittest.main()
PY
sandbox --profile offline-tests -- python3 t.py; is "offline-tests" 0 $?
sandbox --profile python -- python3 -c 'import json; json.dump([1], open("o.json", "w"))'; is "python" 0 $?
is "python: its file" "[1]" "$(cat o.json)"
sandbox --profile node -- node -e 'require("fs").writeFileSync("n", String(process.memoryUsage().rss > 0))'; is "node" 0 $?
is "node: its file" true "$(cat n)"
is "php: with what is in /etc/php" 1 "$(sandbox --print --profile php -- true | tr '\n' ' ' | grep -c -e '--ro /etc/php ')"
printf '#include <stdio.h>\nint main(void) { return puts("built") < 0; }\n' >m.c
printf 'm: m.c\n\tcc -O1 -o m m.c\n' >Makefile
sandbox --profile c-build -- make >/dev/null; is "c-build" 0 $?
is "c-build: what was built runs" built "$(sandbox --profile c-build -- ./m)"
echo "profiles: $count checks"
