/* SPDX-License-Identifier: Apache-2.0 */
/* An agent that sends its whole conversation at each turn, with what ordinary tools put out in it, each cut
 * where agents cut: none of its requests may be refused, and no new conversation behind it. */
#include "tests/unit/vessel/broker/gate/gate_rig.h"

#include "common/attr.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/json/json.h"
#include "common/jsonw.h"
#include "vessel/broker/gate/client.h"

#define TURNS 60
#define OUTPUT_BYTES 2500

TestSuite(gate_faithful, .timeout = 300);

static uint64_t seed;

static unsigned draw(unsigned below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33) % below;
}

static void add_hex(struct buf *b, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		buf_addf(b, "%02x", draw(256));
}

static struct buf new_buf(void)
{
	struct buf b;

	buf_init(&b, (size_t)4 << 20);
	return b;
}

static void add_drawn64(struct buf *b, const char *head, size_t n_head, unsigned bytes)
{
	cleanup_buf struct buf raw = new_buf();

	buf_add(&raw, head, n_head);
	for (unsigned i = 0; i < bytes; i++)
		buf_addc(&raw, (char)draw(256));
	base64_add(b, raw.data, raw.len);
}

/* ---- what tools put out, a line or an entry at a time ------------------------------------ */

static void listing(struct buf *b)
{
	buf_addf(b, "drwxr-xr-x %u root root %5u Nov 28 22:%02u package-%u\n", draw(9),
		 draw(99999), draw(60), draw(999));
}

static void processes(struct buf *b)
{
	buf_addf(
		b,
		"root %9u  0.0  0.%u %6u %5u ?  S  Nov28  0:%02u [kworker/%u:1-events]\n",
		draw(99999), draw(9), draw(999999), draw(9999), draw(60), draw(64));
}

static void mounts(struct buf *b)
{
	buf_addf(b,
		 "/dev/sda%u on /srv/data%u type ext4 (rw,relatime,errors=remount-ro)\n",
		 draw(9), draw(99));
}

static void checksums(struct buf *b)
{
	add_hex(b, 32);
	buf_addf(b, "  /usr/bin/tool-%u\n", draw(999));
}

static void index_of_packages(struct buf *b)
{
	buf_adds(b, " ");
	add_hex(b, 32);
	buf_addf(b, " %u main/binary-amd64/Packages.xz\n", draw(999999));
}

static void sizes(struct buf *b)
{
	buf_addf(b,
		 "Gr\xc3\xb6\xc3\x9f"
		 "e von Datei %u: %u \xe2\x82\xac\n",
		 draw(99), draw(999));
}

static void package_lock(struct buf *b)
{
	unsigned i = draw(999);

	buf_addf(b,
		 "  \"node_modules/p%u\": {\n   \"version\": \"1.%u.0\",\n   "
		 "\"integrity\": \"sha512-",
		 i, i);
	add_drawn64(b, "", 0, 64);
	buf_adds(b, "\",\n   \"license\": \"MIT\"\n  },\n");
}

static void cargo_lock(struct buf *b)
{
	buf_addf(b, "[[package]]\nname = \"c%u\"\nversion = \"0.%u.1\"\nchecksum = \"",
		 draw(99), draw(99));
	add_hex(b, 32);
	buf_adds(b, "\"\n\n");
}

static void go_sum(struct buf *b)
{
	buf_addf(b, "github.com/a/b%u v1.%u.0/go.mod h1:", draw(999), draw(99));
	add_drawn64(b, "", 0, 32);
	buf_adds(b, "\n");
}

static void git_log(struct buf *b)
{
	buf_adds(b, "commit ");
	add_hex(b, 20);
	buf_addf(b,
		 "\nAuthor: Anna Smith <anna.smith%u@kernel.org>\nDate:   Mon Jun 3 "
		 "12:%02u:00 "
		 "2024 +0200\n\n    Fix the thing number %u\n\n",
		 draw(99), draw(60), draw(999));
}

static void certificate(struct buf *b)
{
	buf_adds(b, b->len % 7
			    ? ""
			    : "        Signature Algorithm: sha256WithRSAEncryption\n");
	buf_adds(b, "         ");
	for (unsigned i = 0; i < 18; i++)
		buf_addf(b, "%02x:", draw(256));
	buf_adds(b, "\n");
}

/* Longer than what an agent keeps of it. */
static void notebook(struct buf *b)
{
	static const char head[] =
		"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x40\x8\x2\0\0\0"
		"\045\013\346\211\0\0\377\377IDAT\170\234";

	buf_adds(b, "{\"cells\": [{\"outputs\": [{\"data\": {\"image/png\": \"");
	add_drawn64(b, head, sizeof(head) - 1, OUTPUT_BYTES);
}

static void page(struct buf *b)
{
	buf_adds(b, "<html><p>hello</p><img src=\"data:font/woff2;base64,");
	add_drawn64(b, "wOF2", 4, 900);
	buf_adds(b, "\"></html>\n");
}

static void tests_run(struct buf *b)
{
	buf_addf(b, "spec/case_%u.py::x[param-%u] PASSED [ %u%%]\n", draw(99), draw(99),
		 draw(99));
}

