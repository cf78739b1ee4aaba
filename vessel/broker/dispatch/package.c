/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * A package: an index or a file of a registry that codex.yaml names, from the cache or by
 * the worker that has no key. A file goes by as it comes, an index is read whole first. A job
 * can name nothing but paths (registry.h), outside of the registry's URL only what an index
 * named (registry_links.h); where a registry sends a file elsewhere, that must be one of its file
 * hosts. The gate reads the path (package_parts.c). Digits in it that look like keys are let go when
 * an index that this job fetched named their directory (registry_seen.h): then the gate looks for
 * nothing in them but registered terms and canaries.
 */
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/log.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"
#include "vessel/broker/dispatch/priv.h"
#include "vessel/broker/intents/fetch.h"
#include "vessel/broker/intents/fetch_keys.h"
#include "vessel/broker/intents/registry_links.h"

#include <string.h>

#define INTENT_DEPTH_MAX 3
#define INDEX_AGE_MAX_USEC (5 * 60 * USEC_PER_SEC)
/* Most indexes are no longer. */
#define ROOM_BYTES ((int64_t)256 << 10)
#define FILE_TYPE "application/octet-stream"
/* A piece of an index with its links: each may become twice as long, and one more is held. */
#define INDEX_PIECE_MAX ((size_t)8 << 20)

struct package_own {
	struct json *intent;
	const struct registry *registry;
	/* as the job named it, without the mark of a link that is one (registry_links.h) */
	char path[REGISTRY_PATH_MAX + 1];
	char url[URL_BYTES_MAX + 1]; /* upstream */
	struct url at;		     /* the same */
	bool is_index, drop;
	bool left; /* the place where a key goes: for a file host, or by a redirect */
	enum broker_simple wants; /* of an index */
	struct registry_page page;
	struct registry_rewrite *rewrite;
	struct seen_page *seen; /* of the index that goes by */
	struct packages_write *keep;
};

static const struct conf_registry *conf_of(const struct dispatch_call *c)
{
	const struct package_own *p = c->own;

	return &c->d->cfg.broker->registry[p->registry->kind];
}

/* One that may be asked for. */
static void set_path(struct package_own *p, const char *path)
{
	cleanup_buf struct buf plain = {.max = sizeof(p->path)};

	registry_unmarked(path, strlen(path), &plain);
	/* no longer than it was */
	memcpy(p->path, buf_str(&plain), plain.len + 1);
	p->left = registry_is_elsewhere(path);
}

static int read_intent(struct dispatch_call *c, struct err *err)
{
	static const char *const keys[] = {"seq", "registry", "path", "accept"};
	struct package_own *p = c->own;
	const char *name = NULL, *path = NULL, *wants = NULL;
	enum registry_kind kind;
	size_t len;
	const void *body = httpd_req_body(c->req, &len);

	if (json_parse(body, len, INTENT_DEPTH_MAX, &p->intent, err) < 0 ||
	    json_check_keys(p->intent, keys, ARRAY_SIZE(keys), err) < 0 ||
	    json_get_u64(p->intent, "seq", true, 1, INT64_MAX, &c->books.seq, err) < 0 ||
	    json_get_str(p->intent, "registry", true, 16, &name, err) < 0 ||
	    json_get_str(p->intent, "path", true, REGISTRY_PATH_MAX, &path, err) < 0 ||
	    json_get_str(p->intent, "accept", false, 16, &wants, err) < 0)
		return -1;
	if (!registry_kind_from_name(name, &kind) || !c->d->registry[kind].url)
		return err_set_id(err, ERRID_REGISTRY_NONE, "%.16s", name);
	p->registry = &c->d->registry[kind];
	if (str_fmt(c->target, sizeof(c->target), "registry:%s", name) < 0 ||
	    str_copy(p->path, sizeof(p->path), path) < 0)
		return err_set(err, ERR_INTERNAL, "a registry's name");
	p->wants = SIMPLE_HTML_JSON;
	if (wants &&
	    (kind != REGISTRY_PYPI || !broker_simple_from_name(wants, &p->wants)))
		return err_set_id(err, ERRID_SPEC_RANGE, "accept: %.16s", wants);
	if (registry_upstream(p->registry, path, p->url, sizeof(p->url), &p->is_index,
			      err) < 0)
		return -1;
	set_path(p, path);
	if (p->is_index && !registry_accept(kind, p->wants))
		return err_set_id(err, ERRID_HTTP_QUERY,
				  "a simple index is JSON (PEP 691) or HTML (PEP 503); "
				  "the request's Accept takes neither");
	return 0;
}

