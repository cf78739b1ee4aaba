#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# From one schema to the next. A cluster of each version from before the first migration is refused by
# migrate, vessel and lych up, and is afterwards what it was. Then with the programs of a release that
# has one migration more (tests/support/next-release): they refuse what is not migrated; an
# installation goes forward with its jobs; this release refuses what has gone forward; and an archive
# of this release comes back through the next one, but not the other way.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
next=$LYCH_BIN/next
[ -x "$next/lych" ] || skip "no programs of a next release ($next)"
lych_begin upgrade
has() { # what, text: the program said it on stderr
	grep -q -- "$2" "$LYCH_TMP/err" || fail "$1: $(cat "$LYCH_TMP/err")"
	count=$((count + 1))
}
refused() { # what, text, command...
	local what=$1 text=$2
	shift 2
	"$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err" </dev/null && fail "$what: not refused"
	has "$what" "$text"
}

# --- migrations are embedded in order, or not at all
mkdir -p "$LYCH_TMP/sql/0007_a"
touch "$LYCH_TMP/sql/0007_a/01_a.sql" "$LYCH_TMP/sql/0007_a/03_b.sql" "$LYCH_TMP/sql/0009_b.sql" "$LYCH_TMP/sql/x.sql"
refused "no migration" 'no migration' tests/support/embed-sql
refused "a name without a number" 'begins with NNNN_' tests/support/embed-sql "$LYCH_TMP/sql/x.sql"
refused "a file is missing" 'begins with 02_' tests/support/embed-sql "$LYCH_TMP/sql/0007_a"
mv "$LYCH_TMP/sql/0007_a/03_b.sql" "$LYCH_TMP/sql/0007_a/02_b.sql"
refused "a migration is missing" 'begins with 0008_' tests/support/embed-sql "$LYCH_TMP/sql/0007_a" "$LYCH_TMP/sql/0009_b.sql"

# --- clusters from before the first migration
P=$LYCH_TMP/pg
trap 'rc=$?; tests/support/pg stop "$P" >/dev/null 2>&1; (exit "$rc"); lych_end' EXIT
sql() { tests/support/pg psql "$P" lych_migrate -At -c "$1" || fail "$1"; }
own=(-n lych -n '*_api') # the rest, what PostgreSQL brings itself, is long
dump() { tests/support/pg dump "$P" "$@" >"$LYCH_TMP/dump" || fail "pg dump"; sha256sum <"$LYCH_TMP/dump"; }
migrate() { "$1/lych-vessel" migrate --pg-dir "$P/sock" --secrets "$P/secrets" --tomb tomb_1; }
serve() {
	timeout 60 "$1/lych-vessel" serve --data "$LYCH_TMP/v/vessel" --api-dir "$LYCH_TMP/api" --work-dir "$LYCH_TMP/work" --pg-dir "$P/sock" \
		--audit-dir "$LYCH_TMP/audit" --secrets "$P/secrets" --tomb tomb_1
}
(umask 077 && mkdir -p "$LYCH_TMP"/{v/vessel,api,work,audit})
tests/support/pg start "$P" || fail "no PostgreSQL"
migrate "$LYCH_BIN" 2>"$LYCH_TMP/err" || fail "migrate: $(cat "$LYCH_TMP/err")"
first=$(sql "SELECT min(version) FROM lych.schema_version")
newest=$(sql "SELECT max(version) FROM lych.schema_version")
sql "CREATE TABLE lych.saved AS SELECT * FROM lych.schema_version"
sql "SELECT vessel_api.enqueue('main', 'r', '\x7b7d', 50, true, 600, 1000)" >/dev/null
for ((v = first - 1; v > 0; v--)); do
	sql "DELETE FROM lych.schema_version; INSERT INTO lych.schema_version SELECT n, 'of old', repeat('0', 64) FROM generate_series(1, $v) AS n"
	[ "$v" != 4 ] || sql "DROP FUNCTION vessel_api.schema_version()" # it came with 5
	part=("${own[@]}")
	[ "$v" != 1 ] || part=()
	before=$(dump "${part[@]}")
	[ "$(wc -l <"$LYCH_TMP/dump")" -gt 2000 ] || fail "there is little to compare"
	refused "migrate of version $v" "LYCH-STARTUP-015.*at version $v, " migrate "$LYCH_BIN"
	refused "the vessel on version $v" "LYCH-STARTUP-015" serve "$LYCH_BIN"
	has "the vessel says what it needs" "at version $v, .*needs $newest\|older than version 5, .*needs $newest"
	is "version $v is as it was" "$before" "$(dump "${part[@]}")"
done
tests/support/pg stop "$P"
rm -rf "$P"

# --- a cluster of this release, and the programs of the next one
tests/support/pg start "$P"
migrate "$LYCH_BIN" 2>"$LYCH_TMP/err" || fail "migrate: $(cat "$LYCH_TMP/err")"
before=$(dump "${own[@]}")
refused "the next vessel on what is not migrated" 'LYCH-STARTUP-012.*lych-vessel migrate' serve "$next"
is "it touched nothing" "$before" "$(dump "${own[@]}")"
migrate "$next" 2>"$LYCH_TMP/err" || fail "migrate: $(cat "$LYCH_TMP/err")"
is "it is one migration further" $((newest + 1)) "$(sql "SELECT max(version) FROM lych.schema_version")"
dump "${own[@]}" >/dev/null
others() { grep -vE "^$newest	" "$LYCH_TMP/dump"; } # all but the row of that migration
others >"$LYCH_TMP/others"
refused "this release's migrate on the next schema" 'LYCH-STARTUP-007' migrate "$LYCH_BIN"
refused "this release's vessel on the next schema" 'LYCH-STARTUP-007' serve "$LYCH_BIN"
dump "${own[@]}" >/dev/null
is "they touched nothing" "" "$(others | diff "$LYCH_TMP/others" -)"
sql "UPDATE lych.schema_version SET sha256 = repeat('0', 64) WHERE version = $newest"
refused "a migration with another text" 'LYCH-STARTUP-007.*another text' migrate "$next"
sql "DELETE FROM lych.schema_version WHERE version = $newest"
refused "a gap" "LYCH-STARTUP-007.*migration $newest is missing" migrate "$next"
sql "INSERT INTO lych.schema_version SELECT * FROM (VALUES ($newest, 'x', 'x')) AS x"
dump "${own[@]}" >/dev/null
is "nor did these" "" "$(others | diff "$LYCH_TMP/others" -)"
tests/support/pg stop "$P"

