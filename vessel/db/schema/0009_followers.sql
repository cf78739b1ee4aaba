-- SPDX-License-Identifier: Apache-2.0
-- What a follower of a job has seen is a version of that job, which grows with each change of it; the
-- row's lock makes it grow in the order of commits. It took the place of the transaction's id: a stream
-- of changes in the order of those had to wait for the oldest open transaction of anybody, and who read
-- it had to know how far to go back for what was told too early.
SET LOCAL ROLE lych_owner;

DROP FUNCTION vessel_api.changes(bigint, int);
DROP VIEW lych.job_view;
DROP INDEX lych.job_change;
ALTER TABLE lych.job DROP COLUMN change_seq;
ALTER TABLE lych.job ADD COLUMN version bigint NOT NULL DEFAULT 1;

CREATE OR REPLACE FUNCTION lych.job_touch() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF TG_OP = 'UPDATE' THEN
		NEW.version := OLD.version + 1;
	END IF;
	NEW.updated_at := clock_timestamp();
	RETURN NEW;
END $$;

ALTER TYPE vessel_api.job_row RENAME ATTRIBUTE change_seq TO version;

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

-- Of these jobs those that are at another version than the one that was seen, as they are now; and,
-- with nothing but their id, those that are no more.
CREATE FUNCTION vessel_api.look(p_jobs bigint[], p_versions bigint[]) RETURNS SETOF vessel_api.job_row
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	v_gone bigint;
	r vessel_api.job_row;
BEGIN
	IF cardinality(p_jobs) > 4096 OR cardinality(p_versions) IS DISTINCT FROM cardinality(p_jobs) THEN
		RAISE EXCEPTION 'look: arrays of one length, at most 4096' USING ERRCODE = '22023';
	END IF;
	RETURN QUERY SELECT (v.r).* FROM unnest(p_jobs, p_versions) AS u (id, version)
		JOIN lych.job_view v ON v.id = u.id
		WHERE v.version <> u.version;
	FOR v_gone IN SELECT u.id FROM unnest(p_jobs) AS u (id)
		WHERE NOT EXISTS (SELECT 1 FROM lych.job j WHERE j.id = u.id)
	LOOP
		r.id := v_gone;
		RETURN NEXT r;
	END LOOP;
END $$;

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION vessel_api.look(bigint[], bigint[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vessel_api.look(bigint[], bigint[]) TO lych_vessel;
