# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Each piece of work sources it. An outcome is a line "ok NAME", "skip NAME" or "FAIL NAME" on
# stdout; what the tools say goes to stderr.

step() { # name, command...
	local name=$1
	shift
	echo "+ $*" >&2
	if "$@" >&2 </dev/null; then
		echo "ok $name"
	else
		echo "FAIL $name"
	fi
}
