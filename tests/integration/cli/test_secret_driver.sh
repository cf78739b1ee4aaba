#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# lych-secret-driver as Podman's shell driver calls it: refusals, then what it keeps, read by a second
# implementation of the format.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin driver
driver=$LYCH_BIN/lych-secret-driver store=$LYCH_TMP/store key=$LYCH_TMP/key pass=$LYCH_TMP/pass
refused() { # what, code, command...: refused with this code, and nothing on stdout
	local what=$1 code=$2
	shift 2
	"$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" </dev/null && fail "$what: not refused"
	grep -q "$code" "$LYCH_TMP/err" || fail "$what: $(cat "$LYCH_TMP/err")"
	[ ! -s "$LYCH_TMP/out" ] || fail "$what: said something on stdout"
	count=$((count + 1))
}
(umask 077; head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"$key"; echo 'correct horse battery staple' >"$pass")
export SECRET_ID=0123456789abcdef012345678

is "the known answers, by the second implementation" "the known answers are right" \
	"$(python3 tests/support/python/sealed.py vectors docs/SECRETS.md)"
is "those of the tombs too" "the known answers are right" "$(python3 tests/support/python/tomb_secret.py vectors docs/SECRETS.md)"

# --- refusals; nothing is made by them
refused "no source" LYCH-CORE-004 "$driver" --store "$store" init
refused "two sources" LYCH-CORE-004 "$driver" --store "$store" --passphrase-file "$pass" --credential x init
refused "no credential directory" LYCH-SECRET-004 "$driver" --store "$store" --credential x init
chmod 644 "$key"
refused "a key that others can read" LYCH-SECRET-001 "$driver" --store "$store" --key --passphrase-file "$key" init
chmod 600 "$key"
ln -s "$key" "$LYCH_TMP/link"
refused "a key behind a link" LYCH-SECRET-001 "$driver" --store "$store" --key --passphrase-file "$LYCH_TMP/link" init
echo short >"$LYCH_TMP/short" && chmod 600 "$LYCH_TMP/short"
refused "a short passphrase" LYCH-SECRET-004 "$driver" --store "$store" --passphrase-file "$LYCH_TMP/short" init
refused "no key as a key" LYCH-SECRET-004 "$driver" --store "$store" --key --passphrase-file "$pass" init
refused "no store" LYCH-SECRET-003 "$driver" --store "$LYCH_TMP/none" list
is "nothing was made" 0 "$(find "$store" -type f 2>/dev/null | wc -l)"
rm -rf "$store"
mkdir -m 0755 "$store"
refused "an open directory" LYCH-SECRET-003 "$driver" --store "$store" --key --passphrase-file "$key" init
rmdir "$store"

# --- the four commands
run() { "$driver" --store "$store" --passphrase-file "$key" "$@"; }
"$driver" --store "$store" --key --passphrase-file "$key" init || fail init
is "modes" "700 600" "$(stat -c %a "$store" "$store/store.header" | tr '\n' ' ' | sed 's/ $//')"
refused "a store is made once" LYCH-SECRET-006 "$driver" --store "$store" --key --passphrase-file "$key" init
printf 'two lines\nno newline at the end: a value' >"$LYCH_TMP/value"
run store <"$LYCH_TMP/value" || fail store
is "its file" "600 $((44 + $(stat -c %s "$LYCH_TMP/value")))" "$(stat -c '%a %s' "$store/$SECRET_ID.secret")"
grep -qr 'two lines' "$store" && fail "the value is in the store as it is"
run lookup >"$LYCH_TMP/out" || fail lookup
cmp "$LYCH_TMP/value" "$LYCH_TMP/out" || fail "lookup gave something else"
python3 tests/support/python/sealed.py open "$store" "$key" "$SECRET_ID" | cmp - "$LYCH_TMP/value" ||
	fail "the second implementation reads something else"
is "list" "$SECRET_ID" "$("$driver" --store "$store" list)"
for to in '>/dev/full' '>&-'; do
	eval "run lookup $to" 2>"$LYCH_TMP/err"; is "a value that is lost: $to" 1 $?
	is "and told" 1 "$(grep -c '^      LYCH-CORE-006  ' "$LYCH_TMP/err")"
