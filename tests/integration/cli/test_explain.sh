#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# --explain: a denied read, write, execution and connection is named with the wall and the option that
# is missing, and with that option the same command works. What is none of our walls' doing is not named.
# LYCH_BIN: where the programs are (build/release).
set -uo pipefail
bin=${LYCH_BIN:-${LYCH_BUILD:-build/release}}
sandbox=$(realpath "$bin/lych-sandbox") || exit 1
scratch=$(mktemp -d)
trap 'chmod -R u+rwx "$scratch"; rm -rf "$scratch"' EXIT
mkdir "$scratch/work" "$scratch/data" "$scratch/bin" "$scratch/ro" "$scratch/shut"
echo read-me >"$scratch/data/file"
echo shown >"$scratch/ro/file"
echo no >"$scratch/data/private"
: >"$scratch/shut/file"
chmod 000 "$scratch/data/private" "$scratch/shut"
cp /usr/bin/true "$scratch/bin/tool"
failed=0

check() { # what command...
	local what=$1
	shift
	if "$@"; then
		echo "ok   $what"
	else
		echo "FAIL $what"
		failed=$((failed + 1))
	fi
}
options=()
run() { # command...
	timeout 60 "$sandbox" --explain --json --workspace "$scratch/work" --timeout 30 \
		"${options[@]}" -- "$@" </dev/null >"$scratch/stdout" 2>"$scratch/err"
	code=$?
	tail -n 1 "$scratch/err" >"$scratch/end"
}
# An expression over d, the records.
says() {
	python3 -c 'import json, re, sys
j = json.load(open(sys.argv[1])); d = j["denied"]
ok = eval(sys.argv[2])
if not ok: print("   ", json.dumps(d)[:2000])
sys.exit(not ok)' "$scratch/end" "$1"
}
# explained WHAT ACT WALL OBJECT GRANT command...: fails, is named, and works with the grant.
explained() {
	local what=$1 act=$2 wall=$3 object=$4 grant=$5
	shift 5
	run "$@"
	check "$what: is refused" [ "$code" -ne 0 ]
	check "$what: is named, with the option" says \
		"[x['grant'] for x in d if (x['act'], x['wall'], x['object']) == ('$act', '$wall', '$object')] == ['$grant']"
	[ -n "$grant" ] || return
	options+=("${grant%% *}" "${grant#* }")
	run "$@"
	check "$what: $grant makes it work" [ "$code" -eq 0 ]
	check "$what: ... and nothing of it is named" says "not [x for x in d if x['object'] == '$object']"
	options=("${options[@]:0:${#options[@]}-2}")
}

