-- SPDX-License-Identifier: Apache-2.0
-- The vessel's API. lych_vessel has EXECUTE here and no right on any table. Jobs: submitted, shown.
SET LOCAL ROLE lych_owner;

-- status: ok | conflict (request_id was used with other content) | full. Of two that submit the same
-- job one may wait for it and the other not: then it goes on without either.
CREATE FUNCTION vessel_api.enqueue(p_queue text, p_request text, p_spec bytea, p_priority int,
				   p_retry_on_lost boolean, p_max_runtime_s int, p_max_waiting int,
				   p_attended boolean DEFAULT false)
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
			IF v_old.spec_sha <> v_sha THEN
				RETURN QUERY SELECT NULL::bigint, true, 'conflict';
				RETURN;
			END IF;
			IF NOT p_attended THEN
				UPDATE lych.job j SET attended = false WHERE j.id = v_old.id AND j.attended;
			END IF;
			RETURN QUERY SELECT v_old.id, true, 'ok';
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
					   retry_on_lost, max_runtime_s, attended)
		VALUES (p_queue, p_request, v_sha, p_priority, v_tries, v_tries, p_retry_on_lost,
			p_max_runtime_s, p_attended)
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

-- Answers as lease_check, not strict. A tomb that holds its job's row while it says a phase is told to
-- say it again.
CREATE FUNCTION vessel_api.set_phase(p_job bigint, p_epoch bigint, p_token uuid, p_phase text)
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

CREATE FUNCTION vessel_api.has_blob(p_job bigint, p_sha text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT EXISTS (SELECT 1 FROM lych.job_blob b
		       WHERE b.job_id = p_job AND b.sha = p_sha AND b.kind = 'input')
$$;

-- Of those that begin with p_prefix (hex digits): the store is gone through in pieces.
CREATE FUNCTION vessel_api.live_blobs(p_prefix text) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT DISTINCT b.sha FROM lych.job_blob b
	WHERE b.sha COLLATE "C" >= p_prefix AND b.sha COLLATE "C" < p_prefix || 'g'
$$;

SET LOCAL ROLE NONE;
