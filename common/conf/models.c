/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in lych and the vessel.
 * The key models of a portal: their prices, and what one request may be.
 */
#include "common/conf/priv.h"

#include "common/mem.h"
#include "common/str.h"

#define MODEL_NAME_MAX_BYTES 128
#define EXTRA_NAME_MAX_BYTES 64
/* Micro-units for a million tokens: no price is above a million units. */
#define PRICE_MAX ((uint64_t)1000000 * 1000000)
/* The most that the documents of a provider say of one picture: OpenAI's of its tile-based
 * models 48,169; Anthropic's 4,784; Google's 258 a tile, of which the largest picture that is
 * not made smaller has some two dozen. */
static const uint64_t picture_tokens[PORTAL_KIND_MAX_] = {
	[PORTAL_OPENAI] = 50000,
	[PORTAL_ANTHROPIC] = 5000,
	[PORTAL_GEMINI] = 10000,
};

static const cyaml_schema_field_t extra_fields[] = {
	CONF_STR("name", raw_extra, name),
	CONF_STR("input", raw_extra, input),
	CONF_STR("output", raw_extra, output),
	CONF_STR("context", raw_extra, context),
	CYAML_FIELD_END,
};
static const cyaml_schema_value_t extra_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_extra, extra_fields),
};
static const cyaml_schema_field_t model_fields[] = {
	CONF_STR("name", raw_model, name),
	CONF_STR("input", raw_model, input),
	CONF_STR("output", raw_model, output),
	CONF_STR("cache_read", raw_model, cache_read),
	CONF_STR("cache_write", raw_model, cache_write),
	CONF_STR("max_output", raw_model, max_output),
	CONF_STR("context", raw_model, context),
	CONF_STR("picture", raw_model, picture),
	CONF_LIST("extras", raw_model, extras, extra_schema, CONF_EXTRAS_MAX),
	CYAML_FIELD_END,
};
const cyaml_schema_value_t conf_model_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct raw_model, model_fields),
};

static bool name_ok(const char *name, size_t max, const char *more)
{
	size_t len = strlen(name), at = 0;

	while (at < len &&
	       ((name[at] >= 'a' && name[at] <= 'z') ||
		(name[at] >= 'A' && name[at] <= 'Z') ||
		(name[at] >= '0' && name[at] <= '9') || strchr(more, name[at])))
		at++;
	return len >= 1 && len <= max && at == len;
}

/* As providers name them: "vendor/model-1.5:free". */
bool conf_model_name_ok(const char *name)
{
	return name_ok(name, MODEL_NAME_MAX_BYTES, "._:/@+-");
}

bool conf_beta_ok(const char *name)
{
	return name_ok(name, EXTRA_NAME_MAX_BYTES, "._-");
}

static int read_price(const struct conf_item *item, const char *key, const char *value,
		      uint64_t *ret)
{
	struct err why = ERR_INIT;

	if (!value)
		return conf_fail_item(item, key,
				      "a model has a price for a million tokens, input "
				      "and output; \"0\" where it costs nothing");
	if (parse_micro(value, 0, PRICE_MAX, ret, &why) < 0)
		return conf_fail_item(item, key, why.msg);
	return 0;
}

static int read_tokens(const struct conf_item *item, const char *key, const char *value,
		       uint64_t *ret)
{
	struct err why = ERR_INIT;

	if (value && parse_u64(value, 1, CONF_TOKENS_MAX, ret, &why) < 0)
		return conf_fail_item(item, key, why.msg);
	return 0;
}

static bool extra_ok(const char *name)
{
	static const char *const before[] = {
		"beta:", "service_tier:", "speed:", "inference_geo:"};

	for (size_t i = 0; i < ARRAY_SIZE(before); i++)
		if (str_starts(name, before[i]))
			return conf_beta_ok(name + strlen(before[i]));
	return str_eq(name, "audio");
}

static int read_extra(const struct conf_item *item, const struct raw_extra *raw,
		      struct conf_model *m)
{
	struct conf_extra x = {0};

