/* SPDX-License-Identifier: Apache-2.0 */
/* Writes docs/QUARANTINE.md from common/text/hazard_table.c (`make docs`). */
#include "common/str.h"
#include "common/text/hazard.h"

static const char head[] =
	"# What is quarantined\n\n"
	"Generated from `common/text/hazard_table.c` by `make docs`; do not edit.\n\n"
	"A job's artifacts are data, until a program on your side obeys one of them: git "
	"a "
	"hook, an\n"
	"editor a task, an agent an instruction, an interpreter a start-up file. Files "
	"with "
	"the names below\n"
	"are not delivered. The tomb puts a copy into `tomb/quarantine/<job>.<epoch>/` "
	"(numbered, mode\n"
	"0600, at most 16 for one reason, 64 in all, 64 MiB), `manifest.jsonl` beside "
	"them "
	"says which is\n"
	"which, and the result names them (`quarantined`; `quarantined_total` counts "
	"those "
	"without a copy\n"
	"too). The vessel asks the same table again before it lists an artifact to "
	"anybody.\n\n"
	"`lych quarantine list` names the copies, `lych quarantine show JOB FILE` has "
	"the bytes of one (on a\n"
	"terminal each as what it is), and `lych quarantine release JOB FILE --out DIR` "
	"writes it to where it\n"
	"would have gone, after it was shown and you said yes. The audit log has the "
	"wish first\n"
	"(`quarantine.release_requested`, with where to), and then how it ended "
	"(`quarantine.released` or\n"
	"`quarantine.release_failed`); without a log, or of a contained job, nothing is "
	"released (and such a file is shown with `--tainted` alone). No link is\n"
	"followed on the way, the bytes must be those that the tomb put there, and the "
	"file can't be executed\n"
	"(0644) until you make it so. The copy stays; delete the folder when you have "
	"looked at it.\n\n"
	"Names are compared as the most forgiving file system would: upper and lower "
	"case, "
	"invisible\n"
	"characters, what follows a colon, dots and blanks at the end of a name do not "
	"matter, and a\n"
	"backslash separates as a slash does. Also held: a name that begins with `-` "
	"(the "
	"next `*` in a\n"
	"shell would read it as an option) and one of the form `NAME~1` (another file's "
	"short name on FAT\n"
	"and NTFS). Not folded: Unicode normalisation and the case of letters outside "
	"ASCII, and that\n"
	"of `HEAD` (`Head` is one on a disk that folds it).\n\n"
	"Refused altogether, and named in `refused_artifacts`: whatever is not a regular "
	"file with one name\n"
	"(symlinks, hard links, FIFOs, sockets, devices, mounts), names with control "
	"characters, bytes that\n"
	"are not UTF-8, or marks that hide or reorder text, two names that differ only "
	"in "
	"case, and what is\n"
	"beyond a cap on count, size, depth or length of the path.\n\n"
	"Delivered all the same, because they run only when you run them (an editor's "
	"plugin may load one: `vitest.config.*`, `jest.config.*`, `tailwind.config.*`): "
	"Makefiles and "
	"other "
	"build\n"
	"descriptions, `setup.py`, `package.json` and its scripts, tests, plain scripts, "
	"libraries and\n"
	"programs. The last three kinds carry the class `program` instead of `file` when "
	"their first bytes\n"
	"say so. Every file arrives with mode 0644, without extended attributes, ACLs or "
	"capabilities.\n"
	"Of the build descriptions `setup.cfg`, `tox.ini`, `pyproject.toml` and "
	"`package.json` may name\n"
	"plugins that a linter loads, also one that an editor starts.\n"
	"Read what a job wrote before you run it.\n\n"
	"Where the pages of a program say that it reads such a file by itself stands "
	"beside the newer\n"
	"rows of the table's source. When a program that you use is missing, that is a "
	"fault to report.\n";

static const char *const kinds[HAZARD_KIND_MAX_] = {
	[HAZARD_DIR] = "below `%s/`",
	[HAZARD_FILE] = "`%s`",
	[HAZARD_EXACT] = "`%s` (case matters)",
	[HAZARD_STEM] = "`%s`, `%s.*`",
	[HAZARD_SUFFIX] = "`*%s`",
};

static void print_name(const struct hazard *h)
{
	for (const char *s = kinds[h->kind]; *s; s++) {
		if (*s == '%') {
			fputs(h->name, stdout);
			s++;
		} else {
			putchar(*s);
		}
	}
}

static bool is_first_of_its_reason(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (str_eq(hazard_table[k].why, hazard_table[i].why))
			return false;
	return true;
}

int main(void)
{
	fputs(head, stdout);
	fputs("\n| reason | names |\n| --- | --- |\n", stdout);
	for (size_t i = 0; i < hazard_table_len; i++) {
		const char *sep = "";

		if (!is_first_of_its_reason(i))
			continue;
		printf("| %s | ", hazard_table[i].why);
		for (size_t k = i; k < hazard_table_len; k++) {
			if (!str_eq(hazard_table[k].why, hazard_table[i].why))
				continue;
			fputs(sep, stdout);
			print_name(&hazard_table[k]);
			sep = ", ";
		}
		fputs(" |\n", stdout);
	}
	return ferror(stdout) ? 1 : 0;
}
