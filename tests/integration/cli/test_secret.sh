#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# lych secret over both stores: refusals, what check sees, rotation of a running Lychgate; Podman's
# store through a stand-in that calls the real shell driver.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
here=$PWD
. tests/support/lych.sh
lych_begin secret
refused() { # what, code, command...
	local what=$1 code=$2
	shift 2
	"$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" </dev/null && fail "$what: not refused"
	grep -q "$code" "$LYCH_TMP/err" || fail "$what: $(cat "$LYCH_TMP/err")"
	count=$((count + 1))
}
bad() { # STORE: the names that check calls bad
	lych secret check --store="$1" --json 2>/dev/null | python3 -c '
import json, sys
print(*sorted(s["name"] for s in json.load(sys.stdin)["secrets"] if not s["ok"]))'
}
S=$LYCHGATE_DATA/secrets

# --- refusals
refused "no store yet" LYCH-SECRET-002 lych secret list
refused "no such verb" LYCH-CORE-004 lych secret show
refused "no name" LYCH-CORE-004 lych secret set
refused "a value in argv" LYCH-CORE-004 lych secret set lychgate_work some-value-in-argv
refused "a name that is not in the manifest" LYCH-SECRET-007 lych secret set lychgate_other --generate
refused "a path" LYCH-SECRET-007 lych secret set ../lychgate_work --generate
refused "no such store" LYCH-CORE-004 lych secret list --store=vault
refused "an empty value" LYCH-SECRET-008 lych secret set lychgate_work
refused "a short value" LYCH-SECRET-008 bash -c "echo short | '$LYCH_BIN/lych' secret set portal_x"
refused "two lines" LYCH-SECRET-008 bash -c "printf '0123456789abcdef\n0123456789abcdef\n' | '$LYCH_BIN/lych' secret set portal_x"
for c in '%' '"' "\\"; do
	printf '0123456789abcdef%s0123456789' "$c" >"$LYCH_TMP/odd"
	refused "a key with $c" LYCH-SECRET-008 bash -c "'$LYCH_BIN/lych' secret set portal_x <'$LYCH_TMP/odd'"
	refused "a key of a host with $c" LYCH-SECRET-008 bash -c "'$LYCH_BIN/lych' secret set host_x <'$LYCH_TMP/odd'"
done
refused "a provider's key is not made up" LYCH-SECRET-008 lych secret set portal_x --generate
refused "what is not there is not removed" LYCH-SECRET-002 lych secret rm portal_x
refused "what is not there is not rotated" LYCH-SECRET-002 lych secret rotate lychgate_work
is "nothing was made" 0 "$(find "$S" -type f | wc -l)"
refused "missing ones are seen" LYCH-SECRET-009 lych secret check
is "which" "lychgate_db_migrate lychgate_db_tomb lychgate_db_vessel lychgate_db_watchdog lychgate_work" "$(bad files)"

