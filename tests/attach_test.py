#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The job survives its head: `hale run --head-grace`, `hale attach`. Heads are killed and stopped at
any moment, on one node, over nodes of this machine, over hosts (namespaces.py); every line is printed
once, over all heads together, and a head that has a successor never commands anybody again."""

from adopt_parts import preload
from attach_parts import *
from namespaces import Hosts

# ---- it goes on ----

@test
def a_job_goes_on_under_a_new_head(s):
    one = start(s, "--ckpt-every", "300ms")
    one.until(lambda: s.complete(), "a checkpoint")
    before = rank_pids(s, one.name)
    kill_head(s, one)
    two = attach(s, one)
    goes_on(two, one)
    expect(rank_pids(s, one.name) == before, "the ranks are the same processes")
    r = s.hale("ckpt", one.name)
    expect(r.status == 0, r)
    report = end(s, one, two)
    expect(report["restarts"] == 0 and report["exit"] == 0, report)
    ids = [c["id"] for c in report["checkpoints"]]
    expect(ids[0] == 1 and ids == sorted(set(ids)), "checkpoints of both heads", ids)
    expect(report["wall_seconds"] > report["checkpoints"][-1]["at_seconds"] > 0, report)


@test
def lines_have_their_time_and_rank_under_the_new_head(s):
    job = s.hale_start(2, "/bin/sh", "-c", "until [ -e go ]; do sleep 0.1; done; echo said",
                       options=["--no-mpi", "--timestamp-output", "--tag", "--head-grace", "1min"])
    job.name = job.id()
    job.ranks(2)
    kill_head(s, job)
    two = attach(s, job)
    s.write("go", "")
    r = two.wait()
    expect(r.status == 0 and re.fullmatch(r"(\d{4}-\d\d-\d\dT[0-9:.]+ \[[01]\] said\n){2}", r.out), r)


@test
def checkpoints_and_rollbacks_work_under_the_new_head(s):
    one = start(s, "--ckpt-every", "300ms")
    one.until(lambda: s.complete(), "a checkpoint")
    os.kill(rank_pids(s, one.name)[1], signal.SIGKILL)
    one.until_says("all ranks run again")
    kill_head(s, one)
    two = attach(s, one)
    os.kill(rank_pids(s, one.name)[2], signal.SIGKILL)
    two.until_says("all ranks run again")
    kill_head(s, two)
    three = attach(s, two)
    goes_on(three, one, two)
    report = end(s, one, two, three)
    expect(report["restarts"] == 2 and [f["rank"] for f in report["failures"]] == [1, 2], report)


@test
def nodes_of_this_machine_go_on_and_migrate(s):
    one = start(s, "--nodes", "2", "--spares", "1", "--ckpt-every", "300ms")
    one.until(lambda: s.complete(), "a checkpoint")
    kill_head(s, one)
    two = attach(s, one)
    goes_on(two, one)
    r = s.hale("migrate", one.name, "--from", "node1")
    expect(r.status == 0 and "moved from node1 to node2" in r.out, r)
    kill_head(s, two)
    three = attach(s, two)
    goes_on(three, one, two)
    os.kill(agents(s, three)["node0"]["pid"], signal.SIGKILL)
    three.until_says("node node0 is lost")
    three.until_says("all ranks run again")
    goes_on(three, one, two)
    report = end(s, one, two, three)
    expect(len(report["migrations"]) == 1 and report["restarts"] == 1, report)


@test
def heads_are_killed_at_any_moment(s):
    """Much output, checkpoints, ranks that are killed, too: SEED draws when."""
    one = start(s, "--nodes", "2", "--ckpt-every", "100ms", "--max-restarts", "1000", ms=1)
    heads = heads_killed_at_random(s, one, 0.6, random.Random(SEED))
    end(s, *heads)


@test
def what_happens_without_a_head_is_seen_by_the_next_one(s):
    """A rank is killed; one ends badly; all end well."""
    one = start(s, "--ckpt-every", "300ms")
    one.until(lambda: s.complete(), "a checkpoint")
    pids = rank_pids(s, one.name)
    kill_head(s, one)
    os.kill(pids[3], signal.SIGKILL)
    two = attach(s, one, says="rank 3 .* was killed by signal 9")
    goes_on(two, one)
    kill_head(s, two)
    s.write("stop", "")
    time.sleep(1)
    three = attach(s, two, says=None)
    end(s, one, two, three)
    os.unlink(s.path("report.json"))
    job = s.hale_start(2, "sh", "-c", "echo here; while [ ! -e go ]; do sleep 0.05; done; echo end; "
                       "exit 7", options=["--no-mpi", *GRACE])
    job.until_output("here\nhere")
    job.name = job.id()
    kill_head(s, job)
    s.write("go", "")
    time.sleep(0.5)
    r = attach(s, job, says=None).wait()
    expect(r.status == 7 and r.out.count("end") >= 1 and "here" not in r.out, r)
    expect(s.report()["exit"] == 7, s.report())


@test
def input_goes_on(s):
    """A file is read on; of a pipe what was read and not handed on is kept, and the new head's own
    input follows."""
    lines = "".join(f"line {k}\n" for k in range(40000))
    s.write("input.txt", lines)
    slow = "import sys,time\nfor k, x in enumerate(sys.stdin):\n" \
           "    print(x, end='', flush=k % 500 == 0)\n" \
           "    if k % 500 == 0: time.sleep(0.02)\n"
    s.write("slow.py", slow)
    with open(s.path("input.txt")) as f:
        job = s.hale_start(1, PYTHON, s.path("slow.py"), options=["--no-mpi", *GRACE], stdin=f)
    job.until_output("line 2000$")
    job.name = job.id()
    kill_head(s, job)
    two = attach(s, job, says=None)
    r = two.wait()
    expect(r.status == 0 and job.out() + r.out == lines, f"{len(job.out() + r.out)} of {len(lines)}")
    read, write = os.pipe()
    job = s.hale_start(1, PYTHON, s.path("slow.py"), options=["--no-mpi", *GRACE], stdin=read)
    os.close(read)
    os.write(write, lines[:60000].encode())
    job.until_output("line 2000$")
    job.name = job.id()
    kill_head(s, job)
    s.write("rest.txt", lines[60000:])
    with open(s.path("rest.txt")) as f:
        two = s.start(HALE, "attach", job.name, stdin=f)
    r = two.wait()
    os.close(write)
    expect(r.status == 0 and job.out() + r.out == lines, f"{len(job.out() + r.out)} of {len(lines)}",
           r.err)


# ---- it does not ----

@test
def after_the_grace_the_ranks_end(s):
    for nodes in ("1", "2"):
        shutil.rmtree(s.path("hale-ckpt"), ignore_errors=True)
        one = start(s, "--nodes", nodes, "--ckpt-every", "300ms", "--head-grace", "1s")
        one.until(lambda: s.complete(), "a checkpoint")
        pids = rank_pids(s, one.name)
        one.kill()
        one.wait()
        until(lambda: one.name not in jobs(s), "hale ps does not list it any more")
        until(lambda: not any(alive(p) for p in pids.values()),
              "the ranks end")
        s.until_nothing_runs()
        said = [e for e in record(s) if e["event"] == "node ended"]
        expect(len(said) == int(nodes) and "no head has come for 1 s" in said[0]["why"], record(s))
        expect(any(e["event"] == "head lost" for e in record(s)), record(s))
        r = s.hale("attach", one.name)
        expect(r.status == EXIT_UNRECOVERED and "nothing is left" in r.err, r)
        s.write("stop", "")
        r = s.hale("restart", glob.glob(s.path("hale-ckpt/*"))[0])
        expect(r.status == 0 and "done" in r.out, r)
        os.unlink(s.path("stop"))


@test
def who_may_not_attach_is_told_why(s):
    one = start(s)
    r = s.hale("attach", one.name)
    expect(r.status == EXIT_USAGE and "has a head that answers" in r.err, r)
    for args, why in ((["nobody.1"], "no job 'nobody.1' waits"), (["/nowhere/x"], "no job"),
                      ([], "there is not exactly one"), (["a", "b"], "takes a job"),
                      (["--force"], "not exactly one")):
        r = s.hale("attach", *args)
        expect(r.status == EXIT_USAGE and why in r.err, r)
    os.mkdir(s.path("hale-ckpt/plain"))
    r = s.hale("attach", "hale-ckpt/plain")
    expect(r.status == EXIT_USAGE and "not the folder of a job that waits" in r.err, r)
    r = s.hale_run(1, "/bin/true", options=["--head-grace", "-3s"])
    expect(r.status == EXIT_USAGE and "--head-grace takes a time" in r.err, r)
    kill_head(s, one)
    r = s.hale("ckpt", one.name)
    expect(r.status == 1 and "has no head now; `hale attach" in r.err, r)
    r = s.hale("ps")
    mine = r.out.partition(one.name)[2].partition("\n")  # its ranks would follow, and others' jobs may
    expect(f"4 ranks; `hale attach {one.name}` gives it a new head" in mine[0] and
           not mine[2].startswith("  rank"), r)
    # from another network namespace the agents can't be reached
    if os.getuid() == 0 and shutil.which("unshare"):
        folder = glob.glob(s.path("hale-ckpt/steps*"))[0]
        r = s.run("unshare", "--net", HALE, "attach", folder)
        expect(r.status == EXIT_USAGE and "a head for them has to be there" in r.err, r)
    # damaged
    path = glob.glob(s.path("hale-ckpt/steps*/head.1.json"))[0]
    whole = s.read(path)
    s.write(path, whole[: len(whole) // 2])
    r = s.hale("attach", one.name)
    expect(r.status == EXIT_USAGE and "damaged" in r.err, r)
    s.write(path, whole)
    os.rmdir(s.path("hale-ckpt/plain"))
    two = attach(s, one)
    end(s, one, two)


@test
def of_two_that_attach_at_once_one_gets_the_job(s):
    one = start(s)
    kill_head(s, one)
    both = [attach(s, one, says=None) for _ in range(2)]
    until(lambda: any(not b.running() for b in both) or
          sum("has a head again" in b.err() for b in both) == 2, "one of them gives up")
    until(lambda: any(not b.running() for b in both), "one of them gives up")
    loser = next(b for b in both if not b.running())
    winner = next(b for b in both if b is not loser)
    r = loser.result()
    expect(r.status in (EXIT_USAGE, EXIT_SUPERSEDED), r)
    expect("just taking over" in r.err or "has a newer head" in r.err or "has a head that" in r.err,
           r)
    goes_on(winner, one, loser)
    end(s, one, loser, winner)


@test
def one_that_ends_as_the_next_one_comes_leaves_word_of_what_is_printed(s):
    """It sees the next one's record, and is gone before that one asks its output daemon."""
    one = start(s)
    kill_head(s, one)
    two = attach(s, one)
    goes_on(two, one)
    folder = glob.glob(s.path("hale-ckpt/*/head.2.json"))[0]
    shutil.copy(folder, folder.replace("head.2.", "head.3."))
    r = s.hale("ckpt", one.name)  # it looks into the folder now
    expect(r.status != 0, r)
    r = two.wait()
    expect(r.status == EXIT_SUPERSEDED, r)
    three = attach(s, one, "--force")
    goes_on(three, one, two)
    expect("may come twice" not in three.err(), three.result())
    end(s, one, two, three)


