-- SPDX-License-Identifier: Apache-2.0
-- The outbox is shipped to the scribe, and nothing is claimed while the log cannot be written.
--
-- Order: (xid, id). Ids alone are no order, since a transaction may commit after one that drew
-- its ids later. Rows of a transaction below the oldest one that still runs are settled: nothing
-- can come before them any more, so the n-th row of that order stays the n-th for ever, and its
-- number (pseq) needs no column. What is sent again after a crash carries the same number, and
-- the scribe drops it.
SET LOCAL ROLE lych_owner;

ALTER TABLE lych.audit_outbox ADD COLUMN xid bigint NOT NULL DEFAULT 0;
ALTER TABLE lych.audit_outbox ALTER COLUMN xid SET DEFAULT pg_current_xact_id()::text::bigint;
ALTER TABLE lych.audit_outbox DROP CONSTRAINT audit_outbox_pkey;
ALTER TABLE lych.audit_outbox ADD PRIMARY KEY (xid, id);
CREATE INDEX audit_job ON lych.audit_outbox (job_id);

-- One row. stream names this numbering to the scribe; the acked columns are the last event that
-- is known to be on the log's disk. ok_until: the vessel's word, renewed every few seconds, that
-- the log is written; claims stop by themselves when nobody gives it.
CREATE TABLE lych.audit_state (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	stream uuid NOT NULL DEFAULT gen_random_uuid(),
	acked_xid bigint NOT NULL DEFAULT 0,
	acked_id bigint NOT NULL DEFAULT 0,
	acked_pseq bigint NOT NULL DEFAULT 0,
	ok_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);
INSERT INTO lych.audit_state DEFAULT VALUES;

-- Where the numbering stands. Only the vessel that owns the database ships; it starts with
-- claims closed. No row: it does not own it.
CREATE FUNCTION vessel_api.audit_begin(p_boot uuid)
RETURNS TABLE (stream uuid, xid bigint, id bigint, pseq bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY UPDATE lych.audit_state s SET ok_until = '-infinity'
	WHERE EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot)
	RETURNING s.stream, s.acked_xid, s.acked_id, s.acked_pseq;
END $$;

