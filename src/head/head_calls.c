/* SPDX-License-Identifier: BSD-3-Clause */
/* Who does what the parts ask of those above them. */
#include "head/head.h"
#include "head/control/control_serve.h"
#include "head/head_private.h"
#include "head/replicas.h"
#include "head/migration/migrate.h"
#include "head/failover/succession.h"

static void checkpoint_over(struct head *h, const char *folder, const char *why)
{
	control_checkpoint_over(h, folder, why);
	requeue_checkpoint_over(h, folder, why);
}

static void replica_returned(struct head *h, uint32_t process, const struct report_clone *c)
{
	shadows_returned(h, process, c);
	audit_returned(h, process, c);
}

const struct head_calls head_calls = {
    .event = head_take_event,
    .step = head_take_step,
    .end = head_end_job,
    .roll_back = head_roll_job_back,
    .rank_ended = head_take_ended,
    .replica_returned = replica_returned,
    .all_gone_soon = head_look_for_end,
    .launch_all = head_launch_job,
    .adopt = head_adopt_nodes,
    .unsettled = head_is_unsettled,
    .settled = head_put_off_over,
    .settled_soon = head_put_off_over_soon,
    .partition_moved = head_partition_begin,
    .view_changed = replicas_publish,
    .view_restored = audit_begin,
    .survive_node = replicas_survive_node,
    .silent_error = sdc_found,
    .visits_go_on = audit_follow,
    .save = succession_save,
    .superseded = takeover_check,
    .checkpoint_over = checkpoint_over,
    .migrated = control_migrated,
    .request_checkpoint = checkpoint_request,
    .checkpoint_saved = leave_saved,
    .checkpoint_failed = leave_failed,
    .sweep = checkpoint_sweep,
    .drop_files = recover_files_drop,
    .checking = recover_checking,
    .visiting = audit_is_busy,
    .migrating = migrate_busy,
    .migration_stops = migrate_stops,
    .leave_node = leave_node,
    .node_state = leave_node_state,
    .review_leaving = leave_review,
    .fetch_answer = levels_fetch_answer,
    .fetch_stop = levels_fetch_stop,
};
