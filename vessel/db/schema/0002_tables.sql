-- SPDX-License-Identifier: Apache-2.0
-- The tables. Only functions touch them; no login has a right on any of them.
-- "Never completed twice" is two constraints here: attempt_one_success and result's key.
SET LOCAL ROLE lych_owner;

CREATE TYPE lych.jstate AS ENUM
	('held', 'queued', 'running', 'succeeded', 'dead', 'cancelled', 'quarantined');

CREATE TABLE lych.job (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	queue text NOT NULL CHECK (queue ~ '^[a-z][a-z0-9_]{0,31}$'),
	request_id text NOT NULL CHECK (octet_length(request_id) BETWEEN 1 AND 200),
	spec_sha bytea NOT NULL CHECK (octet_length(spec_sha) = 32),
	state lych.jstate NOT NULL DEFAULT 'queued',
	class text NOT NULL DEFAULT '',
	priority smallint NOT NULL CHECK (priority BETWEEN 0 AND 100),
	run_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	epoch bigint NOT NULL DEFAULT 0, -- the fence: only ever grows
	attempts int NOT NULL DEFAULT 0, -- claims that counted
	max_attempts int NOT NULL CHECK (max_attempts BETWEEN 1 AND 100),
	lost int NOT NULL DEFAULT 0,
	max_lost int NOT NULL CHECK (max_lost BETWEEN 1 AND 100000),
	retry_on_lost boolean NOT NULL,
	releases int NOT NULL DEFAULT 0,
	max_runtime_s int NOT NULL CHECK (max_runtime_s BETWEEN 1 AND 604800),
	cancel_req boolean NOT NULL DEFAULT false,
	taint text CHECK (octet_length(taint) BETWEEN 1 AND 1000),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	started_at timestamptz,
	finished_at timestamptz,
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	change_seq bigint NOT NULL DEFAULT 0,
	CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'dead', 'cancelled'))),
	CHECK (taint IS NULL OR state NOT IN ('held', 'queued', 'running')),
	CHECK ((state = 'dead') = (class <> ''))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
CREATE UNIQUE INDEX job_request ON lych.job (queue, request_id);
CREATE INDEX job_ready ON lych.job (queue, priority DESC, run_at, id)
	WHERE state = 'queued' AND taint IS NULL;
CREATE INDEX job_waiting ON lych.job (id) WHERE state IN ('held', 'queued');
CREATE INDEX job_state_id ON lych.job (state, id DESC);
CREATE INDEX job_change ON lych.job (change_seq);
CREATE INDEX job_finished ON lych.job (finished_at) WHERE finished_at IS NOT NULL;

-- change_seq is the transaction's id. A sequence would not do: two transactions may commit in
-- the other order than they drew their numbers, and a reader's cursor would pass over one.
-- Ids below the oldest running transaction are settled for good (see vessel_api.changes).
CREATE FUNCTION lych.job_touch() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	NEW.change_seq := pg_current_xact_id()::text::bigint;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;
CREATE TRIGGER job_touch BEFORE INSERT OR UPDATE ON lych.job
	FOR EACH ROW EXECUTE FUNCTION lych.job_touch();

CREATE TABLE lych.payload (
	job_id bigint PRIMARY KEY REFERENCES lych.job ON DELETE CASCADE,
	body bytea NOT NULL CHECK (octet_length(body) <= 1048576)
);

