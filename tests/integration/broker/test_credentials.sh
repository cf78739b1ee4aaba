#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Other keys of hosts while jobs ask: what can't be read or goes elsewhere leaves all as it was, a key that was replaced is the next
# request's, one that is gone cuts what it was used for. Judged by the key that the servers see. The cases are in credentials.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
command -v ip >/dev/null || { echo "iproute2 is missing"; exit 77; }
unshare -Urnm true 2>/dev/null || { echo "no user namespaces here"; exit 77; }
exec tests/support/rig tests/integration/broker/credentials.py
