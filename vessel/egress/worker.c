/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress worker.
 * See worker.h.
 */
#include "vessel/egress/worker.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/confine/probe.h"
#include "common/crypto/locked.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/http.h"
#include "vessel/egress/wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* A field's name, a user in front of it, and all of it in base64. */
#define LINE_SIZE (2 * (REDACT_SECRET_MAX + 256))
#define USER_SIZE 128

/* The credential and what to look for, for as long as the worker lives. */
struct key {
	char *text; /* locked; REDACT_SECRET_MAX + 2; NULL: none */
	char *line; /* the header field with it; locked; LINE_SIZE */
	struct redact *redact;
};

size_t egress_workers_count(const struct egress_config *cfg)
{
	return egress_first_host(cfg) + EGRESS_HOST_PLACES;
}

size_t egress_first_host(const struct egress_config *cfg)
{
	return cfg->n_portals + 1 + (cfg->gate ? EGRESS_GATES : 0);
}

bool egress_worker_is_gate(const struct egress_config *cfg, size_t i)
{
	return i > cfg->n_portals && i < egress_first_host(cfg);
}

void egress_worker_name(const struct egress_config *cfg, size_t i,
			const struct egress_portal *host, char out[EGRESS_NAME_SIZE + 8])
{
	const char *kind = host ? "host:" : i >= cfg->n_portals ? "" : "portal:";
	const char *name = host			     ? host->name
			   : i < cfg->n_portals	     ? cfg->portals[i].name
			   : i == cfg->n_portals     ? "keyless"
			   : i == cfg->n_portals + 1 ? "gate"
						     : "gate:large";

	(void)snprintf(out, EGRESS_NAME_SIZE + 8, "%s%s", kind, name);
}

static void key_done(struct key *k)
{
	redact_free(k->redact);
	locked_free(k->text, REDACT_SECRET_MAX + 2);
	locked_free(k->line, LINE_SIZE);
	*k = (struct key){0};
}

/* "EMPTY", which many a server of models on the own machine wants to hear, is no secret, and
 * taken out of every reply it would only harm it. */
static int make_redact(const struct egress_portal *portal, struct key *key,
		       struct err *err)
{
	size_t len = strlen(key->text);

	if (portal->is_local && len < REDACT_SECRET_MIN)
		return 0;
	return redact_new(key->text, len, &key->redact, err);
}

/* "Authorization: Basic ...": of the bytes of user and key, which stay in this frame. */
static int write_basic(const char *user, const char *key, char *line)
{
	char pair[USER_SIZE + REDACT_SECRET_MAX + 2];
	struct buf b;
	int r = str_fmt(pair, sizeof(pair), "%s:%s", user, key);

	buf_init(&b, LINE_SIZE);
	if (r == 0) {
		base64_add(&b, pair, strlen(pair));
		r = buf_ok(&b) ? str_fmt(line, LINE_SIZE, "Authorization: Basic %s",
					 buf_str(&b))
			       : -1;
	}
	explicit_bzero(pair, sizeof(pair));
	if (b.data)
		explicit_bzero(b.data, b.cap);
	buf_done(&b);
	return r;
}

/* The one header field that carries the key, as curl is given it. */
static int write_line(const struct egress_portal *portal, struct key *key,
		      struct err *err)
{
	static const char *const fields[] = {
		[HEADERS_ANTHROPIC] = "x-api-key",
		[HEADERS_GEMINI] = "x-goog-api-key",
	};
	/* NULL where Authorization takes it: the first two of the enum */
	const char *field = portal->field		       ? portal->field
			    : portal->dialect > HEADERS_OPENAI ? fields[portal->dialect]
							       : NULL;
	void *memory;
	int r;

	if (locked_new(LINE_SIZE, &memory, err) < 0)
		return -1;
	key->line = memory;
	if (portal->user)
		r = write_basic(portal->user, key->text, key->line);
	else if (field)
		r = str_fmt(key->line, LINE_SIZE, "%s: %s", field, key->text);
	else
		r = str_fmt(key->line, LINE_SIZE, "Authorization: Bearer %s", key->text);
	return r < 0 ? err_set(err, ERR_INVALID, "it does not fit into a header field")
		     : 0;
}