-- Written once by claim, ended once; only phase changes in between.
CREATE TABLE lych.attempt (
	job_id bigint NOT NULL REFERENCES lych.job ON DELETE CASCADE,
	epoch bigint NOT NULL,
	owner name NOT NULL,
	boot_id uuid NOT NULL,
	claim_id uuid NOT NULL,
	token uuid NOT NULL,
	phase text NOT NULL DEFAULT 'preparing'
		CHECK (phase IN ('preparing', 'running', 'harvesting')),
	started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	ended_at timestamptz,
	outcome text CHECK (outcome IN ('succeeded', 'failed', 'lost', 'released', 'revoked')),
	class text NOT NULL DEFAULT '',
	result_sha bytea,
	PRIMARY KEY (job_id, epoch),
	CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX attempt_claim ON lych.attempt (claim_id);
CREATE UNIQUE INDEX attempt_one_success ON lych.attempt (job_id) WHERE outcome = 'succeeded';

-- Hot and narrow. expires_at is in no index, so that a heartbeat is a HOT update.
CREATE TABLE lych.lease (
	job_id bigint PRIMARY KEY REFERENCES lych.job,
	epoch bigint NOT NULL,
	owner name NOT NULL,
	boot_id uuid NOT NULL,
	token uuid NOT NULL,
	run_until timestamptz NOT NULL, -- start + max_runtime: no heartbeat reaches past it
	expires_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
CREATE INDEX lease_owner ON lych.lease (owner);

-- The tomb's account of the attempt that finished the job.
CREATE TABLE lych.result (
	job_id bigint PRIMARY KEY REFERENCES lych.job ON DELETE CASCADE,
	epoch bigint NOT NULL,
	body bytea NOT NULL CHECK (octet_length(body) <= 1048576)
);

-- Which blobs a job names: what its spec lets the tomb read, what its result delivered.
CREATE TABLE lych.job_blob (
	job_id bigint NOT NULL REFERENCES lych.job ON DELETE CASCADE,
	sha text NOT NULL CHECK (sha ~ '^[0-9a-f]{64}$'),
	kind text NOT NULL CHECK (kind IN ('input', 'artifact')),
	PRIMARY KEY (job_id, sha, kind)
);

-- Which tomb may claim from which queue, how much at once and how fast (token bucket).
CREATE TABLE lych.worker_queue (
	role name NOT NULL,
	queue text NOT NULL,
	max_leases int NOT NULL DEFAULT 64 CHECK (max_leases BETWEEN 0 AND 1024),
	claim_rate real NOT NULL DEFAULT 200 CHECK (claim_rate > 0), -- jobs a second
	claim_burst real NOT NULL DEFAULT 400 CHECK (claim_burst >= 1),
	tokens real NOT NULL DEFAULT 400,
	tokens_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (role, queue)
) WITH (fillfactor = 50);

-- Written in the same transaction as the fact it tells; the scribe seals it into the log.
CREATE TABLE lych.audit_outbox (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL DEFAULT clock_timestamp(),
	event text NOT NULL,
	actor name NOT NULL DEFAULT session_user,
	job_id bigint,
	epoch bigint,
	data jsonb NOT NULL DEFAULT '{}'
);
-- One row for every end of an attempt, by constraint.
CREATE UNIQUE INDEX audit_attempt_end ON lych.audit_outbox (job_id, epoch)
	WHERE event IN ('attempt.succeeded', 'attempt.failed', 'attempt.lost', 'attempt.released',
			'attempt.revoked');

-- The fencing row: one vessel owns the database.
CREATE TABLE lych.vessel_owner (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	boot uuid NOT NULL,
	epoch bigint NOT NULL,
	since timestamptz NOT NULL,
	beat_at timestamptz NOT NULL
);

CREATE FUNCTION lych.audit(p_event text, p_job bigint, p_epoch bigint, p_data jsonb DEFAULT '{}')
RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO lych.audit_outbox (event, job_id, epoch, data)
	VALUES (p_event, p_job, p_epoch, p_data)
$$;

-- A hint for whoever waits. No payload, one a transaction, never needed for correctness.
CREATE FUNCTION lych.hint() RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	SELECT pg_notify('lych', '')
$$;

-- Bytes of a tomb as JSON, or NULL when they are none.
CREATE FUNCTION lych.json_or_null(p bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN convert_from(p, 'UTF8')::jsonb;
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END $$;

-- What a user sees: the one place where the table's states are translated.
CREATE FUNCTION lych.user_state(p_state lych.jstate, p_phase text, p_cancel boolean, p_class text)
RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE p_state
		WHEN 'running' THEN CASE WHEN p_cancel THEN 'cancelling'
					 WHEN p_phase = 'preparing' THEN 'preparing'
					 ELSE 'running' END
		WHEN 'dead' THEN CASE WHEN p_class = 'timeout_kill' THEN 'timed_out'
				      WHEN p_class IN ('lease_expired', 'transport_loss') THEN 'lost'
				      ELSE 'failed' END
		ELSE p_state::text END
$$;

-- The table states that a user's state can stand for (an index condition for list).
CREATE FUNCTION lych.table_state(p_user_state text) RETURNS lych.jstate
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN p_user_state IN ('preparing', 'running', 'cancelling') THEN 'running'
		    WHEN p_user_state IN ('timed_out', 'lost', 'failed') THEN 'dead'
		    ELSE p_user_state END::lych.jstate
$$;

CREATE FUNCTION lych.rfc3339(p timestamptz) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(to_char(p AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '')
$$;
