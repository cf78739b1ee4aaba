/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * The body of git-upload-pack. See git.h.
 */
#include "common/cleanup.h"
#include "vessel/gate/git/git.h"
#include "vessel/gate/git/inflate.h"
#include "vessel/gate/git/pkt.h"

#include <string.h>

#define REF_MAX_BYTES 1024
#define WORD_MAX_BYTES 256
#define DEPTH_MAX 0x7fffffff /* git's word for all of it: --unshallow */

void git_words_done(struct git_words *w)
{
	buf_done(&w->text);
	buf_done(&w->ids);
	buf_done(&w->numbers);
	buf_done(&w->plain);
}

static int refuse(struct err *err, const char *what, struct pkt_line l)
{
	/* of the job's own text only what is a word of the protocol, and short */
	return err_set_id(err, ERRID_GIT_REQUEST,
			  "%s: a line that git does not send (%zu bytes)", what, l.len);
}

static void add_word(struct git_words *w, struct pkt_line l)
{
	buf_add(&w->text, l.s, l.len);
	buf_addc(&w->text, '\n');
}

static bool take_oid(struct git_words *w, struct pkt_line l, const char *prefix)
{
	if (!pkt_skip(&l, prefix) || !pkt_is_oid(l))
		return false;
	buf_add(&w->ids, l.s, l.len);
	return true;
}

static bool take_word(struct git_words *w, struct pkt_line l, const char *prefix,
		      size_t max)
{
	if (!pkt_skip(&l, prefix) || !pkt_is_word(l, max))
		return false;
	add_word(w, l);
	return true;
}

static bool take_number(struct git_words *w, struct pkt_line l, const char *prefix,
			uint64_t max)
{
	if (!pkt_skip(&l, prefix) || !pkt_is_number(l, max))
		return false;
	buf_add(&w->numbers, l.s, l.len);
	buf_addc(&w->numbers, '\n');
	return true;
}

static bool is_one_of(struct pkt_line l, const char *const *words)
{
	for (; *words; words++)
		if (pkt_is(l, *words))
			return true;
	return false;
}

/* How deep, and what of it: the same in all versions. */
static bool take_depth(struct git_words *w, struct pkt_line l)
{
	return take_oid(w, l, "shallow ") || take_number(w, l, "deepen ", DEPTH_MAX) ||
	       take_number(w, l, "deepen-since ", INT64_MAX) ||
	       take_word(w, l, "deepen-not ", REF_MAX_BYTES) ||
	       take_word(w, l, "filter ", WORD_MAX_BYTES);
}

/* What a client says of itself. */
static bool take_agent(struct git_words *w, struct pkt_line l)
{
	return take_word(w, l, "agent=", WORD_MAX_BYTES) ||
	       take_word(w, l, "session-id=", WORD_MAX_BYTES) ||
	       pkt_is(l, "object-format=sha1") || pkt_is(l, "object-format=sha256");
}

/* ---- protocol 2 ---- */

static bool take_ls_refs(struct git_words *w, struct pkt_line l)
{
	static const char *const words[] = {"peel", "symrefs", "unborn", NULL};

	return is_one_of(l, words) || take_word(w, l, "ref-prefix ", REF_MAX_BYTES);
}

static bool take_fetch(struct git_words *w, struct pkt_line l)
{
	static const char *const words[] = {
		"done",		 "thin-pack",	    "no-progress",
		"include-tag",	 "ofs-delta",	    "sideband-all",
		"wait-for-done", "deepen-relative", NULL};

	return take_oid(w, l, "want ") || take_oid(w, l, "have ") || take_depth(w, l) ||
	       take_word(w, l, "want-ref ", REF_MAX_BYTES) || is_one_of(l, words);
}

static int read_v2(struct pkt_reader *r, struct pkt_line command, struct git_words *w,
		   struct err *err)
{
	bool is_fetch = pkt_is(command, "command=fetch"), in_arguments = false;
	enum pkt_kind kind;
	struct pkt_line l;

	if (!is_fetch && !pkt_is(command, "command=ls-refs"))
		return err_set_id(err, ERRID_GIT_REQUEST,
				  "a command other than ls-refs and fetch");
	for (;;) {
		if (pkt_next(r, &kind, &l.s, &l.len, err) < 0)
			return -1;
		if (kind == PKT_FLUSH)
			return 0;
		if (kind == PKT_END || (kind == PKT_DELIM && in_arguments))
			return err_set_id(err, ERRID_GIT_REQUEST,
					  "a command without its end");
		if (kind == PKT_DELIM)
			in_arguments = true;
		else if (!in_arguments && !take_agent(w, l))
			return refuse(err, "before a command's arguments", l);
		else if (in_arguments &&
			 !(is_fetch ? take_fetch(w, l) : take_ls_refs(w, l)))
			return refuse(err, "a command's arguments", l);
	}
}

