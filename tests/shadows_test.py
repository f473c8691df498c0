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
def a_receive_that_was_taken_back_gets_no_later_message(s):
    """The log of a promoted shadow has what its main got when it had cancelled a receive from any source."""
    exe = s.compile("cancels")
    plain = s.hale_run(2, exe, 200, 3000)
    expect(plain.status == 0 and plain.out.startswith("sum "), plain)
    for after in (0.3, 0.5):
        r = s.hale_run(2, exe, 200, 3000, options=["--shadows", "1", "--shadow-rate", "0.1", *kill(0, after)])
        expect(r.status == 0 and r.out == plain.out and "goes on as its main" in r.err, r, plain)


@test
def a_full_log_makes_a_shadow_jump(s):
    """On its main's node and on another, and nobody is vulnerable meanwhile."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 150)
    for nodes in ([], ["--nodes", "2"]):
        r = s.hale_run(2, exe, 150, options=["--shadows", "1", "--shadow-rate", "0.05", *nodes, "--jump-at", "10KiB",
                                             "--report", "report.json"])
        expect(r.status == 0 and r.out == plain.out, r, plain)
        report = s.report()
        jumps = report["shadows"]["jumps"]
        expect(jumps and all(j["why"] == "log" and j["log_bytes"] > 10240 for j in jumps), jumps)
        expect(all(0 < j["pause_seconds"] <= j["seconds"] for j in jumps), jumps)
        expect(all(j["same_bytes"] > 0 and j["bytes"] > 0 for j in jumps), jumps)
        expect(report["replicas"]["lost"] == 0 and report["shadows"]["promotions"] == [], report)
        expect(all(c["vulnerable_seconds"] == 0 for c in report["clones"]), report["clones"])


@test
def a_full_log_stops_nobody_but_its_main(s):
    """Of three ranks, near and far: all jump, one pair after the other. HALE_JUMP_ALONE=0: all stop."""
    exe = s.compile("storm")
    plain = s.hale_run(3, exe, 600)
    for nodes in ([], ["--nodes", "2"]):
        for env in ({}, {"HALE_JUMP_ALONE": "0"}):
            r = s.hale_run(3, exe, 600, options=["--shadows", "1", "--shadow-rate", "0.05", *nodes, "--jump-at", "10KiB",
                                                 "--report", "report.json"], env=env)
            expect(r.status == 0 and r.out == plain.out, r, plain)
            expect(("its main alone stood still" in r.err) == (not env), r)
            report = s.report()
            expect(len({j["rank"] for j in report["shadows"]["jumps"]}) == 3 and report["replicas"]["lost"] == 0, report)


@test
def choices_survive_the_jump_of_their_rank(s):
    """The master of `farm` decides all the time, also while it jumps; then it dies."""
    exe = s.compile("farm")
    chance = random.Random(SEED + 5)
    for run in range(2 * RUNS + 2):
        options = ["--nodes", "2"] if run % 2 else []
        r = s.hale_run(4, exe, 400, options=["--shadows", "1", "--shadow-rate", "0.1", "--jump-at", "16KiB", *options,
                                             *kill(0, chance.uniform(0.3, 1.0))])
        done = [int(n) for n in re.findall(r"(?m)^(\d+) done:", r.out)]
        expect(r.status == 0 and done == list(range(50, 401, 50)) and "roll" not in r.err, r)
        words = {name: int(word, 16) for name, word in re.findall(r"(?m)^(all|choices) ([0-9a-f]+)$", r.out)}
        expect(words["all"] == words["choices"] ^ 14695981039346656037, r)


@test
def what_main_and_shadow_have_alike_does_not_travel(s):
    """32 MiB that are written once, and 2 MiB that change in every step."""
    exe = s.compile("stencil")
    plain = s.hale_run(2, exe, 2, 20000, 32, 1000)
    for nodes in ([], ["--nodes", "2"]):
        r = s.hale_run(2, exe, 2, 20000, 32, 1000, options=["--shadows", "1", "--shadow-rate", "0.3", *nodes, "--jump-at", "64KiB",
                                                     "--report", "report.json"])
        expect(r.status == 0 and r.out == plain.out, r, plain)
        jumps = s.report()["shadows"]["jumps"]
        expect(jumps and min(j["bytes"] for j in jumps) < 16 << 20, jumps, r)
        expect(all(j["same_bytes"] > 24 << 20 for j in jumps[1:]), jumps)


def rows(job):
    return {(r["rank"], r["slot"]): r for r in (job.info() or {"ranks": []})["ranks"]}


def shadow_of(job, rank):
    """pid of its shadow, while main and shadow run."""
    of = [r for r in rows(job).values() if r["rank"] == rank and r["state"] == "running" and r["pid"] > 0]
    return len(of) == 2 and next(r["pid"] for r in of if r["role"] == "shadow")


@test
def whoever_dies_in_a_jump_the_rank_lives_on(s):
    """The main, the shadow, or one of another rank: until the copy is whole the shadow is what it was."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 250)
    chance = random.Random(SEED + 3)
    for run in range(4 * RUNS + 4):
        nodes = ["--nodes", "2"] if run % 8 < 4 else []
        job = s.hale_start(2, exe, 250, options=["--shadows", "1", "--shadow-rate", "0.05", *nodes, "--jump-at", "10KiB"])
        job.until(lambda: "; it jumps" in job.err(), "a jump begins")
        rank = int(re.search(r"rank (\d): the log of its shadow has .*; it jumps", job.err()).group(1))
        time.sleep(chance.uniform(0, 0.15))
        found = rows(job)
        of = rank if run % 4 < 2 else 1 - rank
        victim = [r for r in found.values() if r["rank"] == of and r["role"] == ("shadow" if run % 2 else "main")]
        if victim and victim[0]["pid"] > 0:
            try:
                os.kill(victim[0]["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass  # its jump was faster
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)


@test
def a_failure_makes_the_others_jump(s):
    """All wait for who was promoted; meanwhile shadows of other sets get the states of their mains."""
    exe = s.compile("storm")
    plain = s.hale_run(4, exe, 800)
    job = s.hale_start(4, exe, 800, options=["--shadows", "2", "--shadow-rate", "0.05", "--rejuvenate-after", "never",
                                             "--report", "report.json"])
    job.until_output("round 100:")
    time.sleep(1)
    s.hale("inject", "kill", job.id(), "--rank", "0", "--slot", "0")
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)
    jumps = s.report()["shadows"]["jumps"]
    expect({j["rank"] for j in jumps} == {2, 3} and {j["why"] for j in jumps} == {"failure"}, jumps)


