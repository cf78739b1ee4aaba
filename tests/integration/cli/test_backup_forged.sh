#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 650
# Archives that somebody else made, whole and with right hashes. With a seal to check, none is
# restored. With --unsealed each is refused, or what it says is data: nothing of it runs (a file
# that every one of them would make never appears), neither as it is restored nor afterwards.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin forged
W=$LYCH_TMP/witness A=$LYCH_TMP/saved.tar F=$LYCH_TMP/forged.tar key=$(dirname "$LYCH_CONFIG")/backup.key
forge() { tests/integration/cli/forge.py make "$A" "$F" "$@" || fail "forge $*"; }
rows() { tests/integration/cli/forge.py rows "$A" "$1"; } # table
tree() { (cd "$LYCHGATE_DATA" && find . -printf '%p %s %T@ %i\n' | sort | sha256sum); }
refused() { # what, code, options of restore...
	local what=$1 code=$2
	shift 2
	"$LYCH_BIN/lych" restore --force "$@" "$F" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" </dev/null && fail "$what: not refused"
	grep -q "$code" "$LYCH_TMP/err" || fail "$what: $(cat "$LYCH_TMP/err")"
	[ ! -e "$W" ] || fail "$what: it ran"
	[ ! -e "$LYCHGATE_DATA.restore" ] || fail "$what: something was left"
	count=$((count + 1))
}
# seen by us, before psql and the server have a byte of it; or by the server, as a value
damaged() { refused "$1" LYCH-BACKUP-003 --unsealed; }
malformed() { damaged "$1"; grep -q "the rows of its database, byte " "$LYCH_TMP/err" || fail "$1: $(cat "$LYCH_TMP/err")"; }
rejected() { damaged "$1"; grep -q ': psql: 2[23]' "$LYCH_TMP/err" || fail "$1: $(cat "$LYCH_TMP/err")"; }
text() { printf '%b' "$1" >"$LYCH_TMP/text"; }
database() { # what, bytes: all of the database is these
	text "$2"
	forge "database.copy=$LYCH_TMP/text"
	malformed "$1"
}
section() { # how it is seen, what, table, bytes: this section is these
	text "$4"
	forge "rows:$3=$LYCH_TMP/text"
	"$1" "$2"
}
one_more() { # how it is seen, what, table, bytes: its own rows, and behind them these
	{ rows "$3"; printf '%b' "$4"; } >"$LYCH_TMP/text"
	forge "rows:$3=$LYCH_TMP/text"
	"$1" "$2"
}
json() { python3 -ISc 'import json,sys; j=json.load(sys.stdin); print(*eval("[" + sys.argv[1] + "]"))' "$1"; }

# --- something to save: jobs that ended, one that runs, one that waits, one that was removed
lych_config "slots: 1"
lych up --detach || fail up
lych run -n -- echo one >/dev/null || fail "a job"
lych run -n -- sh -c 'exit 3'
echo "a secret word of theirs" | lych private add --name theirs >/dev/null || fail "private add"
running=$(lych run -n --detach -- sh -c 'sleep 300; echo came to its end') || fail "a job that runs"
wait_until 30 "it does not run" lych_job_is "$running" running
waiting=$(lych run -n --detach -- sh -c 'echo waited') || fail "a job that waits"
gone=$(lych run -n --detach -- true) || fail "a job that goes"
lych cancel "$gone" >/dev/null
lych rm "$gone" >/dev/null || fail rm
lych backup "$A" 2>"$LYCH_TMP/said" || fail backup
code=$(grep -oE '([0-9A-HJKMNP-TV-Z]{4}-){7}[0-9A-HJKMNP-TV-Z]{4}' "$LYCH_TMP/said")
lych backup "$LYCH_TMP/other.tar" >/dev/null || fail "a second backup"
lych down >/dev/null
before=$(tree)

