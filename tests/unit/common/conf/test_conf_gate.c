/* SPDX-License-Identifier: Apache-2.0 */
/* What codex.yaml says about pictures, sound and PDF. */
#include "common/conf/conf.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(conf_gate, .timeout = 20);

#define V "version: \"1\"\n"

static int read_conf(const char *text, struct conf *ret, struct err *err)
{
	return conf_parse(text, strlen(text), ret, err);
}

Test(conf_gate, only_two_words_are_taken)
{
	static const char *const bads[] = {V "gate: {pictures: \"yes\"}\n",
					   V "gate: {sound: no}\n",
					   V "gate: {pdf: Allow}\n"};

	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		struct conf c;
		struct err err = ERR_INIT;

		cr_expect_lt(read_conf(bads[i], &c, &err), 0, "%s", bads[i]);
		cr_expect(strstr(err.msg, "line 2: gate."), "%s", err.msg);
	}
}

Test(conf_gate, pdf_is_refused_unless_written)
{
	struct conf c;
	struct err err = ERR_INIT;

	cr_assert_eq(read_conf(V, &c, &err), 0, "%s", err.msg);
	cr_expect(c.broker.gate.allows_pictures && c.broker.gate.allows_sound);
	cr_expect_not(c.broker.gate.allows_pdf);
	conf_done(&c);
	cr_assert_eq(read_conf(V "gate: {pictures: refuse, sound: refuse, pdf: allow}\n",
			       &c, &err),
		     0, "%s", err.msg);
	cr_expect_not(c.broker.gate.allows_pictures || c.broker.gate.allows_sound);
	cr_expect(c.broker.gate.allows_pdf);
	conf_done(&c);
}
