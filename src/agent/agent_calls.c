/* SPDX-License-Identifier: BSD-3-Clause */
/* Who does what the parts ask of those above them. */
#include "agent/agent_private.h"

const struct agent_calls agent_calls = {
    .fence = agent_end_by_fence,
    .wait_for_head = agent_heads_wait,
    .written = agent_record_write,
    .ckpt_packet = agent_ckpt_take,
    .ckpt_refuse = agent_ckpt_refuse_all,
    .move_hello = agent_move_take_hello,
    .move_ended = agent_move_take_end,
    .seal_ended = agent_seal_take_end,
    .stand_look = agent_stand_count,
    .begin = agent_begin_first,
    .begin_again = agent_begin_job,
    .clear_again = agent_clear_more,
    .leave = agent_leave_job,
    .leave_when_clear = agent_leave_if_clear,
};