# --- an installation goes forward with what it has
later() { "$next/lych" "$@"; }
psql() {
	PGPASSWORD=$(cat "$LYCHGATE_DATA/secrets/lychgate_db_migrate") \
		command psql -XAtq -h "$XDG_RUNTIME_DIR/lychgate/pg" -U lych_migrate -d lychgate -c "$1"
}
state() { # all that a user can see of the jobs, by the programs of this release or the next
	"$1" jobs --json --limit 500 | python3 -c '
import json, sys
for j in sorted(json.load(sys.stdin)["jobs"], key=lambda j: j["id"]):
    print(j["id"], j["request_id"], j["state"], j["class"], j["attempts"], j["finished_at"])' >"$2.jobs"
	awk '{ print $1 }' "$2.jobs" >"$2.ids"
	while read -r id; do
		"$1" show "$id" --json
		"$1" logs "$id"
	done <"$2.ids" >"$2" 2>&1
	cat "$2.jobs" >>"$2"
}
same() { diff "$LYCH_TMP/before" "$LYCH_TMP/after" >"$LYCH_TMP/diff" || fail "$1: $(head -n 20 "$LYCH_TMP/diff")"; }
upgraded() { # what: each job of before is known to the migration, which ran when its row was there
	is "$1: the schema" $((newest + 1)) "$(psql "SELECT max(version) FROM lych.schema_version")"
	is "$1: the new table has the rows" "8 1" "$(psql "SELECT count(*) || ' ' || count(*) FILTER (WHERE class <> '') FROM lych.tomorrow WHERE job_id <= 8")"
	is "$1: so has the new column" 8 "$(psql "SELECT count(*) FROM lych.job WHERE upgraded")"
}
lych config init >/dev/null
lych up --detach || fail up
for i in $(seq 6); do lych run -n -- echo "job $i" >/dev/null || fail "job $i"; done
lych run -n -- sh -c 'echo fails >&2; exit 7'
is "a job that fails" 7 "$?"
gone=$(lych run -n --detach -- true) || fail "a job"
lych logs -f "$gone" >/dev/null
state lych "$LYCH_TMP/before"
[ "$(wc -l <"$LYCH_TMP/before")" -gt 20 ] || fail "there is little to compare"
A=$LYCH_TMP/of-this.tar B=$LYCH_TMP/of-next.tar
lych backup "$A" >/dev/null 2>"$LYCH_TMP/err" || fail "backup: $(cat "$LYCH_TMP/err")"
lych down >/dev/null
later up --detach || fail "up of the next release"
upgraded "after the upgrade"
state later "$LYCH_TMP/after"
same "after the upgrade"
is "new jobs run" new "$(later run -n -- echo new)"
later backup "$B" >/dev/null || fail "backup of the next release"
later down >/dev/null
refused "this release on what has gone forward" 'LYCH-STARTUP-007' lych up --detach
refused "an archive of the next release" 'LYCH-BACKUP-004' lych restore --force "$B"
has "it says why" "its schema is $((newest + 1)), this release knows .* to $newest"
later up --detach || fail "up of the next release, again"
is "what was refused touched nothing" new "$(later logs $((gone + 1)))"
later down >/dev/null

# --- an archive of this release comes back through the next one
for unsealed in "" --unsealed; do
	rm -rf "$LYCHGATE_DATA" "$LYCHGATE_DATA".before-*
	# shellcheck disable=SC2086 # none or one
	later restore $unsealed "$A" >/dev/null 2>"$LYCH_TMP/err" </dev/null || fail "restore: $(cat "$LYCH_TMP/err")"
	later up --detach || fail "up after the restore"
	upgraded "after the restore $unsealed"
	state later "$LYCH_TMP/after"
	same "after the restore $unsealed"
	is "new jobs run" new "$(later run -n -- echo new)"
	later down >/dev/null
done
# and one of the next release through itself: with a table more
rm -rf "$LYCHGATE_DATA"
later restore "$B" >/dev/null 2>"$LYCH_TMP/err" </dev/null || fail "restore: $(cat "$LYCH_TMP/err")"
is "its rows have a section more" $(($(tar xOf "$A" database.copy | grep -cFx '\.') + 1)) "$(tar xOf "$B" database.copy | grep -cFx '\.')"
later up --detach || fail "up after the second restore"
is "the new table's rows were in the archive" 8 "$(psql "SELECT count(*) FROM lych.tomorrow")"

# --- lych up on a cluster from before the first migration
psql "DELETE FROM lych.schema_version; INSERT INTO lych.schema_version SELECT n, 'of old', repeat('0', 64) FROM generate_series(1, $((first - 1))) AS n"
later down >/dev/null
refused "lych up on version $((first - 1))" 'LYCH-STARTUP-015' lych up --detach
has "it says which" "at version $((first - 1))"
echo "$count checks"