for grade in floor full; do
	options=(--grade "$grade" --ro "$scratch/ro")
	absent=landlock mount=landlock
	[ $grade = full ] && absent=absent mount=mount
	explained "$grade: read" read $absent "$scratch/data/file" "--ro $scratch/data/file" \
		cat "$scratch/data/file"
	explained "$grade: execute" exec $absent "$scratch/bin/tool" "--rox $scratch/bin/tool" \
		"$scratch/bin/tool"
	explained "$grade: execute from a shell" exec $absent "$scratch/bin/tool" \
		"--rox $scratch/bin/tool" sh -c 'cd /; "$1"' sh "$scratch/bin/tool"
	chmod 755 "$scratch/ro/file"
	options=(--grade "$grade" --ro "$scratch/data")
	explained "$grade: write to what is shown" write $mount "$scratch/data/file" \
		"--rw $scratch/data/file" sh -c 'echo more >>"$1"' sh "$scratch/data/file"
	options=(--grade "$grade" --ro "$scratch/ro/file")
	if [ $grade = floor ]; then
		explained "$grade: create" write landlock "$scratch/data/new" "--rw $scratch/data" \
			touch "$scratch/data/new"
		rm -f "$scratch/data/new"
		explained "$grade: list" read landlock "$scratch/data" "--ro $scratch/data" ls "$scratch/data"
		explained "$grade: metadata" metadata landlock "$scratch/data/file" "--rw $scratch/data/file" \
			chmod 600 "$scratch/data/file"
	fi
	: >"$scratch/data/old"
	options=(--grade "$grade" --ro "$scratch/bin")
	explained "$grade: execute what is shown" exec $mount "$scratch/bin/tool" "--rox $scratch/bin/tool" \
		"$scratch/bin/tool"
	options=(--grade "$grade")
	cat >"$scratch/work/connect.py" <<-'END'
	import socket, sys
	s = socket.socket()
	s.settimeout(5)
	server = socket.socket()
	server.bind(("127.0.0.1", 0))
	server.listen(1)
	s.connect((sys.argv[1], int(sys.argv[2]) or server.getsockname()[1]))
	END
	if [ $grade = full ]; then
		explained "$grade: connect to the outside" connect network 192.0.2.1:443 "" \
			python3 connect.py 192.0.2.1 443
		check "$grade: ... as the kernel says it" says 'd[-1]["errno"] == "ENETUNREACH"'
		run python3 connect.py 127.0.0.1 0
		check "$grade: its own loopback works and is not named" says 'd == [] and j["code"] == 0'
		run python3 connect.py 127.0.0.1 9
		check "$grade: a closed port is no wall" says 'd == [] and j["code"] != 0'
		options=(--grade full --network none)
		run python3 connect.py 127.0.0.1 0
		check "$grade: a socket without a network" says \
			'[(x["act"], x["object"], x["grant"]) for x in d] == [("connect", "socket family 2 (inet)", "--network loopback")]'
	else
		run python3 connect.py 127.0.0.1 0
		check "$grade: a socket" says \
			'[(x["act"], x["object"], x["grant"]) for x in d] == [("connect", "socket family 2 (inet)", "--grade full")]'
	fi
	options=(--grade "$grade" --ro "$scratch/data")
	run sh -c "cat $scratch/data/private; cat $scratch/data/none; cat none; mkdir sub; rmdir sub
		echo a >own; mv own own2; rm own2; cat $scratch/shut/file; cat /etc/passwd; ls /usr >/dev/null
		ln -s nowhere link; cat link; rm link; true"
	check "$grade: modes, missing names and its own files are not named" says 'd == []'
	# What is told is in order, escaped, and not part of any answer: the same without.
	run sh -c "cat '$scratch/data/x
y'; exit 7"
	check "$grade: the job's own code" [ "$code" -eq 7 ]
	options=(--grade "$grade")
	run python3 -c 'import threading
def f():
    for i in range(300):
        try: open("/root/%d" % i)
        except OSError: pass
        open("own%d" % (i % 7), "w").close()
t = [threading.Thread(target=f) for _ in range(8)]
[x.start() for x in t]; [x.join() for x in t]'
	check "$grade: eight threads at once" [ "$code" -eq 0 ]
done

