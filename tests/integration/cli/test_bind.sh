#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# lych bind, lych unbind, lych status of units. What must be refused is refused with its reason and leaves
# everything as it was, looked at from outside: every file, its bytes, mode and times, before and after.
# Podman and systemctl are stand-ins (tests/support/podman-stand-in); `make e2e` has the real ones.
# shellcheck disable=SC2088 # a ~ in codex.yaml is for lych to expand
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
here=$PWD
. tests/support/lych.sh
lych_begin bind
make -s install VARIANT="${VARIANT:-release}" DESTDIR="$LYCH_TMP/dest" PREFIX=/usr >"$LYCH_TMP/install.log" 2>&1 ||
	fail "make install: $(tail -3 "$LYCH_TMP/install.log")"
templates=$LYCH_TMP/dest/usr/lib/lychgate/quadlet
mkdir -p "$LYCH_TMP/bin" "$LYCH_TMP/state/secrets"
for name in podman systemctl; do
	install -m 755 tests/support/podman-stand-in "$LYCH_TMP/bin/$name"
done
export PATH=$LYCH_TMP/bin:$PATH
state=$LYCH_TMP/state units=$HOME/.config/containers/systemd host=$HOME/.config/systemd/user bound=$LYCHGATE_DATA/bind
list=$HOME/.config/lychgate/mount-allowlist.json
cd "$LYCH_TMP" || exit 1

count=0
is() { # what, expected, got
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'; stderr: $(tail -n 3 "$LYCH_TMP/err" 2>/dev/null)"
	count=$((count + 1))
}
run() { timeout 60 "$LYCH_TMP/dest/usr/bin/lych" "$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err"; }
# Everything of the user's: names, kinds, modes, times, links, bytes.
snapshot() {
	find "$HOME" "$XDG_RUNTIME_DIR" "$LYCHGATE_DATA" -printf '%p %y %m %u %n %T@ %l\n' 2>/dev/null | sort
	find "$HOME" "$XDG_RUNTIME_DIR" "$LYCHGATE_DATA" -type f -readable -exec sha256sum {} + 2>/dev/null | sort
}
refused() { # what, code, words, arguments of lych
	local what=$1 code=$2 words=$3 before want=1
	shift 3
	case $code in
	LYCH-STARTUP-002 | LYCH-BIND-001 | LYCH-CORE-004) want=2 ;;
	LYCH-STARTUP-016) want=78 ;;
	esac
	before=$(snapshot)
	run "$@"
	is "$what: exit" "$want" $?
	is "$what: code" 1 "$(grep -c "$code" err)"
	is "$what: words" yes "$(grep -qF -- "$words" err && echo yes)"
	[ "$before" = "$(snapshot)" ] || fail "$what: something was written: $(diff <(echo "$before") <(snapshot))"
	count=$((count + 1))
}
secret() { printf '%s' "${2-value of $1}" >"$state/secrets/$1"; }
config() { # from stdin, below the version
	{ echo 'version: "1"'; cat; } >"$LYCH_CONFIG"
	chmod 0600 "$LYCH_CONFIG"
}
mounts() { { printf 'pod:\n  mounts:\n'; printf '    - "%s"\n' "$@"; } | config; }
allow() { printf '%s\n' "$1" >"$list"; chmod 0600 "$list"; }
all_secrets() {
	rm -f "$state"/secrets/*
	sed -nE 's/^Secret=([a-z_]+),.*/\1/p' "$templates"/*/*.in | sort -u | while read -r name; do secret "$name"; done
}
all_secrets
is "there are secrets" yes "$([ -e "$state/secrets/lychgate_work" ] && echo yes)"

# --- the configuration
refused "no configuration" LYCH-BIND-014 "does not exist" bind
config </dev/null
chmod 0644 "$LYCH_CONFIG"; refused "a world-readable config" LYCH-STARTUP-003 "mode 0644, not 0600" bind
chmod 0660 "$LYCH_CONFIG"; refused "a group-writable config" LYCH-STARTUP-003 "mode 0660" bind
chmod 0600 "$LYCH_CONFIG"
ln "$LYCH_CONFIG" "$HOME/other-name"; refused "a second name of it" LYCH-STARTUP-003 "2 names" bind
rm "$HOME/other-name"
mv "$LYCH_CONFIG" "$HOME/real"; ln -s "$HOME/real" "$LYCH_CONFIG"
refused "a link in its place" LYCH-STARTUP-003 "symbolic link" bind
rm "$LYCH_CONFIG"; mkfifo -m 600 "$LYCH_CONFIG"; refused "a pipe in its place" LYCH-STARTUP-003 "no regular file" bind
rm "$LYCH_CONFIG"; mv "$HOME/real" "$LYCH_CONFIG"
chmod 0777 "$HOME/.config/lychgate"; refused "a directory that others write" LYCH-STARTUP-003 "written by others" bind
chmod 0700 "$HOME/.config/lychgate"
ln -s /etc/passwd "$HOME/.config/lychgate/c"
for line in 'pod: {profile: silver}' 'pod: {cgroups: auto}' 'pod: {network: host}' 'pod: {mounts: [/]}'; do
	config <<<"$line"; refused "config: $line" LYCH-STARTUP-002 "line 2" bind
done
rm "$HOME/.config/lychgate/c"
config <<<'pod: {tomb: {cpus: 4096}}'; refused "more CPUs than there are" LYCH-BIND-002 "this machine has" bind

