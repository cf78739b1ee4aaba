/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See registry.h.
 */
#include "vessel/broker/intents/registry.h"
#include "vessel/broker/intents/registry_cargo.h"
#include "vessel/broker/intents/registry_go.h"
#include "vessel/broker/intents/registry_links.h"

#include "common/buf.h"
#include "common/mem.h"
#include "common/proto/broker_proto.h"
#include "common/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define SIMPLE "simple/"
#define PEP691 "application/vnd.pypi.simple.v1+json"
#define PEP691_HTML "application/vnd.pypi.simple.v1+html"

#define PLACE_SIZE 24 /* "~", a number, "/" */

void registry_init(struct registry *r, enum registry_kind kind,
		   const struct conf_registry *c, const uint8_t links_key[SHA256_SIZE])
{
	*r = (struct registry){.kind = kind, .n_files = c->n_file_hosts};
	memcpy(r->links_key, links_key, SHA256_SIZE);
	r->url = xasprintf("%s/", c->url.text);
	for (size_t i = 0; i < r->n_files; i++)
		r->files[i] = xasprintf("https://%s/", c->file_host[i]);
}

void registry_done(struct registry *r)
{
	free(r->url);
	for (size_t i = 0; i < r->n_files; i++)
		free(r->files[i]);
	explicit_bzero(r->links_key, sizeof(r->links_key));
	*r = (struct registry){.n_files = 0};
}

static int refuse(struct err *err, const char *why)
{
	return err_set_id(err, ERRID_REGISTRY_PATH, "%s", why);
}

/* The escapes that real clients send; length 3 of one that is allowed, else 0. */
static size_t escape_len(const char *s, bool in_scope)
{
	if (strncasecmp(s, "%2f", 3) == 0)
		return in_scope ? 3 : 0;
	return strncasecmp(s, "%2b", 3) == 0 || strncasecmp(s, "%40", 3) == 0 ? 3 : 0;
}

static int check_segment(const char *s, size_t len, struct err *err)
{
	bool in_scope = s[0] == '@' || strncmp(s, "%40", 3) == 0;

	if ((len == 1 && s[0] == '.') || (len == 2 && s[0] == '.' && s[1] == '.'))
		return refuse(err, "a dot segment");
	for (size_t i = 0; i < len;) {
		size_t n = 1;

		if (s[i] == '%')
			n = escape_len(s + i, in_scope && i > 0);
		else if (!isalnum((unsigned char)s[i]) && !strchr("-._~@+!", s[i]))
			n = 0;
		if (!n)
			return refuse(err, "a character that no package has");
		i += n;
	}
	return 0;
}

static int check_path(const char *path, struct err *err)
{
	const char *s = path;

	if (!*path || strlen(path) > REGISTRY_PATH_MAX)
		return refuse(err, *path ? "it is too long" : "it names nothing");
	while (*s) {
		size_t len = strcspn(s, "/");

		if (!len)
			return refuse(err, "an empty segment");
		if (check_segment(s, len, err) < 0)
			return -1;
		s += len;
		if (*s == '/')
			s++;
	}
	return 0;
}

static size_t origin_len(const char *url)
{
	const char *host = strstr(url, "://");

	return host ? (size_t)(strchrnul(host + 3, '/') - url) + 1 : 0;
}

/* Its files may lie beside its index, as PyPI's and cargo's do. */
static bool has_origin(const struct registry *r)
{
	return r->kind == REGISTRY_PYPI || r->kind == REGISTRY_CARGO;
}

/* "~N/REST", "~0/MARK/REST": true with what stands before REST upstream. */
static bool place(const struct registry *r, const char *path, const char **ret_base,
		  size_t *ret_len, const char **ret_rest)
{
	size_t n;

	if (path[0] != '~' || !isdigit((unsigned char)path[1]) || path[2] != '/')
		return false;
	n = (size_t)(path[1] - '0');
	if (n > r->n_files || (n == 0 && !has_origin(r)))
		return false;
	*ret_base = n ? r->files[n - 1] : r->url;
	*ret_len = n ? strlen(*ret_base) : origin_len(r->url);
	*ret_rest = n ? path + 3 : registry_link_named(r, path + 3);
	return *ret_rest && **ret_rest;
}