@test
def on_one_node_the_missing_come_back(s):
    """Main and stopped shadows of a set, in turn; then the next one may die."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 400)
    job = s.hale_start(2, exe, 400, options=shadows(2, "--report", "report.json"))
    for k, rank in enumerate((0, 1)):
        job.until(lambda: shadow_of(job, 0) and shadow_of(job, 1), "both ranks have main and shadow")
        os.kill(rows(job)[rank, 0]["pid"], signal.SIGKILL)
        job.until(lambda: job.err().count(" goes on as its main") == k + 1, "a promotion")
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)
    expect(r.err.count(" is back, on node ") >= 2, r)


@test
def sets_that_lack_a_node_for_good_join_others(s):
    """Figure 6: the node of main 1 is lost; it goes on where its set's shadows ran, and both shadows join other sets."""
    exe = s.compile("storm")
    plain = s.hale_run(6, exe, 400)
    job = s.hale_start(6, exe, 400, options=["--shadows", "2", "--shadow-rate", "0.1", "--nodes", "6", "--agent-lost", "end",
                                             "--report", "report.json"])
    job.until(lambda: all(shadow_of(job, r) for r in range(6)), "all run")
    where = {key: (r["node"], r["set"]) for key, r in rows(job).items()}
    expect(where[1, 0] == ("node1", 0) and where[1, 1] == ("node2", 0) and where[0, 0] == ("node0", 0), where)
    os.kill(agent_of(nodes(s, job)["node1"]["pid"]), signal.SIGKILL)
    job.until(lambda: job.err().count("lacks a core for good") == 2, "the set is dissolved")
    job.until(lambda: all(shadow_of(job, r) for r in range(6)), "all have shadows again")
    where = {key: (r["node"], r["set"], r["role"]) for key, r in rows(job).items()}
    expect(where[0, 0] == ("node0", 1, "main") and where[0, 1] == ("node4", 1, "shadow"), where)
    expect(where[1, 1] == ("node2", 2, "main") and where[1, 2] == ("node0", 2, "shadow"), where)
    expect(not any(r["vulnerable"] for r in rows(job).values()), rows(job))
    os.kill(rows(job)[1, 1]["pid"], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "roll" not in r.err, r, plain)
    report = s.report()["shadows"]
    expect(report["sets"] == 2 and [p["rank"] for p in report["promotions"]] == [1, 1], report)


