/* SPDX-License-Identifier: Apache-2.0 */
/* Values and templates of units: up to the first NUL a value, the rest a template. */
#include "cli/pod/unit_template.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a unit file or a Volume= line would give a meaning to. */
static void check_plain(const char *value)
{
	assert(!strpbrk(value, "%\\\"'`$ \t\r\n,;"));
	assert(!str_has_control(value, strlen(value)));
	assert(utf8_is_valid(value, strlen(value)));
}

static unsigned lines(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += *s == '\n';
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = memchr(data, 0, size);
	size_t n = nul ? (size_t)(nul - data) : 0;
	char *value = xstrndup((const char *)data, n);
	const char *text = (const char *)data + (nul ? n + 1 : 0);
	size_t len = size - (nul ? n + 1 : 0);
	struct unit_values v = {0};
	struct err err = ERR_INIT;
	struct buf out;

	unit_values_list(&v, "MOUNT");
	unit_values_number(&v, "N", size);
	unit_values_flag(&v, "YES", true);
	unit_values_flag(&v, "NO", false);
	if (unit_values_text(&v, "PATH", UNIT_PATH, value, &err) == 0) {
		check_plain(value);
		assert(value[0] == '/' && !strchr(value, ':'));
	}
	if (unit_values_text(&v, "IMAGE", UNIT_IMAGE, value, &err) == 0)
		check_plain(value);
	if (unit_values_text(&v, "WORD", UNIT_WORD, value, &err) == 0)
		check_plain(value);
	(void)!unit_values_add(&v, "MOUNT", UNIT_BIND, value, &err);
	err = (struct err)ERR_INIT;
	buf_init(&out, UNIT_MAX_BYTES);
	if (unit_template_render("t", text, len, &v, &out, &err) < 0) {
		assert(err.id == ERRID_BIND_TEMPLATE);
	} else {
		char *copy = xstrndup(text, len);

		/* No value brings a line with it. */
		assert(lines(buf_str(&out)) <= lines(copy));
		free(copy);
	}
	buf_done(&out);
	unit_values_done(&v);
	free(value);
	return 0;
}