@test
def an_output_daemon_that_is_slow_to_answer_is_waited_for(s):
    """For longer than other questions are, and than a lease; no node is lost for it, and nothing comes twice."""
    one = start(s, "--nodes", "2", "--node-timeout", "2s", "--ckpt-every", "300ms", ms=2)
    one.until(s.complete, "a checkpoint")
    daemon = next(p for p in children(one.pid) if "hale-output" in s_comm(p))
    os.kill(daemon, signal.SIGSTOP)
    time.sleep(0.1)
    one.kill()
    one.wait()
    two = s.start(HALE, "attach", glob.glob(s.path("hale-ckpt/steps*"))[0])
    two.name = one.name
    time.sleep(4)
    os.kill(daemon, signal.SIGCONT)
    two.until_says("has a head again")
    goes_on(two, one)
    expect("may come twice" not in two.err(), two.err())
    report = end(s, one, two)
    expect(report["restarts"] == 0 and report["failures"] == [], report)


@test
def a_head_that_dies_before_its_output_daemon_has_begun_leaves_word_of_what_is_printed(s):
    """The one before has been let go by then."""
    env = preload(s)
    one = start(s, ms=2)
    daemon = next(p for p in children(one.pid) if "hale-output" in s_comm(p))
    kill_head(s, one)
    s.write("deaths/slow-fork", "")
    two = attach(s, one, says=None, env={**env, "HALE_DIES_HEAD": "1"})
    until(lambda: not alive(daemon), "the old output daemon is let go")
    two.kill()
    two.wait()
    os.unlink(s.path("deaths/slow-fork"))
    until(lambda: jobs(s).get(one.name, {}).get("state") == "headless", "hale ps: headless")
    three = attach(s, one)
    goes_on(three, one, two)
    expect("may come twice" not in three.err(), three.err())
    end(s, one, two, three)