@test
def a_second_failure_goes_back_to_a_checkpoint(s):
    """Main and shadow of a rank die: the mains are stored, their shadows come as copies. Also restarted."""
    exe = s.compile("storm")
    plain = s.hale_run(4, exe, 400)
    job = s.hale_start(4, exe, 400, options=shadows(2, "--nodes", "2", "--report", "report.json"))
    job.until(lambda: all(shadow_of(job, r) for r in range(4)), "all run")
    path = job.checkpoint()
    job.until(lambda: all(shadow_of(job, r) for r in range(4)), "all run")
    for pid in [r["pid"] for r in rows(job).values() if r["rank"] == 1]:
        os.kill(pid, signal.SIGKILL)
    job.until(lambda: "all ranks run again from checkpoint" in job.err(), "a rollback")
    job.until(lambda: all(shadow_of(job, r) for r in range(4)), "all have shadows again")
    os.kill(rows(job)[2, 0]["pid"], signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "goes on as its main" in r.err, r, plain)
    expect(s.report()["restarts"] == 1, r)
    r = s.hale("restart", path, "--report", "again.json")
    expect(r.status == 0 and plain.out.endswith(r.out) and r.out, r, plain)
    expect(s.report("again.json")["shadows"]["set_size"] == 2 and "goes on as" not in r.err, r)


