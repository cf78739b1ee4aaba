#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who takes part, as lines of tests/bench/contestant.h. To be sourced; wants
#	B	build directory with lych-sandbox
#	bench	scratch directory: $bench/filter.bpf, $bench/peers
#	work	the workspace that every sandbox shows, at /work where it can
# Each function prints NAME and the words of one contestant that runs "$@" (an absolute path
# and its arguments). The walls of the peers are those of grade full, as far as the peer has
# them; who_lacks says what is missing.

: "${B:?}" "${bench:?}" "${work:?}"

# What grade full shows of this machine (sandbox/contract/paths.c), for the peers that bind paths.
shown_system=(/usr /bin /sbin /lib /lib32 /lib64 /libx32)
shown_etc=()
for p in ld.so.cache ld.so.conf ld.so.conf.d alternatives ssl/certs ssl/openssl.cnf ca-certificates.conf \
	localtime timezone mime.types magic magic.mime protocols services rpc host.conf gai.conf locale.alias \
	debian_version os-release lsb-release terminfo inputrc fonts perl python3 python3.11 python3.12 python3.13; do
	if [ -e "/etc/$p" ] && [ ! -L "/etc/$p" ]; then shown_etc+=("/etc/$p"); fi
done
shown_etc+=(/etc/passwd /etc/group /etc/hosts /etc/nsswitch.conf)
shown_dev=(/dev/null /dev/zero /dev/full /dev/random /dev/urandom)
tmp_bytes=268435456
peer_lib=$bench/peers/root/usr/lib/x86_64-linux-gnu
peer_bin=$bench/peers/root/usr/bin

bare() { echo "bare exec $*"; }

# name, options of the spawner, options of the job, "--", command
ours_served() {
	local name=$1 serve=$2 job=$3
	shift 4
	echo "$name serve $B/lych-sandbox --jobs ${work%/*} $serve :: --timeout 60s --workspace ${work##*/} $job -- $*"
}
ours_cli() {
	local name=$1 job=$2
	shift 3
	echo "$name exec $B/lych-sandbox --timeout 60s --workspace $work $job -- $*"
}

bwrap_full() {
	local p words="bwrap exec 9<$bench/filter.bpf /usr/bin/bwrap --unshare-user --unshare-pid --unshare-net"
	words+=" --unshare-ipc --unshare-uts --hostname tomb --die-with-parent --new-session --cap-drop ALL"
	words+=" --clearenv --setenv PATH /usr/bin:/bin --setenv HOME /tmp"
	for p in "${shown_system[@]}"; do
		if [ -L "$p" ]; then words+=" --symlink $(readlink "$p") $p"
		elif [ -e "$p" ]; then words+=" --ro-bind $p $p"; fi
	done
	for p in "${shown_etc[@]}"; do words+=" --ro-bind $p $p"; done
	words+=" --proc /proc --dev /dev --size $tmp_bytes --tmpfs /dev/shm --size $tmp_bytes --tmpfs /tmp"
	words+=" --bind $work /work --chdir /work --remount-ro / --seccomp 9 -- $*"
	echo "$words"
}

# The mount points have to be there: a skeleton that is made once.
minijail_skeleton() {
	local p root=$bench/minijail-root
	mkdir -p "$root"/{usr,proc,dev/shm,tmp,work}
	for p in "${shown_system[@]}"; do
		if [ -L "$p" ]; then ln -sfn "$(readlink "$p")" "$root$p"; fi
	done
	for p in "${shown_etc[@]}" "${shown_dev[@]}"; do
		mkdir -p "$root${p%/*}"
		if [ -d "$p" ]; then mkdir -p "$root$p"; else : >>"$root$p"; fi
	done
	echo "$root"
}

# Uid 0 inside (it sets it), /proc bound first (else the kernel refuses its own /proc after the
# host's is out of sight), -T static and --ambient (else it wants a preloaded library).
minijail_full() {
	local p words root
	root=$(minijail_skeleton)
	words="minijail exec $peer_lib/ld-linux-x86-64.so.2 --library-path $peer_lib $peer_bin/minijail0 -T static -U"
	words+=" -m0\ $(id -u)\ 1 -M0\ $(id -g)\ 1 -v -p -e -l --uts=tomb -n -c 0 --ambient -P $root -b /proc,/proc,1"
	for p in /usr "${shown_etc[@]}"; do words+=" -b $p,$p"; done
	for p in "${shown_dev[@]}"; do words+=" -b $p,$p,1"; done
	words+=" -b $work,/work,1 -k tmpfs,/tmp,tmpfs,0xe,size=$tmp_bytes,mode=1777"
	words+=" -k tmpfs,/dev/shm,tmpfs,0xe,size=$tmp_bytes,mode=1777"
	words+=" --seccomp-bpf-binary=$bench/filter.bpf --env-reset -- $*"
	echo "$words"
}

landrun_floor() {
	local p words="landrun exec $peer_lib/ld-linux-x86-64.so.2 --library-path $peer_lib $peer_bin/landrun --best-effort"
	for p in /usr /bin /sbin /lib /lib64; do if [ -e "$p" ]; then words+=" --rox $p"; fi; done
	for p in "${shown_etc[@]}"; do words+=" --ro $p"; done
	for p in "${shown_dev[@]}"; do words+=" --rw $p"; done
	words+=" --rwx $work -- $*"
	echo "$words"
}

firejail_full() {
	echo "firejail exec /usr/bin/firejail --quiet --noprofile --net=none --private=$work --private-dev" \
		"--private-tmp --ipc-namespace --noroot --nogroups --hostname=tomb --caps.drop=all --nonewprivs" \
		"--seccomp --deterministic-exit-code -- $*"
}