# --- with a seal to check
rows job | sed 's/owner/other/' >"$LYCH_TMP/text"
cmp -s <(rows job) "$LYCH_TMP/text" && fail "nothing was changed"
forge "rows:job=$LYCH_TMP/text" seal=keep
refused "changed rows under the old seal" LYCH-BACKUP-006
forge "rows:job=$LYCH_TMP/text" "seal=copy:$LYCH_TMP/other.tar"
refused "changed rows under the seal of another archive" LYCH-BACKUP-006
forge "rows:job=$LYCH_TMP/text"
refused "changed rows without a seal" LYCH-BACKUP-007
forge seal=none
refused "the same archive without its seal" LYCH-BACKUP-007
theirs=$(tr '0123456789' '1234567890' <<<"$code")
forge "rows:job=$LYCH_TMP/text" "seal=$theirs"
refused "somebody else's seal" LYCH-BACKUP-009
echo "$code" >"$LYCH_TMP/code"
refused "somebody else's seal, and this person's code" LYCH-BACKUP-008 --code-file "$LYCH_TMP/code"
forge info:format=1 "seal=$code"
refused "format 1" LYCH-BACKUP-004
forge format=1 "seal=$code"
refused "format 1 in the manifest only" LYCH-BACKUP-003
forge info:schema=99 "seal=$code"
refused "a newer schema" LYCH-BACKUP-004
forge info:schema=3 "seal=$code"
refused "a schema that no archive had" LYCH-BACKUP-003
# one of an older schema that is upgraded: test_upgrade.sh
for schema in 14 17; do
	forge "info:schema=$schema" "seal=$code"
	refused "schema $schema, which no migration begins with" LYCH-BACKUP-004
	grep -q "its schema is $schema, this release knows 18 to " "$LYCH_TMP/err" || fail "schema $schema: $(cat "$LYCH_TMP/err")"
	forge "info:schema=$schema" "seal=$code" rows:wish-
	refused "schema $schema with fewer tables" LYCH-BACKUP-004
done

# --- --unsealed: what would act on whoever reads it as a script
program="COPY (SELECT 1) TO PROGRAM 'touch $W';\n"
database "SQL in the place of the rows" "$program"
database "meta-commands in the place of the rows" "\\\\! touch $W\n"
database "nothing" ""
database "the end of a table, and nothing else" '\\.\n\\.\n\\.\n\\.\n\\.\n\\.\n\\.\n\\.\n\\.\n\\.\n\\.\n\\.\n'
one_more rejected "SQL among the numbers" number "$program"
{ tar xOf "$A" database.copy; printf '%b' "$program"; } >"$LYCH_TMP/text"
forge "database.copy=$LYCH_TMP/text"
malformed "SQL behind the last table"
for evil in "\\\\! touch $W\n" "\\\\copy (SELECT 1) TO PROGRAM 'touch $W'\n" "\\\\o |touch $W\n" "\\\\g |touch $W\n" "\\\\i $W.sql\n" \
	"\\\\setenv PAGER 'touch $W'\n" "\\\\gexec\n" '\\.\r\n'"$program" '\\. \n'"$program" ' \\.\n'"$program"; do
	one_more malformed "among the jobs: $evil" job "$evil"
	one_more malformed "among the numbers: $evil" number "$evil"
	{ tar xOf "$A" database.copy; printf '%b' "$evil"; } >"$LYCH_TMP/text"
	forge "database.copy=$LYCH_TMP/text"
	malformed "behind the last table: $evil"
done
one_more malformed "an end in the middle of a row" removed "77\\\\.\n$program"
one_more malformed "an end at the end of a row" removed '77\t2026-01-01 00:00:00+00\\.\n'"$program"
one_more malformed "a table ends twice" removed '\\.\n'"$program"
one_more malformed "a carriage return" removed '77\t2026-01-01 00:00:00+00\r\n'
for escape in '\\x41' '\\101' '\\q' '\\N\\N' 'a\\N' 'a\\'; do
	one_more malformed "an escape that the server does not write: $escape" removed "77\t$escape\n"
done
one_more malformed "a NUL" removed '77\t2026-01-01\0000\n'
one_more rejected "no UTF-8" audit_state '\xff\xfe\n'
{ rows removed; head -c 70000000 /dev/zero | tr '\0' 9; } >"$LYCH_TMP/text"
forge "rows:removed=$LYCH_TMP/text"
malformed "a row of 70 MB"

