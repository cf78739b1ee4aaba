/* SPDX-License-Identifier: Apache-2.0 */
/* Section H: set-up. The attempts are made from outside, by the tests named here. */
#include "tests/escape/probe/probe.h"

/* clang-format off */
#define WALLS "tests/escape/break_walls.sh"
#define EDGES "tests/escape/edges.sh"

static const struct probe probes[] = {
	ELSEWHERE("104", "Landlock not built in", "exit 78, SANDBOX-002", WALLS,
	 "Landlock not built in"),
	ELSEWHERE("104b", "Landlock switched off", "exit 78, SANDBOX-002", WALLS,
	 "Landlock switched off"),
	ELSEWHERE("104c", "Landlock ABI 2 or 5", "exit 78, SANDBOX-001", WALLS,
	 "Landlock ABI 5"),
	ELSEWHERE("104d", "seccomp refused", "exit 78, SANDBOX-003", WALLS,
	 "seccomp refused"),
	ELSEWHERE("105", "walls that only pretend to stand", "exit 78, SANDBOX-009",
	 WALLS, "Landlock that only pretends"),
	ELSEWHERE("106", "user namespaces refused", "full: exit 78, SANDBOX-004; floor runs",
		  WALLS, "user namespaces refused"),
	ELSEWHERE("106b", "another seccomp listener outside (EBUSY)", "exit 78, SANDBOX-014",
		  WALLS, "somebody outside listens already"),
	ELSEWHERE("106c", "EPERM for clone3 and openat2", "runs", EDGES,
		  "clone3 and openat2 refused by a container"),
	ELSEWHERE("106d", "EPERM for Landlock", "exit 78, SANDBOX-002", EDGES,
		  "Landlock refused by a container"),
	ELSEWHERE("106e", "no /proc", "exit 78", EDGES, "no /proc"),
	ELSEWHERE("106f", "a read-only root", "runs", EDGES, "a read-only root"),
	ELSEWHERE("106g", "a small RLIMIT_NOFILE", "runs from 24; below exit 78", EDGES,
		  "descriptors\""),
	ELSEWHERE("106h", "descriptors 0, 1, 2 closed", "runs", EDGES,
		  "descriptors 0, 1, 2 closed"),
	ELSEWHERE("106i", "a masked /proc", "exit 78, SANDBOX-006, or runs", WALLS,
		  "a masked /proc"),
	ELSEWHERE("107", "`--dev-bind` as command and as argument", "`--` ends the options",
		  EDGES, "-- ends the options"),
	ELSEWHERE("107b", "an empty command, an empty argv[0]", "refused; runs", EDGES,
		  "an empty argv[0] of the sandbox"),
	ELSEWHERE("107c", "1.4 MB of arguments, odd bytes", "arrive as they are", EDGES,
		  "1.4 MB of arguments arrive"),
};
/* clang-format on */

const struct section section_setup = {'H', "Set-up", probes,
				      sizeof(probes) / sizeof(probes[0])};
