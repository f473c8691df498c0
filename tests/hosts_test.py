#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over several machines: agents as processes of their own, nodes that are lost, cables that are
cut, spares. Nodes are agents on this machine (--nodes) or network namespaces (namespaces.py)."""

from lib import *
from lib import name_of, parent_of, stat_of
from namespaces import Hosts
from levels_parts import comm
from steps_parts import end, until_told

CKPT = ["--ckpt-every", "300ms", "--report", "report.json", "--node-timeout", "2500ms"]


def nodes(s, job):
    r = s.hale("nodes", job.id(), "--json")
    expect(r.status == 0, r)
    return {n["node"]: n for n in json.loads(r.out)["nodes"]}


def states(s, job):
    return {name: (n["state"], n["ranks"]) for name, n in nodes(s, job).items()}


def expected(s, exe, *args, ranks=4):
    r = s.hale_run(ranks, exe, *args)
    expect(r.status == 0, r)
    return sorted(r.out.splitlines())


def running(pids, exe):
    """Those that execute this program."""
    found = []
    for p in pids:
        try:
            if stat_of(p)[1] not in "ZX" and os.readlink(f"/proc/{p}/exe") == exe:
                found.append(p)
        except (OSError, TypeError):
            pass
    return found


def same(r, wanted):
    expect(r.status == 0 and sorted(r.out.splitlines()) == wanted, r)


@test
def a_killed_supervisor_costs_its_node_and_the_spare_takes_over(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", *CKPT])
    job.until(s.complete, "a checkpoint")
    before = nodes(s, job)
    expect(states(s, job) == {"node0": ("READY", 2), "node1": ("READY", 2), "node2": ("SPARE", 0)},
           before)
    os.kill(before["node1"]["pid"], signal.SIGKILL)
    job.until_says("node node1 is lost")
    job.until(lambda: states(s, job)["node2"] == ("READY", 2), "the spare has the ranks")
    expect(states(s, job)["node1"] == ("LOST", 0), states(s, job))
    end(s, job, rollbacks=1)
    failure = s.report()["failures"][0]
    expect(failure["node"] == "node1" and "node lost" in failure["reason"], failure)
    expect(s.report()["restarts"] == 1, s.report())


@test
def without_a_spare_the_nodes_left_take_more(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", *CKPT])
    job.until(s.complete, "a checkpoint")
    os.kill(nodes(s, job)["node0"]["pid"], signal.SIGKILL)
    job.until(lambda: states(s, job)["node1"] == ("READY", 4), "node1 has all ranks")
    end(s, job, rollbacks=1)


@test
def the_only_node_without_a_checkpoint_ends_the_job(s):
    exe = s.compile("misuse")
    job = s.hale_start(2, exe, "spin")
    ranks = job.ranks(2)
    os.kill(list(nodes(s, job).values())[0]["pid"], signal.SIGKILL)
    r = job.wait()
    expect(r.status == EXIT_UNRECOVERED and "there is no checkpoint to roll back to" in r.err, r)
    expect(not any(os.path.exists(f"/proc/{p}") for p in ranks.values()), "ranks run on")


@test
def a_stopped_agent_is_fenced_by_its_supervisor(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", "--spares", "1", *CKPT])
    job.until(s.complete, "a checkpoint")
    ranks, supervisor = job.ranks(4), nodes(s, job)["node1"]["pid"]
    agent = next(p for p in children(supervisor) if comm(p) == "hale-agent")
    os.kill(agent, signal.SIGSTOP)
    job.until_says("node node1 is lost")
    # before the first of them is started elsewhere none of the old ones is at work
    expect(not any(alive(ranks[r]) for r in (2, 3)),
           "the ranks of the stopped agent still run")
    end(s, job, rollbacks=1)


@test
def a_stopped_supervisor_holds_nothing_up_that_runs(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", *CKPT])
    job.until(s.complete, "a checkpoint")
    supervisor = nodes(s, job)["node1"]["pid"]
    os.kill(supervisor, signal.SIGSTOP)
    time.sleep(3)
    r = s.hale("ckpt", job.id())
    expect(r.status == 0, r)
    os.kill(supervisor, signal.SIGCONT)
    end(s, job)
    expect(s.report()["restarts"] == 0, s.report())


def job_on_a_bad_disk(s, *options, env):
    have("gcc")
    preloaded = s.path("slow_sync.so")
    r = s.run("gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", preloaded,
              os.path.join(ROOT, "tests/programs/slow_sync.c"), "-ldl")
    expect(r.status == 0, r)
    return s.hale_start(4, "env", "-u", "LD_PRELOAD", *until_told(s), options=[*options, *CKPT],
                        env={"LD_PRELOAD": preloaded, **env})


def slow_disk_job(s, *options, ms=6000):
    """Each manifest takes so long to reach the disk, and as long as there is a file "hold"; meanwhile there is a
    file "mark"."""
    return job_on_a_bad_disk(s, *options, env={"SLOW_SYNC": str(ms), "SLOW_SYNC_MARK": s.path("mark"),
                                               "SLOW_SYNC_HOLD": s.path("hold")})


@test
def a_disk_that_stands_still_for_longer_than_a_lease_costs_no_node(s):
    """A process of its own syncs what the head writes: leases are granted meanwhile."""
    job = slow_disk_job(s, "--nodes", "2")
    job.until(lambda: os.path.exists(s.path("mark")) and s.complete(), "a manifest is there, after a while")
    end(s, job)
    report = s.report()
    expect(report["failures"] == [] and any(c["complete"] for c in report["checkpoints"]), report)


@test
def what_is_lost_while_the_disk_stands_still_costs_nothing_else(s):
    """A rank is killed, a node lost, while a manifest is on its way: all go back to that checkpoint
    when it is there, and no other node is lost."""
    for of_node in (False, True):
        s.write("hold", "")  # however long it takes until something is killed
        job = slow_disk_job(s, "--nodes", "2", "--spares", "1", ms=4500)
        pids, agent = job.ranks(4), nodes(s, job)["node1"]["pid"]
        job.until(lambda: os.path.exists(s.path("mark")), "a manifest is on its way")
        os.kill(agent if of_node else pids[2], signal.SIGKILL)
        time.sleep(0.5)
        os.unlink(s.path("hold"))
        job.until_says("rolling back to checkpoint 1", 30)
        end(s, job, rollbacks=1)
        failures = s.report()["failures"]
        expect([f["rolled_back_to"] for f in failures] == [1] and failures[0]["node"] == "node1" and
               ("node lost" in failures[0]["reason"]) == of_node, failures)
        os.unlink(s.path("mark"))


@test
def images_that_take_longer_to_remove_than_a_lease_cost_no_node(s):
    """A process of its own removes them, and the next checkpoint comes after it."""
    job = job_on_a_bad_disk(s, "--nodes", "2", "--keep", "1", env={"SLOW_UNLINK": "1500"})
    gone = s.path("hale-ckpt", job.id(), "1")
    job.until(s.complete, "a checkpoint")
    job.until(lambda: not os.path.exists(gone), "it is not kept")
    expect(os.path.exists(gone + ".old"), "it is removed already", os.listdir(os.path.dirname(gone)))
    job.until(lambda: not os.path.exists(gone + ".old"), "it is removed")
    end(s, job)
    report = s.report()
    expect(report["failures"] == [] and len(report["checkpoints"]) > 1, report)
    left = [x for x in os.listdir(os.path.dirname(gone)) if x.endswith((".old", ".tmp"))]
    expect(not left, left)


@test
def nodes_that_lose_the_head_end_their_ranks(s):
    exe = s.compile("misuse")
    for sig in (signal.SIGKILL, signal.SIGSTOP):
        job = s.hale_start(4, exe, "spin", options=["--nodes", "2", "--node-timeout", "1s"])
        ranks = job.ranks(4)
        job.kill(sig)
        for _ in range(400):
            if not any(alive(p) for p in ranks.values()):
                break
            time.sleep(0.02)
        else:
            raise Failed(f"ranks run on, {sig}\n" + s.process_table())
        if sig == signal.SIGSTOP:
            job.kill(signal.SIGCONT)
            r = job.wait()
            expect(r.status == EXIT_UNRECOVERED, r)
        else:
            job.wait()


@test
def a_job_stands_still_longer_than_the_timeout_and_goes_on(s):
    job = s.hale_start(4, *until_told(s), options=["--nodes", "2", *CKPT])
    job.until_output("rank 3 step 20 ")
    job.kill(signal.SIGTSTP)
    job.until(lambda: stat_of(job.pid)[1] == "T", "hale run stands still")
    time.sleep(3)
    job.kill(signal.SIGCONT)
    end(s, job)
    expect(s.report()["restarts"] == 0, s.report())


@test
def the_spare_dies_too_while_the_job_is_restored_onto_it(s):
    job = s.hale_start(4, *until_told(s, 8), options=["--nodes", "2", "--spares", "2", *CKPT])
    job.until(s.complete, "a checkpoint")
    agents = nodes(s, job)
    os.kill(agents["node1"]["pid"], signal.SIGKILL)
    job.until(lambda: states(s, job)["node2"][1] > 0, "its ranks are to go to node2")
    os.kill(agents["node2"]["pid"], signal.SIGKILL)
    job.until_says("node node2 is lost")
    end(s, job, mib=[8], rollbacks=1)
    expect([f["node"] for f in s.report()["failures"]] == ["node1", "node2"], s.report())


@test
def hosts_are_read_and_refused_by_sentences(s):
    s.write("empty.txt", "# nobody\n")
    s.write("bad.txt", "n1 cores=3\n")
    s.write("worse.txt", "n1;rm\n")
    for options, why in ((["--hosts", "missing.txt"], "cannot read the file of hosts"),
                         (["--hosts", "empty.txt"], "names no host"),
                         (["--hosts", "bad.txt"], "may stand slots=N"),
                         (["--hosts", "worse.txt"], "is no name of a host"),
                         (["--host", "a,b", "--spares", "2"], "leave none to run on"),
                         (["--host", "a:1,b:1"], "too few for 4 ranks"),
                         (["--host", "a,b", "--ppn", "1"], "2 hosts with 1 ranks each (--ppn) are too few for "
                          "4 ranks; name more hosts, or raise --ppn\n"),
                         (["--host", "a,b,c,d", "--ppn", "1", "--spares", "1"], "3 hosts besides 1 spare with 1 "
                          "ranks each (--ppn) are too few for 4 ranks; name more hosts, or raise --ppn, or lower "
                          "--spares\n"),
                         (["--host", "a,b,c,d", "--ppn", "1", "--nodes", "2"], "2 of the 4 hosts (--nodes) with 1 "
                          "ranks each (--ppn) are too few for 4 ranks; raise --nodes or --ppn\n"),
                         (["--launcher", "ssh %h", "--host", "a"], "--launcher takes a command"),
                         (["--host", "a", "--hosts", "b"], "give one of them"),
                         (["--node-timeout", "1ms"], "--node-timeout takes a time")):
        r = s.hale_run(4, "/bin/true", options=options)
        expect(r.status == EXIT_USAGE and why in r.err, r)


LOOPBACK6 = "0:0:0:0:0:0:0:1"  # nodes' names are in events, whose fields are divided by "::"


@test
def odd_lists_of_hosts_are_read_as_they_are_meant(s):
    def laid_out(wanted, *options):
        job = s.hale_start(sum(wanted.values()), "sleep", "60",
                           options=["--no-mpi", "--launcher", "exec %c", *options])
        job.ranks(sum(wanted.values()))
        got = {n: ranks for n, (_, ranks) in states(s, job).items()}
        expect(got == wanted, options, got)
        job.kill()

    for text, wanted in (
            (b"n1 slots=2\r\n\r\n# they\r\nn2 slots=2 # and\r\n\tn3\tslots=1", {"n1": 2, "n2": 2, "n3": 1}),
            (b"\xef\xbb\xbfn1\nn2\n", {"n1": 2, "n2": 2}),
            (b"n1\nn2\nn1\n", {"n1": 2, "n2": 1}),
            (b"n1:3\n[fd00::1]:1\nuser@n2:1\n", {"n1": 3, "fd00:0:0:0:0:0:0:1": 1, "user@n2": 1}),
            (b"fd00::1\n::1\n[fe80::1%eth0]\n",
             {"fd00:0:0:0:0:0:0:1": 1, LOOPBACK6: 1, "fe80:0:0:0:0:0:0:1%eth0": 1}),
            (b"fd00::1\nFD00:0::1\n", {"fd00:0:0:0:0:0:0:1": 2}),
            (b"n1 slots=3 max_slots=4\nn2 max-slots=1 slots=1\n", {"n1": 3, "n2": 1})):
        with open(s.path("hosts.txt"), "wb") as f:
            f.write(text)
        laid_out(wanted, "--hosts", "hosts.txt")
    laid_out({LOOPBACK6: 1, "fd00:0:0:0:0:0:0:2": 1}, "--host", "::1,[fd00::2]")
    laid_out({LOOPBACK6: 2, "n1": 1}, "--host", "[::1]:2,n1:1")
    for text, why in ((b"n1\n#\nn2 cores=2\n", "line 3 of"), (b"n1:0\n", "'n1:0' in line 1 of"),
                      (b"n1:many\n", "is no name of a host"), (b"n1\0n2\n", "bytes that are zero"),
                      (b"[::1\n", "is no name of a host"), (b"n1 slots=\n", "may stand slots=N"),
                      (b"n1\n" * 400000, "larger than 1 MiB")):
        with open(s.path("hosts.txt"), "wb") as f:
            f.write(text)
        r = s.hale_run(2, "/bin/true", options=["--hosts", "hosts.txt"])
        expect(r.status == EXIT_USAGE and why in r.err and len(r.err.splitlines()) == 1, r)


@test
def a_launcher_that_fails_is_told_of(s):
    for launcher, why in (("echo %h %c; exit 3", "its launcher has ended with status 3: is it up, and"),
                          ("/nowhere/hale %h %c", "with status 127: is hale installed there"),
                          ("cat /dev/zero; : %c", "no agent of hale"),
                          ("echo hale-agent 99 7.7; : %c", "another version"),
                          ("echo hale-agent 1 0.1.0; head -c 9999 /dev/urandom; : %c",
                           "no message")):
        r = s.hale_run(2, "/bin/true", options=["--host", "a", "--launcher", launcher])
        expect(r.status == EXIT_USAGE and why in r.err, r)


@test
def what_a_host_does_not_have_is_told_with_its_name(s):
    if os.getuid() != 0 or s.run("unshare", "-m", "true").status != 0:
        skip("no right to mount something of one's own here")
    steps = s.compile("steps")
    for folder in ("programs", "ckpt"):
        os.mkdir(s.path(folder))
    program = shutil.copy(steps, s.path("programs"))

    def lacks(folder):
        """Host b sees something else there."""
        return ["--host", "a,b", "--launcher", "case %h in b) unshare -m sh -c 'mount -t tmpfs none "
                f"{s.path(folder)}; exec \"$@\"' - %c;; *) exec %c;; esac"]

    r = s.hale_run(2, program, 5, 1, options=lacks("programs"))
    expect(r.status == 126 and f"node b: cannot start '{program}'" in r.err, r)
    r = s.hale_run(2, steps, 40, 25, options=[*lacks("ckpt"), "--ckpt-dir", s.path("ckpt"),
                                              "--ckpt-every", "100ms"])
    expect(r.status == 0 and re.search(r"checkpoint 1 failed, the job goes on: rank 1 on node b: can't create "
                                       "the image .* that all nodes share", r.err), r)
    expect(r.err.count("failed, the job goes on: rank 1 on node b: can't create") == 1, "it is told of once", r)


@test
def a_host_that_does_not_answer_is_named_while_the_job_waits(s):
    job = s.hale_start(3, "/bin/true", options=["--host", "a,b,c", "--launcher",
                                                "case %h in a) exec %c;; *) exec sleep 1000;; esac"])
    job.until_says("still waiting for node b and 1 other")
    os.kill(job.pid, signal.SIGINT)
    r = job.wait()
    expect(r.status == 128 + signal.SIGINT, r)


@test
def a_job_runs_on_hosts_reached_by_a_launcher(s):
    """A login shell that prints something first does no harm."""
    exe = s.compile("steps")
    wanted = expected(s, exe, 30, 1)
    r = s.hale_run(4, exe, 30, 1, options=["--host", "a:3,b:1", "--launcher",
                                           "echo Welcome to %h; exec %c"])
    same(r, wanted)
    r = s.hale_run(2, "sh", "-c", "cat; echo $HALE_RANK", options=[
        "--no-mpi", "--host", "a,b", "--launcher", "exec %c"], stdin="from the head\n")
    expect(r.status == 0 and sorted(r.out.splitlines()) == ["0", "1", "from the head"], r)


SSHD = """Port {port}
ListenAddress 127.0.0.1
HostKey {dir}/host
AuthorizedKeysFile {dir}/id.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
"""


@test
def the_default_launcher_is_ssh(s):
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if not os.path.exists(sshd):
        skip("sshd is not installed")
    have("ssh")
    made = os.geteuid() == 0 and not os.path.isdir("/run/sshd")
    if made:  # by its service otherwise, which need not have run here
        os.mkdir("/run/sshd", 0o755)
    port = 20000 + os.getpid() % 10000
    for key in ("host", "id"):
        s.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path(key))
    config = s.write("sshd.conf", SSHD.format(port=port, dir=s.dir))
    server = s.start(sshd, "-D", "-e", "-f", config)
    server.until_says("Server listening")
    s.write("ssh", f"""#!/bin/sh