done
refused "an id is stored once" LYCH-SECRET-006 bash -c "$driver --store $store --passphrase-file $key store <<<another"
SECRET_ID=../x refused "an id that is a path" LYCH-SECRET-007 "$driver" --store "$store" --passphrase-file "$key" lookup
SECRET_ID=absent refused "an id that is not there" LYCH-SECRET-002 "$driver" --store "$store" --passphrase-file "$key" lookup
SECRET_ID='' refused "no id" LYCH-SECRET-007 "$driver" --store "$store" delete
refused "an empty value" LYCH-SECRET-008 env SECRET_ID=empty "$driver" --store "$store" --passphrase-file "$key" store
head -c 512001 /dev/zero >"$LYCH_TMP/big"
refused "a value too large" LYCH-SECRET-008 bash -c "SECRET_ID=big $driver --store $store --passphrase-file $key store <$LYCH_TMP/big"
is "they left nothing" "$SECRET_ID" "$("$driver" --store "$store" list)"

# --- another key; a passphrase by descriptor; a credential as systemd gives it
head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"$LYCH_TMP/other" && chmod 600 "$LYCH_TMP/other"
refused "another key" LYCH-SECRET-004 "$driver" --store "$store" --passphrase-file "$LYCH_TMP/other" lookup
second=$LYCH_TMP/second
"$driver" --store "$second" --passphrase-fd 5 init 5<"$pass" || fail "init with scrypt"
mkdir -m 0700 "$LYCH_TMP/creds" && cp -p "$pass" "$LYCH_TMP/creds/lychgate" && chmod 400 "$LYCH_TMP/creds/lychgate"
CREDENTIALS_DIRECTORY=$LYCH_TMP/creds "$driver" --store "$second" --credential lychgate store <<<"by credential" || fail "store by credential"
is "what scrypt sealed, by the second implementation" "by credential" "$(python3 tests/support/python/sealed.py open "$second" "$pass" "$SECRET_ID")"
is "and by the driver" "by credential" "$("$driver" --store "$second" --passphrase-fd 5 lookup 5<"$pass")"
refused "a record of another store" LYCH-SECRET-005 bash -c "cp -p $second/$SECRET_ID.secret $store/moved.secret; SECRET_ID=moved $driver --store $store --passphrase-file $key lookup"
cp -p "$store/$SECRET_ID.secret" "$store/moved.secret"
SECRET_ID=moved refused "a record under another id" LYCH-SECRET-005 "$driver" --store "$store" --passphrase-file "$key" lookup
rm "$store/moved.secret"

# --- rootless Podman calls it where the user is uid 0; what runs as root is refused elsewhere
is "uid 0 of a user's own namespace is no root" "$SECRET_ID" "$(unshare --user --map-root-user "$driver" --store "$store" list)"

# --- nothing of the process is left to look at: no core, no ptrace, nothing in argv or environment
mkfifo "$LYCH_TMP/fifo"
SECRET_ID=slow run store <"$LYCH_TMP/fifo" &
pid=$!
exec 9>"$LYCH_TMP/fifo"
for _ in $(seq 200); do
	grep -qs '^VmLck:.*[1-9]' "/proc/$pid/status" && break
	child=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
	[ -z "$child" ] || pid=${child%% *}
	nap 0.05
done
case ${driver%/*} in */asan) ;; # the sanitizer's mlock does nothing
*) is "its memory is locked" 1 "$(awk '/^VmLck:/ { print ($2 >= 500) }' "/proc/$pid/status")" ;;
esac
cat "/proc/$pid/environ" >/dev/null 2>&1 && fail "it can be looked into"
is "no core" "0 0" "$(awk '/^Max core file size/ { print $5, $6 }' "/proc/$pid/limits")"
echo late >&9
exec 9>&-
wait
is "delete" 0 "$(SECRET_ID=slow "$driver" --store "$store" delete; echo $?)"
is "delete the other" 0 "$("$driver" --store "$store" delete; echo $?)"
refused "delete what is not there" LYCH-SECRET-002 "$driver" --store "$store" delete
is "only the header is left" 1 "$(find "$store" -type f | wc -l)"

# --- killed at any moment: a value is there and whole, or not there
for i in $(seq 40); do
	SECRET_ID=kill$i "$driver" --store "$store" --passphrase-file "$key" store <"$LYCH_TMP/value" 2>/dev/null &
	pid=$!
	sleep 0.00$((i % 10))
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	if [ -e "$store/kill$i.secret" ]; then
		SECRET_ID=kill$i run lookup | cmp - "$LYCH_TMP/value" || fail "half a value is there"
	fi
done
is "no remains" 0 "$(find "$store" -type f ! -name '*.secret' ! -name store.header | wc -l)"
echo "$count checks"