/* Of npm's paths only packuments have a name of one or (with a scope) two segments. */
static bool is_packument(const char *rest)
{
	const char *slash = strchr(rest, '/');

	if (strncmp(rest, "-/", 2) == 0)
		return false;
	return !slash || (rest[0] == '@' && !strchr(slash + 1, '/') && slash[1]);
}

static bool is_tarball(const char *rest)
{
	return strstr(rest, "/-/") &&
	       (str_ends(rest, ".tgz") || str_ends(rest, ".tar.gz"));
}

static bool is_distribution(const char *rest)
{
	static const char *const ends[] = {".whl",	    ".tar.gz",
					   ".zip",	    ".tar.bz2",
					   ".whl.metadata", ".tar.gz.metadata"};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (str_ends(rest, ends[i]))
			return true;
	return false;
}

static bool is_file(enum registry_kind kind, const char *rest)
{
	switch (kind) {
	case REGISTRY_NPM:
		return str_ends(rest, ".tgz");
	case REGISTRY_PYPI:
		return is_distribution(rest);
	case REGISTRY_CARGO:
		return registry_cargo_is_file(rest);
	case REGISTRY_GO:
	case REGISTRY_KIND_MAX_:
		break;
	}
	return false; /* Go's lie where its indexes are */
}

struct what {
	bool index, file;
};

static struct what below_url(enum registry_kind kind, const char *path)
{
	enum go_path go;

	switch (kind) {
	case REGISTRY_NPM:
		return (struct what){is_packument(path), is_tarball(path)};
	case REGISTRY_PYPI:
		return (struct what){strchrnul(path, '/')[0] == '/' &&
					     strchr(path, '/')[1] == '\0',
				     is_distribution(path)};
	case REGISTRY_CARGO:
		return (struct what){str_eq(path, CARGO_CONFIG_PATH) ||
					     registry_cargo_is_index(path),
				     registry_cargo_is_file(path)};
	case REGISTRY_GO:
		go = registry_go_path(path);
		return (struct what){go != GO_NOTHING && go != GO_FILE, go == GO_FILE};
	case REGISTRY_KIND_MAX_:
		break;
	}
	return (struct what){false, false};
}

int registry_upstream(const struct registry *r, const char *path, char *url, size_t size,
		      bool *ret_index, struct err *err)
{
	const char *base = r->url, *rest = path;
	size_t len = strlen(base);
	struct what is = {false, false};

	if (check_path(path, err) < 0)
		return -1;
	if (place(r, path, &base, &len, &rest)) {
		is.file = is_file(r->kind, rest);
	} else if (path[0] == '~') {
		return refuse(err, has_origin(r) && str_starts(path, "~0/")
					   ? "no link of an index of this registry; ask "
					     "for the index again"
					   : "no such place of files");
	} else {
		if (r->kind == REGISTRY_PYPI && !str_starts(path, SIMPLE))
			return refuse(err, "a simple index is below simple/");
		rest = path + (r->kind == REGISTRY_PYPI ? strlen(SIMPLE) : 0);
		is = below_url(r->kind, rest);
	}
	if (!is.index && !is.file)
		return refuse(err, "neither an index nor a file of a package");
	if (str_fmt(url, size, "%.*s%s", (int)len, base, rest) < 0)
		return refuse(err, "it is too long");
	*ret_index = is.index;
	return 0;
}

bool registry_is_elsewhere(const char *path)
{
	return path[0] == '~' && path[1] != '0';
}

/* RFC 3986, 5.2.4, of a path; in place. */
static void remove_dots(char *path)
{
	char *in = path, *out = path;

	while (*in) {
		size_t len = strcspn(in + 1, "/") + 1; /* "/segment" */

		if (len == 2 && in[1] == '.') {
			if (!in[2])
				*out++ = '/';
		} else if (len == 3 && in[1] == '.' && in[2] == '.') {
			while (out > path && *--out != '/')
				;
			if (!in[3])
				*out++ = '/';
		} else {
			memmove(out, in, len);
			out += len;
		}
		in += len;
	}
	*out = '\0';
}

