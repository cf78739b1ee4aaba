#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# tests/integration/gate/test_gate_glue.sh with other tokens.
cd "$(dirname "$0")/../.." || exit 1
SEEDS="$(seq -s ' ' 2 11)" exec tests/integration/gate/test_gate_glue.sh
