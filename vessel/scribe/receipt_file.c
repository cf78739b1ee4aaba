/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * See receipt_file.h. The text comes from anybody. It is read from its first byte to the last by what
 * must stand there, and each string is written again and compared, so that there is nothing to choose.
 */
#include "vessel/scribe/receipt_file.h"
#include "common/cleanup.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A string in JSON may be six times as long as what it says. */
#define STRING_MAX (6 * AUDIT_LINE_MAX + 2)
#define NUMBER_MAX 20

struct cursor {
	const char *p, *end;
	bool bad, is_cut;
};

static bool at_end(struct cursor *c)
{
	if (!c->bad && c->p == c->end)
		c->bad = c->is_cut = true;
	return c->bad;
}

static void literal(struct cursor *c, const char *s)
{
	for (; *s && !at_end(c); s++)
		if (*c->p++ != *s)
			c->bad = true;
}

/* \n, \t, \", \\ and \uXXXX are what we write. */
static void escaped(struct cursor *c, struct buf *out)
{
	char hex[5] = "", utf8[4];
	uint64_t cp = 0;

	if (at_end(c))
		return;
	switch (*c->p++) {
	case 'n':
		buf_addc(out, '\n');
		return;
	case 't':
		buf_addc(out, '\t');
		return;
	case '"':
	case '\\':
		buf_addc(out, c->p[-1]);
		return;
	case 'u':
		break;
	default:
		c->bad = true;
		return;
	}
	for (size_t i = 0; i < 4 && !at_end(c); i++)
		hex[i] = *c->p++;
	if (!c->bad && strspn(hex, "0123456789abcdef") == 4)
		cp = strtoul(hex, NULL, 16);
	else
		c->bad = true;
	if (!c->bad)
		buf_add(out, utf8, utf8_put((uint32_t)cp, utf8));
}

/* What it says goes behind what out has. */
static void string(struct cursor *c, struct buf *out)
{
	const char *begin = c->p;
	size_t was = out->len;
	cleanup_buf struct buf again;
	struct jsonw w;

	literal(c, "\"");
	while (!at_end(c) && *c->p != '"') {
		if (*c->p == '\\') {
			c->p++;
			escaped(c, out);
		} else {
			buf_addc(out, *c->p++);
		}
		if (out->len - was > STRING_MAX)
			c->bad = true;
	}
	literal(c, "\"");
	if (c->bad)
		return;
	buf_init(&again, STRING_MAX);
	jsonw_init(&w, &again);
	jsonw_strn(&w, out->data ? out->data + was : "", out->len - was);
	if (!buf_ok(out) || !buf_ok(&again) || again.len != (size_t)(c->p - begin) ||
	    memcmp(again.data, begin, again.len) != 0)
		c->bad = true;
}

static void number(struct cursor *c, uint64_t *ret)
{
	char digits[NUMBER_MAX + 1], again[NUMBER_MAX + 1];
	size_t n = 0;

	while (!at_end(c) && *c->p >= '0' && *c->p <= '9' && n < NUMBER_MAX)
		digits[n++] = *c->p++;
	digits[n] = '\0';
	*ret = 0;
	if (c->bad)
		return;
	if (parse_u64(digits, 1, INT64_MAX, ret, NULL) < 0 ||
	    str_fmt(again, sizeof(again), "%llu", (unsigned long long)*ret) < 0 ||
	    !str_eq(again, digits))
		c->bad = true;
}

static void hash(struct cursor *c, struct merkle_hash *ret)
{
	cleanup_buf struct buf b;

	buf_init(&b, STRING_MAX);
	string(c, &b);
	if (!c->bad && sha256_hex_parse(buf_str(&b), ret->b, NULL) < 0)
		c->bad = true;
}

static void path(struct cursor *c, struct merkle_proof *ret)
{
	literal(c, "[");
	while (!at_end(c) && *c->p != ']') {
		if (ret->n > 0)
			literal(c, ",");
		if (ret->n == ARRAY_SIZE(ret->hash))
			c->bad = true;
		if (c->bad)
			return;
		hash(c, &ret->hash[ret->n++]);
	}
	literal(c, "]");
}

/* As they stand in the file "seals", one behind the other. */
static void keys(struct cursor *c, struct buf *ret)
{
	bool first = true;

	literal(c, "[");
	while (!at_end(c) && *c->p != ']') {
		if (!first)
			literal(c, ",");
		first = false;
		string(c, ret);
		buf_addc(ret, '\n');
	}
	literal(c, "]");
}

static int read_members(struct receipt_file *r, const char *text, size_t len,
			struct err *err)
{
	struct cursor c = {.p = text, .end = text + len};
	cleanup_buf struct buf genesis;

