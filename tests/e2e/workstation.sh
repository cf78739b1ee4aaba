# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the workstation is made of, as a container (workstation) and as a virtual machine (vm). Source it.

# systemd and Podman; then what `lych` links, what the tests read its answers with, and the compiler of
# AppArmor's profiles (no kernel here has AppArmor).
# shellcheck disable=SC2034 # for whoever sources this
workstation_packages=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,login,passwd,kmod,podman,crun,\
conmon,catatonit,passt,netavark,aardvark-dns,nftables,uidmap,fuse-overlayfs,iproute2,procps,\
libcap2,libcurl4t64,libcyaml1,libjson-c5,libssl3t64,python3-minimal,apparmor

# What Lychgate links and starts as it is without containers; and no cluster of the machine's own is made of that PostgreSQL.
# shellcheck disable=SC2034,SC2016 # likewise; expanded by mmdebstrap
workstation_embedded=postgresql,libevent-core-2.1-7t64,libpq5,libseccomp2,libstdc++6,libpcre2-8-0
# shellcheck disable=SC2034,SC2016
workstation_no_cluster='mkdir -p "$1/etc/postgresql-common/createcluster.d"
	echo create_main_cluster = false >"$1/etc/postgresql-common/createcluster.d/private.conf"'

# The user "dev", whose manager runs from the start, and a service that runs ~/script as that user and
# then switches the machine off; ~/script.code holds how it ended. If the script has left ~/reboot it is
# not the end: the machine shuts down as for an owner, and the script runs again at the next boot.
workstation_setup() { # root, where its output goes
	local root=$1 output=$2
	chroot "$root" useradd -m -u 1000 -s /bin/bash dev
	echo dev:100000:65536 | tee "$root/etc/subuid" >"$root/etc/subgid"
	mkdir -p "$root/var/lib/systemd/linger" "$root/etc/containers/containers.conf.d" \
		"$root/etc/systemd/system/multi-user.target.wants"
	: >"$root/var/lib/systemd/linger/dev"
	cat >"$root/etc/systemd/system/task.service" <<UNIT
[Unit]
After=user@1000.service systemd-logind.service
Requires=user@1000.service
[Service]
Type=oneshot
User=dev
PAMName=login
Environment=XDG_RUNTIME_DIR=/run/user/1000 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus
ExecStart=/bin/sh -c 'cd; bash ./script; code=\$?; [ ! -e ./reboot ] || exit 0; echo \$code >./script.code; echo "script ended: \$code"'
TimeoutStopSec=10
StandardOutput=$output
StandardError=$output
ExecStopPost=+/bin/sh -c 'if rm /home/dev/reboot 2>/dev/null; then exec systemctl reboot; fi; exec systemctl poweroff --force'
UNIT
	ln -s ../task.service "$root/etc/systemd/system/multi-user.target.wants/task.service"
}