@test
def a_shadow_that_is_far_behind_is_not_waited_for(s):
    """The newest checkpoint is younger than what it has to catch up: all go back."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 1200)
    job = s.hale_start(2, exe, 1200, options=["--shadows", "2", "--shadow-rate", "0.02", "--jump-at", "off", "--report", "report.json"])
    job.until(lambda: all(shadow_of(job, r) for r in range(2)), "all run")
    job.until(lambda: all("rate" in r for r in rows(job).values() if r["role"] == "shadow"), "the shadows' speeds are known")
    job.until(lambda: (job.info() or {"seconds": 0})["seconds"] > 2.5, "the shadows are behind")
    job.checkpoint()
    s.hale("inject", "kill", job.id(), "--rank", "0", "--slot", "0")
    r = job.wait()
    expect(r.status == 0 and r.out == plain.out and "all are there sooner" in r.err, r, plain)
    report = s.report()
    expect(report["restarts"] == 1 and report["shadows"]["promotions"] == [], report)


@test
def a_log_without_room_for_a_message_takes_one_at_a_time(s):
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 60)
    r = s.hale_run(2, exe, 60, options=shadows(1, "--jump-at", "off", *kill(0, 0.3)),
                   env={"HALE_SHADOW_LOG": "1KiB", "HALE_RETAIN_MAX": "1MiB"})
    expect(r.status == 0 and r.out == plain.out, r, plain)
    expect(r.err.count("the log of its shadow is full") == 1 and "--jump-at off" in r.err, r)


def pids_in(folder):
    with open(os.path.join(folder, "cgroup.procs")) as f:
        return {int(line) for line in f}


@test
def control_groups_hold_shadows_back_where_they_can(s):
    """Version 1 or 2, in a group made for this test; a promoted shadow is in the group of mains."""
    exe = s.compile("storm")
    plain = s.hale_run(2, exe, 1500)
    options = ["--shadows", "2", "--rejuvenate-after", "never", "--report", "report.json"]
    if os.cpu_count() > 2:
        skip("the shadows have a core of their own here")
    r = s.hale_run(2, exe, 800, options=options, env={"HALE_CGROUP": "off"})
    expect(r.status == 0 and "no control group can be made for shadows" in r.err, r)
    expect(s.report()["shadows"]["speed"]["held_by"] == "sleep", s.report()["shadows"])
    parents = [p for p in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup") if os.path.exists(p + "/cgroup.procs")]
    group = os.path.join(parents[0], f"hale-test.{os.getpid()}") if parents else ""
    try:
        os.mkdir(group)
    except OSError as e:
        skip(f"no control group can be made: {e}")
    try:
        job = s.hale_start(2, exe, 1500, options=options, env={"HALE_CGROUP": group})
        job.until(lambda: shadow_of(job, 0) and shadow_of(job, 1), "all run")
        inside = {name: os.path.join(group, f"hale.{job.id()}.0.{name}") for name in ("mains", "shadows")}
        found = rows(job)
        job.until(lambda: pids_in(inside["shadows"]) == {found[0, 1]["pid"], found[1, 1]["pid"]}, "shadows are in their group")
        expect(pids_in(inside["mains"]) == {found[0, 0]["pid"], found[1, 0]["pid"]}, found)
        weights = [int(open(os.path.join(inside[name], file)).read()) for name in inside for file in ("cpu.shares", "cpu.weight")
                   if os.path.exists(os.path.join(inside[name], file))]
        expect(len(weights) == 2 and weights[0] > weights[1], weights)
        job.until(lambda: all(rows(job)[r, 1].get("rate") for r in (0, 1)), "speeds are known")
        s.hale("inject", "kill", job.id(), "--rank", "0", "--slot", "0")
        job.until(lambda: found[0, 1]["pid"] in pids_in(inside["mains"]), "the promoted one is in the group of mains")
        r = job.wait()
        expect(r.status == 0 and r.out == plain.out and "no control group" not in r.err, r, plain)
        speed = s.report()["shadows"]["speed"]
        expect(speed["held_by"] == "weight" and 0 < speed["core_share"] <= 1.05, speed)
        expect(os.listdir(group) and not [n for n in os.listdir(group) if n.startswith("hale.")], os.listdir(group))
    finally:
        for name in os.listdir(group):
            if name.startswith("hale."):
                os.rmdir(os.path.join(group, name))
        os.rmdir(group)


@test
def energy_is_modelled_and_measured_where_it_can_be(s):
    exe = s.compile("storm")
    meter = s.path("intel-rapl:0")
    os.makedirs(meter)
    os.makedirs(meter + ":0")
    for folder in (meter, meter + ":0"):
        for name, value in (("energy_uj", 1000000), ("max_energy_range_uj", 262143328850)):
            with open(os.path.join(folder, name), "w") as f:
                f.write(f"{value}\n")
    job = s.hale_start(2, exe, 300, options=shadows(2, "--report", "report.json"), env={"HALE_POWERCAP": s.path()})
    job.until(lambda: "energy" in (job.info() or {}), "energy is known")
    with open(os.path.join(meter, "energy_uj"), "w") as f:
        f.write("3500000\n")
    job.until(lambda: s.hale("ps", job.id(), "--shadows").out.count("energy, ") == 2, "both kinds are shown")
    r = job.wait()
    expect(r.status == 0, r)
    e = s.report()["shadows"]["energy"]
    expect(abs(e["measured"]["joules"] - 2.5) < 1e-6, e)
    m = e["modelled"]
    expect(0 < m["shadows"] < m["mains"] < m["twins"] == 2 * m["mains"], m)


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
def a_job_ends_whose_last_process_is_a_stopped_shadow(s):
    """The other three die while their agent stands still: the fourth is stopped, and that is told last."""
    job = s.hale_start(2, s.compile("storm"), 3000, options=shadows(2, "--rejuvenate-after", "never", "--ckpt-every", "off"))
    job.until_output("round 100:")
    agent = agent_of(list(nodes(s, job).values())[0]["pid"])
    pids = [rows(job)[rank, slot]["pid"] for rank, slot in ((0, 0), (1, 0), (0, 1))]
    os.kill(agent, signal.SIGSTOP)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    job.until(lambda: not any(alive(pid) for pid in pids), "all to have died")
    os.kill(agent, signal.SIGCONT)
    r = job.wait()
    expect("main and shadow (2 processes) of rank 1 are dead" in r.err, r)
    expect(r.status in (EXIT_UNRECOVERED, 137), r)


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
                           (["--shadows", "2", "--sdc", "full"], "compares what equals send")):
        r = s.hale_run(2, "/bin/true", options=options)
        expect(r.status == EXIT_USAGE and words in r.err, r)


main()
