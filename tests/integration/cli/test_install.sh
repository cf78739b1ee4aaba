#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# make install PREFIX=$HOME/.local, whatever the umask, in a home on a path with a blank; what is installed is then used in an
# ordinary environment: other locales, a TMPDIR elsewhere, certificates named by variables, 1,024 descriptors. Programs and the
# user's data share no directory: up, a job, its logs, a backup, a restore over it, and the programs are still there; make
# uninstall, and the data still are. A directory that an older release mixed is named, with its mode and what to do.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
lych_begin install
LYCH_BUILD=$LYCH_BIN
count=0
is() { # what, expected, got
	[ "$2" = "$3" ] || fail "$round: $1: expected '$2', got '$3'; stderr: $(tail -n 3 "$LYCH_TMP/err" 2>/dev/null)"
	count=$((count + 1))
}
refused() { # what, code, words, command...
	local what=$1 code=$2 words=$3
	shift 3
	"$@" >/dev/null 2>"$LYCH_TMP/err" && fail "$round: $what: not refused"
	grep -q "$code" "$LYCH_TMP/err" || fail "$round: $what: $(cat "$LYCH_TMP/err")"
	grep -qF -- "$words" "$LYCH_TMP/err" || fail "$round: $what: no '$words' in $(cat "$LYCH_TMP/err")"
	count=$((count + 1))
}
install_it() { # install | uninstall
	env -u TMPDIR -u LC_ALL make -s "$1" VARIANT="${VARIANT:-release}" PREFIX="$HOME/.local" >"$LYCH_TMP/$1.log" 2>&1 || fail "$round: make $1: $(tail -n 3 "$LYCH_TMP/$1.log")"
}
programs() { (cd "$HOME/.local" && find . -path "./share/lychgate*" -prune -o ! -type d -printf '%m %p\n' | sort); }

# --- programs that are there, and a user who runs them
live() {
	local share=$HOME/.local/share/lychgate put
	[ -x "$LYCH_BIN/lych" ] || install_it install # mixed() did
	put=$(programs)
	is "nothing is installed where the data go" no "$([ -e "$share" ] && echo yes || echo no)"
	is "all may read it" 0 "$(find "$HOME/.local" \( -type f -o -type d \) ! -perm -444 | wc -l)"
	is "nobody else may change it" 0 "$(find "$HOME/.local" \( -type f -o -type d \) -perm /022 | wc -l)"
	is "the AppArmor profiles name what was installed" 1 "$(grep -cF "profile \"$HOME/.local/libexec/lychgate/lych-tomb\"" "$HOME/.local/lib/lychgate/apparmor/lychgate")"
	is "the unit of the user's systemd names what was installed" 1 "$(grep -cxF "ExecStart=\"$HOME/.local/bin/lych\" up --detach" "$HOME/.local/share/systemd/user/lychgate.service")"
	lych up --detach >/dev/null 2>"$LYCH_TMP/err" || fail "$round: up: $(cat "$LYCH_TMP/err")"
	is "the data directory is private" 700 "$(stat -c %a "$share")"
	is "nothing in it is open to others" 0 "$(find "$share" -perm /077 ! -type l | wc -l)"
	# shellcheck disable=SC2016 # expanded by awk, inside
	is "a job" "42 out" "$(echo 20 22 | lych run --artifact 'out/*' --out "$LYCH_TMP/$round" -- sh -c 'mkdir out; echo out >out/x; awk "{print \$1 + \$2}"' 2>"$LYCH_TMP/err") $(cat "$LYCH_TMP/$round/out/x")"
	is "its logs" 42 "$(lych logs 1)"
	is "a profile that was installed" ok "$(cd "$LYCH_TMP/$round" && "$LYCH_BIN/lych" sandbox --profile look -- echo ok 2>"$LYCH_TMP/err")"
	lych backup "$LYCH_TMP/$round.tar" >/dev/null 2>"$LYCH_TMP/err" || fail "$round: backup: $(cat "$LYCH_TMP/err")"
	is "the archive is private" 600 "$(stat -c %a "$LYCH_TMP/$round.tar")"
	lych down >/dev/null || fail "$round: down"
	lych restore --force "$LYCH_TMP/$round.tar" >/dev/null 2>"$LYCH_TMP/err" || fail "$round: restore: $(cat "$LYCH_TMP/err")"
	is "it took no program away" "$put" "$(programs)"
	lych up --detach >/dev/null 2>"$LYCH_TMP/err" || fail "$round: up after the restore: $(cat "$LYCH_TMP/err")"
	is "the job is there again" 42 "$(lych logs 1)"
	lych down >/dev/null || fail "$round: down"
}

