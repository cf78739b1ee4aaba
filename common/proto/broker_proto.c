/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See broker_proto.h.
 */
#include "common/proto/broker_proto.h"

#include "common/base64.h"
#include "common/buf.h"
#include "common/str.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define KEY_PREFIX "lych-"

void broker_key_write(const uint8_t raw[BROKER_KEY_BYTES], struct broker_key *ret)
{
	cleanup_buf struct buf text = {.max = 64};
	size_t at = strlen(KEY_PREFIX);

	base64_add(&text, raw, BROKER_KEY_BYTES);
	/* Without the padding, and with the alphabet that needs no escape anywhere. */
	assert(buf_ok(&text) && text.len == BROKER_KEY_SIZE - sizeof(KEY_PREFIX) + 1);
	memcpy(ret->s, KEY_PREFIX, at);
	for (size_t i = 0; i < text.len - 1; i++) {
		char c = text.data[i];

		ret->s[at++] = c == '+' ? '-' : c == '/' ? '_' : c;
	}
	ret->s[at] = '\0';
	explicit_bzero(text.data, text.len);
}

bool broker_version_is_valid(const char *s)
{
	static const char form[] = "dddd-dd-dd";

	for (size_t i = 0; i < sizeof(form); i++)
		if (form[i] == 'd' ? !isdigit((unsigned char)s[i]) : s[i] != form[i])
			return false;
	return true;
}

bool broker_betas(const char *s, char out[BROKER_BETAS_SIZE])
{
	size_t at = 0;

	for (unsigned i = 0; i < BROKER_BETAS_MAX; i++) {
		size_t n = 0;

		s += strspn(s, " ");
		while (isalnum((unsigned char)s[n]) || (s[n] && strchr("._-", s[n])))
			n++;
		if (n == 0 || n > BROKER_BETA_MAX_BYTES)
			return false;
		memcpy(out + at, s, n);
		at += n;
		s += n + strspn(s + n, " ");
		out[at] = '\0';
		if (*s == '\0')
			return true;
		if (*s++ != ',')
			return false;
		out[at++] = ',';
	}
	return false;
}

static const char *const simple_names[] = {
	[SIMPLE_NEITHER] = "neither",	  [SIMPLE_HTML] = "html",
	[SIMPLE_JSON] = "json",		  [SIMPLE_HTML_JSON] = "html,json",
	[SIMPLE_JSON_HTML] = "json,html",
};

const char *broker_simple_name(enum broker_simple s)
{
	return s < SIMPLE_MAX_ ? simple_names[s] : NULL;
}

bool broker_simple_from_name(const char *name, enum broker_simple *ret)
{
	for (unsigned i = 0; i < SIMPLE_MAX_; i++)
		if (str_eq(simple_names[i], name)) {
			*ret = (enum broker_simple)i;
			return true;
		}
	return false;
}

/* RFC 9110, 12.4.2: "0.5" in thousandths; -1: no weight. */
static int weight(const char *s, size_t len)
{
	int ret = 0, unit = 1000;

	if (!len || len > 5 || (s[0] != '0' && s[0] != '1') || (len > 1 && s[1] != '.'))
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (i == 1)
			continue;
		if (!isdigit((unsigned char)s[i]))
			return -1;
		ret += (s[i] - '0') * unit;
		unit /= 10;
	}
	return ret <= 1000 ? ret : -1;
}

static const char *semicolon(const char *s, const char *end)
{
	while (s < end && *s != ';')
		s++;
	return s;
}

/* The weight of "type; q=0.5", 1 without one; what has no form has none. */
static int range_weight(const char *s, size_t len, size_t *ret_type_len)
{
	const char *end = s + len, *at = semicolon(s, end);
	int ret = 1000;

	*ret_type_len = (size_t)(at - s);
	while (*ret_type_len && s[*ret_type_len - 1] == ' ')
		--*ret_type_len;
	while (at < end) {
		const char *next = semicolon(++at, end);

		while (at < next && *at == ' ')
			at++;
		if (next - at >= 2 && (at[0] == 'q' || at[0] == 'Q') && at[1] == '=') {
			size_t n = (size_t)(next - at) - 2;

			while (n && at[2 + n - 1] == ' ')
				n--;
			ret = weight(at + 2, n);
		}
		at = next;
	}
	return ret;
}

