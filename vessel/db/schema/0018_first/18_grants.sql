-- SPDX-License-Identifier: Apache-2.0
-- Who may call what, and nothing else: the last word of this migration. The functions of lych are
-- called by these.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA lych, tomb_api, vessel_api, watch_api FROM PUBLIC;

GRANT EXECUTE ON FUNCTION
	tomb_api.claim(text, int, int, uuid, uuid),
	tomb_api.extend(uuid, bigint[], bigint[], uuid[], int),
	tomb_api.ack(bigint, bigint, uuid, bytea),
	tomb_api.fail(bigint, bigint, uuid, boolean, text, bytea),
	tomb_api.release(bigint, bigint, uuid, boolean) TO lych_tomb;

GRANT EXECUTE ON FUNCTION
	vessel_api.schema_version(),
	vessel_api.vessel_beat(uuid),
	vessel_api.vessel_bye(uuid),
	vessel_api.tombs(),
	vessel_api.lease_owner(bigint, bigint, uuid),
	vessel_api.lease_check(bigint, bigint, uuid, boolean),
	vessel_api.enqueue(text, text, bytea, int, boolean, int, int, boolean),
	vessel_api.show(bigint),
	vessel_api.list(text, bigint, int),
	vessel_api.look(bigint[], bigint[]),
	vessel_api.set_phase(bigint, bigint, uuid, text),
	vessel_api.has_blob(bigint, text),
	vessel_api.live_blobs(text),
	vessel_api.cancel(bigint),
	vessel_api.abandon(bigint[], boolean, int),
	vessel_api.contain(bigint, text),
	vessel_api.retry(bigint, int),
	vessel_api.remove(bigint),
	vessel_api.retain(int, int),
	vessel_api.reap(uuid, int, int),
	vessel_api.health(),
	vessel_api.check_queue() TO lych_vessel;

GRANT EXECUTE ON FUNCTION
	vessel_api.audit_begin(uuid),
	vessel_api.audit_next(bigint, bigint, int),
	vessel_api.audit_mark(uuid, uuid, bigint, bigint, bigint, boolean) TO lych_vessel;

GRANT EXECUTE ON FUNCTION
	vessel_api.budget_reserve(uuid, bigint, bigint, uuid, bigint, uuid, text, bigint[], bigint[], bigint,
				  bigint, bigint[]),
	vessel_api.budget_extend(uuid, bigint, bigint, bigint, uuid, bigint, bigint[]),
	vessel_api.budget_settle(uuid, bigint, bigint, bigint, uuid, text, bigint[]),
	vessel_api.budget_recover(uuid),
	vessel_api.budget_denied(bigint, bigint),
	vessel_api.broker_lease(bigint, bigint, uuid, boolean),
	vessel_api.broker_ended(bigint[], bigint[], uuid[]),
	vessel_api.budget_show(bigint, text),
	vessel_api.budget_sweep(int) TO lych_vessel;

GRANT EXECUTE ON FUNCTION watch_api.sweep() TO lych_watchdog;