# --- set, list, check
echo sk-not-a-real-key-0123456789 | lych secret set portal_x >"$LYCH_TMP/out" || fail "set"
is "set says which store" 1 "$(grep -c "store 'files' ($S)" "$LYCH_TMP/out")"
is "its file" "600 28" "$(stat -c '%a %s' "$S/portal_x")"
echo sk-another-key-0123456789abcd | lych secret set portal_x 2>/dev/null && fail "an existing one was replaced"
echo sk-another-key-0123456789abcd | lych secret set --replace portal_x >/dev/null || fail "set --replace"
lych up --detach || fail up
is "all in order" "" "$(bad files)"
lych secret list >"$LYCH_TMP/list"
lych secret list --json >>"$LYCH_TMP/list"
lych secret check --json >>"$LYCH_TMP/list"
for f in "$S"/*; do
	grep -qF "$(cat "$f")" "$LYCH_TMP/list" && fail "list or check shows the value of $f"
done
is "list names the store" 1 "$(grep -c "^store: files, $S" "$LYCH_TMP/list")"

# --- what check must see
cp -p "$S/lychgate_work" "$LYCH_TMP/saved"
# what is made from a bad master is bad too
cp "$S/lychgate_db_tomb" "$S/lychgate_work"
is "one value under two names" "lychgate_db_tomb lychgate_work lychgate_work_of_tomb_1" "$(bad files)"
chmod 640 "$S/lychgate_work"
is "an open file" "lychgate_work lychgate_work_of_tomb_1" "$(bad files)"
chmod 600 "$S/lychgate_work"
printf short >"$S/lychgate_work"
is "too short" "lychgate_work lychgate_work_of_tomb_1" "$(bad files)"
printf 'a value with a blank 0123456789' >"$S/lychgate_work"
is "a blank" "lychgate_work lychgate_work_of_tomb_1" "$(bad files)"
rm "$S/lychgate_work" && ln -s "$LYCH_TMP/saved" "$S/lychgate_work"
is "a link" "lychgate_work lychgate_work_of_tomb_1" "$(bad files)"
rm "$S/lychgate_work" && cp -p "$LYCH_TMP/saved" "$S/lychgate_work"
echo x >"$S/notes" && chmod 600 "$S/notes"
is "unused" notes "$(bad files)"
rm "$S/notes"
chmod 750 "$S"
refused "an open directory" LYCH-SECRET-001 lych secret check
chmod 700 "$S"
is "in order again" "" "$(bad files)"

# --- a portal's key: wanted when codex.yaml names it
cp -p "$LYCH_CONFIG" "$LYCH_TMP/codex" 2>/dev/null || lych_config "slots: 8"
cat >>"$LYCH_CONFIG" <<'EOF'
portals:
  - name: main
    kind: openai
    url: "https://api.example.com/v1"
    secret: portal_main
    models:
      - {name: m, input: "0", output: "0"}
EOF
is "a key that is named is missed" portal_main "$(bad files)"
lych down >/dev/null
refused "nothing starts without it" LYCH-SECRET-012 lych up --detach
grep -q 'lych secret set' "$LYCH_TMP/err" || fail "the command is not named: $(cat "$LYCH_TMP/err")"
(umask 077 && cp "$LYCH_TMP/odd" "$S/portal_main")
is "one that its worker would not take is bad" portal_main "$(bad files)"
refused "and nothing starts with it" LYCH-SECRET-008 lych up --detach
rm "$S/portal_main"
echo sk-a-third-key-0123456789abcdef | lych secret set portal_main >/dev/null || fail "set portal_main"
is "then all is in order" "" "$(bad files)"
is "and what is not named is unused" 1 "$(lych secret check | grep -c 'portal_x.*does not name it')"

# --- removed: a provider's key, and no other
for name in lychgate_work lychgate_db_vessel lychgate_db_of_tomb_1; do
	refused "$name is not removed" LYCH-SECRET-013 lych secret rm "$name"
	[ -s "$S/$name" ] || fail "$name is gone"
done
for n in 1 2 3 4 5 6 7 8; do
	{ echo "sk-of-eight-$n-0123456789abcdef" | lych secret set portal_y >/dev/null 2>&1 && echo "$n" >>"$LYCH_TMP/winner"; } &
done
wait
is "of eight at once one sets it" "sk-of-eight-$(cat "$LYCH_TMP/winner")-0123456789abcdef" "$(cat "$LYCHGATE_DATA/secrets/portal_y")"
lych secret rm portal_y >/dev/null || fail "rm portal_y"
is "one that nothing names" 1 "$(lych secret rm portal_x | grep -c 'what runs has it until it ends')"
is "one that a portal names" 1 "$(lych secret rm portal_main | grep -c 'nothing starts without another')"
is "both are gone" "" "$(cd "$S" && echo portal_*[xn] | sed 's/portal_\*.*//')"
echo sk-a-third-key-0123456789abcdef | lych secret set portal_main >/dev/null || fail "set portal_main again"

