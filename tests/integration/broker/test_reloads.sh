#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# The ward reloaded again and again, and words said on proposals, while jobs fetch and one of them proposes without end: what is
# permitted counts at once, no request beside it fails, and nothing widens. The cases are in reloads.py; tests/soak/reloads.sh has
# a thousand reloads and ten thousand proposals.
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v ip >/dev/null || { echo "iproute2 is missing"; exit 77; }
unshare -Urnm true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
exec tests/support/rig tests/integration/broker/reloads.py
