/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych-audit.
 * lych-audit: reads the audit log and nothing else (lych-audit(1)). `verify` judges it, `proof`
 * makes a proof for somebody who does not have it, `receipt` judges one where there is no log.
 */
#include "common/args/args.h"
#include "common/cleanup.h"
#include "common/crypto/sha256.h"
#include "common/fs.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "common/proto.h"
#include "common/str.h"
#include "vessel/scribe/audit_proof.h"
#include "vessel/scribe/receipt_file.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define KEPT_MAX ((size_t)64 << 20)
#define KNOWN_MAX 64
#define ANCHOR_FILES_MAX 8

struct audit_args {
	const char *command, *dir, *kept_file;
	bool json, has_pin;
	uint8_t pin[ED25519_PUBLIC_SIZE];
	uint64_t known[KNOWN_MAX];
	size_t n_known;
	const char *anchor[ANCHOR_FILES_MAX];
	size_t n_anchors;
	struct audit_question question;
};

static const char *const verdicts[] = {
	[AUDIT_OK] = "ok",
	[AUDIT_TAMPERED] = "tampered",
	[AUDIT_TRUNCATED] = "truncated",
	[AUDIT_UNSEALED] = "unsealed",
	[AUDIT_UNKNOWN] = "unknown",
};

static const char *const words[] = {
	[AUDIT_TAMPERED] = "TAMPERED",
	[AUDIT_TRUNCATED] = "TRUNCATED",
	[AUDIT_UNSEALED] = "UNSEALED",
	[AUDIT_UNKNOWN] = "cannot tell",
};

static void genesis_of(const struct audit_reading *r, char ret[SEAL_TEXT32])
{
	ret[0] = '\0';
	if (r->met)
		seal_text32(r->seals.genesis, ret);
}

static void print_seals(const struct audit_reading *r, struct jsonw *w)
{
	char genesis[SEAL_TEXT32];

	genesis_of(r, genesis);
	jsonw_ku64(w, "sealed", r->sealed);
	jsonw_ku64(w, "checkpoints", r->met);
	jsonw_kstr(w, "sealed_at", r->met ? r->newest.time : NULL);
	jsonw_kstr(w, "genesis", r->met ? genesis : NULL);
	jsonw_ku64(w, "sealed_from", r->seals.began + 1);
	jsonw_kbool(w, "pinned", r->pin != NULL);
	jsonw_ku64(w, "clock_back_seq", r->clock_back);
	jsonw_ku64(w, "unsealed_mark", r->mark_at);
}

static void print_anchors(const struct audit_reading *r, struct jsonw *w)
{
	jsonw_key(w, "anchors");
	jsonw_arr(w);
	for (size_t i = 0; i < r->n_anchors; i++) {
		const struct anchor_reader *a = &r->anchor[i];

		jsonw_obj(w);
		jsonw_kstr(w, "file", a->file);
		jsonw_kstr(w, "found", a->was_judged ? anchor_flaw_name(a->flaw) : NULL);
		jsonw_ku64(w, "checkpoints", a->n);
		jsonw_ku64(w, "newest", a->newest);
		jsonw_obj_end(w);
	}
	jsonw_arr_end(w);
}

static void print_json(const struct audit_reading *r, const struct err *err)
{
	cleanup_buf struct buf b;
	struct jsonw w;

	buf_init(&b, (size_t)4 << 20);
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "verdict", verdicts[r->verdict]);
	jsonw_kstr(&w, "log", r->chain.log.s);
	jsonw_ku64(&w, "records", r->chain.seq - 1);
	jsonw_kstr(&w, "head", r->chain.prev);
	jsonw_ku64(&w, "segments", r->segments);
	jsonw_ku64(&w, "torn_bytes", r->torn_bytes);
	if (r->verdict == AUDIT_TAMPERED && r->bad_seq)
		jsonw_ku64(&w, "first_bad_seq", r->bad_seq);
	print_seals(r, &w);
	jsonw_kstr(&w, "detail", err->msg);
	print_anchors(r, &w);
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

