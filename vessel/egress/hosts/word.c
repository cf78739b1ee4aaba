/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress parent.
 * See word.h.
 */
#include "vessel/egress/hosts/word.h"

#include "common/mem.h"
#include "common/proto/wire.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>

#define SECRET_PREFIX "host_"
#define SECRET_MAX 64u
#define FIELD_MAX 64u
#define ADDRESS_MAX 64u
#define URL_MAX 1024u
#define PATH_MAX_BYTES 4096u
#define SMALL "abcdefghijklmnopqrstuvwxyz0123456789_"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

enum { WORD_BEGIN = 1, WORD_END };

/* ---- writing ---- */

static void put(struct buf *out, const char *text)
{
	wire_put_sized(out, 2, text ? text : "", text ? strlen(text) : 0);
}

int host_word_add(struct buf *out, const struct host_word *word, struct err *err)
{
	const struct egress_portal *h = &word->host;

	wire_put_uint(out, word->is_end ? WORD_END : WORD_BEGIN, 1);
	wire_put_uint(out, word->place, 1);
	wire_put_uint(out, word->turn, 4);
	if (!word->is_end) {
		wire_put_uint(out, word->same, 1);
		put(out, h->name);
		put(out, h->url);
		put(out, h->path);
		put(out, h->secret);
		put(out, h->field);
		put(out, h->user);
		wire_put_uint(out, h->n_addresses, 1);
		for (size_t i = 0; i < h->n_addresses; i++)
			put(out, h->addresses[i]);
	}
	return buf_ok(out) ? 0
			   : err_set_id(err, ERRID_EGRESS_REQUEST,
					"credential %s is too long", h->name);
}

/* ---- reading ---- */

static bool is_of(const char *s, const char *letters)
{
	return *s && strspn(s, letters) == strlen(s);
}

/* Visible ASCII. */
static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

/* The worker reads the file of that name, and sends what it holds to that place: no other file, and
 * nothing that ends a line. */
static bool is_host(const struct egress_portal *h)
{
	bool may =
		is_of(h->name, SMALL) && str_starts(h->secret, SECRET_PREFIX) &&
		is_of(h->secret + strlen(SECRET_PREFIX), SMALL) && *h->url &&
		is_plain(h->url) && is_plain(h->path) && (!*h->path || *h->path == '/') &&
		(!h->field || is_of(h->field, LETTERS "-")) &&
		(!h->user || is_of(h->user, LETTERS "._@+-")) && !(h->field && h->user);

	for (size_t i = 0; may && i < h->n_addresses; i++)
		may = *h->addresses[i] && is_plain(h->addresses[i]);
	return may;
}

static const char *text_or_none(struct wire *w, size_t max, char **strings)
{
	const char *s = wire_string(w, 2, max, strings);

	return *s ? s : NULL;
}

static bool read_host(struct wire *w, struct host_word *word, char *strings)
{
	struct egress_portal *h = &word->host;

	word->same = (unsigned)wire_uint(w, 1);
	h->name = wire_string(w, 2, EGRESS_NAME_SIZE - 1, &strings);
	h->url = wire_string(w, 2, URL_MAX, &strings);
	h->path = wire_string(w, 2, PATH_MAX_BYTES, &strings);
	h->secret = wire_string(w, 2, SECRET_MAX, &strings);
	h->field = text_or_none(w, FIELD_MAX, &strings);
	h->user = text_or_none(w, FIELD_MAX, &strings);
	h->n_addresses = (size_t)wire_uint(w, 1);
	if (h->n_addresses > EGRESS_ADDRESSES_MAX)
		return false;
	for (size_t i = 0; i < h->n_addresses; i++)
		word->addresses[i] = wire_string(w, 2, ADDRESS_MAX, &strings);
	h->addresses = word->addresses;
	h->dialect = HEADERS_FETCH;
	h->is_host = true;
	return wire_is_done(w) && is_host(h);
}

struct host_word *host_word_parse(const void *data, size_t len)
{
	struct wire w = {.at = data, .left = len};
	struct host_word *word = xnew(struct host_word);
	unsigned kind = (unsigned)wire_uint(&w, 1);
	bool may;

	word->place = (unsigned)wire_uint(&w, 1);
	word->turn = (uint32_t)wire_uint(&w, 4);
	word->is_end = kind == WORD_END;
	word->memory = xmalloc(len + 1);
	may = word->is_end	   ? wire_is_done(&w)
	      : kind == WORD_BEGIN ? read_host(&w, word, word->memory)
				   : false;
	if (may && len <= HOST_WORD_MAX_BYTES)
		return word;
	host_word_free(word);
	return NULL;
}

void host_word_free(struct host_word *word)
{
	if (!word)
		return;
	free(word->memory);
	free(word);
}
