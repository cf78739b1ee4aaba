#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lychgate without containers, as a unit of the user's systemd: enabled, killed, there again after a reboot, stopped, upgraded and
# removed by the commands of docs/OPERATE.md, on a workstation that is booted for it. Root only; the programs are those of
# LYCH_BIN (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "${LYCH_BIN:-build/release}")
[ "$(id -u)" -eq 0 ] || { echo "embedded: needs root, or: sudo $0" >&2; exit 77; }
began=$SECONDS
mkdir -p build/e2e
tree=$(mktemp -d "$PWD/build/e2e/embedded.XXXXXX")
trap 'rm -rf "$tree"' EXIT
# as make install PREFIX=~/.local lays it out there
local=$tree/local
mkdir -p "$local/bin" "$local/libexec/lychgate" "$local/lib/lychgate" "$local/share/systemd/user"
cp "$bin/lych" "$bin/lych-sandbox" "$local/bin/"
cp -r "$bin/lych-vessel" "$bin/lych-scribe" "$bin/lych-tomb" "$bin/tools" "$local/libexec/lychgate/"
ln -s ../../bin/lych-sandbox "$local/libexec/lychgate/lych-sandbox"
cp -r quadlet "$local/lib/lychgate/"
cli/systemd/make-unit /home/dev/.local >"$local/share/systemd/user/lychgate.service"
cp docs/OPERATE.md "$tree/"
chmod -R go-w "$tree"
# The gate's rules load in the release of Vectorscan that they were compiled for, and that is this machine's.
tests/e2e/workstation build
hs=$(ldd "$bin/lych-vessel" | awk '$1 ~ /^libhs/ { print $3 }')
[ -e "$hs" ] || { echo "embedded: lych-vessel has no Vectorscan" >&2; exit 1; }
install -m 0644 "$(realpath "$hs")" "build/e2e/workstation/usr/local/lib/${hs##*/}"
chroot build/e2e/workstation ldconfig
tests/e2e/workstation run tests/e2e/embedded_user.sh "$tree"
echo "embedded: $((SECONDS - began)) s"