# --- a server on this machine may want any word for a key, and another than this one's may not
cat >>"$LYCH_CONFIG" <<'EOF'
  - name: local
    kind: openai
    url: "http://127.0.0.1:9/v1"
    addresses:
      - 127.0.0.1
    secret: portal_local
    models:
      - {name: l, input: "0", output: "0"}
EOF
refused "a short key of another's server" LYCH-SECRET-008 bash -c "echo EMPTY | '$LYCH_BIN/lych' secret set portal_main --replace"
refused "no key at all" LYCH-SECRET-008 bash -c "printf '' | '$LYCH_BIN/lych' secret set portal_local"
echo EMPTY | lych secret set portal_local >/dev/null || fail "a short key of this machine's own"
is "check takes it" "" "$(bad files)"
lych up --detach || fail "up with a short key"
is "its worker has it" 1 "$(grep -c 'an egress worker is up.*worker="portal:local" why=""' "$LYCHGATE_DATA/log/vessel.log")"
lych down >/dev/null
# what a killed 'secret set' left: a copy in clear
cp -p "$LYCHGATE_DATA/secrets/portal_local" "$LYCHGATE_DATA/secrets/portal_local.0123456789abcdef.tmp"
lych secret rm portal_local >/dev/null || fail "rm portal_local"
is "no copy of it stays" "" "$(find "$LYCHGATE_DATA/secrets" -name "portal_local*")"
rm "$LYCH_CONFIG"
[ ! -e "$LYCH_TMP/codex" ] || mv "$LYCH_TMP/codex" "$LYCH_CONFIG"
lych up --detach || fail "up again"

