#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by vm as root, before it boots the machine: what an administrator does there. $1: its root. The programs of
# the images go to /usr/local; the AppArmor profile that make install would make, and beside it one that refuses
# user namespaces to programs in /opt/refused, as a kernel with Ubuntu's sysctl does to programs without one. And a
# hand of root's: memory and pids are taken from the user's manager when ~/take-controllers is made, and given back
# at ~/give-controllers.
set -euo pipefail
root=$1
rm -rf "$root/opt/refused"
cp -r --no-preserve=ownership "$root/home/dev/in/usr/." "$root/usr/local/"
"$(dirname "$0")/../../cli/apparmor/make-profile" /usr/local >"$root/etc/apparmor.d/lychgate"
mkdir -p "$root/opt/refused"
cp "$root/usr/local/bin/lych" "$root/usr/local/bin/lych-sandbox" "$root/usr/local/libexec/lychgate/lych-probe" "$root/opt/refused/"
cat >"$root/etc/apparmor.d/refused" <<'PROFILE'
abi <abi/4.0>,
include <tunables/global>
profile /opt/refused/lych {
  allow all,
  audit deny userns,
}
profile /opt/refused/lych-sandbox {
  allow all,
  audit deny userns,
}
PROFILE
cat >"$root/opt/controllers" <<'SCRIPT'
#!/bin/bash
# take | give: memory and pids, of everything below the user's slice; the answer is a file of the user's
at=/sys/fs/cgroup/user.slice/user-1000.slice
if [ "$1" = take ]; then
	grep -lw memory $(find $at -depth -name cgroup.subtree_control) >/run/taken
	while read -r file; do echo '-memory -pids' >"$file"; done </run/taken
else
	tac /run/taken | while read -r file; do [ ! -e "$file" ] || echo '+memory +pids' >"$file"; done
fi
cat $at/user@1000.service/cgroup.controllers >/home/dev/controllers-now
SCRIPT
chmod 0755 "$root/opt/controllers"
cat >"$root/etc/systemd/system/controllers.service" <<'UNIT'
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/opt/controllers take
ExecStop=/opt/controllers give
UNIT
cat >"$root/etc/systemd/system/controllers.path" <<'UNIT'
[Path]
PathExists=/home/dev/take-controllers
UNIT
cat >"$root/etc/systemd/system/controllers-back.service" <<'UNIT'
[Service]
Type=oneshot
ExecStart=/usr/bin/systemctl stop controllers.path controllers.service
UNIT
cat >"$root/etc/systemd/system/controllers-back.path" <<'UNIT'
[Path]
PathExists=/home/dev/give-controllers
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../controllers.path ../controllers-back.path "$root/etc/systemd/system/multi-user.target.wants/"
