#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lych bind, unbind and status against a real Podman, Quadlet and user manager, on a workstation that is
# booted for it. No image is needed: what is judged is what arrives, and what systemd makes of it. Root
# only; the programs are those of LYCH_BIN (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "${LYCH_BIN:-build/release}")
[ "$(id -u)" -eq 0 ] || { echo "bind: needs root, or: sudo $0" >&2; exit 77; }
began=$SECONDS
mkdir -p build/e2e
tree=$(mktemp -d "$PWD/build/e2e/bind.XXXXXX")
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/usr/bin" "$tree/usr/lib/lychgate/apparmor"
cp "$bin/lych" "$tree/usr/bin/"
cp -r quadlet "$tree/usr/lib/lychgate/"
cli/apparmor/make-profile /usr >"$tree/usr/lib/lychgate/apparmor/lychgate"
cli/apparmor/make-profile "/home/a user/[x]/.local" >"$tree/usr/lib/lychgate/apparmor/of-a-home"
chmod -R go-w "$tree"
tests/e2e/workstation run tests/e2e/bind_user.sh "$tree"
echo "bind: $((SECONDS - began)) s"