# --- what an older release did, at a user's own prefix
mixed() {
	local share=$HOME/.local/share/lychgate LYCH_BIN=$LYCH_BUILD
	(umask 022 && mkdir -p "$share/profiles" "$share/quadlet/tomb")
	find cli/profiles -maxdepth 1 -type f -exec cp -t "$share/profiles" {} +
	cp quadlet/tomb/*.container "$share/quadlet/tomb/"
	chmod 0755 "$share"
	refused "mixed, up" LYCH-STARTUP-016 "$share, mode 0755, holds files of programs" lych up --detach
	chmod 0700 "$share"
	refused "mixed and private, restore" LYCH-STARTUP-016 "$share, mode 0700, holds files of programs" \
		env XDG_CONFIG_HOME="$LYCH_TMP/a home/closed/.config" "$LYCH_BIN/lych" restore --force "$LYCH_TMP/closed.tar"
	chmod 0755 "$share"
	refused "and it is said how they part" LYCH-STARTUP-016 "cd '$share' && rm -r profiles quadlet && chmod 0700 ." lych up --detach
	echo mine >"$share/profiles/of-the-user"
	install_it install
	is "this release's install takes its own away, and no other file" "profiles/of-the-user" "$(cd "$share" && find . ! -type d -printf '%P\n')"
	rm -r "$share/profiles"
	refused "then there is the mode" LYCH-STARTUP-016 "$share: mode 0755, must be 0700" lych up --detach
	rmdir "$share"
	mkdir -m 0755 "$LYCH_TMP/open"
	refused "any directory's mode" LYCH-STARTUP-016 "$LYCH_TMP/open: mode 0755, must be 0700" env LYCHGATE_DATA="$LYCH_TMP/open" "$LYCH_BIN/lych" up --detach
	chmod 0700 "$HOME/.local"
	refused "data above the programs" LYCH-STARTUP-016 "installed below it" env LYCHGATE_DATA="$HOME/.local" "$HOME/.local/bin/lych" up --detach
	chmod 0755 "$HOME/.local"
}

round() { # name, umask, VARIABLE=value...
	round=$1
	export HOME="$LYCH_TMP/a home/$1"
	LYCH_BIN=$HOME/.local/bin
	umask "$2"
	shift 2
	for variable; do export "${variable?}"; done
	mkdir -m 0700 "$HOME"
	[ "$round" != open ] || mixed
	live
	(cd "$HOME/.local/share/lychgate" && find . -type f -exec sha256sum {} + | sort) >"$LYCH_TMP/before"
	install_it uninstall
	is "uninstall leaves no program" "" "$(programs)"
	(cd "$HOME/.local/share/lychgate" && find . -type f -exec sha256sum {} + | sort) >"$LYCH_TMP/after"
	is "and all of the user's data" "" "$(diff "$LYCH_TMP/before" "$LYCH_TMP/after")"
}

# fail() reads it; the programs go by HOME
LYCHGATE_DATA=$LYCH_TMP/none
export -n LYCHGATE_DATA
mkdir "$LYCH_TMP/tmp" "$LYCH_TMP/a home"
round=prefix
# shellcheck disable=SC2088 # a shell that does not expand it
refused "a PREFIX that is not absolute" "must be an absolute path" "~/.local" make -s install VARIANT="${VARIANT:-release}" PREFIX='~/.local' DESTDIR="$LYCH_TMP/dest/"
is "nothing was written" no "$([ -e "$LYCH_TMP/dest" ] && echo yes || echo no)"
round closed 077 LANG=C TMPDIR="$LYCH_TMP/tmp"
ulimit -Sn 1024
round open 002 LANG=tr_TR.UTF-8 LC_ALL=nowhere LANGUAGE=de TMPDIR=/nonexistent SSL_CERT_FILE=/nonexistent \
	SSL_CERT_DIR=/nonexistent CURL_CA_BUNDLE=/nonexistent PGHOST=/nonexistent PGUSER=nobody PGPORT=1 http_proxy=http://127.0.0.1:1
is "nothing of it stays in TMPDIR" 0 "$(find "$LYCH_TMP/tmp" -mindepth 1 | wc -l)"
echo "install: $count checks"
