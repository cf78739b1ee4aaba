#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 120
# Each tomb is itself: two tombs at one vessel, and what each can do in the other's name. The cases are in
# tomb_identity.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/daemons/tomb_identity.py