/* The worker whose key goes along, by the ward's rule; NULL: the one without any. */
static const char *key_of(const struct dispatch_call *c, const char **ret_target)
{
	const struct package_own *p = c->own;

	return p->left ? NULL
		       : fetch_key_at(&p->at, c->d->cfg.broker, &c->verdict, ret_target);
}

static int package_read(struct dispatch_call *c, struct err *err)
{
	struct package_own *p = c->own;
	enum reason ignored;

	if (c->hops == 0 && read_intent(c, err) < 0)
		return -1;
	if (url_parse(p->url, strlen(p->url), &p->at, &ignored, err) < 0)
		return -1;
	ward_ask_registry(c->d->cfg.broker, p->registry->kind, NULL, &c->ward);
	return 0;
}

static void package_estimate(struct dispatch_call *c)
{
	c->want.base.n[BUDGET_BYTES] = ROOM_BYTES;
}

static struct gate_parts *package_parts(struct dispatch_call *c)
{
	struct package_own *p = c->own;
	struct gate_parts *parts = gate_parts_new();
	const struct package_path path = {
		.kind = p->registry->kind,
		.path = p->path,
		.is_seen =
			!p->is_index && seen_by_has(&c->job->seen, c->d->seen, p->path),
	};

	package_path_parts(&path, c->job->gate, parts);
	return parts;
}

static int package_write(struct dispatch_call *c UNUSED,
			 const struct gate_answer *a UNUSED, struct err *err UNUSED)
{
	return 0; /* GET: there is no body */
}

static void cache_key(const struct dispatch_call *c, struct buf *out)
{
	const struct package_own *p = c->own;

	buf_addf(out, "%s %s %s", registry_kind_name(p->registry->kind),
		 p->is_index ? registry_accept(p->registry->kind, p->wants) : "file",
		 p->url);
}

static void reply_kept(struct dispatch_call *c, const struct packages_hit *hit)
{
	httpd_req_add_header(c->req, "Lychgate-Upstream-Status", "200");
	httpd_reply_file(c->req, 200, hit->content_type, hit->fd, PACKAGES_HEAD,
			 hit->len);
	c->req = NULL;
}

/* From the cache; true when the request is answered. An index of which the vessel does not
 * know what it names is fetched again. */
static bool serve_kept(struct dispatch_call *c)
{
	struct package_own *p = c->own;
	struct packages_hit hit;
	cleanup_buf struct buf key = {.max = 4 * REGISTRY_PATH_MAX};

	cache_key(c, &key);
	if (!buf_ok(&key) ||
	    (p->is_index && !seen_by_add(&c->job->seen, c->d->seen, buf_str(&key))) ||
	    !packages_find(c->d->cfg.packages, buf_str(&key),
			   p->is_index ? INDEX_AGE_MAX_USEC : USEC_INFINITY, &hit))
		return false;
	reply_kept(c, &hit);
	return true;
}

static int package_start(struct dispatch_call *c, struct err *err)
{
	struct package_own *p = c->own;
	const struct conf_egress *e = &c->d->cfg.broker->egress;
	const struct conf_addresses *named = &conf_of(c)->addresses;
	const char *target = p->url;
	const char *key = key_of(c, &target);
	const struct egress_header accept = {
		"accept",
		p->is_index ? registry_accept(p->registry->kind, p->wants) : "*/*"};

	if (serve_kept(c))
		return DISPATCH_KEPT;
	const struct egress_request rq = {
		.portal = key,
		.method = "GET",
		.target = target,
		.headers = &accept,
		.n_headers = 1,
		/* the worker of a key knows its own */
		.addresses = key ? NULL : (const char *const *)named->v,
		.n_addresses = key ? 0 : named->n,
		.limits = {.reply_max_bytes = e->package_max_bytes},
	};

	return dispatch_send(c, &rq, err);
}

static void package_describe(const struct dispatch_call *c, struct jsonw *w)
{
	struct package_own *p = c->own;
	const char *key, *target;

	if (!p->registry)
		return;
	jsonw_kstr(w, "registry", registry_kind_name(p->registry->kind));
	jsonw_kstr(w, "path", p->path);
	key = key_of(c, &target);
	if (key)
		jsonw_kstr(w, "credential", key);
}