/* ---- protocol 0 and 1 ---- */

static bool take_capability(struct git_words *w, struct pkt_line l)
{
	static const char *const words[] = {"multi_ack",     "multi_ack_detailed",
					    "no-done",	     "side-band",
					    "side-band-64k", "thin-pack",
					    "ofs-delta",     "no-progress",
					    "include-tag",   "deepen-since",
					    "deepen-not",    "deepen-relative",
					    "filter",	     NULL};

	return is_one_of(l, words) || take_agent(w, l);
}

/* "want ID", and of the first one what the client can do, with blanks between. */
static bool take_first_want(struct git_words *w, struct pkt_line l)
{
	const char *blank;
	struct pkt_line one = l;

	if (!pkt_skip(&l, "want "))
		return false;
	blank = memchr(l.s, ' ', l.len);
	one.len = blank ? (size_t)(blank - one.s) : one.len;
	if (!take_oid(w, one, "want "))
		return false;
	l.len -= blank ? (size_t)(blank - l.s) : l.len;
	for (l.s = blank; l.len > 0;) {
		/* at a blank */
		l.s++;
		l.len--;
		blank = memchr(l.s, ' ', l.len);
		one = (struct pkt_line){l.s, blank ? (size_t)(blank - l.s) : l.len};
		/* git writes one before the first and one behind some */
		if (one.len > 0 && !take_capability(w, one))
			return false;
		l.s += one.len;
		l.len -= one.len;
	}
	return true;
}

static int read_v0(struct pkt_reader *r, struct pkt_line first, struct git_words *w,
		   struct err *err)
{
	bool wants = true; /* until the first flush; then what the client has */
	enum pkt_kind kind;
	struct pkt_line l;

	if (!take_first_want(w, first))
		return refuse(err, "the first want", first);
	for (;;) {
		if (pkt_next(r, &kind, &l.s, &l.len, err) < 0)
			return -1;
		if (kind == PKT_END && !wants)
			return 0;
		if (kind == PKT_END || kind == PKT_DELIM)
			return err_set_id(err, ERRID_GIT_REQUEST,
					  "wants without their end");
		if (kind == PKT_FLUSH)
			wants = false;
		else if (wants && !take_oid(w, l, "want ") && !take_depth(w, l))
			return refuse(err, "what is wanted", l);
		else if (!wants && pkt_is(l, "done"))
			return 0;
		else if (!wants && !take_oid(w, l, "have "))
			return refuse(err, "what is there", l);
	}
}

/* ---- the whole ---- */

static int read_lines(const void *data, size_t len, struct git_words *w, struct err *err)
{
	struct pkt_reader r = {.at = data, .left = len};
	enum pkt_kind kind;
	struct pkt_line first, command;
	int done;

	if (pkt_next(&r, &kind, &first.s, &first.len, err) < 0)
		return -1;
	if (kind != PKT_LINE)
		return err_set_id(err, ERRID_GIT_REQUEST, "no command and no want");
	command = first;
	done = pkt_skip(&command, "command=") ? read_v2(&r, first, w, err)
					      : read_v0(&r, first, w, err);
	if (done < 0)
		return -1;
	if (r.left > 0)
		return err_set_id(err, ERRID_GIT_REQUEST,
				  "something stands behind its end");
	return buf_ok(&w->text) && buf_ok(&w->ids) && buf_ok(&w->numbers)
		       ? 0
		       : err_set_id(err, ERRID_GIT_REQUEST, "it is too long");
}

int git_read_fetch(const void *data, size_t len, struct git_words *ret, struct err *err)
{
	cleanup_git_words struct git_words w = {0};

	buf_init(&w.text, 2 * GIT_REQUEST_MAX_BYTES);
	buf_init(&w.ids, GIT_REQUEST_MAX_BYTES);
	buf_init(&w.numbers, GIT_REQUEST_MAX_BYTES);
	*ret = (struct git_words){0};
	if (git_plain(&data, &len, &w.plain, err) < 0 ||
	    read_lines(data, len, &w, err) < 0)
		return -1;
	*ret = w;
	w = (struct git_words){0};
	return 0;
}
