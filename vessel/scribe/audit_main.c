/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * lych-audit: reads the audit log and nothing else (lych-audit(1)). First form: `verify`
 * recomputes the chain of hashes from the first line; signatures and anchors are not
 * there yet, so a log that was cut at its end or rewritten as a whole passes.
 */
#include "common/args/args.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include "vessel/scribe/line.h"
#include <fcntl.h>
#include <stdio.h>

enum verdict { CHAIN_OK = 0, CHAIN_TAMPERED = 1, CHAIN_UNKNOWN = 4 };
/* Each start of a vessel is one. */
#define STREAMS_MAX 32768

struct audit_args {
	const char *dir;
	bool json;
};

struct stream {
	char prod[AUDIT_PROD_MAX];
	struct uuid id;
	uint64_t last;
};

/* What was read: the chain, and the producers' own numbers. */
struct reading {
	struct audit_chain chain;
	uint64_t segments, torn_bytes;
	struct stream *streams;
	size_t n_streams;
	uint64_t bad_seq; /* of a producer's wrong number: the chain has gone on */
};

static int count_line(const struct audit_head *h, const char *members UNUSED,
		      size_t len UNUSED, void *arg, struct err *err)
{
	struct reading *r = arg;
	size_t i = r->n_streams;
	struct stream *s;

	while (i > 0 && !(str_eq(r->streams[i - 1].id.s, h->stream.s) &&
			  str_eq(r->streams[i - 1].prod, h->prod)))
		i--;
	if (i == 0) {
		if (r->n_streams == STREAMS_MAX)
			return err_set(err, ERR_LIMIT, "more than %d streams",
				       STREAMS_MAX);
		r->streams =
			xreallocarray(r->streams, r->n_streams + 1, sizeof(*r->streams));
		r->streams[r->n_streams] = (struct stream){.id = h->stream};
		i = ++r->n_streams;
		if (str_copy(r->streams[i - 1].prod, AUDIT_PROD_MAX, h->prod) < 0)
			return err_set(err, ERR_INTERNAL, "a producer's name");
	}
	/* what speaks is looked for at the end: there it is found at once */
	struct stream found = r->streams[i - 1];

	r->streams[i - 1] = r->streams[r->n_streams - 1];
	s = &r->streams[r->n_streams - 1];
	*s = found;
	if (h->pseq != s->last + 1) {
		r->bad_seq = h->seq;
		return err_set_id(err, ERRID_AUDIT_CHAIN,
				  "seq %llu: number %llu of %s follows %llu",
				  (unsigned long long)h->seq, (unsigned long long)h->pseq,
				  h->prod, (unsigned long long)s->last);
	}
	s->last = h->pseq;
	return 0;
}

static int read_all(const char *dir, struct reading *r, struct err *err)
{
	cleanup_close int dirfd =
		open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t first, last, end = 0, size = 0;

	if (dirfd < 0)
		return err_sys(err, "%s", dir);
	if (audit_segments(dirfd, &first, &last, err) < 0)
		return -1;
	if (!last)
		return err_set(err, ERR_NOT_FOUND, "%s: no log", dir);
	if (first != 1)
		return err_set_id(err, ERRID_AUDIT_CHAIN, "seq 1: segment 1 is missing");
	for (uint64_t n = 1; n <= last; n++) {
		if (audit_segment_read(dirfd, n, &r->chain, count_line, r, &end, &size,
				       err) < 0)
			return -1;
		r->segments++;
		if (n < last && end != size)
			return err_set_id(
				err, ERRID_AUDIT_CHAIN,
				"seq %llu: segment %llu ends in the middle of a line",
				(unsigned long long)r->chain.seq, (unsigned long long)n);
	}
	/* a line that its writer has not finished, or never will */
	r->torn_bytes = size - end;
	return 0;
}

