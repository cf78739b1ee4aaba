/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/url.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

struct bad {
	enum reason why;
	char url[160];
};

static struct bad refused[] = {
	/* schemes */
	{REASON_SCHEME, "file:///etc/passwd"},
	{REASON_SCHEME, "ftp://api.allowed.example/"},
	{REASON_SCHEME, "gopher://127.0.0.1:6379/_x"},
	{REASON_SCHEME, "dict://127.0.0.1:11211/"},
	{REASON_SCHEME, "ldap://api.allowed.example/"},
	{REASON_SCHEME, "tftp://api.allowed.example/x"},
	{REASON_SCHEME, "sftp://api.allowed.example/"},
	{REASON_SCHEME, "smb://api.allowed.example/"},
	{REASON_SCHEME, "jar:https://api.allowed.example!/"},
	{REASON_SCHEME, "data:text/plain,x"},
	{REASON_SCHEME, "unix:/run/x.sock"},
	{REASON_SCHEME, "http+unix://%2frun%2fx.sock/"},
	{REASON_SCHEME, "javascript:alert(1)"},
	{REASON_SCHEME, "ws://api.allowed.example/"},
	{REASON_SCHEME, "wss://api.allowed.example/"},
	{REASON_SCHEME, "HTTPS://api.allowed.example/"},
	{REASON_SCHEME, "api.allowed.example:443/"},
	/* hosts that are addresses in disguise */
	{REASON_HOST_GRAMMAR, "https://0x7f000001/"},
	{REASON_HOST_GRAMMAR, "https://0x7f.1/"},
	{REASON_HOST_GRAMMAR, "https://017700000001/"},
	{REASON_HOST_GRAMMAR, "https://127.1/"},
	{REASON_HOST_GRAMMAR, "https://127.0.0.1./"},
	{REASON_HOST_GRAMMAR, "https://08.8.8.8/"},
	{REASON_HOST_GRAMMAR, "https://4294967296/"},
	{REASON_HOST_GRAMMAR, "https://2130706433/"},
	{REASON_HOST_GRAMMAR, "https://1.2.3.4.5/"},
	{REASON_HOST_GRAMMAR, "https://256.1.1.1/"},
	{REASON_HOST_GRAMMAR, "https://foo.0x/"},
	{REASON_HOST_GRAMMAR, "https://foo.1/"},
	{REASON_HOST_GRAMMAR, "https://[::FFFF:7f00:1]/"},
	{REASON_HOST_GRAMMAR, "https://[0:0:0:0:0:0:0:1]/"},
	{REASON_PCT_HOST, "https://[fe80::1%25eth0]/"},
	{REASON_HOST_GRAMMAR, "https://[api.allowed.example]/"},
	{REASON_HOST_GRAMMAR, "https://[127.0.0.1]/"},
	{REASON_HOST_GRAMMAR, "https://[::1/"},
	{REASON_HOST_GRAMMAR, "https://[::1]x/"},
	{REASON_HOST_GRAMMAR, "https://[]/"},
	{REASON_HOST_GRAMMAR, "https://[v1.x]/"},
	/* parser tricks */
	{REASON_USERINFO, "https://127.0.0.1@api.allowed.example/"},
	{REASON_USERINFO, "https://@api.allowed.example/"},
	{REASON_USERINFO, "https://a:b@api.allowed.example/"},
	{REASON_BACKSLASH, "https://api.allowed.example\\@127.0.0.1/"},
	{REASON_BACKSLASH, "https:\\\\api.allowed.example/"},
	{REASON_BACKSLASH, "https://api.allowed.example/a\\b"},
	{REASON_FRAGMENT, "https://api.allowed.example#@127.0.0.1/"},
	{REASON_FRAGMENT, "https://api.allowed.example/#"},
	{REASON_PCT_HOST, "https://api.allowed.example%2eevil/"},
	{REASON_PCT_HOST, "https://127%2e0%2e0%2e1/"},
	{REASON_HOST_GRAMMAR, "https://127\u30020\u30020\u30021/"},
	{REASON_HOST_GRAMMAR, "https://api\u00ad.allowed.example/"},
	{REASON_HOST_GRAMMAR, "https://api\u200b.allowed.example/"},
	{REASON_HOST_GRAMMAR, "https://\uff41pi.allowed.example/"},
	{REASON_HOST_GRAMMAR, "https://api.allowed.example\u2044evil/"},
	{REASON_SYNTAX, "https:///127.0.0.1/"},
	{REASON_SYNTAX, "https:/127.0.0.1/"},
	{REASON_SYNTAX, "https:127.0.0.1"},
	{REASON_SYNTAX, "//127.0.0.1/"},
	{REASON_SYNTAX, "/etc/passwd"},
	{REASON_SYNTAX, ""},
	{REASON_SYNTAX, "https"},
	{REASON_SYNTAX, ":"},
	{REASON_SYNTAX, "https:"},
	{REASON_SYNTAX, "https://"},
	{REASON_SYNTAX, "https://?x"},
	{REASON_SYNTAX, " https://api.allowed.example/"},
	{REASON_SYNTAX, "https://api.allowed.example/ "},
	{REASON_SYNTAX, "https://api.allowed.example/a\tb"},
	{REASON_SYNTAX, "https://api.allowed.example/\r\nHost:x"},
	{REASON_HOST_GRAMMAR, "https://api.allo\nwed.example/"},
	{REASON_HOST_GRAMMAR, "https://api.allowed.example ./"},
	{REASON_HOST_GRAMMAR, "https://API.allowed.example/"},
	{REASON_HOST_GRAMMAR, "https://api_x.allowed.example/"},
	{REASON_HOST_GRAMMAR, "https://-a.example/"},
	{REASON_HOST_GRAMMAR, "https://a-.example/"},
	{REASON_HOST_GRAMMAR, "https://a..example/"},
	{REASON_HOST_GRAMMAR, "https://.example/"},
	{REASON_HOST_GRAMMAR, "https://api.allowed.example./"},
	{REASON_HOST_GRAMMAR, "https://api.allowed.example,evil.test/"},
	{REASON_HOST_GRAMMAR, "https://api.allowed.example;evil.test/"},
	{REASON_HOST_GRAMMAR, "https://*.example/"},
	{REASON_HOST_GRAMMAR, "https://xn--/"},
	{REASON_HOST_GRAMMAR, "https://xn--a.example/"},
	{REASON_HOST_GRAMMAR, "https://xn--bcher-.example/"},
	{REASON_HOST_GRAMMAR, "https://xn--99999999999.example/"},
	/* ports */
	{REASON_PORT, "https://api.allowed.example:443:80/"},
	{REASON_PORT, "https://api.allowed.example:65536/"},
	{REASON_PORT, "https://api.allowed.example:0/"},
	{REASON_PORT, "https://api.allowed.example:/"},
	{REASON_PORT, "https://api.allowed.example:0443/"},
	{REASON_PORT, "https://api.allowed.example:+443/"},
	{REASON_PORT, "https://api.allowed.example:443x/"},
	{REASON_PORT, "https://[::1]:99999/"},
	/* paths */
	{REASON_DOT_SEGMENT, "https://a.example/x/../y"},
	{REASON_DOT_SEGMENT, "https://a.example/.."},
	{REASON_DOT_SEGMENT, "https://a.example/./y"},
	{REASON_DOT_SEGMENT, "https://a.example/x/%2e%2E/y"},
	{REASON_DOT_SEGMENT, "https://a.example/x/.%2e"},
	{REASON_DOT_SEGMENT, "https://a.example/x/..%2fy"},
	{REASON_DOT_SEGMENT, "https://a.example/x%2f..%5cy"},
	{REASON_DOT_SEGMENT, "https://a.example/x/..;a=1/y"},
	{REASON_SYNTAX, "https://a.example/%"},
	{REASON_SYNTAX, "https://a.example/%4"},
	{REASON_SYNTAX, "https://a.example/%zz"},
	{REASON_SYNTAX, "https://a.example/%00"},
	{REASON_SYNTAX, "https://a.example/%0d%0aHost:x"},
	{REASON_SYNTAX, "https://a.example/?%00"},
	{REASON_SYNTAX, "https://a.example/\"x\""},
	{REASON_SYNTAX, "https://a.example/<x>"},
	{REASON_SYNTAX, "https://a.example/{x}"},
	{REASON_SYNTAX, "https://a.example/x|y"},
	{REASON_SYNTAX, "https://a.example/\u00e4"},
	{REASON_SYNTAX, "https://a.example/?[]"},
};

