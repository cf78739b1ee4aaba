#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# tests/integration/queue/test_faults.sh with a tomb that claims through the vessel.
set -euo pipefail
LYCH_QUEUE=vessel exec "$(dirname "$0")/../integration/queue/test_faults.sh"