static bool same_origin(const char *url, const struct url *as)
{
	struct err ignored = ERR_INIT;
	enum reason why;
	struct url u;

	return url_parse(url, strlen(url), &u, &why, &ignored) == 0 &&
	       url_same_origin(&u, as);
}

/* Where a file lies elsewhere, the registry sends there; never further than the places
 * that codex.yaml names for it. */
static int follow(struct dispatch_call *c, const char *location, struct err *err)
{
	struct package_own *p = c->own;
	const struct registry_page page = {p->registry, p->url};
	char url[sizeof(p->url)];
	const char *target;

	if (c->hops >= FETCH_REDIRECTS_MAX ||
	    !registry_resolve(&page, location, url, sizeof(url)))
		return err_set_id(err, ERRID_REGISTRY_INDEX,
				  "a redirect to another place");
	p->left = p->left || !key_of(c, &target) || !same_origin(url, &p->at);
	memcpy(p->url, url, sizeof(url));
	return DISPATCH_REDIRECTS;
}

/* The last thing of a head: what follows touches the disk, and reads nothing. */
static int keep(struct dispatch_call *c, const char *type, struct err *err)
{
	struct package_own *p = c->own;
	cleanup_buf struct buf key = {.max = 4 * REGISTRY_PATH_MAX};

	reading_clear(c->d->cfg.note);
	cache_key(c, &key);
	if (!buf_ok(&key))
		return err_set_id(err, ERRID_REGISTRY_INDEX, "its name is too long");
	return packages_begin(c->d->cfg.packages, buf_str(&key), type, &p->keep, err);
}

static void not_kept(const struct err *why)
{
	log_kv(LOG_WARN_, "a package is not kept", "why", why->msg, NULL);
}

/* An index goes to the job from where it is stored. */
static int not_stored(const struct err *why, struct err *err)
{
	not_kept(why);
	return err_set_id(err, ERRID_REGISTRY_INDEX, "the vessel could not store it");
}

/* A link of an index goes to the job, and is remembered as what it may ask for. */
static bool map_link(void *arg, const char *link, struct buf *out)
{
	struct package_own *p = arg;
	cleanup_buf struct buf plain = {.max = REGISTRY_LINK_MAX * 2};
	size_t at = out->len;
	const char *end;

	if (!registry_map_link(&p->page, link, out))
		return false;
	at += strlen(BROKER_URL "/registry//") +
	      strlen(registry_kind_name(p->registry->kind));
	if (!buf_ok(out) || out->len <= at)
		return true;
	end = memchr(out->data + at, '#', out->len - at);
	registry_unmarked(out->data + at,
			  end ? (size_t)(end - out->data) - at : out->len - at, &plain);
	if (buf_ok(&plain) && plain.len)
		seen_page_link(p->seen, plain.data, plain.len);
	return true;
}

static void begin_index(struct dispatch_call *c, const struct registry_is *is)
{
	struct package_own *p = c->own;
	cleanup_buf struct buf name = {.max = 4 * REGISTRY_PATH_MAX};

	cache_key(c, &name);
	p->page = (struct registry_page){p->registry, p->url};
	p->rewrite = registry_rewrite_new(is->form, is->key, map_link, p);
	p->seen = seen_page_begin(c->d->seen, buf_str(&name));
}

static const char *header_of(const struct egress_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_headers; i++)
		if (str_eq(h->headers[i].name, name))
			return h->headers[i].value;
	return NULL;
}

/* The job is answered when it is whole: what it gets with a 200 is an index, and one that is
 * none is refused with the reason. */
static int index_head(struct dispatch_call *c, const char *type, struct err *err)
{
	struct package_own *p = c->own;
	const struct registry_got got = {.kind = p->registry->kind,
					 .wants = p->wants,
					 .path = p->path,
					 .content_type = type,
					 .has_key = c->verdict.credential != NULL};
	struct registry_is is;
	struct err why = ERR_INIT;

	if (registry_form(&got, &is, err) < 0)
		return -1;
	begin_index(c, &is);
	return keep(c, is.content_type, &why) < 0 ? not_stored(&why, err)
						  : DISPATCH_GATHERS;
}

