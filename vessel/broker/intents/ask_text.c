/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * See ask_text.h.
 */
#include "vessel/broker/intents/ask_text.h"

#include "common/attr.h"

#include <stdbool.h>
#include <string.h>

static bool is_text_key(const char *s, size_t len)
{
	static const char *const keys[] = {
		"content", "text",	"reasoning_content", "thinking", "reasoning",
		"refusal", "arguments", "partial_json",	     "delta"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i]) == len && memcmp(keys[i], s, len) == 0)
			return true;
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* From behind the quote to the closing one, or to the end. */
static const char *string_end(const char *s, const char *end, size_t *ret_chars)
{
	*ret_chars = 0;
	while (s < end && *s != '"') {
		s += *s == '\\' && s + 1 < end ? 2 : 1;
		(*ret_chars)++;
	}
	return s;
}

size_t ask_text_chars(const char *json, size_t len)
{
	const char *s = json, *end = json + len;
	bool is_wanted = false;
	size_t sum = 0;

	while (s < end && (s = memchr(s, '"', (size_t)(end - s))) != NULL) {
		const char *from = ++s;
		size_t chars;

		s = string_end(s, end, &chars);
		const char *to = s;

		s += s < end;
		while (s < end && is_blank(*s))
			s++;
		if (s < end && *s == ':') {
			is_wanted = is_text_key(from, (size_t)(to - from));
			continue;
		}
		/* a list of strings has one key for all of them */
		sum += is_wanted ? chars : 0;
		is_wanted = is_wanted && s < end && *s == ',';
	}
	return sum;
}
