#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A job whose `lych run` is gone is cancelled: after ten seconds of a vessel that is up, after a restart of it when
# nobody came back within a minute; a job that was detached never. The cases are in attended.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/support/rig tests/integration/attended.py
