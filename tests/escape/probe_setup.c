/* SPDX-License-Identifier: Apache-2.0 */
/* Section H: set-up. The attempts are made from outside, by the tests named here. */
#include "tests/escape/probe.h"

/* clang-format off */
#define WALLS "tests/escape/break_walls.sh"

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
	ELSEWHERE("106", "user namespaces refused",
	 "full: exit 78, SANDBOX-004; floor runs", WALLS, "user namespaces refused"),
};
/* clang-format on */

const struct section section_setup = {'H', "Set-up", probes,
				      sizeof(probes) / sizeof(probes[0])};
