#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Daemons that die while they read what a job sent, or what came back for it: the audit log says whose
# it was, and nobody else's; the second time the job is ended. The cases are in daemon_died.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
tests/support/rig tests/integration/broker/daemon_died.py
