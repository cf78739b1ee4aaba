/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * The body of git-receive-pack, before its pack. See git.h.
 */
#include "common/cleanup.h"
#include "vessel/gate/git/git.h"
#include "vessel/gate/git/inflate.h"
#include "vessel/gate/git/pkt.h"

#include <string.h>

#define REF_MAX_BYTES 1024
#define WORD_MAX_BYTES 256
#define OID_DIGITS 40
#define COMMANDS_MAX_BYTES ((size_t)1 << 20)

struct push {
	struct git_words *words;
	bool is_first, sends; /* an object has to come with it */
};

static int refuse(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_GIT_REQUEST, "a push: %s", why);
}

static struct pkt_line cut(struct pkt_line *l, size_t n)
{
	struct pkt_line head = {l->s, n};

	l->s += n;
	l->len -= n;
	return head;
}

/* Those that ask for more bytes beside the pack (signed pushes, options) are not among them. */
static bool is_capability(struct pkt_line l)
{
	static const char *const words[] = {"report-status", "report-status-v2",
					    "side-band-64k", "quiet",
					    "atomic",	     "object-format=sha1"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (pkt_is(l, words[i]))
			return true;
	return (pkt_skip(&l, "agent=") || pkt_skip(&l, "session-id=")) &&
	       pkt_is_word(l, WORD_MAX_BYTES);
}

static int take_capabilities(struct push *p, struct pkt_line l, struct err *err)
{
	while (l.len > 0) {
		const char *blank = memchr(l.s, ' ', l.len);
		struct pkt_line one = cut(&l, blank ? (size_t)(blank - l.s) : l.len);

		if (l.len > 0)
			(void)cut(&l, 1); /* the blank */
		if (one.len == 0)
			continue;
		if (!is_capability(one))
			return refuse(err, "a capability that is not let through");
		buf_add(&p->words->text, one.s, one.len);
		buf_addc(&p->words->text, '\n');
	}
	return 0;
}

static bool take_id(struct push *p, struct pkt_line *l, bool *ret_is_zero)
{
	struct pkt_line id;

	if (l->len <= OID_DIGITS || l->s[OID_DIGITS] != ' ')
		return false;
	id = cut(l, OID_DIGITS);
	(void)cut(l, 1);
	if (!pkt_is_oid(id))
		return false;
	*ret_is_zero = strspn(id.s, "0") >= OID_DIGITS;
	buf_add(&p->words->ids, id.s, id.len);
	return true;
}

/* "OLD NEW REF", and behind the first one a NUL and capabilities. */
static int take_command(struct push *p, struct pkt_line l, struct err *err)
{
	const char *nul = p->is_first ? memchr(l.s, '\0', l.len) : NULL;
	struct pkt_line command = cut(&l, nul ? (size_t)(nul - l.s) : l.len);
	bool is_new, is_gone;

	if (!take_id(p, &command, &is_new) || !take_id(p, &command, &is_gone) ||
	    !pkt_is_word(command, REF_MAX_BYTES))
		return refuse(err, "a line that is no command");
	p->sends |= !is_gone;
	buf_add(&p->words->text, command.s, command.len);
	buf_addc(&p->words->text, '\n');
	p->is_first = false;
	if (l.len > 0)
		(void)cut(&l, 1); /* the NUL */
	return take_capabilities(p, l, err);
}

static bool take_shallow(struct push *p, struct pkt_line l)
{
	if (!pkt_skip(&l, "shallow ") || !pkt_is_oid(l))
		return false;
	buf_add(&p->words->ids, l.s, l.len);
	return true;
}

static int read_commands(struct push *p, struct pkt_reader *r, struct err *err)
{
	enum pkt_kind kind;
	struct pkt_line l;

	for (;;) {
		if (pkt_next(r, &kind, &l.s, &l.len, err) < 0)
			return -1;
		if (kind == PKT_FLUSH)
			return 0;
		if (kind != PKT_LINE)
			return refuse(err, "commands without their end");
		if (!(p->is_first && take_shallow(p, l)) && take_command(p, l, err) < 0)
			return -1;
	}
}

int git_read_push(const void *data, size_t len, struct git_words *ret,
		  const void **ret_pack, size_t *ret_pack_len, struct err *err)
{
	cleanup_git_words struct git_words w = {0};
	struct pkt_reader r;
	struct push p = {.words = &w, .is_first = true};

	buf_init(&w.text, COMMANDS_MAX_BYTES);
	buf_init(&w.ids, COMMANDS_MAX_BYTES);
	*ret = (struct git_words){0};
	*ret_pack = NULL;
	*ret_pack_len = 0;
	if (git_plain(&data, &len, &w.plain, err) < 0)
		return -1;
	r = (struct pkt_reader){.at = data, .left = len};
	if (read_commands(&p, &r, err) < 0)
		return -1;
	if (!p.sends && r.left > 0)
		return refuse(err, "a pack that no command needs");
	if (!buf_ok(&w.text) || !buf_ok(&w.ids))
		return refuse(err, "too many commands");
	if (p.sends) {
		*ret_pack = r.at;
		*ret_pack_len = r.left;
	}
	*ret = w;
	w = (struct git_words){0};
	return 0;
}
