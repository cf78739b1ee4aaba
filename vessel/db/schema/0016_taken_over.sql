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

-- As in 0003, but whose attempt it is is known before anything is locked, and whether it ended: owner,
-- token and outcome of an attempt never change. Else whoever knows a job's number could hold its row,
-- or that of a job that has long ended.
CREATE FUNCTION lych.ended_answer(a lych.attempt, p_outcome text, p_class text, p_sha bytea)
RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN a.outcome = p_outcome AND a.class = p_class
			AND a.result_sha IS NOT DISTINCT FROM p_sha THEN 'already'
		WHEN a.outcome = 'revoked' THEN 'revoked'
		WHEN a.outcome = 'lost' THEN 'stale'
		ELSE 'conflict' END
$$;
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
	IF a.outcome IS NOT NULL THEN
		RETURN lych.ended_answer(a, p_outcome, p_class, p_sha);
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'unknown';
	END IF;
	SELECT * INTO a FROM lych.attempt x WHERE x.job_id = p_job AND x.epoch = p_epoch;
	IF a.outcome IS NOT NULL THEN
		RETURN lych.ended_answer(a, p_outcome, p_class, p_sha);
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

-- Whoever holds the row of its job can make others wait for it, for as long as a literal takes to be
-- read, which nothing interrupts. So nobody waits for long. A cancellation that finds the row held is a
-- wish, which the reaper grants as soon as it can; no foreign key, which would wait too.
CREATE TABLE lych.wish (
	job_id bigint PRIMARY KEY,
	at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- j: as it is, its row locked.
CREATE FUNCTION lych.cancel_locked(j lych.job) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF j.state IN ('held', 'queued') THEN
		UPDATE lych.job x SET state = 'cancelled', cancel_req = true,
			finished_at = clock_timestamp() WHERE x.id = j.id;
		PERFORM lych.audit('job.cancelled', j.id, j.epoch);
		PERFORM lych.hint();
	ELSIF j.state = 'running' AND NOT j.cancel_req THEN
		UPDATE lych.job x SET cancel_req = true WHERE x.id = j.id;
		PERFORM lych.audit('job.cancel_requested', j.id, j.epoch);
		PERFORM lych.hint();
	END IF;
END $$;

CREATE OR REPLACE FUNCTION vessel_api.cancel(p_job bigint) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET lock_timeout = '100ms' AS $$
DECLARE
	j lych.job;
BEGIN
	BEGIN
		SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
		IF NOT FOUND THEN
			RETURN;
		END IF;
		PERFORM lych.cancel_locked(j);
	EXCEPTION WHEN lock_not_available THEN
		INSERT INTO lych.wish (job_id) VALUES (p_job) ON CONFLICT DO NOTHING;
		RETURN QUERY SELECT 'cancelling';
		RETURN;
	END;
	RETURN QUERY SELECT v.user_state FROM lych.job_view v WHERE v.id = p_job;
END $$;

-- The oldest wish waits for its row, so that it is the next in line when the row is let go; the others
-- take what they find.
CREATE FUNCTION lych.grant_wishes() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '700ms' AS $$
DECLARE
	r record;
	j lych.job;
	v_first boolean := true;
BEGIN
	FOR r IN SELECT w.job_id FROM lych.wish w ORDER BY w.at LIMIT 100 LOOP
		BEGIN
			IF v_first THEN
				SELECT * INTO j FROM lych.job x WHERE x.id = r.job_id FOR UPDATE;
			ELSE
				SELECT * INTO j FROM lych.job x WHERE x.id = r.job_id FOR UPDATE NOWAIT;
			END IF;
			IF FOUND THEN
				PERFORM lych.cancel_locked(j);
			END IF;
			DELETE FROM lych.wish w WHERE w.job_id = r.job_id;
		EXCEPTION WHEN lock_not_available THEN
			UPDATE lych.wish w SET at = clock_timestamp() WHERE w.job_id = r.job_id AND v_first;
		END;
		v_first := false;
	END LOOP;
END $$;

-- As in 0004; a tomb that holds its job's row while it says a phase is told to say it again.
CREATE OR REPLACE FUNCTION vessel_api.set_phase(p_job bigint, p_epoch bigint, p_token uuid, p_phase text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET lock_timeout = '250ms' AS $$
DECLARE
	s text;
BEGIN
	PERFORM 1 FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	s := vessel_api.lease_check(p_job, p_epoch, p_token, false);
	IF s <> 'ok' THEN
		RETURN s;
	END IF;
	UPDATE lych.attempt x SET phase = p_phase
	WHERE x.job_id = p_job AND x.epoch = p_epoch AND x.phase <> p_phase;
	IF FOUND THEN
		UPDATE lych.job x SET state = x.state WHERE x.id = p_job; -- a change to tell
		PERFORM lych.hint();
	END IF;
	RETURN 'ok';
END $$;

-- As in 0014; what is held is wished for.
CREATE OR REPLACE FUNCTION vessel_api.abandon(p_jobs bigint[], p_others boolean, p_limit int)
RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	r record;
BEGIN
	FOR r IN
		SELECT j.id, j.epoch FROM lych.job j
		WHERE j.attended AND (j.id = ANY (p_jobs)) <> p_others
			AND NOT EXISTS (SELECT 1 FROM lych.wish w WHERE w.job_id = j.id)
		ORDER BY j.id LIMIT least(greatest(p_limit, 1), 500)
	LOOP
		BEGIN
			PERFORM 1 FROM lych.job j WHERE j.id = r.id AND j.attended FOR UPDATE NOWAIT;
			CONTINUE WHEN NOT FOUND;
			UPDATE lych.job j SET attended = false WHERE j.id = r.id;
			PERFORM lych.audit('job.abandoned', r.id, r.epoch);
			PERFORM vessel_api.cancel(r.id);
		EXCEPTION WHEN lock_not_available THEN
			PERFORM lych.audit('job.abandoned', r.id, r.epoch);
			INSERT INTO lych.wish (job_id) VALUES (r.id) ON CONFLICT DO NOTHING;
		END;
		RETURN NEXT r.id;
	END LOOP;
END $$;

-- As in 0012; a job that has not ended is not waited for.
ALTER FUNCTION vessel_api.retry(bigint, int) RENAME TO retry_ended;
ALTER FUNCTION vessel_api.retry_ended(bigint, int) SET SCHEMA lych;
ALTER FUNCTION vessel_api.remove(bigint) RENAME TO remove_ended;
ALTER FUNCTION vessel_api.remove_ended(bigint) SET SCHEMA lych;
CREATE FUNCTION vessel_api.retry(p_job bigint, p_max_waiting int) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM lych.job x WHERE x.id = p_job AND x.taint IS NULL
		   AND x.state IN ('held', 'queued', 'running')) THEN
		RETURN 'state';
	END IF;
	RETURN lych.retry_ended(p_job, p_max_waiting);
END $$;
CREATE FUNCTION vessel_api.remove(p_job bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM lych.job x WHERE x.id = p_job AND x.taint IS NULL
		   AND x.state IN ('held', 'queued', 'running')) THEN
		RETURN 'state';
	END IF;
	RETURN lych.remove_ended(p_job);
END $$;

-- As in 0008, but a lease whose row is held is left for the next second too, and wishes are granted.
CREATE OR REPLACE FUNCTION vessel_api.reap(p_boot uuid, p_limit int, p_grace_s int)
RETURNS TABLE (job_id bigint, epoch bigint, owner text, new_state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
	v_grace double precision := greatest(p_grace_s, 0);
	v_now timestamptz := clock_timestamp();
	v_server timestamptz := pg_postmaster_start_time();
	v_whole boolean;
	o lych.vessel_owner;
	r record;
	d record;
	v_state lych.jstate;
BEGIN
	SELECT * INTO o FROM lych.vessel_owner x WHERE x.boot = p_boot;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	IF EXISTS (SELECT 1 FROM lych.wish) THEN
		PERFORM lych.grant_wishes();
	END IF;
	IF NOT EXISTS (SELECT 1 FROM lych.lease l WHERE l.expires_at < v_now) THEN
		RETURN;
	END IF;
	v_whole := greatest(v_server, o.since) + make_interval(secs => v_grace) <= v_now;
	IF NOT v_whole THEN
		UPDATE lych.vessel_owner x SET up_at = v_now, up_server = v_server, up_boot = p_boot,
			up_s = x.up_s + CASE WHEN x.up_server = v_server AND x.up_boot = p_boot
				AND x.up_at > v_now - interval '3 s'
				THEN extract(epoch FROM v_now - x.up_at) ELSE 0 END
		WHERE x.boot = p_boot RETURNING * INTO o;
		IF NOT FOUND THEN
			RETURN;
		END IF;
	END IF;
	FOR r IN
		SELECT j.id FROM lych.lease l JOIN lych.job j ON j.id = l.job_id
		WHERE l.expires_at < clock_timestamp()
			AND (v_whole OR l.overdue_up <= o.up_s - v_grace)
		ORDER BY j.id LIMIT least(greatest(p_limit, 1), 500) FOR UPDATE OF j, l SKIP LOCKED
	LOOP
		DELETE FROM lych.lease l WHERE l.job_id = r.id AND l.expires_at < clock_timestamp()
		RETURNING l.job_id, l.epoch, l.owner INTO d;
		CONTINUE WHEN NOT FOUND;
		UPDATE lych.attempt a
		SET ended_at = clock_timestamp(), outcome = 'lost', class = 'lease_expired'
		WHERE a.job_id = d.job_id AND a.epoch = d.epoch;
		-- With a cancel request too: nobody has proved the tree gone, so it is lost.
		v_state := lych.lose(d.job_id, 'lease_expired', false);
		PERFORM lych.audit('attempt.lost', d.job_id, d.epoch, jsonb_build_object(
			'owner', d.owner, 'state', v_state));
		job_id := d.job_id;
		epoch := d.epoch;
		owner := d.owner;
		new_state := v_state;
		RETURN NEXT;
	END LOOP;
	-- Last, and waiting for nobody: who ends an attempt locks the job first, then its lease.
	IF NOT v_whole THEN
		UPDATE lych.lease l SET overdue_up = o.up_s
		WHERE l.job_id IN (
			SELECT x.job_id FROM lych.lease x
			WHERE x.expires_at < clock_timestamp() AND x.overdue_up IS NULL
			FOR UPDATE SKIP LOCKED);
	END IF;
END $$;

-- A worker makes one call at a time, each a transaction of its own. So what it is ended for is no
-- part of its work: to sit in a transaction; to say anything else than a call for longer than half a
-- second (a hundred thousand NOTIFYs, say: everybody who tells of a change waits for their commit);
-- to be at a call for seconds, also by not taking what it asked for or listens to (then its session is
-- idle, and in a transaction all the same); and to be waited for by anybody else. Of those who wait
-- in a row for each other the one at its end is to blame, and whoever of the same login stands in
-- between.
CREATE OR REPLACE FUNCTION watch_api.sweep() RETURNS TABLE (pid int, role text, why text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	-- MATERIALIZED is the wall here: without it the planner may terminate before it filters.
	WITH RECURSIVE seen AS MATERIALIZED (
		SELECT a.pid, a.usesysid, a.usename::text AS role, a.state, a.state_change,
			a.xact_start, a.wait_event_type = 'Lock' AS waits,
			-- the text that is seen ends behind 1023 bytes
			a.query ~ '^(\s*SELECT\M[^;]*\mtomb_api\.[^;]*|LISTEN lych)$'
				AND octet_length(a.query) < 1000 AND a.query_start < a.xact_start + interval '250 ms' AS is_call,
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
			WHEN NOT s.is_call AND s.xact_start < clock_timestamp() - interval '500 ms'
				THEN 'not a call'
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
REVOKE ALL ON FUNCTION lych.set_login(text, text), vessel_api.retry(bigint, int),
	vessel_api.remove(bigint) FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA lych FROM PUBLIC, lych_vessel;
GRANT EXECUTE ON FUNCTION vessel_api.retry(bigint, int), vessel_api.remove(bigint) TO lych_vessel;
