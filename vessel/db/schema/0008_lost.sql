-- SPDX-License-Identifier: Apache-2.0
-- What becomes of a job whose worker died: said by the next worker in its place, which has a proof
-- that nothing of it lives, or by the reaper, when the lease ran out and nobody could be asked.
SET LOCAL ROLE lych_owner;

-- The up clock: seconds in which server and vessel were both up and a reaper looked, over all of
-- their restarts. It is read and moved on while there is a lease that ran out, not else.
ALTER TABLE lych.vessel_owner
	ADD COLUMN up_s double precision NOT NULL DEFAULT 0,
	ADD COLUMN up_at timestamptz NOT NULL DEFAULT '-infinity',
	ADD COLUMN up_server timestamptz NOT NULL DEFAULT '-infinity',
	ADD COLUMN up_boot uuid;
-- The up clock when the reaper first saw that the lease had run out; NULL: it has not.
ALTER TABLE lych.lease ADD COLUMN overdue_up double precision;

-- Move on a job whose attempt has just ended as lost; its row is locked by the caller. p_dead: that
-- nothing of it runs any more is proved. Then a cancelled job is cancelled, and the first loss
-- costs no pause and not its place in the queue. Each of those that were lost together is a suspect,
-- for what it did to its worker: each counts the loss, and from the second on their pauses differ.
CREATE FUNCTION lych.lose(p_job bigint, p_class text, p_dead boolean) RETURNS lych.jstate
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	j lych.job;
	v_state lych.jstate;
BEGIN
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	v_state := CASE WHEN j.cancel_req AND p_dead THEN 'cancelled'
			WHEN j.cancel_req OR NOT j.retry_on_lost THEN 'dead'
			WHEN j.lost + 1 >= j.max_lost THEN 'quarantined'
			WHEN j.attempts >= j.max_attempts THEN 'dead'
			ELSE 'queued' END;
	UPDATE lych.job x SET state = v_state, lost = x.lost + 1, epoch = x.epoch + 1,
		class = CASE v_state WHEN 'dead' THEN p_class ELSE '' END,
		finished_at = CASE WHEN v_state IN ('dead', 'cancelled') THEN clock_timestamp() END,
		run_at = CASE WHEN p_dead AND x.lost = 0 THEN x.run_at
			 ELSE clock_timestamp() + make_interval(
				secs => 2 ^ (least(x.lost, 8) - p_dead::int) * (0.5 + random())) END
	WHERE x.id = p_job;
	PERFORM lych.hint();
	RETURN v_state;
END $$;