ParameterizedTestParameters(url, refuses)
{
	return cr_make_param_array(struct bad, refused,
				   sizeof(refused) / sizeof(refused[0]));
}

ParameterizedTest(struct bad *row, url, refuses)
{
	struct url u = {.port = 7};
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;

	cr_assert_lt(url_parse(row->url, strlen(row->url), &u, &why, &err), 0, "took %s",
		     row->url);
	cr_assert_str_eq(reason_word(why), reason_word(row->why), "%s: %s", row->url,
			 err.msg);
	cr_assert_eq(err.id, ERRID_FETCH_URL);
	cr_assert(str_starts(err.msg, reason_word(why)), "%s", err.msg);
	cr_assert_eq(u.port, 7, "the result was touched");
}

Test(url, refuses_a_nul_wherever_it_is)
{
	static const char good[] = "https://api.allowed.example:443/path?query";

	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		char text[sizeof(good)];
		struct url u;

		memcpy(text, good, sizeof(good));
		text[i] = '\0';
		cr_assert_lt(url_parse(text, sizeof(good) - 1, &u, NULL, NULL), 0,
			     "at %zu", i);
	}
}

Test(url, refuses_what_is_too_long)
{
	static char text[8192];
	enum reason why = REASON_NONE;
	struct url u;

	memset(text, 'a', sizeof(text));
	memcpy(text, "https://a.example/", 18);
	cr_assert_lt(url_parse(text, sizeof(text), &u, &why, NULL), 0);
	cr_assert_eq(why, REASON_TOO_LONG);
	cr_assert_lt(url_parse(text, URL_BYTES_MAX + 1, &u, &why, NULL), 0);
	cr_assert_eq(why, REASON_TOO_LONG);
	cr_assert_eq(url_parse(text, URL_BYTES_MAX, &u, &why, NULL), 0);
	/* An empty path grows by a slash. */
	memcpy(text, "https://a.example?", 18);
	cr_assert_lt(url_parse(text, URL_BYTES_MAX, &u, &why, NULL), 0);
	cr_assert_eq(why, REASON_TOO_LONG);
	cr_assert_eq(url_parse(text, URL_BYTES_MAX - 1, &u, &why, NULL), 0);
	cr_assert_eq(u.target[0], '/');
	/* Labels of 63, hosts of 253. */
	memset(text, 'a', sizeof(text));
	memcpy(text, "https://", 8);
	text[8 + 63] = '.';
	cr_assert_eq(url_parse(text, 8 + 63 + 2, &u, &why, NULL), 0);
	cr_assert_lt(url_parse(text + 0, 8 + 63 + 1 + 64, &u, &why, NULL), 0);
	for (size_t i = 8 + 63; i < 8 + 256; i += 64)
		text[i] = '.';
	cr_assert_eq(url_parse(text, 8 + 253, &u, &why, NULL), 0);
	cr_assert_lt(url_parse(text, 8 + 254, &u, &why, NULL), 0);
	cr_assert_eq(why, REASON_HOST_GRAMMAR);
}

