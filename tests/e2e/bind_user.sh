#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by bind.sh on the workstation, as its user.
set -uo pipefail
cd ~/in || exit 1
chmod -R go-w ~/in
lych=$PWD/usr/bin/lych units=$HOME/.config/containers/systemd bound=$HOME/.local/share/lychgate/bind
host=$HOME/.config/systemd/user templates=$PWD/usr/lib/lychgate/quadlet
config=$HOME/.config/lychgate/codex.yaml
echo "Linux $(uname -r), $(podman --version), systemd $(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p')"
rm -rf "$units" "$host" ~/.config/lychgate
count=0
fail() { echo "FAIL $*"; tail -n 4 err out; echo "$count passed, 1 failed"; exit 1; }
is() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; count=$((count + 1)); }
run() { timeout 120 "$lych" "$@" >out 2>err; }
in_dir() { (cd "$1" && sha256sum lychgate*) 2>/dev/null; }
rendered() { in_dir "$bound/lychgate"; in_dir "$bound/host"; }
installed() { in_dir "$units"; in_dir "$host"; }
loaded() { # services that systemd knows
	systemctl --user list-unit-files --no-legend 'lychgate*' | wc -l
}
profile() { printf 'version: "1"\npod: {profile: %s, cgroups: none%s}\n' "$1" "${2:-}" >"$config"; chmod 600 "$config"; }

compiled() { /usr/sbin/apparmor_parser --skip-kernel-load --skip-cache --names "usr/lib/lychgate/apparmor/$1" | grep -c ^/; }
is "AppArmor's profiles compile, one for each path" 6 "$(compiled lychgate)"
is "and those of a home on a path with a blank and a bracket" 12 "$(compiled of-a-home)"
run config init; is "config init" 0 $?
run bind; is "no secrets" 1 $?
is "no secrets: code" 1 "$(grep -c LYCH-BIND-005 err)"
sed -nE 's/^Secret=([a-z_]+),.*/\1/p' "$templates"/*/*.in | sort -u | while read -r name; do
	head -c 32 /dev/urandom | base64 | podman secret create "$name" - >/dev/null || exit 1
done
podman secret rm lychgate_work >/dev/null
podman secret inspect --showsecret --format '{{.SecretData}}' lychgate_db_tomb | head -c -1 | podman secret create lychgate_work - >/dev/null
run bind; is "an aliased secret" 1 $?
is "an aliased secret: code" 1 "$(grep -c LYCH-BIND-006 err)"
is "nothing was written" no "$([ -e "$bound" ] || [ -e "$units" ] && echo yes || echo no)"
podman secret rm lychgate_work >/dev/null
head -c 32 /dev/urandom | base64 | podman secret create lychgate_work - >/dev/null

printf 'version: "1"\npod: {cgroups: required}\n' >"$config"
run bind --install; is "limits by cgroup, and none are delegated" 4 $?
is "no controllers: code" 1 "$(grep -c LYCH-BIND-015 err)"
is "no controllers: which" 1 "$(grep -c 'has no cpu, memory, pids' err)"
is "nothing was installed" no "$([ -e "$units" ] && echo yes || echo no)"

for profile in golden-mean sovereign; do
	profile $profile
	quadlets=$(find "$templates/$profile" -name '*.in' | wc -l)
	n=$((quadlets + $(find "$templates/host" -name '*.in' | wc -l)))
	run bind --dry-run; is "$profile: dry run" 0 $?
	t=$(date +%s%N)
	run bind --install; is "$profile: install" 0 $?
	echo "  lych bind --install: $((($(date +%s%N) - t) / 1000000)) ms, $n units"
	is "$profile: every file" "$(rendered)" "$(installed)"
	is "$profile: a service of each" "$n" "$(loaded)"
	is "$profile: one application" "$quadlets" "$(podman quadlet list --format '{{.Name}}' | grep -c '^lychgate')"
	is "$profile: the reactor watches" "active" "$(systemctl --user is-active lychgate-reactor.path)"
	run bind --dry-run; is "$profile: nothing would change" "Nothing would change." "$(cat out)"
	profile $profile ', tomb: {memory: 3GiB}'
	run bind --install; is "$profile: again, with --replace" 0 $?
	is "$profile: as rendered" "$(rendered)" "$(installed)"
	run status --json; is "$profile: status" 4 $?
	is "$profile: status has each" "$n" "$(grep -o '"file":"installed"' out | wc -l)"
	is "$profile: systemd has each" "$n" "$(grep -o '"load":"loaded"' out | wc -l)"
done

# What Quadlet does not understand: nobody but lych notices, and the former set is back.
before=$(installed) services=$(loaded)
sed -i 's/^ReadOnly=true/&\nPidsLimit=many/; s/^Image=.*/Image=/' "$templates/sovereign/lychgate-tomb.container.in"
run bind --install; is "a unit that Quadlet refuses" 4 $?
is "a unit that Quadlet refuses: code" 1 "$(grep -c LYCH-BIND-011 err)"
grep 'Quadlet did not take' err
is "the former units" "$before" "$(installed)"
is "the former services" "$services" "$(loaded)"

# `podman quadlet install` by hand takes what lych bind rendered; unbind knows it for its own.
profile golden-mean
run unbind; is "unbind" 0 $?
run bind; is "bind alone" 0 $?
podman quadlet install "$bound/lychgate" >out 2>err; is "podman quadlet install" 0 $?
is "by hand: every file" "$(in_dir "$bound/lychgate")" "$(in_dir "$units")"
run bind --install; is "then by lych" 0 $?
echo '[Container]' >"$units/mine.container"
run unbind; is "unbind" 0 $?
is "left" "mine.container" "$(ls -A "$units")"
is "left on the host" "" "$(find "$host" -name 'lychgate*')"
is "no service is left" 0 "$(loaded)"
is "the secrets stay" 1 "$(podman secret ls --format '{{.Name}}' | grep -c '^lychgate_work$')"
rm -rf "$units" "$host"
podman secret rm --all >/dev/null
echo "$count passed, 0 failed"
