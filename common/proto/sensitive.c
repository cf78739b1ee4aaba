/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See sensitive.h.
 */
#include "common/proto/sensitive.h"

#include "common/attr.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- names ------------------------------------------------------------------ */

static bool same(const char *a, const char *b, size_t len)
{
	return strncasecmp(a, b, len) == 0;
}

/* mark: "dir/begin"; name: as below. */
static bool is_below(const char *mark, const char *path, size_t len, const char *name)
{
	size_t n = strlen(mark), dir = (size_t)(strrchr(mark, '/') + 1 - mark);
	size_t at = (size_t)(name - path);

	return at >= dir && at - dir + n <= len && same(path + at - dir, mark, n) &&
	       (at == dir || path[at - dir - 1] == '/');
}

/* name: the last component of path[0..len). */
static bool row_hits(const struct sensitive *row, const char *path, size_t len,
		     const char *name)
{
	size_t n = strlen(row->name), m = len - (size_t)(name - path);

	switch (row->kind) {
	case SENSITIVE_NAME:
	case SENSITIVE_PUBLIC:
		return n == m && same(name, row->name, n);
	case SENSITIVE_FILE:
		return n == m && same(name, row->name, n) && path[len] != '/';
	case SENSITIVE_BEGIN:
		return n <= m && same(name, row->name, n);
	case SENSITIVE_END:
		return n < m && same(name + m - n, row->name, n);
	case SENSITIVE_PLACE:
		return n <= len && same(path + len - n, row->name, n) &&
		       (n == len || path[len - n - 1] == '/');
	case SENSITIVE_BELOW:
		return is_below(row->name, path, len, name);
	case SENSITIVE_SYSTEM:
		return n == len && same(path, row->name, n);
	case SENSITIVE_KIND_MAX_:
	default:
		return false;
	}
}

const struct sensitive *sensitive_entry(const char *path, size_t len)
{
	const char *slash = len ? memrchr(path, '/', len) : NULL;
	const char *name = slash ? slash + 1 : path;
	const struct sensitive *found = NULL;

	for (size_t i = 0; i < sensitive_table_len; i++) {
		const struct sensitive *row = &sensitive_table[i];

		if (!row_hits(row, path, len, name))
			continue;
		if (row->kind == SENSITIVE_PUBLIC)
			return NULL;
		if (!found)
			found = row;
	}
	return found;
}

const struct sensitive *sensitive_path(const char *path, size_t *ret_len)
{
	for (size_t len = 0; path[len];) {
		const struct sensitive *row;

		len += path[len] == '/';
		len += strcspn(path + len, "/");
		row = sensitive_entry(path, len);
		if (row) {
			*ret_len = len;
			return row;
		}
	}
	return NULL;
}

/* ---- what a file holds ------------------------------------------------------ */

static const char *find(const char *head, size_t len, const char *mark)
{
	return memmem(head, len, mark, strlen(mark));
}

static const char *find_nocase(const char *head, size_t len, const char *mark)
{
	size_t n = strlen(mark);

	for (size_t i = 0; i + n <= len; i++)
		if (same(head + i, mark, n))
			return head + i;
	return NULL;
}

/* Does a line begin so, blanks apart? A program that only speaks of it has it in quotes. */
static const char *find_line(const char *head, size_t len, const char *mark)
{
	const char *end = head + len;

	for (const char *at = head; (at = find(at, (size_t)(end - at), mark));
	     at += strlen(mark)) {
		const char *s = at;

		while (s > head && (s[-1] == ' ' || s[-1] == '\t'))
			s--;
		if (s == head || s[-1] == '\n' || s[-1] == '\r')
			return at;
	}
	return NULL;
}

