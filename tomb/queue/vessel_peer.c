/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See vessel_peer.h.
 */
#include "tomb/queue/vessel_peer.h"

#include "common/json/json.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int vessel_peer_init(struct vessel_peer *p, const char *socket_path, const char *tomb,
		     const char *bearer, unsigned protocol, struct err *err)
{
	*p = (struct vessel_peer){.socket_path = socket_path, .protocol = protocol};
	if (str_fmt(p->auth, sizeof(p->auth), "Authorization: Bearer %s", bearer) < 0)
		return err_set_id(err, ERRID_SECRET_FILE,
				  "the tomb's bearer is too long");
	if (str_fmt(p->name, sizeof(p->name), "Lychgate-Tomb: %s", tomb) < 0 ||
	    str_fmt(p->version, sizeof(p->version), "Lychgate-Version: %u", protocol) < 0)
		return err_set(err, ERR_INVALID, "'%s': too long a name", tomb);
	return 0;
}

void vessel_peer_done(struct vessel_peer *p)
{
	explicit_bzero(p->auth, sizeof(p->auth));
}

void vessel_headers(struct vessel_headers *h, const struct vessel_peer *p,
		    const struct lease_key *key)
{
	size_t n = 0;

	h->line[n++] = p->auth;
	h->line[n++] = p->version;
	h->line[n++] = p->name;
	if (key) {
		(void)snprintf(h->job, sizeof(h->job), "Lychgate-Job: %" PRId64,
			       key->job);
		(void)snprintf(h->epoch, sizeof(h->epoch), "Lychgate-Epoch: %" PRId64,
			       key->epoch);
		(void)snprintf(h->token, sizeof(h->token), "Lychgate-Token: %s",
			       key->token.s);
		h->line[n++] = h->job;
		h->line[n++] = h->epoch;
		h->line[n++] = h->token;
	} else {
		h->token[0] = '\0';
	}
	h->line[n] = NULL;
}

void vessel_headers_done(struct vessel_headers *h)
{
	explicit_bzero(h->token, sizeof(h->token));
}

int vessel_reply_err(int status, const char *body, size_t len, const char *what,
		     struct err *err)
{
	cleanup_json struct json *obj = NULL;
	struct err bad = ERR_INIT;
	const char *code = "?", *title = "", *detail = "";
	enum err_id id;

	if (json_parse(body, len, 4, &obj, &bad) < 0 ||
	    json_get_str(obj, "error_code", false, 32, &code, &bad) < 0 ||
	    json_get_str(obj, "title", false, 512, &title, &bad) < 0)
		return err_set(err, ERR_UPSTREAM, "%s: status %d without a reason", what,
			       status);
	if (json_has(obj, "detail") && !json_is_null(obj, "detail") &&
	    json_get_str(obj, "detail", false, 1024, &detail, &bad) < 0)
		detail = "";
	id = err_id_from_text(code);
	if (id == ERRID_NONE)
		return err_set(err, ERR_UPSTREAM, "%s: %s: %.100s: %.200s", what, code,
			       title, detail);
	return err_set_id(err, id, "%s: %.100s: %.200s", what, title, detail);
}
