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

result() { # name, command...: what it prints is part of the outcome, on one line
	local name=$1 said
	shift
	echo "+ $*" >&2
	if said=$("$@" </dev/null); then
		said=${said//$'\n'/ }
		echo "ok $name: ${said:0:300}"
	else
		echo "FAIL $name"
	fi
}

up() { # pid, command...: until it succeeds, no longer than that process lives or a minute
	local pid=$1 end=$((SECONDS + 60))
	shift
	until "$@" >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
