#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The database is away for longer than anybody waits: the vessel starts again and again without it, and
# PostgreSQL dies without a goodbye. Then claims open by themselves, and the audit log holds what happened
# and nothing else. The cases are in outage.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/queue/outage.py
