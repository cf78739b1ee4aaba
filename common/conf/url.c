/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The URLs, hosts and addresses that codex.yaml may name. The grammar is smaller than
 * that of the URLs which jobs ask for: a person wrote these and can write them plainly.
 */
#include "common/conf/priv.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/host.h"
#include "common/mem.h"
#include "common/str.h"

#include <arpa/inet.h>

#define URL_MAX_BYTES 1024

static int refuse(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_START_CONFIG, "%s", why);
}

int conf_host_check(const char *host, struct err *err)
{
	switch (host_name_check(host, strlen(host))) {
	case HOST_OK:
		break;
	case HOST_LONG:
		return refuse(err, "the host is longer than 253 bytes");
	case HOST_LABEL:
		return refuse(err, "a host is lower-case letters, digits and '-' "
				   "between single dots (other scripts as xn--)");
	case HOST_A_LABEL:
		return refuse(err, "a part of the host begins with xn-- and stands for "
				   "no name of another script");
	case HOST_NUMBER:
		return refuse(err, "a host that ends in a number is no name; an address "
				   "is four decimal numbers (of IPv6: in [ ] in a "
				   "URL, without them in a rule)");
	}
	return 0;
}

int conf_host_check_full(const char *host, struct err *err)
{
	if (conf_host_check(host, err) < 0)
		return -1;
	if (!strchr(host, '.'))
		return refuse(err, "a host name of one label means another machine in "
				   "another place: write the full name, or the address");
	return 0;
}

bool conf_host_is_plain(const char *host)
{
	cleanup_free char *address = conf_address(host);

	return address ? str_eq(address, host) : conf_host_check(host, NULL) == 0;
}

/* Spellings of one address are one: what inet_ntop() makes of it. */
char *conf_address(const char *text)
{
	unsigned char bin[sizeof(struct in6_addr)];
	char canonical[INET6_ADDRSTRLEN];

	if (inet_pton(AF_INET, text, bin) == 1)
		return inet_ntop(AF_INET, bin, canonical, sizeof(canonical))
			       ? xstrdup(canonical)
			       : NULL;
	if (inet_pton(AF_INET6, text, bin) != 1)
		return NULL;
	/* An IPv4 address in IPv6 clothes is written as what it is. */
	if (IN6_IS_ADDR_V4MAPPED((struct in6_addr *)bin) ||
	    IN6_IS_ADDR_UNSPECIFIED((struct in6_addr *)bin))
		return NULL;
	return inet_ntop(AF_INET6, bin, canonical, sizeof(canonical)) ? xstrdup(canonical)
								      : NULL;
}

bool conf_address_is_local(const char *address)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, address, &four) == 1) {
		uint32_t a = ntohl(four.s_addr);

		return a >> 24 == 127 || a >> 24 == 10 || a >> 20 == 0xac1 ||
		       a >> 16 == 0xc0a8 || a >> 16 == 0xa9fe || a >> 22 == 0x191;
	}
	if (inet_pton(AF_INET6, address, &six) != 1)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_LINKLOCAL(&six) ||
	       (six.s6_addr[0] & 0xfe) == 0xfc;
}