# ---- two heads ----

@test
def a_stopped_head_finds_that_it_is_one_no_longer(s):
    for options in ([], ["--nodes", "2", "--node-timeout", "4s"]):
        one = start(s, "--ckpt-every", "200ms", *options)
        one.until(lambda: s.complete(), "a checkpoint")
        one.kill(signal.SIGSTOP)
        if options:
            until_still(s)
        two = attach(s, one)
        goes_on(two, one)
        before = rank_pids(s, one.name)
        one.kill(signal.SIGCONT)
        r = one.wait()
        expect(r.status == EXIT_SUPERSEDED and "has a newer head (number 2" in r.err, r)
        goes_on(two, one)
        expect(rank_pids(s, one.name) == before, "the old head has ended ranks")
        report = end(s, one, two)
        expect(report["restarts"] == 0, report)
        shutil.rmtree(s.path("hale-ckpt"))


@test
def a_living_head_is_replaced_by_force(s):
    one = start(s, ms=1)
    two = attach(s, one, "--force")
    r = one.wait()
    expect(r.status == EXIT_SUPERSEDED, r)
    goes_on(two, one)
    end(s, one, two)


@test
def a_head_that_stood_still_for_less_than_the_grace_goes_on(s):
    """Nobody has come meanwhile: no rank was ended, none runs twice."""
    one = start(s, "--nodes", "2", "--node-timeout", "4s")
    pids = rank_pids(s, one.name)
    one.kill(signal.SIGSTOP)
    until_still(s)
    one.kill(signal.SIGCONT)
    goes_on(one)
    expect(rank_pids(s, one.name) == pids, "ranks were started again")
    expect(end(s, one)["failures"] == [], s.report())


