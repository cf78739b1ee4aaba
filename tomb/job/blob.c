/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb.
 * See blob.h.
 */
#include "tomb/job/blob.h"

#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLY_SMALL 4096
/* An upload can vanish under us (the vessel was restored): begin again this often. */
#define PUT_RESTARTS_MAX 3

struct blob_get {
	struct work *work;
	struct lease_key key;
	struct work_call *call;
	struct sha256 *hash;
	char sha256[SHA256_HEX_SIZE];
	int fd;
	uint64_t offset;
	blob_done *done;
	void *arg;
};

static void get_free(struct blob_get *g)
{
	sha256_free(g->hash);
	free(g);
}

static void get_finish(struct blob_get *g, const struct err *err)
{
	blob_done *done = g->done;
	void *arg = g->arg;

	get_free(g);
	done(err, arg);
}

static void get_next(struct blob_get *g);

static int get_part(struct blob_get *g, const struct work_reply *r, bool *ret_last,
		    struct err *err)
{
	char hex[SHA256_HEX_SIZE];

	if (work_is_lost(r->status))
		return work_lost_err(r, "blob", err);
	if (r->status != 200)
		return work_reply_err(r, "blob", err);
	if (fs_write_all(g->fd, r->body, r->len, err) < 0)
		return -1;
	sha256_add(g->hash, r->body, r->len);
	g->offset += r->len;
	if (g->offset > BLOB_MAX_BYTES)
		return err_set_id(err, ERRID_STORE_LIMIT, "blob %s", g->sha256);
	*ret_last = r->len < UPLOAD_PART_MAX_BYTES;
	if (!*ret_last)
		return 0;
	sha256_hex(g->hash, hex);
	if (!str_eq(hex, g->sha256))
		return err_set_id(err, ERRID_STORE_HASH, "blob %s arrived as %s",
				  g->sha256, hex);
	return 0;
}

static void get_done(const struct work_reply *r, void *arg)
{
	struct blob_get *g = arg;
	struct err err = ERR_INIT;
	bool last = false;

	g->call = NULL;
	if (get_part(g, r, &last, &err) < 0)
		get_finish(g, &err);
	else if (last)
		get_finish(g, NULL);
	else
		get_next(g);
}

static void get_next(struct blob_get *g)
{
	char target[160];
	struct work_request rq = {
		.method = HTTP_M_GET,
		.target = target,
		.reply_max = UPLOAD_PART_MAX_BYTES,
	};

	(void)snprintf(target, sizeof(target),
		       "/work/v1/blobs/%s?offset=%" PRIu64 "&limit=%zu", g->sha256,
		       g->offset, UPLOAD_PART_MAX_BYTES);
	g->call = work_send(g->work, &g->key, &rq, get_done, g);
}

struct blob_get *blob_get_start(struct work *w, const struct lease_key *key,
				const char *sha256, int fd, blob_done *done, void *arg)
{
	struct blob_get *g = xnew(struct blob_get);

	g->work = w;
	g->key = *key;
	g->hash = sha256_new();
	(void)snprintf(g->sha256, sizeof(g->sha256), "%s", sha256);
	g->fd = fd;
	g->done = done;
	g->arg = arg;
	get_next(g);
	return g;
}

void blob_get_cancel(struct blob_get *g)
{
	if (!g)
		return;
	work_cancel(g->call);
	get_free(g);
}

struct blob_put {
	struct work *work;
	struct lease_key key;
	struct work_call *call;
	char sha256[SHA256_HEX_SIZE];
	char upload[40];
	int fd;
	uint64_t size, offset;
	unsigned restarts;
	char *part;
	blob_done *done;
	void *arg;
};

static void put_free(struct blob_put *p)
{
	free(p->part);
	free(p);
}

static void put_finish(struct blob_put *p, const struct err *err)
{
	blob_done *done = p->done;
	void *arg = p->arg;

	put_free(p);
	done(err, arg);
}

static void put_begin(struct blob_put *p);

/* A refusal that ends it; -1 with err. 404: the upload is unknown, begin again. */
static void put_refused(struct blob_put *p, const struct work_reply *r)
{
	struct err err = ERR_INIT;

	if (r->status == 404 && p->upload[0] && p->restarts++ < PUT_RESTARTS_MAX) {
		put_begin(p);
		return;
	}
	if (work_is_lost(r->status))
		(void)work_lost_err(r, "artifact upload", &err);
	else
		(void)work_reply_err(r, "artifact upload", &err);
	put_finish(p, &err);
}

