/* SPDX-License-Identifier: Apache-2.0 */
/* Writes docs/ERRORS.md from common/errors.def (`make docs`). */
#include "common/err.h"
#include "common/str.h"

static const char *const families[][2] = {
	{"CORE", "Anything, anywhere"},
	{"SPEC", "A job's description"},
	{"RUN", "The queue, leases, jobs"},
	{"EXEC", "How a job ended"},
	{"SANDBOX", "The walls"},
	{"TTY", "A terminal of a job's own"},
	{"HTTP", "The sockets"},
	{"STARTUP", "Starting and configuration"},
	{"SECRET", "Secrets"},
	{"HOST", "What is asked of the host"},
	{"BACKUP", "Backup and restore"},
	{"STORE", "Blobs, output, artifacts"},
	{"AUDIT", "The audit log and its scribe"},
	{"BIND", "The units of the pod"},
	{"WARD", "What a job may ask"},
	{"CREDENTIAL", "Keys for hosts"},
	{"GATE", "What is too private to leave"},
	{"CLASSIFIER", "The gate's second opinion"},
	{"PASSPHRASE", "The second factor"},
	{"PROPOSAL", "What a person may allow to a job"},
	{"BUDGET", "What jobs may spend"},
	{"BROKER", "Asking, fetching and installing from inside a job"},
	{"EGRESS", "The processes that speak to the network"},
	{"FETCH", "URLs, names and addresses that a job asks for"},
	{"GIT", "Cloning, fetching and pushing by git from inside a job"},
	{"TUNNEL", "HTTPS_PROXY inside a job: CONNECT, and who ends its TLS"},
	{"REGISTRY", "Packages and where they come from"},
};

static bool is_of(const struct err_info *info, const char *family)
{
	char prefix[32];

	return str_fmt(prefix, sizeof(prefix), "LYCH-%s-", family) == 0 &&
	       str_starts(info->text, prefix);
}

static void print_family(const char *family, const char *about)
{
	printf("\n## %s: %s\n\n", family, about);
	printf("| code | what | HTTP | exit | what to do | prior systems |\n");
	printf("| --- | --- | --- | --- | --- | --- |\n");
	for (int id = 0; id < ERRID_MAX_; id++) {
		const struct err_info *info = err_info((enum err_id)id);
		const struct err_code_info *code = err_code_info(info->code);

		/* ERRID_NONE answers with the generic error, which has a line of its own.
		 */
		if (id == ERRID_NONE || !is_of(info, family))
			continue;
		printf("| %s | %s | %d | %d | %s | %s |\n", info->text, info->title,
		       code->http_status, code->exit_code, info->hint, info->prior);
	}
}

static bool has_family(const struct err_info *info)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (is_of(info, families[i][0]))
			return true;
	return false;
}

/* A family that is missing above would drop out of the document silently. */
static int check_families(void)
{
	int code = 0;

	for (int id = ERRID_NONE + 1; id < ERRID_MAX_; id++) {
		const struct err_info *info = err_info((enum err_id)id);

		if (has_family(info))
			continue;
		fprintf(stderr, "%s: its family is not in the list of %s\n", info->text,
			__FILE__);
		code = 1;
	}
	return code;
}

int main(void)
{
	if (check_families())
		return 1;

	printf("# Errors\n\n"
	       "Generated from `common/errors.def` by `make docs`; do not edit.\n\n"
	       "Every error has a code `LYCH-<FAMILY>-<NNN>`. Over HTTP it comes as\n"
	       "`{\"error_code\",\"title\",\"detail\",\"hint\",\"request_id\"}` with the "
	       "status below; a\n"
	       "command ends with the exit code below (0 ok, 1 refused or failed, 2 "
	       "usage, 3 not found,\n"
	       "4 unavailable, 78 a wall could not be raised and nothing ran). The last "
	       "column names the\n"
	       "families that the systems before this one used for the same thing.\n");
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		print_family(families[i][0], families[i][1]);
	return 0;
}