# ---- in the middle of something ----

@test
def in_the_middle_of_a_checkpoint(s):
    """It is given up: the ranks that stand still for it go on without a head."""
    one = start(s, "--nodes", "2")
    pids = rank_pids(s, one.name)
    os.kill(pids[3], signal.SIGSTOP)
    ckpt = s.start(HALE, "ckpt", one.name)
    one.until(lambda: glob.glob(s.path("hale-ckpt/*/1.tmp/rank-0.img")) or
              jobs(s)[one.name]["state"] == "checkpointing", "the checkpoint has begun")
    time.sleep(0.3)
    kill_head(s, one)
    expect(ckpt.wait().status == 1, ckpt.result())
    os.kill(pids[3], signal.SIGCONT)
    two = attach(s, one)
    goes_on(two, one)
    expect(not glob.glob(s.path("hale-ckpt/*/*.tmp")), "half a checkpoint is left")
    r = s.hale("ckpt", one.name)
    expect(r.status == 0, r)
    end(s, one, two)


@test
def in_the_middle_of_a_rollback(s):
    rng = random.Random(SEED)
    for nodes in ("1", "2", "2"):
        one = start(s, "--nodes", nodes, "--ckpt-every", "200ms")
        one.until(lambda: s.complete(), "a checkpoint")
        os.kill(rank_pids(s, one.name)[1], signal.SIGKILL)
        one.until_says("rolling back")
        time.sleep(rng.uniform(0, 0.08))
        kill_head(s, one)
        two = attach(s, one, says="all ranks run again|has a head again")
        goes_on(two, one)
        report = end(s, one, two)
        expect(len(report["failures"]) == 1 and report["restarts"] in (1, 2), report)
        shutil.rmtree(s.path("hale-ckpt"))


