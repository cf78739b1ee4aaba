/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the tomb, the files' parent and the file worker.
 * See files_wire.h.
 */
#include "tomb/files/files_wire.h"

#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"

#include <string.h>

#define WHY_MAX 64
#define CLASS_MAX 32

bool files_reply_is_sound(struct files_reply *r, size_t bytes)
{
	r->err.msg[sizeof(r->err.msg) - 1] = '\0';
	return bytes == sizeof(*r) && r->word < FILES_WORD_MAX_ &&
	       (r->word == FILES_FAILED) == (r->err.code != ERR_NONE) &&
	       (unsigned)r->err.code < ERR_CODE_MAX_ && (unsigned)r->err.id < ERRID_MAX_;
}

/* ---- what is placed -------------------------------------------------------------- */

struct put_head {
	uint32_t where, mode, path_len, data_len;
};

void files_put_add(struct buf *b, const struct files_put *p)
{
	const struct put_head h = {p->where, p->mode, (uint32_t)p->path_len,
				   (uint32_t)p->data_len};

	buf_add(b, &h, sizeof(h));
	buf_add(b, p->path, p->path_len);
	buf_addc(b, '\0');
	buf_add(b, p->data, p->data_len);
	buf_addc(b, '\0');
}

/* len bytes and a NUL behind them. NULL: they are not there. */
static const char *take_data(struct wire *r, uint32_t len)
{
	const char *s = len < r->left ? wire_bytes(r, (size_t)len + 1) : NULL;

	return s && s[len] == '\0' ? s : NULL;
}

/* The same without a NUL in between. */
static const char *take_text(struct wire *r, uint32_t len)
{
	const char *s = take_data(r, len);

	return s && strlen(s) == len ? s : NULL;
}

int files_put_next(struct wire *r, struct files_put *ret)
{
	struct put_head h;

	if (!r->left)
		return 0;
	if (!wire_take(r, &h, sizeof(h)) || h.where >= FILES_WHERE_MAX_ ||
	    (h.mode & ~0755u))
		return -1;
	*ret = (struct files_put){.where = (enum files_where)h.where,
				  .mode = h.mode,
				  .path_len = h.path_len,
				  .data_len = h.data_len};
	ret->path = take_text(r, h.path_len);
	ret->data = ret->path ? take_data(r, h.data_len) : NULL;
	return ret->data ? 1 : -1;
}

/* ---- what was harvested ------------------------------------------------------------ */

struct harvest_head {
	uint64_t refused_total, held_total;
	uint32_t kept, refused, held;
};

struct item_head {
	uint64_t size;
	uint32_t n, path_len, why_len, class_len;
	char sha256[SHA256_HEX_SIZE];
};

static uint32_t length(const char *s)
{
	return s ? (uint32_t)strlen(s) : 0;
}

static void write_string(struct buf *b, const char *s)
{
	buf_adds(b, s ? s : "");
	buf_addc(b, '\0');
}

static void write_list(struct buf *b, const struct harvest_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct harvest_item *item = &l->item[i];
		struct item_head h = {.size = item->size,
				      .n = item->n,
				      .path_len = length(item->path),
				      .why_len = length(item->why),
				      .class_len = length(item->class)};

		memcpy(h.sha256, item->sha256, sizeof(h.sha256));
		buf_add(b, &h, sizeof(h));
		write_string(b, item->path);
		write_string(b, item->why);
		write_string(b, item->class);
	}
}

void files_harvest_write(struct buf *b, const struct harvest *h)
{
	const struct harvest_head head = {.refused_total = h->refused_total,
					  .held_total = h->held_total,
					  .kept = (uint32_t)h->kept.n,
					  .refused = (uint32_t)h->refused.n,
					  .held = (uint32_t)h->held.n};

	buf_add(b, &head, sizeof(head));
	write_list(b, &h->kept);
	write_list(b, &h->refused);
	write_list(b, &h->held);
}

static bool is_sha256(const char hex[SHA256_HEX_SIZE])
{
	return hex[SHA256_HEX_SIZE - 1] == '\0' &&
	       strspn(hex, "0123456789abcdef") == SHA256_HEX_SIZE - 1;
}

static char *copy_unless_empty(const char *s)
{
	return *s ? xstrdup(s) : NULL;
}

/* sealed: it has a copy. What is kept has a class and no reason, the others the reverse. */
static bool read_item(struct wire *r, bool sealed, bool kept, struct harvest_item *ret)
{
	const char *path, *why, *class;
	struct item_head h;

	if (!wire_take(r, &h, sizeof(h)) || h.path_len >= HARVEST_NAMED_MAX ||
	    (kept && h.path_len > HARVEST_PATH_MAX) || h.why_len > WHY_MAX ||
	    h.class_len > CLASS_MAX || (h.why_len > 0) == kept ||
	    (h.class_len > 0) != kept || (sealed && !is_sha256(h.sha256)))
		return false;
	path = take_text(r, h.path_len);
	why = path ? take_text(r, h.why_len) : NULL;
	class = why ? take_text(r, h.class_len) : NULL;
	if (!class)
		return false;
	*ret = (struct harvest_item){.path = xstrdup(path),
				     .why = copy_unless_empty(why),
				     .class = copy_unless_empty(class),
				     .size = h.size,
				     .n = h.n};
	if (sealed)
		memcpy(ret->sha256, h.sha256, sizeof(ret->sha256));
	return true;
}

static bool read_list(struct wire *r, uint32_t n, bool sealed, bool kept,
		      struct harvest_list *ret)
{
	ret->item = xcalloc((size_t)n + 1, sizeof(*ret->item));
	ret->cap = (size_t)n + 1;
	while (ret->n < n && read_item(r, sealed, kept, &ret->item[ret->n]))
		ret->n++;
	return ret->n == n;
}

int files_harvest_read(const char *data, size_t len, struct harvest *ret, struct err *err)
{
	struct wire r = {.at = data, .left = len};
	struct harvest_head h;

	*ret = (struct harvest){.walk = NULL};
	if (wire_take(&r, &h, sizeof(h)) && h.kept <= ARTIFACTS_MAX &&
	    h.refused <= HARVEST_LISTED_MAX && h.held <= HARVEST_LISTED_MAX &&
	    h.refused <= h.refused_total && h.held <= h.held_total &&
	    read_list(&r, h.kept, true, true, &ret->kept) &&
	    read_list(&r, h.refused, false, false, &ret->refused) &&
	    read_list(&r, h.held, true, false, &ret->held) && wire_is_done(&r)) {
		ret->refused_total = (size_t)h.refused_total;
		ret->held_total = (size_t)h.held_total;
		return 0;
	}
	harvest_done(ret);
	return err_set(err, ERR_UPSTREAM, "a file worker's list of artifacts is none");
}
