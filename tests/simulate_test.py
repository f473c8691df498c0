#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The real head, agents, supervisors and output daemons under a simulated kernel: schedules of
faults, each drawn from one seed (docs/simulation.md)."""

from lib import *

SIMULATE = os.path.join(BUILD, "tests", "simulate", "hale-simulate")


def simulate(s, *args):
    if not os.path.exists(SIMULATE):
        skip("not built with a sanitizer")
    r = s.run(SIMULATE, *args)
    expect(r.status == 0, "\n".join(r.out.splitlines()[-60:]), r.err)
    return r.out.splitlines()[-1]


@test
def a_node_that_gets_its_lease_back_starts_the_ranks_it_refused(s):
    """It had no lease when it was told to: the job ended with status 0 without two of its ranks,
    or never."""
    return simulate(s, "--runs", 300, "--kinds", "stop-head,stop-supervisor,kill-supervisor,cut-to")


@test
def a_schedule_repeats_to_the_byte(s):
    stories = []
    for _ in range(2):
        r = s.run(SIMULATE, "--seed", 4711, "--verbose")
        expect(r.status == 0, r)
        stories.append(r.out)
    expect(stories[0] == stories[1], "two runs of one seed differ")
    expect(stories[0].count("\n") > 50, stories[0])


@test
def a_head_that_comes_when_all_nodes_are_lost_ends(s):
    """Nobody was left to answer it, and nobody else said so: it waited for ever."""
    return simulate(s, "--runs", 200, "--kinds", "follow,stop-head,lose-host,kill-both")


@test
def a_head_that_comes_when_the_job_has_ended_ends_as_it_has(s):
    """The agents leave before the head, which was killed then: status 70, "nothing is left of the job"."""
    return simulate(s, "--runs", 200, "--kinds", "kill-head,kill-rank")


@test
def a_head_that_finds_no_record_of_the_ranks_ends_them(s):
    """The disk was full when they were started: it waited for ever for their end."""
    return simulate(s, "--runs", 300, "--kinds", "fill-disk,kill-head")


@test
def an_agent_killed_while_it_starts_a_rank_costs_nothing(s):
    """The rank met the next agent before that one knew of it, and was refused."""
    return simulate(s, "--seed", 4945, "--kinds", "kill-agent")


@test
def agents_killed_one_after_the_other_do_not_cost_the_lease(s):
    """The third one came a second later, when the lease had run out."""
    for seed in 3390, 7083:
        simulate(s, "--seed", seed, "--kinds", "kill-agent")
    return simulate(s, "--seed", 7693, "--kinds", "kill-agent")


@test
def a_rank_that_ends_while_it_is_looked_at_is_not_taken_for_another_program(s):
    """Its node's supervisor was killed: the checkpoint was refused, as hale's library was not in the program."""
    return simulate(s, "--seed", 31003974, "--kinds", "kill-both,kill-head")


def piece(number, schedules):
    def faults(s):
        return simulate(s, "--seed", SEED * 1000000 + number * schedules, "--runs", schedules)

    faults.__name__ = f"faults_of_all_kinds_at_any_time_{number:02}"
    return test(faults)


# 10,000 schedules in pieces that end in time on a busy machine, too
for k in range(20):
    piece(k, 5000 if LONG else 500)

main()
