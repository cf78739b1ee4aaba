-- SPDX-License-Identifier: Apache-2.0
-- A hundred thousand jobs. What a person waits for reads what is indexed or short; what looks at
-- everything (the invariants) is asked for by itself.
SET LOCAL ROLE lych_owner;

CREATE INDEX job_blob_sha ON lych.job_blob (sha COLLATE "C");
CREATE INDEX attempt_lost ON lych.attempt (job_id) WHERE outcome = 'lost';

-- Of those that begin with p_prefix (hex digits): the store is gone through in pieces.
DROP FUNCTION vessel_api.live_blobs();
CREATE FUNCTION vessel_api.live_blobs(p_prefix text) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT DISTINCT b.sha FROM lych.job_blob b
	WHERE b.sha COLLATE "C" >= p_prefix AND b.sha COLLATE "C" < p_prefix || 'g'
$$;

CREATE OR REPLACE FUNCTION vessel_api.health() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	-- only a job that runs has a phase
	WITH counted AS (
		SELECT lych.user_state(g.state, NULL, g.cancel_req, g.class) AS s, g.n FROM (
			SELECT j.state, j.cancel_req, j.class, count(*) AS n FROM lych.job j
			WHERE j.state <> 'running' GROUP BY 1, 2, 3) AS g
		UNION ALL
		SELECT v.user_state, count(*) FROM lych.job_view v
		WHERE v.table_state = 'running' GROUP BY 1)
	SELECT jsonb_build_object(
		'jobs', (SELECT coalesce(jsonb_object_agg(c.s, c.n), '{}') FROM (
			SELECT x.s, sum(x.n) AS n FROM counted x GROUP BY 1) AS c),
		'leases', (SELECT count(*) FROM lych.lease),
		'leases_expired', (SELECT count(*) FROM lych.lease l
				   WHERE l.expires_at < clock_timestamp()),
		'oldest_waiting_s', (SELECT coalesce(extract(epoch FROM
			clock_timestamp() - min(j.created_at)), 0)::bigint FROM lych.job j
			WHERE j.state IN ('held', 'queued')),
		'attempts_lost', (SELECT count(*) FROM lych.attempt a WHERE a.outcome = 'lost'),
		'tombs', (SELECT coalesce(jsonb_agg(DISTINCT w.role), '[]') FROM lych.worker_queue w),
		'vessel_epoch', (SELECT o.epoch FROM lych.vessel_owner o),
		'schema', (SELECT max(s.version) FROM lych.schema_version s),
		'server', current_setting('server_version')
	)::text
$$;

-- Every job, attempt and event is looked at: seconds, where there are many.
CREATE FUNCTION vessel_api.check_queue() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	WITH inv AS MATERIALIZED (SELECT i.name, i.bad FROM lych.invariants() i)
	SELECT jsonb_build_object(
		'invariants', (SELECT jsonb_object_agg(i.name, i.bad) FROM inv i),
		'violations', (SELECT sum(i.bad) FROM inv i))::text
$$;

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION vessel_api.live_blobs(text), vessel_api.check_queue() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vessel_api.live_blobs(text), vessel_api.check_queue() TO lych_vessel;