/* Is it a key of YAML or JSON there: at a line's begin or in a flow, with or without quotes? */
static bool has_key(const char *head, size_t len, const char *key)
{
	const char *end = head + len;

	for (const char *at = head; (at = find(at, (size_t)(end - at), key));
	     at += strlen(key)) {
		const char *before = at, *behind = at + strlen(key);
		char quote = before > head && strchr("'\"", before[-1]) ? before[-1] : 0;

		if (quote && (behind == end || *behind++ != quote))
			continue;
		before -= quote != 0;
		while (before > head && (before[-1] == ' ' || before[-1] == '\t'))
			before--;
		while (behind < end && (*behind == ' ' || *behind == '\t'))
			behind++;
		if (behind < end && *behind == ':' &&
		    (before == head || strchr("\r\n{,-?", before[-1])))
			return true;
	}
	return false;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool name_is(const char *path, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(last_name(path), names[i]) == 0)
			return true;
	return false;
}

static bool name_ends(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n >= m && strcasecmp(path + n - m, end) == 0;
}

/* A name that says "key": .pem, .key and the like are public more often than not. */
static bool may_be_key(const char *path)
{
	return name_ends(path, ".pem") || name_ends(path, ".key") ||
	       name_ends(path, ".p8") || same(last_name(path), "id_", 3);
}

/* "PrivateKey = ", and 32 bytes in base64, which end with "=". */
static bool has_wireguard_key(const char *head, size_t len)
{
	static const char mark[] = "PrivateKey";
	enum { DIGITS = 43 };
	const char *end = head + len;

	for (const char *at = head; (at = find_line(at, (size_t)(end - at), mark));) {
		const char *s = at += sizeof(mark) - 1;
		size_t n = 0;

		while (s < end && (*s == ' ' || *s == '\t' || *s == '='))
			s++;
		while (s + n < end &&
		       (isalnum((unsigned char)s[n]) || s[n] == '+' || s[n] == '/'))
			n++;
		if (s > at && n == DIGITS && s + n < end && s[n] == '=')
			return true;
	}
	return false;
}

static bool has_private_key(const char *path, const char *head, size_t len)
{
	static const char begin[] = "-----BEGIN ", end[] = "PRIVATE KEY";
	const char *stop = head + len;

	if (may_be_key(path) && find(head, len, "PRIVATE KEY-----"))
		return true;
	for (const char *at = head;
	     (at = find_line(at, (size_t)(stop - at), begin)) != NULL;
	     at += sizeof(begin) - 1) {
		size_t left = (size_t)(stop - at);
		const char *nl = memchr(at, '\n', left);

		if (find(at, nl ? (size_t)(nl - at) : left, end))
			return true;
	}
	/* in a string of JSON, as of Google's service accounts, which have any name */
	if ((name_ends(path, ".json") || find(head, len, "\"private_key\"")) &&
	    find(head, len, "PRIVATE KEY-----\\n"))
		return true;
	return find_line(head, len, "AGE-SECRET-KEY-1") ||
	       find_line(head, len, "AGE-SECRET-KEY-PQ-1") ||
	       find_line(head, len, "-----BEGIN OpenVPN Static key") ||
	       has_wireguard_key(head, len) ||
	       (len > 20 && same(head, "PuTTY-User-Key-File-", 20));
}

/* "${NAME}", in whose place pip and others put what the environment has. */
static bool is_reference(const char *s, const char *end)
{
	if (end - s < 4 || s[0] != '$' || s[1] != '{' || end[-1] != '}')
		return false;
	for (s += 2; s < end - 1; s++)
		if (!isalnum((unsigned char)*s) && *s != '_')
			return false;
	return true;
}

/* "user:password@host", "TOKEN@host", behind the scheme: a name alone is none. */
static bool has_password(const char *user, const char *end)
{
	enum { TOKEN_BYTES = 20 };
	const char *s = user, *colon = NULL;

	for (; s < end && *s != '/' && *s != '@' && !isspace((unsigned char)*s); s++)
		if (*s == ':' && !colon)
			colon = s;
	if (s == end || *s != '@')
		return false;
	if (colon && colon + 1 < s && !is_reference(colon + 1, s))
		return true;
	if (colon && colon + 1 < s)
		s = colon; /* a password from elsewhere, but a name like a token */
	return s - user >= TOKEN_BYTES && !is_reference(user, s);
}

