/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher's side and a real worker in a process of its own; then liars in its place. */
#include "tests/unit/vessel/broker/gate/gate_rig.h"
#include "vessel/broker/gate/client.h"

#include "common/cleanup.h"
#include "common/fs.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "common/mem.h"
#include "vessel/gate/wire.h"
#include <signal.h>

#define TOKEN "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"

TestSuite(gate_client, .timeout = 120);

/* What the last answer said. */
static struct {
	unsigned n;
	enum gate_verdict verdict;
	enum err_id id;
	double score, score_after;
	bool has_canary, is_canary_replaced;
	char body[4096];
} heard;

static void on_answer(const struct gate_answer *a, void *arg)
{
	const struct json *request = arg;
	struct buf out;
	struct jsonw w;

	heard.n++;
	heard.verdict = a->verdict;
	heard.id = a->err ? a->err->id : ERRID_NONE;
	heard.score = a->score;
	heard.score_after = a->score_after;
	heard.has_canary = a->has_canary;
	heard.is_canary_replaced = a->is_canary_replaced;
	buf_init(&out, sizeof(heard.body));
	if (request) {
		jsonw_init(&w, &out);
		gate_parts_write_json(a->parts, 0, request, &w);
	} else if (a->parts->n) {
		buf_add(&out, a->parts->part[0].data, a->parts->part[0].len);
	}
	(void)snprintf(heard.body, sizeof(heard.body), "%s", buf_str(&out));
	buf_done(&out);
	loop_stop(loop, 0);
}

static const char *destination = "portal:x";

static void ask_parts(struct gate_job *job, struct gate_parts *p,
		      const struct json *request)
{
	struct gate_ask *a;
	struct err err = ERR_INIT;
	unsigned before = heard.n;

	cr_assert_eq(gate_client_ask(client, job, destination, p, on_answer,
				     (void *)(uintptr_t)request, &a, &err),
		     0, "%s", err.msg);
	cr_assert_eq(loop_run(loop, &err), 0, "%s", err.msg);
	cr_assert_eq(heard.n, before + 1);
}

static void ask(struct gate_job *job, const char *text)
{
	struct gate_parts *p = gate_parts_new();

	gate_parts_add(p, GATE_PART_TEXT, "content", text, strlen(text));
	ask_parts(job, p, NULL);
}

Test(gate_client, a_large_question_without_its_worker_is_refused, .init = begin,
     .fini = end)
{
	struct gate_parts *p = gate_parts_new();
	char *text = xmalloc(GATE_SMALL_BYTES + 1);
	struct gate_ask *a;
	struct err err = ERR_INIT;

	start_worker(gate_worker_main);
	cr_expect_not(gate_client_is_up(client));
	memset(text, 'x', GATE_SMALL_BYTES + 1);
	gate_parts_add(p, GATE_PART_TEXT, "content", text, GATE_SMALL_BYTES + 1);
	free(text);
	cr_expect_lt(gate_client_ask(client, NULL, "x", p, on_answer, NULL, &a, &err), 0);
	cr_expect_eq(err.id, ERRID_GATE_AWAY);
	ask(NULL, "small");
	cr_expect_eq(heard.verdict, GATE_PASS);
}

Test(gate_client, without_a_worker_nothing_passes, .init = begin, .fini = end)
{
	struct gate_parts *p = gate_parts_new();
	struct err err = ERR_INIT;
	struct gate_ask *a;

	gate_parts_add(p, GATE_PART_TEXT, "c", "hello", 5);
	cr_assert_lt(gate_client_ask(client, NULL, "x", p, on_answer, NULL, &a, &err), 0);
	cr_assert_eq(err.id, ERRID_GATE_AWAY);
}

