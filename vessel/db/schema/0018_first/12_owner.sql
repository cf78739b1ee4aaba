-- SPDX-License-Identifier: Apache-2.0
-- One vessel owns the database, and takes back what nobody holds any more.
SET LOCAL ROLE lych_owner;

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

-- End leases that ran out. Only the vessel that owns the database reaps. After an outage nobody
-- could renew, so the holders get p_grace_s in which they can: of one piece, since server and
-- vessel are up, or, for a lease that is seen to be overdue, in all its pieces together on the up
-- clock. So restarts, however many, make a holder's time no shorter and a dead one's not endless:
-- a lease is ended at the latest when p_grace_s of uptime have passed since it ran out.
-- A piece counts from its second look on, and a look is worth no more than 3 s.
-- Expiry is checked again in the DELETE, under the job's lock: the candidates were read earlier.
-- A lease whose row is held is left for the next second. Wishes are granted here.
CREATE FUNCTION vessel_api.reap(p_boot uuid, p_limit int, p_grace_s int)
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

SET LOCAL ROLE NONE;
