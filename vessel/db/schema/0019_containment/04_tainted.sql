-- SPDX-License-Identifier: Apache-2.0
-- What was contained does not come back by being submitted: not itself, and not what it made.
SET LOCAL ROLE lych_owner;

-- Is one of these what a contained job made? What it was given and only handed on is not.
CREATE FUNCTION lych.is_tainted_input(p_shas text[]) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
	SELECT EXISTS (
		SELECT 1 FROM unnest(p_shas) AS u (sha)
		JOIN lych.job_blob b ON b.sha COLLATE "C" = u.sha AND b.kind = 'artifact'
		JOIN lych.job j ON j.id = b.job_id
		WHERE j.taint IS NOT NULL AND NOT EXISTS (
			SELECT 1 FROM lych.job_blob i
			WHERE i.job_id = b.job_id AND i.sha = b.sha AND i.kind = 'input'))
$$;

-- status: ok | conflict (request_id was used with other content) | full | tainted. Of two that submit the
-- same job one may wait for it and the other not: then it goes on without either.
CREATE OR REPLACE FUNCTION vessel_api.enqueue(p_queue text, p_request text, p_spec bytea, p_priority int,
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
	v_inputs text[];
	v_old record;
	v_id bigint;
	v_n bigint;
BEGIN
	SELECT coalesce(array_agg(s.sha), '{}') INTO v_inputs FROM (
		SELECT v_spec ->> 'input' AS sha
		UNION SELECT v_spec ->> 'stdin_blob'
		UNION SELECT f ->> 'blob' FROM jsonb_path_query(v_spec, 'lax $.files[*]') AS f) AS s
	WHERE s.sha IS NOT NULL AND s.sha <> '';
	-- A job that finishes and is forgotten between insert and select sends us round again.
	FOR i IN 1..10 LOOP
		SELECT j.id, j.spec_sha, j.taint INTO v_old FROM lych.job j
		WHERE j.queue = p_queue AND j.request_id = p_request;
		IF FOUND THEN
			IF v_old.spec_sha <> v_sha THEN
				RETURN QUERY SELECT NULL::bigint, true, 'conflict';
				RETURN;
			END IF;
			IF v_old.taint IS NOT NULL THEN
				RETURN QUERY SELECT NULL::bigint, true, 'tainted';
				RETURN;
			END IF;
			IF NOT p_attended THEN
				UPDATE lych.job j SET attended = false WHERE j.id = v_old.id AND j.attended;
			END IF;
			RETURN QUERY SELECT v_old.id, true, 'ok';
			RETURN;
		END IF;
		IF v_inputs <> '{}' AND lych.is_tainted_input(v_inputs) THEN
			RETURN QUERY SELECT NULL::bigint, false, 'tainted';
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
	INSERT INTO lych.job_blob (job_id, sha, kind) SELECT v_id, u.sha, 'input' FROM unnest(v_inputs) AS u (sha);
	PERFORM lych.audit('job.enqueued', v_id, 0, jsonb_build_object(
		'request_id', p_request, 'spec_sha', encode(v_sha, 'hex')));
	PERFORM lych.hint();
	RETURN QUERY SELECT v_id, false, 'ok';
END $$;

REVOKE ALL ON FUNCTION lych.is_tainted_input(text[]) FROM PUBLIC;

SET LOCAL ROLE NONE;