Test(gate_client, refused_passed_anonymised_restored, .init = begin, .fini = end)
{
	static const char body[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
				   "\"content\":\"write to john.smith@corp.io today\"}]}";
	cleanup_gate_job struct gate_job *job = gate_job_new(&clock_real);
	cleanup_json struct json *request = NULL;
	struct gate_parts *p = gate_parts_new();
	struct gate_restore *r;
	struct buf out;

	start_worker(gate_worker_main);
	ask(job, "the key is " TOKEN);
	cr_assert_eq(heard.verdict, GATE_REFUSE);
	cr_assert_eq(heard.id, ERRID_GATE_PRIVATE);
	cr_assert_eq(heard.score, 1.0);
	ask(job, "nothing to see");
	cr_assert_eq(heard.verdict, GATE_PASS);
	cr_assert_eq(heard.id, ERRID_NONE);

	cr_assert_eq(json_parse(body, sizeof(body) - 1, 16, &request, NULL), 0);
	gate_parts_add_json(p, request);
	ask_parts(job, p, request);
	cr_assert_eq(heard.verdict, GATE_ANONYMISE);
	cr_assert_float_eq(heard.score, 0.4, 1e-9);
	cr_assert_lt(heard.score_after, 0.4);
	cr_assert_str_eq(heard.body, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
				     "\"content\":\"write to <EMAIL_1> today\"}]}");

	buf_init(&out, 4096);
	r = gate_restore_new(job, GATE_FORM_JSON);
	gate_restore_feed(r, "{\"t\":\"sent to <EMA", 18, &out);
	gate_restore_feed(r, "IL_1>\"}", 7, &out);
	gate_restore_end(r, &out);
	cr_assert_str_eq(buf_str(&out), "{\"t\":\"sent to john.smith@corp.io\"}");
	gate_restore_free(r);
	buf_done(&out);
	cr_assert_eq(gate_client_figures(client).anonymised, 1);
}

Test(gate_client, what_cannot_be_rewritten_is_refused, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *job = gate_job_new(&clock_real);
	struct gate_parts *p = gate_parts_new();

	start_worker(gate_worker_main);
	gate_parts_add(p, GATE_PART_URL, "url", "https://x.org/?to=john.smith@corp.io",
		       36);
	ask_parts(job, p, NULL);
	cr_assert_eq(heard.verdict, GATE_REFUSE);
	cr_assert_eq(heard.id, ERRID_GATE_MAP);
}

Test(gate_client, terms_and_canaries_reach_the_worker_without_a_restart, .init = begin,
     .fini = end)
{
	cleanup_gate_job struct gate_job *job = gate_job_new(&clock_real);
	cleanup_private struct gate_private *terms = gate_private_new();
	uint64_t id;

	start_worker(gate_worker_main);
	ask(job, "about Project Bluebird");
	cr_assert_eq(heard.verdict, GATE_PASS);
	cr_assert_eq(gate_private_add(terms, PRIVATE_TERM, "p", "project bluebird", 16, 0,
				      &id, NULL),
		     0);
	gate_client_set_private(client, terms);
	ask(job, "about Project Bluebird");
	cr_assert_eq(heard.score, 1.0);
	cr_assert_eq(gate_private_remove(terms, id, NULL), 0);
	gate_client_set_private(client, terms);
	ask(job, "about Project Bluebird");
	cr_assert_eq(heard.verdict, GATE_PASS);
	cr_assert_eq(gate_job_add_canary(job, "c4nary-0123456789", 17, NULL), 0);
	destination = "fetch";
	ask(job, "x c4nary-0123456789 x");
	cr_assert_eq(heard.verdict, GATE_REFUSE);
	cr_assert(heard.has_canary);
}

#define KEY "lych-Zq81mZ0pVw7Tn4cXaYb3"

/* To anybody but a portal, in any other form, at any other place, or beside something else. */
Test(gate_client, the_jobs_own_key_is_refused, .init = begin, .fini = end)
{
	static const char *const texts[] = {
		"bHljaC1acTgxbVowcFZ3N1RuNGNYYVliMw==",		 /* base64 */
		"3bYaXc4nT7wVp0Zm18qZ-hcyl",			 /* backwards */
		KEY " and bHljaC1acTgxbVowcFZ3N1RuNGNYYVliMw==", /* both */
		KEY " and " TOKEN,
	};
	cleanup_gate_job struct gate_job *job = gate_job_new(&clock_real);
	struct gate_parts *p = gate_parts_new();

	start_worker(gate_worker_main);
	cr_assert_eq(gate_job_add_canary(job, KEY, sizeof(KEY) - 1, NULL), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ask(job, texts[i]);
		cr_expect_eq(heard.verdict, GATE_REFUSE, "%s", texts[i]);
		cr_expect_eq(heard.score, 1.0, "%s", texts[i]);
		cr_expect(heard.has_canary, "%s", texts[i]);
	}
	gate_parts_add(p, GATE_PART_NAME, "k", KEY, sizeof(KEY) - 1);
	ask_parts(job, p, NULL);
	cr_expect_eq(heard.verdict, GATE_REFUSE);
	p = gate_parts_new();
	gate_parts_add(p, GATE_PART_TEXT, "k", KEY, 9);
	gate_parts_add(p, GATE_PART_TEXT, "k", KEY + 9, sizeof(KEY) - 10);
	ask_parts(job, p, NULL);
	cr_expect_eq(heard.verdict, GATE_REFUSE, "cut in two");
	destination = "fetch";
	ask(job, KEY);
	cr_expect_eq(heard.verdict, GATE_REFUSE);
	cr_expect(heard.has_canary && !heard.is_canary_replaced);
	ask(NULL, KEY); /* of no job it is a word */
	cr_expect_not(heard.has_canary);
}

Test(gate_client, the_jobs_own_key_in_a_conversation_is_replaced, .init = begin,
     .fini = end)
{
	cleanup_gate_job struct gate_job *job = gate_job_new(&clock_real);
	struct gate_restore *r;
	struct buf out;

	start_worker(gate_worker_main);
	cr_assert_eq(gate_job_add_canary(job, KEY, sizeof(KEY) - 1, NULL), 0);
	for (unsigned turn = 0; turn < 3; turn++) {
		ask(job,
		    "HOME=/work\nOPENAI_API_KEY=" KEY "\nANTHROPIC_API_KEY=" KEY "\n");
		cr_expect_eq(heard.verdict, GATE_ANONYMISE);
		cr_expect_str_eq(heard.body, "HOME=/work\nOPENAI_API_KEY=<CANARY_1>\n"
					     "ANTHROPIC_API_KEY=<CANARY_1>\n");
		cr_expect(heard.has_canary && heard.is_canary_replaced);
		cr_expect_lt(heard.score_after, 0.4);
	}
	/* and what else is private there */
	ask(job, KEY " of john.smith@corp.io");
	cr_expect_eq(heard.verdict, GATE_ANONYMISE);
	cr_expect_str_eq(heard.body, "<CANARY_1> of <EMAIL_1>");
	cr_expect(heard.is_canary_replaced);
	ask(job, "nothing to see");
	cr_expect_eq(heard.verdict, GATE_PASS);
	cr_expect_not(heard.has_canary || heard.is_canary_replaced);
	buf_init(&out, 256);
	r = gate_restore_new(job, GATE_FORM_TEXT);
	gate_restore_feed(r, "unset <CANARY_1>", 16, &out);
	gate_restore_end(r, &out);
	cr_expect_str_eq(buf_str(&out), "unset " KEY);
	gate_restore_free(r);
	buf_done(&out);
}

Test(gate_client, a_secret_over_two_requests_is_refused, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *job = gate_job_new(&clock_real);

	start_worker(gate_worker_main);
	ask(job, "first: ghp_zQWBuTSOoRi4A9");
	cr_assert_eq(heard.verdict, GATE_PASS);
	ask(job, "spHcVY5ncnsDkxkJ0mLq17 second");
	cr_assert_eq(heard.verdict, GATE_REFUSE);
	cr_assert_eq(heard.score, 1.0);
}

Test(gate_client, small_amounts_add_up, .init = begin, .fini = end)
{
	cleanup_gate_job struct gate_job *job = gate_job_new(&clock_real);
	unsigned passed = 0;
	char text[64];

	start_worker(gate_worker_main);
	for (unsigned i = 0; i < 20; i++) {
		(void)snprintf(text, sizeof(text), "host 81.2.69.%u is up", i + 10);
		ask(job, text);
		passed += heard.verdict == GATE_PASS;
	}
	cr_assert_gt(passed, 2);
	cr_assert_lt(passed, 8);
}

static int answer_nonsense(int fd, struct egress_pulse *pulse UNUSED, void *arg)
{
	char bytes[64];

	(void)arg;
	(void)!read(fd, bytes, sizeof(bytes));
	(void)!write(fd, "nonsense, sixteen bytes and more of it", 38);
	(void)!read(fd, bytes, sizeof(bytes));
	return 0;
}

static int die_at_once(int fd, struct egress_pulse *pulse UNUSED, void *arg)
{
	char bytes[64];

	(void)arg;
	(void)!read(fd, bytes, sizeof(bytes));
	return 0;
}

/* Says "public" of a part that does not exist, whatever is asked. */
static int answer_out_of_bounds(int fd, struct egress_pulse *pulse UNUSED, void *arg)
{
	static struct gate_report r = {.n = 1};
	struct buf out;
	char bytes[4096];

	(void)arg;
	r.finding[0] = (struct gate_finding){.part = 7, .len = 4, .rule = "card"};
	buf_init(&out, 65536);
	gate_wire_put_report(&out, 1, &r);
	(void)!read(fd, bytes, sizeof(bytes));
	if (fs_write_all(fd, out.data, out.len, NULL) < 0)
		return 1;
	(void)!read(fd, bytes, sizeof(bytes));
	return 0;
}

static void expect_away(worker_fn *liar)
{
	struct gate_parts *p = gate_parts_new();
	struct gate_ask *a;
	struct err err = ERR_INIT;

	start_worker(liar);
	gate_parts_add(p, GATE_PART_TEXT, "c", "hello", 5);
	if (gate_client_ask(client, NULL, "x", p, on_answer, NULL, &a, &err) == 0) {
		cr_assert_eq(loop_run(loop, NULL), 0);
		cr_assert_eq(heard.verdict, GATE_REFUSE);
		cr_assert_eq(heard.id, ERRID_GATE_AWAY);
		cr_assert_eq(heard.score, 1.0);
	}
	cr_assert_not(gate_client_is_up(client));
	cr_assert_eq(n_away, 1);
}

Test(gate_client, nonsense_is_a_refusal, .init = begin, .fini = end)
{
	expect_away(answer_nonsense);
}

Test(gate_client, a_worker_that_dies_is_a_refusal, .init = begin, .fini = end)
{
	expect_away(die_at_once);
}

Test(gate_client, a_span_outside_of_the_question_is_a_refusal, .init = begin, .fini = end)
{
	expect_away(answer_out_of_bounds);
}

/* ---- a worker that dies of what it reads ---- */

static job_id_t writes;

static bool read_all(int fd, char *out, size_t len)
{
	while (len > 0) {
		ssize_t n = read(fd, out, len);

		if (n <= 0)
			return false;
		out += n;
		len -= (size_t)n;
	}
	return true;
}

/* Reads up to a question, and notes what the test says. */
static int die_reading(int fd, struct egress_pulse *pulse, void *arg UNUSED)
{
	static char body[65536];
	char header[GATE_FRAME_HEADER];
	struct gate_frame f;

	while (read_all(fd, header, sizeof(header)) &&
	       gate_wire_header(header, sizeof(header), &f) > 0 &&
	       read_all(fd, body, f.len))
		if (f.type == GATE_F_SCAN)
			break;
	(void)reading_begin(egress_pulse_reading(pulse), writes, 3, READING_TEXTS);
	(void)raise(SIGKILL);
	return 1;
}

static void ask_and_die(job_id_t asks)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&clock_real);
	struct gate_parts *p = gate_parts_new();
	struct gate_ask *a;

	*gate_job_turn(j) = (struct gate_turn){.party = 1, .job = asks, .epoch = 3};
	cr_assert_eq(egress_pulse_new(&worker_pulse, NULL), 0);
	start_worker(die_reading);
	gate_parts_add(p, GATE_PART_TEXT, "c", "hello", 5);
	cr_assert_eq(gate_client_ask(client, j, "x", p, on_answer, NULL, &a, NULL), 0);
	cr_assert_eq(loop_run(loop, NULL), 0);
	cr_assert_eq(heard.id, ERRID_GATE_AWAY);
}

