/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * Theory of operation
 *
 * A new value, then everything that must follow, in an order in which a crash between any
 * two steps leaves something that the next start or a second try completes:
 *
 *  login    value replaced -> migrate gives it to the login -> readers restart. Each start
 *           migrates first, so a crash heals by a start.
 *  restart  value replaced -> readers restart.
 *  tomb     generation + 1 -> the tomb's two secrets -> migrate gives the login its new
 *           password and ends sessions of the old one -> readers restart. A master that is
 *           replaced gives every tomb other secrets: the same, but for the generation.
 *  owner    files only: NAME.next written -> server told (migrate --rotate-owner takes
 *           either value to connect) -> NAME.next renamed over NAME. Until the rename
 *           migrate takes either; `lych secret check` reports a NAME.next that stayed.
 *
 * Nobody reads a secret twice, so what runs goes on with the old value until it restarts;
 * running jobs are killed and released then, as by a stop.
 */
#include "cli/secret/secret.h"

#include "cli/base/proc.h"
#include "cli/local/up.h"
#include "cli/secret/secret_tombs.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include <errno.h>
#include <fcntl.h>

#define MIGRATE_TIMEOUT (120 * USEC_PER_SEC)

static int tell_server(struct secret_store *s, const char *pg_dir, struct err *err)
{
	cleanup_free char *vessel = NULL;
	cleanup_env char **env = proc_env();

	if (paths_program("lych-vessel", &vessel, err) < 0)
		return -1;
	const char *const argv[] = {vessel,	 "migrate", "--pg-dir",	      pg_dir,
				    "--secrets", s->where,  "--rotate-owner", NULL};

	return proc_run(argv, (const char *const *)env, NULL, MIGRATE_TIMEOUT,
			ERRID_SECRET_ROTATE, NULL, err);
}

static int rotate_owner(struct secret_store *s, const char *name, const char **ret_note,
			struct err *err)
{
	cleanup_free char *next = xasprintf("%s" SECRET_NEXT_SUFFIX, name);
	cleanup_secret_value struct secret_value v = {0};
	cleanup_free char *pg_dir = NULL;
	struct starter_state state = {0};
	struct err why = ERR_INIT;

	if (s->ops != &secret_files)
		return err_set_id(err, ERRID_SECRET_ROTATE,
				  "'%s' in the pod: PostgreSQL must be told by hand, see "
				  "OPERATIONS.md, Rotate",
				  name);
	if (starter_state_read(s->paths, &state, &why) < 0)
		return err_set_id(err, ERRID_SECRET_ROTATE,
				  "'%s' needs a running PostgreSQL to tell: 'lych up' "
				  "first",
				  name);
	pg_dir = xasprintf("%s/pg", state.runtime);
	free(state.runtime);
	/* An earlier try may have told the server already: its value is used again. */
	if (s->ops->read(s, next, &v, &why) < 0) {
		if (why.id != ERRID_SECRET_MISSING) {
			*err = why;
			return -1;
		}
		secret_value_generate(&v);
		if (s->ops->write(s, next, &v, false, err) < 0)
			return -1;
	}
	if (tell_server(s, pg_dir, err) < 0)
		return err_wrap(err, "the old password is in %s, the new one in %s", name,
				next);
	if (renameat(s->dirfd, next, s->dirfd, name) < 0)
		return err_sys_id(err, ERRID_SECRET_ROTATE, "rename %s/%s", s->where,
				  next);
	if (fsync(s->dirfd) < 0)
		return err_sys(err, "fsync %s", s->where);
	*ret_note = "PostgreSQL was told; nothing had to restart";
	return 0;
}

static int restart_embedded(struct secret_store *s, const char **ret_note,
			    struct err *err)
{
	bool ran = false;

	if (starter_restart(s->paths, &ran, err) < 0)
		return err_wrap(err, "the new value is in place, but its readers did not "
				     "restart ('lych down', 'lych up')");
	*ret_note = ran ? "logins were given their passwords; vessel and tomb restarted"
			: "nothing runs; the next 'lych up' uses it";
	return 0;
}

