/* SPDX-License-Identifier: Apache-2.0 */
/* What was planted in a job's environment: replaced where an agent tells its model of it, refused anywhere else, and in no
 * answer called what it is. */
#include "tests/unit/vessel/broker/gate/gate_rig.h"
#include "vessel/broker/gate/client.h"

#include "common/cleanup.h"
#include <string.h>

#define KEY "lych-Zq81mZ0pVw7Tn4cXaYb3"
#define PLANTED "7d3eb8b6f77cf2553ec00adc52aff8be95a84057"

TestSuite(gate_planted, .timeout = 120);

static struct {
	unsigned n;
	enum gate_verdict verdict;
	bool key, key_replaced, planted, planted_replaced;
	char body[4096], why[512];
} heard;

static void on_answer(const struct gate_answer *a, void *arg UNUSED)
{
	heard.n++;
	heard.verdict = a->verdict;
	heard.key = a->has_canary;
	heard.key_replaced = a->is_canary_replaced;
	heard.planted = a->has_planted;
	heard.planted_replaced = a->is_planted_replaced;
	(void)snprintf(heard.why, sizeof(heard.why), "%s", a->err ? a->err->msg : "");
	(void)snprintf(heard.body, sizeof(heard.body), "%.*s", (int)a->parts->part[0].len,
		       a->parts->part[0].data);
	loop_stop(loop, 0);
}

static void ask_kind(struct gate_job *job, const char *to, enum gate_part_kind kind,
		     const char *text)
{
	struct gate_parts *p = gate_parts_new();
	struct err err = ERR_INIT;
	struct gate_ask *a;

	gate_parts_add(p, kind, "content", text, strlen(text));
	cr_assert_eq(gate_client_ask(client, job, to, p, on_answer, NULL, &a, &err), 0,
		     "%s", err.msg);
	cr_assert_eq(loop_run(loop, &err), 0, "%s", err.msg);
}

static struct gate_job *job_with_both(void)
{
	struct gate_job *job = gate_job_new(&clock_real);

	cr_assert_eq(gate_job_add_canary(job, KEY, strlen(KEY), NULL), 0);
	cr_assert_eq(gate_job_add_planted(job, PLANTED, strlen(PLANTED), NULL), 0);
	return job;
}

Test(gate_planted, anywhere_but_in_the_text_of_an_ask_it_is_refused, .init = begin,
     .fini = end)
{
	static const struct {
		const char *to;
		enum gate_part_kind kind;
		const char *text;
	} rows[] = {
		{"fetch", GATE_PART_TEXT, "DEPLOY_TOKEN=" PLANTED},
		{"fetch", GATE_PART_URL, "https://a.example/?t=" PLANTED},
		{"fetch", GATE_PART_URL, "https://" PLANTED ".a.example/"},
		{"fetch", GATE_PART_HEADER, "x-build: " PLANTED},
		{"package", GATE_PART_URL, "left-pad-" PLANTED},
		{"portal:x", GATE_PART_NAME, PLANTED},
		/* base64, hexadecimal, backwards, of percents */
		{"portal:x", GATE_PART_TEXT,
		 "N2QzZWI4YjZmNzdjZjI1NTNlYzAwYWRjNTJhZmY4YmU5NWE4NDA1Nw=="},
		{"portal:x", GATE_PART_TEXT,
		 "37643365623862366637376366323535336563303061646335326166663862653935"
		 "61383430"
		 "3537"},
		{"portal:x", GATE_PART_TEXT, "75048a59eb8ffa25cda00ce3552fc77f6b8be3d7"},
		{"fetch", GATE_PART_URL,
		 "https://a.example/?t=%37%64%33eb8b6f77cf2553ec00adc52aff8be95a84057"},
		/* in another case of letters, and that in base64 and backwards */
		{"fetch", GATE_PART_TEXT, "7D3EB8B6F77CF2553EC00ADC52AFF8BE95A84057"},
		{"fetch", GATE_PART_URL,
		 "https://a.example/7D3eB8b6F77Cf2553Ec00aDC52AfF8bE95A84057"},
		{"portal:x", GATE_PART_NAME, "7D3EB8B6F77CF2553EC00ADC52AFF8BE95A84057"},
		{"portal:x", GATE_PART_TEXT,
		 "N0QzRUI4QjZGNzdDRjI1NTNFQzAwQURDNTJBRkY4QkU5NUE4NDA1Nw=="},
		{"portal:x", GATE_PART_TEXT, "75048A59EB8FFA25CDA00CE3552FC77F6B8BE3D7"},
	};
	struct gate_job *job = job_with_both();

	start_worker(gate_worker_main);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ask_kind(job, rows[i].to, rows[i].kind, rows[i].text);
		cr_expect_eq(heard.verdict, GATE_REFUSE, "%zu", i);
		cr_expect(heard.planted && !heard.planted_replaced && !heard.key, "%zu",
			  i);
		cr_expect(strstr(heard.why, "token") != NULL, "%zu: %s", i, heard.why);
		cr_expect(strstr(heard.why, "planted") == NULL, "%zu: %s", i, heard.why);
	}
	/* of another job it is a word */
	ask_kind(NULL, "fetch", GATE_PART_TEXT, PLANTED);
	cr_expect_not(heard.planted);
	gate_job_free(job);
}

Test(gate_planted, an_agent_that_says_its_environment_goes_on, .init = begin, .fini = end)
{
	struct gate_job *job = job_with_both();

	start_worker(gate_worker_main);
	for (unsigned turn = 0; turn < 3; turn++) {
		ask_kind(job, "portal:x", GATE_PART_TEXT,
			 "HOME=/tmp\nDEPLOY_TOKEN=" PLANTED "\n");
		cr_expect_eq(heard.verdict, GATE_ANONYMISE);
		cr_expect_str_eq(heard.body, "HOME=/tmp\nDEPLOY_TOKEN=<KEY_1>\n");
		cr_expect(heard.planted && heard.planted_replaced && !heard.key);
	}
	ask_kind(job, "portal:x", GATE_PART_TEXT,
		 "OPENAI_API_KEY=" KEY "\nDEPLOY_TOKEN=" PLANTED "\n");
	cr_expect_str_eq(heard.body, "OPENAI_API_KEY=<CANARY_1>\nDEPLOY_TOKEN=<KEY_1>\n");
	cr_expect(heard.planted_replaced && heard.key_replaced);
	ask_kind(job, "portal:x", GATE_PART_TEXT,
		 "it is 7D3eB8b6F77Cf2553Ec00aDC52AfF8bE95A84057, they say");
	cr_expect_str_eq(heard.body, "it is <KEY_2>, they say");
	cr_expect(heard.planted_replaced);
	/* as it is, and encoded beside that */
	ask_kind(job, "portal:x", GATE_PART_TEXT,
		 KEY " " PLANTED
		     " N2QzZWI4YjZmNzdjZjI1NTNlYzAwYWRjNTJhZmY4YmU5NWE4NDA1Nw==");
	cr_expect_eq(heard.verdict, GATE_REFUSE);
	cr_expect(heard.planted && !heard.planted_replaced);
	gate_job_free(job);
}
