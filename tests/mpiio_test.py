#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files of MPI: random transfers against a serial model, through deaths, laid out otherwise by
restarts; errors, full disks; the same bytes as Open MPI's."""

from lib import *

PHASES = 1500 if LONG else 80


def program(s):
    exe = s.path("mpiio")
    return exe if os.path.exists(exe) else s.compile("mpiio")


def tested(s, ranks, phases, most, options=(), env=None):
    r = s.hale_run(ranks, program(s), s.path("file"), phases, SEED * 100 + ranks, most, options=options,
                   env=env)
    expect(r.status == 0 and r.out == f"{phases} phases, 0 wrong\n", r)


@test
def transfers_of_all_kinds_give_what_the_model_says(s):
    for ranks in (1, 2, 3, 5):
        tested(s, ranks, PHASES, 800)


@test
def large_pieces_give_the_same(s):
    tested(s, 3, PHASES // 4, 60000)


@test
def over_nodes_they_give_the_same(s):
    for ranks, nodes in ((2, 2), (5, 3)):
        tested(s, ranks, PHASES // 2, 800, ["--nodes", nodes])


def written(s, exe, *args, options=()):
    """By how many system calls."""
    r = s.hale_run(4, exe, s.path("data"), *args, options=options)
    found = re.fullmatch(r"0 wrong, (\d+) writes\n", r.out)
    expect(r.status == 0 and found, args, options, r)
    os.unlink(s.path("data"))
    return int(found[1])


@test
def small_pieces_are_written_together_with_the_gaps_between_them(s):
    """Over nodes only if nobody else might write there: else each piece by itself."""
    exe, nodes = s.compile("mpiio_gaps"), ["--nodes", 2]
    expect(written(s, exe, 4096) < 500, "one node")
    expect(written(s, exe, 4096, options=nodes) < 500, "two nodes")
    expect(written(s, exe, 4096, "other") < 500, "another handle")
    expect(written(s, exe, 4096, "other", options=nodes) >= 4 * 4096, "another handle, two nodes")


@test
def each_ranks_small_pieces_are_written_together_while_others_fill_the_gaps(s):
    exe, nodes = s.compile("mpiio_strided"), ["--nodes", 2]
    turns = 500 if LONG else 20
    expect(written(s, exe, turns) < 300, "one node")
    expect(written(s, exe, turns, "ind_wr_buffer_size", "4096") < 1000, "small windows")
    expect(written(s, exe, 3, "romio_ds_write", "disable") >= 3 * 2048, "by a hint")
    expect(written(s, exe, 3, options=nodes) >= 3 * 2048, "two nodes")


@test
def what_is_written_with_gaps_survives_deaths(s):
    exe = s.compile("mpiio_strided")
    chance = random.Random(SEED)
    for turn in range(50 if LONG else 1):
        job = s.hale_start(4, exe, s.path("data"), 10000000,
                           options=["--ckpt-every", "150ms", "--max-restarts", "20", "--report", "report.json"],
                           env={"STOP": s.path("stop")})
        for _ in range(4):
            time.sleep(chance.uniform(0.3, 0.9))
            try:
                os.kill(chance.choice(job.ranks(4)), signal.SIGKILL)
            except ProcessLookupError:
                pass  # in the middle of a rollback
        time.sleep(0.3)
        s.write("stop", "")
        r = job.wait()
        os.unlink(s.path("stop"))
        expect(r.status == 0 and r.out.startswith("0 wrong, "), turn, r)
        expect(s.report()["restarts"] > 0, s.report())


@test
def errors_give_their_class_through_the_files_handler(s):
    exe = s.compile("mpiio_errors")
    os.mkdir(s.path("folder"))
    for ranks, options in ((1, []), (3, []), (2, ["--nodes", 2])):
        r = s.hale_run(ranks, exe, s.path("folder"), options=options)
        expect(r.status == 0 and r.out == "0 wrong\n", ranks, options, r)


@test
def a_full_disk_is_an_error_that_programs_can_handle(s):
    exe = s.compile("mpiio_errors")
    os.mkdir(s.path("folder"))
    s.tmpfs("small", "1m")
    r = s.hale_run(3, exe, s.path("folder"), s.path("small"))
    expect(r.status == 0 and r.out == "0 wrong\n", r)


def through_deaths(s, options=(), seed=SEED):
    """The model is in the ranks' memory, and so of the checkpoint: the file has to be, too."""
    chance = random.Random(seed)
    ranks = 4
    job = s.hale_start(ranks, program(s), s.path(f"file{seed}"), 10000000, seed, 1500,
                       options=["--ckpt-every", "150ms", "--max-restarts", "20", "--report", "report.json",
                                *options], env={"STOP": s.path("stop")})
    for _ in range(4):
        time.sleep(chance.uniform(0.3, 0.9))
        try:
            os.kill(chance.choice(job.ranks(ranks)), signal.SIGKILL)
        except ProcessLookupError:
            pass  # in the middle of a rollback
    time.sleep(0.3)
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == 0 and r.out.endswith(" phases, 0 wrong\n"), r)
    expect(s.report()["restarts"] > 0, s.report())


@test
def files_survive_deaths(s):
    for turn in range(50 if LONG else 1):
        through_deaths(s, seed=SEED + turn)


@test
def files_over_nodes_survive_deaths(s):
    through_deaths(s, ["--nodes", 2])


@test
def files_that_are_just_being_opened_survive_deaths(s):
    exe = s.compile("mpiio_opens")
    kills = [o for n in range(1, 7) for o in ("--inject", f"kill:rank={n % 3},at-checkpoint={3 * n}")]
    r = s.hale_run(3, exe, s.path("file"), 3000, options=["--ckpt-every", "30ms", "--max-restarts", "20", "--report",
                                                          "report.json", *kills])
    expect(r.status == 0 and r.out == "0 wrong\n", r)
    expect(s.report()["restarts"] > 0, s.report())


@test
def files_go_on_when_nodes_are_laid_out_otherwise(s):
    layouts, ranks = (1, 2, 4, 1), 4
    chance = random.Random(SEED)
    job = s.hale_start(ranks, program(s), s.path("file"), 10000000, SEED, 1500,
                       options=["--nodes", layouts[0], "--ckpt-dir", "lives"], env={"STOP": s.path("stop")})
    for life, nodes in enumerate(layouts[1:]):
        job.ranks(ranks)
        time.sleep(chance.uniform(0.2, 0.7))
        checkpoint = job.checkpoint()
        job.kill(signal.SIGTERM)
        r = job.wait()
        expect("instead" not in r.out, f"life {life}", r)
        job = s.start(HALE, "restart", "--nodes", nodes, "--ckpt-dir", f"lives.{life}", checkpoint)
    time.sleep(0.4)
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0 and r.out.endswith(" phases, 0 wrong\n"), r)


main()
