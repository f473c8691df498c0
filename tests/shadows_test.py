#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs whose second processes are slow and mute: whoever dies, the output is that of an undisturbed run."""

from lib import *
from adopt_parts import agent_of, nodes

MELT = "/usr/share/lammps/examples/melt/in.melt"
RUNS = 50 if LONG else 1
RATE = ["--shadow-rate", "0.2"]


def shadows(n, *more):
    return ["--shadows", str(n), *RATE, *more]


def kill(rank, after, slot=0):
    return ["--inject", f"kill:rank={rank},slot={slot},after={after:.3f}s"]


def lines_of_results(path):
    return [line for line in open(path) if re.match(r" +\d+ ", line)]


@test
def lammps_writes_the_same_whichever_main_dies(s):
    """Output and files: shadows write nothing before they are promoted."""
    have("lmp")
    if not os.path.exists(MELT):
        skip("LAMMPS's examples are not installed")
    script = s.write("in.melt", re.sub(r"(?m)^run.*", "dump d all atom 50 melt.dump\nrun 300", open(MELT).read()))
    plain = s.hale_run(2, "lmp", "-in", script)
    expect(plain.status == 0, plain)
    wanted = open(s.path("melt.dump")).read(), lines_of_results(s.path("log.lammps"))
    chance = random.Random(SEED)
    for size in (1, 2) * RUNS:
        for name in ("melt.dump", "log.lammps"):
            os.unlink(s.path(name))
        job = s.hale_start(2, "lmp", "-in", script, options=shadows(size, "--report", "report.json"))
        job.until_output(f"(?m)^ +{chance.randrange(50, 200, 50)} ")
        rank = chance.randrange(2)
        s.hale("inject", "kill", job.id(), "--rank", str(rank), "--slot", "0")
        r = job.wait()
        expect(r.status == 0 and thermo(r.out) == thermo(plain.out) and "roll" not in r.err, r, plain)
        expect(r.out.count("\n") == plain.out.count("\n"), r, plain)
        expect((open(s.path("melt.dump")).read(), lines_of_results(s.path("log.lammps"))) == wanted, r)
        promoted = s.report()["shadows"]["promotions"]
        expect([p["rank"] for p in promoted] == [rank] and promoted[0]["stopped"] == size - 1, promoted)


@test
def a_storm_survives_deaths_of_mains_and_shadows(s):
    exe = s.compile("storm")
    plain = s.hale_run(4, exe, 100)
    expect(plain.status == 0, plain)
    chance = random.Random(SEED + 1)
    for run in range(RUNS + 1):
        # one of each of two sets; on two nodes what is lost comes back
        options = ["--nodes", "2"] if run % 2 else []
        victims = [kill(chance.randrange(2) + first, chance.uniform(0.2, 0.8), chance.randrange(2)) for first in (0, 2)]
        r = s.hale_run(4, exe, 100, options=shadows(2, *options, *victims[0], *victims[1]))
        expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)


@test
def choices_of_a_main_are_those_of_its_shadow(s):
    """The master of `farm` asks for whatever comes first, in all ways; its output says what it has chosen."""
    exe = s.compile("farm")
    chance = random.Random(SEED + 2)
    for run in range(2 * RUNS):
        options = ["--nodes", "2"] if run % 2 else []
        r = s.hale_run(4, exe, 200, options=shadows(4, *options, *kill(0, chance.uniform(0.1, 0.6))))
        done = [int(n) for n in re.findall(r"(?m)^(\d+) done:", r.out)]
        expect(r.status == 0 and done == [50, 100, 150, 200], r)
        words = {name: int(word, 16) for name, word in re.findall(r"(?m)^(all|choices) ([0-9a-f]+)$", r.out)}
        expect(words["all"] == words["choices"] ^ 14695981039346656037, r)


@test
def a_full_log_makes_a_shadow_jump(s):
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 150)
    r = s.hale_run(2, exe, 150, options=["--shadows", "1", "--shadow-rate", "0.05", "--nodes", "2", "--jump-at", "10KiB",
                                         "--report", "report.json"])
    expect(r.status == 0 and r.out == plain.out, r, plain)
    jumps = s.report()["shadows"]["jumps"]
    expect(jumps and all(j["why"] == "log" and j["log_bytes"] > 10240 and j["bytes"] > 0 for j in jumps), jumps)
    expect(all(0 < j["pause_seconds"] <= j["seconds"] for j in jumps), jumps)


@test
def a_second_failure_in_a_vulnerable_set_is_not_survived(s):
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 300)
    job = s.hale_start(2, exe, 300, options=shadows(2, "--rejuvenate-after", "never"))
    job.until_output("round 100:")
    s.hale("inject", "kill", job.id(), "--rank", "0", "--slot", "0")
    job.until(lambda: "goes on as its main" in job.err(), "a promotion")
    ranks = {(r["rank"], r["slot"]): r for r in job.info()["ranks"]}
    expect(ranks[0, 1]["role"] == "main" and ranks[1, 1]["state"] == "lost", ranks)
    expect(all(r["vulnerable"] and r["set"] == 0 for r in ranks.values()), ranks)
    s.hale("inject", "kill", job.id(), "--rank", "1", "--slot", "0")
    r = job.wait()
    expect("main and shadow (2 processes) of rank 1 are dead" in r.err, r)
    expect(r.status in (0, EXIT_UNRECOVERED, 137), r)
    if r.status == 0:  # it has begun again
        expect(r.out == plain.out, r, plain)


@test
def a_lost_node_has_no_main_with_its_shadow(s):
    exe = s.compile("storm")
    plain = s.hale_run(4, exe, 200)
    job = s.hale_start(4, exe, 200, options=shadows(2, "--nodes", "2", "--agent-lost", "end"))
    job.until_output("round 100:")
    places = {(r["rank"], r["slot"]): r["node"] for r in job.info()["ranks"]}
    expect(all(places[rank, 0] != places[rank, 1] for rank in range(4)), places)
    os.kill(agent_of(nodes(s, job)["node1"]["pid"]), signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "node node1 is lost" in r.err and "roll" not in r.err, r, plain)


@test
def what_does_not_go_with_shadows_is_refused(s):
    for options, words in ((["--shadows", "4"], "no more than 2 shadows"), (["--jump-at", "1MiB"], "add --shadows"),
                           (["--shadows", "2", "--sdc", "hash"], "compares what equals send"),
                           (["--shadows", "2", "--replicas", "3"], "don't go together"),
                           (["--shadows", "2", "--shadow-rate", "2"], "from 0.001 to 1"),
                           (["--shadows", "2", "--jump-at", "1MiB"], "give the job 2 nodes"),
                           (["--shadows", "2", "--ckpt-every", "5s"], "checkpoints")):
        r = s.hale_run(2, "/bin/true", options=options)
        expect(r.status == EXIT_USAGE and words in r.err, r)


main()
