/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the egress parent and the egress worker.
 * The texts of resolv.conf and the hosts file, as resolve.h has them.
 */
#include "common/mem.h"
#include "common/str.h"
#include "vessel/egress/resolve.h"

#include <stdlib.h>
#include <string.h>

#define HOSTS_MAX 4096

/* The next word of a line, NUL-terminated in place; NULL at its end or at a comment. */
static char *word(char **at)
{
	char *w = *at + strspn(*at, " \t\r");

	if (!*w || *w == '#' || *w == ';')
		return NULL;
	*at = w + strcspn(w, " \t\r");
	if (**at)
		*(*at)++ = '\0';
	return w;
}

static void take_server(struct resolve_config *c, char *line)
{
	char *key = word(&line), *value = key ? word(&line) : NULL;

	if (value && str_eq(key, "nameserver") && c->n_servers < RESOLVE_SERVERS_MAX &&
	    addr_parse(value, &c->server[c->n_servers]) == 0)
		c->n_servers++;
}

static void take_host(struct resolve_config *c, char *line)
{
	char *text = word(&line), *name;
	struct addr addr;

	if (!text || addr_parse(text, &addr) < 0)
		return;
	while ((name = word(&line)) && c->n_hosts < HOSTS_MAX) {
		struct resolve_host *h;

		if (strlen(name) >= sizeof(h->name))
			continue;
		c->hosts = xreallocarray(c->hosts, c->n_hosts + 1, sizeof(*c->hosts));
		h = &c->hosts[c->n_hosts++];
		h->addr = addr;
		for (size_t i = 0; i <= strlen(name); i++)
			h->name[i] = name[i] >= 'A' && name[i] <= 'Z'
					     ? (char)(name[i] | 0x20)
					     : name[i];
	}
}

static void each_line(char *text, struct resolve_config *c,
		      void (*take)(struct resolve_config *, char *))
{
	char *line, *end;

	for (line = text; line && *line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		take(c, line);
	}
}

void resolve_config_read(struct resolve_config *c, char *resolv_conf, char *hosts)
{
	*c = (struct resolve_config){
		.port = 53, .try_usec = 2 * USEC_PER_SEC, .tries = 2};
	if (!resolv_conf || !hosts)
		return;
	each_line(resolv_conf, c, take_server);
	each_line(hosts, c, take_host);
}

void resolve_config_done(struct resolve_config *c)
{
	free(c->hosts);
	c->hosts = NULL;
	c->n_hosts = 0;
}
