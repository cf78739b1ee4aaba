-- SPDX-License-Identifier: Apache-2.0
-- A tomb that was taken over has its login. What a login may do by default beside the five functions
-- is taken away here: it calls nothing of PostgreSQL's own, reads no catalogue, writes nothing into
-- the server's log, locks no job but its own, and is ended when others wait for it.

-- Functions and catalogues that everybody may use by default. Our own roles keep them, the tombs do
-- not: without functions a session cannot burn the server for longer than it can be
-- interrupted (a root of ten thousand digits, an XPath expression), learn what others do, or make a
-- gigabyte of a word. What PostgreSQL keeps from everybody stays so.
DO $$
DECLARE
	v_functions text;
	v_tables text;
BEGIN
	SELECT string_agg(p.oid::regprocedure::text, ', ') INTO v_functions FROM pg_proc p
	WHERE p.pronamespace = 'pg_catalog'::regnamespace
		AND has_function_privilege('public', p.oid, 'EXECUTE');
	SELECT string_agg(c.oid::regclass::text, ', ') INTO v_tables FROM pg_class c
	WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v')
		AND has_table_privilege('public', c.oid, 'SELECT');
	REVOKE ALL ON ALL ROUTINES IN SCHEMA pg_catalog FROM PUBLIC;
	REVOKE ALL ON ALL TABLES IN SCHEMA pg_catalog FROM PUBLIC;
	REVOKE ALL ON SCHEMA information_schema FROM PUBLIC;
	EXECUTE 'GRANT EXECUTE ON ROUTINE ' || v_functions || ' TO lych_owner, lych_vessel, lych_watchdog';
	EXECUTE 'GRANT SELECT ON TABLE ' || v_tables || ' TO lych_owner, lych_vessel, lych_watchdog';
END $$;
-- A number in the text of a statement is an integer; the five functions take bigint.
GRANT EXECUTE ON FUNCTION pg_catalog.int8(integer) TO lych_tomb;

-- As in 0001, but for what a tomb gets. A tomb has two sessions and, while it is restarted, those
-- that it had. Its errors would go to the server's log with the text of its statements, gigabytes if
-- it likes; what it must be told it is told. Only a superuser can change these settings back.
CREATE OR REPLACE FUNCTION lych.set_login(p_role text, p_verifier text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	v_is_tomb boolean := p_role LIKE 'tomb\_%';
BEGIN
	IF p_role !~ '^(lych_vessel|lych_watchdog|tomb_[a-z0-9_]{1,32})$' THEN
		RAISE EXCEPTION 'not a login of Lychgate' USING ERRCODE = '22023';
	END IF;
	IF p_verifier !~ '^SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$' THEN
		RAISE EXCEPTION 'not a SCRAM verifier' USING ERRCODE = '22023';
	END IF;
	IF v_is_tomb AND NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = p_role) THEN
		EXECUTE 'CREATE ROLE ' || quote_ident(p_role) || ' INHERIT';
	END IF;
	-- A role may change its own settings (ALTER ROLE ... SET): what it left there goes.
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' RESET ALL';
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' IN DATABASE ' ||
		quote_ident(current_database()) || ' RESET ALL';
	EXECUTE 'ALTER ROLE ' || quote_ident(p_role) ||
		' LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS' ||
		' CONNECTION LIMIT ' || CASE WHEN v_is_tomb THEN 8 ELSE 16 END ||
		' PASSWORD ' || quote_literal(p_verifier);
	IF v_is_tomb THEN
		EXECUTE 'GRANT lych_tomb TO ' || quote_ident(p_role);
		EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' SET temp_file_limit = ''64MB''';
		EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' SET log_min_messages = ''fatal''';
		EXECUTE 'ALTER ROLE ' || quote_ident(p_role) || ' SET log_min_error_statement = ''panic''';
	END IF;
END $$;

SET LOCAL ROLE lych_owner;

-- As in 0003, but whose attempt it is is known before anything is locked: owner and token of an
-- attempt never change. Else whoever knows a job's number could hold its row.
CREATE OR REPLACE FUNCTION lych.end_attempt(p_job bigint, p_epoch bigint, p_token uuid, p_outcome text,
					    p_class text, p_sha bytea)
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	j lych.job;
	a lych.attempt;