	buf_init(&genesis, STRING_MAX);
	literal(&c, "{\"proof\":\"inclusion\",\"seq\":");
	number(&c, &r->seq);
	literal(&c, ",\"line\":");
	string(&c, &r->line);
	literal(&c, ",\"leaf\":");
	hash(&c, &r->leaf);
	literal(&c, ",\"path\":");
	path(&c, &r->path);
	literal(&c, ",\"checkpoint\":");
	string(&c, &r->note);
	buf_addc(&r->note, '\n');
	literal(&c, ",\"genesis\":");
	string(&c, &genesis);
	literal(&c, ",\"keys\":");
	keys(&c, &r->keys);
	literal(&c, "}\n");
	if (!c.bad && (c.p != c.end || !buf_ok(&r->note) || !buf_ok(&r->keys) ||
		       str_copy(r->genesis, sizeof(r->genesis), buf_str(&genesis)) < 0))
		c.bad = true;
	if (!c.bad)
		return 0;
	r->verdict = c.is_cut ? AUDIT_TRUNCATED : AUDIT_UNKNOWN;
	return err_set_id(err, ERRID_AUDIT_RECEIPT, "%s at byte %zu",
			  c.is_cut ? "it breaks off" : "it is not as it was written,",
			  (size_t)(c.p - text));
}

/* ---- whose key -------------------------------------------------------------- */

static int refuse(struct receipt_file *r, enum audit_verdict verdict, const char *why,
		  struct err *err)
{
	r->verdict = verdict;
	return err_set_id(err, ERRID_AUDIT_RECEIPT, "%s", why);
}

/*
 * From the pinned key to the one of the checkpoint's epoch, each signed by the one before. A key speaks for its
 * epoch and for nothing else: whoever has today's could sign any tree, so what it signs begins where the key
 * before it ended, and a record from before that is not its to vouch for.
 */
struct key {
	uint64_t epoch;
	uint8_t public[ED25519_PUBLIC_SIZE];
	/* the seal that made it the key */
	uint64_t size;
	char time[RFC3339_SIZE];
	/* records before it that another key vouches for: none, where keys begin */
	uint64_t before;
};
struct trust {
	const uint8_t *pin;
	bool is_ours; /* the keys that began last are the pinned one's */
	bool has_begun, has_found;
	struct key now, found;
};

static void take_key(struct trust *t, const struct receipt_file *r)
{
	if (t->now.epoch != r->seal.epoch)
		return;
	t->found = t->now;
	t->has_found = true;
}

static void begin_key(struct trust *t, const struct seal *s, uint64_t epoch,
		      const uint8_t public[ED25519_PUBLIC_SIZE], uint64_t before)
{
	t->now = (struct key){.epoch = epoch, .size = s->size, .before = before};
	memcpy(t->now.public, public, sizeof(t->now.public));
	memcpy(t->now.time, s->time, sizeof(t->now.time));
}

/* The last seal of the checkpoint's own epoch. */
static int check_end(struct receipt_file *r, const struct seal *s, struct err *err)
{
	if (s->epoch == r->seal.epoch &&
	    (r->seal.size > s->size || strcmp(r->seal.time, s->time) > 0))
		return refuse(r, AUDIT_TAMPERED,
			      "the checkpoint is younger than the end of its key", err);
	return 0;
}

static int follow(struct trust *t, struct receipt_file *r, const struct seal *s,
		  struct err *err)
{
	/* after a restore keys begin anew: those of another pin are nobody's here */
	if (s->has_genesis) {
		t->is_ours = memcmp(s->genesis, t->pin, ED25519_PUBLIC_SIZE) == 0;
		if (t->is_ours && t->has_begun)
			return refuse(r, AUDIT_UNKNOWN, "its keys begin twice", err);
		t->has_begun |= t->is_ours;
		begin_key(t, s, s->epoch, s->genesis, 0);
	}
	if (!t->is_ours)
		return 0;
	if (s->epoch != t->now.epoch)
		return refuse(r, AUDIT_UNSEALED, "a key between two epochs is left out",
			      err);
	if (!str_eq(s->log.s, r->seal.log.s))
		return refuse(r, AUDIT_TAMPERED, "its keys are of another log", err);
	if (!seal_is_of(s, t->now.public))
		return refuse(r, AUDIT_TAMPERED,
			      "a key that the one before it did not sign", err);
	take_key(t, r);
	if (!s->has_next)
		return 0;
	if (check_end(r, s, err) < 0)
		return -1;
	begin_key(t, s, s->epoch + 1, s->next, s->size);
	take_key(t, r);
	return 0;
}

/* What a key of that epoch can vouch for. */
static int check_checkpoint(struct receipt_file *r, const struct key *k, struct err *err)
{
	if (!seal_is_of(&r->seal, k->public))
		return refuse(r, AUDIT_TAMPERED,
			      "the key of its epoch did not sign the checkpoint", err);
	if (r->seal.size < k->size || strcmp(r->seal.time, k->time) < 0)
		return refuse(r, AUDIT_TAMPERED,
			      "the checkpoint is older than the key that signed it", err);
	if (r->seq <= k->before)
		return refuse(r, AUDIT_UNSEALED,
			      "its record is older than the key of its checkpoint, which "
			      "cannot vouch for it",
			      err);
	return 0;
}