# What is not shown is missed by who looks, makes and removes too, by any name for it.
mkdir "$scratch/away" "$scratch/away/sub"
echo away >"$scratch/away/file"
told() { # WHAT ACT CALL-PATTERN OBJECT GRANT command...: absent, with the option; with it, it works
	local what=$1 act=$2 calls=$3 object=$4 grant=$5
	shift 5
	run "$@"
	check "full: $what: is refused" [ "$code" -ne 0 ]
	check "full: $what: is told as absent, with the option" says \
		"[(x['act'], x['grant']) for x in d if x['wall'] == 'absent' and x['object'] == '$object' and re.match('$calls', x['call'])][:1] == [('$act', '$grant')]"
	options+=("${grant%% *}" "${grant#* }")
	run "$@"
	check "full: $what: $grant makes it work" [ "$code" -eq 0 ]
	check "full: $what: ... and nothing is told" says 'd == []'
	options=("${options[@]:0:${#options[@]}-2}")
}
options=(--grade full)
told "ls" read "newfstatat|statx|stat" "$scratch/away" "--ro $scratch/away" ls "$scratch/away"
told "ls, a slash behind" read "newfstatat|statx|stat" "$scratch/away" "--ro $scratch/away" ls "$scratch/away/"
told "test -e" read ".*" "$scratch/away/file" "--ro $scratch/away/file" sh -c 'test -e "$1"' sh "$scratch/away/file"
told "cd" read "chdir|.*stat.*" "$scratch/away" "--ro $scratch/away" sh -c 'cd "$1"' sh "$scratch/away"
told "mkdir" write "mkdir" "$scratch/away/new" "--rw $scratch/away" mkdir "$scratch/away/new"
rmdir "$scratch/away/new"
told "touch" write "openat" "$scratch/away/new" "--rw $scratch/away" python3 -c 'import sys; open(sys.argv[1], "w")' "$scratch/away/new"
told "rm" write "unlink" "$scratch/away/new" "--rw $scratch/away" python3 -c 'import os, sys; os.unlink(sys.argv[1])' "$scratch/away/new"
run sh -c "mkdir a/b; rm none; rmdir none; ls none; cd none; test -e none; mkdir $scratch/none/x; rm $scratch/none/y; ls $scratch/none
	ls /usr/none; cat /usr/lib/none; rm $scratch/away/none; ls $scratch/away/none"
check "full: what is not there outside either is not told" says 'd == []'

# A name that is looked up: there is no network, and the words say whom to ask.
run python3 -c 'import socket; socket.getaddrinfo("name.example", 443)'
check "full: a name looked up is told, as absence" says \
	"[(x['act'], x['wall'], x['object'], x['grant']) for x in d] == [('connect', 'absent', 'names (DNS)', '')]"
run python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.0.0.1", 53))'
check "full: a resolver of its own, too" says \
	"[(x['act'], x['wall'], x['object'], x['errno']) for x in d] == [('connect', 'network', '127.0.0.1:53', 'ECONNREFUSED')]"
"$sandbox" --explain -- python3 -c 'import socket; socket.getaddrinfo("name.example", 443)' </dev/null >/dev/null 2>"$scratch/err"
check "full: in words" grep -qxF "lych-sandbox: a name was looked up: there is no network and no DNS in a sandbox, only its own localhost; a job asks its broker for a URL (lych-fetch)" "$scratch/err"
run python3 -c 'import socket; socket.getaddrinfo("192.0.2.1", 443)'
check "full: an address is no name" says 'd == []'

# In floor also names that a tmpfs does not have, of which the kernel keeps no note.
shm=$(mktemp -d /dev/shm/explain-XXXXXX)
options=(--grade floor)
run python3 -c 'import sys; open(sys.argv[1] + "/new", "w")' "$shm"
rmdir "$shm"
check "floor: a new name on a tmpfs" says \
	"[(x['act'], x['wall'], x['object'], x['errno']) for x in d] == [('write', 'landlock', '$shm/new', 'EACCES')]"

# In floor also the own directory of /proc, by the name that was used; not what leads out of it.
run python3 -c 'import os
for path in "/proc/self/status", "/proc/thread-self/maps", "/proc/self/none", "/proc/self/../1/maps", "/proc/sys/kernel/ostype":
    try: open(path)
    except OSError: pass
open("/proc/self/fd/0"), open("/proc/self/exe")
try: os.listdir("/proc/self/fd")
except OSError: pass'
check "floor: its own directory of /proc, and a name that the kernel has not at hand" says \
	"sorted((x['act'], x['wall'], x['object'], x['errno'], x['grant']) for x in d) == [('read', 'landlock', p, 'EACCES', g)
		for p, g in (('/proc/self/fd', '--grade full'), ('/proc/self/status', '--grade full'), ('/proc/sys/kernel/ostype', ''),
			('/proc/thread-self/maps', '--grade full'))]"

