/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel and the egress worker.
 * Theory of operation. One pass from the left cuts the text into scheme, authority, path
 * and query; each part is held against a set of characters that leaves nothing to interpret.
 * What a part may not contain is refused with the reason that tells a person what it was,
 * so the order of the checks decides which word is given, never whether one is.
 */
#include "vessel/egress/url.h"
#include "common/host.h"
#include "common/str.h"
#include "vessel/egress/addr.h"

#include <assert.h>
#include <string.h>

#define PORT_HTTP 80
#define PORT_HTTPS 443

struct span {
	const char *p;
	size_t n;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_alpha(char c)
{
	return is_lower(c) || (c >= 'A' && c <= 'Z');
}

static bool span_is(struct span s, const char *word)
{
	return s.n == strlen(word) && memcmp(s.p, word, s.n) == 0;
}

static bool has(struct span s, char c)
{
	return memchr(s.p, c, s.n) != NULL;
}

/* ---- host ---- */

static bool is_address(struct span h, bool v6)
{
	char text[ADDR_TEXT_SIZE];
	struct addr a;

	if (h.n >= sizeof(text) || has(h, '\0'))
		return false;
	memcpy(text, h.p, h.n);
	text[h.n] = '\0';
	return addr_parse(text, &a) == 0 && a.v6 == v6;
}

static int parse_host(struct span h, bool bracketed, struct url *u, enum reason *why,
		      struct err *err)
{
	if (has(h, '%'))
		return reason_set(why, REASON_PCT_HOST, err, "a host is not encoded");
	if (bracketed) {
		if (!is_address(h, true))
			return reason_set(why, REASON_HOST_GRAMMAR, err,
					  "what stands in brackets is no IPv6 address in "
					  "its canonical form");
		u->kind = URL_HOST_IPV6;
	} else if (is_address(h, false)) {
		u->kind = URL_HOST_IPV4;
	} else if (host_is_name(h.p, h.n)) {
		u->kind = URL_HOST_NAME;
	} else {
		return reason_set(why, REASON_HOST_GRAMMAR, err,
				  "a host has lower-case letters, digits and hyphens "
				  "between dots, and ends in a name");
	}
	assert(h.n <= URL_HOST_MAX);
	memcpy(u->host, h.p, h.n);
	u->host[h.n] = '\0';
	return 0;
}

static int parse_port(struct span s, struct url *u, enum reason *why, struct err *err)
{
	char digits[6];
	uint64_t port;

	if (s.n == 0 || s.n >= sizeof(digits) || has(s, '\0'))
		return reason_set(why, REASON_PORT, err, "a port is 1..65535");
	memcpy(digits, s.p, s.n);
	digits[s.n] = '\0';
	if (parse_u64(digits, 1, 65535, &port, NULL) < 0)
		return reason_set(why, REASON_PORT, err, "a port is 1..65535");
	u->port = (uint16_t)port;
	return 0;
}

static int parse_authority(struct span a, struct url *u, enum reason *why,
			   struct err *err)
{
	struct span host = a, port = {NULL, 0};
	bool bracketed = a.n > 0 && a.p[0] == '[';
	const char *end;

	if (a.n == 0)
		return reason_set(why, REASON_SYNTAX, err, "there is no host");
	if (has(a, '@'))
		return reason_set(why, REASON_USERINFO, err, "user names are not sent");
	if (bracketed) {
		end = memchr(a.p, ']', a.n);
		if (!end)
			return reason_set(why, REASON_HOST_GRAMMAR, err,
					  "a bracket is not closed");
		host = (struct span){a.p + 1, (size_t)(end - a.p - 1)};
		port = (struct span){end + 1, (size_t)(a.p + a.n - end - 1)};
		if (port.n > 0 && port.p[0] != ':')
			return reason_set(why, REASON_HOST_GRAMMAR, err,
					  "something follows a bracket");
	} else {
		end = memchr(a.p, ':', a.n);
		if (end) {
			host.n = (size_t)(end - a.p);
			port = (struct span){end, a.n - host.n};
		}
	}
	u->port = u->https ? PORT_HTTPS : PORT_HTTP;
	if (port.n > 0 &&
	    parse_port((struct span){port.p + 1, port.n - 1}, u, why, err) < 0)
		return -1;
	return parse_host(host, bracketed, u, why, err);
}

/* ---- path and query ---- */

/* RFC 3986: pchar, "/" and for a query "?"; whole percent triplets. */
static bool is_target_text(struct span s, bool query)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '%') {
			if (i + 2 >= s.n || hex_digit_value(s.p[i + 1]) < 0 ||
			    hex_digit_value(s.p[i + 2]) < 0)
				return false;
			i += 2;
			continue;
		}
		if (!is_alpha(c) && !is_digit(c) &&
		    (c == '\0' || !strchr("-._~!$&'()*+,;=:@/", c)) &&
		    !(query && c == '?'))
			return false;
	}
	return true;
}

