/* SPDX-License-Identifier: Apache-2.0 */
/* Section G: the harvest. plant.py leaves it all behind in a real job; the trusted side is
 * judged by what arrives (judge_harvest.py). */
#include "tests/escape/probe/probe.h"

#define PLANT "tests/escape/plant.py"
#define UNIT "tests/unit/tomb/files/test_harvest.c"
#define HAZARD "tests/unit/common/text/test_hazard.c"
#define WORKSPACE "tests/escape/workspace.sh"

/* clang-format off */
static const struct probe probes[] = {
	ELSEWHERE("97", "symlinks to /etc/passwd, another job, nowhere, themselves, up, /proc",
	 "refused: symlink", PLANT, "(\"dangling\", \"nowhere\")"),
	ELSEWHERE("97b", "a directory swapped for a link while it is read", "not followed", UNIT,
	 "a_parent_that_becomes_a_link_is_not_followed"),
	ELSEWHERE("97c", "processes that outlive the job and go on swapping", "dead before the harvest",
	 PLANT, "def swap(here)"),
	ELSEWHERE("98", "FIFO, socket, device, directory, /proc link", "refused, never opened", PLANT,
	 "os.mkfifo"),
	ELSEWHERE("99", "hard links to the outside and to each other", "refused: hard link", PLANT,
	 "links/hard"),
	ELSEWHERE("99b", "a file that still grows", "its writer is dead; size is what was copied",
	 PLANT, "def grow(here)"),
	ELSEWHERE("100", "300 MiB and 1 TiB with nothing in them", "refused: sparse, too large", PLANT,
	 "odd/terabyte"),
	ELSEWHERE("100b", "a gzip bomb", "arrives as it is: nothing is unpacked", PLANT, "bomb.gz"),
	ELSEWHERE("100c", "more files than the cap; 200,000 entries", "256 arrive, the rest is counted",
	 UNIT, "walking_is_capped"),
	ELSEWHERE("100d", "60 directories deep, 4 KiB long", "refused: too deep, path too long", PLANT,
	 "bottom"),
	ELSEWHERE("100e", "names with line feeds, escapes, bad UTF-8, bidi and C1 controls",
	 "refused: name; escaped where shown", PLANT, "new\\nline"),
	ELSEWHERE("100f", "names that read as options", "quarantined", PLANT, "--checkpoint-action"),
	ELSEWHERE("100g", "names that differ only in case", "none of them arrives", PLANT,
	 "colliding/File"),
	ELSEWHERE("101", "what git, editors, agents, shells, interpreters and desktops obey",
	 "quarantined (docs/QUARANTINE.md)", PLANT, "HELD = "),
	ELSEWHERE("101b", "the same in other spellings: case, invisible characters, NTFS, 8.3",
	 "quarantined", HAZARD, "other_spellings_do_not_help"),
	ELSEWHERE("101c", "a bare repository that runs a program at `git status`",
	 "its HEAD is quarantined; git run over it springs nothing", PLANT, "bare/HEAD"),
	ELSEWHERE("101d", "set-id bits, capabilities, attributes, ACLs", "mode 0644, none of them",
	 PLANT, "system.posix_acl_access"),
	ELSEWHERE("101e", "names that a taken-over tomb writes", "the vessel leaves them out",
	 "tests/fuzz/fuzz_result.c", "hazard_of"),
	ELSEWHERE("102", "write, move or read the sandbox's program and the starter's files",
	 "EACCES or not there", WORKSPACE, "echo moved"),
	ELSEWHERE("102b", "configurations in the workspace and the environment", "not read", WORKSPACE,
	 "codex.yaml lychgate.yaml"),
	ELSEWHERE("103", "a workspace that is a link, a file, /proc, somebody else's",
	 "exit 78, SANDBOX-012", WORKSPACE, "by a magic link"),
	ELSEWHERE("103e", "a workspace or a shown tree that is a process's directory in /proc, or has a /proc mounted below",
	 "exit 78, SANDBOX-012; SPEC-006", WORKSPACE, "with processes in it"),
	ELSEWHERE("103b", "/, .., nothing", "exit 2, SPEC-006", WORKSPACE, "the root by another name"),
	ELSEWHERE("103c", "a tmpfs, a bind mount, an overlay", "exit 78, SANDBOX-012", WORKSPACE,
	 "lowerdir=lower"),
	ELSEWHERE("103d", "one that is swapped for a link while jobs start",
	 "its own files or exit 78, never what is behind", WORKSPACE, "RENAME_EXCHANGE"),
};
/* clang-format on */

const struct section section_harvest = {'G', "Harvest", probes,
					sizeof(probes) / sizeof(probes[0])};