# --- rotation, while it runs: the old password is refused afterwards, jobs go on
can_log_in() { # role, file with the password
	PGPASSWORD=$(cat "$2") psql -h "$XDG_RUNTIME_DIR/lychgate/pg" -U "$1" -d "${3:-lychgate}" -qAtc 'SELECT 1' >/dev/null 2>&1
}
vessel=$(lych_pid vessel)
for pair in lychgate_db_vessel:lych_vessel lychgate_db_watchdog:lych_watchdog; do
	name=${pair%:*} role=${pair#*:}
	cp -p "$S/$name" "$LYCH_TMP/old"
	can_log_in "$role" "$LYCH_TMP/old" || fail "$role could not log in before"
	lych secret rotate "$name" >"$LYCH_TMP/out" || fail "rotate $name"
	cmp -s "$S/$name" "$LYCH_TMP/old" && fail "$name is the same as before"
	can_log_in "$role" "$LYCH_TMP/old" && fail "the old password of $role still works"
	can_log_in "$role" "$S/$name" || fail "the new password of $role does not work"
	is "a job after the rotation of $name" hello "$(lych run -n -- echo hello)"
done
[ "$vessel" != "$(lych_pid vessel)" ] || fail "the vessel did not restart"
# A tomb's own two, by its next generation; and both of every tomb when a master is replaced.
own() { cat "$S/lychgate_db_of_tomb_1" "$S/lychgate_work_of_tomb_1"; }
bearer_counts() { # FILE: the status of a ping with it
	python3 - "$XDG_RUNTIME_DIR/lychgate/work/vessel.sock" "$1" <<'P'
import http.client, socket, sys
c = http.client.HTTPConnection("lychgate")
c.sock = socket.socket(socket.AF_UNIX)
c.sock.connect(sys.argv[1])
c.request("GET", "/work/v1/ping", headers={"Lychgate-Version": "1", "Lychgate-Tomb": "tomb_1",
                                           "Authorization": "Bearer " + open(sys.argv[2], encoding="ascii").read()})
print(c.getresponse().status)
P
}
for what in "--tomb tomb_1" lychgate_db_tomb lychgate_work; do
	cp -p "$S/lychgate_db_of_tomb_1" "$LYCH_TMP/old"
	cp -p "$S/lychgate_work_of_tomb_1" "$LYCH_TMP/old.bearer"
	cp -p "$S/lychgate_work" "$S/lychgate_db_tomb" "$LYCH_TMP/"
	can_log_in tomb_1 "$LYCH_TMP/old" || fail "tomb_1 could not log in before"
	is "its bearer before" 200 "$(bearer_counts "$LYCH_TMP/old.bearer")"
	# shellcheck disable=SC2086 # an option and its value
	lych secret rotate $what >"$LYCH_TMP/out" || fail "rotate $what"
	if [ "$what" != lychgate_work ]; then
		cmp -s "$S/lychgate_db_of_tomb_1" "$LYCH_TMP/old" && fail "$what: the password is the same as before"
		can_log_in tomb_1 "$LYCH_TMP/old" && fail "$what: the old password still works"
	fi
	if [ "$what" != lychgate_db_tomb ]; then
		cmp -s "$S/lychgate_work_of_tomb_1" "$LYCH_TMP/old.bearer" && fail "$what: the bearer is the same as before"
		is "$what: the old bearer" 401 "$(bearer_counts "$LYCH_TMP/old.bearer")"
	fi
	can_log_in tomb_1 "$S/lychgate_db_of_tomb_1" || fail "$what: the new password does not work"
	can_log_in tomb_1 "$S/lychgate_db_tomb" && fail "$what: the master is a password"
	is "$what: the new bearer" 200 "$(bearer_counts "$S/lychgate_work_of_tomb_1")"
	is "$what: the master is none" 401 "$(bearer_counts "$S/lychgate_work")"
	is "a job after it" hello "$(lych run -n -- echo hello)"
	is "all in order after it" "" "$(bad files)"
done
# what a release without generations left behind: its tombs knew what are masters now
lych down >/dev/null
rm "$S"/lychgate_*_of_*
cp -p "$S/lychgate_work" "$S/lychgate_db_tomb" "$LYCH_TMP/"
lych up --detach || fail "up over an earlier release's secrets"
for name in lychgate_work lychgate_db_tomb; do
	cmp -s "$S/$name" "$LYCH_TMP/$name" && fail "$name is still what an earlier release gave its tombs"
done
is "and a job runs" hello "$(lych run -n -- echo hello)"
echo not-what-it-should-be >"$S/lychgate_work_of_tomb_1"
is "a tomb's secret that is another" lychgate_work_of_tomb_1 "$(bad files)"
lych secret tomb tomb_1 >/dev/null || fail "secret tomb"
rm "$S/lychgate_db_of_tomb_1"
is "one that is not there" lychgate_db_of_tomb_1 "$(bad files)"
lych secret tomb tomb_1 >/dev/null || fail "secret tomb"
is "made again" "" "$(bad files)"
lych secret tomb tomb_2 >/dev/null || fail "secret tomb tomb_2"
is "as the document says" "$("$here/tests/support/python/tomb_secret.py" work "$(cat "$S/lychgate_work")" tomb_2 \
	"$(sed 's/generation://' "$S/lychgate_generation_of_tomb_2")")" "$(cat "$S/lychgate_work_of_tomb_2")"
lych secret rotate --tomb tomb_2 >/dev/null || fail "rotate --tomb tomb_2"
can_log_in tomb_2 "$S/lychgate_db_of_tomb_2" || fail "tomb_2 was not given its login"
can_log_in tomb_1 "$S/lychgate_db_of_tomb_2" && fail "tomb_2 logs in as tomb_1"
refused "a tomb that is not there" LYCH-SECRET-002 lych secret rotate --tomb tomb_3
refused "no tomb's name" LYCH-SECRET-007 lych secret tomb 'tomb;1'
refused "one secret of a tomb" LYCH-SECRET-010 lych secret rotate lychgate_work_of_tomb_1
refused "one that is made" LYCH-SECRET-008 lych secret set lychgate_work_of_tomb_1 --generate
refused "two ways at once" LYCH-CORE-004 lych secret rotate lychgate_work --tomb tomb_1
rm "$S"/lychgate_*_of_tomb_2
pg=$(lych_pid postgres)
lych secret rotate lychgate_work --json >"$LYCH_TMP/out" || fail "rotate lychgate_work"
is "rotate --json" "lychgate_work files rotated" "$(python3 -c '
import json, sys
o = json.load(open(sys.argv[1]))
print(o["name"], o["store"], o["state"])' "$LYCH_TMP/out")"
is "a job after the rotation of lychgate_work" hello "$(lych run -n -- echo hello)"
is "PostgreSQL was not touched" "$pg" "$(lych_pid postgres)"
refused "a provider's key is not rotated" LYCH-SECRET-010 lych secret rotate portal_x
echo 0123456789abcdef0123456789abcdef | lych secret set --replace lychgate_db_migrate 2>"$LYCH_TMP/err" && fail "the superuser's password was replaced under PostgreSQL"
grep -q LYCH-SECRET-006 "$LYCH_TMP/err" || fail "set --replace of the owner: $(cat "$LYCH_TMP/err")"

# --- the superuser's: told first, renamed after; an interrupted rotation is seen and finished
cp -p "$S/lychgate_db_migrate" "$LYCH_TMP/old"
exec {turn}<"$LYCHGATE_DATA" && flock "$turn"
refused "two rotations at once" LYCH-SECRET-010 lych secret rotate lychgate_db_migrate
exec {turn}<&-
lych secret rotate lychgate_db_migrate >/dev/null || fail "rotate lychgate_db_migrate"
can_log_in lych_migrate "$LYCH_TMP/old" postgres && fail "the old superuser password still works"
can_log_in lych_migrate "$S/lychgate_db_migrate" postgres || fail "the new superuser password does not work"
printf '%064d' 7 >"$S/lychgate_db_migrate.next" && chmod 600 "$S/lychgate_db_migrate.next"
is "an unfinished rotation is seen" lychgate_db_migrate.next "$(bad files)"
"$LYCH_BIN/lych-vessel" migrate --pg-dir "$XDG_RUNTIME_DIR/lychgate/pg" --secrets "$S" --rotate-owner || fail "migrate --rotate-owner"
lych down >/dev/null
lych up --detach || fail "it does not start when the rotation was cut off after the server was told"
lych secret rotate lychgate_db_migrate >/dev/null || fail "the rotation could not be finished"
is "finished" "" "$(bad files)"
is "with the value that the server knew" "$(printf '%064d' 7)" "$(cat "$S/lychgate_db_migrate")"
grep -qrF "$(cat "$S/lychgate_db_migrate")" "$LYCHGATE_DATA/log" "$LYCHGATE_DATA/phylactery/log" && fail "a password is in a log"
lych down >/dev/null
refused "the superuser's without a server" LYCH-SECRET-010 lych secret rotate lychgate_db_migrate
cp -p "$S/lychgate_work" "$LYCH_TMP/old"
is "rotated while nothing runs" 1 "$(lych secret rotate lychgate_work | grep -c "next 'lych up'")"
cmp -s "$S/lychgate_work" "$LYCH_TMP/old" && fail "not rotated"
lych up --detach || fail "up after it"
is "and used" hello "$(lych run -n -- echo hello)"
lych down >/dev/null

# --- Podman's store: a stand-in for podman, the real driver behind it
mkdir -p "$LYCH_TMP/bin" "$HOME/.config/containers"
refused "no podman" LYCH-STARTUP-010 env PATH="$LYCH_TMP/bin" "$LYCH_BIN/lych" secret list --store=podman
cp tests/support/podman "$LYCH_TMP/bin/podman"
cat >"$LYCH_TMP/bin/systemctl" <<'EOF'
#!/bin/bash
echo "$*" >>"$HOME/systemctl.log"
[ "$2" != is-active ] || [ -e "$HOME/pod-runs" ]
EOF
chmod +x "$LYCH_TMP/bin/systemctl"
PATH=$LYCH_TMP/bin:$PATH
V=$LYCH_TMP/vault K=$LYCH_TMP/key D=$LYCH_BIN/lych-secret-driver
(umask 077; head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"$K")
"$D" --store "$V" --key --passphrase-file "$K" init || fail "driver init"
cat >"$HOME/.config/containers/containers.conf" <<EOF
[secrets]
driver = "shell"
[secrets.opts]
list = "$D --store $V list"
lookup = "$D --store $V --passphrase-file $K lookup"
store = "$D --store $V --passphrase-file $K store"
delete = "$D --store $V delete"
EOF
refused "Podman's store is empty" LYCH-SECRET-009 lych secret check --store=podman
for name in lychgate_db_migrate lychgate_db_vessel lychgate_db_watchdog lychgate_db_tomb lychgate_work; do
	lych secret set "$name" --generate --store=podman >/dev/null || fail "set $name in Podman's store"
done
lych secret check --store=podman >"$LYCH_TMP/out" 2>&1 || fail "check: $(cat "$LYCH_TMP/out")"
is "kept by our driver, sealed" "5 5" "$(find "$V" -name '*.secret' | wc -l) $(lych secret list --store=podman --json | grep -o '"kept_by":"shell"' | wc -l)"
refused "one is there" LYCH-SECRET-006 lych secret set lychgate_work --generate --store=podman
echo 'another application, with blanks' | podman secret create other_app - >/dev/null
is "other applications' secrets are none of ours" "" "$(bad podman)"
podman secret inspect --showsecret --format '{{.SecretData}}' lychgate_work >"$LYCH_TMP/value"
tr -d '\n' <"$LYCH_TMP/value" | podman secret create portal_same - >/dev/null
is "one value under two names" "lychgate_work portal_same" "$(bad podman)"
podman secret rm portal_same || fail rm
is "rotate, the pod stopped" 1 "$(lych secret rotate lychgate_work --store=podman | grep -c 'next start')"
podman secret inspect --showsecret --format '{{.SecretData}}' lychgate_work | cmp -s - "$LYCH_TMP/value" && fail "not rotated"
touch "$HOME/pod-runs"
: >"$HOME/systemctl.log"
lych secret tomb tomb_1 --store=podman >/dev/null || fail "secret tomb in Podman's store"
lych secret rotate --tomb tomb_1 --store=podman >/dev/null || fail "rotate in the pod"
is "what restarts, in order" "lychgate-migrate lychgate-vessel lychgate-tomb" "$(sed -nE 's/^--user restart (.*)\.service$/\1/p' "$HOME/systemctl.log" | tr '\n' ' ' | sed 's/ $//')"
: >"$HOME/systemctl.log"
lych secret rotate lychgate_work --store=podman >/dev/null || fail "rotate in the pod"
is "without the migration where it has no part" "lychgate-vessel lychgate-tomb" "$(sed -nE 's/^--user restart (.*)\.service$/\1/p' "$HOME/systemctl.log" | tr '\n' ' ' | sed 's/ $//')"
refused "the superuser's in the pod" LYCH-SECRET-010 lych secret rotate lychgate_db_migrate --store=podman
podman secret rm other_app >/dev/null || fail "rm other_app" # whose damage is not ours to tell
damage() { # NAME: another byte in the middle of its file
	local f
	f=$V/$(podman secret ls --format 'lych-secret {{.Name}} {{.ID}}' | awk -v name="$1" '$2 == name { print $3 }').secret
	[ -f "$f" ] || fail "$1 has no file: $f"
	tail -c +41 "$f" | head -c 1 | tr '\000-\377' '\001-\377\000' | dd of="$f" bs=1 seek=40 conv=notrunc 2>/dev/null
}
damage lychgate_db_vessel
is "a damaged one is seen" lychgate_db_vessel "$(bad podman)"
damage lychgate_work
is "and what was made from one" "lychgate_db_vessel lychgate_work lychgate_work_of_tomb_1" "$(bad podman)"
head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"$K"
is "with another key nothing opens" 8 "$(bad podman | wc -w)"
refused "the reason is told" LYCH-SECRET-009 lych secret check --store=podman
grep -q 'LYCH-SECRET-004.*key check' "$LYCH_TMP/out" || fail "no reason: $(cat "$LYCH_TMP/out")"
echo "$count checks"
