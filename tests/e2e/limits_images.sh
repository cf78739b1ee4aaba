#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run by vm, before it boots the machine, in its root and at this machine's speed: the user's images, built by
# their own rootless Podman, as pod.sh does it on its workstation; slim, and ready for keep-id (the first use of
# an image copies it). From the builder's image the programs of the host; and the secrets, a minute each in there.
set -euo pipefail
cd ~/in
export BUILDAH_ISOLATION=chroot # no cgroup is to be had here; the network is an empty one already
for base in base/*; do
	podman build -q --format docker --timestamp 1767225600 -f src/containerfiles/Containerfile.base \
		--build-arg ROOT=root.tar -t "localhost/base-${base#*/}" "$base" >/dev/null
	rm -f "$base/root.tar"
done
LYCH_BUILD_NETWORK=host src/containerfiles/build --base localhost/base-build --base-tomb localhost/base-tomb-slim --slim --label vm \
	--base-phylactery localhost/base-phylactery
id=$(podman create localhost/lychgate-build:vm x)
podman export "$id" | tar -x -C "$HOME/in" usr/bin/lych usr/bin/lych-sandbox usr/libexec/lychgate usr/lib/lychgate
podman rm "$id" >/dev/null
for room in vessel scribe tomb phylactery; do
	podman rm "$(podman create --userns=keep-id "localhost/lychgate-$room:vm")" >/dev/null
done
podman rmi -f localhost/lychgate-build:vm localhost/base-build localhost/base-tomb-slim localhost/base-phylactery >/dev/null
podman image prune -f >/dev/null
podman images
usr/bin/lych config init >/dev/null
for name in db_migrate db_vessel db_watchdog db_tomb work; do
	usr/bin/lych secret set lychgate_$name --generate --store=podman >/dev/null
done
