#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# tests/integration/queue/test_recovery.sh with a tomb that claims through the vessel.
set -euo pipefail
# the soak's JOBS are the ten thousand
JOBS=100 LYCH_QUEUE=vessel exec "$(dirname "$0")/../integration/queue/test_recovery.sh"
