/* SPDX-License-Identifier: Apache-2.0 */
/* The portal of kind classifier, and what gate says about it. */
#include "common/conf/conf.h"
#include "common/str.h"

#include <criterion/criterion.h>

TestSuite(conf_classifier, .timeout = 20);

#define V "version: \"1\"\n"
#define PLACE "    url: \"http://127.0.0.1:8081/v1\"\n    addresses:\n      - 127.0.0.1\n"
#define MODEL "    models:\n      - {name: judge}\n"
#define KIND "    kind: classifier\n"
#define PORTAL "  - name: guard\n" KIND PLACE MODEL
#define MAIN                                                                             \
	"  - name: main\n    kind: openai\n    url: \"https://api.example.com/v1\"\n"    \
	"    secret: portal_main\n    models:\n"                                         \
	"      - {name: m, input: \"0\", output: \"0\"}\n"
#define PORTALS V "portals:\n" MAIN PORTAL
#define WITH(more) V "portals:\n" MAIN PORTAL more
#define AT(url, address)                                                                 \
	V "portals:\n  - name: guard\n" KIND "    url: \"" url                           \
	  "\"\n    addresses:\n      - " address "\n" MODEL
#define GATE(keys) "gate: {" keys "}\n"

static const struct {
	const char *text, *part;
} bads[] = {
	/* on this machine or its network, and by its address */
	{AT("https://judge.example.com", "127.0.0.1"), "url: of kind classifier"},
	{AT("https://203.0.113.7", "203.0.113.7"), "url: of kind classifier"},
	{AT("https://8.8.8.8", "8.8.8.8"), "url: of kind classifier"},
	{AT("http://8.8.8.8", "8.8.8.8"), "url: https"},
	{AT("http://127.0.0.1:8081", "127.0.0.2"), "must stand in addresses"},
	/* one model, and nothing that costs or chooses */
	{V "portals:\n  - name: guard\n" KIND PLACE, "models: of kind classifier"},
	{V "portals:\n  - name: guard\n" KIND PLACE MODEL "      - {name: b}\n",
	 "models: of kind classifier"},
	{V "portals:\n  - name: guard\n" KIND PLACE
	   "    models:\n      - {name: m, input: \"0\", output: \"0\"}\n",
	 "models: of kind classifier"},
	{V "portals:\n  - name: guard\n" KIND PLACE
	   "    models:\n      - {name: \"a b\"}\n",
	 "models: of kind classifier"},
	{PORTALS "    max_output: 9\n", "max_output: not with kind classifier"},
	{PORTALS "    output_cap: max_tokens\n", "output_cap: not with kind classifier"},
	{PORTALS "    betas:\n      - b\n", "betas: not with kind classifier"},
	{PORTALS "    lacks:\n      - chat\n", "lacks: not with kind classifier"},
	{PORTALS "    timeout: 3s\n", "timeout"},
	/* its name and its key are its own */
	{WITH("  - name: other\n" KIND PLACE MODEL),
	 "kind: there is one classifier already"},
	{V "portals:\n" MAIN "  - name: main\n" KIND PLACE MODEL,
	 "name: another portal has it already"},
	{V "portals:\n" PORTAL "  - name: guard\n    kind: openai\n" PLACE
	   "    models:\n      - {name: m, input: \"0\", output: \"0\"}\n",
	 "name: another portal has it already"},
	{PORTALS "    secret: portal_main\n", "secret: another portal has it already"},
	{V "portals:\n" PORTAL "    secret: portal_main\n" MAIN,
	 "secret: another portal has it already"},
	{WITH("credentials:\n  - {name: guard, host: a.example, path: /, header: "
	      "bearer, secret: host_a}\n"),
	 "name: another credential, or a portal"},
	/* no job's */
	{WITH("ward:\n  - {portal: guard, action: allow}\n"),
	 "portal: that one is the gate's"},
	{WITH("ward:\n  - {portal: guard, action: deny}\n"),
	 "portal: that one is the gate's"},
	{WITH("    secret: portal_g\nward:\n  - {host: a.example.org, "
	      "credential: guard, action: allow}\n"),
	 "credential: no portal of that name"},
	/* the gate's keys */
	{V GATE("classifier: guard"), "gate.classifier: no portal of kind"},
	{WITH(GATE("classifier: guards")), "gate.classifier: no portal of kind"},
	{WITH(GATE("classifier: main")), "gate.classifier: no portal of kind"},
	{WITH(GATE("classifier_timeout: 3s")), "only with gate.classifier"},
	{WITH(GATE("classifier_max: 3KiB")), "only with gate.classifier"},
	{WITH(GATE("classifier: guard, classifier_timeout: 0s")),
	 "gate.classifier_timeout"},
	{WITH(GATE("classifier: guard, classifier_timeout: 11m")),
	 "gate.classifier_timeout"},
	{WITH(GATE("classifier: guard, classifier_timeout: soon")),
	 "gate.classifier_timeout"},
	{WITH(GATE("classifier: guard, classifier_max: 5MiB")), "gate.classifier_max"},
	{WITH(GATE("classifier: guard, classifier_max: 0")), "gate.classifier_max"},
	{WITH(GATE("classifier: guard, classifier_open: yes")), "classifier_open"},
};