/* The absolute form of a link; false where there is none that could be ours. */
static bool absolute(const char *page, const char *link, char *out, size_t size)
{
	size_t origin = origin_len(page);
	int r;

	if (!origin || link[0] == '?' || link[0] == '#' || !link[0] ||
	    strpbrk(link, " \\?"))
		return false;
	if (strncasecmp(link, "http://", 7) == 0 || strncasecmp(link, "https://", 8) == 0)
		r = str_copy(out, size, link);
	else if (link[0] == '/' && link[1] == '/')
		return false;
	else if (link[0] == '/')
		r = str_fmt(out, size, "%.*s%s", (int)origin, page, link + 1);
	else if (memchr(link, ':', strcspn(link, "/")))
		return false; /* another scheme */
	else
		r = str_fmt(out, size, "%.*s%s", (int)(strrchr(page, '/') - page + 1),
			    page, link);
	origin = r < 0 ? 0 : origin_len(out);
	if (!origin || out[origin - 1] != '/')
		return false;
	remove_dots(out + origin - 1);
	return true;
}

/* The place of the registry that the URL is below: its name on our side, and what
 * follows. NULL: none. */
static const char *place_of(const struct registry *r, const char *url,
			    char name[PLACE_SIZE])
{
	size_t origin = origin_len(r->url);

	name[0] = '\0';
	if (str_starts(url, r->url)) {
		(void)snprintf(name, PLACE_SIZE, "%s",
			       r->kind == REGISTRY_PYPI ? SIMPLE : "");
		return url + strlen(r->url);
	}
	if (has_origin(r) && strncmp(url, r->url, origin) == 0) {
		(void)snprintf(name, PLACE_SIZE, "~0/");
		return url + origin;
	}
	for (size_t i = 0; i < r->n_files; i++)
		if (str_starts(url, r->files[i])) {
			(void)snprintf(name, PLACE_SIZE, "~%zu/", i + 1);
			return url + strlen(r->files[i]);
		}
	return NULL;
}

bool registry_resolve(const struct registry_page *page, const char *link, char *url,
		      size_t size)
{
	char name[PLACE_SIZE];

	return strlen(link) < REGISTRY_LINK_MAX && !strchr(link, '#') &&
	       !str_has_control(link, strlen(link)) &&
	       absolute(page->url, link, url, size) &&
	       place_of(page->registry, url, name) != NULL;
}

bool registry_map_link(void *arg, const char *link, struct buf *out)
{
	const struct registry_page *page = arg;
	const struct registry *r = page->registry;
	char url[REGISTRY_LINK_MAX * 2], fragment[256] = "", name[PLACE_SIZE];
	char mark[REGISTRY_MARK_SIZE] = "";
	const char *rest;
	char *hash;

	if (!absolute(page->url, link, url, sizeof(url)) ||
	    (r->kind == REGISTRY_CARGO && !registry_dl_is_usable(link)))
		return false;
	hash = strchr(url, '#');
	if (hash && str_copy(fragment, sizeof(fragment), hash) < 0)
		return false;
	if (hash)
		*hash = '\0';
	rest = place_of(r, url, name);
	if (!rest || (str_eq(name, "~0/") && !registry_link_mark(r, rest, mark)))
		return false;
	buf_addf(out, BROKER_URL "/registry/%s/%s%s%s%s%s", registry_kind_name(r->kind),
		 name, mark, mark[0] ? "/" : "", rest, fragment);
	return true;
}

const char *registry_accept(enum registry_kind kind, enum broker_simple wants)
{
	static const char *const simple[SIMPLE_MAX_] = {
		[SIMPLE_HTML] = PEP691_HTML ", text/html; q=0.9",
		[SIMPLE_JSON] = PEP691,
		[SIMPLE_HTML_JSON] = PEP691_HTML ", text/html; q=0.9, " PEP691 "; q=0.1",
		[SIMPLE_JSON_HTML] = PEP691 ", " PEP691_HTML "; q=0.2, text/html; q=0.1",
	};

	if (kind == REGISTRY_PYPI)
		return simple[wants];
	if (kind != REGISTRY_NPM)
		return "*/*";
	return "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8";
}

