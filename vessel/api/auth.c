/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See auth.h.
 */
#include "vessel/api/auth.h"
#include "common/crypto/sha256.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/api/vessel.h"
#include "vessel/audit/audit.h"
#include <assert.h>

#define HOST_VALUE "lychgate"
#define BEARER_PREFIX "Bearer "
#define BEARER_MAX_BYTES 512

static int check_common(struct vessel *v, struct httpd_req *req, struct err *err)
{
	if (!str_eq(httpd_req_header(req, "Host"), HOST_VALUE))
		return err_set_id(err, ERRID_HTTP_FRAMING, "Host is not '%s'",
				  HOST_VALUE);
	if (!v->owned)
		return err_set_id(err, ERRID_RUN_DB,
				  "the vessel does not own the database");
	return 0;
}

static struct principal *attach(struct httpd_req *req, enum auth_who who)
{
	struct principal *p = xnew(struct principal);

	p->who = who;
	httpd_req_set_ctx(req, p, free);
	return p;
}

static int refused(struct vessel *v, const char *listener)
{
	v->metrics.refused_peers++;
	audit_peer_refused(v->audit, listener);
	return -1;
}

int auth_api(struct httpd_req *req, void *arg, struct err *err)
{
	struct vessel *v = arg;
	uid_t uid;
	pid_t pid;

	httpd_req_peer(req, &uid, &pid);
	if (uid != v->uid || httpd_req_route(req)->who != WHO_OWNER) {
		(void)err_set_id(err, ERRID_HTTP_PEER, "uid %u is not the owner",
				 (unsigned)uid);
		return refused(v, "api");
	}
	if (check_common(v, req, err) < 0)
		return -1;
	(void)attach(req, WHO_OWNER);
	v->metrics.requests++;
	return 0;
}

/* Who it says it is, and that it is. */
static int check_tomb(struct vessel *v, const struct httpd_req *req,
		      char ret_name[TOMB_NAME_SIZE], struct err *err)
{
	const char *h = httpd_req_header(req, "Authorization");
	const char *name = httpd_req_header(req, "Lychgate-Tomb");

	if (!h || !str_starts(h, BEARER_PREFIX) || strlen(h) > BEARER_MAX_BYTES)
		return err_set_id(err, ERRID_HTTP_PEER, "no bearer");
	if (!name || !tomb_name_is_usable(name) ||
	    str_copy(ret_name, TOMB_NAME_SIZE, name) < 0)
		return err_set_id(err, ERRID_HTTP_PEER, "Lychgate-Tomb names no tomb");
	return registered_check(v->registered, ret_name, h + strlen(BEARER_PREFIX), err);
}

static int charge(struct vessel *v, struct httpd_req *req, const char *tomb,
		  struct err *err)
{
	struct httpd_share *share = registered_share(v->registered, tomb);

	if (!share)
		return err_set_id(err, ERRID_HTTP_BUSY, "too many tombs");
	return httpd_req_charge(req, share, err);
}

static int check_version(struct vessel *v, const struct httpd_req *req, const char *name,
			 struct err *err)
{
	const char *h = httpd_req_header(req, "Lychgate-Version");
	uint64_t version;

	if (!h || parse_u64(h, 1, UINT32_MAX, &version, NULL) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY, "Lychgate-Version");
	if (version == v->protocol)
		return 0;
	v->metrics.refused_versions++;
	tombs_refused(v->tombs, name, (unsigned)version);
	return err_set_id(
		err, ERRID_RUN_VERSION,
		"the tomb %s speaks version %u, this vessel (release " LYCH_VERSION
		") version %u: upgrade the %s",
		name, (unsigned)version, v->protocol,
		version < v->protocol ? "tomb" : "vessel");
}

static int read_lease(const struct httpd_req *req, struct queue_lease *ret,
		      struct err *err)
{
	const char *job = httpd_req_header(req, "Lychgate-Job");
	const char *epoch = httpd_req_header(req, "Lychgate-Epoch");
	const char *token = httpd_req_header(req, "Lychgate-Token");
	uint64_t n;

	if (!job || job_id_parse(job, &ret->job, NULL) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY, "Lychgate-Job");
	if (!epoch || parse_u64(epoch, 0, INT64_MAX, &n, NULL) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY, "Lychgate-Epoch");
	ret->epoch = (int64_t)n;
	if (!token || uuid_parse(token, &ret->token, NULL) < 0)
		return err_set_id(err, ERRID_HTTP_QUERY, "Lychgate-Token");
	return 0;
}

/* What a route wants beside bearer and version. */
static int check_route(struct vessel *v, const struct httpd_req *req, unsigned who,
		       struct principal *p, struct err *err)
{
	bool door = (who & (WHO_DOOR | WHO_DOOR_LEASE)) != 0;

	if (door && !door_find(v->door, p->tomb))
		return err_set_id(err, ERRID_RUN_TOMB, "'%s' is not registered", p->tomb);
	if (!(who & (WHO_LEASE | WHO_DOOR_LEASE)))
		return 0;
	p->lease.party = registered_number(v->registered, p->tomb);
	return read_lease(req, &p->lease, err);
}

int auth_work(struct httpd_req *req, void *arg, struct err *err)
{
	static const unsigned known = WHO_TOMB | WHO_LEASE | WHO_DOOR | WHO_DOOR_LEASE;
	struct vessel *v = arg;
	unsigned who = httpd_req_route(req)->who;
	struct principal p = {.who = (enum auth_who)who};

	if (check_tomb(v, req, p.tomb, err) < 0)
		return err->id == ERRID_HTTP_PEER ? refused(v, "work") : -1;
	if (charge(v, req, p.tomb, err) < 0)
		return -1;
	if (!(who & known)) {
		(void)err_set_id(err, ERRID_HTTP_PEER, "not a tomb's route");
		return refused(v, "work");
	}
	if (check_version(v, req, p.tomb, err) < 0 || check_common(v, req, err) < 0 ||
	    check_route(v, req, who, &p, err) < 0)
		return -1;
	tombs_seen(v->tombs, p.tomb);
	*attach(req, p.who) = p;
	v->metrics.requests++;
	return 0;
}

const struct principal *auth_principal(const struct httpd_req *req)
{
	const struct principal *p = httpd_req_ctx(req);

	assert(p);
	return p;
}
