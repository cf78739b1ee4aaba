/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the gate worker.
 * The privatization gate: how private is a text that is about to leave, where, and why.
 *
 * This header is the judgement alone, a pure function of the text, the rules
 * (vessel/gate/rules/rules.def) and what the user registered (private.h). It runs in the gate
 * worker (worker.h); the dispatcher asks it through vessel/broker/gate/client.h.
 *
 * Bytes become layers: the text itself, its folded form (homoglyphs, zero-width
 * characters, escapes undone), what its runs of base64, hex, gzip ... decode to, three
 * deep. Each layer is searched by one Vectorscan pass; PCRE2 and a validator judge the
 * windows around the hits. A finding's span is always in the part as it was given.
 *
 * Fails closed: too large, too long, too deep, too many: score 1.0, family "unreadable".
 * Monotone: a further part, or further text set apart by a newline, never lowers a score, but for
 * an encoded run that goes on to the end and takes that text for its own (fuzz_gate_scan).
 */
#ifndef LYCH_VESSEL_GATE_GATE_H
#define LYCH_VESSEL_GATE_GATE_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/id.h"
#include "vessel/gate/media/media.h"
#include "vessel/gate/rules/families.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATE_PARTS_MAX 65536
#define GATE_INPUT_MAX_BYTES ((size_t)8 << 20) /* of all parts together */
#define GATE_FINDINGS_MAX 4096		       /* more: unreadable */
#define GATE_CARRIED_MAX                                                                 \
	256 /* pictures and the like in one question: further ones are read as text */
#define GATE_JUDGED_MAX (GATE_FINDINGS_MAX + GATE_CARRIED_MAX)
#define GATE_MAC_SIZE 8
#define GATE_TAIL_BYTES 256 /* remembered of what a job sent before, per destination */
#define GATE_TAILS_MAX 8
#define GATE_CANARIES_MAX 32
#define GATE_CANARY_MIN_BYTES 12
#define GATE_CANARY_MAX_BYTES 256
#define GATE_DEPTH_MAX 3
#define GATE_NOTE_SIZE 160
#define GATE_UNPACKED_MAX_BYTES (2 * GATE_INPUT_MAX_BYTES) /* of a push */

/* What a part is. Only text can be rewritten: what is found elsewhere refuses. */
enum gate_part_kind {
	GATE_PART_TEXT,	  /* a string's value, a body: decoded, as a reader sees it */
	GATE_PART_NAME,	  /* an object's key */
	GATE_PART_NUMBER, /* a number as it is written */
	GATE_PART_URL,
	GATE_PART_HEADER, /* "name: value" */
	/* What the other side itself gave to this job, and gets back: only what may never
	 * leave counts in it, registered terms and canaries. */
	GATE_PART_ECHO,
	/* The body of a request of git's: the last part of its question. It is unpacked and read as
	 * what it is (git/git.h), and nothing in it is rewritten. */
	GATE_PART_GIT_FETCH,
	GATE_PART_GIT_PUSH, /* with a pack, of which each object is looked at */
	GATE_PART_KIND_MAX_
};
static inline bool gate_part_is_git(enum gate_part_kind k)
{
	return k == GATE_PART_GIT_FETCH || k == GATE_PART_GIT_PUSH;
}

struct gate_part {
	const char *data; /* any bytes */
	size_t len;
	enum gate_part_kind kind;
	/* Parts of one tag are read on from one to the next (and from the request before):
	 * a secret that is cut into several is seen. A string's tag is that of its key. */
	uint32_t tag;
};

/* The end of what went to the same place before. */
struct gate_tail {
	uint32_t tag;
	uint32_t len;
	char data[GATE_TAIL_BYTES];
};

struct gate_canary {
	const char *data;
	size_t len;
	bool is_planted; /* GATE_PLANTED, else GATE_CANARY */
};

struct gate_input {
	const struct gate_part *parts;
	size_t n_parts;
	const struct gate_tail *tails;
	size_t n_tails;
	const struct gate_canary *canaries;
	size_t n_canaries;
	double carry; /* the job's bucket (vessel/broker/gate/job.h): adds up with this; 0 without */
};

struct gate_finding {
	enum gate_family family;
	double severity; /* 0.0 .. 1.0 */
	uint32_t part;
	uint32_t offset, len; /* bytes of that part; len > 0 */
	uint8_t depth;	      /* layers of encoding that had to be undone */
	bool is_split; /* goes on from an earlier part or request: not rewritable */
	/* HMAC-SHA256 of the found text under the instance's key, cut: tells whether two
	 * findings are of one text, and no more. */
	uint8_t mac[GATE_MAC_SIZE];
	const char *rule; /* "github_token" */
};

/*
 * The end of a part behind the last thing in it that was judged as a whole: a picture, a sound, a run
 * of random bytes. Only that is read on from, in this request and the next: the letters of such
 * a thing, with the first word behind them, would be a secret that nobody wrote.
 */
struct gate_judged {
	uint32_t part, left; /* bytes */
};

enum gate_verdict { GATE_PASS, GATE_ANONYMISE, GATE_REFUSE };
const char *gate_verdict_name(enum gate_verdict v);

struct gate_report {
	double score; /* 0.0 public .. 1.0 private */
	enum gate_verdict verdict;
	size_t n;
	struct gate_finding finding[GATE_FINDINGS_MAX]; /* by part and offset */
	size_t n_judged;
	struct gate_judged judged[GATE_JUDGED_MAX]; /* by part */
	/* Of a request of git's: why it could not be read, or in what of it the findings are;
	 * printable ASCII, and no text of the request. */
	char note[GATE_NOTE_SIZE];
	/* Of a push: what was unpacked of it; all that may be, where it could not be read. */
	size_t unpacked;
};

struct gate_config {
	double portal_threshold, forbidden_threshold; /* 0 < portal <= forbidden <= 1 */
	uint8_t mac_key[SHA256_SIZE];
	usec_t deadline_usec; /* of CPU time for one scan, so that a busy machine refuses nothing; 0: 2 s */
	bool refuses[GATE_MEDIUM_MAX_];
};

/* In whoever starts the workers, before it does: would they be able to load the compiled rules?
 * ERRID_GATE_RULES. */
MUST_CHECK int gate_rules_check(struct err *err);

struct gate;
struct gate_private;

/* Loads the compiled rules. ERRID_GATE_RULES: they do not fit this machine or the
 * installed Vectorscan. */
MUST_CHECK int gate_new(const struct gate_config *cfg, struct gate **ret,
			struct err *err);
void gate_free(struct gate *g);
static inline void gate_free_p(struct gate **g)
{
	gate_free(*g);
}
#define cleanup_gate __attribute__((cleanup(gate_free_p)))

/* What the user registered; borrowed until the next call or gate_free. NULL: nothing. */
void gate_set_private(struct gate *g, const struct gate_private *p);

/* Called between the steps of a question, so that whoever watches sees that it goes on; NULL: nobody. */
void gate_on_progress(struct gate *g, void (*fn)(void *arg), void *arg);

/* Never fails: what goes wrong is a score of 1.0. ret is large: not on a stack. */
void gate_scan(struct gate *g, const struct gate_input *in, struct gate_report *ret);

/*
 * The score of findings, without a bucket:
 *	max(max s, 1 - prod(1 - 0.5 s)), a text found several times counted once.
 */
double gate_score(const struct gate_finding *f, size_t n);
enum gate_verdict gate_judge(double score, double portal, double forbidden);

#endif
