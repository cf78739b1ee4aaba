/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * The objects of git (gitformat-pack has how they come, git-cat-file what they are). See git.h.
 */
#include "common/cleanup.h"
#include "common/str.h"
#include "vessel/gate/git/git.h"
#include "vessel/gate/git/pkt.h"

#include <string.h>

#define OID_DIGITS 40

static int refuse(const struct pack_object *o, struct err *err)
{
	return err_set_id(err, ERRID_GIT_REQUEST, "the pack: a %s that is none",
			  pack_type_name(o->type));
}

static bool is_mode(struct pkt_line l)
{
	static const char *const modes[] = {"40000",  "100644", "100755",
					    "100664", "120000", "160000"};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (pkt_is(l, modes[i]))
			return true;
	return false;
}

/* "MODE NAME", a NUL, 20 bytes. */
static bool take_file(struct pkt_line *l, struct git_words *w)
{
	const char *nul = memchr(l->s, '\0', l->len);
	const char *blank = nul ? memchr(l->s, ' ', (size_t)(nul - l->s)) : NULL;
	char hex[OID_DIGITS + 1];
	struct pkt_line name;

	if (!blank || !is_mode((struct pkt_line){l->s, (size_t)(blank - l->s)}) ||
	    l->len - (size_t)(nul - l->s) <= SHA1_SIZE)
		return false;
	name = (struct pkt_line){blank + 1, (size_t)(nul - blank) - 1};
	if (name.len == 0 || memchr(name.s, '/', name.len))
		return false;
	buf_add(&w->text, name.s, name.len);
	buf_addc(&w->text, '\n');
	hex_encode(nul + 1, SHA1_SIZE, hex);
	buf_add(&w->ids, hex, OID_DIGITS);
	l->len -= (size_t)(nul - l->s) + 1 + SHA1_SIZE;
	l->s = nul + 1 + SHA1_SIZE;
	return true;
}

static bool read_tree(const struct pack_object *o, struct git_words *w)
{
	struct pkt_line l = {o->data, o->len};

	while (l.len > 0)
		if (!take_file(&l, w))
			return false;
	return true;
}

/* A line "NAME ID" at the beginning. */
static bool take_id(struct pkt_line *l, const char *name, struct git_words *w)
{
	struct pkt_line at = *l;

	if (!pkt_skip(&at, name) || at.len <= OID_DIGITS || at.s[OID_DIGITS] != '\n' ||
	    !pkt_is_oid((struct pkt_line){at.s, OID_DIGITS}))
		return false;
	buf_add(&w->ids, at.s, OID_DIGITS);
	*l = (struct pkt_line){at.s + OID_DIGITS + 1, at.len - OID_DIGITS - 1};
	return true;
}

static bool read_commit(const struct pack_object *o, struct git_words *w)
{
	struct pkt_line l = {o->data, o->len}, rest;

	if (!take_id(&l, "tree ", w))
		return false;
	while (take_id(&l, "parent ", w))
		;
	rest = l;
	buf_add(&w->text, l.s, l.len);
	return pkt_skip(&rest, "author ");
}

static bool read_tag(const struct pack_object *o, struct git_words *w)
{
	struct pkt_line l = {o->data, o->len}, rest;

	if (!take_id(&l, "object ", w))
		return false;
	rest = l;
	buf_add(&w->text, l.s, l.len);
	return pkt_skip(&rest, "type ");
}

static bool read_any(const struct pack_object *o, struct git_words *w)
{
	switch (o->type) {
	case PACK_COMMIT:
		return read_commit(o, w);
	case PACK_TREE:
		return read_tree(o, w);
	case PACK_TAG:
		return read_tag(o, w);
	case PACK_BLOB:
		break;
	}
	buf_add(&w->text, o->data, o->len);
	return true;
}

int git_read_object(const struct pack_object *o, struct git_words *ret, struct err *err)
{
	cleanup_git_words struct git_words w = {0};

	/* an id is twice as long in hexadecimal */
	buf_init(&w.text, o->len + 1);
	buf_init(&w.ids, 2 * o->len + 1);
	*ret = (struct git_words){0};
	if (!read_any(o, &w) || !buf_ok(&w.text) || !buf_ok(&w.ids))
		return refuse(o, err);
	*ret = w;
	w = (struct git_words){0};
	return 0;
}
