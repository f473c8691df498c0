#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random collective operations against what every rank computes by itself, over shared cells and
over messages, undisturbed and through deaths and restarts."""

from lib import *

ROUNDS = 2000 if LONG else 300


def tested(s, ranks, rounds, most, env=None, options=()):
    exe = s.path("collectives")
    if not os.path.exists(exe):
        exe = s.compile("collectives", flags=["-lm"])
    r = s.hale_run(ranks, exe, rounds, SEED * 100 + ranks, most, options=options,
                   env=dict(env or {}, TREE="1"))
    expect(r.status == 0 and r.out == f"{rounds} rounds, 0 wrong\n", r)


@test
def shared_cells_give_the_bits_of_the_fixed_tree_with_any_number_of_ranks(s):
    for ranks in range(1, 10):
        tested(s, ranks, ROUNDS, 30000)


@test
def vectors_of_many_pieces_give_the_same(s):
    for ranks in (3, 4, 8):
        tested(s, ranks, ROUNDS // 10, 1000000)


@test
def single_copies_give_the_same(s):
    for ranks in (2, 3, 5, 8):
        tested(s, ranks, ROUNDS, 3000, {"HALE_COLL_INLINE": "40"})


@test
def either_way_of_large_payloads_gives_the_same(s):
    for way in ("pieces", "copies"):
        for ranks in (3, 8):
            tested(s, ranks, ROUNDS // 4, 300000, {"HALE_COLL": way})


@test
def messages_give_the_same(s):
    for ranks in (2, 3, 4, 7, 9):
        tested(s, ranks, ROUNDS, 20000, {"HALE_COLL": "messages"})


@test
def elements_that_lie_one_before_the_other_are_reduced(s):
    exe = s.compile("backwards")
    for ranks, options, env in (2, [], {}), (5, [], {}), (4, [], {"HALE_COLL": "messages"}), \
            (4, ["--nodes", 2], {}):
        r = s.hale_run(ranks, exe, 2000, options=options, env=env)
        expect(r.status == 0 and r.out == "0 wrong\n", ranks, options, env, r)


def through_deaths(s, env):
    """Ranks are killed at random moments in the middle of collectives; the job comes back each time
    from its last checkpoint, and every result after it is right."""
    chance = random.Random(SEED)
    ranks, rounds = 4, ROUNDS * (20 if LONG else 6)
    exe = s.compile("collectives", flags=["-lm"])
    job = s.hale_start(ranks, exe, rounds, SEED, 20000,
                       options=["--ckpt-every", "150ms", "--max-restarts", "20"],
                       env=dict(env, TREE="1"))
    for _ in range(5):
        time.sleep(chance.uniform(0.3, 1.2))
        if not job.running():
            break
        try:
            os.kill(chance.choice(job.ranks(ranks)), signal.SIGKILL)
        except (ProcessLookupError, Failed):
            pass  # it has ended meanwhile
    r = job.wait()
    expect(r.status == 0 and r.out == f"{rounds} rounds, 0 wrong\n", r)


@test
def cells_survive_deaths_in_mid_collective(s):
    through_deaths(s, {})


@test
def single_copies_survive_deaths_in_mid_collective(s):
    through_deaths(s, {"HALE_COLL_INLINE": "64"})


@test
def single_copies_of_large_payloads_survive_deaths_in_mid_collective(s):
    through_deaths(s, {"HALE_COLL": "copies"})


@test
def schedules_survive_deaths_in_mid_collective(s):
    through_deaths(s, {"HALE_COLL": "messages"})


main()
