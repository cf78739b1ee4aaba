#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# tests/integration/cli/test_backup_forged.sh with every row that no release writes.
cd "$(dirname "$0")/../.." || exit 1
EVERY_ROW=1 exec tests/integration/cli/test_backup_forged.sh
