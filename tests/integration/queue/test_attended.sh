#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A job whose `lych run` is gone is cancelled after ten seconds of a vessel that is up; a job that was detached never. The
# cases are in attended.py; what a restart gives is in tests/soak/attended_restart.sh.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/queue/attended.py