Test(conf_classifier, what_is_none_or_goes_elsewhere_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(bads); i++) {
		struct err err = ERR_INIT;
		struct conf c;

		cr_expect(conf_parse(bads[i].text, strlen(bads[i].text), &c, &err) < 0,
			  "%zu", i);
		cr_expect_eq(err.id, ERRID_START_CONFIG, "%zu", i);
		cr_expect(strstr(err.msg, bads[i].part), "%zu: %s", i, err.msg);
	}
}

static void read_good(const char *text, struct conf *ret)
{
	struct err err = ERR_INIT;

	cr_assert(conf_parse(text, strlen(text), ret, &err) == 0, "%s", err.msg);
}

Test(conf_classifier, none_is_asked_unless_gate_names_one)
{
	struct conf c;

	read_good(V, &c);
	cr_expect_null(conf_classifier(&c.broker));
	conf_done(&c);
	read_good(PORTALS "    secret: portal_g\n", &c);
	cr_expect_null(conf_classifier(&c.broker));
	cr_expect_str_eq(c.broker.classifier.name, "guard");
	cr_expect_str_eq(conf_broker_secret(&c.broker, 0), "portal_main");
	cr_expect_null(conf_broker_secret(&c.broker, 1), "a key that nobody uses");
	conf_done(&c);
}

Test(conf_classifier, one_that_is_asked_is_no_portal_of_the_jobs)
{
	const struct conf_portal *p;
	struct conf c;

	read_good(PORTALS "    secret: portal_g\n" GATE(
			  "classifier: guard, classifier_timeout: 2s, classifier_max: "
			  "3KiB"),
		  &c);
	p = conf_classifier(&c.broker);
	cr_assert_not_null(p);
	cr_expect_str_eq(p->name, "guard");
	cr_expect_str_eq(p->model[0].name, "judge");
	cr_expect_str_eq(p->url.text, "http://127.0.0.1:8081/v1");
	cr_expect_eq(c.broker.gate.classifier_usec, 2 * USEC_PER_SEC);
	cr_expect_eq(c.broker.gate.classifier_max_bytes, 3 << 10);
	cr_expect_eq(c.broker.n_portals, 1);
	cr_expect_null(conf_portal_find(&c.broker, "guard"));
	for (unsigned k = 0; k < PORTAL_KIND_MAX_; k++)
		cr_expect_null(conf_portal_of_model(&c.broker, (enum portal_kind)k,
						    "judge", NULL));
	cr_expect_str_eq(conf_broker_secret(&c.broker, 1), "portal_g");
	cr_expect_null(conf_broker_secret(&c.broker, 2));
	cr_expect(conf_portal_secret_is_local(&c.broker, "portal_g"));
	conf_done(&c);
	read_good(WITH(GATE("classifier: guard")), &c);
	cr_expect_eq(c.broker.gate.classifier_usec, 60 * USEC_PER_SEC);
	cr_expect_eq(c.broker.gate.classifier_max_bytes, 256 << 10);
	conf_done(&c);
}
