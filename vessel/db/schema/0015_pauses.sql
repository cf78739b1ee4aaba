-- SPDX-License-Identifier: Apache-2.0
-- A job that a person has tried again is tried as at first: its pauses too begin anew. They grew
-- with all of its attempts and losses, so that the first loss after a retry cost it some seconds,
-- and the next one half a minute.
SET LOCAL ROLE lych_owner;

-- Of a count those since the last retry, which gave the job p_tries more (schema/0012_again.sql).
CREATE FUNCTION lych.since_retry(p_count int, p_max int, p_retry_on_lost boolean) RETURNS int
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN p_count >= p_max - CASE WHEN p_retry_on_lost THEN 3 ELSE 1 END
	    THEN least(p_count, p_count - p_max + CASE WHEN p_retry_on_lost THEN 3 ELSE 1 END)
	    ELSE p_count END;

-- As it was (schema/0008_lost.sql), with the losses since the last retry.
CREATE OR REPLACE FUNCTION lych.lose(p_job bigint, p_class text, p_dead boolean) RETURNS lych.jstate
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	j lych.job;
	v_state lych.jstate;
	v_before int;
BEGIN
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	v_before := lych.since_retry(j.lost, j.max_lost, j.retry_on_lost);
	v_state := CASE WHEN j.cancel_req AND p_dead THEN 'cancelled'
			WHEN j.cancel_req OR NOT j.retry_on_lost THEN 'dead'
			WHEN j.lost + 1 >= j.max_lost THEN 'quarantined'
			WHEN j.attempts >= j.max_attempts THEN 'dead'
			ELSE 'queued' END;
	UPDATE lych.job x SET state = v_state, lost = x.lost + 1, epoch = x.epoch + 1,
		class = CASE v_state WHEN 'dead' THEN p_class ELSE '' END,
		finished_at = CASE WHEN v_state IN ('dead', 'cancelled') THEN clock_timestamp() END,
		run_at = CASE WHEN p_dead AND v_before = 0 THEN x.run_at
			 ELSE clock_timestamp() + make_interval(
				secs => 2 ^ (least(v_before, 8) - p_dead::int) * (0.5 + random())) END
	WHERE x.id = p_job;
	PERFORM lych.hint();
	RETURN v_state;
END $$;

-- As it was (schema/0003_tomb_api.sql), with the attempts since the last retry.
CREATE OR REPLACE FUNCTION tomb_api.fail(p_job bigint, p_epoch bigint, p_token uuid, p_retry boolean,
					 p_class text, p_result bytea)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	s text;
	j lych.job;
	v_class text := coalesce(p_class, '');
BEGIN
	IF v_class NOT IN ('', 'setup_refused', 'policy_deny', 'timeout_kill', 'oom_kill',
			   'output_limit', 'disk_limit', 'resource_kill', 'crash', 'gate_failed',
			   'transport_loss', 'budget_exhausted') THEN
		RAISE EXCEPTION 'fail: unknown class' USING ERRCODE = '22023';
	END IF;
	IF octet_length(p_result) > 1048576 THEN
		RETURN 'too_big';
	END IF;
	s := lych.end_attempt(p_job, p_epoch, p_token, 'failed', v_class, sha256(p_result));
	IF s <> 'ok' THEN
		RETURN s;
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	IF v_class = '' AND NOT j.cancel_req THEN
		RAISE EXCEPTION 'fail: a class is needed' USING ERRCODE = '22023';
	END IF;
	IF NOT j.cancel_req AND p_retry AND v_class = 'transport_loss' AND j.retry_on_lost
	   AND j.attempts < j.max_attempts THEN
		UPDATE lych.job x SET state = 'queued', run_at = clock_timestamp() + make_interval(
			secs => least(3600, 2 ^ least(lych.since_retry(x.attempts, x.max_attempts,
				x.retry_on_lost), 12)) * (0.5 + random() / 2))
		WHERE x.id = p_job;
		RETURN s;
	END IF;
	IF p_result IS NOT NULL THEN
		PERFORM lych.store_result(p_job, p_epoch, p_result);
	END IF;
	UPDATE lych.job x
	SET state = CASE WHEN x.cancel_req THEN 'cancelled' ELSE 'dead' END::lych.jstate,
		class = CASE WHEN x.cancel_req THEN '' ELSE v_class END,
		finished_at = clock_timestamp()
	WHERE x.id = p_job;
	RETURN s;
END $$;

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION lych.since_retry(int, int, boolean) FROM PUBLIC;
