-- SPDX-License-Identifier: Apache-2.0
-- The outbox is shipped to the scribe, and nothing is claimed while the log cannot be written.
--
-- Order: (xid, id). Ids alone are no order, since a transaction may commit after one that drew
-- its ids later. Rows of a transaction below the oldest one that still runs are settled: nothing
-- can come before them any more, so the n-th row of that order stays the n-th for ever, and its
-- number (pseq) needs no column. What is sent again after a crash carries the same number, and
-- the scribe drops it.
SET LOCAL ROLE lych_owner;

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
-- ok | behind | fenced | restarted (begin again: this numbering is no longer in use). A lost
-- acknowledgement is sent again, so its commit need not be waited for.
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

SET LOCAL ROLE NONE;