# No option is offered for what keeps secrets, nor for what holds such a thing, nor for a link or a socket.
mkdir -p "$scratch/keeps/inner/.ssh" "$scratch/keeps/.config/gh" "$scratch/keeps/.gnupg" "$scratch/keeps/.aws" \
	"$scratch/keeps/secrets" "$scratch/fine" "$scratch/keys" "$scratch/keeps/.config/fly" "$scratch/keeps/.config/Signal" \
	"$scratch/keeps/.electrum" "$scratch/keeps/.local/share/fish"
secrets=(inner/.ssh/config .config/gh/hosts.yml .gnupg/pubring.kbx .aws/credentials .env .env.local .netrc .npmrc
	.git-credentials .claude.json id_ed25519 secrets/lychgate_db_vessel .pgpass .Xauthority .ICEauthority .netrc.gpg
	.config/fly/config.yml .config/Signal/config.json .electrum/config .local/share/fish/fish_history .msmtprc .mbsyncrc)
for name in "${secrets[@]}"; do echo secret >"$scratch/keeps/$name"; done
echo plain >"$scratch/keeps/plain"
printf 'x\n-----BEGIN OPENSSH %s KEY-----\n' PRIVATE >"$scratch/keys/deploy"
ln -s plain "$scratch/keeps/link"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$scratch/keeps/socket"
cat >"$scratch/work/look.py" <<'END'
import os, sys
for path in sys.argv[1:]:
    try:
        os.listdir(path) if path.endswith("/") else open(path).read()
    except OSError:
        pass
END
for grade in floor full; do
	options=(--grade "$grade")
	run python3 look.py "${secrets[@]/#/$scratch/keeps/}" "$scratch/keeps/plain" "$scratch/keeps/inner/.ssh/"
	check "$grade: each secret is told, and offered by nothing" says \
		"sorted(x['object'].rstrip('/') for x in d if not x['grant'] and x['withheld'].startswith('it keeps secrets (')) == sorted('$scratch/keeps/' + n for n in '${secrets[*]} inner/.ssh'.split())"
	check "$grade: what is beside them is" says \
		"[x['grant'] for x in d if x['grant']] == ['--ro $scratch/keeps/plain']"
	run python3 look.py "$scratch/keeps/" "$scratch/fine/" "$scratch/keys/" "$scratch/keys/deploy"
	check "$grade: nor is what holds them, by a name or by its bytes" says \
		"sorted((x['object'], x['grant'], x.get('withheld', '')[:29]) for x in d) == [('$scratch/fine', '--ro $scratch/fine', ''), ('$scratch/keeps', '', 'it holds what keeps secrets ('), ('$scratch/keys', '', 'it holds what keeps secrets ('), ('$scratch/keys/deploy', '', 'it holds a private key')]"
done
run python3 look.py "$scratch/keeps/link" "$scratch/keeps/socket"
check "full: nor a link or a socket" says \
	"sorted((x['grant'], x['withheld']) for x in d) == [('', 'it is a socket'), ('', 'it is, or lies behind, a link')]"
"$sandbox" --explain -- cat "$scratch/keeps/.env" </dev/null >/dev/null 2>"$scratch/err"
check "in words" grep -qF "no option is offered: it keeps secrets (the environment of a program)" "$scratch/err"

# In words, for a person; nothing in what the job named can reach the terminal.
options=()
esc=$'\e'
mkdir "$scratch/data/a b"
echo x >"$scratch/data/a b/f${esc}[31m"
"$sandbox" --grade floor --explain -- cat "$scratch/data/file" "$scratch/data/a b/f${esc}[31m" \
	</dev/null >/dev/null 2>"$scratch/err"
check "a sentence with the option" grep -qF \
	"lych-sandbox: read \"$scratch/data/file\" refused (landlock: nothing grants this), openat gave EACCES; --ro $scratch/data/file would allow it" \
	"$scratch/err"
check "no escape sequence in it" [ "$(grep '^lych-sandbox' "$scratch/err" | grep -c "$esc")" -eq 0 ]
echo "$failed checks failed"
[ $failed -eq 0 ]