bool conf_url_is_loopback(const struct conf_url *u)
{
	struct in6_addr six;
	struct in_addr four;

	if (!u->is_address)
		return false;
	if (inet_pton(AF_INET, u->host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, u->host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool is_path_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c != '\0' && strchr("/-._~!$&'()+,;=:@", c));
}

int conf_path_check(const char *path, struct err *err)
{
	if (path[0] != '/')
		return refuse(err, "a path begins with '/'");
	for (const char *p = path; *p; p++)
		if (!is_path_char(*p))
			return refuse(err,
				      "a path has no escapes, patterns, blanks, '?' or "
				      "'#'");
	if (strstr(path, "//"))
		return refuse(err, "a path has no empty segment");
	/* a URL has none in front of a parameter either */
	for (const char *p = path; p; p = strchr(p, '/')) {
		size_t n = strcspn(++p, "/;");

		if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return refuse(err, "a path has no '.' or '..'");
	}
	return 0;
}

/* A part of a path, of the characters that there are in one. */
static bool may_be_up(const char *s, size_t n)
{
	unsigned dots = 0;
	size_t i = 0;

	for (; i < n && (s[i] == '.' || s[i] == '+'); i++)
		dots += s[i] == '.';
	if (dots < 2)
		return false;
	return i == n || s[i] == ';' ||
	       (s[i] == ':' &&
		(memchr(s + i, '$', n - i) || i + strspn(s + i, ":") >= n));
}

bool conf_path_may_climb(const char *path)
{
	for (size_t n; *path; path += n) {
		path += *path == '/';
		n = strcspn(path, "/");
		if (may_be_up(path, n))
			return true;
	}
	return false;
}

void conf_url_done(struct conf_url *u)
{
	free(u->host);
	free(u->path);
	free(u->text);
	*u = (struct conf_url){0};
}

/* text: what stands between "//" and the path. */
static int read_authority(char *text, struct conf_url *u, struct err *err)
{
	char *port = NULL, *end;
	uint64_t number = u->https ? 443 : 80;
	struct err why = ERR_INIT;

	if (strchr(text, '@'))
		return refuse(err, "a user or password does not belong into a URL: name "
				   "a secret");
	if (text[0] == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] != '\0' && end[1] != ':'))
			return refuse(err, "an address in [ ] is not closed");
		port = end[1] == ':' ? end + 2 : NULL;
		*end = '\0';
		u->host = strchr(text, ':') ? conf_address(text + 1) : NULL;
		if (!u->host)
			return refuse(err, "not an IPv6 address in [ ]");
		u->is_address = true;
	} else {
		end = strchr(text, ':');
		if (end) {
			*end = '\0';
			port = end + 1;
		}
		u->host = conf_address(text);
		u->is_address = u->host != NULL;
		if (!u->host) {
			if (conf_host_check_full(text, err) < 0)
				return -1;
			u->host = xstrdup(text);
		}
	}
	if (port && parse_u64(port, 1, 65535, &number, &why) < 0)
		return refuse(err, "the port is a number from 1 to 65535");
	u->port = (unsigned)number;
	return 0;
}

static int read_url(const char *text, struct conf_url *u, struct err *err)
{
	cleanup_free char *authority = NULL;
	const char *rest;
	size_t len;

	if (strlen(text) > URL_MAX_BYTES)
		return refuse(err, "the URL is longer than 1024 bytes");
	if (!str_starts(text, "https://") && !str_starts(text, "http://"))
		return refuse(err, "https://HOST[:PORT][/PATH]");
	u->https = str_starts(text, "https://");
	rest = text + (u->https ? strlen("https://") : strlen("http://"));
	len = strcspn(rest, "/?#");
	authority = xstrndup(rest, len);
	if (read_authority(authority, u, err) < 0)
		return -1;
	rest += len;
	if (*rest && conf_path_check(rest, err) < 0)
		return -1;
	len = strlen(rest);
	while (len > 0 && rest[len - 1] == '/')
		len--;
	u->path = xstrndup(rest, len);
	return 0;
}

static char *put_together(const struct conf_url *u)
{
	bool v6 = strchr(u->host, ':') != NULL;
	char port[8] = "";

	if (u->port != (u->https ? 443u : 80u))
		(void)snprintf(port, sizeof(port), ":%u", u->port);
	return xasprintf("%s://%s%s%s%s%s", u->https ? "https" : "http", v6 ? "[" : "",
			 u->host, v6 ? "]" : "", port, u->path);
}

int conf_url_parse(const char *text, struct conf_url *ret, struct err *err)
{
	struct conf_url u = {0};

	if (read_url(text, &u, err) < 0) {
		conf_url_done(&u);
		return -1;
	}
	u.text = put_together(&u);
	*ret = u;
	return 0;
}
