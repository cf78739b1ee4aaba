/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych.
 * See machine.h.
 */
#include "cli/base/machine.h"

#include "cli/base/proc.h"
#include "common/addr_public.h"
#include "common/cleanup.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <strings.h>
#include <sys/socket.h>

#define SETTINGS_MAX_BYTES ((size_t)1 << 20)
#define NPM_TIMEOUT (20 * USEC_PER_SEC)
#define ADDRESSES_MAX 16

struct machine_registry {
	char *url;  /* as it stands there; NULL: nothing is set */
	char *from; /* the variable, file or program that says so */
};

static void machine_registry_done(struct machine_registry *r)
{
	free(r->url);
	free(r->from);
	*r = (struct machine_registry){0};
}

/* ---- files of settings --------------------------------------------------------- */

/* One line without blanks around it: [section], key = value, or a comment. */
static char *trimmed(const char *line, size_t len)
{
	while (len && strchr(" \t\r", line[len - 1]))
		len--;
	while (len && strchr(" \t", *line)) {
		line++;
		len--;
	}
	return xstrndup(line, len);
}

/* "index-url" and "index_url" are one key to pip; npm's has neither. */
static bool is_key(const char *line, const char *key, const char **ret_value)
{
	const char *p = line;

	for (; *key; key++, p++)
		if (*p != *key && !(*key == '-' && *p == '_'))
			return false;
	p += strspn(p, " \t");
	if (*p != '=' && *p != ':')
		return false;
	p++;
	*ret_value = p + strspn(p, " \t");
	return true;
}

char *machine_ini_value(const char *text, const char *section, const char *key)
{
	bool inside = section == NULL;
	char *found = NULL;

	for (const char *at = text; at && *at;) {
		const char *nl = strchr(at, '\n'), *value;
		cleanup_free char *line =
			trimmed(at, nl ? (size_t)(nl - at) : strlen(at));
		size_t n = strlen(line);

		at = nl ? nl + 1 : NULL;
		if (section && line[0] == '[' && line[n - 1] == ']')
			inside = n == strlen(section) + 2 &&
				 strncmp(line + 1, section, n - 2) == 0;
		else if (inside && is_key(line, key, &value) && *value) {
			free(found); /* the last one counts */
			n = strlen(value);
			found = n > 1 && value[0] == '"' && value[n - 1] == '"'
					? xstrndup(value + 1, n - 2)
					: xstrdup(value);
		}
	}
	return found;
}

static bool from_env(const char *name, struct machine_registry *ret)
{
	const char *value = getenv(name);

	if (!value || !*value)
		return false;
	ret->url = xstrdup(value);
	ret->from = xstrdup(name);
	return true;
}

static bool from_file(const char *path, const char *section, const char *key,
		      struct machine_registry *ret)
{
	cleanup_free char *text = NULL;
	struct err ignored = ERR_INIT;
	size_t len;

	if (!path ||
	    fs_read_file(AT_FDCWD, path, SETTINGS_MAX_BYTES, &text, &len, &ignored) < 0)
		return false;
	ret->url = machine_ini_value(text, section, key);
	if (!ret->url)
		return false;
	ret->from = xstrdup(path);
	return true;
}

/* ---- npm ------------------------------------------------------------------------ */

/* npm knows its own default, and so we need not. */
static bool ask_npm(struct machine_registry *ret)
{
	static const char *const programs[] = {"/usr/local/bin/npm", "/usr/bin/npm"};
	cleanup_env char **env = proc_env();
	struct err ignored = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		/* it would make ~/.npm for its own log, even where there was none */
		const char *const argv[] = {
			programs[i],	     "config", "get", "registry",
			"--cache=/dev/null", NULL};
		cleanup_free char *out = NULL;
		char *url, *end;

		if (access(programs[i], X_OK) < 0 ||
		    proc_run(argv, (const char *const *)env, NULL, NPM_TIMEOUT,
			     ERRID_START_TOOL, &out, &ignored) < 0 ||
		    !out)
			continue;
		/* its warnings may stand before or behind the answer */
		url = str_starts(out, "http") ? out : strstr(out, "\nhttp");
		if (!url)
			continue;
		url += *url == '\n';
		end = url + strcspn(url, " \r\n");
		ret->url = xstrndup(url, (size_t)(end - url));
		ret->from = xasprintf("%s config get registry", programs[i]);
		return true;
	}
	return false;
}

static void npm_registry(const char *home, struct machine_registry *ret)
{
	static const char *const env[] = {"npm_config_registry", "NPM_CONFIG_REGISTRY"};
	static const char *const files[] = {"/usr/local/etc/npmrc", "/usr/etc/npmrc",
					    "/etc/npmrc"};
	cleanup_free char *mine = xasprintf("%s/.npmrc", home);

	for (size_t i = 0; i < ARRAY_SIZE(env); i++)
		if (from_env(env[i], ret))
			return;
	if (from_file(getenv("NPM_CONFIG_USERCONFIG"), NULL, "registry", ret) ||
	    from_file(mine, NULL, "registry", ret) ||
	    from_file(getenv("NPM_CONFIG_GLOBALCONFIG"), NULL, "registry", ret))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (from_file(files[i], NULL, "registry", ret))
			return;
	(void)ask_npm(ret);
}

