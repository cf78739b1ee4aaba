#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 180
# The vessel judged from outside: a real PostgreSQL, a real vessel, an HTTP client on its two
# sockets, and a tomb made of SQL and that client. The cases are in vessel_api.py.
set -euo pipefail
cd "$(dirname "$0")/../../.."
exec tests/support/rig tests/integration/daemons/vessel_api.py
