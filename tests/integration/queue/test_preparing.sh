#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 150
# What hangs before a job's run ends the attempt, and says who hung: a vessel that answers everything but the
# download of an input, to a tomb whose patience is five seconds (test builds). The cases are in preparing.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/queue/preparing.py