Test(gate_client, whose_a_dying_worker_read_is_told, .init = begin, .fini = end)
{
	writes = 7;
	ask_and_die(7);
	cr_assert_eq(n_died, 1u);
	cr_expect(reading_is_of(&died, 7, 3));
	cr_expect_eq(died.what, READING_TEXTS);
	egress_pulse_free(worker_pulse);
}

Test(gate_client, it_names_nobody_but_who_asked, .init = begin, .fini = end)
{
	writes = 8;
	ask_and_die(7);
	cr_expect_eq(n_died, 0u);
	egress_pulse_free(worker_pulse);
}

Test(gate_client, another_worker_takes_over, .init = begin, .fini = end)
{
	cleanup_private struct gate_private *terms = gate_private_new();
	int status;
	uint64_t id;

	cr_assert_eq(gate_private_add(terms, PRIVATE_TERM, "p", "project bluebird", 16, 0,
				      &id, NULL),
		     0);
	gate_client_set_private(client, terms);
	expect_away(die_at_once);
	cr_assert_eq(waitpid(worker, &status, 0), worker);
	start_worker(gate_worker_main);
	ask(NULL, "about Project Bluebird");
	cr_assert_eq(heard.score, 1.0);
	cr_assert_eq(gate_client_figures(client).restarts, 1);
}

Test(gate_client, a_cancelled_question_is_never_answered, .init = begin, .fini = end)
{
	struct gate_parts *p = gate_parts_new();
	struct gate_ask *a;

	start_worker(gate_worker_main);
	gate_parts_add(p, GATE_PART_TEXT, "c", "hello", 5);
	cr_assert_eq(gate_client_ask(client, NULL, "x", p, on_answer, NULL, &a, NULL), 0);
	gate_client_cancel(a);
	ask(NULL, "nothing to see");
	cr_assert_eq(heard.n, 1);
	cr_assert_eq(heard.verdict, GATE_PASS);
}
