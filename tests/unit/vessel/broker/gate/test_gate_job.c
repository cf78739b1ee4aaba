/* SPDX-License-Identifier: Apache-2.0 */
#include "vessel/broker/gate/job.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include <criterion/criterion.h>
#include <math.h>

TestSuite(gate_job, .timeout = 20);

static usec_t now;

static usec_t fake_now(void *ctx)
{
	(void)ctx;
	return now;
}

static const struct clock_ops fake_clock = {.boot_usec = fake_now, .wall_usec = fake_now};

static struct gate_finding at(size_t part, size_t offset, size_t len, enum gate_family f)
{
	return (struct gate_finding){.part = (uint32_t)part,
				     .offset = (uint32_t)offset,
				     .len = (uint32_t)len,
				     .family = f,
				     .severity = 0.4};
}

Test(gate_job, what_has_no_place_for_a_placeholder_is_refused)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	struct gate_finding f = at(0, 0, 4, GATE_EMAIL);
	struct err err = ERR_INIT;

	gate_parts_add(p, GATE_PART_NAME, "k", "a@b.de", 6);
	cr_assert_lt(gate_job_anonymise(j, &f, 1, p, &err), 0);
	cr_assert_eq(err.id, ERRID_GATE_MAP);
	gate_parts_add(p, GATE_PART_TEXT, "k", "a@b.de", 6);
	f = at(1, 0, 4, GATE_EMAIL);
	f.is_split = true;
	cr_assert_lt(gate_job_anonymise(j, &f, 1, p, &err), 0);
	cr_assert(gate_job_is_clean(j));
}

Test(gate_job, one_text_has_one_placeholder)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	const struct gate_finding f[] = {at(0, 3, 6, GATE_EMAIL),
					 at(0, 13, 6, GATE_EMAIL),
					 at(0, 24, 6, GATE_EMAIL)};

	gate_parts_add(p, GATE_PART_TEXT, "c", "to a@b.de or a@b.de not c@d.de!", 31);
	cr_assert_eq(gate_job_anonymise(j, f, 3, p, NULL), 0);
	cr_assert_str_eq(p->part[0].data, "to <EMAIL_1> or <EMAIL_1> not <EMAIL_2>!");
}

/* Of each of thousands of texts, and of a reply that says all of them again. */
Test(gate_job, each_of_many_texts_comes_back)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	const size_t n = 4096, width = 10;
	struct gate_finding *f = calloc(n + 1, sizeof(*f));
	struct gate_restore *r = gate_restore_new(j, GATE_FORM_TEXT);
	struct buf text, out;
	struct err err = ERR_INIT;

	buf_init(&text, 1 << 20);
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i <= n; i++) {
		f[i] = at(0, i * width, width - 1, i % 2 ? GATE_EMAIL : GATE_NAME);
		buf_addf(&text, "text-%04zu ", i);
	}
	gate_parts_add(p, GATE_PART_TEXT, "c", text.data, n * width);
	cr_assert_eq(gate_job_anonymise(j, f, n, p, NULL), 0);
	cr_assert_str_eq(p->part[0].data + p->part[0].len - strlen("<EMAIL_2048> "),
			 "<EMAIL_2048> ");
	gate_restore_feed(r, p->part[0].data, p->part[0].len, &out);
	gate_restore_end(r, &out);
	cr_assert_eq(out.len, n * width);
	cr_assert_eq(memcmp(out.data, text.data, out.len), 0);
	/* and no more than that */
	gate_parts_replace(p, 0, text.data, text.len);
	cr_assert_lt(gate_job_anonymise(j, f, n + 1, p, &err), 0);
	cr_assert_eq(err.id, ERRID_GATE_MAP);
	gate_restore_free(r);
	buf_done(&text);
	buf_done(&out);
	free(f);
}

Test(gate_job, overlapping_findings_are_one)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	struct gate_finding f[] = {at(0, 1, 4, GATE_EMAIL), at(0, 3, 4, GATE_CARD)};

	f[1].severity = 0.9;
	gate_parts_add(p, GATE_PART_TEXT, "c", "0123456789", 10);
	cr_assert_eq(gate_job_anonymise(j, f, 2, p, NULL), 0);
	cr_assert_str_eq(p->part[0].data, "0<CARD_1>789");
}