def at_the_program(s):
    """How many processes execute it."""
    found = 0
    for pid in children(os.getpid()):
        try:
            found += os.readlink(f"/proc/{pid}/exe") == s.path("steps")
        except OSError:
            pass
    return found


@test
def in_the_middle_of_a_migration(s):
    """Before any copy may run it is taken back; ranks stay where they are, and can move later."""
    one = start(s, "--nodes", "2", "--spares", "1")  # a checkpoint under way would wait for who is held
    pids = rank_pids(s, one.name)
    for held in (2, 0):  # one that moves, in a round ahead; one that stays, in the stop
        os.kill(pids[held], signal.SIGSTOP)
        move = s.start(HALE, "migrate", one.name, "--from", "node1")
        until(lambda: json.loads(s.read(glob.glob(s.path("hale-ckpt/*/head.*.json"))[-1]))
              ["moving_from"] == 1 or not move.running(), "the migration has begun")
        until(lambda: not move.running() or at_the_program(s) > 4, "the copies are started")
        time.sleep(0.5)
        head = s.jobs[0] if held == 2 else two
        kill_head(s, head)
        expect(move.wait().status == 1, move.result())
        os.kill(pids[held], signal.SIGCONT)
        if held == 2:
            two = attach(s, one, says="stay there: its head has ended meanwhile")
            goes_on(two, one)
        else:
            three = attach(s, two, says="stay there: its head has ended meanwhile")
            goes_on(three, one, two)
        expect(rank_pids(s, one.name) == pids, "the ranks have stayed")
    r = s.hale("migrate", one.name, "--from", "node1")
    expect(r.status == 0, r, three.err())
    report = end(s, *[j for j in s.jobs if "ckpt" not in j.argv and "migrate" not in j.argv])
    expect(len(report["migrations"]) == 1, report)


@test
def at_any_moment_of_migrations(s):
    rng = random.Random(SEED)
    heads = [start(s, "--nodes", "2", "--spares", "1", "--ckpt-every", "200ms", "--max-restarts",
                   "1000")]
    heads[0].until(lambda: s.complete(), "a checkpoint")
    for k in range(12 if LONG else 4):
        full = [n for n, v in agents(s, heads[-1]).items() if v["ranks"]]
        move = s.start(HALE, "migrate", heads[0].name, "--from", rng.choice(full))
        time.sleep(rng.uniform(0.05, 0.5))
        kill_head(s, heads[-1])
        move.wait()
        heads.append(attach(s, heads[-1], says="has a head again|all ranks run again"))
        goes_on(heads[-1], *heads)
    end(s, *heads)


@test
def a_node_is_lost_while_there_is_no_head(s):
    one = start(s, "--nodes", "2", "--spares", "1", "--ckpt-every", "200ms", "--node-timeout", "1s")
    one.until(lambda: s.complete(), "a checkpoint")
    agent = agents(s, one)["node1"]["pid"]
    kill_head(s, one)
    os.kill(agent, signal.SIGKILL)
    two = attach(s, one, says="node node1 is lost")
    two.until_says("all ranks run again")
    goes_on(two, one)
    report = end(s, one, two)
    expect(report["restarts"] == 1 and report["failures"][0]["node"] == "node1", report)


@test
def the_process_that_prints_is_killed(s):
    one = start(s)
    daemon = [p for p in children(one.pid) if "hale-output" in s_comm(p)]
    expect(len(daemon) == 1, daemon)
    os.kill(daemon[0], signal.SIGKILL)
    one.until_says("the process that writes the job's output was killed")
    goes_on(one)
    kill_head(s, one)
    two = attach(s, one)
    goes_on(two, one)
    s.write("stop", "")
    expect(two.wait().status == 0, two.result())


# ---- hosts ----

