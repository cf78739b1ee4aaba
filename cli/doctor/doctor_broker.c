/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * What codex.yaml lets jobs ask for, and whether the keys for it are there. The walls of the
 * workers that do the asking are the vessel's to report.
 */
#include "cli/base/config_file.h"
#include "cli/base/mode.h"
#include "cli/doctor/doctor.h"

#include "cli/secret/secret.h"
#include "common/conf/conf.h"
#include "common/str.h"
#include <stdio.h>

#define WHERE "broker"

static void examine_key(struct doctor_lines *d, struct secret_store *s,
			const struct conf_broker *b, const char *name)
{
	cleanup_secret_value struct secret_value v = {0};
	struct err err = ERR_INIT;
	char answer[160];

	if (s->ops->read(s, name, &v, &err) == 0 &&
	    secret_key_check(&v, conf_portal_secret_is_local(b, name), &err) == 0) {
		doctor_line(d, WHERE, name, "set", PASS);
		return;
	}
	if (err.id == ERRID_SECRET_MISSING)
		(void)snprintf(answer, sizeof(answer),
			       "missing: lych secret set %.64s --store=%s", name,
			       s->ops->name);
	else
		(void)snprintf(answer, sizeof(answer), "%.150s", err.msg);
	doctor_line(d, WHERE, name, answer, FAIL);
	if (err.id == ERRID_SECRET_MISSING)
		doctor_next(d, FAIL, "lych secret set %.64s --store=%s", name,
			    s->ops->name);
}

static void examine_keys(struct doctor_lines *d, const struct paths *p,
			 const struct conf_broker *b)
{
	cleanup_secret_store struct secret_store s = {.dirfd = -1};
	struct err err = ERR_INIT;
	const char *name;

	if (!conf_broker_secret(b, 0))
		return;
	/* where those of this mode belong, and nowhere else */
	if (secret_store_open(mode_store(mode_is_pod(p)), p, &s, &err) < 0) {
		bool is_first = err.id == ERRID_SECRET_MISSING;

		doctor_line(d, WHERE, "keys of the portals",
			    is_first ? "none yet: 'lych secret set' makes the place"
				     : err.msg,
			    is_first ? NOTE : FAIL);
		if (is_first)
			doctor_next(d, NOTE, "lych secret set %.64s",
				    conf_broker_secret(b, 0));
		return;
	}
	for (size_t i = 0; (name = conf_broker_secret(b, i)); i++)
		examine_key(d, &s, b, name);
}

void doctor_broker(struct doctor_lines *d, const struct paths *p)
{
	struct err err = ERR_INIT;
	struct conf conf;
	size_t permitting = 0;
	char answer[96];

	if (config_load_or_defaults(p->config, &conf, &err) < 0) {
		doctor_line(d, WHERE, "codex.yaml", err.msg, FAIL);
		return;
	}
	for (size_t i = 0; i < conf.broker.n_rules; i++)
		permitting += conf.broker.rule[i].action <= WARD_LIMIT;
	if (permitting)
		(void)snprintf(answer, sizeof(answer),
			       "what %zu rule%s of the ward permit%s: lych ward list",
			       permitting, permitting == 1 ? "" : "s",
			       permitting == 1 ? "s" : "");
	doctor_line(d, WHERE, "jobs may ask", permitting ? answer : "nothing", NOTE);
	examine_keys(d, p, &conf.broker);
	conf_done(&conf);
}
