/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/contestant.h"

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/bench/die.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

static char path_env[] = "PATH=/usr/local/bin:/usr/bin:/bin";
static char *const environment[] = {path_env, NULL};

uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

pid_t reap_ok(pid_t pid, const char *who)
{
	int status;
	pid_t got;

	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		die_errno("waitpid");
	if (status != 0)
		die("%s ended with status 0x%x", who, (unsigned)status);
	return got;
}

/* "9</path": one more descriptor of the command. */
static bool take_descriptor(struct contestant *c, const char *word)
{
	char *end;
	long fd = strtol(word, &end, 10);

	if (end == word || *end != '<')
		return false;
	if (fd < 3 || posix_spawn_file_actions_addopen(&c->actions, (int)fd, end + 1,
						       O_RDONLY, 0) != 0)
		die("%s: %s", c->name, word);
	return true;
}

static void prepare_exec(struct contestant *c, size_t first)
{
	if (posix_spawn_file_actions_init(&c->actions) != 0)
		die("%s: file actions", c->name);
	for (int fd = 0; fd < 3; fd++)
		if (posix_spawn_file_actions_addopen(&c->actions, fd, "/dev/null", O_RDWR,
						     0) != 0)
			die("%s: stdio", c->name);
	while (c->word[first] && take_descriptor(c, c->word[first]))
		first++;
	c->argv = &c->word[first];
	if (!c->argv[0])
		die("%s: no command", c->name);
}

static void prepare_serve(struct contestant *c, size_t first)
{
	size_t i = first;

	while (c->word[i] && !str_eq(c->word[i], "::"))
		i++;
	if (!c->word[i] || i == first)
		die("%s: no '::'", c->name);
	c->word[i] = NULL;
	c->argv = &c->word[i + 1];
	c->serve = true;
	spawner_start(&c->spawner, &c->word[first]);
}

/* Cuts the next word off *line; "\\ " is a blank within it. */
static char *next_word(char **line)
{
	char *from = *line + strspn(*line, " \t\n"), *word = from, *to = from;

	if (*from == '\0')
		return NULL;
	for (; *from && !strchr(" \t\n", *from); from++) {
		if (from[0] == '\\' && from[1] == ' ')
			from++;
		*to++ = *from;
	}
	*line = *from ? from + 1 : from;
	*to = '\0';
	return word;
}

static void prepare(struct contestant *c, char *line)
{
	size_t n = 0;

	for (char *w = next_word(&line); w; w = next_word(&line)) {
		if (n == CONTESTANT_WORDS_MAX)
			die("too many words: %s", c->word[0]);
		c->word[n++] = w;
	}
	c->name = c->word[0];
	if (n >= 3 && str_eq(c->word[1], "exec"))
		prepare_exec(c, 2);
	else if (n >= 3 && str_eq(c->word[1], "serve"))
		prepare_serve(c, 2);
	else
		die("%s: exec or serve", c->name);
}

size_t contestants_load(const char *file, struct contestant out[CONTESTANTS_MAX])
{
	cleanup_file FILE *f = fopen(file, "re");
	char *line = NULL;
	size_t size = 0, n = 0;

	if (!f)
		die_errno(file);
	while (getline(&line, &size, f) > 0) {
		if (line[0] == '#' || line[strspn(line, " \t\n")] == '\0')
			continue;
		if (n == CONTESTANTS_MAX)
			die("too many contestants");
		prepare(&out[n++], xstrdup(line)); /* the words stay until the end */
	}
	free(line);
	if (n == 0)
		die("%s: nobody takes part", file);
	return n;
}

uint64_t contestant_begin(struct contestant *c)
{
	pid_t pid;
	int r;

	if (c->serve)
		return spawner_request(&c->spawner, c->argv);
	r = posix_spawn(&pid, c->argv[0], &c->actions, NULL, c->argv, environment);
	if (r != 0)
		die("%s: %s", c->argv[0], strerror(r));
	return (uint64_t)pid;
}

uint64_t contestant_time(struct contestant *c)
{
	uint64_t start = now_ns(), id = contestant_begin(c);

	if (!c->serve) {
		(void)reap_ok((pid_t)id, c->name);
	} else {
		struct spawner_end end;

		do
			end = spawner_wait(&c->spawner);
		while (end.started || end.handle != id);
	}
	return now_ns() - start;
}

void contestants_stop(struct contestant *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c[i].serve)
			spawner_stop(&c[i].spawner);
		else
			(void)posix_spawn_file_actions_destroy(&c[i].actions);
}
