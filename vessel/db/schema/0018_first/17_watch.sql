-- SPDX-License-Identifier: Apache-2.0
-- The watchdog: a worker's session that sits in a transaction pins the oldest snapshot or hides
-- jobs behind an uncommitted claim. Runs with the rights of lych_watchdog (pg_signal_backend),
-- and touches sessions of the worker roles only.
SET LOCAL ROLE lych_owner;

-- A worker makes one call at a time, each a transaction of its own. So what it is ended for is no
-- part of its work: to sit in a transaction; to say anything else than a call for longer than half a
-- second (a hundred thousand NOTIFYs, say: everybody who tells of a change waits for their commit);
-- to be at a call for seconds, also by not taking what it asked for or listens to (then its session is
-- idle, and in a transaction all the same); and to be waited for by anybody else. Of those who wait
-- in a row for each other the one at its end is to blame, and whoever of the same login stands in
-- between.
CREATE FUNCTION watch_api.sweep() RETURNS TABLE (pid int, role text, why text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
	-- MATERIALIZED is the wall here: without it the planner may terminate before it filters.
	WITH RECURSIVE seen AS MATERIALIZED (
		SELECT a.pid, a.usesysid, a.usename::text AS role, a.state, a.state_change,
			a.xact_start,
			-- who waits for nothing has none
			coalesce(a.wait_event_type = 'Lock', false) AS waits,
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