/* The next byte as a server that decodes once reads it; *i moves behind it. */
static unsigned char decoded(struct span s, size_t *i)
{
	char c = s.p[(*i)++];

	if (c != '%')
		return (unsigned char)c;
	c = (char)((unsigned)hex_digit_value(s.p[*i]) << 4 |
		   (unsigned)hex_digit_value(s.p[*i + 1]));
	*i += 2;
	return (unsigned char)c;
}

/*
 * Could a server find a "." or ".." segment in it: written plainly, encoded, between encoded or
 * turned slashes, or before a ";" that it cuts off?
 */
static bool has_dot_segment(struct span path)
{
	unsigned dots = 0;
	bool other = false, parameter = false;

	for (size_t i = 0; i < path.n;) {
		unsigned char c = decoded(path, &i);
		bool slash = c == '/' || c == '\\';

		if (slash) {
			if (!other && (dots == 1 || dots == 2))
				return true;
			dots = 0;
			other = parameter = false;
		} else if (c == ';') {
			parameter = true;
		} else if (!parameter) {
			if (c == '.')
				dots++;
			else
				other = true;
		}
	}
	return !other && (dots == 1 || dots == 2);
}

static bool has_encoded_control(struct span s, bool query)
{
	for (size_t i = 0; i < s.n;) {
		unsigned char c = decoded(s, &i);

		/* In a query a line feed is text that somebody searches for. */
		if (c == '\0' || (!query && (c < 0x20 || c == 0x7f)))
			return true;
	}
	return false;
}

static int parse_target(struct span t, struct url *u, enum reason *why, struct err *err)
{
	const char *mark = t.n > 0 ? memchr(t.p, '?', t.n) : NULL;
	struct span path = {t.p, mark ? (size_t)(mark - t.p) : t.n};
	struct span query =
		mark ? (struct span){mark + 1, t.n - path.n - 1} : (struct span){t.p, 0};
	size_t at = 0;

	if (!is_target_text(path, false) || !is_target_text(query, true))
		return reason_set(
			why, REASON_SYNTAX, err,
			"a character must be percent-encoded in a path or query");
	if (has_encoded_control(path, false) || has_encoded_control(query, true))
		return reason_set(why, REASON_SYNTAX, err,
				  "an encoded control character");
	if (has_dot_segment(path))
		return reason_set(why, REASON_DOT_SEGMENT, err,
				  "a path has a '.' or '..' segment");
	if (path.n == 0)
		u->target[at++] = '/';
	if (at + t.n >= sizeof(u->target))
		return reason_set(why, REASON_TOO_LONG, err, "over %d bytes",
				  URL_BYTES_MAX);
	if (t.n > 0)
		memcpy(u->target + at, t.p, t.n);
	u->target[at + t.n] = '\0';
	u->path_len = at + path.n;
	return 0;
}

/* ---- the whole ---- */

/* "name:" at the front, as RFC 3986 has it in any case; 0: there is none. */
static size_t scheme_len(struct span s)
{
	size_t n = 0;

	while (n < s.n &&
	       (is_alpha(s.p[n]) || (n > 0 && (is_digit(s.p[n]) || s.p[n] == '+' ||
					       s.p[n] == '-' || s.p[n] == '.'))))
		n++;
	return n > 0 && n < s.n && s.p[n] == ':' ? n : 0;
}

static int check_bytes(struct span s, enum reason *why, struct err *err)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '\\')
			return reason_set(why, REASON_BACKSLASH, err,
					  "a backslash means different things to "
					  "different readers");
		if (c == '#')
			return reason_set(why, REASON_FRAGMENT, err,
					  "a fragment is not sent; leave it out");
	}
	return 0;
}

/* What is written must be read again: a port or a slash may have come to it. */
static int check_length(const struct url *u, enum reason *why, struct err *err)
{
	cleanup_buf struct buf b;

	buf_init(&b, URL_BYTES_MAX);
	url_write(u, &b);
	if (!buf_ok(&b))
		return reason_set(why, REASON_TOO_LONG, err, "over %d bytes",
				  URL_BYTES_MAX);
	return 0;
}

int url_parse(const char *text, size_t len, struct url *ret, enum reason *ret_reason,
	      struct err *err)
{
	struct span s = {text, len}, authority;
	struct url u = {.https = true};
	size_t scheme;

