#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# docs/TUNNEL_CASES.md: real jobs attack their HTTPS proxy, below HTTP, in it and around it, while another's goes on (tunnel_attacks.py).
# The vessel is a stand-in on the work socket. In a user namespace whose root may look into the tomb: its descriptors, its memory.
set -euo pipefail
cd "$(dirname "$0")/../../.."
unshare -Ur true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
if [ -z "${LAB:-}" ]; then
	[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
	exec env LAB=1 unshare -Ur "$0" "$@"
fi
export LYCH_BUILD=${LYCH_BUILD:-$PWD/build/${VARIANT:-release}}
# shellcheck source=tests/integration/broker/stand_in.lib.sh
. tests/integration/broker/stand_in.lib.sh
# an ordinary user of a namespace below: the tomb refuses root, also this one
tomb_by=(unshare -U --map-user=1000 --map-group=1000)
tomb_beside full "${1:-tests/integration/broker/tunnel_attacks.py}"
