-- SPDX-License-Identifier: Apache-2.0
-- What the others use: an event, a hint, a job as a user sees it.
SET LOCAL ROLE lych_owner;

-- What a follower of a job has seen is a version of that job, which grows with each change of it; the
-- row's lock makes it grow in the order of commits. A stream of changes in the order of transactions
-- would wait for the oldest open one of anybody.
-- A job is attended until its end: who has it tried again need not wait for it.
CREATE FUNCTION lych.job_touch() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF TG_OP = 'UPDATE' THEN
		NEW.version := OLD.version + 1;
	END IF;
	NEW.attended := NEW.attended AND NEW.state IN ('held', 'queued', 'running');
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;

CREATE TRIGGER job_touch BEFORE INSERT OR UPDATE ON lych.job
	FOR EACH ROW EXECUTE FUNCTION lych.job_touch();

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

-- One job as the API shows it; '' where a text is absent. spec and result only from show().
CREATE TYPE vessel_api.job_row AS (
	id bigint, queue text, request_id text, state text, class text, phase text, epoch bigint,
	attempts int, lost int, created_at text, started_at text, finished_at text,
	updated_at text, owner text, taint text, version bigint, spec bytea, result bytea
);

CREATE VIEW lych.job_view AS
SELECT j.id, j.state AS table_state, j.version,
	lych.user_state(j.state, a.phase, j.cancel_req, j.class) AS user_state,
	ROW(j.id, j.queue, j.request_id,
	    lych.user_state(j.state, a.phase, j.cancel_req, j.class), j.class,
	    coalesce(a.phase, ''), j.epoch, j.attempts, j.lost,
	    lych.rfc3339(j.created_at), lych.rfc3339(j.started_at), lych.rfc3339(j.finished_at),
	    lych.rfc3339(j.updated_at), coalesce(a.owner::text, ''), coalesce(j.taint, ''),
	    j.version, NULL, NULL)::vessel_api.job_row AS r
FROM lych.job j
LEFT JOIN lych.attempt a ON a.job_id = j.id AND a.epoch = j.epoch AND a.ended_at IS NULL;

SET LOCAL ROLE NONE;
