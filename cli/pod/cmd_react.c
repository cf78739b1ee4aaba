/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * lych react: what the systemd unit lychgate-reactor.service runs, on the host, outside of
 * every container: carries out what the vessel asked for. lych request: ask for it.
 */
#include "cli/base/client.h"
#include "cli/base/cmd.h"
#include "cli/base/paths.h"
#include "cli/local/host_requests.h"
#include "cli/secret/secret.h"
#include "cli/ui/render.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/id.h"
#include "common/jsonw.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include <argp.h>
#include <fcntl.h>

#define REQUEST_TIMEOUT (150 * USEC_PER_SEC)

struct react_args {
	bool json, no_wait;
	const char *what;
};

static error_t react_parse(int key, char *arg, struct argp_state *state)
{
	struct react_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'w':
		a->no_wait = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->what)
			return ARGP_ERR_UNKNOWN;
		a->what = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- react ------------------------------------------------------------------ */

static int rotate_tombs_secrets(struct secret_store *s, struct err *err)
{
	const char *note;

	return secret_rotate_tombs(s, &note, err);
}

/* Every argument of systemctl is a constant of this file. */
static int act(enum host_request what, void *arg, struct err *err)
{
	static const char *const restart[] = {"restart", "lychgate-tomb.service", NULL};
	static const char *const stop[] = {"stop", "lychgate-tomb.service", NULL};
	static const char *const stop_pod[] = {"stop", "lychgate-pod.service", NULL};

	switch (what) {
	case HOST_REQUEST_RESTART_TOMB:
		return secret_systemctl(arg, restart, err);
	case HOST_REQUEST_STOP_TOMB:
		return secret_systemctl(arg, stop, err);
	case HOST_REQUEST_STOP_POD:
		return secret_systemctl(arg, stop_pod, err);
	case HOST_REQUEST_ROTATE_SECRET:
		return rotate_tombs_secrets(arg, err);
	case HOST_REQUEST_MAX_:
	default:
		return err_set(err, ERR_INTERNAL, "host request %u", (unsigned)what);
	}
}

static int react(struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_secret_store struct secret_store s = {.dirfd = -1};
	struct host_requests in = {.dirfd = -1, .receipts = -1};
	cleanup_close int lock = -1;
	int r;

	if (paths_resolve(&p, err) < 0 || secret_store_open("podman", &p, &s, err) < 0 ||
	    host_requests_open(&p, &in, err) < 0)
		return -1;
	in.act = act;
	in.arg = &s;
	lock = openat(in.receipts, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		      0600);
	if (lock < 0)
		r = err_sys_id(err, ERRID_HOST_REACT, "lock");
	else
		r = fs_lock(lock, NULL, err) < 0 ? -1 : host_requests_run(&in, err);
	if (r == 0 && in.n_failed)
		r = err_set_id(err, ERRID_HOST_REACT,
			       "%u of %u failed; their receipts are in %s/reactor",
			       in.n_failed, in.n_failed + in.n_done, p.data);
	host_requests_close(&in);
	return r;
}

int cmd_react(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = react_parse,
		.doc = "Carry out what the vessel asked of the host (run by "
		       "lychgate-reactor.service)."};
	struct react_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	if (a.what)
		cmd_usage_of("lych react", "'%s': no arguments are expected", a.what);
	log_init("reactor", LOG_INFO_);
	return react(&err) < 0 ? cmd_fail(&err, a.json) : 0;
}

/* ---- request ---------------------------------------------------------------- */

static int wait_receipt(const struct paths *p, const char *id,
			struct host_request_receipt *ret, struct err *err)
{
	usec_t deadline = clock_boot_usec() + REQUEST_TIMEOUT;

	for (;;) {
		struct timespec nap = {.tv_nsec = 20 * 1000 * 1000};

		if (host_requests_receipt(p, id, ret, err) < 0)
			return -1;
		if (str_eq(ret->state, "failed"))
			return err_set_id(err, ERRID_HOST_REACT, "%s", ret->detail);
		if (str_eq(ret->state, "done"))
			return 0;
		if (clock_boot_usec() >= deadline)
			return err_set_id(err, ERRID_HOST_REACT,
					  "%s, no receipt yet: in the pod "
					  "lychgate-reactor.path must be active",
					  id);
		(void)nanosleep(&nap, NULL);
	}
}

static int request(const struct react_args *a, struct err *err)
{
	cleanup_paths struct paths p = {0};
	cleanup_client struct client *c = NULL;
	cleanup_json struct json *j = NULL;
	cleanup_buf struct buf body = {0};
	struct host_request_receipt receipt = {.state = "asked"};
	enum host_request what;
	const char *id;
	struct uuid uuid;
	struct jsonw w;

	if (!a->what || !host_request_from_name(a->what, strlen(a->what), &what))
		return err_set_id(err, ERRID_CORE_USAGE,
				  "restart-tomb, stop-tomb, stop-pod or rotate-secret");
	buf_init(&body, 4096);
	jsonw_init(&w, &body);
	jsonw_obj(&w);
	jsonw_kstr(&w, "intent", host_request_name(what));
	jsonw_obj_end(&w);
	const struct client_request rq = {.method = "POST",
					  .target = "/v1/intents",
					  .body = body.data,
					  .body_len = body.len,
					  .timeout_ms = 30000};

	if (paths_resolve(&p, err) < 0 || client_new(p.api_sock, &c, err) < 0 ||
	    client_json(c, &rq, &j, NULL, err) < 0 ||
	    json_get_str(j, "id", true, 36, &id, err) < 0 ||
	    uuid_parse(id, &uuid, err) < 0)
		return -1;
	if (!a->no_wait && wait_receipt(&p, uuid.s, &receipt, err) < 0)
		return -1;
	if (a->json)
		(void)printf("{\"id\":\"%s\",\"intent\":\"%s\",\"state\":\"%s\"}\n",
			     uuid.s, host_request_name(what), receipt.state);
	else
		(void)printf("%s: %s\n", host_request_name(what), receipt.state);
	return render_flush(err);
}

int cmd_request(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"no-wait", 'w', NULL, 0, "do not wait until it was carried out", 0},
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = react_parse,
		.args_doc = "restart-tomb|stop-tomb|stop-pod|rotate-secret",
		.doc = "Ask the host, through the vessel, for one of four things.\v"
		       "Examples:\n"
		       "  lych request restart-tomb"};
	struct react_args a = {0};
	struct err err = ERR_INIT;

	cmd_parse(&argp, argc, argv, 0, &a);
	return request(&a, &err) < 0 ? cmd_fail(&err, a.json) : 0;
}
