-- SPDX-License-Identifier: Apache-2.0
-- The vessel's API. lych_vessel has EXECUTE here and no right on any table.
SET LOCAL ROLE lych_owner;

-- One job as the API shows it; '' where a text is absent. spec and result only from show().
CREATE TYPE vessel_api.job_row AS (
	id bigint, queue text, request_id text, state text, class text, phase text, epoch bigint,
	attempts int, lost int, created_at text, started_at text, finished_at text,
	updated_at text, owner text, taint text, change_seq bigint, spec bytea, result bytea
);

CREATE VIEW lych.job_view AS
SELECT j.id, j.state AS table_state, j.change_seq,
	lych.user_state(j.state, a.phase, j.cancel_req, j.class) AS user_state,
	ROW(j.id, j.queue, j.request_id,
	    lych.user_state(j.state, a.phase, j.cancel_req, j.class), j.class,
	    coalesce(a.phase, ''), j.epoch, j.attempts, j.lost,
	    lych.rfc3339(j.created_at), lych.rfc3339(j.started_at), lych.rfc3339(j.finished_at),
	    lych.rfc3339(j.updated_at), coalesce(a.owner::text, ''), coalesce(j.taint, ''),
	    j.change_seq, NULL, NULL)::vessel_api.job_row AS r
FROM lych.job j
LEFT JOIN lych.attempt a ON a.job_id = j.id AND a.epoch = j.epoch AND a.ended_at IS NULL;

-- status: ok | conflict (request_id was used with other content) | full
CREATE FUNCTION vessel_api.enqueue(p_queue text, p_request text, p_spec bytea, p_priority int,
				   p_retry_on_lost boolean, p_max_runtime_s int, p_max_waiting int)
