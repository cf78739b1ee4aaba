-- SPDX-License-Identifier: Apache-2.0
-- The tables of what is written down: events for the audit log, and the books of the broker.
SET LOCAL ROLE lych_owner;

-- Written in the same transaction as the fact it tells; the scribe seals it into the log. xid: the
-- transaction's id, for its order (13_audit.sql).
CREATE TABLE lych.audit_outbox (
	id bigint GENERATED ALWAYS AS IDENTITY,
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	event text NOT NULL,
	actor name NOT NULL DEFAULT session_user,
	job_id bigint,
	epoch bigint,
	data jsonb NOT NULL DEFAULT '{}',
	xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
	PRIMARY KEY (xid, id)
);

-- One row. stream names this numbering to the scribe; the acked columns are the last event that
-- is known to be on the log's disk. ok_until: the vessel's word, renewed every few seconds, that
-- the log is written; claims stop by themselves when nobody gives it.
CREATE TABLE lych.audit_state (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	stream uuid NOT NULL DEFAULT gen_random_uuid(),
	acked_xid bigint NOT NULL DEFAULT 0,
	acked_id bigint NOT NULL DEFAULT 0,
	acked_pseq bigint NOT NULL DEFAULT 0,
	ok_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);
INSERT INTO lych.audit_state DEFAULT VALUES;

-- Every check of a table is parsed and bound again by each statement that writes to it, which is a
-- quarter of what a reservation costs: so what can be is a type, and the rest one check a table.
CREATE TYPE lych.budget_scope AS ENUM ('job', 'identity', 'day');
CREATE TYPE lych.broker_kind AS ENUM ('ask', 'fetch', 'package');

-- day: '1970-01-01' for a job, whose budget is for its whole life, all attempts together.
CREATE TABLE lych.budget (
	scope lych.budget_scope NOT NULL,
	key text NOT NULL,
	day date NOT NULL,
	spent bigint[] NOT NULL DEFAULT '{0,0,0,0,0,0}',
	reserved bigint[] NOT NULL DEFAULT '{0,0,0,0,0,0}',
	PRIMARY KEY (scope, key, day),
	CHECK (array_length(spent, 1) = 6 AND array_length(reserved, 1) = 6 AND
		0 <= ALL (spent) AND 0 <= ALL (reserved))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- A call of the broker. The key is the replay check: a number of an attempt is used once. call_id
-- tells a repeated reservation of the same call (its answer was lost) from a replay.
CREATE TABLE lych.broker_call (
	job_id bigint NOT NULL,
	epoch bigint NOT NULL,
	seq bigint NOT NULL,
	call_id uuid NOT NULL,
	boot uuid NOT NULL,
	kind lych.broker_kind NOT NULL,
	identity text NOT NULL,
	day date NOT NULL,
	estimate bigint[] NOT NULL,
	actual bigint[],
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	settled_at timestamptz,
	-- the highest number that was forgotten: this one and all below are used
	is_floor boolean NOT NULL DEFAULT false,
	units bigint NOT NULL DEFAULT 0,
	PRIMARY KEY (job_id, epoch, seq),
	CHECK (seq > 0 AND (settled_at IS NULL) = (actual IS NULL))
);

SET LOCAL ROLE NONE;