# --- authorities: of a file that nobody else can change
ca=$HOME/ca.pem
config <<<"egress: {authorities: \"$ca\"}"
refused "no such file of authorities" LYCH-STARTUP-002 "egress.authorities: $ca" bind
echo "no certificate" >"$ca" && chmod 0644 "$ca"
refused "authorities without a certificate" LYCH-STARTUP-002 "no certificate (PEM) in $ca" bind
echo "-----BEGIN CERTIFICATE-----" >"$ca" && chmod 0664 "$ca"
refused "authorities that others change" LYCH-STARTUP-002 "written by others (mode 0664)" bind
refused "such authorities, config check" LYCH-STARTUP-002 "written by others (mode 0664)" config check
chmod 0644 "$ca"

# --- values
for image in '-v/:/host' 'a b' 'a%h' "a'b"; do
	config <<<"pod: {tomb: {image: \"$image\"}}"; refused "image $image" LYCH-BIND-002 "IMAGE_TOMB" bind
done
for label in -v a:b 'a%h'; do
	config <<<"pod: {label: \"$label\"}"; refused "label $label" LYCH-STARTUP-002 "pod.label" bind
done
config </dev/null
# shellcheck disable=SC2016 # a dollar sign, as it stands
for odd in 'a%h' 'a\x' 'a b' 'a"b' 'a$b' 'a:b' 'a,b' "$(printf 'a\tb')" "$(printf 'a\033b')" "$(printf 'a\342\200\256b')"; do
	mkdir -p "$LYCH_TMP/odd/$odd"
	before=$LYCHGATE_DATA
	LYCHGATE_DATA="$LYCH_TMP/odd/$odd"
	case $odd in
	*[$'\t\033']*) refused "data in '$odd'" LYCH-CORE-004 "control characters" bind ;;
	*) refused "data in '$odd'" LYCH-BIND-002 "DATA_DIR" bind ;;
	esac
	LYCHGATE_DATA=$before
done

# --- mounts
mkdir -p "$HOME"/{src/app,out,.ssh,deep/a/b/.aws} "$LYCH_TMP/else"
mounts "~/src"; refused "no allow-list" LYCH-BIND-004 "without it nothing is mounted" bind
allow '{"allowedRoots":[{"path":"~/src"},{"path":"~/deep"},{"path":"~/out","allowReadWrite":true},{"path":"~/.ssh"}]}'
for pair in "/|the whole system" "~|whole home" "$LYCH_TMP|holds your home" "/etc|/etc" "/proc|/proc" "~/.ssh|keeps secrets" \
	"~/.config|.config/lychgate" "~/.config/lychgate|.config/lychgate" "$LYCH_TMP/run|run" "~/deep|holds 'a/b/.aws'" \
	"~/deep/a/b|holds '.aws'" "~/deep/a/b/.aws|keeps secrets" "$LYCH_TMP/else|no root of the allow-list" "~/nowhere|No such file" \
	"~/src:rw|reading only" "~/src/../.ssh|'..'"; do
	mounts "${pair%%|*}"; refused "mount of ${pair%%|*}" "LYCH-BIND-00[23]" "${pair#*|}" bind
done
ln -s / "$HOME/src/root"; ln -s ../.ssh "$HOME/src/keys"
mounts "~/src/root"; refused "a link to /" LYCH-BIND-003 "the whole system" bind
mounts "~/src/keys"; refused "a link to ~/.ssh" LYCH-BIND-003 "keeps secrets" bind
mkdir -p "$HOME/src/a%b" && ln -s 'a%b' "$HOME/src/percent"
mounts "~/src/percent"; refused "a link to a path with %" LYCH-BIND-002 "'%'" bind
rmdir "$HOME/src/a%b"
mounts "~/src" "~/src/app"; refused "overlapping mounts" LYCH-BIND-003 "overlap" bind
mounts "~/src" "~/src"; refused "the same mount twice" LYCH-BIND-003 "overlap" bind
ln -s app "$HOME/src/same"
mounts "~/src/app" "~/src/same"; refused "the same mount by a link" LYCH-BIND-003 "overlap" bind
printf -- '-----BEGIN PRIVATE KEY-----\n' >"$HOME/src/app/tls.pem"
mounts "~/src"; refused "a private key below" LYCH-BIND-003 "app/tls.pem': a private key" bind
rm "$HOME/src/app/tls.pem"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$HOME/src/app/s"
refused "a socket below" LYCH-BIND-003 "a socket" bind
rm "$HOME/src/app/s"
for text in '{"allowedRoots":[{"path":"~/src","readWrite":true}]}' '{"roots":[]}' '{"allowedRoots":[],"allowedRoots":[]}' 'x'; do
	allow "$text"; refused "allow-list $text" LYCH-BIND-004 "$list" bind
done
allow '{"allowedRoots":[{"path":"~/src"}]}'
chmod 0666 "$list"; refused "an allow-list that others write" LYCH-BIND-004 "can be written by others" bind
mv "$list" "$HOME/list"; ln -s "$HOME/list" "$list"; chmod 0600 "$HOME/list"
refused "a link in its place" LYCH-BIND-004 "symbolic links" bind
rm "$list"; mv "$HOME/list" "$list"
allow '{"allowedRoots":[{"path":"~"}]}'; refused "a root that is all" LYCH-BIND-003 "allowedRoots[0]" bind