# --- rows that are none of that table's
one_more rejected "too few columns" removed '77\n'
section rejected "another table's rows" removed 'name\tgeneration\tsince\ntomb_1\t1\t2026-01-01 00:00:00+00\n'
section rejected "columns in another order" removed 'at\tjob_id\n2026-01-01 00:00:00+00\t77\n'
one_more rejected "a payload of no job" payload '777\t\\\\x00\n'
one_more rejected "two states of the audit log" audit_state "$(rows audit_state | tail -n 1 | sed 's/^t/f/; s/\\/\\\\/g')\n"
section damaged "no state of it" audit_state "$(rows audit_state | head -n 1)\n"
section rejected "numbers from which none follows" number 'name\tlast\njob\t9223372036854775807\n'
section rejected "numbers of another sequence" number 'name\tlast\npg_catalog.x\t1\n'
{ rows job; rows job | sed -n 2p | sed 's/^[0-9]*/9223372036854775807/; s/\tmain\t[^\t]*/\tmain\tanother/'; } >"$LYCH_TMP/text"
forge "rows:job=$LYCH_TMP/text" "info:jobs=$(($(rows job | wc -l)))"
damaged "a job after which no other comes"
rows audit_outbox | sed '2s/\t20[0-9-]* [0-9:.]*+00\t/\tinfinity\t/' >"$LYCH_TMP/text"
grep -q infinity "$LYCH_TMP/text" || fail "no event was changed"
forge "rows:audit_outbox=$LYCH_TMP/text"
damaged "an event of no time"
column() { # table, row, column, value: it and the others as they are
	rows "$1" | awk -F'\t' -v OFS='\t' -v row="$2" -v c="$3" -v v="$4" \
		'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) at = i } NR == row + 1 { $at = v } { print }' >"$LYCH_TMP/text"
	cmp -s <(rows "$1") "$LYCH_TMP/text" && fail "no $3 of $1 was changed"
	forge "rows:$1=$LYCH_TMP/text"
}
nonsense() { # table, row, column, value
	column "$@"
	damaged "$1.$3 = $4"
	grep -qF "$1, row $2, $3: " "$LYCH_TMP/err" || fail "$1.$3 = $4: $(cat "$LYCH_TMP/err")"
}
least=-9223372036854775808 most=9223372036854775807
dead=$(rows job | awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "state") at = i } $at == "dead" { print NR - 1 }' | head -n 1)
nonsense job "$dead" class boo
nonsense job 3 lost -1000
nonsense attempt 1 epoch -1
nonsense audit_outbox 1 job_id $least
if [ -n "${EVERY_ROW:-}" ]; then # each is a restore; tests/soak/backup_rows.sh
	nonsense job 2 queue other
	nonsense job 1 epoch $most
	nonsense job 1 epoch -1
	nonsense job 2 version $most
	nonsense job 2 attempts -5
	nonsense job 3 lost 2000000000
	nonsense job 1 releases -2000000000
	nonsense lease 1 epoch $most
	nonsense result 1 epoch $least
	nonsense audit_outbox 2 epoch -1
	nonsense audit_outbox 3 event "$(printf 'e%.0s' $(seq 300))"
fi
forge info:jobs=2
damaged "another number of jobs than its description says"

# --- files that no backup has
echo x >"$LYCH_TMP/text"
for name in ../x /tmp/x audit/lock audit/x vessel/reactor/1 secrets/lychgate_work config/backup.key tomb/leases vessel/blobs/zz/1 \
	vessel/output/1.1/meta vessel/output/1/1.1/meta vessel/output/0/1.1/x vessel/output/0/01.1/meta vessel/output/0/1.1/meta/x phylactery/data/postgresql.conf config; do
	forge "$name=$LYCH_TMP/text"
	damaged "a file $name"
