#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# After a restart of the vessel a job whose `lych run` is gone is cancelled when nobody came back within a minute. The case is
# in attended_restart.py; what needs no such minute is in tests/integration/queue/test_attended.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/support/rig tests/soak/attended_restart.py
