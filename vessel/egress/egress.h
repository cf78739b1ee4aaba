/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the vessel.
 * What leaves the house, seen from the vessel. The vessel itself has no network and no
 * provider's key: it hands a request to a worker process and gets the reply back as
 * events on its loop. One worker a portal (it alone holds that portal's credential), one
 * without any key for URLs and packages, one without network for the gate
 * (worker.h). All of them are children of one parent that is forked before the
 * vessel reads a secret (parent.h). A key for a host that is no portal has a worker as a
 * portal has, and is asked by its name as one is; these alone change while the vessel runs
 * (egress_hosts_prepare()).
 *
 * Order at start: egress_fork() first of all, egress_attach() when there is a loop and
 * before the vessel confines itself.
 *
 * A worker that does not move any more, stopped or stuck, is ended by the parent and started
 * again; when the parent itself does not, its end is on_lost(), as when it died.
 *
 * The reply is hostile: whoever speaks for a worker here believes only lengths that were
 * checked (wire.h). A worker that breaks the protocol loses its link, ends by
 * that, and is started again.
 */
#ifndef LYCH_VESSEL_EGRESS_EGRESS_H
#define LYCH_VESSEL_EGRESS_EGRESS_H

#include "common/attr.h"
#include "common/clock.h"
#include "common/confine/confine.h"
#include "common/err.h"
#include "common/id.h"
#include "common/net/loop.h"
#include "vessel/egress/headers.h"
#include "vessel/egress/hosts/portal.h"
#include "vessel/egress/reason.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EGRESS_PORTALS_MAX 16
#define EGRESS_HOSTS_MAX 16 /* keys of hosts */
#define EGRESS_HEADERS_MAX 64
#define EGRESS_TARGET_MAX_BYTES 8192
#define EGRESS_BODY_MAX_BYTES (8u << 20)
/* What a worker may send of one reply before it was taken: the vessel buffers no more
 * than that for a call that is paused. */
#define EGRESS_WINDOW_BYTES (256u << 10)
#define EGRESS_GATES 2u
#define EGRESS_CALLS_MAX 1024 /* in flight, a worker: of two tombs */

struct confine_probe;
struct egress_pulse;
struct egress;
struct reading;
struct reading_note;
struct egress_call;

struct egress_header {
	const char *name, *value;
};

/*
 * The gate worker's whole life, supplied by vessel/gate/worker.h: called in the worker process,
 * after it has confined itself, with the socket (SOCK_STREAM, blocking) to the vessel; it
 * shows that it lives, and whose is what it reads (common/worker/pulse.h). Returns the exit code at
 * end of file.
 */
typedef int egress_gate_main(int fd, struct egress_pulse *pulse, void *arg);

struct egress_config {
	const char *secrets_dir;
	const char *
		authorities; /* a file of certificates (PEM); NULL: the system's bundle */
	const struct egress_portal *portals;
	size_t n_portals;
	/* is_host; no two of a name, or of a secret; looked at by egress_fork() only */
	const struct egress_portal *hosts;
	size_t n_hosts;
	bool unrooted;		/* daemons: no_private_root */
	const char *api_socket; /* with it: what their self-tests try */
	egress_gate_main *gate; /* of each of EGRESS_GATES; NULL: no gate worker */
	void *gate_arg;
	/* Test builds: what the worker of that name ("parent" too), once it is confined,
	 * tries instead of working. NULL: nothing. */
	const struct confine_probe *probe;
	const char *probe_worker;
};

/* 0 stands for the default of each. */
struct egress_limits {
	usec_t connect_usec;	/* 10 s: the TCP connection and TLS */
	usec_t first_byte_usec; /* 120 s: until the reply begins */
	usec_t idle_usec; /* 60 s: between two pieces; not while the vessel holds it up */
	usec_t total_usec;	  /* 600 s, retries and waits included */
	uint64_t reply_max_bytes; /* 64 MiB */
	/* Of those, what the worker may read before egress_room() gives it more; 0: all. */
	uint64_t reply_room_bytes;
};

struct egress_request {
	job_id_t job; /* whose it is; 0: no job's */
	int64_t epoch;
	const char *portal; /* NULL: the worker without a key */
	const char *method; /* GET, HEAD, POST, PUT, PATCH, DELETE */
	/* A portal: what follows its url, "/chat/completions", so that no request can carry
	 * a credential elsewhere; a host's key: the path. Without one: the whole URL, serialised by url.h. */
	const char *target;
	const struct egress_header *headers; /* as headers_out() leaves them; copied */
	size_t n_headers;
	const void *body; /* copied */
	size_t body_len;
	/* without a portal: addresses that a rule names although they are not global */
	const char *const *addresses;
	size_t n_addresses;
	struct egress_limits limits;
	/* How often the worker may try again, before a byte of a reply went back: after
	 * 429 or 503 (by their Retry-After), or when no connection came about; GET and HEAD
	 * also after 502, 504 and a broken connection. 0..3 */
	unsigned retries;
};

struct egress_head {
	unsigned status; /* 200..599, the server's own: an error of the provider is no
			    refusal of ours and is told apart by coming here */
	const struct egress_header
		*headers; /* only the names of headers_back(), redacted */
	size_t n_headers;
	const char *location; /* of a redirect, unparsed, not followed; NULL: none */
};

struct egress_end {
	/* NULL: the reply came to its end. Else of the family EGRESS, or FETCH where an address
	 * or a name is the reason: nothing, or only a part, went back */
	const struct err *err;
	enum reason reason;	       /* for the audit log; REASON_NONE: none of those */
	uint64_t bytes_up, bytes_down; /* on the wire's side, bodies only */
	unsigned attempts;
	/* The request may have reached the server: it counts as spent. False only when it is
	 * certain that no byte of it was sent. */
	bool sent;
	unsigned redactions; /* how often the credential was found in the reply */
};

struct egress_ops {
	/* At most once, before any body. */
	void (*on_head)(const struct egress_head *head, void *arg);
	/* False: no more until egress_resume(); these bytes count as taken. */
	bool (*on_body)(const void *data, size_t len, void *arg);
	/* Once, last; the call is gone after it. Never after egress_cancel(). */
	void (*on_end)(const struct egress_end *end, void *arg);
	/* Half of the room is used up: egress_room() is waited for, once for each answer. May
	 * come before the head; NULL with a request whose room is all of it. */
	void (*on_more)(void *arg);
};

/* The parent of the workers comes to be; first thing of all, no loop, no secret yet. */
MUST_CHECK int egress_fork(const struct egress_config *cfg, struct egress **ret,
			   struct err *err);

struct egress_events {
	/* The credential of this portal came back in a reply: an event for the audit. */
	void (*on_redacted)(const char *portal, bool in_header, unsigned count,
			    void *arg);
	/* A worker went or came back; why is NULL when it is up. For the log. */
	void (*on_worker)(const char *name, bool up, const struct err *why, void *arg);
	/* The gate's worker of that number is up and confined: fd is the receiver's
	 * (SOCK_STREAM, non-blocking). Called again after a restart; the old one gave end
	 * of file, and is dead by now. note: what it reads (reading.h), for as long as e. */
	void (*on_gate)(unsigned which, int fd, struct reading *note, void *arg);
	/* It died while it read this, of a job that has a request with it, or lately had. May be
	 * NULL. */
	void (*on_died)(const char *name, const struct reading_note *note, void *arg);
	/* The parent is gone: nothing can leave any more, the vessel ends. */
	void (*on_lost)(const struct err *why, void *arg);
	void *arg;
};

/*
 * Waits until every worker has confined itself and its self-test has held (at most
 * 60 s); on_gate is called from within. ERRID_EGRESS_SECRET names the portal whose
 * credential is missing, ERRID_START_CONFINE the worker and its wall.
 */
MUST_CHECK int egress_attach(struct egress *e, struct loop *l,
			     const struct egress_events *events, struct err *err);
/* Ends the workers; cancels what is open without calling back. NULL is fine. */
void egress_free(struct egress *e);

/*
 * Begins a call. ERRID_EGRESS_AWAY (no such worker, or it is being started again),
 * ERRID_EGRESS_BUSY, ERRID_EGRESS_REQUEST (the request breaks a rule above). The
 * callbacks come from the loop, never from within this function.
 */
MUST_CHECK int egress_start(struct egress *e, const struct egress_request *rq,
			    const struct egress_ops *ops, void *arg,
			    struct egress_call **ret, struct err *err);
/* Once after on_body said false. May call back on_body or on_end from within. */
void egress_resume(struct egress_call *call);
/* So many bytes of the reply may be read altogether; is_last: and no more, a longer reply
 * ends with ERRID_EGRESS_TOO_LARGE. */
void egress_room(struct egress_call *call, uint64_t bytes, bool is_last);
/* The connection is cut, no callback comes any more, the call is gone. */
void egress_cancel(struct egress_call *call);

/*
 * Other keys of hosts, without a restart, in two steps. First a worker for each key that is new, or whose
 * place, form or secret's file has changed, comes to be beside those that there are, and reads its
 * secret: done comes once, with NULL when all of them hold their walls, or with the first
 * reason why not, and then they are gone again. ERRID_CREDENTIAL_SECRET: a secret is missing or bad;
 * _PLACE and _MANY: places.h; _BUSY: too many old ones have requests yet. Not twice at once. hosts is
 * not looked at afterwards. May call back from within.
 */
typedef void egress_hosts_done(const struct err *why, void *arg);
void egress_hosts_prepare(struct egress *e, const struct egress_portal *hosts, size_t n,
			  egress_hosts_done *done, void *arg);
/* Then: would the i-th of them have another worker than before? */
bool egress_hosts_is_new(const struct egress *e, size_t i);
/* Second: requests go to these from now on. A worker whose key was replaced ends when its requests
 * have; one whose name is gone, at once, and its requests are lost. */
void egress_hosts_commit(struct egress *e);
/* Or not: as it was. Whatever was prepared, or is being, is gone; done does not come. */
void egress_hosts_drop(struct egress *e);

/* For status, doctor and metrics. */
struct egress_worker_info {
	const char *
		name; /* "parent", "portal:NAME", "host:NAME", "keyless", "gate", ... "watcher" */
	bool up;
	unsigned restarts, calls;
	const struct confine_report *walls; /* of its last start */
};
size_t egress_worker_count(const struct egress *e);
void egress_worker_info(const struct egress *e, size_t i, struct egress_worker_info *ret);

#endif
