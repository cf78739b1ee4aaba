#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# HTTPS_PROXY inside real jobs: CONNECT, the job's own authority and its TLS process, and what is inside a
# tunnel as the intents of a fetch. The vessel is a stand-in on the work socket. The cases are in tunnel.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
[ "$(id -u)" -ne 0 ] || { echo "must not run as root"; exit 1; }
# shellcheck source=tests/integration/broker/stand_in.lib.sh
. tests/integration/broker/stand_in.lib.sh
tomb_beside full tests/integration/broker/tunnel.py