static void print_text(const struct audit_reading *r, const struct err *err)
{
	char genesis[SEAL_TEXT32];

	genesis_of(r, genesis);
	if (r->verdict != AUDIT_OK) {
		(void)printf("%s  %s: %s\n", words[r->verdict], err_text(err), err->msg);
		return;
	}
	(void)printf("ok  log %s, %llu records in %llu segments, head %s%s\n"
		     "    sealed up to record %llu by %llu checkpoints, the last of %s\n"
		     "    its keys begin with %s, %s\n",
		     r->chain.log.s, (unsigned long long)(r->chain.seq - 1),
		     (unsigned long long)r->segments, r->chain.prev,
		     r->torn_bytes ? ", one unfinished line" : "",
		     (unsigned long long)r->sealed, (unsigned long long)r->met,
		     r->newest.time, genesis,
		     r->pin ? "as --pin says"
			    : "compare that with what you wrote down (--pin)");
	for (size_t i = 0; i < r->n_anchors; i++)
		(void)printf("    %s has %zu of these, up to record %llu\n",
			     r->anchor[i].file, r->anchor[i].n,
			     (unsigned long long)r->anchor[i].newest);
	if (r->seals.began)
		(void)printf(
			"    sealed from record %llu on; those before it are as they "
			"were then\n",
			(unsigned long long)r->seals.began + 1);
	if (r->clock_back)
		(void)printf("    warning: seq %llu: the wall clock had been set back\n",
			     (unsigned long long)r->clock_back);
}

/* The last one that a file has: a copy of one checkpoint, with or without the empty line behind
 * it, or of all until then. */
