#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# README from its first command to its last, as typed by somebody with a clone and a fresh home: exit codes, and what it prints.
set -uo pipefail
exec bash "$(dirname "$0")/type_places.sh" readme
