#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Silent errors: what replicas send is compared, and a wrong bit is found before anybody receives it."""

from lib import *


@test
def messages_that_agree_change_nothing(s):
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 60)
    for options in (["--sdc", "hash"], ["--sdc", "full", "--nodes", "2"]):
        r = s.hale_run(3, exe, 60, options=["--replicas", "2", *options, "--report", "report.json", "--inject",
                                             "kill:rank=1,slot=1,after=300ms"])
        expect(r.status == 0 and r.out == plain.out and "silent" not in r.err, r, plain)
        report = s.report()
        expect(report["sdc"] == [] and report["sdc_count"] == 0 and report["replicas"]["lost"] == 1, report)


@test
def a_wrong_message_ends_the_job_before_it_is_received(s):
    exe = s.compile("slices")
    for mode in "hash", "full":
        job = s.hale_start(2, exe, 10000000, options=["--replicas", "2", "--sdc", mode, "--report", "report.json"])
        job.until_output("step 1024")
        r = s.hale("inject", "flip", job.id(), "--rank", "1", "--slot", "1", "--where", "message")
        expect(r.status == 0, r)
        r = job.wait()
        expect(r.status == EXIT_SDC and "silent error: the replicas of rank 1" in r.err, r)
        expect("to rank 0 in MPI_COMM_WORLD" in r.err and "32768 bytes" in r.err, r)
        found = s.report()["sdc"]
        expect(len(found) == 1 and found[0]["rank"] == 1 and found[0]["peer"] == 0, found)
        expect(found[0]["bytes"] == 32768 and found[0]["action"] == "stopped" and found[0]["slot"] == -1, found)
        if mode == "full":  # one bit: one byte, and it is named
            expect(found[0]["first"] == found[0]["last"] < 32768, found)


@test
def a_wrong_bit_in_memory_is_found_and_the_job_goes_back(s):
    """Sooner or later the bit is sent; from then on the run is thrown away, and the next one is right."""
    exe = s.compile("slices")
    plain = s.hale_run(2, exe, 8000)
    job = s.hale_start(2, exe, 8000, options=["--replicas", "2", "--sdc", "hash", "--on-sdc", "rollback", "--report",
                                              "report.json"])
    job.until_output("step 0")
    r = s.hale("inject", "flip", job.id(), "--rank", "0", "--slot", "1", "--count", "20")
    expect(r.status == 0, r)
    r = job.wait()
    expect(r.status == 0 and "silent error" in r.err and r.out.endswith(plain.out.splitlines()[-1] + "\n"), r, plain)
    report = s.report()
    expect(report["restarts"] == 1 and report["sdc"][0]["action"] == "rolled back", report)


@test
def three_replicas_outvote_a_wrong_one_which_is_replaced(s):
    """In one of 50 messages a bit is wrong, all are corrected; then the rank that did it has a new process there."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 60)
    r = s.hale_run(3, exe, 60, options=["--nodes", "3", "--replicas", "3", "--sdc", "hash", "--report", "report.json",
                                        "--inject", "flip:rank=1,slot=1,where=message,after=400ms,count=3,every=50"])
    expect(r.status == 0 and r.out == plain.out, r, plain)
    expect("replica 1 of rank 1, on node node1, has sent a wrong copy" in r.err and "roll" not in r.err, r)
    report = s.report()
    expect({(e["rank"], e["slot"], e["node"], e["action"]) for e in report["sdc"]} == {(1, 1, "node1", "corrected")}, report)
    expect([(c["rank"], c["slot"]) for c in report["clones"]] == [(1, 1)] and report["restarts"] == 0, report)


@test
def what_libc_tells_replicas_is_what_it_tells_their_leader(s):
    """Clocks, processor times and random bytes in messages are no silent error, and clocks never go back, whoever
    leads; without the leader's values they differ."""
    exe = s.compile("tells_time", flags=["-pthread"])
    for options in (["--inject", "kill:rank=0,slot=0,after=400ms"],
                    ["--nodes", "2", "--inject", "kill:rank=0,slot=0,after=400ms", "--replenish", "off"]):
        r = s.hale_run(2, exe, 900, options=["--replicas", "2", "--sdc", "hash", *options])
        expect(r.status == 0 and r.out == "900 rounds, 0 went back\n" and "goes on" in r.err, r)
        expect("silent" not in r.err and "send-deterministic" not in r.err, r)
    r = s.hale_run(2, exe, 300, options=["--replicas", "2", "--sdc", "hash"], env={"HALE_REPLAY_LIBC": "off"})
    expect(r.status == EXIT_SDC and "silent error" in r.err, r)


@test
def lammps_which_reduces_processor_times_is_no_false_alarm(s):
    have("lmp")
    s.write("in.melt", open(os.path.join(ROOT, "tests/data/in.melt")).read())
    program = ["lmp", "-in", "in.melt", "-var", "steps", "200", "-log", "none"]
    plain = s.hale_run(2, *program)
    r = s.hale_run(2, *program, options=["--replicas", "2", "--sdc", "hash"])
    expect(r.status == 0 and thermo(r.out) == thermo(plain.out) and "silent" not in r.err, r, plain)


@test
def a_wrong_bit_is_not_noticed_without_comparison(s):
    """What --sdc is for: the same flip, and nobody says a word."""
    exe = s.compile("slices")
    plain = s.hale_run(2, exe, 8000)
    r = s.hale_run(2, exe, 8000, options=["--replicas", "2", "--inject", "flip:rank=1,where=message,after=100ms,count=50"])
    expect(r.status == 0 and r.out.splitlines()[-1] != plain.out.splitlines()[-1], r, plain)


@test
def what_makes_no_sense_is_refused(s):
    for options, words in ((["--sdc", "hash"], "add --replicas 2"), (["--replicas", "2", "--sdc", "some"], "byte by byte"),
                           (["--replicas", "2", "--on-sdc", "stop"], "add --sdc"),
                           (["--replicas", "2", "--sdc", "hash", "--on-sdc", "go"], "rollback"),
                           (["--inject", "flip:rank=0,where=message,after=1s"], "--replicas"),
                           (["--inject", "flip:rank=0"], "after="), (["--inject", "flip:rank=0,where=air,after=1s"], "where")):
        r = s.hale_run(2, "/bin/true", options=options)
        expect(r.status == EXIT_USAGE and words in r.err, options, r)


main()