static int read_kept(const char *file, struct seal *ret, struct err *err)
{
	cleanup_free char *path = realpath(file, NULL), *text = NULL;
	char *slash = path ? strrchr(path, '/') : NULL;
	cleanup_close int dirfd = -1;
	cleanup_buf struct buf b;
	const char *at;
	size_t left, len;

	buf_init(&b, KEPT_MAX + 1);
	if (!slash)
		return err_sys(err, "%s", file);
	*slash = '\0';
	dirfd = open(*path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_sys(err, "%s", file);
	if (fs_read_file(dirfd, slash + 1, KEPT_MAX, &text, &left, err) < 0)
		return err_wrap(err, "%s", file);
	buf_add(&b, text, left);
	buf_addc(&b, '\n');
	*ret = (struct seal){0};
	for (at = b.data, left = b.len; (len = seal_length(at, left));
	     at += len, left -= len)
		if (seal_parse(at, len, ret, err) < 0)
			return err_wrap(err, "%s", file);
	return *ret->log.s ? 0 : err_set(err, ERR_INVALID, "%s: no checkpoint", file);
}

static struct audit_reading reading_of(const struct audit_args *a)
{
	return (struct audit_reading){.pin = a->has_pin ? a->pin : NULL,
				      .known = a->known,
				      .n_known = a->n_known};
}

static void close_anchors(struct audit_reading *r)
{
	for (size_t i = 0; i < r->n_anchors; i++)
		anchor_reader_done(&r->anchor[i]);
}

static int verify(const struct audit_args *a)
{
	struct anchor_reader anchor[ANCHOR_FILES_MAX];
	struct audit_reading r = reading_of(a);
	struct err err = ERR_INIT;
	struct seal kept;

	r.anchor = anchor;
	/* before the log: what they have is in it by then */
	if (a->kept_file && read_kept(a->kept_file, &kept, &err) < 0) {
		(void)args_fail("lych-audit", &err);
		return AUDIT_UNKNOWN;
	}
	for (; r.n_anchors < a->n_anchors; r.n_anchors++)
		anchor_reader_open(&anchor[r.n_anchors], a->anchor[r.n_anchors]);
	r.kept = a->kept_file ? &kept : NULL;
	if (audit_read(&r, a->dir, &err) == 0)
		r.verdict = AUDIT_OK;
	if (a->json)
		print_json(&r, &err);
	else
		print_text(&r, &err);
	audit_reading_done(&r);
	close_anchors(&r);
	return args_flush("lych-audit") == 0 ? (int)r.verdict : AUDIT_UNKNOWN;
}

/* A proof is an object, whoever asks; why there is none goes where errors go. */
static int prove(const struct audit_args *a)
{
	struct audit_reading r = reading_of(a);
	cleanup_buf struct buf proof = {0};
	struct err err = ERR_INIT;

	if (audit_prove(&r, a->dir, &a->question, &proof, &err) == 0) {
		(void)puts(buf_str(&proof));
	} else {
		(void)args_fail("lych-audit", &err);
		if (r.verdict == AUDIT_OK)
			r.verdict = AUDIT_UNKNOWN;
	}
	audit_reading_done(&r);
	return args_flush("lych-audit") == 0 ? (int)r.verdict : AUDIT_UNKNOWN;
}

static void print_receipt(const struct audit_args *a, const struct receipt_file *r,
			  const struct err *err)
{
	cleanup_buf struct buf b = {.max = RECEIPT_FILE_MAX};
	uint8_t sum[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];
	struct jsonw w;

	sha256_of(r->receipt ? r->receipt : "", r->receipt_len, sum);
	hex_encode(sum, sizeof(sum), hex);
	if (!a->json && r->verdict == AUDIT_OK) {
		(void)printf("ok  record %llu of log %s, of %s\n"
			     "    sealed by a checkpoint of %llu records, of %s\n"
			     "    receipt sha256:%s\n%.*s\n",
			     (unsigned long long)r->seq, r->head.log.s, r->head.ts,
			     (unsigned long long)r->seal.size, r->seal.time, hex,
			     (int)r->receipt_len, r->receipt);
		return;
	}
	if (!a->json) {
		(void)printf("%s  %s: %s\n", words[r->verdict], err_text(err), err->msg);
		return;
	}
	jsonw_init(&w, &b);
	jsonw_obj(&w);
	jsonw_kstr(&w, "verdict", verdicts[r->verdict]);
	jsonw_kstr(&w, "error_code", err_is_set(err) ? err_text(err) : NULL);
	jsonw_kstr(&w, "detail", err->msg);
	if (r->verdict == AUDIT_OK) {
		jsonw_kstr(&w, "log", r->head.log.s);
		jsonw_ku64(&w, "seq", r->seq);
		jsonw_kstr(&w, "at", r->head.ts);
		jsonw_ku64(&w, "sealed", r->seal.size);
		jsonw_kstr(&w, "sealed_at", r->seal.time);
		jsonw_kstr(&w, "receipt_sha256", hex);
		jsonw_key(&w, "receipt");
		jsonw_raw(&w, r->receipt, r->receipt_len);
	}
	jsonw_obj_end(&w);
	(void)puts(buf_str(&b));
}

static int judge_receipt(const struct audit_args *a)
{
	struct receipt_file r = {.verdict = AUDIT_UNKNOWN};
	cleanup_free char *text = NULL;
	struct err err = ERR_INIT;
	size_t len = 0;

	if (receipt_file_read(a->dir, &text, &len, &err) == 0 &&
	    receipt_file_judge(text, len, a->pin, &r, &err) == 0)
		r.verdict = AUDIT_OK;
	print_receipt(a, &r, &err);
	receipt_file_done(&r);
	return args_flush("lych-audit") == 0 ? (int)r.verdict : AUDIT_UNKNOWN;
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

static void check_question(const struct audit_args *a, const struct argp_state *state)
{
	const struct audit_question *q = &a->question;

	if (!a->command)
		refuse(state->name, "verify DIR, proof DIR, or receipt FILE");
	if (!a->dir)
		refuse_word(state,
			    str_eq(a->command, "receipt")
				    ? "it needs the file of a receipt"
				    : "it needs the directory of a log",
			    a->command);
	if (!str_eq(a->command, "proof") && (q->record || q->from || q->to))
		refuse(state->name, "--record, --from and --to are for proof");
	if (str_eq(a->command, "receipt")) {
		if (a->kept_file || a->n_anchors || a->n_known)
			refuse(state->name,
			       "--checkpoint, --anchor and --known are for a log");
		if (!a->has_pin)
			refuse(state->name,
			       "receipt needs --pin KEY: whoever made a log of their own "
			       "can write receipts of it");
	} else if (str_eq(a->command, "verify")) {
		return;
	} else if (a->kept_file || a->n_anchors) {
		refuse(state->name, "--checkpoint and --anchor are for verify");
	} else if ((q->record == 0) == (q->from == 0)) {
		refuse(state->name, "proof needs --record N or --from N");
	}
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct audit_args *a = state->input;
	uint64_t *number = key == 'r'	? &a->question.record
			   : key == 'f' ? &a->question.from
					: &a->question.to;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'p':
		if (seal_parse32(arg, a->pin, NULL) < 0)
			refuse_word(state, "--pin: not a public key of 44 characters",
				    arg);
		a->has_pin = true;
		return 0;
	case 'c':
		a->kept_file = arg;
		return 0;
	case 'a':
		if (a->n_anchors == ANCHOR_FILES_MAX)
			refuse_word(state, "more than 8 times --anchor", arg);
		a->anchor[a->n_anchors++] = arg;
		return 0;
	case 'k':
		if (a->n_known == KNOWN_MAX)
			refuse_word(state, "more than 64 times --known", arg);
		number = &a->known[a->n_known++];
		/* fall through */
	case 'r':
	case 'f':
	case 't':
		if (parse_u64(arg, 1, INT64_MAX, number, NULL) < 0)
			refuse_word(state, "not a number from 1 on", arg);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0 && !str_eq(arg, "verify") &&
		    !str_eq(arg, "proof") && !str_eq(arg, "receipt"))
			refuse_word(state,
				    "the commands are verify, proof and receipt, not",
				    arg);
		if (state->arg_num > 1)
			refuse_word(state, "one argument too many", arg);
		*(state->arg_num == 0 ? &a->command : &a->dir) = arg;
		return 0;
	case ARGP_KEY_END:
		check_question(a, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "answer in JSON", 0},
		{"pin", 'p', "KEY", 0,
		 "the public key with which the log's keys must begin, as it was printed",
		 0},
		{"checkpoint", 'c', "FILE", 0,
		 "verify: a checkpoint that was kept elsewhere must be in the log", 0},
		{"anchor", 'a', "FILE", 0,
		 "verify: each checkpoint of this anchor must be in the log; may come "
		 "again",
		 0},
		{"known", 'k', "N", 0,
		 "that record N tells of an unsealed end is known, and explained; may "
		 "come again",
		 0},
		{"record", 'r', "N", 0, "proof: that record N is in the log", 0},
		{"from", 'f', "N", 0,
		 "proof: that the log went on from its checkpoint of N records", 0},
		{"to", 't', "N", 0,
		 "proof: by the checkpoint of N records (the last one)", 0},
		{0},
	};
	static const struct argp argp = {
		options,
		parse_option,
		"verify DIR\nproof DIR\nreceipt FILE",
		"Check the audit log: its chain of hashes, and the signed checkpoints "
		"that "
		"seal it. Exit 0: it holds; 1: it was tampered with; 2: its end is "
		"missing; "
		"3: a checkpoint or a key is missing; 4: cannot tell. `receipt` checks "
		"the receipt of a job, which needs no log, by --pin.\v"
		"Examples:\n"
		"  lych-audit verify ~/.local/share/lychgate/audit\n"
		"  lych-audit proof ~/.local/share/lychgate/audit --record 1\n"
		"  lych-audit receipt job-1.receipt --pin KEY",
		NULL,
		NULL,
		NULL};
	static const struct args_voice voice = {refuse, args_flush};
	struct audit_args a = {0};
	struct err err = ERR_INIT;

	if (fs_fill_stdio(&err) < 0)
		return AUDIT_UNKNOWN;
	if (argc == 2 && str_eq(argv[1], "--version"))
		return args_version("lych-audit");
	args_name(argc, argv, "lych-audit");
	json_asked = args_have_flag(&argp, argc, argv, 0, "json");
	args_parse(&argp, argc, argv, 0, &a, &voice);
	if (str_eq(a.command, "receipt"))
		return judge_receipt(&a);
	return str_eq(a.command, "verify") ? verify(&a) : prove(&a);
}
