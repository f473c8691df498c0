/* SPDX-License-Identifier: BSD-3-Clause */
/* Put before every file of ours by the compiler (-include): names that libhale.so shows to
 * libmpi.so.40 begin with hale_ for the linker.
 *
 * The dynamic linker knows no libraries, only names: were ours called `heap_alloc` there, a user's
 * program or library with a `heap_alloc` would get ours, or we theirs. All other names are hidden
 * (src/hale.map); scripts/exports.py checks both.
 */
#ifndef HALE_BASE_NAMES_H
#define HALE_BASE_NAMES_H

/* base/ */
#define heap_alloc	    hale_heap_alloc
#define heap_calloc	    hale_heap_calloc
#define heap_free	    hale_heap_free
#define heap_realloc	    hale_heap_realloc
#define heap_stats	    hale_heap_stats
#define log_at		    hale_log_at
#define log_init_from_env   hale_log_init_from_env
#define log_level	    hale_log_level
#define log_set_level	    hale_log_set_level
#define log_set_prefix	    hale_log_set_prefix
#define address_whole	    hale_address_whole
#define copy_streams	    hale_copy_streams
#define error_set	    hale_error_set
#define error_sys	    hale_error_sys
#define fmt_print	    hale_fmt_print
#define fmt_vprint	    hale_fmt_vprint
#define reach_choose	    hale_reach_choose
#define reach_find	    hale_reach_find
#define reach_listen	    hale_reach_listen
#define reach_socket	    hale_reach_socket
#define reach_wish_own	    hale_reach_wish_own
#define units_parse_bytes   hale_units_parse_bytes
#define units_parse_int	    hale_units_parse_int
#define units_parse_seconds hale_units_parse_seconds
#define units_show_bytes    hale_units_show_bytes
#define units_show_seconds  hale_units_show_seconds
#define yield_among	    hale_yield_among
#define yield_core	    hale_yield_core
#define yield_fairly	    hale_yield_fairly
#define yield_is_dear	    hale_yield_is_dear
#define yield_or_nap	    hale_yield_or_nap

/* image/ */
#define image_exclude_add    hale_image_exclude_add
#define image_exclude_remove hale_image_exclude_remove
#define image_fd_disown	     hale_image_fd_disown
#define image_fd_own	     hale_image_fd_own
#define image_pass	     hale_image_pass
#define image_passed	     hale_image_passed
#define image_park_signal    hale_image_park_signal

/* journal/ */
#define journal_on	hale_journal_on
#define journal_opened	hale_journal_opened
#define journal_opening hale_journal_opening
#define journal_wanted	hale_journal_wanted
#define journal_writing hale_journal_writing

/* node/segment.h */
#define mailbox_ring_from   hale_mailbox_ring_from
#define mailbox_ring_slow   hale_mailbox_ring_slow
#define segment_bytes	    hale_segment_bytes
#define segment_layout	    hale_segment_layout
#define segment_address_get hale_segment_address_get
#define segment_address_put hale_segment_address_put
#define segment_secret	    hale_segment_secret

/* ckpt/ */
#define guard_inside	     hale_guard_inside
#define guard_attention	     hale_guard_attention
#define guard_multiple	     hale_guard_multiple
#define guard_attend	     hale_guard_attend
#define guard_lock_slow	     hale_guard_lock_slow
#define guard_unlock_slow    hale_guard_unlock_slow
#define ckpt_participate     hale_ckpt_participate
#define clocks_ahead	     hale_clocks_ahead
#define ckpt_round	     hale_ckpt_round
#define ckpt_is_alone	     hale_ckpt_is_alone
#define call_gate	     hale_call_gate
#define inject_at_call	     hale_inject_at_call
#define link_abort	     hale_link_abort
#define link_become	     hale_link_become
#define link_address_publish hale_link_address_publish
#define link_net_tell	     hale_link_net_tell
#define link_sdc_tell	     hale_link_sdc_tell
#define link_shadow_tell     hale_link_shadow_tell
#define link_copy_tell	     hale_link_copy_tell
#define link_bell_close	     hale_link_bell_close
#define link_bell_open	     hale_link_bell_open
#define link_mpi_finalized   hale_link_mpi_finalized
#define link_mpi_initialized hale_link_mpi_initialized
#define link_open	     hale_link_open
#define link_self	     hale_link_self
#define link_sleep	     hale_link_sleep
#define link_wait_step	     hale_link_wait_step
#define tick_start	     hale_tick_start
#define tick_stop	     hale_tick_stop

#endif
