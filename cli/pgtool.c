/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pgtool.h"

#include "cli/proc.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <fcntl.h>

#define TOOL_TIMEOUT (3600 * USEC_PER_SEC)

int pgtool_open(struct pgtool *t, const struct pg_cluster *pg, const char *socket_dir,
		const char *secrets, const char *tmp, struct err *err)
{
	cleanup_close int dirfd = open(secrets, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int tmpfd = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char password[256], line[320];
	size_t n = 0;
	int r;

	*t = (struct pgtool){.pg = pg, .socket_dir = socket_dir};
	if (dirfd < 0 || tmpfd < 0)
		return err_sys(err, "open %s, %s", secrets, tmp);
	if (fs_read_secret(dirfd, "lychgate_db_migrate", password, sizeof(password),
			   err) < 0)
		return -1;
	r = str_fmt(line, sizeof(line), "*:*:*:lych_migrate:%s\n", password);
	if (r == 0)
		r = fs_write_atomic(tmpfd, "pgpass", line, strlen(line), 0600, err);
	explicit_bzero(password, sizeof(password));
	explicit_bzero(line, sizeof(line));
	if (r < 0)
		return -1;
	t->passfile = xasprintf("%s/pgpass", tmp);
	t->env = proc_env();
	while (t->env[n])
		n++;
	t->env = xreallocarray(t->env, n + 3, sizeof(*t->env));
	t->env[n] = xasprintf("PGPASSFILE=%s", t->passfile);
	t->env[n + 1] = xstrdup("PGCONNECT_TIMEOUT=20");
	t->env[n + 2] = NULL;
	return 0;
}

void pgtool_close(struct pgtool *t)
{
	if (t->passfile)
		(void)unlink(t->passfile);
	free(t->passfile);
	proc_env_free(t->env);
	*t = (struct pgtool){0};
}

int pgtool_run(const struct pgtool *t, const char *program, const char *const *args,
	       char **ret_output, struct err *err)
{
	cleanup_free char *path = xasprintf("%s/%s", t->pg->bin, program);
	const char *argv[24];
	size_t n = 0;

	if (access(path, X_OK) < 0)
		return err_set_id(err, ERRID_START_TOOL,
				  "%s: install the package postgresql-client-%u", path,
				  t->pg->major);
	argv[n++] = path;
	argv[n++] = "-h";
	argv[n++] = t->socket_dir;
	argv[n++] = "-U";
	argv[n++] = "lych_migrate";
	argv[n++] = "--no-password";
	while (*args && n + 1 < ARRAY_SIZE(argv))
		argv[n++] = *args++;
	argv[n] = NULL;
	return proc_run(argv, (const char *const *)t->env, NULL, TOOL_TIMEOUT,
			ERRID_BACKUP_FAILED, ret_output, err);
}

int pgtool_number(const struct pgtool *t, const char *database, const char *sql,
		  uint64_t *ret, struct err *err)
{
	const char *const args[] = {"-X",     "-q", "-A", "-t", "-d",
				    database, "-c", sql,  NULL};
	cleanup_free char *out = NULL;

	if (pgtool_run(t, "psql", args, &out, err) < 0)
		return -1;
	out[strcspn(out, "\n")] = '\0';
	if (parse_u64(out, 0, INT64_MAX, ret, err) < 0)
		return err_wrap(err, "psql's answer");
	return 0;
}
