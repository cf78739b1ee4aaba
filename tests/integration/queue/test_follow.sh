#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Who follows a job hears of its end: whatever falls between the question and its answer, whoever else has a
# transaction open, whether or not there was a hint, and when the vessel falls silent. The cases are in follow.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/queue/follow.py