-- Settled events after a place in the order.
CREATE FUNCTION vessel_api.audit_next(p_xid bigint, p_id bigint, p_limit int)
RETURNS TABLE (xid bigint, id bigint, at_ms bigint, event text, actor text, job_id bigint,
	       epoch bigint, data text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
#variable_conflict use_column
DECLARE
	v_settled bigint := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
	v_limit int := least(greatest(p_limit, 1), 512);
BEGIN
	RETURN QUERY
	SELECT o.xid, o.id, floor(extract(epoch FROM o.at) * 1000)::bigint, o.event,
		o.actor::text, o.job_id, o.epoch, o.data::text
	FROM lych.audit_outbox o
	WHERE (o.xid, o.id) > (p_xid, p_id) AND o.xid < v_settled
	ORDER BY o.xid, o.id LIMIT v_limit;
END $$;

-- The scribe has fsynced everything up to here, and (p_good) answers in time: claims are open for
-- 10 s. Not when an event has waited for longer than that, whatever the vessel says.
-- ok | behind | fenced | restarted (begin again: this numbering is no longer in use). A lost acknowledgement is sent again, so its commit need not be waited for.
CREATE FUNCTION vessel_api.audit_mark(p_boot uuid, p_stream uuid, p_xid bigint, p_id bigint, p_pseq bigint,
				      p_good boolean)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
	v_now timestamptz := clock_timestamp();
	v_oldest timestamptz;
	v_before timestamptz;
	v_ok boolean;
BEGIN
	IF NOT EXISTS (SELECT 1 FROM lych.vessel_owner o WHERE o.boot = p_boot) THEN
		RETURN 'fenced';
	END IF;
	IF NOT EXISTS (SELECT 1 FROM lych.audit_state s WHERE s.stream = p_stream) THEN
		RETURN 'restarted';
	END IF;
	PERFORM set_config('synchronous_commit', 'off', true);
	SELECT o.at INTO v_oldest FROM lych.audit_outbox o WHERE (o.xid, o.id) > (p_xid, p_id)
	ORDER BY o.xid, o.id LIMIT 1;
	v_ok := p_good AND coalesce(v_oldest > v_now - interval '10 s', true);
	UPDATE lych.audit_state s SET acked_xid = p_xid, acked_id = p_id, acked_pseq = p_pseq
	WHERE s.acked_pseq < p_pseq;
	SELECT s.ok_until INTO v_before FROM lych.audit_state s;
	UPDATE lych.audit_state s
	SET ok_until = CASE WHEN v_ok THEN v_now + interval '10 s' ELSE '-infinity' END;
	IF v_ok AND v_before <= v_now THEN
		PERFORM lych.hint(); -- tombs may claim again
	END IF;
	RETURN CASE WHEN v_ok OR NOT p_good THEN 'ok' ELSE 'behind' END;
END $$;

-- After the database was restored from a copy, or the log was moved away by its owner: a new
-- numbering, which the log has never seen. What was shipped stays shipped. For `lych-vessel
-- migrate --restart-audit`, nobody else may execute it.
CREATE FUNCTION lych.audit_restart() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s lych.audit_state;
BEGIN
	SELECT * INTO s FROM lych.audit_state FOR UPDATE;
	-- Transaction ids of another cluster mean nothing here: shipped rows go to the front.
	UPDATE lych.audit_outbox o
	SET xid = CASE WHEN (o.xid, o.id) <= (s.acked_xid, s.acked_id) THEN 0 ELSE 1 END;
	UPDATE lych.audit_state x
	SET stream = gen_random_uuid(), acked_xid = 0, acked_id = 9223372036854775807,
		acked_pseq = 0, ok_until = '-infinity';
	PERFORM lych.audit('audit.restarted', NULL, NULL, jsonb_build_object(
		'old_stream', s.stream, 'old_last', s.acked_pseq));
END $$;

-- Forget finished jobs with their events, once these are in the log, and old events of none.
-- Quarantined and tainted jobs are evidence and stay.
CREATE OR REPLACE FUNCTION vessel_api.retain(p_keep_s int, p_limit int) RETURNS SETOF bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	v_before timestamptz := clock_timestamp() - make_interval(secs => greatest(p_keep_s, 0));
	v_limit int := least(greatest(p_limit, 1), 500);
	v_ids bigint[];
	s lych.audit_state;
BEGIN
	SELECT * INTO s FROM lych.audit_state;
	WITH gone AS (
		DELETE FROM lych.job x WHERE x.id IN (
			SELECT j.id FROM lych.job j
			WHERE j.finished_at < v_before AND j.taint IS NULL
				AND NOT EXISTS (
					SELECT 1 FROM lych.audit_outbox o WHERE o.job_id = j.id
						AND (o.xid, o.id) > (s.acked_xid, s.acked_id))
			ORDER BY j.finished_at LIMIT v_limit
			FOR UPDATE SKIP LOCKED)
		RETURNING x.id)
	SELECT array_agg(g.id) INTO v_ids FROM gone g;
	DELETE FROM lych.audit_outbox o
	WHERE (o.job_id = ANY (v_ids) OR (o.job_id IS NULL AND o.at < v_before))
		AND (o.xid, o.id) <= (s.acked_xid, s.acked_id);
	RETURN QUERY SELECT unnest(v_ids);
END $$;

CREATE OR REPLACE FUNCTION tomb_api.claim(p_queue text, p_n int, p_ttl_s int, p_boot uuid, p_claim uuid)
RETURNS TABLE (job_id bigint, epoch bigint, token uuid, attempt int, spec bytea, max_runtime_s int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
	v_now timestamptz;
	v_ttl interval := make_interval(secs => least(greatest(p_ttl_s, 5), 300));
	v_grant lych.worker_queue;
	v_tokens real;
	v_have int;
	v_n int;
	v_got int := 0;
	v_token uuid;
	r record;
BEGIN
	IF p_boot IS NULL OR p_claim IS NULL OR p_n IS NULL OR p_ttl_s IS NULL THEN
		RAISE EXCEPTION 'claim: a parameter is null' USING ERRCODE = '22004';
	END IF;
	-- The row lock makes claims of one role take turns: a resend waits for the first copy.
	SELECT * INTO v_grant FROM lych.worker_queue w
	WHERE w.role = session_user AND w.queue = p_queue FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'queue not granted' USING ERRCODE = '42501';
	END IF;
	-- The reply of this claim was lost: the same live leases and nothing new.
	IF EXISTS (SELECT 1 FROM lych.attempt a WHERE a.claim_id = p_claim) THEN
		RETURN QUERY
		SELECT a.job_id, a.epoch, a.token, j.attempts, p.body, j.max_runtime_s
		FROM lych.attempt a
		JOIN lych.lease l ON l.job_id = a.job_id AND l.epoch = a.epoch
		JOIN lych.job j ON j.id = a.job_id
		JOIN lych.payload p ON p.job_id = a.job_id
		WHERE a.claim_id = p_claim AND a.owner = session_user AND a.boot_id = p_boot;
		RETURN;
	END IF;
	-- What cannot be logged is not begun. Leases that are held go on.
	IF NOT EXISTS (SELECT 1 FROM lych.audit_state s WHERE s.ok_until > clock_timestamp()) THEN
		RETURN;
	END IF;
	v_now := clock_timestamp();
	v_tokens := least(v_grant.claim_burst, v_grant.tokens + v_grant.claim_rate
		* greatest(extract(epoch FROM v_now - v_grant.tokens_at)::real, 0));
	SELECT count(*) INTO v_have FROM lych.lease l WHERE l.owner = session_user;
	v_n := least(greatest(p_n, 0), 32, v_grant.max_leases - v_have, floor(v_tokens)::int);
	IF v_n <= 0 THEN
		RETURN;
	END IF;
	FOR r IN
		WITH c AS MATERIALIZED (
			-- v_now is a variable because a volatile function is no index condition
			SELECT j.id FROM lych.job j
			WHERE j.state = 'queued' AND j.taint IS NULL AND j.queue = p_queue
				AND j.run_at <= v_now
			ORDER BY j.priority DESC, j.run_at, j.id
			LIMIT v_n FOR UPDATE SKIP LOCKED)
		UPDATE lych.job j
		SET state = 'running', epoch = j.epoch + 1, attempts = j.attempts + 1,
			started_at = clock_timestamp()
		FROM c WHERE j.id = c.id
		RETURNING j.id, j.epoch AS ep, j.attempts AS att, j.max_runtime_s AS run_s
	LOOP
		v_token := gen_random_uuid();
		INSERT INTO lych.attempt (job_id, epoch, owner, boot_id, claim_id, token, started_at)
		VALUES (r.id, r.ep, session_user, p_boot, p_claim, v_token, clock_timestamp());
		v_now := clock_timestamp();
		INSERT INTO lych.lease (job_id, epoch, owner, boot_id, token, run_until, expires_at)
		VALUES (r.id, r.ep, session_user, p_boot, v_token,
			v_now + make_interval(secs => r.run_s),
			least(v_now + v_ttl, v_now + make_interval(secs => r.run_s)));
		PERFORM lych.audit('job.claimed', r.id, r.ep,
				   jsonb_build_object('boot', p_boot, 'attempt', r.att));
		v_got := v_got + 1;
		job_id := r.id;
		epoch := r.ep;
		token := v_token;
		attempt := r.att;
		max_runtime_s := r.run_s;
		SELECT p.body INTO spec FROM lych.payload p WHERE p.job_id = r.id;
		RETURN NEXT;
	END LOOP;
	IF v_got > 0 THEN
		UPDATE lych.worker_queue w SET tokens = v_tokens - v_got, tokens_at = v_now
		WHERE w.role = session_user AND w.queue = p_queue;
	END IF;
END $$;

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION lych.audit_restart(), vessel_api.audit_begin(uuid),
	vessel_api.audit_next(bigint, bigint, int),
	vessel_api.audit_mark(uuid, uuid, bigint, bigint, bigint, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vessel_api.audit_begin(uuid),
	vessel_api.audit_next(bigint, bigint, int),
	vessel_api.audit_mark(uuid, uuid, bigint, bigint, bigint, boolean) TO lych_vessel;