BEGIN
	SELECT * INTO a FROM lych.attempt x WHERE x.job_id = p_job AND x.epoch = p_epoch;
	IF NOT FOUND OR a.token IS DISTINCT FROM p_token OR a.owner <> session_user THEN
		RETURN CASE WHEN EXISTS (SELECT 1 FROM lych.job x WHERE x.id = p_job) THEN 'denied'
			    ELSE 'unknown' END;
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'unknown';
	END IF;
	SELECT * INTO a FROM lych.attempt x WHERE x.job_id = p_job AND x.epoch = p_epoch;
	IF a.outcome IS NOT NULL THEN
		IF a.outcome = p_outcome AND a.class = p_class
		   AND a.result_sha IS NOT DISTINCT FROM p_sha THEN
			RETURN 'already';
		END IF;
		RETURN CASE a.outcome WHEN 'revoked' THEN 'revoked' WHEN 'lost' THEN 'stale'
				      ELSE 'conflict' END;
	END IF;
	IF j.epoch <> p_epoch OR j.state <> 'running' THEN
		RETURN 'stale';
	END IF;
	DELETE FROM lych.lease l WHERE l.job_id = p_job AND l.epoch = p_epoch;
	IF NOT FOUND THEN
		RETURN 'stale';
	END IF;
	UPDATE lych.attempt x
	SET ended_at = clock_timestamp(), outcome = p_outcome, class = p_class, result_sha = p_sha
	WHERE x.job_id = p_job AND x.epoch = p_epoch;
	PERFORM lych.audit('attempt.' || p_outcome, p_job, p_epoch,
			   jsonb_build_object('class', p_class, 'result_sha', encode(p_sha, 'hex')));
	PERFORM lych.hint();
	RETURN 'ok';
END $$;

-- As in 0003, but of a result that names more artifacts than one may have the first count.
CREATE OR REPLACE FUNCTION lych.store_result(p_job bigint, p_epoch bigint, p_result bytea) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	INSERT INTO lych.result (job_id, epoch, body) VALUES (p_job, p_epoch, p_result);
	INSERT INTO lych.job_blob (job_id, sha, kind)
	SELECT p_job, a.v ->> 'sha256', 'artifact' FROM (
		SELECT v FROM jsonb_path_query(lych.json_or_null(p_result), 'lax $.artifacts[*]') AS v
		LIMIT 256) AS a
	WHERE a.v ->> 'sha256' ~ '^[0-9a-f]{64}$'
	ON CONFLICT DO NOTHING;
END $$;

-- A worker makes one call at a time, each a transaction of its own. So what it is ended for is no
-- part of its work: to sit in a transaction, or in a statement for seconds, also by not taking what it
-- asked for or listens to (then its session is idle, and in a transaction all the same); and to be
-- waited for by anybody else. Of those who wait in a row for each other the one at its end is to
-- blame, and whoever of the same login stands in between.
CREATE OR REPLACE FUNCTION watch_api.sweep() RETURNS TABLE (pid int, role text, why text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	-- MATERIALIZED is the wall here: without it the planner may terminate before it filters.
	WITH RECURSIVE seen AS MATERIALIZED (
		SELECT a.pid, a.usesysid, a.usename::text AS role, a.state, a.state_change,
			a.xact_start, a.wait_event_type = 'Lock' AS waits,
			EXISTS (SELECT 1 FROM pg_auth_members m WHERE m.member = a.usesysid
				AND m.roleid = (SELECT r.oid FROM pg_roles r
						WHERE r.rolname = 'lych_tomb')) AS is_tomb
		FROM pg_stat_activity a WHERE a.backend_type = 'client backend'),
	blocked AS (
		SELECT s.usesysid AS victim, b.pid FROM seen s
			CROSS JOIN LATERAL unnest(pg_blocking_pids(s.pid)) AS b (pid)
		WHERE s.waits AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = s.pid
			AND NOT l.granted AND l.waitstart < clock_timestamp() - interval '250 ms')
		UNION
		SELECT o.victim, b.pid FROM blocked o
			CROSS JOIN LATERAL unnest(pg_blocking_pids(o.pid)) AS b (pid)),
	blame AS MATERIALIZED (
		SELECT DISTINCT o.victim, s.usesysid FROM blocked o JOIN seen s ON s.pid = o.pid
		WHERE s.is_tomb AND s.usesysid <> o.victim AND NOT s.waits),
	due AS MATERIALIZED (
		SELECT s.pid, s.role, CASE
			WHEN s.state LIKE 'idle in transaction%'
				AND s.state_change < clock_timestamp() - interval '500 ms'
				THEN 'idle in transaction'
			WHEN s.xact_start < clock_timestamp() - interval '5 s'
				THEN 'long transaction'
			WHEN EXISTS (SELECT 1 FROM blocked o JOIN blame b
					ON b.victim = o.victim AND b.usesysid = s.usesysid
				     WHERE o.pid = s.pid)
				THEN 'others wait for it' END AS why
		FROM seen s WHERE s.is_tomb),
	ended AS MATERIALIZED (
		SELECT d.pid, d.role, d.why FROM due d WHERE d.why IS NOT NULL)
	SELECT e.pid, e.role, e.why FROM ended e WHERE pg_terminate_backend(e.pid)
$$;

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION lych.set_login(text, text) FROM PUBLIC;
