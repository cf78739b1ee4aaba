-- SPDX-License-Identifier: Apache-2.0
-- The tables of the queue. Only functions touch them; no login has a right on any of them.
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
	-- whose job it is; there is one identity until paired devices and agents exist
	identity text NOT NULL DEFAULT 'owner' CHECK (identity ~ '^[a-z0-9][a-z0-9._-]{0,63}$'),
	version bigint NOT NULL DEFAULT 1, -- grows with each change
	-- Somebody waits for it: when that client is gone, it is cancelled. The vessel counts the time
	-- (vessel/api/attended.c); here is which jobs it is about, over its restarts.
	attended boolean NOT NULL DEFAULT false,
	CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'dead', 'cancelled'))),
	CHECK (taint IS NULL OR state NOT IN ('held', 'queued', 'running')),
	CHECK ((state = 'dead') = (class <> ''))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

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

-- Hot and narrow. expires_at is in no index, so that a heartbeat is a HOT update.
CREATE TABLE lych.lease (
	job_id bigint PRIMARY KEY REFERENCES lych.job,
	epoch bigint NOT NULL,
	owner name NOT NULL,
	boot_id uuid NOT NULL,
	token uuid NOT NULL,
	run_until timestamptz NOT NULL, -- start + max_runtime: no heartbeat reaches past it
	expires_at timestamptz NOT NULL,
	-- the up clock when the reaper first saw that the lease had run out; NULL: it has not
	overdue_up double precision
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

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

-- A cancellation that found the row of its job held: the reaper grants it as soon as it can. No
-- foreign key, which would wait for that row too.
CREATE TABLE lych.wish (
	job_id bigint PRIMARY KEY,
	at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Jobs that a person removed. Their events stay until they are in the log and as old as those of
-- other jobs may become.
CREATE TABLE lych.removed (
	job_id bigint PRIMARY KEY,
	at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The generation of each tomb's secrets.
CREATE TABLE lych.tomb (
	name name PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9_]{0,31}$'),
	generation bigint NOT NULL CHECK (generation > 0),
	since timestamptz NOT NULL DEFAULT clock_timestamp()
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

-- The fencing row: one vessel owns the database.
CREATE TABLE lych.vessel_owner (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	boot uuid NOT NULL,
	epoch bigint NOT NULL,
	since timestamptz NOT NULL,
	beat_at timestamptz NOT NULL,
	-- The up clock: seconds in which server and vessel were both up and a reaper looked, over all of
	-- their restarts. It is read and moved on while there is a lease that ran out, not else.
	up_s double precision NOT NULL DEFAULT 0,
	up_at timestamptz NOT NULL DEFAULT '-infinity',
	up_server timestamptz NOT NULL DEFAULT '-infinity',
	up_boot uuid
);

SET LOCAL ROLE NONE;