RETURNS TABLE (job_id bigint, existing boolean, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
	v_sha bytea := sha256(p_spec);
	v_spec jsonb := convert_from(p_spec, 'UTF8')::jsonb;
	v_tries int := CASE WHEN p_retry_on_lost THEN 3 ELSE 1 END;
	v_old record;
	v_id bigint;
	v_n bigint;
BEGIN
	-- A job that finishes and is forgotten between insert and select sends us round again.
	FOR i IN 1..10 LOOP
		SELECT j.id, j.spec_sha INTO v_old FROM lych.job j
		WHERE j.queue = p_queue AND j.request_id = p_request;
		IF FOUND THEN
			IF v_old.spec_sha = v_sha THEN
				RETURN QUERY SELECT v_old.id, true, 'ok';
			ELSE
				RETURN QUERY SELECT NULL::bigint, true, 'conflict';
			END IF;
			RETURN;
		END IF;
		SELECT count(*) INTO v_n FROM (
			SELECT 1 FROM lych.job j WHERE j.state IN ('held', 'queued')
			LIMIT p_max_waiting) AS w;
		IF v_n >= p_max_waiting THEN
			RETURN QUERY SELECT NULL::bigint, false, 'full';
			RETURN;
		END IF;
		INSERT INTO lych.job AS j (queue, request_id, spec_sha, priority, max_attempts, max_lost,
					   retry_on_lost, max_runtime_s)
		VALUES (p_queue, p_request, v_sha, p_priority, v_tries, v_tries, p_retry_on_lost,
			p_max_runtime_s)
		ON CONFLICT (queue, request_id) DO NOTHING RETURNING j.id INTO v_id;
		EXIT WHEN v_id IS NOT NULL;
	END LOOP;
	IF v_id IS NULL THEN
		RAISE EXCEPTION 'enqueue: request_id keeps changing' USING ERRCODE = '40001';
	END IF;
	INSERT INTO lych.payload (job_id, body) VALUES (v_id, p_spec);
	INSERT INTO lych.job_blob (job_id, sha, kind)
	SELECT v_id, s.sha, 'input' FROM (
		SELECT v_spec ->> 'input' AS sha
		UNION SELECT v_spec ->> 'stdin_blob'
		UNION SELECT f ->> 'blob' FROM jsonb_path_query(v_spec, 'lax $.files[*]') AS f) AS s
	WHERE s.sha IS NOT NULL AND s.sha <> '';
	PERFORM lych.audit('job.enqueued', v_id, 0, jsonb_build_object(
		'request_id', p_request, 'spec_sha', encode(v_sha, 'hex')));
	PERFORM lych.hint();
	RETURN QUERY SELECT v_id, false, 'ok';
END $$;

CREATE FUNCTION vessel_api.show(p_job bigint) RETURNS SETOF vessel_api.job_row
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	r vessel_api.job_row;
BEGIN
	SELECT (v.r).* INTO r FROM lych.job_view v WHERE v.id = p_job;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	SELECT p.body INTO r.spec FROM lych.payload p WHERE p.job_id = p_job;
	SELECT x.body INTO r.result FROM lych.result x WHERE x.job_id = p_job;
	RETURN NEXT r;
END $$;

-- Newest first; p_state '' lists every state.
CREATE FUNCTION vessel_api.list(p_state text, p_before bigint, p_limit int)
RETURNS SETOF vessel_api.job_row
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	v_before bigint := CASE WHEN p_before > 0 THEN p_before ELSE 9223372036854775807 END;
	v_limit int := least(greatest(p_limit, 1), 500);
	v_table lych.jstate;
BEGIN
	IF p_state = '' THEN
		RETURN QUERY SELECT (v.r).* FROM lych.job_view v
			WHERE v.id < v_before ORDER BY v.id DESC LIMIT v_limit;
	ELSE
		v_table := lych.table_state(p_state);
		RETURN QUERY SELECT (v.r).* FROM lych.job_view v
			WHERE v.table_state = v_table AND v.user_state = p_state AND v.id < v_before
			ORDER BY v.id DESC LIMIT v_limit;
	END IF;
END $$;

-- Settled changes only: every transaction with an id below the snapshot's xmin has ended, so
-- nothing can appear behind the cursor later. Ties stay together: one transaction, one number.
CREATE FUNCTION vessel_api.changes(p_since bigint, p_limit int) RETURNS SETOF vessel_api.job_row
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
	v_settled bigint := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
	v_limit int := least(greatest(p_limit, 1), 500);
BEGIN
	RETURN QUERY SELECT (v.r).* FROM lych.job_view v
		WHERE v.change_seq > p_since AND v.change_seq < v_settled
		ORDER BY v.change_seq FETCH FIRST v_limit ROWS WITH TIES;
END $$;

-- The job's state for the user after the call; no row: no such job.
CREATE FUNCTION vessel_api.cancel(p_job bigint) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	j lych.job;
BEGIN
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	IF j.state IN ('held', 'queued') THEN
		UPDATE lych.job x SET state = 'cancelled', cancel_req = true,
			finished_at = clock_timestamp() WHERE x.id = p_job;
		PERFORM lych.audit('job.cancelled', p_job, j.epoch);
		PERFORM lych.hint();
	ELSIF j.state = 'running' AND NOT j.cancel_req THEN
		UPDATE lych.job x SET cancel_req = true WHERE x.id = p_job;
		PERFORM lych.audit('job.cancel_requested', p_job, j.epoch);
		PERFORM lych.hint();
	END IF;
	RETURN QUERY SELECT v.user_state FROM lych.job_view v WHERE v.id = p_job;
END $$;

-- ok | stale | revoked | denied. Strict (egress): unexpired, untainted, not being cancelled.
-- Not strict (output, phases, artifacts): the current attempt, not ended.
CREATE FUNCTION vessel_api.lease_check(p_job bigint, p_epoch bigint, p_token uuid,
				       p_strict boolean)
RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	a lych.attempt;
	j lych.job;
BEGIN
	SELECT * INTO a FROM lych.attempt x WHERE x.job_id = p_job AND x.epoch = p_epoch;
	IF NOT FOUND OR a.token IS DISTINCT FROM p_token THEN
		RETURN 'denied';
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	IF a.outcome = 'revoked' OR j.taint IS NOT NULL THEN
		RETURN 'revoked';
	END IF;
	IF a.ended_at IS NOT NULL OR j.epoch <> p_epoch OR j.state <> 'running' THEN
		RETURN 'stale';
	END IF;
	IF p_strict AND (j.cancel_req OR NOT EXISTS (
		SELECT 1 FROM lych.lease l WHERE l.job_id = p_job AND l.epoch = p_epoch
			AND l.token = p_token AND l.expires_at > clock_timestamp())) THEN
		RETURN 'stale';
	END IF;
	RETURN 'ok';
END $$;

-- Answers as lease_check, not strict.
CREATE FUNCTION vessel_api.set_phase(p_job bigint, p_epoch bigint, p_token uuid, p_phase text)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
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

CREATE FUNCTION vessel_api.has_blob(p_job bigint, p_sha text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT EXISTS (SELECT 1 FROM lych.job_blob b
		       WHERE b.job_id = p_job AND b.sha = p_sha AND b.kind = 'input')
$$;

CREATE FUNCTION vessel_api.live_blobs() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT DISTINCT b.sha FROM lych.job_blob b
$$;

-- ok | taken. The same boot renews; a silent owner (15 s) or one that said goodbye is replaced.
CREATE FUNCTION vessel_api.vessel_beat(p_boot uuid) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	o lych.vessel_owner;
	v_now timestamptz;
BEGIN
	INSERT INTO lych.vessel_owner (boot, epoch, since, beat_at)
	VALUES (p_boot, 1, clock_timestamp(), clock_timestamp()) ON CONFLICT (one) DO NOTHING;
	IF FOUND THEN
		PERFORM lych.audit('vessel.owner', NULL, 1, jsonb_build_object('boot', p_boot));
		RETURN 'ok';
	END IF;
	SELECT * INTO o FROM lych.vessel_owner x FOR UPDATE;
	v_now := clock_timestamp();
	IF o.boot = p_boot AND o.beat_at > '-infinity' THEN
		UPDATE lych.vessel_owner x SET beat_at = v_now;
		RETURN 'ok';
	END IF;
	IF o.boot <> p_boot AND o.beat_at > v_now - interval '15 s' THEN
		RETURN 'taken';
	END IF;
	UPDATE lych.vessel_owner x
	SET boot = p_boot, epoch = x.epoch + 1, since = v_now, beat_at = v_now;
	PERFORM lych.audit('vessel.owner', NULL, o.epoch + 1, jsonb_build_object('boot', p_boot));
	RETURN 'ok';
END $$;

CREATE FUNCTION vessel_api.vessel_bye(p_boot uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE lych.vessel_owner x SET beat_at = '-infinity' WHERE x.boot = p_boot
$$;

-- End leases that ran out. Only the vessel that owns the database reaps, and not before it and
-- the server have been up for p_grace_s: after an outage nobody could renew, and the holders
-- get one TTL to do so. Expiry is checked again in the DELETE, under the job's lock: the
-- candidates were read earlier.
CREATE FUNCTION vessel_api.reap(p_boot uuid, p_limit int, p_grace_s int)
RETURNS TABLE (job_id bigint, epoch bigint, owner text, new_state text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
	v_grace interval := make_interval(secs => greatest(p_grace_s, 0));
	r record;
	d record;
	j lych.job;
	v_state lych.jstate;
BEGIN
	IF clock_timestamp() < pg_postmaster_start_time() + v_grace OR NOT EXISTS (
		SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot
			AND o.since + v_grace <= clock_timestamp()) THEN
		RETURN;
	END IF;
	FOR r IN
		SELECT j.id FROM lych.lease l JOIN lych.job j ON j.id = l.job_id
		WHERE l.expires_at < clock_timestamp()
		ORDER BY j.id LIMIT least(greatest(p_limit, 1), 500) FOR UPDATE OF j SKIP LOCKED
	LOOP
		DELETE FROM lych.lease l WHERE l.job_id = r.id AND l.expires_at < clock_timestamp()
		RETURNING l.job_id, l.epoch, l.owner INTO d;
		CONTINUE WHEN NOT FOUND;
		UPDATE lych.attempt a
		SET ended_at = clock_timestamp(), outcome = 'lost', class = 'lease_expired'
		WHERE a.job_id = d.job_id AND a.epoch = d.epoch;
		SELECT * INTO j FROM lych.job x WHERE x.id = d.job_id;
		-- With a cancel request too: nobody has proved the tree gone, so it is lost.
		v_state := CASE WHEN j.cancel_req OR NOT j.retry_on_lost THEN 'dead'
				WHEN j.lost + 1 >= j.max_lost THEN 'quarantined'
				WHEN j.attempts >= j.max_attempts THEN 'dead'
				ELSE 'queued' END;
		UPDATE lych.job x SET state = v_state, lost = x.lost + 1, epoch = x.epoch + 1,
			class = CASE v_state WHEN 'dead' THEN 'lease_expired' ELSE '' END,
			finished_at = CASE v_state WHEN 'dead' THEN clock_timestamp() END,
			run_at = clock_timestamp() + make_interval(secs => 2 ^ least(x.lost, 8))
		WHERE x.id = d.job_id;
		PERFORM lych.audit('attempt.lost', d.job_id, d.epoch, jsonb_build_object(
			'owner', d.owner, 'state', v_state));
		PERFORM lych.hint();
		job_id := d.job_id;
		epoch := d.epoch;
		owner := d.owner;
		new_state := v_state;
		RETURN NEXT;
	END LOOP;
END $$;

-- Revoke and quarantine in one transaction; a second call changes nothing.
CREATE FUNCTION vessel_api.contain(p_job bigint, p_reason text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	j lych.job;
BEGIN
	IF coalesce(p_reason, '') = '' THEN
		RAISE EXCEPTION 'contain: a reason is needed' USING ERRCODE = '22023';
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job FOR UPDATE;
	IF NOT FOUND THEN
		RETURN 'unknown';
	END IF;
	IF j.taint IS NOT NULL THEN
		RETURN 'already';
	END IF;
	DELETE FROM lych.lease l WHERE l.job_id = p_job;
	UPDATE lych.attempt a SET ended_at = clock_timestamp(), outcome = 'revoked'
	WHERE a.job_id = p_job AND a.epoch = j.epoch AND a.outcome IS NULL;
	IF FOUND THEN
		PERFORM lych.audit('attempt.revoked', p_job, j.epoch);
	END IF;
	UPDATE lych.job x SET taint = left(p_reason, 250), epoch = x.epoch + 1,
		state = CASE WHEN x.finished_at IS NULL THEN 'quarantined' ELSE x.state END
	WHERE x.id = p_job;
	PERFORM lych.audit('job.contained', p_job, j.epoch, jsonb_build_object('reason', p_reason));
	PERFORM lych.hint();
	RETURN 'contained';
END $$;

-- Forget finished jobs. Quarantined and tainted ones are evidence and stay.
CREATE FUNCTION vessel_api.retain(p_keep_s int, p_limit int) RETURNS SETOF bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	DELETE FROM lych.job x WHERE x.id IN (
		SELECT j.id FROM lych.job j
		WHERE j.finished_at < clock_timestamp() - make_interval(secs => greatest(p_keep_s, 0))
			AND j.taint IS NULL
		ORDER BY j.finished_at LIMIT least(greatest(p_limit, 1), 500)
		FOR UPDATE SKIP LOCKED)
	RETURNING x.id
$$;

-- What must hold at every commit; each count must be 0.
CREATE FUNCTION lych.invariants() RETURNS TABLE (name text, bad bigint)
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

CREATE FUNCTION vessel_api.health() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	WITH inv AS MATERIALIZED (SELECT i.name, i.bad FROM lych.invariants() i)
	SELECT jsonb_build_object(
		'invariants', (SELECT jsonb_object_agg(i.name, i.bad) FROM inv i),
		'violations', (SELECT sum(i.bad) FROM inv i),
		'jobs', (SELECT coalesce(jsonb_object_agg(s.user_state, s.n), '{}') FROM (
			SELECT v.user_state, count(*) AS n FROM lych.job_view v GROUP BY 1) AS s),
		'leases', (SELECT count(*) FROM lych.lease),
		'leases_expired', (SELECT count(*) FROM lych.lease l
				   WHERE l.expires_at < clock_timestamp()),
		'oldest_waiting_s', (SELECT coalesce(extract(epoch FROM
			clock_timestamp() - min(j.created_at)), 0)::bigint FROM lych.job j
			WHERE j.state IN ('held', 'queued')),
		'attempts_lost', (SELECT count(*) FROM lych.attempt a WHERE a.outcome = 'lost'),
		'audit_outbox', (SELECT count(*) FROM lych.audit_outbox),
		'tombs', (SELECT coalesce(jsonb_agg(DISTINCT w.role), '[]') FROM lych.worker_queue w),
		'vessel_epoch', (SELECT o.epoch FROM lych.vessel_owner o),
		'schema', (SELECT max(s.version) FROM lych.schema_version s),
		'server', current_setting('server_version')
	)::text
$$;

-- The watchdog: a worker's session that sits in a transaction pins the oldest snapshot or hides
-- jobs behind an uncommitted claim. Runs with the rights of lych_watchdog (pg_signal_backend),
-- and touches sessions of the worker roles only.
CREATE FUNCTION watch_api.sweep() RETURNS TABLE (pid int, role text, why text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	-- MATERIALIZED is the wall here: without it the planner may terminate before it filters.
	WITH seen AS MATERIALIZED (
		SELECT a.pid, a.usename::text AS role,
			CASE WHEN a.state LIKE 'idle in transaction%'
				  AND a.state_change < clock_timestamp() - interval '2 s'
			     THEN 'idle in transaction'
			     WHEN a.xact_start < clock_timestamp() - interval '5 s'
			     THEN 'long transaction' END AS why
		FROM pg_stat_activity a
		JOIN pg_auth_members m ON m.member = a.usesysid
		WHERE m.roleid = (SELECT r.oid FROM pg_roles r WHERE r.rolname = 'lych_tomb')
			AND a.backend_type = 'client backend' AND a.state <> 'idle'),
	due AS MATERIALIZED (
		SELECT s.pid, s.role, s.why FROM seen s WHERE s.why IS NOT NULL)
	SELECT d.pid, d.role, d.why FROM due d WHERE pg_terminate_backend(d.pid)
$$;

SET LOCAL ROLE NONE;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vessel_api, watch_api, lych FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
	vessel_api.enqueue(text, text, bytea, int, boolean, int, int),
	vessel_api.show(bigint),
	vessel_api.list(text, bigint, int),
	vessel_api.changes(bigint, int),
	vessel_api.cancel(bigint),
	vessel_api.lease_check(bigint, bigint, uuid, boolean),
	vessel_api.set_phase(bigint, bigint, uuid, text),
	vessel_api.has_blob(bigint, text),
	vessel_api.live_blobs(),
	vessel_api.vessel_beat(uuid),
	vessel_api.vessel_bye(uuid),
	vessel_api.reap(uuid, int, int),
	vessel_api.contain(bigint, text),
	vessel_api.retain(int, int),
	vessel_api.health() TO lych_vessel;
GRANT EXECUTE ON FUNCTION watch_api.sweep() TO lych_watchdog;
