#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 1200
# tests/integration/broker/test_reloads.sh with a thousand reloads (RELOADS) and ten thousand proposals (FLOOD); here it counts how
# long a job waits for what it was allowed (2 s), how long a stream runs on that is allowed no more (1 s), and what the vessel keeps.
cd "$(dirname "$0")/../.." || exit 1
RELOADS=${RELOADS:-1000} FLOOD=${FLOOD:-10000} IN_TIME=1 exec tests/integration/broker/test_reloads.sh