done
forge database.copy-
damaged "no database"
python3 - "$A" "$F" <<'PY'
import sys
a = bytearray(open(sys.argv[1], "rb").read())
at = 512 + (len(a[512:]) and -(-int(a[124:135], 8) // 512) * 512)  # the header of database.copy
a[at + 156] = ord("2")
a[at + 157 : at + 168] = b"/etc/passwd"
a[at + 148 : at + 156] = b" " * 8
a[at + 148 : at + 155] = b"%06o\0" % sum(a[at : at + 512])
open(sys.argv[2], "wb").write(a)
PY
damaged "a symbolic link"
is "none of all these changed anything" "$before" "$(tree)"

# --- one that is as it should be, but for what it says: data, and nothing begins
mkdir "$LYCH_TMP/bin"
for program in psql postgres initdb; do
	printf '#!/bin/sh\ntouch %s\nexec /bin/false\n' "$W" >"$LYCH_TMP/bin/$program"
done
chmod +x "$LYCH_TMP/bin/"*
printf 'version: "1"\npostgres:\n  bin: "%s"\n' "$LYCH_TMP/bin" >"$LYCH_TMP/codex"
text "LYPRIV1\n"
quote="'; COPY (SELECT 1) TO PROGRAM 'touch $W'; -- \`touch $W\` \$(touch $W) :{?x} \\\\\\\\! touch $W"
rows job | awk -F'\t' -v OFS='\t' -v q="$quote" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "request_id") at = i } NR == 2 { $at = q } { print }' >"$LYCH_TMP/jobs"
forge "rows:job=$LYCH_TMP/jobs" "config/codex.yaml=$LYCH_TMP/codex" "vessel/private=$LYCH_TMP/text"
mkdir "$LYCH_TMP/kept" && mv "$LYCH_CONFIG" "$LYCH_TMP/kept/"
own_terms=$(sha256sum <"$LYCHGATE_DATA/vessel/private")
rm "$key"
lych restore --force --unsealed "$F" >"$LYCH_TMP/out" 2>"$LYCH_TMP/said" </dev/null || fail "restore --unsealed: $(cat "$LYCH_TMP/said")"
is "it says so" 1 "$(grep -c 'WARNING: the seal was not looked at' "$LYCH_TMP/said")"
is "it says what waits" 1 "$(grep -c ' 2 jobs that had not ended' "$LYCH_TMP/said")"
is "it says where its configuration is" 1 "$(grep -c 'not taken; the archive.s is config/codex.yaml' "$LYCH_TMP/out")"
cmp -s "$LYCH_TMP/codex" "$LYCHGATE_DATA/config/codex.yaml" || fail "its configuration is not there"
[ ! -e "$LYCH_CONFIG" ] || fail "its configuration was put in place"
[ ! -e "$key" ] || fail "a key was made"
is "what the gate refuses is this machine's" "$own_terms" "$(sha256sum <"$LYCHGATE_DATA/vessel/private")"
cmp -s "$LYCH_TMP/text" "$LYCHGATE_DATA/config/private" || fail "its terms are not there"
is "every file is private" "" "$(find "$LYCHGATE_DATA"/{vessel,audit,config} -type f ! -perm 600)$(find "$LYCHGATE_DATA"/{vessel,audit,config} -type d ! -perm 700)"
lych up --detach || fail "up after that"
is "it is plain text" 1 "$(lych jobs --json --limit 500 | json 'sum("TO PROGRAM" in x["request_id"] for x in j["jobs"])')"
sleep 3
for id in "$running" "$waiting"; do
	is "job $id does not begin" "quarantined 0" "$(lych show "$id" --json | json 'j["state"], j["lost"]')"
	lych why "$id" | grep -q 'restored without its seal' || fail "lych why: $(lych why "$id")"
	count=$((count + 1))
done
is "new jobs run" new "$(lych run -n -- echo new)"
is "the number of a job that was removed is not given again" "$((gone + 1))" "$(lych jobs --json --limit 1 | json 'j["jobs"][0]["id"]')"
lych retry "$waiting" >/dev/null || fail "lych retry"
is "it begins when a person says so" waited "$(lych logs -f "$waiting")"
"$LYCH_BIN/lych-audit" verify "$LYCHGATE_DATA/audit" --json >"$LYCH_TMP/out"
is "the log goes on with keys for which nobody vouches yet" 3 $?
"$LYCH_BIN/lych-audit" verify "$LYCHGATE_DATA/audit" --pin "$(json 'j["genesis"]' <"$LYCH_TMP/out")" >/dev/null || fail "the audit log"
is "that they were put aside is in the log" 2 "$(cat "$LYCHGATE_DATA"/audit/segment-* | grep -c '"job.quarantined"')"
lych status --json | json '1' >/dev/null || fail status
lych down >/dev/null
[ ! -e "$W" ] || fail "something ran"

# --- a backup of that is sealed with a key of its own
lych up --detach || fail "up again"
lych backup "$LYCH_TMP/third.tar" --json >"$LYCH_TMP/out" || fail "backup after that"
is "its code is in the object" 39 "$(json 'len(j["recovery_code"])' <"$LYCH_TMP/out")"
tests/integration/cli/forge.py check "$LYCH_TMP/third.tar" "$(json 'j["recovery_code"]' <"$LYCH_TMP/out")" || fail "another code's seal"
lych down >/dev/null
[ ! -e "$W" ] || fail "something ran"
echo "$count checks"
