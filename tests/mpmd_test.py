#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Several programs in one job: hale run -n 2 ./a : -n 1 ./b."""

from lib import *


def command(s, rounds=10):
    exe = s.compile("appnum")
    other = s.path("other program")
    shutil.copy(exe, other)
    return ["-n", 2, exe, "it's", rounds, ":", "-n", 1, other, "b c", rounds, ":", exe, "", rounds]


@test
def each_rank_is_of_its_program_as_under_open_mpi(s):
    argv = command(s)
    r = s.run(HALE, "run", *argv)
    expect(r.status == 0 and r.out == "0:it's 0:it's 1:b c 2: 240\n", r)
    have("mpirun.openmpi")
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    other = s.run("mpirun.openmpi", "--oversubscribe", "--bind-to", "none",
                  *argv[:-3], "-n", 1, *argv[-3:], env=env)
    expect(other.status == 0 and other.out == r.out, other, r)


@test
def a_lost_rank_comes_back_as_its_program(s):
    r = s.run(HALE, "run", "--ckpt-every", "100ms", "--report", "report.json", "--inject",
              "kill:rank=2,after=500ms", *command(s, 1000))
    expect(r.status == 0 and r.out.startswith("0:it's 0:it's 1:b c 2: "), r)
    expect(r.out.split()[-1] == str(sum(6 + 4 * i for i in range(1000))), r)
    expect(s.report()["restarts"] > 0, s.report())


@test
def what_can_not_be_is_refused_by_a_sentence(s):
    for argv, says in ((["a", ":"], "there is no program"), (["a", ":", "--nodes", 2, "b"], "only -n")):
        r = s.run(HALE, "run", *argv)
        expect(r.status != 0 and says in r.err, r)


main()