static void commit_done(const struct work_reply *r, void *arg)
{
	struct blob_put *p = arg;

	p->call = NULL;
	if (r->status == 200 || r->status == 201)
		put_finish(p, NULL);
	else
		put_refused(p, r);
}

static void put_next(struct blob_put *p);

static void part_done(const struct work_reply *r, void *arg)
{
	struct blob_put *p = arg;
	struct err err = ERR_INIT;
	uint64_t at = 0;

	p->call = NULL;
	if (r->status != 200 && r->status != 409) {
		put_refused(p, r);
		return;
	}
	if (work_reply_u64(r, r->status == 200 ? "received" : "expected", &at, &err) <
	    0) {
		put_finish(p, &err);
		return;
	}
	/* An answer that leads nowhere would be asked for ever. */
	if (at > p->size || (at <= p->offset && p->restarts++ >= PUT_RESTARTS_MAX)) {
		(void)err_set(&err, ERR_UPSTREAM, "artifact upload: offset %" PRIu64, at);
		put_finish(p, &err);
		return;
	}
	p->offset = at;
	put_next(p);
}

static void put_next(struct blob_put *p)
{
	char target[160], json[160];
	struct work_request rq = {.target = target, .reply_max = REPLY_SMALL};
	size_t want, got = 0;

	if (p->offset == p->size) {
		rq.method = HTTP_M_POST;
		(void)snprintf(target, sizeof(target), "/work/v1/uploads/%s/commit",
			       p->upload);
		(void)snprintf(json, sizeof(json),
			       "{\"sha256\":\"%s\",\"size\":%" PRIu64 "}", p->sha256,
			       p->size);
		rq.body = json;
		rq.len = strlen(json);
		p->call = work_send(p->work, &p->key, &rq, commit_done, p);
		return;
	}
	want = UPLOAD_PART_MAX_BYTES;
	if (want > p->size - p->offset)
		want = (size_t)(p->size - p->offset);
	while (got < want) {
		ssize_t n =
			pread(p->fd, p->part + got, want - got, (off_t)(p->offset + got));

		if (n <= 0) {
			struct err err = ERR_INIT;

			(void)err_sys(&err, "read an artifact");
			put_finish(p, &err);
			return;
		}
		got += (size_t)n;
	}
	rq.method = HTTP_M_PUT;
	(void)snprintf(target, sizeof(target), "/work/v1/uploads/%s?offset=%" PRIu64,
		       p->upload, p->offset);
	rq.body = p->part;
	rq.len = want;
	p->call = work_send(p->work, &p->key, &rq, part_done, p);
}

static void begin_done(const struct work_reply *r, void *arg)
{
	struct blob_put *p = arg;
	cleanup_json struct json *obj = NULL;
	struct err err = ERR_INIT;
	const char *id = NULL;
	uint8_t raw[16];

	p->call = NULL;
	if (r->status != 200 && r->status != 201) {
		put_refused(p, r);
		return;
	}
	if (json_parse(r->body, r->len, 4, &obj, &err) < 0 ||
	    json_get_str(obj, "upload", true, 32, &id, &err) < 0) {
		put_finish(p, &err);
		return;
	}
	if (hex_decode(id, raw, sizeof(raw)) < 0 ||
	    str_copy(p->upload, sizeof(p->upload), id) < 0) {
		(void)err_set(&err, ERR_UPSTREAM, "the vessel's upload id is malformed");
		put_finish(p, &err);
		return;
	}
	put_next(p);
}

static void put_begin(struct blob_put *p)
{
	struct work_request rq = {
		.method = HTTP_M_POST,
		.target = "/work/v1/uploads",
		.body = "{}",
		.len = 2,
		.reply_max = REPLY_SMALL,
	};

	p->offset = 0;
	p->upload[0] = '\0';
	p->call = work_send(p->work, &p->key, &rq, begin_done, p);
}

struct blob_put *blob_put_start(struct work *w, const struct lease_key *key,
				const char *sha256, int fd, uint64_t size,
				blob_done *done, void *arg)
{
	struct blob_put *p = xnew(struct blob_put);

	p->work = w;
	p->key = *key;
	(void)snprintf(p->sha256, sizeof(p->sha256), "%s", sha256);
	p->fd = fd;
	p->size = size;
	p->part = xmalloc(UPLOAD_PART_MAX_BYTES);
	p->done = done;
	p->arg = arg;
	put_begin(p);
	return p;
}

void blob_put_cancel(struct blob_put *p)
{
	if (!p)
		return;
	work_cancel(p->call);
	put_free(p);
}