-- A graceful stop gives the attempt back, five times a job; after that it counts as one. A job
-- that may run once only is not given back: whether it had begun cannot be known here.
-- p_died: the worker that held it died with it, and its successor speaks. That is a lost attempt.
DROP FUNCTION tomb_api.release(bigint, bigint, uuid);
CREATE FUNCTION tomb_api.release(p_job bigint, p_epoch bigint, p_token uuid,
				 p_died boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
DECLARE
	s text;
	j lych.job;
	v_free boolean;
BEGIN
	IF p_died IS NULL THEN
		RAISE EXCEPTION 'release: a parameter is null' USING ERRCODE = '22004';
	END IF;
	s := lych.end_attempt(p_job, p_epoch, p_token,
			      CASE WHEN p_died THEN 'lost' ELSE 'released' END,
			      CASE WHEN p_died THEN 'transport_loss' ELSE '' END, NULL);
	IF s <> 'ok' THEN
		RETURN s;
	END IF;
	IF p_died THEN
		PERFORM lych.lose(p_job, 'transport_loss', true);
		RETURN s;
	END IF;
	SELECT * INTO j FROM lych.job x WHERE x.id = p_job;
	v_free := j.retry_on_lost AND j.releases < 5;
	IF j.cancel_req THEN
		UPDATE lych.job x SET state = 'cancelled', finished_at = clock_timestamp()
		WHERE x.id = p_job;
	ELSIF v_free THEN
		UPDATE lych.job x SET state = 'queued', releases = x.releases + 1,
			attempts = greatest(x.attempts - 1, 0), run_at = clock_timestamp()
		WHERE x.id = p_job;
	ELSIF j.retry_on_lost AND j.attempts < j.max_attempts THEN
		UPDATE lych.job x SET state = 'queued', releases = x.releases + 1,
			run_at = clock_timestamp() + make_interval(
				secs => least(3600, 2 ^ least(x.attempts, 12)))
		WHERE x.id = p_job;
	ELSE
		UPDATE lych.job x SET state = 'dead', class = 'transport_loss',
			releases = x.releases + 1, finished_at = clock_timestamp()
		WHERE x.id = p_job;
	END IF;
	RETURN s;
END $$;

-- The batched heartbeat. An expired lease that nobody has reaped is revived; one that ran
-- longer than its job may is not, and the reaper ends it.
CREATE OR REPLACE FUNCTION tomb_api.extend(p_boot uuid, p_jobs bigint[], p_epochs bigint[],
					   p_tokens uuid[], p_ttl_s int)
RETURNS TABLE (job_id bigint, status text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
	v_ttl interval := make_interval(secs => least(greatest(p_ttl_s, 5), 300));
	v_now timestamptz;
BEGIN
	IF cardinality(p_jobs) > 64 OR cardinality(p_epochs) IS DISTINCT FROM cardinality(p_jobs)
	   OR cardinality(p_tokens) IS DISTINCT FROM cardinality(p_jobs) OR p_ttl_s IS NULL THEN
		RAISE EXCEPTION 'extend: arrays of one length, at most 64' USING ERRCODE = '22023';
	END IF;
	v_now := clock_timestamp();
	RETURN QUERY
	WITH q AS MATERIALIZED (
		SELECT * FROM unnest(p_jobs, p_epochs, p_tokens) AS u (jid, ep, tok)),
	locked AS MATERIALIZED (
		SELECT l.job_id FROM lych.lease l
		JOIN q ON l.job_id = q.jid AND l.epoch = q.ep AND l.token = q.tok
		WHERE l.owner = session_user AND l.boot_id = p_boot
		ORDER BY l.job_id FOR UPDATE OF l),
	kept AS (
		UPDATE lych.lease l
		SET expires_at = least(v_now + v_ttl, l.run_until), overdue_up = NULL
		FROM locked WHERE l.job_id = locked.job_id AND l.run_until > v_now
		RETURNING l.job_id)
	SELECT q.jid, CASE WHEN kept.job_id IS NULL THEN 'lost'
			   WHEN j.cancel_req THEN 'cancel'
			   ELSE 'ok' END
	FROM q LEFT JOIN kept ON kept.job_id = q.jid LEFT JOIN lych.job j ON j.id = kept.job_id;
END $$;

-- End leases that ran out. Only the vessel that owns the database reaps. After an outage nobody
-- could renew, so the holders get p_grace_s in which they can: of one piece, since server and
-- vessel are up, or, for a lease that is seen to be overdue, in all its pieces together on the up
-- clock. So restarts, however many, make a holder's time no shorter and a dead one's not endless:
-- a lease is ended at the latest when p_grace_s of uptime have passed since it ran out.
-- A piece counts from its second look on, and a look is worth no more than 3 s.
-- Expiry is checked again in the DELETE, under the job's lock: the candidates were read earlier.
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
	IF NOT FOUND OR NOT EXISTS (SELECT 1 FROM lych.lease l WHERE l.expires_at < v_now) THEN
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
		ORDER BY j.id LIMIT least(greatest(p_limit, 1), 500) FOR UPDATE OF j SKIP LOCKED
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

SET LOCAL ROLE NONE;
REVOKE ALL ON FUNCTION tomb_api.release(bigint, bigint, uuid, boolean),
	lych.lose(bigint, text, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tomb_api.release(bigint, bigint, uuid, boolean) TO lych_tomb;
