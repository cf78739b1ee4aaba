/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door DIR TOMB...: the vessel's second door and nothing else of the vessel, on
 * DIR/work/vessel.sock, for the cluster of tests/support/pg in DIR. The routes, their
 * authentication and their handlers are the vessel's own; what is left out (fencing row,
 * reaper, confinement) is what a test of the queue does itself. Says "ready" on stdout.
 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/str.h"
#include "vessel/api/auth.h"
#include "vessel/api/routes.h"
#include "vessel/api/vessel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static struct vessel v;
static size_t n_up, n_tombs;

NORETURN static void fatal(const struct err *err)
{
	fprintf(stderr, "door: %s\n", err->msg);
	exit(1);
}

static void on_signal(int signo UNUSED, void *arg UNUSED)
{
	loop_stop(v.loop, 0);
}

/* "ready" is said when every tomb has logged in. */
static void on_registered(void *arg UNUSED)
{
}

static void on_change(void *arg UNUSED)
{
	registered_refresh(v.registered);
	hints_tell(v.hints);
}

static void on_state(struct door_tomb *t, bool up, const struct err *why UNUSED,
		     void *arg UNUSED)
{
	hints_state(v.hints, t);
	if (up && ++n_up == n_tombs) {
		(void)puts("ready");
		(void)fflush(stdout);
	}
}

static void read_secret(const char *dir, const char *name, char out[256])
{
	struct err err = ERR_INIT;
	cleanup_close int fd = fs_open_dir(dir, &err);

	if (fd < 0 || fs_read_secret(fd, name, out, 256, &err) < 0)
		fatal(&err);
}

static size_t door_routes(struct httpd_route *out)
{
	size_t n = 0;

	for (size_t i = 0; i < routes_work_n; i++)
		if (routes_work[i].who & (WHO_TOMB | WHO_DOOR | WHO_DOOR_LEASE))
			out[n++] = routes_work[i];
	return n;
}

/* What the vessel has of its own, then the two ways to the database and the socket. */
static void start(char **tombs, const char *pg, const char *sock, const char *secrets)
{
	static struct httpd_route routes[32];
	static char of_vessel[256], of_tomb[256], bearer[256]; /* they are kept */
	struct err err = ERR_INIT;

	read_secret(secrets, "lychgate_db_vessel", of_vessel);
	read_secret(secrets, "lychgate_db_tomb", of_tomb);
	read_secret(secrets, "lychgate_work", bearer);
	v.clock = &clock_real;
	v.rng = &random_real;
	v.protocol = LYCH_API_VERSION;
	v.owned = true;
	if (loop_new(&v.loop, &err) < 0 ||
	    loop_signal(v.loop, SIGTERM, on_signal, NULL, &err) < 0)
		fatal(&err);
	const struct registered_config rc = {.loop = v.loop,
					     .work_master = bearer,
					     .db_master = of_tomb,
					     .on_ready = on_registered};

	if (registered_new(&rc, &v.registered, &err) < 0)
		fatal(&err);
	v.owners = lease_owners_new();
	v.hints = hints_new(v.loop);
	v.tombs = tombs_new(v.clock);
	const struct queue_config qc = {
		.socket_dir = pg, .password = of_vessel, .on_change = on_change};
	const struct door_config dc = {
		.socket_dir = pg,
		.tombs = (const char *const *)(uintptr_t)tombs,
		.n_tombs = n_tombs,
		.on_state = on_state,
	};
	const struct httpd_config hc = {
		.socket_path = sock,
		.socket_mode = 0600,
		.routes = routes,
		.n_routes = door_routes(routes),
		.auth = auth_work,
		.arg = &v,
		.max_connections = 256,
		.idle_usec = 60 * USEC_PER_SEC,
		.stream_backlog_max_bytes = 65536,
	};
	if (queue_new(v.loop, &qc, &v.queue, &err) < 0 ||
	    door_new(v.loop, &dc, &v.door, &err) < 0 ||
	    httpd_new(v.loop, &hc, &v.work, &err) < 0)
		fatal(&err);
	registered_attach(v.registered, v.queue, v.door);
	registered_refresh(v.registered);
}

int main(int argc, char **argv)
{
	char secrets[160], pg[160], work[160], sock[160];
	struct err err = ERR_INIT;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 3 || str_fmt(secrets, sizeof(secrets), "%s/secrets", argv[1]) < 0 ||
	    str_fmt(pg, sizeof(pg), "%s/sock", argv[1]) < 0 ||
	    str_fmt(work, sizeof(work), "%s/work", argv[1]) < 0 ||
	    str_fmt(sock, sizeof(sock), "%s/vessel.sock", work) < 0)
		return 2;
	log_init("door", LOG_WARN_);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)mkdir(work, 0700);
	n_tombs = (size_t)argc - 2;
	start(argv + 2, pg, sock, secrets);
	if (loop_run(v.loop, &err) < 0)
		fatal(&err);
	httpd_free(v.work);
	hints_free(v.hints);
	registered_free(v.registered);
	door_free(v.door);
	lease_owners_free(v.owners);
	queue_free(v.queue);
	tombs_free(v.tombs);
	loop_free(v.loop);
	return 0;
}
