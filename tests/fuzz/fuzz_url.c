/* SPDX-License-Identifier: Apache-2.0 */
/* A URL that is taken is written so that it is read as the same again, and holds nothing that
 * somebody could read in another way; and a rule of the ward can name its host. With a line
 * feed: the rest is a Location header. */
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/conf/conf.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/broker/ward.h"
#include "vessel/egress/url.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Mapped addresses and "::", as inet_ntop() writes them: the same places by another name, which the
 * ward refuses whatever its rules are. */
static bool is_nobodys(const struct url *u)
{
	return u->kind == URL_HOST_IPV6 &&
	       (str_eq(u->host, "::") || str_starts(u->host, "::ffff:"));
}

/* Whatever a URL can say, a rule can name. (That a URL can say what a rule takes: fuzz_conf.) */
static void check_rule(const struct url *u)
{
	cleanup_free char *text =
		xasprintf("version: \"1\"\nward:\n"
			  "- {host: \"%s\", scheme: %s, port: %u, "
			  "action: allow}\n",
			  u->host, u->https ? "https" : "http", (unsigned)u->port);
	const struct ward_ask ask = {.identity = "owner",
				     .target = WARD_HOST,
				     .https = u->https,
				     .host = u->host,
				     .port = u->port,
				     .method = "GET",
				     .path = "/"};
	struct err err = ERR_INIT;
	struct ward_verdict v;
	struct conf c;

	if (conf_parse(text, strlen(text), &c, &err) < 0) {
		assert(is_nobodys(u));
		conf_defaults(&c);
		assert(ward_decide(&c.broker, &ask, &v, &err) < 0 &&
		       err.id == ERRID_WARD_SPELLING);
	} else {
		assert(ward_decide(&c.broker, &ask, &v, &err) == 0 && v.number == 1);
	}
	conf_done(&c);
}

static void check(const struct url *u)
{
	cleanup_buf struct buf out;
	enum reason why = REASON_NONE;
	struct url again;

	buf_init(&out, (size_t)2 * URL_BYTES_MAX);
	url_write(u, &out);
	assert(buf_ok(&out) && out.len <= URL_BYTES_MAX);
	for (size_t i = 0; i < out.len; i++)
		assert(out.data[i] > 0x20 && out.data[i] < 0x7f && out.data[i] != '\\' &&
		       out.data[i] != '#');
	assert(u->host[0] && !strchr(u->host, '@') && !strchr(u->host, '%'));
	assert(u->port > 0 && u->target[0] == '/');
	assert(u->path_len > 0 && u->path_len <= strlen(u->target));
	assert(url_parse(out.data, out.len, &again, &why, NULL) == 0);
	assert(url_same_origin(u, &again) && str_eq(u->target, again.target));
	assert(u->kind == again.kind && u->path_len == again.path_len);
	check_rule(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *second = size > 0 ? memchr(text, '\n', size) : NULL;
	size_t len = second ? (size_t)(second - text) : size;
	enum reason why = REASON_NONE;
	struct err err = ERR_INIT;
	struct url u, to;

	if (url_parse(text, len, &u, &why, &err) < 0) {
		assert(why != REASON_NONE && err.id == ERRID_FETCH_URL && err.msg[0]);
		return 0;
	}
	check(&u);
	if (!second)
		return 0;
	why = REASON_NONE;
	if (url_resolve(&u, second + 1, size - len - 1, &to, &why, &err) < 0)
		assert(why != REASON_NONE);
	else
		check(&to);
	return 0;
}