# --- secrets
config </dev/null
rm "$state/secrets/lychgate_work" "$state/secrets/lychgate_db_tomb"
refused "missing secrets" LYCH-BIND-005 "lychgate_db_tomb" bind
refused "missing secrets, all named" LYCH-BIND-005 "lychgate_work" bind
all_secrets; secret lychgate_db_tomb same; secret lychgate_db_vessel same
refused "an aliased secret" LYCH-BIND-006 "lychgate_db_tomb" bind
all_secrets; rm "$state/secrets/lychgate_work"; ln "$state/secrets/lychgate_db_tomb" "$state/secrets/lychgate_work"
refused "one secret by two names" LYCH-BIND-006 "lychgate_work" bind
rm "$state/secrets/lychgate_work"; all_secrets; secret lychgate_work ''
refused "an empty secret" LYCH-BIND-005 "lychgate_work is empty" bind
all_secrets

# --- Podman
echo 5.3.9 >"$state/version"
old() { # what, words: as refused, but nothing can be done here: exit 4
	local before
	before=$(snapshot)
	run bind --install
	is "$1: exit" 4 $?
	is "$1: words" 1 "$(grep -cF -- "$2" err)"
	[ "$before" = "$(snapshot)" ] || fail "$1: something was written"
}
setup_refused() { # what, words: as refused, but a wall can't stand: exit 78
	local before
	before=$(snapshot)
	run bind --install
	is "$1: exit" 78 $?
	is "$1: words" 1 "$(grep -cF -- "$2" err)"
	[ "$before" = "$(snapshot)" ] || fail "$1: something was written"
}
old "an old Podman" "this is Podman 5.3.9"
rm "$state/version"; touch "$state/no-reload"; old "no user manager" "Failed to connect to bus"
rm "$state/no-reload"
mkdir "$LYCH_TMP/nothing"
run() { PATH=$LYCH_TMP/nothing "$LYCH_TMP/dest/usr/bin/lych" "$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err"; }
old "no Podman" "no podman in"
run() { timeout 60 "$LYCH_TMP/dest/usr/bin/lych" "$@" >"$LYCH_TMP/out" 2>"$LYCH_TMP/err"; }

# --- templates that open a wall
tomb=$templates/golden-mean/lychgate-tomb.container.in
template() { # what, code, words, sed script for the tomb's template
	cp "$tomb" "$LYCH_TMP/keep"
	sed -i "$4" "$tomb"
	cmp -s "$tomb" "$LYCH_TMP/keep" && fail "$1: the template did not change"
	refused "$1" "$2" "$3" bind
	cp "$LYCH_TMP/keep" "$tomb"
}
template "an unknown placeholder" LYCH-BIND-001 "@NOBODY@: unknown" 's/^ReadOnly=true/&\nEnvironment=A=@NOBODY@/'
template "no ReadOnly" LYCH-BIND-007 "without ReadOnly=true" '/^ReadOnly=/d'
template "ReadOnly taken back" LYCH-BIND-007 "not what every unit must say" 's/^ReadOnly=true/&\nReadOnly=false/'
template "a capability" LYCH-BIND-007 "AddCapability" 's/^ReadOnly=true/&\nAddCapability=SYS_ADMIN/'
template "privileged" LYCH-BIND-007 "PodmanArgs=--privileged" 's/^ReadOnly=true/&\nPodmanArgs=--privileged/'
template "the host's network" LYCH-BIND-007 "Network=host" 's/^ReadOnly=true/&\nNetwork=host/'
template "a port for everybody" LYCH-BIND-007 "127.0.0.1" 's/^ReadOnly=true/&\nPublishPort=8080:80/'
template "a secret as a variable" LYCH-BIND-007 "Secret=lychgate_work_of_tomb_1,type=env" 's/^Secret=lychgate_work_of_tomb_1,.*/Secret=lychgate_work_of_tomb_1,type=env/'
template "a secret that all can read" LYCH-BIND-007 "mode=0444" 's/^\(Secret=lychgate_work.*\)0400/\10444/'
template "another's secret" LYCH-BIND-007 "no secret of the tomb" 's/^ReadOnly=true/&\nSecret=lychgate_db_vessel,type=mount,uid=%U,gid=%G,mode=0400/'
for master in lychgate_work lychgate_db_tomb; do
	template "a master in the tomb: $master" LYCH-BIND-007 "no secret of the tomb" "s/^ReadOnly=true/&\\nSecret=$master,type=mount,uid=%U,gid=%G,mode=0400/"
