#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# Other rules for the ward while jobs ask: what is refused leaves the old ones, what is permitted counts for a job that
# runs, what is no longer permitted is cut. Judged by what a stand-in for the provider saw. The cases are in ward_reload.py.
exec "$(dirname "$0")/../../support/rig" tests/integration/broker/ward_reload.py
