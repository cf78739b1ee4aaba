#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Proposals, in a network of its own (lab.py): what never becomes one, what a person's word allows and that it allows nothing
# else, judged by what the servers were asked. The cases are in proposals.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v ip >/dev/null || { echo "iproute2 is missing"; exit 77; }
unshare -Urnm true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
exec tests/support/rig tests/integration/broker/proposals.py
