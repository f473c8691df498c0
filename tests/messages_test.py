#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Point-to-point of all kinds at once: against Open MPI, through checkpoints and through faults."""

from lib import *

ROUNDS = 3000 if LONG else 600


@test
def a_storm_of_messages_is_what_it_is_under_open_mpi(s):
    exe = s.compile("storm")
    for ranks in (2, 5):
        expected = s.openmpi(ranks, exe, 300)
        expect(expected.status == 0, expected)
        r = s.hale_run(ranks, exe, 300)
        expect(r.status == 0 and r.out == expected.out, r, expected)


@test
def a_storm_goes_on_without_copies_between_processes(s):
    exe = s.compile("storm")
    expected = s.hale_run(3, exe, 300)
    r = s.hale_run(3, exe, 300, env={"HALE_SHM_CMA": "0"})
    expect(r.status == 0 and r.out == expected.out, r, expected)


@test
def a_storm_ends_right_through_checkpoints_and_deaths(s):
    exe = s.compile("storm")
    rng = random.Random(SEED)
    for ranks, cma in some([(2, 1), (4, 1), (18, 1), (3, 0)], 2):
        env = {"HALE_SHM_CMA": str(cma)}
        expected = s.hale_run(ranks, exe, ROUNDS, env=env)
        expect(expected.status == 0, expected)
        job = s.hale_start(ranks, exe, ROUNDS, options=["--ckpt-every", "100ms"], env=env)
        job.until_output("round 100:")
        time.sleep(rng.uniform(0, 0.3))
        pids = [r["pid"] for r in (job.info() or {"ranks": []})["ranks"] if r["pid"] > 0]
        try:
            if pids:
                os.kill(rng.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            pass  # it was over before, as when there is none
        r = job.wait()
        expect(r.status == 0 and r.out == expected.out, f"{ranks} ranks, seed {SEED}", r, expected)
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)


main()
