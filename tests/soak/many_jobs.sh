#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# alone
# timeout: 900
# Twenty thousand jobs (MANY; a hundred thousand by hand) with their output and blobs, of which four tenths are past their
# time: what a person asks is answered while they are retired, and no turn of the vessel's loop is long.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/support/rig tests/soak/many_jobs.py