static void expect_restored(enum gate_form form, const char *reply, const char *want)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	const struct gate_finding f[] = {at(0, 0, 6, GATE_EMAIL),
					 at(0, 7, 4, GATE_KEYWORD)};

	gate_parts_add(p, GATE_PART_TEXT, "c", "a@b.de x\"\\y", 11);
	cr_assert_eq(gate_job_anonymise(j, f, 2, p, NULL), 0);
	/* in one piece, in two at each place, byte by byte */
	for (size_t cut = 0; cut <= strlen(reply) + 1; cut++) {
		struct gate_restore *r = gate_restore_new(j, form);
		struct buf out;

		buf_init(&out, 4096);
		if (cut <= strlen(reply)) {
			gate_restore_feed(r, reply, cut, &out);
			gate_restore_feed(r, reply + cut, strlen(reply) - cut, &out);
		} else {
			for (size_t i = 0; reply[i]; i++)
				gate_restore_feed(r, reply + i, 1, &out);
		}
		cr_expect_leq(gate_restore_held(r), 64);
		gate_restore_end(r, &out);
		cr_expect_str_eq(buf_str(&out), want, "cut %zu: %s", cut, buf_str(&out));
		gate_restore_free(r);
		buf_done(&out);
	}
}

Test(gate_job, replies_are_restored_however_they_are_cut)
{
	expect_restored(GATE_FORM_TEXT,
			"hi <EMAIL_1>, <SECRET_1> <EMAIL_2> <b> 1<2 <EMAIL_1",
			"hi a@b.de, x\"\\y <EMAIL_2> <b> 1<2 <EMAIL_1");
	expect_restored(
		GATE_FORM_JSON,
		"{\"a\":\"\\u003cEMAIL_1\\u003E <SECRET_1> \\\\u003cEMAIL_1> \\n\"}",
		"{\"a\":\"a@b.de x\\\"\\\\y \\\\u003cEMAIL_1> \\n\"}");
	expect_restored(GATE_FORM_JSON_IN_JSON, "{\\\"a\\\": \\\"<SECRET_1>\\\"}",
			"{\\\"a\\\": \\\"x\\\\\\\"\\\\\\\\y\\\"}");
	expect_restored(GATE_FORM_TEXT, "<<EMAIL_1>>", "<a@b.de>");
	expect_restored(GATE_FORM_TEXT, "", "");
}

static struct gate_report report; /* large */

/* What was judged as a whole is no end of anything. */
Test(gate_job, what_was_judged_is_not_remembered)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	struct gate_input in = {0};

	gate_parts_add(p, GATE_PART_TEXT, "content", "before", 6);
	gate_parts_add(p, GATE_PART_TEXT, "content", "PICTURE it", 10);
	report.n_judged = 1;
	report.judged[0] = (struct gate_judged){.part = 1, .left = 3};
	gate_job_sent(j, "portal:a", p, &report);
	gate_job_fill(j, "portal:a", &in);
	cr_assert_eq(in.n_tails, 1);
	cr_assert_eq(in.tails[0].len, 3);
	cr_assert_eq(memcmp(in.tails[0].data, " it", 3), 0);
	report.judged[0].left = 0;
	gate_job_sent(j, "portal:a", p, &report);
	gate_job_fill(j, "portal:a", &in);
	cr_assert_eq(in.tails[0].len, 0);
}

Test(gate_job, tails_and_bucket_are_remembered)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	struct gate_input in = {0};
	char long_text[1000];

	memset(long_text, 'x', sizeof(long_text));
	long_text[999] = 'y';
	gate_parts_add(p, GATE_PART_TEXT, "content", long_text, sizeof(long_text));
	gate_parts_add(p, GATE_PART_TEXT, "content", "z", 1);
	gate_job_fill(j, "portal:a", &in);
	cr_assert_eq(in.n_tails, 0);
	report.n = 1;
	report.finding[0] = at(0, 0, 4, GATE_MEDIA);
	report.finding[0].severity = 2 * (1 - exp(-0.5));
	gate_job_sent(j, "portal:a", p, &report);
	gate_job_fill(j, "portal:a", &in);
	cr_assert_eq(in.n_tails, 1);
	cr_assert_eq(in.tails[0].len, GATE_TAIL_BYTES);
	cr_assert_eq(memcmp(in.tails[0].data + GATE_TAIL_BYTES - 2, "yz", 2), 0);
	cr_assert_float_eq(in.carry, 0.5, 1e-9);
	now += GATE_BUCKET_HALF_LIFE_USEC;
	gate_job_fill(j, "portal:b", &in);
	cr_assert_eq(in.n_tails, 0);
	cr_assert_float_eq(in.carry, 0.25, 1e-9);
}

