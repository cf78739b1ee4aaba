/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych restore --pod: the new cluster is made by the phylactery's image, its roles by the
 * vessel's, each in a container that has what its unit would have (no network, the user's
 * own uid, no capability, read-only) and mounts the new directories, not those that a pod
 * may be using. The secrets are Podman's: they are the ones that the pod will start with.
 */
#include "cli/backup/restore.h"

#include "cli/base/proc.h"
#include "cli/pod/unit_template.h"
#include "cli/pod/units.h"
#include "common/cleanup.h"
#include "common/crypto/tomb_secret.h"
#include "common/mem.h"
#include "common/str.h"
#include <assert.h>
#include <errno.h>
#include <sys/stat.h>

#define SERVER "lychgate-restore"
#define MIGRATION "lychgate-restore-migrate"
#define ARGS_MAX 40
#define NAP_NSEC (200L * 1000 * 1000)

struct args {
	char *arg[ARGS_MAX + 1];
	size_t n;
};

static void add(struct args *a, const char *arg)
{
	assert(a->n < ARGS_MAX);
	a->arg[a->n++] = xstrdup(arg);
}

/* Takes it over. */
static void add_taken(struct args *a, char *arg)
{
	assert(a->n < ARGS_MAX);
	a->arg[a->n++] = arg;
}

static void args_done(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->arg[i]);
}
#define cleanup_args __attribute__((cleanup(args_done)))

/* The walls of every unit (units_check.c asks for them there). */
static void add_walls(struct args *a, const char *name)
{
	add(a, "run");
	add_taken(a, xasprintf("--name=%s", name));
	add(a, "--replace");
	add(a, "--pull=never");
	add(a, "--userns=keep-id");
	add_taken(a, xasprintf("--user=%u:%u", getuid(), getgid()));
	add(a, "--network=none");
	add(a, "--read-only");
	add(a, "--cap-drop=all");
	add(a, "--security-opt=no-new-privileges");
	add(a, "--no-healthcheck");
}

static void add_secret(struct args *a, const char *name)
{
	add_taken(a, xasprintf("--secret=%s,type=mount,uid=%u,gid=%u,mode=0400", name,
			       getuid(), getgid()));
}

static int add_image(struct args *a, const char *room, const struct conf_unit *u,
		     const char *label, struct err *err)
{
	cleanup_unit_values struct unit_values checked = {0};
	cleanup_free char *image = unit_image(room, u, label);

	if (unit_values_text(&checked, "IMAGE", UNIT_IMAGE, image, err) < 0)
		return -1;
	add(a, image);
	return 0;
}

static int run(const struct restore *r, const struct args *a, usec_t timeout,
	       enum err_id id, struct err *err)
{
	const char *argv[ARGS_MAX + 2] = {r->podman.program};

	memcpy(argv + 1, a->arg, a->n * sizeof(*argv));
	return proc_run(argv, (const char *const *)r->podman.env, NULL, timeout, id, NULL,
			err);
}

/* ---- the server ------------------------------------------------------------- */

static int start_container(struct restore *r, struct err *err)
{
	cleanup_args struct args a = {0};

	add_walls(&a, SERVER);
	add(&a, "--detach");
	add(&a, "--stop-timeout=60");
	add_secret(&a, "lychgate_db_migrate");
	add_taken(&a,
		  xasprintf("--volume=%s:/var/lib/lychgate/phylactery:rw,Z", r->cluster));
	add_taken(&a, xasprintf("--volume=%s:/run/lychgate/pg:rw,z", r->pg_dir));
	if (add_image(&a, "phylactery", &r->conf.pod.phylactery, r->conf.pod.label, err) <
	    0)
		return -1;
	add(&a, "--data=/var/lib/lychgate");
	add(&a, "--pg-dir=/run/lychgate/pg");
	add(&a, "--secrets=/run/secrets");
	r->is_started = true;
	return run(r, &a, RESTORE_MIGRATE_TIMEOUT, ERRID_START_DB, err);
}