/* ?token=..., &X-Amz-Signature=...: what a query gives, if its name ends so. */
static bool has_query_secret(const char *value)
{
	static const char *const ends[] = {"token",  "password",  "passwd", "pwd",
					   "secret", "signature", "sig",    "key"};

	for (const char *at = value; (at = strpbrk(at, "?&;"));) {
		size_t n = strcspn(++at, "=&;#");

		if (at[n] != '=' || !at[n + 1] || strchr("&;#$", at[n + 1]))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
			size_t m = strlen(ends[i]);

			if (n >= m && same(at + n - m, ends[i], m))
				return true;
		}
	}
	return false;
}

/* ".../t/TOKEN/...", as conda has it. */
static bool has_path_token(const char *url)
{
	const char *at = strstr(url, "/t/");

	return at && isalnum((unsigned char)at[3]);
}

static bool has_url_token(const char *path, const char *head, size_t len)
{
	static const char mark[] = "://";
	const char *end = head + len;
	bool is_conda = name_is(path, (const char *const[]){".condarc", "condarc"}, 2);

	for (const char *at = head; (at = find(at, (size_t)(end - at), mark));) {
		size_t n = 0;

		for (at += sizeof(mark) - 1; at + n < end && at[n] &&
					     !isspace((unsigned char)at[n]) &&
					     !strchr("\"'", at[n]);)
			n++;
		cleanup_free char *url = xstrndup(at, n);

		if (has_query_secret(url) || (is_conda && has_path_token(url)))
			return true;
	}
	return false;
}

/* token = "...", as Bun has it of a registry: $NAME is what the environment has. */
static bool has_toml_secret(const char *head, size_t len)
{
	static const char *const keys[] = {"token", "password"};
	const char *end = head + len;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		for (const char *at = head;
		     (at = find(at, (size_t)(end - at), keys[i]));) {
			const char *before = at, *s = at += strlen(keys[i]);

			while (before > head && strchr(" \t\"", before[-1]))
				before--;
			while (s < end && strchr(" \t\"=", *s) && *s)
				s++;
			if ((before == head || strchr("\r\n{,", before[-1])) &&
			    memchr(at, '=', (size_t)(s - at)) && s < end &&
			    !isspace((unsigned char)*s) && !strchr("$,}", *s))
				return true;
		}
	return false;
}

static bool has_url_password(const char *head, size_t len)
{
	static const char mark[] = "://";
	const char *end = head + len;

	for (const char *at = head; (at = find(at, (size_t)(end - at), mark));)
		if (has_password(at += sizeof(mark) - 1, end))
			return true;
	return false;
}

/* "extraheader = AUTHORIZATION: basic ...", as the checkout of a pipeline leaves it. What is
 * sent to a server with every request is there to show who asks, whatever its name. */
static bool has_header_token(const char *head, size_t len)
{
	static const char mark[] = "extraheader";
	const char *end = head + len;

	for (const char *at = head; (at = find_nocase(at, (size_t)(end - at), mark));) {
		const char *s = at += sizeof(mark) - 1;

		while (s < end && (*s == ' ' || *s == '\t' || *s == '"'))
			s++;
		if (s == end || *s != '=')
			continue;
		s = memchr(s, ':', (size_t)(end - s));
		if (s && !memchr(at, '\n', (size_t)(s - at)))
			return true;
	}
	return false;
}