/* A client sends its whole conversation at each turn. */
Test(gate_job, a_text_adds_to_the_bucket_once)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	struct gate_input in = {0};

	gate_parts_add(p, GATE_PART_TEXT, "content", "some text", 9);
	report.n = 2; /* of one text */
	for (size_t i = 0; i < report.n; i++) {
		report.finding[i] = at(0, 4 * i, 4, GATE_MEDIA);
		memset(report.finding[i].mac, 1, GATE_MAC_SIZE);
	}
	gate_job_sent(j, "portal:a", p, &report);
	gate_job_fill(j, "portal:a", &in);
	cr_assert_gt(in.carry, 0.2);
	for (unsigned turn = 0; turn < 9; turn++)
		gate_job_sent(j, "portal:a", p, &report);
	gate_job_fill(j, "portal:a", &in);
	cr_assert_lt(in.carry, 0.6);
	memset(report.finding[1].mac, 2, GATE_MAC_SIZE);
	gate_job_sent(j, "portal:a", p, &report);
	gate_job_fill(j, "portal:a", &in);
	cr_assert_gt(in.carry, 0.4);
}

Test(gate_job, canaries_have_bounds)
{
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	struct gate_input in = {0};

	cr_assert_lt(gate_job_add_canary(j, "short", 5, NULL), 0);
	for (unsigned i = 0; i < GATE_CANARIES_MAX; i++)
		cr_assert_eq(gate_job_add_canary(j, "long enough 12", 14, NULL), 0);
	cr_assert_lt(gate_job_add_canary(j, "long enough 12", 14, NULL), 0);
	gate_job_fill(j, "x", &in);
	cr_assert_eq(in.n_canaries, GATE_CANARIES_MAX);
}

Test(gate_job, a_json_body_is_taken_apart_and_put_together)
{
	static const char body[] =
		"{\"model\":\"m\",\"n\":12,\"t\":0.50,\"ok\":true,\"messages\":[{"
		"\"role\":\"user\","
		"\"content\":\"mail a@b.de\\n\\\"now\\\"\"},{\"x\":null}]}";
	cleanup_gate_job struct gate_job *j = gate_job_new(&fake_clock);
	cleanup_gate_parts struct gate_parts *p = gate_parts_new();
	cleanup_json struct json *v = NULL;
	cleanup_buf struct buf out;
	struct gate_finding f;
	struct jsonw w;
	size_t i = 0;

	buf_init(&out, 4096);
	cr_assert_eq(json_parse(body, sizeof(body) - 1, 16, &v, NULL), 0);
	gate_parts_add(p, GATE_PART_URL, "url", "https://x/", 10);
	gate_parts_add_json(p, v);
	while (i < p->n && !strstr(p->part[i].data, "a@b.de"))
		i++;
	cr_assert_lt(i, p->n);
	cr_assert_str_eq(p->part[i].data, "mail a@b.de\n\"now\"");
	f = at(i, 5, 6, GATE_EMAIL);
	cr_assert_eq(gate_job_anonymise(j, &f, 1, p, NULL), 0);
	jsonw_init(&w, &out);
	gate_parts_write_json(p, 1, v, &w);
	cr_assert_str_eq(
		buf_str(&out),
		"{\"model\":\"m\",\"n\":12,\"t\":0.50,\"ok\":true,\"messages\":[{"
		"\"role\":"
		"\"user\",\"content\":\"mail <EMAIL_1>\\n\\\"now\\\"\"},{\"x\":null}]}");
}
