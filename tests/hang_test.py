#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that somebody has stopped: with --hang-after they count as dead, and the job goes on."""

from lib import *


def pids(job, **wanted):
    return [r["pid"] for r in job.info()["ranks"] if all(r[k] == v for k, v in wanted.items())]


@test
def a_stopped_replica_counts_as_dead(s):
    """Whether it is the leader, which decides for the others, or not."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 200)
    for slot in 0, 1:
        job = s.hale_start(2, exe, 200, options=["--replicas", "2", "--hang-after", "500ms"])
        job.until_output("round 100:")
        os.kill(pids(job, rank=1, slot=slot)[0], signal.SIGSTOP)
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out, r, plain)
        expect(f"replica {slot} has stood still for" in r.err and f"replica {1 - slot} goes on" in r.err, r)


@test
def a_stopped_rank_costs_a_rollback_without_replicas(s):
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 200)
    job = s.hale_start(2, exe, 200, options=["--hang-after", "500ms", "--ckpt-every", "300ms"])
    job.until_output("round 100:")
    os.kill(pids(job, rank=1)[0], signal.SIGSTOP)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "its process has stood still for" in r.err and "rolling back" in r.err,
           r, plain)


@test
def a_job_that_is_paused_is_not_hung(s):
    exe = s.compile("storm")
    job = s.hale_start(2, exe, 200, options=["--replicas", "2", "--hang-after", "200ms"])
    job.until_output("round 100:")
    job.kill(signal.SIGTSTP)
    time.sleep(1)
    job.kill(signal.SIGCONT)
    r = job.wait()
    expect(r.status == 0 and "stood still" not in r.err, r)


@test
def a_replica_that_computes_for_ever_counts_as_dead(s):
    """Not one that is stopped by a signal: that is another limit. Leader or not."""
    exe = s.compile("spins")
    plain = s.hale_run(2, exe, 120)
    for slot, more in (0, []), (1, ["--sdc", "hash"]):
        job = s.hale_start(2, exe, 120, options=["--replicas", "2", *more, "--hang-after", "compute=1s"])
        job.until_output("step 20")
        os.kill(pids(job, rank=1, slot=slot)[0], signal.SIGUSR1)
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out and f"replica {1 - slot} goes on" in r.err, r, plain)
        expect(f"replica {slot} has computed for 1." in r.err and "without a call of MPI" in r.err, r)


@test
def a_replica_that_waits_for_ever_counts_as_dead(s):
    """For a message that nobody sends, or outside of MPI; those of the same slot wait for it, and live on."""
    exe = s.compile("spins")
    plain = s.hale_run(3, exe, 400)
    for sig, slot, how in (signal.SIGUSR2, 1, "in a call of MPI"), (signal.SIGHUP, 0, "made no call of MPI"):
        job = s.hale_start(3, exe, 400, options=["--replicas", "2", "--hang-after", "wait=2s"])
        job.until_output("step 20")
        os.kill(pids(job, rank=1, slot=slot)[0], sig)
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out, r, plain)
        expect(f"rank 1: replica {slot} has waited for" in r.err and how in r.err, r)
        # who waits for it in a call may have begun to in the same moment, as far as anybody sees
        expect(r.err.count("has waited for") <= (2 if sig == signal.SIGUSR2 else 1), "those that waited for it were ended", r)


@test
def who_waits_for_others_is_not_hung(s):
    """Those of one slot wait for one of them that is stopped now and then, and the others are far ahead."""
    exe = s.compile("spins")
    job = s.hale_start(2, exe, 100000, options=["--replicas", "2", "--hang-after", "wait=4s", "--replenish", "off"])
    job.until_output("step 20")
    slow = pids(job, rank=1, slot=0)[0]
    for _ in range(3):
        os.kill(slow, signal.SIGSTOP)
        time.sleep(2)
        os.kill(slow, signal.SIGCONT)
        time.sleep(0.5)
    expect("has waited" not in job.err(), job.result())
    job.kill(signal.SIGTERM)
    job.wait()


@test
def replicas_that_all_have_long_to_compute_are_left_alone(s):
    exe = s.compile("spins")
    job = s.hale_start(2, exe, 400, options=["--replicas", "2", "--hang-after", "compute=200ms", "--replenish", "off"])
    job.until_output("step 40")
    for pid in pids(job, rank=1):
        os.kill(pid, signal.SIGUSR1)
    time.sleep(3)
    expect(len([r for r in job.info()["ranks"] if r["rank"] == 1 and r["state"] == "running"]) >= 1, job.info())
    job.kill(signal.SIGTERM)
    r = job.wait()
    expect("all 2 replicas" not in r.err, r)


@test
def stacks_of_all_ranks_are_merged(s):
    """The others wait for the one that is stopped; all of them are below main."""
    have("eu-stack")
    exe = s.compile("slices")
    job = s.hale_start(2, exe, 10000000, options=["--replicas", "2", "--replenish", "off"])
    job.until_output("step 1024")
    r = s.hale("stack", job.id())
    job.kill(signal.SIGTERM)
    job.wait()
    mains = re.findall(r"(?m)^ *main  (\d+): (.*)$", r.out)
    expect(r.status == 0 and len(mains) == 1 and mains[0][0] == "4", r)
    expect(sorted(mains[0][1].split(",")) == ["0.0", "0.1", "1.0", "1.1"] and "MPI_Sendrecv" in r.out, r)


@test
def what_hale_stack_does_not_take_is_refused(s):
    for words in ("a", "b"), ("--all",):
        r = s.hale("stack", *words)
        expect(r.status == EXIT_USAGE and "nothing else" in r.err, r)


@test
def times_that_make_no_sense_are_refused(s):
    for value in "1ms", "soon", "-1s", "1s,compute=1ms", "compute=", ",":
        r = s.hale_run(1, "/bin/true", options=["--hang-after", value])
        expect(r.status == EXIT_USAGE and "100ms at least" in r.err, r)
    for what in "compute", "wait":
        r = s.hale_run(1, "/bin/true", options=["--hang-after", f"{what}=1s"])
        expect(r.status == EXIT_USAGE and f"{what}=TIME" in r.err and "add --replicas 2" in r.err, r)


main()