done
template "another tomb's secret" LYCH-BIND-007 "no secret of the tomb" 's/^Secret=lychgate_work_of_tomb_1,/Secret=lychgate_work_of_tomb_2,/'
template "the home directory" LYCH-BIND-007 "neither Lychgate" 's/^ReadOnly=true/&\nVolume=%h:\/h/'
template "the owner's socket" LYCH-BIND-007 "owner's socket" 's/^ReadOnly=true/&\nVolume=@RUNTIME_DIR@:\/r/'
template "the configuration" LYCH-BIND-007 "the configuration, in the tomb" 's/^ReadOnly=true/&\nVolume=@CONFIG_FILE@:\/c/'
template "the vessel's data" LYCH-BIND-007 "another room" 's/^ReadOnly=true/&\nVolume=@DATA_DIR@\/vessel:\/v/'
template "a continued line" LYCH-BIND-007 "continued" 's/^ReadOnly=true/&\nLabel=a \\/'
template "a provider's key in the tomb" LYCH-BIND-007 "a provider's key is the vessel's" 's/^ReadOnly=true/&\nSecret=portal_main,type=mount,uid=%U,gid=%G,mode=0400/'
template "a mount of another kind" LYCH-BIND-007 "not the tmpfs of the jobs" 's/^ReadOnly=true/&\nMount=type=bind,source=\/home,destination=\/h/'
template "a tmpfs elsewhere" LYCH-BIND-007 "not the tmpfs of the jobs" 's/^ReadOnly=true/&\nMount=type=tmpfs,destination=\/run,tmpfs-size=1,tmpfs-mode=0700,chown=true/'
mkdir "$LYCH_TMP/plain"
config <<<"tomb: {jobs_dir: \"$LYCH_TMP/plain\"}"
setup_refused "jobs in a directory that is no mount" "no mount of its own"
config </dev/null
tomb=$templates/golden-mean/lychgate.pod.in
template "a way out where nobody is to ask" LYCH-BIND-007 "Network=pasta" 's/^@?NO_EGRESS@ Network=.*/Network=pasta:--map-guest-addr,none/'
tomb=$templates/host/lychgate-reactor.service.in
template "another command on the host" LYCH-BIND-007 "only 'lych react'" 's/ react$/ react; id/'
template "a command before it" LYCH-BIND-007 "ExecStartPre" 's/^Type=oneshot/&\nExecStartPre=-\/bin\/true/'
tomb=$templates/golden-mean/lychgate-tomb.container.in
config <<<"egress: {authorities: \"$ca\"}"
template "the vessel's authorities in the tomb" LYCH-BIND-007 "neither Lychgate" 's/^ReadOnly=true/&\n@?AUTHORITIES@ Volume=@AUTHORITIES@:\/a:ro,z/'
config </dev/null
chmod 0666 "$tomb"; refused "a template that others write" LYCH-BIND-001 "can be written by others" bind; chmod 0644 "$tomb"

# --- a data directory that is open, or has programs' files in it
mkdir -m 0755 "$LYCHGATE_DATA"; refused "an open data directory" LYCH-STARTUP-016 "$LYCHGATE_DATA: mode 0755" bind
mkdir "$LYCHGATE_DATA/quadlet"; refused "a mixed one" LYCH-STARTUP-016 "cd '$LYCHGATE_DATA' && rm -r quadlet && chmod 0700 ." bind
rmdir "$LYCHGATE_DATA/quadlet" "$LYCHGATE_DATA"

# --- files of somebody else
mkdir -p "$units"
echo '[Pod]' >"$units/lychgate.pod"; refused "a foreign unit" LYCH-BIND-008 "$units/lychgate.pod" bind --install
refused "a foreign unit can't be taken over" LYCH-BIND-008 "$units/lychgate.pod" bind --install --overwrite lychgate.pod
rm "$units/lychgate.pod"; ln -s /etc/passwd "$units/lychgate.pod"
refused "a link in a unit's place" LYCH-BIND-008 "$units/lychgate.pod" bind --install
rm "$units/lychgate.pod"; mkdir "$units/lychgate-tomb.container.d"
refused "a drop-in for a unit of ours" LYCH-BIND-008 "a drop-in" bind --install
rmdir "$units/lychgate-tomb.container.d"; mkdir -p "$host/lychgate-reactor.service.d"
refused "a drop-in for the host's unit" LYCH-BIND-008 "a drop-in" bind --install
rmdir "$host/lychgate-reactor.service.d"; touch "$host/lychgate-reactor.service"
refused "a foreign unit of the host's" LYCH-BIND-008 "$host/lychgate-reactor.service" bind --install
rm "$host/lychgate-reactor.service"
for dropped in "$units/container.d" "$units/lychgate-.container.d" "$host/lychgate-tomb.service.d" "$host/lychgate-.service.d" "$host/service.d"; do
	mkdir -p "$dropped"; printf '[Service]\nExecStart=\n' >"$dropped/x.conf"
	refused "a drop-in: ${dropped##*/}" LYCH-BIND-008 "$dropped: a drop-in" bind --install
	rm -r "$dropped"
done
run unbind; is "unbind without a receipt" 3 $?
is "unbind without a receipt: code" 1 "$(grep -c LYCH-BIND-013 err)"
run bind --install extra; is "too many words" 2 $?
run bind --dry-run --install; is "dry-run and install" 2 $?
run bind --overwrite x; is "overwrite of nothing" 2 $?

# --- dry run: the difference, nothing written
allow '{"allowedRoots":[{"path":"~/src"},{"path":"~/out","allowReadWrite":true}]}'
mounts "~/src/app" "~/out:rw"
before=$(snapshot)
run bind --dry-run; is "dry run" 0 $?
[ "$before" = "$(snapshot)" ] || fail "the dry run wrote something"
grep -q '^+++ lychgate-tomb.container (rendered)' out || fail "the dry run shows no tomb"
grep -qxF "+Volume=$HOME/src/app:$HOME/src/app:ro,z" out || fail "the mount is not shown: $(grep Volume out)"
is "dry run: all is new" "0" "$(grep -c '^-[^-]' out)"

