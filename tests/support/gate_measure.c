/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate over many texts, for tests/support/python/gate_corpus.py: records on stdin, each a
 * line "KIND LENGTH..." with the bytes behind it, one line of JSON for each on stdout, at the
 * latest when it is told to write what it has.
 *	scan N		a text of N bytes
 *	split N M	one text in two parts, of N and M bytes
 *	push N		the body of a push of git's
 *	fetch N		of a fetch
 *	term N		register N bytes as a term (answers {})
 *	canary N	plant N bytes (answers {})
 *	flush		write the answers now (has none itself)
 */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/private.h"
#include <errno.h>

#define LINE_MAX_BYTES 128

static struct gate_canary canary[GATE_CANARIES_MAX];
static size_t n_canaries;

static char *read_bytes(size_t n)
{
	char *b = xmalloc(n + 1);

	if (fread(b, 1, n, stdin) != n) {
		(void)fputs("gate_measure: the input ends early\n", stderr);
		exit(EXIT_FAILURE);
	}
	b[n] = '\0';
	return b;
}

static void write_finding(struct jsonw *w, const struct gate_finding *f)
{
	char hex[2 * GATE_MAC_SIZE + 1];

	hex[0] = '\0';
	for (unsigned i = 0; i < GATE_MAC_SIZE; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", f->mac[i]);
	jsonw_obj(w);
	jsonw_kstr(w, "family", gate_family_info(f->family)->name);
	jsonw_kstr(w, "rule", f->rule);
	jsonw_ku64(w, "severity", (uint64_t)(f->severity * 1000 + 0.5));
	jsonw_ku64(w, "part", f->part);
	jsonw_ku64(w, "offset", f->offset);
	jsonw_ku64(w, "len", f->len);
	jsonw_ku64(w, "depth", f->depth);
	jsonw_kbool(w, "split", f->is_split);
	jsonw_kstr(w, "mac", hex);
	jsonw_obj_end(w);
}

/* Of this process: the machine may be busy with something else. */
static uint64_t cpu_usec(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) < 0)
		abort();
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void scan(struct gate *g, const struct gate_part *parts, size_t n)
{
	static struct gate_report r;
	const struct gate_input in = {.parts = parts,
				      .n_parts = n,
				      .canaries = canary,
				      .n_canaries = n_canaries};
	uint64_t t = cpu_usec();
	struct buf out;
	struct jsonw w;

	gate_scan(g, &in, &r);
	t = cpu_usec() - t;
	buf_init(&out, (size_t)1 << 20);
	jsonw_init(&w, &out);
	jsonw_obj(&w);
	jsonw_ku64(&w, "score", (uint64_t)(r.score * 1000 + 0.5));
	jsonw_kstr(&w, "verdict", gate_verdict_name(r.verdict));
	jsonw_ku64(&w, "usec", t);
	jsonw_key(&w, "findings");
	jsonw_arr(&w);
	for (size_t i = 0; i < r.n; i++)
		write_finding(&w, &r.finding[i]);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	(void)puts(buf_str(&out));
	buf_done(&out);
}

static void scan_git(struct gate *g, size_t n, enum gate_part_kind kind)
{
	cleanup_free char *x = read_bytes(n);
	const struct gate_part part = {.data = x, .len = n, .kind = kind};

	scan(g, &part, 1);
}

static void scan_record(struct gate *g, size_t a, size_t b, bool two)
{
	cleanup_free char *x = read_bytes(a);
	cleanup_free char *y = two ? read_bytes(b) : NULL;
	const struct gate_part parts[] = {{.data = x, .len = a}, {.data = y, .len = b}};

	scan(g, parts, two ? 2 : 1);
}

static void add_term(struct gate *g, struct gate_private *p, size_t n)
{
	cleanup_free char *text = read_bytes(n);
	struct err err = ERR_INIT;
	char name[32];
	uint64_t id;

	(void)snprintf(name, sizeof(name), "term %zu", gate_private_count(p));
	if (gate_private_add(p, n > PRIVATE_TERM_MAX_BYTES ? PRIVATE_FILE : PRIVATE_TERM,
			     name, text, n, 0, &id, &err) < 0) {
		(void)fprintf(stderr, "gate_measure: %s\n", err.msg);
		exit(EXIT_FAILURE);
	}
	gate_set_private(g, p);
	(void)puts("{}");
}

int main(void)
{
	const struct gate_config cfg = {.portal_threshold = 0.4,
					.forbidden_threshold = 0.7};
	cleanup_gate struct gate *g = NULL;
	cleanup_private struct gate_private *p = gate_private_new();
	struct err err = ERR_INIT;
	char line[LINE_MAX_BYTES], kind[16];

	if (gate_new(&cfg, &g, &err) < 0) {
		(void)fprintf(stderr, "gate_measure: %s\n", err.msg);
		return EXIT_FAILURE;
	}
	while (fgets(line, sizeof(line), stdin)) {
		size_t a = 0, b = 0;
		int n = sscanf(line, "%15s %zu %zu", kind, &a, &b);

		if (n == 1 && strcmp(kind, "flush") == 0)
			(void)fflush(stdout);
		else if (n == 2 && strcmp(kind, "scan") == 0)
			scan_record(g, a, 0, false);
		else if (n == 2 && strcmp(kind, "push") == 0)
			scan_git(g, a, GATE_PART_GIT_PUSH);
		else if (n == 2 && strcmp(kind, "fetch") == 0)
			scan_git(g, a, GATE_PART_GIT_FETCH);
		else if (n == 3 && strcmp(kind, "split") == 0)
			scan_record(g, a, b, true);
		else if (n == 2 && strcmp(kind, "term") == 0)
			add_term(g, p, a);
		else if (n == 2 && strcmp(kind, "canary") == 0 &&
			 n_canaries < GATE_CANARIES_MAX) {
			canary[n_canaries].data = read_bytes(a);
			canary[n_canaries++].len = a;
			(void)puts("{}");
		} else {
			(void)fprintf(stderr, "gate_measure: what is '%s'?\n", line);
			return EXIT_FAILURE;
		}
	}
	for (size_t i = 0; i < n_canaries; i++)
		free((void *)(uintptr_t)canary[i].data);
	return EXIT_SUCCESS;
}
