#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where controllers are delegated: limits of jobs and containers kept by the kernel and read back, a unit that
# has none, and jobs that can't be put under their limits; first without containers, then in the pod. And
# AppArmor, with the profile that is shipped. In the virtual machine; its images are built in its root before it
# boots. Root only, for the disk.
#	PARTS="sandbox up apparmor pod": which of them; the first three need half an hour less
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/support/debian.sh
. tests/e2e/bases.sh
began=$SECONDS
[ "$(id -u)" -eq 0 ] || { echo "limits: needs root, or: sudo $0" >&2; exit 77; }
mkdir -p build/e2e
base_roots build phylactery tomb-slim
tree=$(mktemp -d "$PWD/build/e2e/tree.XXXXXX")
trap 'rm -rf "$tree"' EXIT
image_tree "$tree" build phylactery tomb-slim
echo "${PARTS:-sandbox up apparmor pod}" >"$tree/parts"
echo "limits: bases and tree after $((SECONDS - began)) s"
tests/e2e/vm run tests/e2e/limits_user.sh "$tree" tests/e2e/limits_images.sh tests/e2e/limits_install.sh
echo "limits: $((SECONDS - began)) s"
