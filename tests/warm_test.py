#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Spares are warm (docs/nodes.md): the files that ranks have mapped are in memory there, and processes of
the program stand ready; whatever becomes of either, ranks come back."""

from lib import alive, stands_ready
from migrate_parts import *

REPORT = ["--spares", "1", "--report", "report.json"]

MAPS = """
import mmap, os, sys, time
m = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, access=mmap.ACCESS_COPY)
while not os.path.exists("stop"):
    time.sleep(0.02)
"""


def node_of(s, job, name):
    r = s.hale("nodes", getattr(job, "name", None) or job.id(), "--json")
    expect(r.status == 0, r)
    return next(n for n in json.loads(r.out)["nodes"] if n["node"] == name)


def sinks(s, job, name):
    """That stand ready below this node's supervisor."""
    pid = node_of(s, job, name)["pid"]
    return sorted(p for p in children(pid, standing=True) if stands_ready(p)) if pid else []


def until_ready(s, job, name, count=4):
    job.until(lambda: node_of(s, job, name)["standing"] == count and len(sinks(s, job, name)) == count,
              f"{count} processes stand ready on {name}")
    return sinks(s, job, name)


def begin(s, *options, spare="node1", nodes=("--nodes", "1")):
    job = steps_job(s, *REPORT, *options, nodes=nodes)
    until_ready(s, job, spare)
    return job


def lose(s, job, node):
    os.kill(node_of(s, job, node)["pid"], signal.SIGKILL)
    job.until_says("all ranks run again")
    until_steps_go_on(job)


def in_memory(s, name):
    r = s.run("fincore", "--bytes", "--noheadings", "--output", "RES", s.path(name))
    expect(r.status == 0, r)
    return int(r.out)


