-- SPDX-License-Identifier: Apache-2.0
-- The vessel's side of a containment. Only the vessel that owns the database takes a step. A row that
-- somebody holds is passed over, and looked at again.
SET LOCAL ROLE lych_owner;

CREATE FUNCTION lych.ms_since(p_from timestamptz, p_to timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN floor(extract(epoch FROM p_to - p_from) * 1000)::bigint;

-- Those that are not done, with what the vessel has to do now: cut | seal | wait. What time decides, and what
-- the log has, is written down here.
CREATE FUNCTION vessel_api.containments(p_boot uuid)
RETURNS TABLE (job_id bigint, epoch bigint, step text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
	c lych.containment;
	s lych.audit_state;
BEGIN
	IF NOT EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot) THEN
		RETURN;
	END IF;
	FOR c IN SELECT * FROM lych.containment x WHERE x.done_at IS NULL
		ORDER BY x.job_id LIMIT 1024 FOR UPDATE SKIP LOCKED
	LOOP
		IF c.dead_at IS NULL AND c.dead_by <= clock_timestamp() THEN
			PERFORM lych.containment_dead(c.job_id, c.epoch, 'lease');
			SELECT * INTO c FROM lych.containment x WHERE x.job_id = c.job_id;
		END IF;
		SELECT * INTO s FROM lych.audit_state;
		IF c.sealed_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM lych.audit_outbox o
			WHERE o.job_id = c.job_id AND (o.xid, o.id) > (s.acked_xid, s.acked_id))
		THEN
			UPDATE lych.containment x SET done_at = clock_timestamp() WHERE x.job_id = c.job_id
			RETURNING * INTO c;
			PERFORM lych.audit('containment.done', c.job_id, c.epoch, jsonb_build_object(
				'broker_closed_ms', lych.ms_since(c.begun_at, c.cut_at),
				'tree_dead_ms', lych.ms_since(c.begun_at, c.dead_at),
				'sealed_ms', lych.ms_since(c.begun_at, c.sealed_at),
				'done_ms', lych.ms_since(c.begun_at, c.done_at)));
			PERFORM lych.hint();
			CONTINUE;
		END IF;
		job_id := c.job_id;
		epoch := c.epoch;
		step := CASE WHEN c.cut_at IS NULL THEN 'cut'
			     WHEN c.dead_at IS NULL OR c.sealed_at IS NOT NULL THEN 'wait'
			     ELSE 'seal' END;
		RETURN NEXT;
	END LOOP;
END $$;

-- The broker has nothing more of this job under way, and refuses it what it asks for. Whether it was this call that wrote it
-- down.
CREATE FUNCTION vessel_api.containment_cut(p_boot uuid, p_job bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET lock_timeout = '500ms' AS $$
DECLARE
	v_epoch bigint;
BEGIN
	UPDATE lych.containment c SET cut_at = clock_timestamp()
	WHERE c.job_id = p_job AND c.cut_at IS NULL
		AND EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot)
	RETURNING c.epoch INTO v_epoch;
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	PERFORM lych.audit('containment.broker_closed', p_job, v_epoch);
	PERFORM lych.hint();
	RETURN true;
END $$;

-- What there is of a job, by digests. p_output: of what it printed, which the vessel has.
CREATE FUNCTION lych.evidence(j lych.job, c lych.containment, p_output jsonb) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
	SELECT jsonb_build_object(
		'job', j.id, 'request_id', j.request_id, 'identity', j.identity, 'state', j.state,
		'class', j.class, 'reason', c.reason, 'contained_at', lych.rfc3339(c.begun_at),
		'tree_dead_by', c.dead_how, 'spec_sha256', encode(j.spec_sha, 'hex'),
		'attempts', (SELECT coalesce(jsonb_agg(jsonb_build_object(
				'epoch', a.epoch, 'tomb', a.owner, 'started_at', lych.rfc3339(a.started_at),
				'ended_at', lych.rfc3339(a.ended_at), 'outcome', a.outcome, 'class', a.class,
				'result_sha256', encode(a.result_sha, 'hex')) ORDER BY a.epoch), '[]')
			FROM lych.attempt a WHERE a.job_id = j.id),
		'result_sha256', (SELECT encode(sha256(r.body), 'hex') FROM lych.result r
			WHERE r.job_id = j.id),
		'inputs', (SELECT coalesce(jsonb_agg(b.sha ORDER BY b.sha), '[]') FROM lych.job_blob b
			WHERE b.job_id = j.id AND b.kind = 'input'),
		'artifacts', (SELECT coalesce(jsonb_agg(b.sha ORDER BY b.sha), '[]') FROM lych.job_blob b
			WHERE b.job_id = j.id AND b.kind = 'artifact'),
		'output', p_output,
		'broker', (SELECT jsonb_build_object('requests', b.spent[1], 'tokens', b.spent[2],
				'money', b.spent[3], 'bytes', b.spent[4], 'denials', b.spent[5],
				'packages', b.spent[6])
			FROM lych.budget b WHERE b.scope = 'job' AND b.key = j.id::text
				AND b.day = '1970-01-01'),
		'audit', (SELECT jsonb_build_object('stream', s.stream, 'acked', s.acked_pseq,
				'events', (SELECT count(*) FROM lych.audit_outbox o WHERE o.job_id = j.id),
				'events_sha256', (SELECT encode(sha256(convert_to(string_agg(
					o.event || ' ' || coalesce(o.epoch, 0) || ' ' || o.data::text,
					E'\n' ORDER BY o.xid, o.id), 'UTF8')), 'hex')
					FROM lych.audit_outbox o WHERE o.job_id = j.id))
			FROM lych.audit_state s))