static int restart_pod(struct secret_store *s, unsigned consumers, const char *tomb_unit,
		       const char **ret_note, struct err *err)
{
	const struct {
		unsigned consumer;
		const char *unit;
	} order[] = {
		{CONSUMER_MIGRATE, "lychgate-migrate.service"},
		{CONSUMER_VESSEL | CONSUMER_EGRESS, "lychgate-vessel.service"},
		{CONSUMER_TOMB, tomb_unit},
	};
	const char *const active[] = {"is-active", "--quiet", "lychgate-vessel.service",
				      NULL};
	struct err why = ERR_INIT;

	if (secret_systemctl(s, active, &why) < 0) {
		*ret_note = "the pod does not run; its next start uses it";
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		const char *const restart[] = {"restart", order[i].unit, NULL};

		/* migrate stops the vessel, which requires it: start what was stopped */
		if (!(consumers & order[i].consumer) &&
		    !(order[i].consumer & CONSUMER_VESSEL &&
		      consumers & CONSUMER_MIGRATE))
			continue;
		if (secret_systemctl(s, restart, err) < 0)
			return err_wrap(err,
					"the new value is in place, but %s did not "
					"restart",
					order[i].unit);
	}
	*ret_note = "the units that read it restarted";
	return 0;
}

#define TOMB_UNIT "lychgate-tomb.service"
/* A tomb's password and bearer: who sets the one, who compares the other, who shows both. */
#define TOMB_READERS (CONSUMER_MIGRATE | CONSUMER_VESSEL | CONSUMER_TOMB)

static int restart(struct secret_store *s, unsigned consumers, const char **ret_note,
		   struct err *err)
{
	return s->ops == &secret_files
		       ? restart_embedded(s, ret_note, err)
		       : restart_pod(s, consumers, TOMB_UNIT, ret_note, err);
}

/* Two at once would take each other's half-way values. The lock is held until this process ends. */
static int take_turn(const struct secret_store *s, struct err *err)
{
	static int turn = -1;

	if (s->ops != &secret_files)
		return 0;
	turn = open(s->paths->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (turn < 0)
		return err_sys(err, "%s", s->paths->data);
	return fs_flock_soon(turn) == 0
		       ? 0
		       : err_set_id(
				 err, ERRID_SECRET_ROTATE,
				 "another rotation is under way: try again when it has "
				 "ended");
}

int secret_rotate_tomb(struct secret_store *s, const char *tomb, const char **ret_note,
		       struct err *err)
{
	if (take_turn(s, err) < 0 || secret_tomb_set(s, tomb, SECRET_TOMB_NEXT, err) < 0)
		return -1;
	/* the pod's own units know one tomb; another one's migration is its owner's */
	if (s->ops != &secret_files && !str_eq(tomb, TOMB_NAME)) {
		*ret_note = "now give it to the database and restart that tomb: "
			    "OPERATIONS.md, 'A tomb alone'";
		return 0;
	}
	return restart(s, TOMB_READERS, ret_note, err);
}

int secret_rotate_tombs(struct secret_store *s, const char **ret_note, struct err *err)
{
	if (take_turn(s, err) < 0 || secret_tombs_set(s, SECRET_TOMB_NEXT, err) < 0)
		return -1;
	return restart(s, TOMB_READERS, ret_note, err);
}

int secret_rotate(struct secret_store *s, const struct secret_info *info,
		  const char *name, const char **ret_note, struct err *err)
{
	cleanup_secret_value struct secret_value v = {0};
	cleanup_secret_value struct secret_value old = {0};

	if (info->rotation == ROTATE_GIVEN)
		return err_set_id(err, ERRID_SECRET_ROTATE,
				  "'%s' is issued by its provider: 'lych secret set "
				  "--replace %s' with the new one on stdin",
				  name, name);
	if (take_turn(s, err) < 0)
		return -1;
	if (s->ops->read(s, name, &old, err) < 0)
		return err_wrap(err, "only what is there is rotated");
	if (info->rotation == ROTATE_OWNER)
		return rotate_owner(s, name, ret_note, err);
	if (info->rotation == ROTATE_TOMB)
		return err_set_id(err, ERRID_SECRET_ROTATE,
				  "'%s' is one tomb's: 'lych secret rotate --tomb NAME'",
				  name);
	secret_value_generate(&v);
	if (s->ops->write(s, name, &v, true, err) < 0)
		return -1;
	if (!secret_is_tombs_master(name))
		return restart(s, info->consumers, ret_note, err);
	if (secret_tombs_set(s, SECRET_TOMB_AS_IT_IS, err) < 0)
		return -1;
	return restart(s, info->consumers | CONSUMER_TOMB, ret_note, err);
}