static int package_head(struct dispatch_call *c, const struct egress_head *h,
			struct err *err)
{
	struct package_own *p = c->own;
	const struct egress_head bare = {.status = h->status};
	const char *type = header_of(h, "content-type");
	struct err why = ERR_INIT;

	if (h->location && h->status >= 300 && h->status < 400)
		return follow(c, h->location, err);
	if (h->status != 200) {
		p->drop = true; /* its words are nobody's business */
		dispatch_stream(c, &bare, "text/plain");
		return 0;
	}
	if (p->is_index)
		return index_head(c, type, err);
	if (keep(c, FILE_TYPE, &why) < 0)
		not_kept(&why); /* it goes through all the same */
	dispatch_stream(c, &bare, FILE_TYPE);
	return 0;
}

/* What goes to the job goes to the cache; a cache that fails is left. The last thing of a
 * piece, as above. */
static void keep_more(struct dispatch_call *c, const void *data, size_t len)
{
	struct package_own *p = c->own;
	struct err err = ERR_INIT;

	if (!p->keep)
		return;
	reading_clear(c->d->cfg.note);
	if (packages_add(p->keep, data, len, &err) == 0)
		return;
	not_kept(&err);
	packages_abort(p->keep);
	p->keep = NULL;
}

static int index_body(struct dispatch_call *c, const void *data, size_t len,
		      struct err *err)
{
	struct package_own *p = c->own;
	cleanup_buf struct buf piece = {.max = INDEX_PIECE_MAX};
	struct err why = ERR_INIT;

	if (registry_rewrite_feed(p->rewrite, data, len, &piece, err) < 0)
		return -1;
	reading_clear(c->d->cfg.note);
	if (piece.len && packages_add(p->keep, piece.data, piece.len, &why) < 0)
		return not_stored(&why, err);
	return 0;
}

static int package_body(struct dispatch_call *c, const void *data, size_t len,
			struct buf *out, struct err *err)
{
	struct package_own *p = c->own;

	if (p->drop)
		return 0;
	if (p->rewrite)
		return index_body(c, data, len, err);
	buf_add(out, data, len);
	if (buf_ok(out))
		keep_more(c, data, len);
	return 0;
}

/* Whole, and what it should be: only now the job gets its 200. */
static int index_end(struct dispatch_call *c, struct err *err)
{
	struct package_own *p = c->own;
	struct packages_hit hit;
	cleanup_buf struct buf key = {.max = 4 * REGISTRY_PATH_MAX};
	cleanup_buf struct buf piece = {.max = INDEX_PIECE_MAX};
	struct err why = ERR_INIT;

	cache_key(c, &key);
	if (registry_rewrite_end(p->rewrite, &piece, err) < 0)
		return -1;
	seen_by_add_id(&c->job->seen, seen_page_commit(c->d->seen, TAKE_PTR(p->seen)));
	reading_clear(c->d->cfg.note);
	if ((piece.len && packages_add(p->keep, piece.data, piece.len, &why) < 0) ||
	    packages_commit(TAKE_PTR(p->keep), &why) < 0 ||
	    !packages_find(c->d->cfg.packages, buf_str(&key), USEC_INFINITY, &hit))
		return not_stored(&why, err);
	reply_kept(c, &hit);
	return 0;
}

static int package_end(struct dispatch_call *c, struct buf *out UNUSED, struct err *err)
{
	struct package_own *p = c->own;
	struct err ignored = ERR_INIT;

	if (p->rewrite)
		return index_end(c, err);
	reading_clear(c->d->cfg.note);
	if (p->keep && packages_commit(TAKE_PTR(p->keep), &ignored) < 0)
		not_kept(&ignored);
	return 0;
}

static void package_done(struct dispatch_call *c)
{
	struct package_own *p = c->own;

	packages_abort(p->keep);
	registry_rewrite_free(p->rewrite);
	seen_page_drop(p->seen);
	json_free(p->intent);
}

const struct dispatch_kind dispatch_kind_package = {
	.name = "package",
	.own_size = sizeof(struct package_own),
	.installs = true,
	.counts = BUDGET_PACKAGES,
	.read = package_read,
	.estimate = package_estimate,
	.parts = package_parts,
	.write = package_write,
	.start = package_start,
	.describe = package_describe,
	.head = package_head,
	.body = package_body,
	.end = package_end,
	.done = package_done,
};
