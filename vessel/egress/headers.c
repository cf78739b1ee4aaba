/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * See headers.h.
 */
#include "vessel/egress/headers.h"
#include "common/mem.h"
#include "common/str.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What a job may say in a fetch. User-Agent, Host and Content-Length are the worker's own. */
static const char *const out_fetch[] = {"accept", "content-type", NULL};

/* What may come back; a name that ends in "-" is a prefix. */
static const char *const back_any[] = {"content-type", "retry-after", "request-id",
				       "x-request-id", NULL};
/* What clients of any server keep by, or name a file by. */
static const char *const back_fetch[] = {"etag", "last-modified", "content-disposition",
					 NULL};
static const char *const back_openai[] = {"x-ratelimit-", "retry-after-ms",
					  "x-should-retry", NULL};
static const char *const back_anthropic[] = {"anthropic-ratelimit-", "retry-after-ms",
					     "x-should-retry", NULL};

void headers_done(struct headers *h)
{
	free(h->h);
	h->h = NULL;
	h->n = 0;
}

bool headers_is_type(const char *value, const char *type)
{
	size_t n = strlen(type);

	return strncasecmp(value, type, n) == 0 &&
	       (value[n] == '\0' || value[n] == ';' || value[n] == ' ');
}

const char *headers_get(const struct headers *h, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (strcasecmp(h->h[i].name, name) == 0)
			return h->h[i].value;
	return NULL;
}

static bool is_name_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_name_char(s[i]))
			return false;
	return n > 0;
}

/* Printable ASCII and blanks between. */
static bool is_value(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] >= 0x7f)
			return false;
	return true;
}

/* Lower case into *ret; false when it is none or too long. */
static bool take_name(const char *s, size_t n, struct header *ret)
{
	if (n > HEADER_NAME_MAX || !is_name(s, n))
		return false;
	for (size_t i = 0; i < n; i++)
		ret->name[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] | 0x20) : s[i];
	ret->name[n] = '\0';
	return true;
}

static bool take_value(const char *s, size_t n, struct header *ret)
{
	while (n > 0 && (*s == ' ' || *s == '\t')) {
		s++;
		n--;
	}
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	if (n > HEADER_VALUE_MAX || !is_value(s, n))
		return false;
	memcpy(ret->value, s, n);
	ret->value[n] = '\0';
	return true;
}

bool headers_set(struct headers *h, const char *name, const char *value)
{
	struct header one;

	if (!take_name(name, strlen(name), &one) ||
	    !take_value(value, strlen(value), &one))
		return false;
	for (size_t i = 0; i < h->n; i++)
		if (str_eq(h->h[i].name, one.name)) {
			h->h[i] = one;
			return true;
		}
	if (h->n == HEADERS_MAX)
		return false;
	h->h = xreallocarray(h->h, h->n + 1, sizeof(*h->h));
	h->h[h->n++] = one;
	return true;
}

static bool is_listed(const char *const *list, const char *name)
{
	for (; list && *list; list++) {
		size_t n = strlen(*list);

		if ((*list)[n - 1] == '-' ? strncmp(name, *list, n) == 0 && name[n]
					  : str_eq(name, *list))
			return true;
	}
	return false;
}

static bool may_come_back(enum headers_for what, const char *name)
{
	switch (what) {
	case HEADERS_OPENAI:
		return is_listed(back_any, name) || is_listed(back_openai, name);
	case HEADERS_ANTHROPIC:
		return is_listed(back_any, name) || is_listed(back_anthropic, name);
	case HEADERS_FETCH:
		return is_listed(back_any, name) || is_listed(back_fetch, name);
	case HEADERS_GEMINI:
		break;
	}
	return is_listed(back_any, name);
}

static bool offered_before(const struct header_offer *offered, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcasecmp(offered[k].name, offered[i].name) == 0)
			return true;
	return false;
}

/* Two lengths, or two ways to say where a body ends: somebody is to be deceived. */
static bool framing_lies(const struct header_offer *offered, size_t n)
{
	unsigned lengths = 0;

	for (size_t i = 0; i < n; i++)
		if (strcasecmp(offered[i].name, "content-length") == 0 ||
		    strcasecmp(offered[i].name, "transfer-encoding") == 0)
			lengths++;
	return lengths > 1;
}

static int take_offer(const struct header_offer *o, struct headers *out, enum reason *why,
		      struct err *err)
{
	size_t len = strlen(o->name);
	struct header one;

	if (!is_name(o->name, len))
		return reason_set(why, REASON_HEADER, err, "a field's name is no token");
	if (str_has_control(o->value, strlen(o->value)))
		return reason_set(why, REASON_HEADER, err,
				  "the value of %.64s has a control character", o->name);
	if (!take_name(o->name, len, &one) || !is_listed(out_fetch, one.name))
		return 0;
	if (!headers_set(out, one.name, o->value))
		return reason_set(why, REASON_HEADER, err,
				  "the value of %s is not ASCII or over %d bytes",
				  one.name, HEADER_VALUE_MAX);
	return 0;
}

int headers_out(const struct header_offer *offered, size_t n, struct headers *ret,
		enum reason *ret_reason, struct err *err)
{
	cleanup_headers struct headers out = {NULL, 0};

	if (n > HEADERS_OFFERED_MAX)
		return reason_set(ret_reason, REASON_HEADER, err, "over %d fields",
				  HEADERS_OFFERED_MAX);
	if (framing_lies(offered, n))
		return reason_set(ret_reason, REASON_HEADER, err,
				  "two fields say how long the body is");
	for (size_t i = 0; i < n; i++) {
		if (offered_before(offered, i))
			return reason_set(ret_reason, REASON_HEADER, err,
					  "a field is there twice");
		if (take_offer(&offered[i], &out, ret_reason, err) < 0)
			return -1;
	}
	*ret = out;
	out = (struct headers){NULL, 0};
	return 0;
}

bool headers_back(enum headers_for what, const char *name, size_t name_len,
		  const char *value, size_t value_len, struct header *ret)
{
	return take_name(name, name_len, ret) && may_come_back(what, ret->name) &&
	       take_value(value, value_len, ret);
}