	if (!raw->name || !extra_ok(raw->name))
		return conf_fail_item(item, "extras",
				      "each has a name: beta:NAME, service_tier:NAME, "
				      "speed:NAME, inference_geo:NAME or audio");
	for (size_t i = 0; i < m->n_extras; i++)
		if (str_eq(m->extra[i].name, raw->name))
			return conf_fail_item(item, "extras", "one stands there twice");
	if (read_price(item, "input", raw->input, &x.input_price) < 0 ||
	    read_price(item, "output", raw->output, &x.output_price) < 0 ||
	    read_tokens(item, "context", raw->context, &x.context) < 0)
		return -1;
	if (!x.context && str_eq(raw->name, "audio"))
		x.context = m->context; /* sound is in the same one */
	x.name = xstrdup(raw->name);
	m->extra[m->n_extras++] = x;
	return 0;
}

/* What reading and writing the cache costs, where nothing is said: as any other token, and
 * (Anthropic's) a quarter more. */
static int read_cache(const struct conf_item *item, const struct raw_model *raw,
		      struct conf_model *m)
{
	m->cache_read_price = m->input_price;
	m->cache_write_price = m->input_price + (m->input_price + 3) / 4;
	m->has_cache_write = raw->cache_write != NULL;
	if (raw->cache_read &&
	    read_price(item, "cache_read", raw->cache_read, &m->cache_read_price) < 0)
		return -1;
	return raw->cache_write ? read_price(item, "cache_write", raw->cache_write,
					     &m->cache_write_price)
				: 0;
}

static int read_model(const struct conf_item *item, const struct raw_model *raw,
		      struct conf_portal *p)
{
	struct conf_model *m = &p->model[p->n_models];

	if (!raw->name || !conf_model_name_ok(raw->name))
		return conf_fail_item(item, "models",
				      "each has a name: letters, digits and ._:/@+-");
	/* there it is a part of the path, without "models/" before it */
	if (p->kind == PORTAL_GEMINI && !conf_beta_ok(raw->name))
		return conf_fail_item(item, "models",
				      "each has a name: of kind gemini letters, digits "
				      "and ._-, at most 64");
	for (size_t i = 0; i < p->n_models; i++)
		if (str_eq(p->model[i].name, raw->name))
			return conf_fail_item(item, "models", "one stands there twice");
	p->n_models++; /* a half-built one is freed with the rest */
	m->name = xstrdup(raw->name);
	m->picture = picture_tokens[p->kind];
	if (read_price(item, "input", raw->input, &m->input_price) < 0 ||
	    read_price(item, "output", raw->output, &m->output_price) < 0 ||
	    read_cache(item, raw, m) < 0 ||
	    read_tokens(item, "max_output", raw->max_output, &m->max_output) < 0 ||
	    read_tokens(item, "context", raw->context, &m->context) < 0 ||
	    read_tokens(item, "picture", raw->picture, &m->picture) < 0)
		return -1;
	m->extra = xcalloc(raw->extras_count + 1, sizeof(*m->extra));
	for (unsigned i = 0; i < raw->extras_count; i++)
		if (read_extra(item, &raw->extras[i], m) < 0)
			return -1;
	return 0;
}

int conf_models_read(const struct conf_item *item, const struct raw_model *raw,
		     unsigned n, const char *max_output, struct conf_portal *p)
{
	uint64_t most = 0;

	if (n == 0)
		return conf_fail_item(item, "models", "at least one is needed");
	if (read_tokens(item, "max_output", max_output, &most) < 0)
		return -1;
	p->model = xcalloc(n, sizeof(*p->model));
	for (unsigned i = 0; i < n; i++) {
		if (read_model(item, &raw[i], p) < 0)
			return -1;
		if (!p->model[i].max_output)
			p->model[i].max_output = most;
	}
	return 0;
}

void conf_models_done(struct conf_portal *p)
{
	for (size_t i = 0; i < p->n_models; i++) {
		struct conf_model *m = &p->model[i];

		for (size_t x = 0; x < m->n_extras; x++)
			free(m->extra[x].name);
		free(m->extra);
		free(m->name);
	}
	free(p->model);
}