# --- bind, then install
in_dir() { (cd "$1" && sha256sum lychgate*) 2>/dev/null; }
rendered() { in_dir "$bound/lychgate"; in_dir "$bound/host"; }
installed() { in_dir "$units"; in_dir "$host"; }
made() { (cd "$state/secrets" && sha256sum ./*_of_* && stat -c '%n %i %Y' ./*_of_*) 2>/dev/null; }
derived() { # db|work: as the document says, from what lies there
	"$here/tests/support/python/tomb_secret.py" "$1" "$(cat "$state/secrets/lychgate_$([ "$1" = db ] && echo db_tomb || echo work)")" tomb_1 \
		"$(sed 's/generation://' "$state/secrets/lychgate_generation_of_tomb_1")"
}
is "the dry run made no secret" "" "$(made)"
# an earlier release gave these two to its tomb
cp "$state/secrets/lychgate_work" "$state/secrets/lychgate_db_tomb" "$LYCH_TMP/"
run bind; is "bind" 0 $?
for kind in db work; do
	is "the tomb's own secret: $kind" "$(derived $kind)" "$(cat "$state/secrets/lychgate_${kind}_of_tomb_1")"
done
for name in work db_tomb; do
	cmp -s "$LYCH_TMP/lychgate_$name" "$state/secrets/lychgate_$name" && fail "the master $name is still what a tomb had"
done
before=$(made); masters=$(cat "$state/secrets/lychgate_work" "$state/secrets/lychgate_db_tomb")
run bind; is "bind again" 0 $?
is "and no secret is another" "$before$masters" "$(made)$(cat "$state/secrets/lychgate_work" "$state/secrets/lychgate_db_tomb")"
secret lychgate_work_of_tomb_1 not-what-it-should-be-at-all
run bind; is "bind over a wrong one" 0 $?
is "it is made right" "$(derived work)" "$(cat "$state/secrets/lychgate_work_of_tomb_1")"
grep -lE '^Secret=lychgate_(work|db_tomb),' "$bound"/lychgate/* | sed 's/.*lychgate-//' >"$LYCH_TMP/holders"
is "who has a master" "migrate.container vessel.container" "$(sort "$LYCH_TMP/holders" | tr '\n' ' ' | sed 's/ $//')"
n=$(find "$templates/golden-mean" -name '*.in' | wc -l)
is "all units are rendered" "$n" "$(find "$bound/lychgate" -type f -name 'lychgate*' | wc -l)"
is "nothing else is there" "$n" "$(find "$bound/lychgate" -mindepth 1 | wc -l)"
is "no placeholder is left" 0 "$(grep -cE '@[A-Z?*][A-Z_]*@' "$bound"/lychgate/* | grep -cv ':0$')"
is "the host's units apart" "lychgate-reactor.path lychgate-reactor.service" "$(cd "$bound/host" && echo *)"
is "private" "700 600" "$(stat -c %a "$bound") $(stat -c %a "$bound/receipt.json")"
is "the writable mount" 1 "$(grep -cxF "Volume=$HOME/out:$HOME/out:rw,z" "$bound/lychgate/lychgate-tomb.container")"
is "only in the tomb" 1 "$(grep -lF "$HOME/out" "$bound"/lychgate/* | wc -l)"
is "nothing is installed yet" 0 "$(find "$units" -name 'lychgate*' | wc -l)"
python3 - "$bound" <<'P' || fail "the receipt"
import hashlib, json, pathlib, sys
d = pathlib.Path(sys.argv[1])
r = json.loads((d / "receipt.json").read_text())
have = {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for part in ("lychgate", "host") for f in (d / part).iterdir()}
assert {f["name"]: f["sha256"] for f in r["files"]} == have, (r, have)
assert r["profile"] == "golden-mean" and r["lychgate"] and r["time"] and "directory" not in r
P
run bind --install; is "install" 0 $?
is "every file arrived" "$(rendered)" "$(installed)"
is "the host's units" "lychgate-reactor.path lychgate-reactor.service" "$(cd "$host" && echo *)"
is "what the host runs" "ExecStart=$LYCH_TMP/dest/usr/bin/lych react" "$(grep ^Exec "$host/lychgate-reactor.service")"
is "the reactor is enabled" 1 "$(grep -c 'enable --now lychgate-reactor.path' "$state/log")"
is "--replace was said" 1 "$(grep -c 'quadlet install --reload-systemd=false --replace' "$state/log")"
run bind --dry-run; is "dry run after it" "0 Nothing would change." "$? $(cat out)"
run bind --install; is "install again" 0 $?
is "Podman's list has each once" "$n" "$(wc -l <"$units/.lychgate.app")"

# --- status
for name in "$units"/*.container; do
	name=${name##*/}
	echo "lych-ps ${name%.container} Up 2 minutes (healthy)"
done >"$state/ps"
run status; is "status without a vessel" 4 $?
grep -qE '^lychgate-tomb.container +installed +active \(running\) +healthy +0' out || fail "status: $(cat out)"
echo lychgate-tomb.service >"$state/down"; cp "$units/lychgate.pod" keep.pod
echo '# mine' >>"$units/lychgate.pod"; rm "$units/lychgate-vessel.container"
run status --json; is "status --json" 4 $?
python3 - "$LYCH_TMP/out" <<'P' || fail "status: $(cat out)"
import json, sys
s = json.load(open(sys.argv[1]))
by = {u["unit"]: u for u in s["units"]}
assert s["mode"] == "pod" and s["profile"] == "golden-mean" and not s["ready"] and s["vessel"] is None
assert by["lychgate-tomb.container"]["active"] == "failed" and by["lychgate-tomb.container"]["file"] == "installed"
assert by["lychgate.pod"]["file"] == "changed" and by["lychgate-vessel.container"]["file"] == "missing"
assert by["lychgate-tomb.container"]["health"] == "healthy"
P
rm "$state/down" "$state/ps"

# --- doctor: what Podman and the kernel have of a container, against its unit
mv "$LYCH_TMP/keep.pod" "$units/lychgate.pod" && cp "$bound/lychgate/lychgate-vessel.container" "$units/"
inspect() { printf 'lych-at %s\n' "$@"; }
inspect "ports 0" "pid $$" "readonly true" "mount $HOME/src/app" "mount $HOME/.ssh" "secret lychgate_work_of_tomb_1 256" \
	"secret lychgate_db_of_tomb_1 292" "secret lychgate_db_migrate 256" >"$state/inspect-lychgate-tomb"
inspect "ports 1" "pid 0" "readonly false" >"$state/inspect-lychgate-vessel"
inspect "ports 0" >"$state/inspect-lychgate-infra"
run doctor; is "doctor" 1 $?
tr -s ' ' <out >flat
for line in "PASS pod lychgate-tomb: mount $HOME/src/app" "FAIL pod lychgate-tomb: mount $HOME/.ssh" \
	"PASS pod lychgate-tomb: secret, readable by you alone lychgate_work_of_tomb_1" \
	"FAIL pod lychgate-tomb: secret, readable by you alone lychgate_db_of_tomb_1" \
	"FAIL pod lychgate-tomb: secret, readable by you alone lychgate_db_migrate" \
	"PASS pod lychgate-tomb: runs as you, not as root" "FAIL pod lychgate-tomb: no new privileges 0" \
	"PASS pod lychgate-tomb: read-only root true" "FAIL pod lychgate-vessel: read-only root false" \
	"FAIL pod lychgate-vessel: ports on the host 1" "FAIL pod lychgate-vessel: process" \
	"PASS pod lychgate-infra: ports on the host 0" "PASS host Podman 5.8.6" "PASS host mount in a user namespace allowed"; do
	grep -qF -- "$line" flat || fail "doctor does not say '$line': $(grep -E '(pod|host) ' out)"
	count=$((count + 1))
done
rm "$state"/inspect-*
echo '# mine' >>"$units/lychgate.pod"; rm "$units/lychgate-vessel.container"

# --- what somebody changed
refused "a changed unit" LYCH-BIND-009 "$units/lychgate.pod" bind --install
refused "a changed unit, another named" LYCH-BIND-009 "$units/lychgate.pod" bind --install --overwrite lychgate-tomb.container
refused "a changed unit is not removed" LYCH-BIND-009 "$units/lychgate.pod" unbind
run bind --dry-run; is "the change is shown" "0 1" "$? $(grep -c '^-# mine' out)"
run bind --install --overwrite lychgate.pod; is "given up by name" 0 $?
is "as rendered" "$(rendered)" "$(installed)"

# --- the former set stays when the new one does not stand
config <<<'pod: {tomb: {memory: 3GiB}}'
old_set=$(installed)
old_app=$(cat "$units/.lychgate.app")
broken() { # what, words
	run bind --install; is "$1: exit" 4 $?
	is "$1: code" 1 "$(grep -c LYCH-BIND-011 err)"
	is "$1: words" 1 "$(grep -cF -- "$2" err)"
	is "$1: the former units" "$old_set" "$(installed)"
	is "$1: the former list" "$old_app" "$(cat "$units/.lychgate.app")"
	is "$1: the former services" "$(installed | wc -l)" "$(wc -l <"$state/services")"
}
echo 2 >"$state/stop-after"; broken "stopped half-way" "no space left on device"; rm "$state/stop-after"
echo lychgate-tomb.container >"$state/garble"; broken "other bytes" "lychgate-tomb.container arrived with other bytes"; rm "$state/garble"
rm -f "$units/lychgate-tomb.container"; old_set=$(installed)
echo lychgate-tomb.container >"$state/lose"; broken "exit 0 and a file lost" "lychgate-tomb.container did not arrive"; rm "$state/lose"
echo lychgate-tomb.container >"$state/dislike"
run bind --install; is "Quadlet dislikes it" 4 $?
is "Quadlet dislikes it: words" 1 "$(grep -cF "systemd has no lychgate-tomb.service" err)"
rm "$state/dislike"
run bind --install; is "then it works" 0 $?
is "the new units" "$(rendered)" "$(installed)"
is "the new value" 1 "$(grep -c "^Memory=$((3 << 30))\$" "$units/lychgate-tomb.container")"

# --- another profile: what it has not goes; one label for all images that are not named
config <<<'pod: {profile: sovereign, cgroups: none, label: 7.a, scribe: {image: other/scribe:1}}'
run bind --install; is "sovereign" 0 $?
is "its images" "localhost/lychgate-phylactery:7.a localhost/lychgate-tomb:7.a localhost/lychgate-vessel:7.a other/scribe:1" \
	"$(sed -n 's/^Image=//p' "$units"/*.container | sort -u | paste -sd' ')"
is "sovereign, all of it" "$(rendered)" "$(installed)"
is "no cgroup without it" 0 "$(grep -cE '^(Volume|PodmanArgs)=.*cgroup' "$units/lychgate-tomb.container")"
config </dev/null
run bind --install; is "golden-mean again" 0 $?
is "nothing of the other is left" "$(rendered)" "$(installed)"
is "nor in Podman's list" "$n" "$(wc -l <"$units/.lychgate.app")"

# --- started, and waited for: what does not answer is named
waited() { # what, words
	run status --wait 1; is "$1: exit" 4 $?
	is "$1: code" 1 "$(grep -c LYCH-STARTUP-019 err)"
	grep -qF -- "after 1 s: $2" err || fail "$1: $(cat err)"
}
waited "a Podman that says nothing" "Podman or systemd ("
: >"$state/ps"
echo lychgate-tomb.service >"$state/down"; waited "a tomb that is down" "lychgate-tomb.service (failed)"
rm "$state/down"; waited "no vessel" "vessel ("
echo "lych-ps lychgate-scribe Up 2 minutes (unhealthy)" >"$state/ps"; waited "a scribe that is unhealthy" "lychgate-scribe.service (unhealthy)"
: >"$state/ps"
for wrong in "status 5" "status --wait 0" "status --wait=x" "status --wait=5 5" "bind --dry-run --start"; do
	# shellcheck disable=SC2086 # words
	run $wrong; is "$wrong" 2 $?
done
touch "$state/no-start"; run bind --start; is "a pod that does not start" 4 $?
is "a pod that does not start: code" 1 "$(grep -c LYCH-BIND-010 err)"
rm "$state/no-start"; : >"$state/log"
(umask 077 && mkdir -p "$XDG_RUNTIME_DIR/lychgate/api")
python3 - "$XDG_RUNTIME_DIR/lychgate/api/vessel.sock" <<'P' &
import http.server, os, socketserver, sys, time
class Vessel(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        up = asked.append(1) or len(asked) > 2
        body = b'{"database":{"up":%s}}' % (b"true" if up else b"false")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def address_string(self):
        return "lych"
asked = []
with socketserver.UnixStreamServer(sys.argv[1], Vessel) as server:
    os.chmod(sys.argv[1], 0o600)
    server.serve_forever()
P
vessel=$!
wait_until 20 "no socket of the vessel's" [ -S "$XDG_RUNTIME_DIR/lychgate/api/vessel.sock" ]
run bind --start; is "started" 0 $?
is "the pod's service was" 1 "$(grep -c 'systemctl --user restart lychgate-pod.service' "$state/log")"
is "it says so" 1 "$(grep -c 'started: every part answers' out)"
run status --wait=60; is "all of it answers" 0 $?
run status --wait 60 --json; is "all of it answers, as JSON" 0 $?
is "JSON" True "$(python3 -c 'import json; print(json.load(open("out"))["ready"])')"
kill "$vessel"; wait "$vessel" 2>/dev/null
rm "$XDG_RUNTIME_DIR/lychgate/api/vessel.sock" "$state/ps"

# --- a file system of the jobs' own
is "jobs in the data directory: the tomb is told so" yes "$(grep -q -- '--jobs-apart no' "$units/lychgate-tomb.container" && echo yes)"
config <<<'tomb: {jobs_tmpfs: 2GiB}'
run bind --install; is "jobs on a tmpfs" 0 $?
is "jobs on a tmpfs: the mount" "Mount=type=tmpfs,destination=/var/lib/lychgate/tomb/jobs,tmpfs-size=2147483648,tmpfs-mode=0700,chown=true" \
	"$(grep '^Mount=' "$units/lychgate-tomb.container")"
is "jobs on a tmpfs: the tomb checks it" yes "$(grep -q -- '--jobs-apart yes' "$units/lychgate-tomb.container" && echo yes)"
config </dev/null
run bind --install; is "and back" 0 $?
config <<<$'tomb: {grade: floor}\ndaemons: no_private_root'
refused "daemons without a root of their own" LYCH-STARTUP-002 "in the pod containers are" bind --install
config </dev/null

# --- somebody to ask: a way out, and a provider's key for the vessel alone
network() { sed -n 's/^Network=//p' "$units/lychgate.pod"; }
keys() { grep -l '^Secret=portal_' "$units"/lychgate* | sed 's/.*\///' | tr '\n' ' '; }
portal() { # url, address
	cat <<-EOF
		portals:
		  - name: main
		    kind: openai
		    url: "$1"
		    secret: portal_main
		    models:
		      - {name: m, input: "0", output: "0"}
	EOF
	[ $# -eq 1 ] || printf '    addresses:\n      - "%s"\n' "$2"
}
is "nobody to ask: no network" none "$(network)"
portal https://api.example.com/v1 | config
refused "a portal's secret is missing" LYCH-BIND-005 portal_main bind --install
secret portal_main "$(cat "$state/secrets/lychgate_work")"
refused "a portal's secret is another's" LYCH-BIND-006 portal_main bind --install
secret portal_main same && secret portal_other same
two() { # the other's URL
	portal http://127.0.0.1:8001/v1 127.0.0.1
	portal "$@" | sed '1d;s/main/other/;s/{name: m,/{name: m2,/'
}
two https://api.example.com/v1 | config
refused "a local key that another has" LYCH-BIND-006 "portal_main and portal_other" bind --install
two http://127.0.0.1:8002/v1 127.0.0.1 | config
run bind; is "two servers of this machine that want any word" 0 $?
rm "$state/secrets/portal_other"
portal https://api.example.com/v1 | config
secret portal_main
run bind --install; is "a portal" 0 $?
is "a portal: its way" "pasta:--map-guest-addr,none" "$(network)"
is "a portal: its key" "lychgate-vessel.container " "$(keys)"

# --- words fit the mode: of the pod, once its units are there
says() { # what, file, words
	grep -qF -- "$3" "$2" || fail "$1: no '$3' in: $(cat "$2")"
	count=$((count + 1))
}
for command in "logs 1" "request restart-tomb" jobs "why 1" portals; do
	# shellcheck disable=SC2086
	run $command; is "$command: nobody answers" 4 $?
	says "$command" err "Start the pod with 'systemctl --user start lychgate-pod'"
done
run down; is "down" 0 $?
says "down" err "the pod is stopped by 'systemctl --user stop lychgate-pod'"
run secret list; is "secret list" 0 $?
says "secret: of Podman's store" out portal_main
says "... which is said" err "this is about Podman's store"
run secret list --store=podman; is "secret, the store named" "" "$(cat err)"
# a directory of embedded mode that has not the key is not where it belongs
mkdir -m 0700 "$LYCHGATE_DATA/secrets"
secret portal_main sk-stand-in-0123456789
run doctor
secret portal_main
grep -qE '^PASS +broker +portal_main +set' out || fail "the key of the pod: $(grep broker out)"
is "doctor: no key is missing" 0 "$(grep -c 'FAIL *broker' out)"
says "doctor: what to start" out "not running: 'systemctl --user start lychgate-pod' first"
rmdir "$LYCHGATE_DATA/secrets"
portal http://169.254.1.2:8080/v1 169.254.1.2 | config
run bind --install; is "a portal on this machine" 0 $?
is "a portal on this machine: its way" "pasta:--map-guest-addr,169.254.1.2" "$(network)"
{ echo 'pod: {profile: sovereign, cgroups: none}'; portal https://api.example.com/v1; echo "egress: {authorities: \"$ca\"}"; } | config
run bind --install; is "a portal in sovereign" 0 $?
is "a portal in sovereign: its key" "lychgate-vessel.container " "$(keys)"
is "a portal in sovereign: the pod has none" none "$(network)"
is "authorities: for the vessel" 1 "$(grep -cxF "Volume=$ca:$ca:ro,z" "$units/lychgate-vessel.container")"
is "authorities: for nobody else" 1 "$(grep -lF "$ca" "$units"/lychgate* | wc -l)"
is "a portal in sovereign: the vessel's networks" 2 "$(grep -c '^Network=lychgate-' "$units/lychgate-vessel.container")"
config </dev/null
run bind --install; is "nobody to ask again" 0 $?
is "nobody to ask again: no network" "none 0" "$(network) $(keys | wc -w)"

# --- older Podmans
for version in 5.6.1 5.4.2; do
	echo "$version" >"$state/version"
	config <<<"pod: {tomb: {processes: $((${version//./} + 100))}}"
	: >"$state/log"
	run bind --install; is "Podman $version" 0 $?
	is "Podman $version: all of it" "$(rendered)" "$(installed)"
	is "Podman $version: no --replace" 0 "$(grep -c -- --replace "$state/log")"
done
is "5.4 places the files itself" 0 "$(grep -c 'quadlet install --reload' "$state/log")"
rm "$state/version"

# --- a receipt that points elsewhere
cp "$bound/receipt.json" keep
sed -i 's/"lychgate.pod"/"..\/..\/..\/x.pod"/' "$bound/receipt.json"
refused "a receipt with a path" LYCH-BIND-012 "no unit of ours" unbind
cp keep "$bound/receipt.json"; chmod 0666 "$bound/receipt.json"
refused "a receipt that others write" LYCH-BIND-012 "can be written by others" unbind
chmod 0600 "$bound/receipt.json"

# --- unbind: exactly what is ours, and the data stays
echo '[Container]' >"$units/mine.container"; mkdir -p "$LYCHGATE_DATA/phylactery"; echo x >"$LYCHGATE_DATA/phylactery/kept"
run unbind --dry-run; is "unbind --dry-run" 0 $?
is "unbind --dry-run: nothing went" "$n" "$(find "$units" -name 'lychgate*' | wc -l)"
touch "$state/no-stop"; before=$(installed); run unbind; is "services that do not stop" 4 $?
is "services that do not stop: the units stay" "$before" "$(installed)"
rm "$state/no-stop"
printf '%s\n' lychgate-inner lychgate-innermost lychgate-outer mine >"$state/networks"
touch "$state/network-in-use"; run unbind; is "a network that somebody uses" 4 $?
is "a network that somebody uses: the units stay" "$before" "$(installed)"
rm "$state/network-in-use"; : >"$state/log"
run unbind; is "unbind" 0 $?
is "our networks went, and no other" "lychgate-innermost mine" "$(tr '\n' ' ' <"$state/networks" | sed 's/ $//')"
grep -q 'systemctl --user stop .*lychgate-tomb.service' "$state/log" || fail "unbind stopped nothing"
is "units left" "mine.container" "$(ls -A "$units")"
is "units of the host left" "" "$(ls -A "$host")"
is "the reactor is disabled" 1 "$(grep -c 'disable --now lychgate-reactor.path' "$state/log")"
is "the data stays" x "$(cat "$LYCHGATE_DATA/phylactery/kept")"
is "the receipt went" no "$([ -e "$bound" ] && echo yes || echo no)"
is "the secrets stay" yes "$([ -e "$state/secrets/lychgate_work" ] && echo yes)"
run unbind; is "twice" 3 $?
echo "$count checks"