static void print_json(const struct reading *r, enum verdict v, const struct err *err)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, (size_t)4 << 20);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "verdict",
		   v == CHAIN_OK	 ? "ok"
		   : v == CHAIN_TAMPERED ? "tampered"
					 : "unknown");
	jsonw_kstr(&w, "log", r->chain.log.s);
	jsonw_ku64(&w, "records", r->chain.seq - 1);
	jsonw_kstr(&w, "head", r->chain.prev);
	jsonw_ku64(&w, "segments", r->segments);
	jsonw_ku64(&w, "torn_bytes", r->torn_bytes);
	if (v == CHAIN_TAMPERED)
		jsonw_ku64(&w, "first_bad_seq", r->bad_seq ? r->bad_seq : r->chain.seq);
	jsonw_kstr(&w, "detail", err->msg);
	jsonw_key(&w, "streams");
	jsonw_arr(&w);
	for (size_t i = 0; i < r->n_streams; i++) {
		jsonw_obj(&w);
		jsonw_kstr(&w, "prod", r->streams[i].prod);
		jsonw_kstr(&w, "stream", r->streams[i].id.s);
		jsonw_ku64(&w, "last", r->streams[i].last);
		jsonw_obj_end(&w);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&b));
}

static void print_text(const struct reading *r, enum verdict v, const struct err *err)
{
	if (v == CHAIN_TAMPERED)
		(void)printf("TAMPERED  %s: %s\n", err_text(err), err->msg);
	else if (v == CHAIN_UNKNOWN)
		(void)printf("cannot tell  %s: %s\n", err_text(err), err->msg);
	else
		(void)printf("ok  log %s, %llu records in %llu segments, head %s%s\n"
			     "    the chain only: no signature or anchor was checked\n",
			     r->chain.log.s, (unsigned long long)(r->chain.seq - 1),
			     (unsigned long long)r->segments, r->chain.prev,
			     r->torn_bytes ? ", one unfinished line" : "");
}

static int verify(const struct audit_args *a)
{
	struct reading r = {0};
	struct err err = ERR_INIT;
	enum verdict v = CHAIN_OK;

	audit_chain_init(&r.chain);
	if (read_all(a->dir, &r, &err) < 0)
		v = err.id == ERRID_AUDIT_CHAIN ? CHAIN_TAMPERED : CHAIN_UNKNOWN;
	if (a->json)
		print_json(&r, v, &err);
	else
		print_text(&r, v, &err);
	free(r.streams);
	return args_flush("lych-audit") == 0 ? (int)v : CHAIN_UNKNOWN;
}

static bool json_asked;

/* Wrong usage, as args_refuse() tells it, or as an object. */
NORETURN static void refuse(const char *command, const char *text)
{
	const struct err_info *what = err_info(ERRID_CORE_USAGE);
	cleanup_buf struct buf b = {.max = 65536};
	struct jsonw w;

	if (!json_asked)
		args_refuse(command, text);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "error_code", what->text);
	jsonw_kstr(&w, "title", what->title);
	jsonw_kstr(&w, "detail", text);
	jsonw_kstr(&w, "hint", "See 'lych-audit --help'.");
	jsonw_obj_end(&w);
	(void)fprintf(stderr, "%s\n", buf_str(&b));
	exit(ARGS_EXIT_USAGE);
}

NORETURN static void refuse_word(const struct argp_state *state, const char *why,
				 const char *word)
{
	cleanup_free char *text = xasprintf("%s: '%s'", why, word);

	refuse(state->name, text);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct audit_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0 && !str_eq(arg, "verify"))
			refuse_word(state, "the only command is verify, not", arg);
		if (state->arg_num > 1)
			refuse_word(state, "one argument too many", arg);
		if (state->arg_num == 1)
			a->dir = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->dir)
			refuse(state->name, "verify DIR");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{0},
	};
	static const struct argp argp = {
		options,
		parse_option,
		"verify DIR",
		"Recompute the audit log's chain of hashes. Exit 0: it holds; 1: it was "
		"tampered with; 4: cannot tell.\v"
		"Examples:\n"
		"  lych-audit verify ~/.local/share/lychgate/audit",
		NULL,
		NULL,
		NULL};
	static const struct args_voice voice = {refuse, args_flush};
	struct audit_args a = {0};
	struct err err = ERR_INIT;

	if (fs_fill_stdio(&err) < 0)
		return CHAIN_UNKNOWN;
	if (argc == 2 && str_eq(argv[1], "--version"))
		return args_version("lych-audit");
	args_name(argc, argv, "lych-audit");
	json_asked = args_have_flag(&argp, argc, argv, 0, "json");
	args_parse(&argp, argc, argv, 0, &a, &voice);
	return verify(&a);
}