static void (*const tools[])(struct buf *b) = {
	listing,     index_of_packages, sizes,	      tests_run,  processes,
	mounts,	     checksums,		package_lock, cargo_lock, go_sum,
	certificate, notebook,		git_log,      page,
};

static char *output_of(unsigned turn)
{
	cleanup_buf struct buf b = new_buf();

	while (b.len < OUTPUT_BYTES + draw(80))
		tools[turn % ARRAY_SIZE(tools)](&b);
	return strndup(buf_str(&b), OUTPUT_BYTES);
}

/* ---- the conversation -------------------------------------------------------------------- */

#define ASKED "Please look at this system."

/* How it begins; before an id, before it a second time, before the output; behind it; the end. */
static const char *const dialects[][6] = {
	{"{\"messages\":[{\"role\":\"user\",\"content\":\"" ASKED "\"}",
	 ",{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"",
	 "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
	 "{\"role\":\"tool\",\"tool_call_id\":\"",
	 "\",\"content\":", "}", "]}"},
	{"{\"messages\":[{\"role\":\"user\",\"content\":\"" ASKED "\"}",
	 ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"",
	 "\",\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":"
	 "\"tool_result\",\"tool_use_id\":\"",
	 "\",\"content\":", "}]}", "]}"},
	{"{\"contents\":[{\"role\":\"user\",\"parts\":[{\"text\":\"" ASKED "\"}]}",
	 ",{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"f\",\"id\":\"",
	 "\",\"args\":{}}}]},{\"role\":\"user\",\"parts\":[{\"functionResponse\":{"
	 "\"name\":"
	 "\"f\",\"id\":\"",
	 "\",\"response\":{\"output\":", "}}}]}", "]}"},
};

static usec_t still(void *ctx UNUSED)
{
	return USEC_PER_SEC;
}

static const struct clock_ops still_clock = {.boot_usec = still, .wall_usec = still};

static enum gate_verdict verdict;
static char why[512];

static void on_answer(const struct gate_answer *a, void *arg UNUSED)
{
	verdict = a->verdict;
	(void)snprintf(why, sizeof(why), "%s", a->err ? a->err->msg : "");
	loop_stop(loop, 0);
}

static void ask(struct gate_job *job, const struct buf *body)
{
	struct gate_parts *p = gate_parts_new();
	cleanup_json struct json *request = NULL;
	struct gate_ask *a;
	struct err err = ERR_INIT;

	cr_assert_eq(json_parse(body->data, body->len, 32, &request, &err), 0, "%s",
		     err.msg);
	gate_parts_add_json(p, request);
	gate_job_mark_issued(job, "x", request, p, 0);
	cr_assert_eq(
		gate_client_ask(client, job, "portal:x", p, on_answer, NULL, &a, &err), 0,
		"%s", err.msg);
	cr_assert_eq(loop_run(loop, &err), 0, "%s", err.msg);
}

static void issue(struct gate_job *job, char id[32])
{
	cleanup_json struct json *said = NULL;
	char text[64];

	(void)snprintf(id, 32, "call_%08x%08x", draw(1U << 30), draw(1U << 30));
	(void)snprintf(text, sizeof(text), "{\"id\":\"%s\"}", id);
	cr_assert_eq(json_parse(text, strlen(text), 8, &said, NULL), 0);
	gate_job_issued(job, "x", said);
}

/* So many of the outputs, and what was said before them. */
static void say(struct gate_job *job, const char *const d[6], char *const *output,
		char (*id)[32], unsigned n)
{
	cleanup_buf struct buf b = new_buf();
	struct jsonw w;

	buf_adds(&b, d[0]);
	for (unsigned i = 0; i < n; i++) {
		buf_addf(&b, "%s%s%s%s%s", d[1], id[i], d[2], id[i], d[3]);
		jsonw_init(&w, &b);
		jsonw_str(&w, output[i]);
		buf_adds(&b, d[4]);
	}
	buf_adds(&b, d[5]);
	ask(job, &b);
}

static void converse(const char *const d[6], uint64_t first)
{
	cleanup_gate_job struct gate_job *job = gate_job_new(&still_clock);
	char *output[TURNS], id[TURNS][32];
	unsigned n = 0;

	seed = first;
	for (; n < TURNS; n++) {
		say(job, d, output, id, n);
		cr_expect_neq(verdict, GATE_REFUSE, "turn %u: %s", n, why);
		issue(job, id[n]);
		output[n] = output_of(n);
	}
	say(job, d, output, id, 0);
	cr_expect_neq(verdict, GATE_REFUSE, "a new conversation: %s", why);
	for (unsigned i = 0; i < n; i++)
		free(output[i]);
}

static void start(void)
{
	begin();
	start_worker(gate_worker_main);
	large_worker = start_one(gate_worker_main, GATE_LARGE);
}

Test(gate_faithful, nothing_is_refused_openai, .init = start, .fini = end)
{
	converse(dialects[0], 1);
}

Test(gate_faithful, nothing_is_refused_anthropic, .init = start, .fini = end)
{
	converse(dialects[1], 2);
}

Test(gate_faithful, nothing_is_refused_gemini, .init = start, .fini = end)
{
	converse(dialects[2], 3);
}