static int read_key(const struct egress_portal *portal, int secrets_fd, struct key *ret,
		    struct err *err)
{
	void *memory;

	if (!portal || !portal->secret)
		return 0;
	if (locked_new(REDACT_SECRET_MAX + 2, &memory, err) < 0)
		return -1;
	ret->text = memory;
	if (fs_read_secret(secrets_fd, portal->secret, ret->text, REDACT_SECRET_MAX + 2,
			   err) < 0 ||
	    make_redact(portal, ret, err) < 0 || write_line(portal, ret, err) < 0) {
		struct err why = *err;

		key_done(ret);
		return err_set_id(err, ERRID_EGRESS_SECRET,
				  "%s %s: %s ('lych secret set %s')",
				  portal->is_host ? "credential" : "portal", portal->name,
				  why.msg, portal->secret);
	}
	return 0;
}

static int confine(const struct egress_world *w, const char *name, bool is_gate,
		   struct confine_report *ret, struct err *err)
{
	const struct confine_policy policy = {
		.name = name,
		.unrooted = w->cfg->unrooted,
		.api_socket = w->cfg->api_socket,
		.may_make_inet_sockets = !is_gate,
		.below_parent = true,
	};
	const char *const foreign[] = {w->cfg->secrets_dir, "/etc/passwd", "/proc/self",
				       NULL};

	if (confine_self(&policy, err) < 0)
		return -1;
	return confine_selftest(&policy, foreign, ret, err);
}

/* The first frame, before the socket belongs to anything else. */
static int say(int fd, const struct confine_report *walls, const struct err *why,
	       struct err *err)
{
	cleanup_buf struct buf b;

	buf_init(&b, 2 * EGRESS_FRAME_MAX);
	if (why)
		egress_failed_add(&b, why);
	else
		egress_ready_add(&b, walls);
	return fs_write_all(fd, b.data, b.len, err);
}

static int serve(struct egress_world *w, const struct egress_portal *portal,
		 const struct key *key, int fd)
{
	const struct egress_http_config cfg = {
		.fd = fd,
		.portal = portal,
		.credential = key->line,
		.redact = key->redact,
		.sources = w->sources,
		.generation = w->generation,
		.roots = w->roots,
		.resolve = &w->resolve,
		.addresses = &w->addresses,
		.pulse = w->pulse,
	};

	return egress_http_serve(&cfg);
}

static int allow_addresses(struct egress_world *w, const struct egress_portal *portal,
			   struct err *err)
{
	for (size_t i = 0; portal && i < portal->n_addresses; i++)
		if (addr_policy_allow(&w->addresses, portal->addresses[i], err) < 0)
			return -1;
	return 0;
}

void egress_worker_probe(const struct egress_config *cfg UNUSED, const char *name UNUSED)
{
#ifdef LYCH_TEST_BUILD
	struct confine_probe probe;

	if (!cfg->probe || !str_eq(cfg->probe_worker, name))
		return;
	probe = *cfg->probe;
	confine_probe_run(&probe);
#endif
}

int egress_worker_run(struct egress_world *w, size_t i, const struct egress_portal *host,
		      int fd)
{
	bool is_gate = egress_worker_is_gate(w->cfg, i);
	const struct egress_portal *portal =
		i < w->cfg->n_portals ? &w->cfg->portals[i] : host;
	char name[EGRESS_NAME_SIZE + 8];
	struct confine_report walls;
	struct err err = ERR_INIT;
	struct key key = {0};
	int code;

	egress_worker_name(w->cfg, i, host, name);
	(void)prctl(PR_SET_NAME, name);
	code = read_key(portal, w->secrets_fd, &key, &err);
	fd_close(&w->secrets_fd);
	if (code < 0 || allow_addresses(w, portal, &err) < 0 ||
	    confine(w, name, is_gate, &walls, &err) < 0) {
		key_done(&key);
		(void)say(fd, NULL, &err, NULL);
		fd_close(&fd);
		return err_exit_code(&err);
	}
	egress_worker_probe(w->cfg, name);
	if (say(fd, &walls, NULL, &err) < 0)
		code = err_exit_code(&err);
	else if (is_gate)
		code = w->cfg->gate(fd, w->pulse, w->cfg->gate_arg);
	else
		code = serve(w, portal, &key, fd);
	key_done(&key);
	return code;
}
