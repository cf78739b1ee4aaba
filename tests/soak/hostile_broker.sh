#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# The tomb's side of the broker with real sandboxes: what hostile jobs send to theirs, and
# what other jobs' asks notice of it. The vessel is a stand-in on the work socket.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
grade=${1:-full}
# shellcheck source=tests/integration/broker/stand_in.lib.sh
. tests/integration/broker/stand_in.lib.sh
tomb_beside "$grade" tests/integration/broker/broker_tomb.py
[ "$grade" = floor ] || tests/soak/hostile_broker.sh floor
echo "PASS: $grade"