static int check_keys(struct receipt_file *r, const uint8_t *pin, struct err *err)
{
	struct trust t = {.pin = pin};
	const char *at = r->keys.data;
	size_t left = r->keys.len, len;

	for (; left > 0; at += len, left -= len) {
		struct seal s = {0};

		len = seal_length(at, left);
		if (seal_parse(at, len, &s, err) < 0 || !(s.has_genesis || s.has_next))
			return refuse(r, AUDIT_UNKNOWN, "a key that is none", err);
		if (follow(&t, r, &s, err) < 0)
			return -1;
	}
	if (!t.has_begun)
		return refuse(r, AUDIT_TAMPERED,
			      "its keys do not begin with the one of --pin", err);
	if (!t.has_found)
		return refuse(r, AUDIT_UNSEALED,
			      "no key leads from the one of --pin to its checkpoint",
			      err);
	return check_checkpoint(r, &t.found, err);
}

/* ---- what it proves ---------------------------------------------------------- */

static int check_record(struct receipt_file *r, struct err *err)
{
	struct merkle_hash leaf;

	merkle_leaf(buf_str(&r->line), r->line.len, &leaf);
	if (!merkle_hash_eq(&leaf, &r->leaf))
		return refuse(r, AUDIT_TAMPERED, "the record is not the one of its hash",
			      err);
	if (!merkle_includes(&r->seal.root, r->seal.size, &leaf, r->seq - 1, &r->path))
		return refuse(r, AUDIT_TAMPERED,
			      "the checkpoint does not vouch for the record", err);
	return 0;
}

/* It is the log's own line by now, in which no text of others has a quote that is not escaped. */
static int find_receipt(struct receipt_file *r, struct err *err)
{
	static const char begin[] = "\"event\":\"" RECEIPT_EVENT "\",",
			  mark[] = ",\"unmapped\":";
	const char *line = buf_str(&r->line), *members, *at;
	size_t n;

	if (audit_line_parse(line, r->line.len, &r->head, &members, err) < 0) {
		r->verdict = AUDIT_UNKNOWN;
		return -1;
	}
	n = r->line.len - (size_t)(members - line);
	if (r->head.seq != r->seq || !str_eq(r->head.log.s, r->seal.log.s))
		return refuse(r, AUDIT_TAMPERED, "a record of another place or log", err);
	at = memmem(members, n, mark, sizeof(mark) - 1);
	if (!str_eq(r->head.prod, "vessel") || n < sizeof(begin) ||
	    memcmp(members, begin, sizeof(begin) - 1) != 0 || !at)
		return refuse(r, AUDIT_UNKNOWN,
			      "the record that it proves is no job's receipt", err);
	r->receipt = at + sizeof(mark) - 1;
	/* without the brace that ends the record */
	r->receipt_len = (size_t)(line + r->line.len - 1 - r->receipt);
	return 0;
}

int receipt_file_judge(const char *text, size_t len,
		       const uint8_t pin[ED25519_PUBLIC_SIZE], struct receipt_file *ret,
		       struct err *err)
{
	char pinned[SEAL_TEXT32];

	*ret = (struct receipt_file){.verdict = AUDIT_UNKNOWN};
	buf_init(&ret->line, AUDIT_LINE_MAX);
	buf_init(&ret->note, SEAL_MAX);
	buf_init(&ret->keys, RECEIPT_FILE_MAX);
	seal_text32(pin, pinned);
	if (read_members(ret, text, len, err) < 0)
		return -1;
	if (seal_parse(buf_str(&ret->note), ret->note.len, &ret->seal, err) < 0)
		return refuse(ret, AUDIT_UNKNOWN, "its checkpoint is none", err);
	if (!str_eq(pinned, ret->genesis))
		return refuse(ret, AUDIT_TAMPERED,
			      "its keys do not begin with the one of --pin", err);
	if (check_keys(ret, pin, err) < 0 || check_record(ret, err) < 0 ||
	    find_receipt(ret, err) < 0)
		return -1;
	ret->verdict = AUDIT_OK;
	return 0;
}

int receipt_file_read(const char *name, char **ret_text, size_t *ret_len, struct err *err)
{
	cleanup_close int fd =
		open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	cleanup_free char *text = NULL;
	struct stat st;
	size_t len = 0, size;
	ssize_t n = 1;

	if (fd < 0 && errno == ELOOP)
		return err_set_id(err, ERRID_CORE_FILE_KIND,
				  "'%.200s' is a symbolic link", name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "'%.200s'", name);
	if (!S_ISREG(st.st_mode))
		return err_set_id(err, ERRID_CORE_FILE_KIND,
				  "'%.200s' is not a regular file", name);
	if ((uint64_t)st.st_size > RECEIPT_FILE_MAX)
		return err_set_id(err, ERRID_CORE_TOO_LARGE,
				  "'%.200s' has more than %zu bytes", name,
				  RECEIPT_FILE_MAX);
	size = (size_t)st.st_size;
	text = xmalloc(size + 1);
	while (len < size && n > 0) {
		n = read(fd, text + len, size - len);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			return err_sys(err, "read '%.200s'", name);
		else
			len += (size_t)n;
	}
	*ret_text = TAKE_PTR(text);
	*ret_len = len;
	return 0;
}

void receipt_file_done(struct receipt_file *r)
{
	buf_done(&r->line);
	buf_done(&r->note);
	buf_done(&r->keys);
}