def evict(s, name):
    fd = os.open(s.path(name), os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    return in_memory(s, name)


@test
def files_that_ranks_have_mapped_come_into_memory(s):
    have("fincore")
    s.write("maps.py", MAPS)
    size = 8 << 20
    with open(s.path("data"), "wb") as f:
        f.write(os.urandom(size))
    if evict(s, "data") > 0:
        skip("files here are memory")
    options = ["--no-mpi", "--nodes", "1", "--spares", "1"]
    for way, wanted in (("off", 0), ("0", size)):
        job = s.hale_start(1, "python3", "maps.py", "data", options=[*options, "--warm-sinks", way])
        if wanted:
            job.until(lambda: node_of(s, job, "node1")["warm_bytes"] > size, "the spare has read so much")
            # data come last, behind what is executed
            job.until(lambda: in_memory(s, "data") == wanted, "the spare has read it")
        else:
            time.sleep(2)
        expect(in_memory(s, "data") == wanted, way, in_memory(s, "data"))
        expect(sinks(s, job, "node1") == [], "none was asked for")
        expect(wanted or node_of(s, job, "node1")["warm_bytes"] == 0, "nothing is read")
        s.write("stop", "")
        expect(job.wait().status == 0)
        os.unlink(s.path("stop"))


@test
def ranks_come_back_in_processes_that_stood_ready(s):
    job = begin(s)
    waiting = sinks(s, job, "node1")
    expect(node_of(s, job, "node0")["standing"] == 0, "on spares only")
    table = s.hale("nodes", job.id())
    expect("4 processes ready" in table.out, table)
    job.checkpoint()
    lose(s, job, "node0")
    expect(sorted(job.ranks(4).values()) == waiting, "these are the ranks", waiting, job.ranks(4))
    end(s, job)
    report = s.report()
    expect(report["warm_sinks"] == 4 and report["restarts"] == 1, report)


@test
def ranks_move_into_them_and_more_stand_where_they_were(s):
    job = begin(s)
    for there, back in (("node0", "node1"), ("node1", "node0")):
        waiting = until_ready(s, job, back)
        r = migrate(s, job, "--from", there)
        expect(r.status == 0, r)
        expect(sorted(job.ranks(4).values()) == waiting, "these are the ranks", waiting, job.ranks(4))
        until_steps_go_on(job)
    job.until(lambda: sinks(s, job, "node0") == [], "none on who is no spare")
    end(s, job)
    expect(s.report()["warm_sinks"] == 8, s.report())


@test
def who_is_killed_is_replaced(s):
    job = begin(s)
    before = sinks(s, job, "node1")
    for p in before[:2]:
        os.kill(p, signal.SIGKILL)
    # or four: all are started anew when the ranks turn out to have mapped more than was known
    job.until(lambda: not set(before[:2]) & set(until_ready(s, job, "node1")), "others stand there")
    job.checkpoint()
    lose(s, job, "node0")
    end(s, job)
    expect(s.report()["warm_sinks"] == 4, s.report())


@test
def who_is_late_is_ended_and_others_are_started(s):
    job = begin(s)
    waiting = sinks(s, job, "node1")
    for p in waiting:
        os.kill(p, signal.SIGSTOP)
    job.checkpoint()
    lose(s, job, "node0")
    expect(not set(job.ranks(4).values()) & set(waiting), "others are the ranks")
    expect(not any(alive(p) for p in waiting), "they are gone")
    end(s, job)
    expect(s.report()["warm_sinks"] == 0, s.report())


@test
def they_outlive_the_agent_of_the_spare(s):
    job = begin(s)
    waiting = sinks(s, job, "node1")
    supervisor = agent_pid(s, job, "node1")
    agent = next(p for p in children(supervisor) if s.run("ps", "-o", "comm=", "-p", str(p)).out.strip() == "hale-agent")
    os.kill(agent, signal.SIGKILL)
    job.until_says("another one goes on in its place")
    expect(until_ready(s, job, "node1") == waiting, "the same ones", waiting)
    job.checkpoint()
    lose(s, job, "node0")
    end(s, job)
    expect(s.report()["warm_sinks"] == 4, s.report())


@test
def they_end_with_the_supervisor_of_the_spare(s):
    job = begin(s)
    waiting = sinks(s, job, "node1")
    os.kill(agent_pid(s, job, "node1"), signal.SIGKILL)
    job.until_says("node node1, which has no ranks, is lost")
    job.until(lambda: not any(alive(p) for p in waiting), "they have ended")
    end(s, job)


@test
def a_program_that_was_replaced_is_not_taken_from_them(s):
    job = begin(s)
    shutil.copy2(s.path("steps"), s.path("again"))
    os.rename(s.path("again"), s.path("steps"))  # the same build, another file
    waiting = sinks(s, job, "node1")
    job.checkpoint()
    lose(s, job, "node0")
    expect(not set(job.ranks(4).values()) & set(waiting), "others are the ranks")
    end(s, job)
    expect(s.report()["warm_sinks"] == 0, s.report())


@test
def two_nodes_are_lost_one_after_the_other(s):
    job = begin(s, "--spares", "2")
    until_ready(s, job, "node2")
    job.checkpoint()
    lose(s, job, "node0")
    rank = job.ranks(4)[1]
    os.kill(rank, signal.SIGKILL)  # at once, when none stands there any more
    job.until(lambda: len(re.findall("all ranks run again", job.err())) == 2, "they run again")
    until_steps_go_on(job)
    there = next(n for n in ("node1", "node2") if node_of(s, job, n)["ranks"])
    os.kill(agent_pid(s, job, there), signal.SIGKILL)
    job.until(lambda: len(re.findall("all ranks run again", job.err())) == 3, "and again")
    end(s, job)
    expect(s.report()["warm_sinks"] == 8, s.report())


@test
def a_new_head_finds_them(s):
    job = begin(s, "--head-grace", "60s")
    waiting = sinks(s, job, "node1")
    job.checkpoint()
    name = job.id()
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    new = s.start(HALE, "attach", name, "--report", "report.json")
    new.name = name
    new.until_says("has a head again")
    expect(until_ready(s, new, "node1") == waiting, "the same ones", waiting)
    lose(s, new, "node0")
    s.write("stop", "")
    expect(new.wait().status == 0)
    expect(s.report()["warm_sinks"] == 4, s.report())


@test
def fewer_if_one_wants(s):
    job = steps_job(s, *REPORT, "--warm-sinks", "2", nodes=("--nodes", "1"))
    until_ready(s, job, "node1", 2)
    job.checkpoint()
    lose(s, job, "node0")
    end(s, job)
    expect(s.report()["warm_sinks"] == 2, s.report())


@test
def a_spare_with_another_program_is_told_of_and_not_used(s):
    """Of two spares the first has something else at the program's path."""
    exe = s.compile("steps")
    shutil.copy2(exe, s.path("other"))
    with open(s.path("other"), "r+b") as f:  # another build id
        head = f.read()
        note = head.index(b"GNU\0", head.index(b"\x03\0\0\0GNU\0"))
        f.seek(note + 4)
        f.write(bytes(20))
    s.write("start", f"""#!/bin/sh
host=$1
shift
[ $host = bad ] || exec "$@"
exec unshare -m sh -c 'mount --bind {s.path("other")} {exe} && exec "$@"' sh "$@"
""")
    os.chmod(s.path("start"), 0o755)
    if s.run("unshare", "-m", "mount", "--bind", s.path("other"), exe).status != 0:
        skip("no right to mount")
    env = {"HALE_NET_DEVICES": "lo"}
    job = s.hale_start(4, exe, "0", "20", env=env, options=[
        "--host", "busy:4,bad:4,good:4", "--spares", "2", "--node-timeout", "1s", "--report", "report.json",
        "--launcher", f"exec {s.path('start')} %h %c"])
    job.until_says("node bad could not take over ranks: .*steps is another version there")
    expect("steps is another version" in s.hale("nodes", job.id()).out, "hale nodes says so")
    until_ready(s, job, "good")
    expect(sinks(s, job, "bad") == [], "none stands there")
    job.checkpoint()
    lose(s, job, "busy")
    expect(node_of(s, job, "good")["ranks"] == 4, "the good one has them")
    end(s, job)
    expect(s.report()["warm_sinks"] == 4, s.report())


def memory_group():
    """A folder for groups of processes with limits of their own, below the one we are in."""
    with open("/proc/self/cgroup") as f:
        at = dict(line.rstrip("\n").split(":", 2)[1:] for line in f)
    if "memory" not in at:
        skip("no memory controller of the first version")
    return "/sys/fs/cgroup/memory" + at["memory"].rstrip("/")


class SmallMemory:
    """A host whose processes have so much memory together."""

    def __init__(self, s, size):
        self.s, self.folder = s, f"{memory_group()}/hale-test-{os.getpid()}"
        try:
            os.mkdir(self.folder)
            with open(f"{self.folder}/memory.limit_in_bytes", "w") as f:
                f.write(str(size))
        except OSError:
            skip("no right to limit memory")

    def launcher(self, name):
        self.s.write("start", f"""#!/bin/sh
[ $1 != {name} ] || echo $$ >{self.folder}/cgroup.procs
shift
exec "$@"
""")
        os.chmod(self.s.path("start"), 0o755)
        return f"exec {self.s.path('start')} %h %c"

    def eat(self, size):
        """Somebody else there takes so much."""
        code = f"x = b'x' * {size}; print('eaten', flush=True); import time; time.sleep(600)"
        return self.s.start("sh", "-c", f'echo $$ >{self.folder}/cgroup.procs; exec "$@"', "sh", sys.executable, "-c",
                            code)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        for _ in range(500):
            try:
                os.rmdir(self.folder)
                return
            except OSError:
                time.sleep(0.02)


@test
def memory_that_gets_short_ends_them_and_they_come_again(s):
    size = 512 << 20
    with SmallMemory(s, size) as memory:
        exe = s.compile("steps")
        job = s.hale_start(4, exe, "0", "20", env={"HALE_NET_DEVICES": "lo"}, options=[
            "--host", "busy:4,small:4", "--spares", "1", "--node-timeout", "2s", *REPORT[2:],
            "--launcher", memory.launcher("small")])
        until_ready(s, job, "small")
        eater = memory.eat(size // 16 * 15)
        eater.until_output("eaten")
        job.until(lambda: sinks(s, job, "small") == [] and node_of(s, job, "small")["standing"] == 0,
                  "they end before the kernel has to end anybody")
        eater.p.kill()
        eater.wait()
        until_ready(s, job, "small")
        eater = memory.eat(2 * size)  # more than there is, and faster than anybody looks
        eater.wait()
        job.checkpoint()
        lose(s, job, "busy")
        end(s, job)
        expect(s.report()["agents_replaced"] == 0, s.report())


main()