static bool type_is(const char *content_type, const char *type)
{
	size_t n = strlen(type);

	return strncasecmp(content_type, type, n) == 0 &&
	       (content_type[n] == '\0' || content_type[n] == ';' ||
		content_type[n] == ' ');
}

/* A page whose ASCII is ASCII. In another (UTF-7, EBCDIC) there may be tags for its reader that are
 * none for us. */
static int check_charset(const char *type, struct err *err)
{
	static const char *const plain[] = {"utf-8", "us-ascii", "iso-8859-1",
					    "windows-1252"};
	const char *at = strcasestr(type, "charset");
	size_t len;

	if (!at)
		return 0;
	at += strlen("charset");
	if (*at == '=' && !strcasestr(at, "charset")) {
		at += at[1] == '"' ? 2 : 1;
		len = strcspn(at, "\"; ");
		for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
			if (len == strlen(plain[i]) &&
			    strncasecmp(at, plain[i], len) == 0)
				return 0;
	}
	return err_set_id(err, ERRID_REGISTRY_INDEX, "its charset is not UTF-8");
}

/* A server may send what it was not asked for. */
static int simple_form(enum broker_simple wants, const char *type,
		       struct registry_is *ret, struct err *err)
{
	bool is_json = type_is(type, PEP691);

	if (!is_json && !type_is(type, "text/html") && !type_is(type, PEP691_HTML))
		return err_set_id(err, ERRID_REGISTRY_INDEX,
				  "its content type is neither");
	if (wants == (is_json ? SIMPLE_HTML : SIMPLE_JSON))
		return err_set_id(err, ERRID_REGISTRY_INDEX,
				  "the registry has %s, and the request takes %s alone",
				  is_json ? "JSON (PEP 691)" : "HTML (PEP 503)",
				  is_json ? "HTML" : "JSON");
	*ret = (struct registry_is){.form = is_json ? REGISTRY_JSON : REGISTRY_HTML,
				    .key = is_json ? "url" : NULL,
				    .content_type = type};
	return check_charset(type, err);
}

static int go_form(const char *path, struct registry_is *ret, struct err *err)
{
	ret->content_type = "text/plain; charset=utf-8";
	switch (registry_go_path(path)) {
	case GO_LIST:
		ret->form = REGISTRY_GO_LIST;
		return 0;
	case GO_INFO:
		ret->form = REGISTRY_GO_INFO;
		ret->content_type = "application/json";
		return 0;
	case GO_NOTE:
		ret->form = REGISTRY_GO_NOTE;
		return 0;
	case GO_FILE:
	case GO_NOTHING:
		break;
	}
	return err_set_id(err, ERRID_REGISTRY_INDEX, "it is none");
}

int registry_form(const struct registry_got *got, struct registry_is *ret,
		  struct err *err)
{
	const char *type = got->content_type ? got->content_type : "";

	*ret = (struct registry_is){.content_type = type};
	switch (got->kind) {
	case REGISTRY_PYPI:
		return simple_form(got->wants, type, ret, err);
	case REGISTRY_GO:
		return go_form(got->path, ret, err);
	case REGISTRY_CARGO:
		ret->form = !str_eq(got->path, CARGO_CONFIG_PATH) ? REGISTRY_CRATE
			    : got->has_key ? REGISTRY_CARGO_CONFIG_KEY
					   : REGISTRY_CARGO_CONFIG;
		ret->content_type =
			ret->form == REGISTRY_CRATE ? "text/plain" : "application/json";
		return 0;
	case REGISTRY_NPM:
	case REGISTRY_KIND_MAX_:
		break;
	}
	if (!type_is(type, "application/json") &&
	    !type_is(type, "application/vnd.npm.install-v1+json"))
		return err_set_id(err, ERRID_REGISTRY_INDEX,
				  "its content type is neither");
	ret->form = REGISTRY_JSON;
	ret->key = "tarball";
	return check_charset(type, err);
}
