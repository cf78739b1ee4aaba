-- SPDX-License-Identifier: Apache-2.0
-- Is the queue well, with a hundred thousand jobs? What a person waits for reads what is indexed or short; what looks at
-- everything (the invariants) is asked for by itself.
SET LOCAL ROLE lych_owner;

-- What must hold at every commit; each count must be 0.
CREATE FUNCTION lych.queue_invariants() RETURNS TABLE (name text, bad bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT 'succeeded_exactly_once', count(*) FROM (
		SELECT 1 FROM lych.job j
		LEFT JOIN lych.attempt a ON a.job_id = j.id AND a.outcome = 'succeeded'
		WHERE j.state = 'succeeded' GROUP BY j.id HAVING count(a.job_id) <> 1) AS x
	UNION ALL
	SELECT 'success_belongs_to_succeeded_job', count(*) FROM lych.attempt a
		JOIN lych.job j ON j.id = a.job_id
		WHERE a.outcome = 'succeeded' AND j.state <> 'succeeded'
	UNION ALL
	SELECT 'succeeded_has_result_of_its_epoch', count(*) FROM lych.job j
		LEFT JOIN lych.attempt a ON a.job_id = j.id AND a.outcome = 'succeeded'
		LEFT JOIN lych.result r ON r.job_id = j.id AND r.epoch = a.epoch
		WHERE j.state = 'succeeded' AND r.job_id IS NULL
	UNION ALL
	SELECT 'attempts_never_overlap', count(*) FROM (
		SELECT coalesce(a.ended_at, 'infinity') > lead(a.started_at)
			OVER (PARTITION BY a.job_id ORDER BY a.epoch) AS is_over
		FROM lych.attempt a) AS x WHERE is_over
	UNION ALL
	SELECT 'running_is_leased_with_current_epoch', count(*) FROM lych.job j
		FULL JOIN lych.lease l ON l.job_id = j.id
		WHERE (coalesce(j.state = 'running', false)) <> (l.job_id IS NOT NULL)
			OR l.epoch <> j.epoch
	UNION ALL
	SELECT 'open_attempt_is_leased', count(*) FROM lych.attempt a
		LEFT JOIN lych.lease l ON l.job_id = a.job_id AND l.epoch = a.epoch
		WHERE (a.ended_at IS NULL) <> (l.job_id IS NOT NULL)
	UNION ALL
	SELECT 'finished_time_iff_final', count(*) FROM lych.job j
		WHERE (j.finished_at IS NOT NULL) <> (j.state IN ('succeeded', 'dead', 'cancelled'))
	UNION ALL
	SELECT 'tainted_never_claimable', count(*) FROM lych.job j
		WHERE j.taint IS NOT NULL AND j.state IN ('held', 'queued', 'running')
	UNION ALL
	SELECT 'attempt_end_is_audited', count(*) FROM lych.attempt a
		WHERE a.ended_at IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM lych.audit_outbox o WHERE o.job_id = a.job_id
				AND o.epoch = a.epoch AND o.event = 'attempt.' || a.outcome)
	UNION ALL
	SELECT 'worker_roles_have_no_table', count(*) FROM pg_class c, pg_auth_members m
		WHERE m.roleid = 'lych_tomb'::regrole
			AND c.relnamespace NOT IN ('pg_catalog'::regnamespace,
						   'information_schema'::regnamespace)
			AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
			AND (has_table_privilege(m.member, c.oid,
				'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
			     OR has_any_column_privilege(m.member, c.oid,
				'SELECT, INSERT, UPDATE, REFERENCES'))
$$;

-- And the books balance: what is reserved is what open calls reserved.
CREATE FUNCTION lych.invariants() RETURNS TABLE (name text, bad bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT q.name, q.bad FROM lych.queue_invariants() q
	UNION ALL
	SELECT 'budget_reserved_is_what_open_calls_reserved', count(*) FROM lych.budget b
	CROSS JOIN generate_series(1, 6) AS w (i)
	WHERE b.reserved[w.i] <> (
		SELECT coalesce(sum(c.estimate[w.i]), 0) FROM lych.broker_call c
		WHERE c.settled_at IS NULL AND CASE b.scope
			WHEN 'job' THEN c.job_id = b.key::bigint
			WHEN 'identity' THEN c.identity = b.key AND c.day = b.day
			ELSE c.day = b.day END)
$$;

CREATE FUNCTION vessel_api.health() RETURNS text
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