@test
def over_hosts_a_new_head_finds_the_agents(s):
    with Hosts(s, 3) as hosts:
        one = host_job(s, hosts, "--spares", "1", "--ckpt-every", "300ms", "--node-timeout", "4s")
        one.until(lambda: s.complete(), "a checkpoint")
        kill_head(s, one, hosts.hale)
        two = host_attach(s, hosts, one)
        goes_on(two, one)
        kill_head(s, two, hosts.hale)
        until_still(s)
        three = host_attach(s, hosts, two)
        goes_on(three, one, two)
        r = hosts.hale("migrate", one.name, "--from", hosts.address(1))
        expect(r.status == 0, r, three.err())
        # without a head one of the nodes is cut off: it stands still, and its ranks go elsewhere
        kill_head(s, three, hosts.hale)
        hosts.cut(2)
        four = host_attach(s, hosts, three, says="is lost")
        four.until_says("all ranks run again")
        hosts.heal(2)
        goes_on(four, one, two, three)
        report = end(s, one, two, three, four)
        until(lambda: not any("agent" in s_comm(p) for p in children(os.getpid())),
              "the agent that was cut off sees in the record that it is to end")
        expect(len(report["migrations"]) == 1 and report["restarts"] == 1, report)


@test
def over_hosts_a_new_head_hears_who_is_cut_off(s):
    with Hosts(s, 3) as hosts:
        one = host_job(s, hosts, "--spares", "1", "--ckpt-every", "300ms", "--node-timeout", "5s",
                       env={"HALE_NET_TIMEOUT": "1"})
        one.until(lambda: s.complete(), "a checkpoint")
        hosts.part(0, 1)
        one.until_says("can't reach rank")
        kill_head(s, one, hosts.hale)
        two = host_attach(s, hosts, one)
        two.until_says("can't reach rank")
        two.until_says(f"node {hosts.address(1)} is cut off")
        two.until_says("all ranks run again")
        goes_on(two, one)
        report = end(s, one, two)
        expect(report["restarts"] == 1 and report["failures"][0]["node"] == hosts.address(1), report)


@test
def over_hosts_a_stopped_head_commands_nobody(s):
    with Hosts(s, 2) as hosts:
        one = host_job(s, hosts, "--ckpt-every", "300ms", "--node-timeout", "4s")
        one.until(lambda: s.complete(), "a checkpoint")
        one.kill(signal.SIGSTOP)
        until_still(s)
        two = host_attach(s, hosts, one)
        goes_on(two, one)
        one.kill(signal.SIGCONT)
        r = one.wait()
        expect(r.status == EXIT_SUPERSEDED and "has a newer head" in r.err, r)
        goes_on(two, one)
        expect(end(s, one, two)["restarts"] == 0, s.report())


@test
def no_more_checkpoints_are_left_than_keep_says(s):
    """The old head could not set the first one aside, and the new one completes none."""
    one = start(s, "--keep", "1")
    folder = os.path.dirname(one.checkpoint())
    os.mkdir(os.path.join(folder, "1.old"))
    open(os.path.join(folder, "1.old", "in-the-way"), "w").close()
    one.checkpoint()
    expect(sorted(map(os.path.basename, s.complete())) == ["1", "2"], s.complete())
    kill_head(s, one)
    two = attach(s, one)
    two.until(lambda: [os.path.basename(c) for c in s.complete()] == ["2"], "the first one is taken away")
    end(s, one, two)
    expect(sorted(os.listdir(folder)) == ["2", "journal", "record.jsonl"], os.listdir(folder))


@test
def a_head_that_dies_in_its_first_checkpoint_leaves_no_half_of_it(s):
    job = s.hale_start(2, steps(s), 0, 20)
    job.until_output("rank 0 step 5 ")
    pids = job.ranks(2)
    os.kill(pids[1], signal.SIGSTOP)
    asked = s.start(HALE, "ckpt", job.id())
    job.until_says("checkpoint 1 waits for rank 1")  # so its agent knows of the folder
    expect(glob.glob(s.path("hale-ckpt/*/1.tmp")), "it has not begun")
    job.kill(signal.SIGKILL)
    job.p.wait()
    asked.wait()
    s.until_nothing_runs()
    expect(not glob.glob(s.path("hale-ckpt/*/*.tmp")), glob.glob(s.path("hale-ckpt/*/*")))


main()
