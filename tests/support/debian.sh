# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For tests that make a Debian root of their own. Source it.

debian_codename() {
	# shellcheck disable=SC1091
	(. /etc/os-release && echo "$VERSION_CODENAME")
}

# The mirror that this machine itself installs from.
debian_mirror() {
	# shellcheck disable=SC2016 # apt's own format
	apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Identifier: Packages' |
		awk -v r="$(debian_codename)" '$1 == r { print $2; exit }'
}

# suite, packages separated by commas, directory or .tar, option of mmdebstrap... The machine's clock may be ahead of a
# testing release's.
debian_root() {
	local suite=$1 packages=$2 to=$3
	shift 3
	mmdebstrap -q --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
		--aptopt='APT::Install-Recommends "false"' --include="$packages" "$@" "$suite" "$to" "$(debian_mirror)"
}