/* ---- pip ------------------------------------------------------------------------- */

static void pip_registry(const char *home, struct machine_registry *ret)
{
	static const char *const env[] = {"PIP_INDEX_URL", "UV_DEFAULT_INDEX",
					  "UV_INDEX_URL"};
	const char *config = getenv("XDG_CONFIG_HOME");
	cleanup_free char *xdg = config && *config
					 ? xasprintf("%s/pip/pip.conf", config)
					 : xasprintf("%s/.config/pip/pip.conf", home);
	cleanup_free char *old = xasprintf("%s/.pip/pip.conf", home);
	const char *const files[] = {getenv("PIP_CONFIG_FILE"), xdg, old,
				     "/etc/xdg/pip/pip.conf", "/etc/pip.conf"};

	for (size_t i = 0; i < ARRAY_SIZE(env); i++)
		if (from_env(env[i], ret))
			return;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (from_file(files[i], "global", "index-url", ret))
			return;
}

/* The strongest setting wins, as for the program itself: environment, the user's file, the
 * machine's; of npm then its own default, which it is asked for. The others' settings are not
 * read. */
static void machine_registry(enum registry_kind kind, const char *home,
			     struct machine_registry *ret)
{
	*ret = (struct machine_registry){0};
	if (kind == REGISTRY_NPM)
		npm_registry(home, ret);
	else if (kind == REGISTRY_PYPI)
		pip_registry(home, ret);
}

/* ---- into codex.yaml ---------------------------------------------------------------- */

static bool is_public(const struct sockaddr *sa)
{
	struct addr a = {.v6 = sa->sa_family == AF_INET6};

	if (a.v6)
		memcpy(a.b, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr,
		       16);
	else
		memcpy(a.b, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	return addr_is_public(&a);
}

/* What is not public is the user's to allow: it is shown here, never filled in. */
static void write_addresses(const struct conf_url *url, struct buf *out)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	bool is_first = true;
	unsigned n = 0;

	if (getaddrinfo(url->host, NULL, &hints, &list) != 0) {
		buf_addf(out, "    # %s does not resolve here now\n", url->host);
		return;
	}
	for (const struct addrinfo *i = list; i && n < ADDRESSES_MAX; i = i->ai_next) {
		char text[NI_MAXHOST];

		if (is_public(i->ai_addr) ||
		    getnameinfo(i->ai_addr, i->ai_addrlen, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) != 0)
			continue;
		if (is_first)
			buf_adds(
				out,
				"    # It resolves to an address that is not public, and "
				"is refused until\n    # you allow that address by "
				"taking "
				"the '#' away, if you know it to be right:\n"
				"    # addresses:\n");
		is_first = false;
		buf_addf(out, "    #   - \"%s\"\n", text);
		n++;
	}
	freeaddrinfo(list);
}

static bool write_registry(enum registry_kind kind, const struct machine_registry *r,
			   bool resolves, struct buf *out)
{
	struct conf_url url = {0};
	struct err why = ERR_INIT;

	if (conf_url_parse(r->url, &url, &why) == 0 && !url.https)
		(void)err_set(&why, ERR_INVALID, "it is not https");
	if (!err_is_set(&why) && url.is_address)
		(void)err_set(&why, ERR_INVALID,
			      "an address must stand in addresses too");
	/* The URL may hold a password: it is not repeated. */
	if (err_is_set(&why)) {
		buf_addf(out, "  # %s: the setting was not taken: %s\n",
			 registry_kind_name(kind), why.msg);
	} else {
		buf_addf(out, "  %s:\n    url: \"%s\"\n", registry_kind_name(kind),
			 url.text);
		if (resolves)
			write_addresses(&url, out);
		if (kind == REGISTRY_PYPI)
			buf_adds(out, "    # file_hosts:  # where its downloads lie, if "
				      "on another host\n    #   - files.example.org\n");
	}
	conf_url_done(&url);
	return !err_is_set(&why);
}

void machine_write_registries(const char *home, bool resolves, struct buf *out)
{
	cleanup_buf struct buf body = {0};
	cleanup_buf struct buf rules = {0};

	buf_init(&body, CONF_FILE_MAX_BYTES / 4);
	buf_init(&rules, 4096);
	for (unsigned k = 0; k < REGISTRY_KIND_MAX_; k++) {
		struct machine_registry r;

		machine_registry((enum registry_kind)k, home, &r);
		if (r.url && !str_has_control(r.from, strlen(r.from)) &&
		    utf8_is_valid(r.from, strlen(r.from))) {
			buf_addf(&body, "  # from %s\n", r.from);
			if (write_registry((enum registry_kind)k, &r, resolves, &body))
				buf_addf(&rules, "#   - {registry: %s, action: allow}\n",
					 registry_kind_name((enum registry_kind)k));
		}
		machine_registry_done(&r);
	}
	if (!body.len)
		return;
	buf_addf(out,
		 "\n# From the npm and pip settings of this machine.\n%sregistries:\n%s",
		 rules.len ? "" : "# ", buf_str(&body));
	if (rules.len)
		buf_addf(out,
			 "# Nothing is installed from there before the ward allows it to "
			 "jobs that run with\n# --egress registry. Take the '#' away, or "
			 "move the rules to your own ward:\n# ward:\n%s",
			 buf_str(&rules));
}