/* A kubeconfig of any name, whose user has more than a certificate. */
static bool has_cluster_key(const char *head, size_t len)
{
	static const char *const keys[] = {"token", "password", "id-token",
					   "refresh-token", "client-secret"};

	if (has_key(head, len, "client-key-data"))
		return true;
	if (!has_key(head, len, "clusters") || !has_key(head, len, "users"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (has_key(head, len, keys[i]))
			return true;
	return false;
}

/* Whose lines with URLs, or with headers, are those that a program signs in with. */
static bool may_have_url(const char *path)
{
	static const char *const names[] = {
		"config",	"config.worktree", "fetch_head",      ".gitmodules",
		"gitconfig",	"pip.conf",	   ".yarnrc",	      "hgrc",
		".hgrc",	".condarc",	   "condarc",	      "bunfig.toml",
		".bunfig.toml", "uv.toml",	   "requirements.txt"};

	/* also .gitconfig-work and the like, which includes name */
	return name_is(path, names, ARRAY_SIZE(names)) ||
	       same(last_name(path), ".gitconfig", strlen(".gitconfig"));
}

/* What it holds, of bytes of ASCII. */
static const char *judge(const char *path, const char *head, size_t len)
{
	static const struct {
		const char *name, *mark;
	} marks[] = {
		{"auth.json", "\"http-basic\""},
		{"auth.json", "\"github-oauth\""},
		{"auth.json", "\"bearer\""},
		{"auth.json", "_token\""},
		{"auth.json", "_api_key\""},
		{"auth.json", "\"auths\""}, /* Podman's */
		{".yarnrc", ":_authToken"},
		{".hgrc", ".password"},
		{"hgrc", ".password"},
		{"nix.conf", "access-tokens"},
		{".yarnrc.yml", "npmAuthToken"},
		{".yarnrc.yml", "npmAuthIdent"},
		{"nuget.config", "<packageSourceCredentials"},
		{"nuget.config", "<apikeys>"},
		{"nuget.config", "key=\"Password\""},
		{"nuget.config", "key=\"ClearTextPassword\""},
	};

	if (has_private_key(path, head, len))
		return "a private key";
	if (has_cluster_key(head, len))
		return "the key of a cluster";
	if (may_have_url(path) &&
	    (has_url_password(head, len) || has_url_token(path, head, len) ||
	     has_header_token(head, len) || find_nocase(head, len, "access_token=")))
		return "a password or token";
	if (name_is(path, (const char *const[]){"bunfig.toml", ".bunfig.toml"}, 2) &&
	    has_toml_secret(head, len))
		return "a password or token";
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (name_is(path, &marks[i].name, 1) &&
		    find_nocase(head, len, marks[i].mark))
			return "a password or token";
	return NULL;
}

/* A URL that is a secret as a whole: whoever has it may post there. */
static bool is_webhook(const char *value, size_t len)
{
	static const char *const marks[] = {"hooks.slack.com/services/", "/api/webhooks/",
					    "webhook.office.com/"};

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (find_nocase(value, len, marks[i]))
			return true;
	return false;
}

/* me:pw@host:3128, as a proxy may be given: without a scheme, but with a port. */
static bool ends_with_port(const char *value, size_t len)
{
	size_t n = len;

	while (n > 0 && isdigit((unsigned char)value[n - 1]))
		n--;
	return n > 0 && n < len && value[n - 1] == ':';
}

const char *sensitive_value(const char *name, const char *value)
{
	size_t len = strlen(value);

	if (has_private_key("", value, len))
		return "a private key";
	if (has_url_password(value, len) ||
	    ((name_ends(name, "_proxy") || ends_with_port(value, len)) &&
	     has_password(value, value + len)) ||
	    (str_starts(value, "//") && has_password(value + 2, value + len)) ||
	    has_query_secret(value) || is_webhook(value, len))
		return "a password or token in a URL";
	return NULL;
}

/* UTF-16, as some editors of Windows save it: with a mark, or with a NUL beside the first
 * letter. Its letters of ASCII are the bytes that are left without the NULs. */
static bool is_wide(const char *head, size_t len)
{
	return len >= 2 && (memcmp(head, "\xff\xfe", 2) == 0 ||
			    memcmp(head, "\xfe\xff", 2) == 0 || !head[0] != !head[1]);
}

const char *sensitive_content(const char *path, const char *head, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 */
	cleanup_free char *narrow = NULL;
	size_t n = 0;

	if (len >= 3 && memcmp(head, mark, 3) == 0)
		return judge(path, head + 3, len - 3);
	if (!is_wide(head, len))
		return judge(path, head, len);
	narrow = xmalloc(len);
	for (size_t i = 0; i < len; i++)
		if (head[i] && (i > 1 || (head[i] != '\xff' && head[i] != '\xfe')))
			narrow[n++] = head[i];
	return judge(path, narrow, n);
}
