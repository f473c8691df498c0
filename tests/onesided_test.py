#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random one-sided operations against a serial model: near and far, through deaths, and laid out
otherwise by restarts."""

from lib import *

PHASES = 1500 if LONG else 120


def program(s):
    exe = s.path("onesided")
    return exe if os.path.exists(exe) else s.compile("onesided")


def tested(s, ranks, phases, kinds, most, env=None, options=()):
    r = s.hale_run(ranks, program(s), phases, SEED * 100 + ranks, kinds, most, options=options, env=env)
    expect(r.status == 0 and r.out == f"{phases} phases, 0 wrong\n", r)


@test
def corners_of_windows_reductions_and_views_are_as_the_standard_says(s):
    exe = s.compile("corners")
    for ranks, options, args in (2, [], []), (4, [], []), (4, ["--nodes", "2"], ["far"]):
        r = s.hale_run(ranks, exe, *args, options=options)
        expect(r.status == 0 and r.out == "windows 0, columns 0, views 0 wrong\n", r)


@test
def what_a_large_get_reads_changes_after_its_epoch_only(s):
    exe = s.compile("torn_gets")
    for options, cma in (["--nodes", "2"], "1"), ([], "0"), ([], "1"):
        r = s.hale_run(2, exe, 20 << 20, options=options, env={"HALE_SHM_CMA": cma})
        expect(r.status == 0 and r.out == "torn: 0 in epochs, 0 under locks\n", options, cma, r)


@test
def windows_of_all_flavours_hold_what_the_model_says(s):
    for ranks in (1, 2, 3, 5):
        tested(s, ranks, PHASES, "casd", 600)


@test
def runs_of_many_pages_give_the_same(s):
    tested(s, 3, PHASES // 2, "casd", 20000)


@test
def messages_give_the_same_where_copies_are_not_allowed(s):
    for most in (300, 20000):
        tested(s, 3, PHASES // 2, "casd", most, {"HALE_SHM_CMA": "0"})


@test
def far_targets_give_the_same(s):
    for ranks, nodes in ((2, 2), (4, 2), (5, 3)):
        for most in (300, 9000):
            tested(s, ranks, PHASES // 3, "cad", most, options=["--nodes", nodes])


@test
def targets_that_make_no_calls_are_reached(s):
    exe = s.compile("passive")
    for options, env in (([], {}), (["--nodes", 3], {}), ([], {"HALE_SHM_CMA": "0"})):
        r = s.hale_run(3, exe, options=options, env=env)
        expect(r.status == 0 and r.out == "2, 40, 2\n", options, env, r)


@test
def erroneous_calls_give_their_class_through_the_windows_handler(s):
    exe = s.compile("onesided_misuse")
    for ranks, options in ((1, []), (3, []), (2, ["--nodes", 2])):
        r = s.hale_run(ranks, exe, options=options)
        expect(r.status == 0 and r.out == "23 errors handled, 0 wrong\n", options, r)


@test
def refused_windows_leave_room_and_faults_are_told_to_who_made_them(s):
    exe = s.compile("refused_windows")
    for options, args in ([], []), (["--nodes", 2], ["far"]):
        r = s.hale_run(2, exe, *args, options=options)
        expect(r.status == 0 and r.out == "0 wrong\n", options, r)


def through_deaths(s, exe, *args, options=(), deaths=4, every="150ms"):
    """Ranks are killed at random moments, while they hold locks too."""
    chance = random.Random(SEED)
    ranks = 4
    job = s.hale_start(ranks, exe, *args,
                       options=["--ckpt-every", every, "--max-restarts", "20", "--report",
                                "report.json", *options], env={"STOP": s.path("stop")})
    for _ in range(deaths):
        time.sleep(chance.uniform(0.3, 0.9))
        try:
            os.kill(chance.choice(job.ranks(ranks)), signal.SIGKILL)
        except ProcessLookupError:
            pass  # in the middle of a rollback
    time.sleep(0.3)
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == 0 and r.out.endswith(", 0 wrong\n"), r)
    expect(s.report()["restarts"] > 0, s.report())


@test
def windows_survive_deaths(s):
    through_deaths(s, program(s), 10000000, SEED, "casd", 2000)


@test
def windows_over_nodes_survive_deaths(s):
    through_deaths(s, program(s), 10000000, SEED, "cad", 2000, options=["--nodes", 2])


@test
def shared_windows_that_are_just_being_made_survive_deaths(s):
    through_deaths(s, s.compile("shared_turns"), deaths=12, every="50ms")


@test
def windows_go_on_when_nodes_are_laid_out_otherwise(s):
    """Targets that were near are far after a restart, and the other way round."""
    layouts, ranks = (1, 2, 1, 4, 2, 1), 4
    for turn in range(SEED, SEED + (10 if LONG else 1)):
        chance = random.Random(turn)
        job = s.hale_start(ranks, program(s), 10000000, turn, "cad", 3000,
                           options=["--nodes", layouts[0], "--ckpt-dir", f"lives{turn}"],
                           env={"STOP": s.path("stop")})
        for life, nodes in enumerate(layouts[1:]):
            job.ranks(ranks)
            time.sleep(chance.uniform(0.2, 0.7))
            checkpoint = job.checkpoint()
            job.kill(signal.SIGTERM)
            r = job.wait()
            expect("instead" not in r.out, f"life {life}", r)
            job = s.start(HALE, "restart", "--nodes", nodes, "--ckpt-dir", f"lives{turn}.{life}",
                          checkpoint)
        time.sleep(0.4)
        s.write("stop", "")
        r = job.wait()
        os.unlink(s.path("stop"))
        expect(r.status == 0 and r.out.endswith(" phases, 0 wrong\n"), r)


main()
