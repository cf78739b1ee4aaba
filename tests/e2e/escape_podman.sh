#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The escape tests inside a rootless container as Podman makes it by default, on a workstation
# that is booted for it: the user's own uid (keep-id), every capability dropped,
# no-new-privileges, read-only root, Podman's seccomp profile and masked /proc, no network. Both
# grades; no probe may succeed. Root only; the programs are those of LYCH_BIN (build/release).
#	escape_podman.sh --bases	only the image, kept in build/e2e
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/support/debian.sh
cache=$PWD/build/e2e
[ "$(id -u)" -eq 0 ] || { echo "escape_podman: needs root, or: sudo $0" >&2; exit 77; }
mkdir -p "$cache"
began=$SECONDS

# What the programs link, and what the scripts call, of the release that they were built on.
image=$cache/image-$(debian_codename).tar
packages=libseccomp2,libcap2,python3,procps,make,git
if [ ! -e "$image" ]; then
	debian_root "$(debian_codename)" "$packages" "$image.new.tar"
	mv "$image.new.tar" "$image"
fi
[ "${1:-}" != --bases ] || exit 0
tree=$(mktemp -d "$cache/tree.XXXXXX")
trap 'rm -rf "$tree"' EXIT
bin=$(realpath "${LYCH_BIN:-build/release}")
mkdir -p "$tree/lychgate/build/release/tests"
cp -r tests "$tree/lychgate/"
cp "$bin/lych-sandbox" "$tree/lychgate/build/release/"
cp -r "$bin/tests/escape" "$bin/tests/support" "$tree/lychgate/build/release/tests/"
find "$tree" -name '*.[od]' -delete
cp "$image" "$tree/image.tar"
echo "escape_podman: image and tree after $((SECONDS - began)) s"
WORKSTATION_SECONDS=${WORKSTATION_SECONDS:-1500} tests/e2e/workstation run tests/e2e/escape_podman_user.sh "$tree"
echo "escape_podman: $((SECONDS - began)) s"