$$;

-- The evidence is written down, and its digest goes into the log. As containment_cut.
CREATE FUNCTION vessel_api.containment_seal(p_boot uuid, p_job bigint, p_output jsonb) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET lock_timeout = '500ms' AS $$
DECLARE
	j lych.job;
	c lych.containment;
	v jsonb;
	v_text text;
BEGIN
	IF NOT EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot) THEN
		RETURN false;
	END IF;
	SELECT * INTO c FROM lych.containment x WHERE x.job_id = p_job FOR UPDATE;
	IF NOT FOUND OR c.cut_at IS NULL OR c.dead_at IS NULL OR c.sealed_at IS NOT NULL THEN
		RETURN false;
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	v := lych.evidence(j, c, p_output);
	v_text := v::text;
	UPDATE lych.containment x SET sealed_at = clock_timestamp(), evidence = v_text WHERE x.job_id = p_job;
	PERFORM lych.audit('containment.sealed', p_job, c.epoch, jsonb_build_object(
		'sha256', encode(sha256(convert_to(v_text, 'UTF8')), 'hex'),
		'spec_sha256', v -> 'spec_sha256', 'result_sha256', v -> 'result_sha256', 'output', p_output,
		'inputs', jsonb_array_length(v -> 'inputs'), 'artifacts', jsonb_array_length(v -> 'artifacts'),
		'events', v -> 'audit' -> 'events'));
	PERFORM lych.hint();
	RETURN true;
END $$;

-- As JSON; no row: it was not contained. Each step with the ms since the first, null before it was taken.
CREATE FUNCTION vessel_api.containment_show(p_job bigint) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
	SELECT jsonb_build_object('id', c.job_id, 'state', v.user_state, 'reason', c.reason,
		'contained_at', lych.rfc3339(c.begun_at), 'done', c.done_at IS NOT NULL,
		'tree_dead_by', c.dead_how,
		'steps', jsonb_build_array(
			jsonb_build_object('step', 'lease_revoked', 'ms', 0),
			jsonb_build_object('step', 'broker_closed', 'ms', lych.ms_since(c.begun_at, c.cut_at)),
			jsonb_build_object('step', 'tree_dead', 'ms', lych.ms_since(c.begun_at, c.dead_at)),
			jsonb_build_object('step', 'evidence_sealed',
				'ms', lych.ms_since(c.begun_at, c.sealed_at)),
			jsonb_build_object('step', 'logged', 'ms', lych.ms_since(c.begun_at, c.done_at))),
		'evidence_sha256', encode(sha256(convert_to(c.evidence, 'UTF8')), 'hex'),
		'evidence', c.evidence)::text
	FROM lych.containment c JOIN lych.job_view v ON v.id = c.job_id WHERE c.job_id = p_job
$$;

-- Who may call what is new here.
REVOKE ALL ON FUNCTION
	lych.containment_dead(bigint, bigint, text),
	lych.lost_word(bigint, bigint, uuid),
	lych.ms_since(timestamptz, timestamptz),
	lych.evidence(lych.job, lych.containment, jsonb),
	vessel_api.containments(uuid),
	vessel_api.containment_cut(uuid, bigint),
	vessel_api.containment_seal(uuid, bigint, jsonb),
	vessel_api.containment_show(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
	vessel_api.containments(uuid),
	vessel_api.containment_cut(uuid, bigint),
	vessel_api.containment_seal(uuid, bigint, jsonb),
	vessel_api.containment_show(bigint) TO lych_vessel;

SET LOCAL ROLE NONE;