static bool range_is(const char *s, size_t len, const char *type)
{
	return len == strlen(type) && strncasecmp(s, type, len) == 0;
}

#define PYPI_TYPE "application/vnd.pypi.simple."

enum broker_simple broker_simple_of(const char *accept)
{
	static const struct {
		const char *type;
		bool html, json;
	} rows[] = {
		{PYPI_TYPE "v1+json", false, true},
		{PYPI_TYPE "latest+json", false, true},
		{PYPI_TYPE "v1+html", true, false},
		{PYPI_TYPE "latest+html", true, false},
		{"text/html", true, false},
		/* from here on wider, and what is named counts before them */
		{"text/*", true, false},
		{"application/*", true, true},
		{"*/*", true, true},
	};
	const size_t first_wide = 5;
	int html = -1, json = -1, wide_html = -1, wide_json = -1;
	bool likes_json;

	for (const char *s = accept; s; s = strchr(s, ',')) {
		size_t len, type_len;
		int q;

		s += strspn(s, ", ");
		len = strcspn(s, ",");
		q = range_weight(s, len, &type_len);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			int *h = i < first_wide ? &html : &wide_html;
			int *j = i < first_wide ? &json : &wide_json;

			if (!range_is(s, type_len, rows[i].type))
				continue;
			if (rows[i].html && q > *h)
				*h = q;
			if (rows[i].json && q > *j)
				*j = q;
		}
	}
	if (!accept)
		wide_html = wide_json = 1000;
	likes_json = json >= 0;
	html = html < 0 ? wide_html : html;
	json = json < 0 ? wide_json : json;
	if (html <= 0)
		return json > 0 ? SIMPLE_JSON : SIMPLE_NEITHER;
	if (json <= 0)
		return SIMPLE_HTML;
	return json > html || (json == html && likes_json) ? SIMPLE_JSON_HTML
							   : SIMPLE_HTML_JSON;
}

enum value { VALUE_TEXT, VALUE_KEY };

#define SDK 1u
#define MIRRORS 2u
static const struct {
	unsigned who;
	enum value kind;
	const char *name, *text;
} variables[] = {
	{SDK, VALUE_TEXT, "OPENAI_BASE_URL", BROKER_URL "/v1"},
	{SDK, VALUE_KEY, "OPENAI_API_KEY", NULL},
	{SDK, VALUE_TEXT, "ANTHROPIC_BASE_URL", BROKER_URL},
	{SDK, VALUE_KEY, "ANTHROPIC_API_KEY", NULL},
	{SDK, VALUE_TEXT, "GOOGLE_GEMINI_BASE_URL", BROKER_URL},
	{SDK, VALUE_KEY, "GEMINI_API_KEY", NULL},
	/* A proxy of the job's own is not between it and the broker. */
	{SDK, VALUE_TEXT, "NO_PROXY", BROKER_ADDRESS ",localhost,::1"},
	{SDK, VALUE_TEXT, "no_proxy", BROKER_ADDRESS ",localhost,::1"},
	/* Any other host of HTTPS is asked for through the broker, whose authority is believed. */
	{SDK, VALUE_TEXT, "HTTPS_PROXY", BROKER_URL},
	{SDK, VALUE_TEXT, "https_proxy", BROKER_URL},
	{SDK, VALUE_TEXT, "NODE_USE_ENV_PROXY", "1"},
	{SDK, VALUE_TEXT, "SSL_CERT_FILE", BROKER_CA_PATH},
	{SDK, VALUE_TEXT, "CURL_CA_BUNDLE", BROKER_CA_PATH},
	{SDK, VALUE_TEXT, "REQUESTS_CA_BUNDLE", BROKER_CA_PATH},
	{SDK, VALUE_TEXT, "NODE_EXTRA_CA_CERTS", BROKER_CA_PATH},
	{SDK, VALUE_TEXT, "GIT_SSL_CAINFO", BROKER_CA_PATH},
	{SDK, VALUE_TEXT, "CARGO_HTTP_CAINFO", BROKER_CA_PATH},
	{SDK, VALUE_TEXT, "PIP_CERT", BROKER_CA_PATH},
	/* What a machine's own npmrc says would take the place of NODE_EXTRA_CA_CERTS. */
	{SDK, VALUE_TEXT, "NPM_CONFIG_CAFILE", BROKER_CA_PATH},
	{MIRRORS, VALUE_TEXT, "PIP_INDEX_URL", BROKER_URL BROKER_PATH_PYPI "simple/"},
	{MIRRORS, VALUE_TEXT, "PIP_DISABLE_PIP_VERSION_CHECK", "1"},
	{MIRRORS, VALUE_TEXT, "UV_DEFAULT_INDEX", BROKER_URL BROKER_PATH_PYPI "simple/"},
	{MIRRORS, VALUE_TEXT, "NPM_CONFIG_REGISTRY", BROKER_URL BROKER_PATH_NPM},
	/* What a read-only mirror does not have. */
	{MIRRORS, VALUE_TEXT, "NPM_CONFIG_AUDIT", "false"},
	{MIRRORS, VALUE_TEXT, "NPM_CONFIG_FUND", "false"},
	{MIRRORS, VALUE_TEXT, "NPM_CONFIG_UPDATE_NOTIFIER", "false"},
	{MIRRORS, VALUE_TEXT, "CARGO_HOME", "/work/" BROKER_CARGO_HOME},
	/* It would offer HTTP/2 on a connection that has no TLS. */
	{MIRRORS, VALUE_TEXT, "CARGO_HTTP_MULTIPLEXING", "false"},
	{MIRRORS, VALUE_TEXT, "GOPROXY", BROKER_URL "/registry/go"},
};

