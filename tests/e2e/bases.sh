# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The bases of the images. No registry is reachable: they are made here, with the packages that the images want,
# and kept in build/e2e; without PostgreSQL's JIT, which no image takes. Source it after support/debian.sh.

# list of containerfiles/...: at once, each as build/e2e/base-LIST.tar.
base_roots() {
	local list pid making=()
	for list; do
		base_root "$list" &
		making+=($!)
	done
	for pid in "${making[@]}"; do wait "$pid" || return 1; done
}

base_root() { # list
	local list=$1 want tar=build/e2e/base-$1.tar
	want=$(cat "containerfiles/packages.$list")
	[ "$(cat "$tar.list" 2>/dev/null)" != "$want" ] || return 0
	# shellcheck disable=SC2016 # expanded by mmdebstrap
	SOURCE_DATE_EPOCH=1767225600 debian_root trixie "$(paste -sd, "containerfiles/packages.$list")" "$tar.new.tar" \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
		--dpkgopt='path-exclude=/usr/lib/*/libLLVM*' --dpkgopt='path-exclude=/usr/lib/postgresql/*/lib/bitcode/*' \
		--customize-hook='rm -f "$1"/etc/resolv.conf "$1"/etc/hostname "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*'
	mv "$tar.new.tar" "$tar"
	echo "$want" >"$tar.list"
}

# directory, list...: the sources that git knows in src/, and a base/LIST/root.tar of each.
image_tree() {
	local tree=$1 list
	shift
	mkdir "$tree/src" "$tree/base"
	git -c safe.directory='*' ls-files -co --exclude-standard -z | tar -c --null --ignore-failed-read -T - | tar -x -C "$tree/src"
	for list; do
		mkdir "$tree/base/$list"
		ln "build/e2e/base-$list.tar" "$tree/base/$list/root.tar"
	done
}