struct good {
	enum url_host kind;
	enum reason rule;
	uint16_t port;
	char in[120], host[64], out[120], path[64];
};

ParameterizedTestParameters(url, takes)
{
	static struct good rows[] = {
		{URL_HOST_NAME, REASON_NONE, 443, "https://api.allowed.example",
		 "api.allowed.example", "https://api.allowed.example/", "/"},
		{URL_HOST_NAME, REASON_NONE, 443,
		 "https://api.allowed.example:443/a/b?c=d&e", "api.allowed.example",
		 "https://api.allowed.example/a/b?c=d&e", "/a/b"},
		{URL_HOST_NAME, REASON_NONE, 443,
		 "https://api.allowed.example?@127.0.0.1/", "api.allowed.example",
		 "https://api.allowed.example/?@127.0.0.1/", "/"},
		{URL_HOST_NAME, REASON_NONE, 8443, "https://r3---sn-x.example:8443/",
		 "r3---sn-x.example", "https://r3---sn-x.example:8443/", "/"},
		{URL_HOST_NAME, REASON_NONE, 443, "https://xn--bcher-kva.example/",
		 "xn--bcher-kva.example", "https://xn--bcher-kva.example/", "/"},
		{URL_HOST_NAME, REASON_NONE, 443, "https://a.example/%252e%252e/x",
		 "a.example", "https://a.example/%252e%252e/x", "/%252e%252e/x"},
		{URL_HOST_NAME, REASON_NONE, 443, "https://a.example/.../.x/x..?/../%0a",
		 "a.example", "https://a.example/.../.x/x..?/../%0a", "/.../.x/x.."},
		{URL_HOST_NAME, REASON_NONE, 443, "https://a.example//x//", "a.example",
		 "https://a.example//x//", "//x//"},
		{URL_HOST_NAME, REASON_SCHEME, 80, "http://a.example/", "a.example",
		 "http://a.example/", "/"},
		{URL_HOST_NAME, REASON_SINGLE_LABEL, 443, "https://api/", "api",
		 "https://api/", "/"},
		{URL_HOST_IPV4, REASON_SCHEME, 80, "http://127.0.0.1/", "127.0.0.1",
		 "http://127.0.0.1/", "/"},
		{URL_HOST_IPV4, REASON_IP_LITERAL, 443, "https://8.8.8.8/", "8.8.8.8",
		 "https://8.8.8.8/", "/"},
		{URL_HOST_IPV4, REASON_IP_LITERAL, 443, "https://127.0.0.1/", "127.0.0.1",
		 "https://127.0.0.1/", "/"},
		{URL_HOST_IPV4, REASON_IP_LITERAL, 443, "https://100.100.100.200/",
		 "100.100.100.200", "https://100.100.100.200/", "/"},
		{URL_HOST_IPV6, REASON_IP_LITERAL, 443, "https://[::1]/", "::1",
		 "https://[::1]/", "/"},
		{URL_HOST_IPV6, REASON_IP_LITERAL, 8080, "https://[fd00:ec2::254]:8080/x",
		 "fd00:ec2::254", "https://[fd00:ec2::254]:8080/x", "/x"},
		{URL_HOST_IPV6, REASON_IP_LITERAL, 443, "https://[::ffff:127.0.0.1]/",
		 "::ffff:127.0.0.1", "https://[::ffff:127.0.0.1]/", "/"},
		{URL_HOST_IPV6, REASON_IP_LITERAL, 443, "https://[64:ff9b::a9fe:a9fe]/",
		 "64:ff9b::a9fe:a9fe", "https://[64:ff9b::a9fe:a9fe]/", "/"},
		{URL_HOST_IPV6, REASON_IP_LITERAL, 443, "https://[2002:7f00:1::]/",
		 "2002:7f00:1::", "https://[2002:7f00:1::]/", "/"},
	};

	return cr_make_param_array(struct good, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct good *row, url, takes)
{
	cleanup_buf struct buf out;
	struct err err = ERR_INIT;
	struct url u, again;

	buf_init(&out, URL_BYTES_MAX);
	cr_assert_eq(url_parse(row->in, strlen(row->in), &u, NULL, &err), 0, "%s: %s",
		     row->in, err.msg);
	url_write(&u, &out);
	cr_assert_str_eq(buf_str(&out), row->out);
	cr_assert_str_eq(u.host, row->host);
	cr_assert_eq(u.port, row->port);
	cr_assert_eq(u.kind, row->kind);
	cr_assert_eq(u.path_len, strlen(row->path));
	cr_assert_eq(memcmp(u.target, row->path, u.path_len), 0);
	cr_assert_eq(url_needs_rule(&u), row->rule);
	/* What was written is read as the same. */
	cr_assert_eq(url_parse(buf_str(&out), out.len, &again, NULL, &err), 0);
	cr_assert_str_eq(again.target, u.target);
	cr_assert(url_same_origin(&u, &again));
}

struct hop {
	enum reason why;
	char location[80], out[80];
};

ParameterizedTestParameters(url, resolves)
{
	static struct hop rows[] = {
		{REASON_REDIRECT_LOCATION, "//127.0.0.1/", ""},
		{REASON_REDIRECT_LOCATION, "\\\\127.0.0.1", ""},
		{REASON_REDIRECT_LOCATION, "/\\127.0.0.1", ""},
		{REASON_REDIRECT_LOCATION, "/x\r\nSet-Cookie: a", ""},
		{REASON_REDIRECT_LOCATION, "/x\ny", ""},
		{REASON_REDIRECT_LOCATION, "", ""},
		{REASON_REDIRECT_LOCATION, "#only", ""},
		{REASON_REDIRECT_LOCATION, "../up", ""},
		{REASON_REDIRECT_LOCATION, "/a/%2e%2e/b", ""},
		{REASON_REDIRECT_LOCATION, " /x", ""},
		{REASON_SCHEME, "javascript:x", ""},
		{REASON_SCHEME, "file:///etc/passwd", ""},
		{REASON_USERINFO, "https://a@b.example/", ""},
		{REASON_HOST_GRAMMAR, "https://0x7f000001/", ""},
		{REASON_SYNTAX, "https:/b.example/", ""},
		{REASON_NONE, "https://b.example/x#frag", "https://b.example/x"},
		{REASON_NONE, "http://127.0.0.1/", "http://127.0.0.1/"},
		{REASON_NONE, "/root?q", "https://a.example:444/root?q"},
		{REASON_NONE, "?q", "https://a.example:444/dir/page?q"},
		{REASON_NONE, "next", "https://a.example:444/dir/next"},
		{REASON_NONE, "sub/next?x", "https://a.example:444/dir/sub/next?x"},
		{REASON_NONE, "/x#a#b", "https://a.example:444/x"},
	};

	return cr_make_param_array(struct hop, rows, sizeof(rows) / sizeof(rows[0]));
}

ParameterizedTest(struct hop *row, url, resolves)
{
	static const char from[] = "https://a.example:444/dir/page?old";
	cleanup_buf struct buf out;
	struct err err = ERR_INIT;
	enum reason why = REASON_NONE;
	struct url base, to;
	int r;

	buf_init(&out, URL_BYTES_MAX);
	cr_assert_eq(url_parse(from, sizeof(from) - 1, &base, NULL, NULL), 0);
	r = url_resolve(&base, row->location, strlen(row->location), &to, &why, &err);
	cr_assert_str_eq(reason_word(why), reason_word(row->why), "%s: %s", row->location,
			 err.msg);
	cr_assert_eq(r, row->why == REASON_NONE ? 0 : -1);
	if (r < 0)
		return;
	url_write(&to, &out);
	cr_assert_str_eq(buf_str(&out), row->out);
}

Test(url, origin_is_scheme_host_and_port)
{
	static const char *const others[] = {
		"http://a.example:443/", "https://a.example:444/", "https://b.example/",
		"https://a.example.b/"};
	static const char text[] = "https://a.example/x";
	struct url a, b;

	cr_assert_eq(url_parse(text, sizeof(text) - 1, &a, NULL, NULL), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		cr_assert_eq(url_parse(others[i], strlen(others[i]), &b, NULL, NULL), 0);
		cr_assert_not(url_same_origin(&a, &b), "%s", others[i]);
	}
	cr_assert_eq(url_parse("https://a.example:443/?y", 24, &b, NULL, NULL), 0);
	cr_assert(url_same_origin(&a, &b));
}
