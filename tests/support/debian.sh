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

# Packages of a suite without installing any: reads its lists into a directory of their own, which needs no root. Sets
# debian_apt, the options with which apt-get then knows that suite alone. What it downloads is below the directory's cache/archives.
debian_lists() { # suite, directory
	local apt=$2
	mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	echo "deb $(debian_mirror) $1 main" >"$apt/sources.list"
	debian_apt=(-qq -o "Dir::State=$apt/state" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache"
		-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Acquire::Languages=none
		-o Acquire::Check-Valid-Until=false -o APT::Install-Recommends=false)
	apt-get "${debian_apt[@]}" update
}

# suite, packages separated by commas, directory or .tar, option of mmdebstrap... The machine's clock may be ahead of a
# testing release's.
debian_root() {
	local suite=$1 packages=$2 to=$3
	shift 3
	# what is lost when the machine crashes is made again: dpkg need not wait for the disk
	mmdebstrap -q --variant=minbase --dpkgopt=force-unsafe-io --aptopt='Acquire::Check-Valid-Until "false"' \
		--aptopt='APT::Install-Recommends "false"' --include="$packages" "$@" "$suite" "$to" "$(debian_mirror)"
}

# Runs a command as root in a root directory, entered by pivot_root (in a chroot the kernel refuses user namespaces),
# in mount, pid, ipc and uts namespaces of its own. The network is the machine's.
debian_enter() { # root, command...
	# shellcheck disable=SC2016 # expanded inside
	unshare --mount --pid --fork --kill-child --ipc --uts bash -c '
		set -euo pipefail
		root=$1; shift
		mount --make-rprivate /
		mount --bind "$root" "$root"
		cd "$root"
		mount -t proc -o nosuid,nodev,noexec proc proc
		mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
		if [ -e /sys/fs/cgroup/cgroup.controllers ]; then mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup; fi
		mount -t tmpfs -o mode=0755,nosuid tmpfs dev
		for d in null zero full random urandom tty; do : >dev/$d; mount --bind /dev/$d dev/$d; done
		mkdir dev/pts dev/shm
		mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
		ln -s pts/ptmx dev/ptmx
		ln -s /proc/self/fd dev/fd; ln -s fd/0 dev/stdin; ln -s fd/1 dev/stdout; ln -s fd/2 dev/stderr
		mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
		mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs run
		mkdir -p run/lock
		pivot_root . .
		umount -l .
		cd /
		exec "$@"' _ "$@"
}