exec /usr/bin/ssh -p {port} -i {s.dir}/id -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
    -o LogLevel=ERROR "$@"
""")
    os.chmod(s.path("ssh"), 0o755)
    env = {"PATH": s.dir + ":" + os.environ["PATH"]}
    exe = s.compile("steps")
    same(s.hale_run(4, exe, 20, 1, options=["--host", "127.0.0.1,localhost"], env=env),
         expected(s, exe, 20, 1))
    # what goes through is bytes
    every = "".join(map(chr, range(1, 128))) * 4000
    r = s.hale_run(1, "cat", options=["--no-mpi", "--host", "localhost"], env=env, stdin=every)
    expect(r.status == 0 and r.out == every.replace("\r", "\n"), f"{len(r.out)} of {len(every)} bytes")
    # a rank that is killed there is told of here
    r = s.hale_run(2, "sh", "-c", "kill -9 $$", options=["--no-mpi", "--host", "localhost"], env=env)
    expect(r.status == 137, r)
    server.kill()
    if made:
        os.rmdir("/run/sshd")


@test
def a_service_gives_out_agents(s):
    """As systemd starts them: one for each connection."""
    have("systemd-socket-activate")
    exe = s.compile("steps")
    wanted = expected(s, exe, 60, 20)
    os.makedirs(s.path("run/hale"), mode=0o700)
    options = ["--host", "a,b,c", "--spares", "1", "--launcher", "exec %c --service", "--ckpt-every",
               "200ms", "--report", "report.json"]
    env = {"XDG_RUNTIME_DIR": s.path("run")}
    r = s.hale_run(4, exe, 60, 20, options=options, env=env)
    expect(r.status == EXIT_USAGE and "no service gives out agents" in r.err, r)
    service = s.start("systemd-socket-activate", "--accept", "--inetd", "-l", s.path("run/hale/agent"),
                      HALE, "agent")
    service.until(lambda: os.path.exists(s.path("run/hale/agent")), "it listens")
    job = s.hale_start(4, exe, 60, 20, options=options, env=env)
    job.until_output("rank 3 step 20 ")
    found = json.loads(s.hale("ps", "--json").out)["jobs"]
    ranks = {r["pid"] for j in found if j["pid"] == job.pid for r in j["ranks"]}
    expect(len(ranks) == 4 and ranks <= set(children(service.pid)), "ranks are the service's")
    supervisors = [p for p in children(service.pid) if parent_of(p) == service.pid]
    os.kill(next(p for p in supervisors if ranks & set(children(p))), signal.SIGKILL)
    same(job.wait(), wanted)
    expect(s.report()["restarts"] == 1, s.report())
    service.kill()


@test
def the_units_of_systemd_are_right(s):
    have("systemd-analyze")
    for name in ("hale-backplane.service", "hale-agent@.service"):
        with open(os.path.join(ROOT, "data", name)) as f:
            s.write(name, f.read().replace("@bindir@/hale", HALE))
    shutil.copy(os.path.join(ROOT, "data/hale-agent.socket"), s.path("hale-agent.socket"))
    for user, name in (("--system", "hale-backplane.service"), ("--user", "hale-agent@.service"),
                       ("--user", "hale-agent.socket")):
        r = s.run("systemd-analyze", "verify", user, "--man=no", s.path(name),
                  env={"XDG_RUNTIME_DIR": s.dir, "SYSTEMD_UNIT_PATH": s.dir + ":"})
        expect(r.status == 0 and "hale-" not in r.err, r)


@test
def over_namespaces_a_cut_shorter_than_the_timeout_is_ridden_out(s):
    with Hosts(s, 2) as hosts:
        job = hosts.hale_start(4, *until_told(s), options=["--report", "report.json", "--node-timeout",
                                                           "10s"])
        job.until_output("rank 3 step 20 ")
        hosts.cut(1)
        time.sleep(0.5)
        hosts.heal(1)
        end(s, job)
        expect(s.report()["failures"] == [], s.report())


@test
def over_namespaces_a_node_that_is_cut_off_stops_before_its_ranks_run_elsewhere(s):
    with Hosts(s, 3) as hosts:
        job = hosts.hale_start(4, *until_told(s), options=[
            "--spares", "1", "--ckpt-every", "300ms", "--report", "report.json"])
        job.until(s.complete, "a checkpoint")
        old = running(children(hosts.servers[1].pid), s.path("steps"))
        hosts.cut(1)
        job.until_says("is lost")
        expect(old and not running(old, s.path("steps")), f"the cut off half runs on: {old}")
        hosts.heal(1)
        end(s, job, rollbacks=1)
        failure = s.report()["failures"][0]
        expect(failure["node"] == hosts.address(1), failure)


@test
def a_launcher_that_is_killed_proves_nothing(s):
    """The head waits for the lease, so none of the old ranks is at work when new ones start."""
    with Hosts(s, 3) as hosts:
        job = hosts.hale_start(4, *until_told(s), options=[
            "--spares", "1", "--ckpt-every", "300ms", "--report", "report.json"])
        job.until(s.complete, "a checkpoint")
        old = running(children(hosts.servers[1].pid), s.path("steps"))
        launcher = [p for p in children(job.pid) if f"client.py {hosts.address(1)}" in name_of(p)]
        for p in launcher:
            os.kill(p, signal.SIGKILL)
        job.until_says("is lost")
        expect(old and not running(old, s.path("steps")), f"the old ranks run on: {old}")
        end(s, job, rollbacks=1)


@test
def garbage_in_the_middle_ends_the_session(s):
    exe = s.compile("misuse")
    for after in (50, 100, 200):
        launcher = f"%c | (head -c {after}; head -c 100000 /dev/urandom; sleep 60)"
        r = s.hale_run(2, exe, "spin", options=["--host", "a", "--launcher", launcher,
                                                "--node-timeout", "1s"])
        expect(r.status in (EXIT_USAGE, EXIT_UNRECOVERED) and "no message" in r.err, r)


main()
