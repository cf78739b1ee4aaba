/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the job.
 * See client.h.
 */
#include "job/client.h"

#include "common/proto/broker_proto.h"
#include "common/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

int client_call(const struct client_request *rq, const struct client_ops *ops,
		struct err *err)
{
	const char *where = getenv("LYCHGATE_BROKER");

	if (!where)
		return err_set_id(err, ERRID_BROKER_NONE, "LYCHGATE_BROKER is not set");
	if (str_eq(where, BROKER_URL))
		return http_call(rq, ops, err);
	if (str_eq(where, "fd:3"))
		return frames_call(BROKER_FD, rq, ops, err);
	return err_set_id(err, ERRID_BROKER_NONE, "LYCHGATE_BROKER=%.100s", where);
}

const char *client_key(void)
{
	return getenv("LYCHGATE_BROKER_KEY");
}

void client_reply_header(struct client_reply *r, const char *name, const char *value)
{
	if (strcasecmp(name, "content-type") == 0)
		(void)snprintf(r->content_type, sizeof(r->content_type), "%s", value);
	else if (strcasecmp(name, "retry-after") == 0)
		(void)snprintf(r->retry_after, sizeof(r->retry_after), "%s", value);
	else if (strcasecmp(name, "lychgate-upstream-status") == 0)
		r->from_upstream = true;
}

void client_complain(const char *program, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	(void)fprintf(stderr, "%s: %s\n", program, text);
}

int client_failed(const char *program, const struct err *err)
{
	client_complain(program, "%s: %s: %s", err_text(err), err_title(err), err->msg);
	client_complain(program, "hint: %s", err_hint(err));
	return err->code == ERR_UNAVAILABLE ? EXIT_AWAY : EXIT_REFUSED;
}