const char broker_cargo_config[] =
	"[source.crates-io]\n"
	"replace-with = \"lychgate\"\n"
	"\n"
	"[source.lychgate]\n"
	"registry = \"sparse+" BROKER_URL BROKER_PATH_CARGO "\"\n";

void broker_env(enum sbx_grade grade, enum egress_mode egress,
		const struct broker_key *key,
		void (*put)(const char *name, const char *value, void *arg), void *arg)
{
	unsigned who = egress == EGRESS_REGISTRY ? SDK | MIRRORS : SDK;

	if (egress == EGRESS_NONE)
		return;
	put("LYCHGATE_BROKER", grade == GRADE_FULL ? BROKER_URL : "fd:3", arg);
	put("LYCHGATE_BROKER_KEY", key->s, arg);
	for (size_t i = 0; grade == GRADE_FULL && i < ARRAY_SIZE(variables); i++)
		if (variables[i].who & who)
			put(variables[i].name,
			    variables[i].kind == VALUE_KEY ? key->s : variables[i].text,
			    arg);
}

void broker_env_mirrors(void (*put)(const char *name, const char *value, void *arg),
			void *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (variables[i].who & MIRRORS)
			put(variables[i].name, variables[i].text, arg);
}

/* They name another place, or another key, to a program that reads ours. */
static const struct {
	unsigned who;
	const char *name;
} misleading[] = {
	{SDK, "ANTHROPIC_AUTH_TOKEN"}, {SDK, "OPENAI_API_BASE"},
	{SDK, "GOOGLE_API_KEY"},       {SDK, "GOOGLE_GENAI_USE_VERTEXAI"},
	{SDK, "GOOGLE_GENAI_USE_GCA"}, {SDK, "GOOGLE_VERTEX_BASE_URL"},
	{SDK, "OPENAI_ADMIN_KEY"},     {MIRRORS, "PIP_EXTRA_INDEX_URL"},
	{MIRRORS, "PIP_NO_INDEX"},     {MIRRORS, "UV_INDEX_URL"},
	{MIRRORS, "UV_INDEX"},	       {MIRRORS, "UV_EXTRA_INDEX_URL"},
	{MIRRORS, "GONOPROXY"},	       {MIRRORS, "GOPRIVATE"},
};

/* In any case of letters: npm reads npm_config_registry as it reads the other. */
bool broker_env_is_reserved(enum egress_mode egress, const char *name)
{
	unsigned who = egress == EGRESS_REGISTRY ? SDK | MIRRORS : SDK;

	if (egress == EGRESS_NONE)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if ((variables[i].who & who) && strcasecmp(variables[i].name, name) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(misleading); i++)
		if ((misleading[i].who & who) &&
		    strcasecmp(misleading[i].name, name) == 0)
			return true;
	return false;
}
