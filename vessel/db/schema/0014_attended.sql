-- SPDX-License-Identifier: Apache-2.0
-- A job that somebody waits for: when that client is gone, it is cancelled. The vessel counts the
-- time (vessel/api/attended.c); here is which jobs it is about, over its restarts.
SET LOCAL ROLE lych_owner;

ALTER TABLE lych.job ADD COLUMN attended boolean NOT NULL DEFAULT false;
CREATE INDEX job_attended ON lych.job (id) WHERE attended;

-- Until its end: who has it tried again need not wait for it.
CREATE OR REPLACE FUNCTION lych.job_touch() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF TG_OP = 'UPDATE' THEN
		NEW.version := OLD.version + 1;
	END IF;
	NEW.attended := NEW.attended AND NEW.state IN ('held', 'queued', 'running');
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;

-- Of two that submit the same job one may wait for it and the other not: then it goes on without
-- either.
CREATE FUNCTION vessel_api.enqueue(p_queue text, p_request text, p_spec bytea, p_priority int,
				   p_retry_on_lost boolean, p_max_runtime_s int, p_max_waiting int,
				   p_attended boolean)
RETURNS TABLE (job_id bigint, existing boolean, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
	r record;
BEGIN
	SELECT * INTO r FROM vessel_api.enqueue(p_queue, p_request, p_spec, p_priority,
						p_retry_on_lost, p_max_runtime_s, p_max_waiting);
	IF r.status = 'ok' AND r.existing <> p_attended THEN
		UPDATE lych.job j SET attended = p_attended
		WHERE j.id = r.job_id AND j.attended <> p_attended;
	END IF;
	RETURN QUERY SELECT r.job_id, r.existing, r.status;
END $$;

-- Nobody waits any more for these jobs, or (p_others) for any but these: those that are attended
-- and have not ended are cancelled, at most p_limit; their ids.
CREATE FUNCTION vessel_api.abandon(p_jobs bigint[], p_others boolean, p_limit int)
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	r record;
BEGIN
	FOR r IN
		SELECT j.id, j.epoch FROM lych.job j
		WHERE j.attended AND (j.id = ANY (p_jobs)) <> p_others
		ORDER BY j.id LIMIT least(greatest(p_limit, 1), 500) FOR UPDATE
	LOOP
		UPDATE lych.job j SET attended = false WHERE j.id = r.id;
		PERFORM lych.audit('job.abandoned', r.id, r.epoch);
		PERFORM vessel_api.cancel(r.id);
		RETURN NEXT r.id;
	END LOOP;
END $$;

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION
	vessel_api.enqueue(text, text, bytea, int, boolean, int, int, boolean),
	vessel_api.abandon(bigint[], boolean, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
	vessel_api.enqueue(text, text, bytea, int, boolean, int, int, boolean),
	vessel_api.abandon(bigint[], boolean, int) TO lych_vessel;
