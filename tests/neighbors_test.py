#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of neighbours in random topologies, and persistent collectives."""

from lib import *

ROUNDS = 5000 if LONG else 200


def tested(s, ranks, options=(), env=None):
    exe = s.path("neighbors")
    if not os.path.exists(exe):
        exe = s.compile("neighbors")
    r = s.hale_run(ranks, exe, ROUNDS, SEED * 100 + ranks, options=options, env=env)
    expect(r.status == 0 and r.out == f"{ROUNDS} rounds, 0 wrong\n", ranks, options, r)


@test
def neighbours_get_what_each_sent_them(s):
    for ranks in (1, 2, 3, 4, 6):
        tested(s, ranks)


@test
def over_nodes_they_get_the_same(s):
    tested(s, 4, ["--nodes", 2])


@test
def persistent_collectives_survive_deaths(s):
    rounds = ROUNDS * 100
    r = s.hale_run(4, s.compile("neighbors"), rounds, SEED,
                   options=["--ckpt-every", "100ms", "--report", "report.json", "--inject",
                            "kill:rank=1,at-checkpoint=2"])
    expect(r.status == 0 and r.out == f"{rounds} rounds, 0 wrong\n", r)
    expect(s.report()["restarts"] > 0, s.report())


main()
