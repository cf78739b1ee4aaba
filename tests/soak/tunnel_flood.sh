#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 700
# alone
# Ten thousand CONNECTs of one job, handshakes that are left half, and others without end: what another job's requests notice of it, and
# what is left of it in the tomb (tunnel_flood.py). As tests/integration/broker/test_tunnel_attacks.sh, which starts the tomb.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/integration/broker/test_tunnel_attacks.sh tests/soak/tunnel_flood.py
