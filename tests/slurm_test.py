#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs in an allocation of a real Slurm: a slurmctld and three slurmd on this machine."""

from attach_parts import GRACE, attach, end, goes_on, jobs, kill_head, rank_pids, until_still
from lib import *
from levels_parts import comm
from slurm_parts import Slurm
from steps_parts import end as steps_end, until_told


@test
def a_job_uses_the_nodes_of_its_allocation(s):
    exe = s.compile("steps")
    wanted = s.hale_run(4, exe, 20, 1)
    with Slurm(s) as slurm:
        r = s.run(*slurm.salloc(HALE, "run", "-n", 4, "--", exe, 20, 1), env=slurm.env)
        expect(r.status == 0 and sorted(r.out.splitlines()) == sorted(wanted.out.splitlines()), r)
        r = s.run(*slurm.salloc(HALE, "run", "-n", 3, "--no-mpi", "--", "sh", "-c",
                                "cat; echo $SLURMD_NODENAME"), env=slurm.env, stdin="input\n")
        expect(r.status == 0 and sorted(r.out.split()) == ["input", "n1", "n2", "n3"], r)
        # a node is lost with all that runs on it; the spare of the allocation takes over
        job = s.start(*slurm.salloc(HALE, "run", "-n", 4, "--spares", "1", "--ckpt-every", "300ms",
                                    "--node-timeout", "2s", "--report", "report.json", "--",
                                    *until_told(s)), env=slurm.env)
        job.until(s.complete, "a checkpoint")
        jobs = json.loads(s.hale("ps", "--json").out)["jobs"]
        name = [j["id"] for j in jobs if j["pid"] in children(job.pid)][0]
        nodes = json.loads(s.hale("nodes", name, "--json").out)["nodes"]
        expect([(n["node"], n["state"], n["ranks"]) for n in nodes] ==
               [("n1", "READY", 2), ("n2", "READY", 2), ("n3", "SPARE", 0)], nodes)
        # an agent that srun has started, and later the whole node
        os.kill(next(p for p in children(os.getpid())
                     if comm(p) == "hale-agent" and "--node n2" in name_of(p)), signal.SIGKILL)
        job.until(lambda: "another one goes on in its place" in job.err(), "to replace the agent")
        lose(slurm.jobs[3].pid, "n2")
        steps_end(s, job, rollbacks=1)
        expect(s.report()["failures"][0]["node"] == "n2" and s.report()["agents_replaced"] == 1, s.report())


@test
def fewer_nodes_of_the_allocation_are_used_but_never_more(s):
    """salloc's shell may be a step, with a number that no other step has."""
    shell = ["sh", "-c", "echo $SLURMD_NODENAME"]
    with Slurm(s) as slurm:
        for argv, env, wanted in (
                (["--nodes", "2"], {}, "n1 n1 n2 n2"), (["--ppn", "2"], {}, "n1 n1 n2 n2"),
                (["--spares", "2"], {}, "n1 n1 n1 n1"),
                ([], {"SLURM_STEP_ID": "4294967290"}, "n1 n2 n3 n3"),
                ([], {"SLURM_STEP_ID": "0"}, "")):
            r = s.run(*slurm.salloc("env", *[f"{k}={v}" for k, v in env.items()], HALE, "run", "-n", 4,
                                    "--no-mpi", *argv, "--", *shell), env=slurm.env)
            expect(r.status == 0 and " ".join(sorted(r.out.split())) == wanted, argv, env, r)
        for argv, why in ((["--nodes", "4"], "3 hosts"), (["--spares", "3"], "3 spares of 3 hosts"),
                          (["--spares", "1", "--nodes", "3"], "2 hosts besides the spares")):
            r = s.run(*slurm.salloc(HALE, "run", "-n", 4, "--no-mpi", *argv, "--", *shell), env=slurm.env)
            expect(r.status == EXIT_USAGE and why in r.err, r)


@test
def a_job_of_an_allocation_gets_another_head(s):
    """Agents that srun has started outlive the head, and srun; the next head reaches them by srun. Then a
    node is lost while there is no head."""
    exe = s.compile("steps")
    with Slurm(s) as slurm:
        shell = s.start(*slurm.salloc("sh", "-c", "env >allocation; while [ ! -e over ]; do "
                                      "sleep 0.1; done"), env=slurm.env)
        shell.until(lambda: "SLURM_JOB_ID" in (s.read("allocation") if
                    os.path.exists(s.path("allocation")) else ""), "the allocation is there")
        env = dict(line.split("=", 1) for line in s.read("allocation").splitlines()
                   if line.startswith("SLURM_"))
        one = s.start(HALE, "run", "-n", 4, "--spares", "1", "--ckpt-every", "300ms", "--node-timeout",
                      "4s", *GRACE, "--", exe, 0, 20, env=env)
        one.until_output("rank 3 step 20 ")
        one.name = next(k for k, j in jobs(s).items() if j["pid"] == one.pid)
        one.until(lambda: s.complete(), "a checkpoint")
        pids = rank_pids(s, one.name)
        heads = [one]
        for still in (False, True):
            kill_head(s, heads[-1])
            if still:
                until_still(s)
            heads.append(attach(s, heads[-1], env=env))
            goes_on(heads[-1], *heads)
        expect(rank_pids(s, one.name) == pids, "the ranks are not the same processes")
        kill_head(s, heads[-1])
        lose(slurm.jobs[3].pid, "n2")
        heads.append(attach(s, heads[-1], env=env, says="node n2 is lost"))
        heads[-1].until_says("all ranks run again")
        goes_on(heads[-1], *heads)
        report = end(s, *heads)
        expect(report["restarts"] == 1 and report["failures"][0]["node"] == "n2", report)
        # srun notices the end of what it started when Slurm says so
        shell.until(lambda: not any(comm(p) == "srun" for p in children(os.getpid())), "srun has ended")
        s.write("over", "")
        shell.wait()


def lose(slurmd, node):
    """The machine is gone: slurmd, and the processes of its steps."""
    os.kill(slurmd, signal.SIGKILL)
    for pid in children(os.getpid()):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                mine = f"SLURMD_NODENAME={node}".encode() in f.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                mine = mine or b"slurmstepd" in f.read() and stepd_of(pid, node)
            if mine:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def stepd_of(pid, node):
    return any(f"/spool-{node}" in os.readlink(f"/proc/{pid}/fd/{fd}")
               for fd in os.listdir(f"/proc/{pid}/fd"))


main()
