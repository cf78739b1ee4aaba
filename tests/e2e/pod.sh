#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The pod as a user has it: boots a workstation, and as its ordinary user builds the images, creates
# secrets, installs the units, runs the demo and a hundred jobs under kills, stops, upgrades and
# uninstalls, in both profiles. Root only, for the boot; nothing in there is root after it.
#	[UPDATE=1] tests/e2e/pod.sh [golden-mean|sovereign]...
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/support/debian.sh
cache=$PWD/build/e2e
began=$SECONDS
[ "$(id -u)" -eq 0 ] || { echo "pod: needs root (it makes roots and boots one), or: sudo $0" >&2; exit 77; }
mkdir -p "$cache"

# No registry is reachable: bases are made here, with the packages that the images want.
base_root() { # list of containerfiles/
	local list=$1 want tar=$cache/base-$1.tar
	want=$(cat "containerfiles/packages.$list")
	[ "$(cat "$tar.list" 2>/dev/null)" != "$want" ] || return 0
	# shellcheck disable=SC2016 # expanded by mmdebstrap
	SOURCE_DATE_EPOCH=1767225600 debian_root trixie "$(paste -sd, "containerfiles/packages.$list")" "$tar.new.tar" \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
		--customize-hook='rm -f "$1"/etc/resolv.conf "$1"/etc/hostname "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*'
	mv "$tar.new.tar" "$tar"
	echo "$want" >"$tar.list"
}
for list in build phylactery tomb; do base_root $list; done

tree=$(mktemp -d "$cache/tree.XXXXXX")
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/src" "$tree/base"
git -c safe.directory='*' ls-files -co --exclude-standard -z | tar -c --null --ignore-failed-read -T - | tar -x -C "$tree/src"
for list in build phylactery tomb; do
	mkdir "$tree/base/$list"
	cp --reflink=auto "$cache/base-$list.tar" "$tree/base/$list/root.tar"
done
cp -r /usr/share/doc/zlib1g-dev/examples "$tree/examples"
gcc -D_GNU_SOURCE -std=gnu17 -Wall -Wextra -Werror -O1 -static -o "$tree/probe_room" tests/e2e/probe_room.c
printf '%s\n' "${@:-golden-mean}" >"$tree/profiles"
echo "pod: bases and tree after $((SECONDS - began)) s"
WORKSTATION_SECONDS=${WORKSTATION_SECONDS:-1200} tests/e2e/workstation run tests/e2e/pod_user.sh "$tree" | tee "$cache/pod.log"

# What was seen is what the document says; UPDATE=1 writes it there.
UPDATE=${UPDATE:-} python3 - "$cache/pod.log" docs/THREAT_MODEL.md <<'PY'
import os, re, sys

log, path = open(sys.argv[1], encoding="utf-8").read(), sys.argv[2]
document = new = open(path, encoding="utf-8").read()
for profile, table in re.findall(r"^=== authority (\S+)\n(.*?)^=== end$", log, re.S | re.M):
    place = rf"(<!-- authority {profile} -->\n).*?(<!-- end -->)"
    new = re.sub(place, lambda m: m[1] + table + m[2], new, flags=re.S)
if new != document and os.environ["UPDATE"]:
    open(path, "w", encoding="utf-8").write(new)
elif new != document:
    sys.exit(f"pod: {path} has another table of authority than was seen; UPDATE=1 writes it")
PY
echo "pod: $((SECONDS - began)) s"