	if (len > URL_BYTES_MAX)
		return reason_set(ret_reason, REASON_TOO_LONG, err, "over %d bytes",
				  URL_BYTES_MAX);
	scheme = scheme_len(s);
	if (scheme == 0)
		return reason_set(ret_reason, REASON_SYNTAX, err,
				  "a URL begins with https://");
	if (span_is((struct span){text, scheme}, "http"))
		u.https = false;
	else if (!span_is((struct span){text, scheme}, "https"))
		return reason_set(ret_reason, REASON_SCHEME, err,
				  "only https is fetched");
	if (check_bytes(s, ret_reason, err) < 0)
		return -1;
	s.p += scheme + 1;
	s.n -= scheme + 1;
	if (s.n < 2 || s.p[0] != '/' || s.p[1] != '/')
		return reason_set(ret_reason, REASON_SYNTAX, err,
				  "two slashes follow the scheme");
	s.p += 2;
	s.n -= 2;
	authority = (struct span){s.p, 0};
	while (authority.n < s.n && s.p[authority.n] != '/' && s.p[authority.n] != '?')
		authority.n++;
	if (parse_authority(authority, &u, ret_reason, err) < 0)
		return -1;
	s.p += authority.n;
	s.n -= authority.n;
	if (parse_target(s, &u, ret_reason, err) < 0 ||
	    check_length(&u, ret_reason, err) < 0)
		return -1;
	*ret = u;
	return 0;
}

enum reason url_needs_rule(const struct url *u)
{
	if (!u->https)
		return REASON_SCHEME;
	if (u->kind != URL_HOST_NAME)
		return REASON_IP_LITERAL;
	if (!strchr(u->host, '.'))
		return REASON_SINGLE_LABEL;
	return REASON_NONE;
}

static bool is_default_port(const struct url *u)
{
	return u->port == (u->https ? PORT_HTTPS : PORT_HTTP);
}

/* The host as it stands in a URL or a Host header: IPv6 in brackets, no port. */
static void url_write_host(const struct url *u, struct buf *out)
{
	if (u->kind == URL_HOST_IPV6)
		buf_addf(out, "[%s]", u->host);
	else
		buf_adds(out, u->host);
}

static void write_front(const struct url *u, bool with_port, struct buf *out)
{
	buf_adds(out, u->https ? "https://" : "http://");
	url_write_host(u, out);
	if (with_port)
		buf_addf(out, ":%u", (unsigned)u->port);
}

void url_write_origin(const struct url *u, struct buf *out)
{
	write_front(u, true, out);
}

const char *url_query(const struct url *u)
{
	return u->target[u->path_len] == '?' ? u->target + u->path_len + 1 : NULL;
}

void url_write(const struct url *u, struct buf *out)
{
	write_front(u, !is_default_port(u), out);
	buf_adds(out, u->target);
}

bool url_same_origin(const struct url *a, const struct url *b)
{
	return a->https == b->https && a->port == b->port && str_eq(a->host, b->host);
}

/* ---- redirects ---- */

int url_resolve(const struct url *base, const char *location, size_t len, struct url *ret,
		enum reason *ret_reason, struct err *err)
{
	struct span l = {location, len};
	const char *hash = len > 0 ? memchr(location, '#', len) : NULL;
	struct url u = *base;
	char merged[URL_BYTES_MAX + 1];
	size_t keep;

	if (hash)
		l.n = (size_t)(hash - location);
	if (l.n == 0 || l.n > URL_BYTES_MAX)
		return reason_set(ret_reason, REASON_REDIRECT_LOCATION, err,
				  "it is empty or over %d bytes", URL_BYTES_MAX);
	if (has(l, '\\') || (l.n >= 2 && l.p[0] == '/' && l.p[1] == '/'))
		return reason_set(ret_reason, REASON_REDIRECT_LOCATION, err,
				  "it names a host without a scheme");
	if (scheme_len(l) > 0)
		return url_parse(l.p, l.n, ret, ret_reason, err);
	/* What of the old path stays in front: nothing, all of it, or its directory. */
	keep = base->path_len;
	if (l.p[0] == '/')
		keep = 0;
	else if (l.p[0] != '?')
		while (keep > 0 && base->target[keep - 1] != '/')
			keep--;
	if (keep + l.n > URL_BYTES_MAX)
		return reason_set(ret_reason, REASON_REDIRECT_LOCATION, err,
				  "it is over %d bytes", URL_BYTES_MAX);
	memcpy(merged, base->target, keep);
	memcpy(merged + keep, l.p, l.n);
	if (parse_target((struct span){merged, keep + l.n}, &u, ret_reason, err) < 0) {
		if (ret_reason)
			*ret_reason = REASON_REDIRECT_LOCATION;
		return reason_set(NULL, REASON_REDIRECT_LOCATION, err,
				  "it holds what a URL may not");
	}
	if (check_length(&u, ret_reason, err) < 0)
		return -1;
	*ret = u;
	return 0;
}