/* initdb takes some seconds; a container that ended will not answer any more. */
static int wait_for_server(struct restore *r, struct err *err)
{
	static const char *const state[] = {"container",	  "inspect", "--format",
					    "{{.State.Running}}", SERVER,    NULL};
	static const char *const logs[] = {"logs", "--tail=5", SERVER, NULL};
	usec_t deadline = clock_boot_usec() + RESTORE_START_TIMEOUT;
	struct timespec nap = {.tv_nsec = NAP_NSEC};

	for (;;) {
		cleanup_free char *out = NULL;
		struct err why = ERR_INIT;

		if (pgtool_open_container(&r->tool, &r->podman, SERVER, &why) == 0)
			return 0;
		pgtool_close(&r->tool);
		if (podman_run(&r->podman, state, &out, err) < 0)
			return -1;
		if (!strstr(out, "true") || clock_boot_usec() >= deadline) {
			cleanup_free char *said = NULL;

			(void)!podman_run(&r->podman, logs, &said, &why);
			return err_set_id(err, ERRID_START_DB, "%s: %s", SERVER,
					  said ? proc_why(said) : why.msg);
		}
		(void)nanosleep(&nap, NULL);
	}
}

static int start(struct restore *r, struct err *err)
{
	r->pg_dir = xasprintf("%s/pg", r->new.data);
	r->cluster = xasprintf("%s/phylactery", r->new.data);
	if (unit_path_check(r->new.data, err) < 0 || podman_open(&r->podman, err) < 0)
		return -1;
	if (mkdir(r->pg_dir, 0700) < 0)
		return err_sys(err, "%s", r->pg_dir);
	return start_container(r, err) < 0 ? -1 : wait_for_server(r, err);
}

static int migrate(struct restore *r, const char *to, struct err *err)
{
	cleanup_args struct args a = {0};

	add_walls(&a, MIGRATION);
	add(&a, "--rm");
	add_secret(&a, "lychgate_db_migrate");
	add_secret(&a, "lychgate_db_vessel");
	add_secret(&a, "lychgate_db_watchdog");
	add_secret(&a, "lychgate_db_tomb");
	add_secret(&a, TOMB_GENERATION_OF TOMB_NAME);
	add_taken(&a, xasprintf("--volume=%s:/run/lychgate/pg:rw,z", r->pg_dir));
	if (add_image(&a, "vessel", &r->conf.pod.vessel, r->conf.pod.label, err) < 0)
		return -1;
	add(&a, "migrate");
	add(&a, "--pg-dir=/run/lychgate/pg");
	add(&a, "--secrets=/run/secrets");
	add(&a, "--tomb=" TOMB_NAME);
	if (to)
		add_taken(&a, xasprintf("--to=%s", to));
	return run(r, &a, RESTORE_MIGRATE_TIMEOUT, ERRID_START_MIGRATION, err);
}

/* SIGINT, as the image says: what the server could not write would be missing. */
static int stop_container(const struct restore *r, struct err *err)
{
	static const char *const stop[] = {"stop", SERVER, NULL};
	static const char *const code[] = {"container", "inspect",
					   "--format",	"lych-exit {{.State.ExitCode}} ",
					   SERVER,	NULL};
	static const char *const rm[] = {"rm", "--force", SERVER, NULL};
	cleanup_free char *out = NULL;
	int rc;

	rc = podman_run(&r->podman, stop, NULL, err);
	if (rc == 0)
		rc = podman_run(&r->podman, code, &out, err);
	if (rc == 0 && !strstr(out, "lych-exit 0 "))
		rc = err_set_id(err, ERRID_START_DB,
				"the new cluster did not stop cleanly");
	if (podman_run(&r->podman, rm, NULL, rc == 0 ? err : &(struct err)ERR_INIT) < 0)
		rc = -1;
	return rc;
}

static int stop(struct restore *r, struct err *err)
{
	int rc = r->is_started ? stop_container(r, err) : 0;

	/* its socket is gone with it */
	if (rc == 0 && r->is_started && rmdir(r->pg_dir) < 0)
		rc = err_sys(err, "%s", r->pg_dir);
	podman_done(&r->podman);
	free(r->pg_dir);
	free(r->cluster);
	return rc;
}

const struct restore_ops restore_pod = {
	.store = "podman",
	.start = start,
	.migrate = migrate,
	.stop = stop,
};
