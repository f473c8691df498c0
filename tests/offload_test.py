#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Device processes: calls, crashes, snapshots, `hale swap`, `hale offload`; devices are served by real daemons, on
network namespaces or on this node."""

from lib import *
from namespaces import Namespaces

LINK = ["-L", BUILD, "-lhale_offload", f"-Wl,-rpath,{BUILD}", "-lpthread"]


class Devices:
    """`hale device serve` with devices, and programs that use them."""

    def __init__(self, s, prefixes=((),), addresses=("127.0.0.1",), devices=2, memory="64M", timeout="1s"):
        self.s, self.env = s, {"HALE_OFFLOAD_CACHE": s.path("cache"), "HALE_RIO_TIMEOUT": timeout}
        self.jobs, names = [], []
        for i, (prefix, address) in enumerate(zip(prefixes, addresses)):
            job = s.start(*prefix, HALE, "device", "serve", "--devices", devices, "--memory", memory, "--listen",
                          f"{address}:0", "--root", s.dir, env=self.env)
            names.append("node%d=%s" % (i, job.until_output(r"serving at (\S+)")[1]))
            self.jobs.append(job)
        self.env["HALE_DEVICES"] = ",".join(names)

    def compile(self, name):
        return self.s.compile(name, mpi=None, flags=LINK)

    def object(self):
        self.s.compile("offload_object", mpi=None, flags=["-shared", "-fPIC", "-o", self.s.path("object.so")])
        return self.s.path("object.so")

    def run(self, *argv, **kw):
        return self.s.run(*argv, env=self.env, **kw)

    def start(self, *argv):
        return self.s.start(*argv, env=self.env)

    def processes(self, k=0):
        return [p for p in children(self.jobs[k].pid) if name_of(p).startswith("hale-offload")]

    def end(self):
        for job in self.jobs:
            job.kill(signal.SIGTERM)
            r = job.wait()
            expect(r.status == 0, r)


def moving(d, exe, pipes=3, work=20000):
    """offload_ticks until it gets SIGTERM, once its device process runs."""
    job = d.start(exe, d.object(), pipes, 0, work)
    job.until_output(r"^[1-9]\d*$")
    return job


def stands(pid):
    """All its threads have been stopped."""
    states = set()
    for t in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{t}/stat") as f:
            states.add(f.read().rpartition(") ")[2][0])
    return states == {"T"}


def counted(job):
    lines = job.out().split()
    return int(lines[-1]) if lines else 0


def goes_on(job):
    now = counted(job)
    job.until(lambda: counted(job) > now + 10, "it goes on")


def ends_well(job):
    job.kill(signal.SIGTERM)
    r = job.wait()
    expect(r.status == 0 and "\ngood " in r.out, r)


@test
def functions_buffers_pipelines_and_all_that_goes_wrong(s):
    d = Devices(s)
    r = d.run(d.compile("offload_tour"), d.object(), 1)
    expect(r.status == 0 and r.out == "good\n", r)
    d.jobs[0].until_says(r"process \d+ has ended with signal 6")
    d.end()


@test
def destroy_returns_when_the_device_has_its_memory_back(s):
    d = Devices(s, timeout="60s")
    os.mkfifo(s.path("go"))
    job = d.start("sh", "-c", 'exec "$0" "$@" < go', d.compile("offload_tour"), d.object(), 0, "again")
    with open(s.path("go"), "w") as go:
        pid = int(job.until_output(r"^(\d+)$")[1])
        d.jobs[0].kill(signal.SIGSTOP)
        job.until(lambda: stands(d.jobs[0].pid), "the daemon to stand still, with all threads")
        go.write("\n")
    job.until(lambda: not os.path.exists(f"/proc/{pid}/exe") or not d.processes(), "the process has ended")
    time.sleep(0.3)
    expect("destroyed" not in job.out(), job.out())  # the device counts its memory still
    d.jobs[0].kill(signal.SIGCONT)
    r = job.wait()
    expect(r.status == 0 and r.out.endswith("destroyed\ngood\n"), r)
    d.end()


@test
def the_same_over_the_network(s):
    if not LONG:
        skip("HALE_LONG=1")
    with Namespaces(s, 2, "o", "10.73.3") as net:
        inside = [["ip", "netns", "exec", f"{net.prefix}{k}"] for k in range(2)]
        d = Devices(s, [inside[0]], [net.address(0)])
        r = d.run(*inside[1], d.compile("offload_tour"), d.object(), 0)
        expect(r.status == 0 and r.out == "good\n", r)
        d.end()


@test
def counters_on_both_sides_agree_at_random_moments(s):
    with Namespaces(s, 2, "o", "10.73.4") as net:
        inside = [["ip", "netns", "exec", f"{net.prefix}{k}"] for k in range(2)]
        d = Devices(s, inside, [net.address(0), net.address(1)], devices=1)
        os.mkdir(s.path("snapshot"))
        r = d.run(*inside[1], d.compile("offload_ticks"), d.object(), 8, 1000 if LONG else 14, 5000,
                  s.path("snapshot"))
        expect(r.status == 0 and r.out.startswith("good "), r)
        for job in d.jobs:
            expect("has ended with" not in job.err(), job.result())  # swapped out is not crashed
        d.end()


@test
def hale_swap_and_migrate_a_running_program(s):
    d = Devices(s)
    job = moving(d, d.compile("offload_ticks"))
    goes_on(job)
    r = d.run(HALE, "offload", "list", job.pid)
    expect(re.fullmatch(r"process \d+ on device 0 runs\n", r.out), r)
    r = d.run(HALE, "swap", "out", job.pid, "--dir", s.path("out"))
    expect(r.status == 0 and f"is out of device 0: {s.path('out')}/" in r.out, r)
    expect(not d.processes() and "swapped out" in d.run(HALE, "offload", "list", job.pid).out, s.process_table())
    time.sleep(0.15)  # the program prints every 50 ms
    before = counted(job)
    time.sleep(0.15)
    expect(counted(job) == before, "calls on it wait")
    r = d.run(HALE, "swap", "out", job.pid)
    expect(r.status == 1 and "in a state for that" in r.err, r)
    r = d.run(HALE, "swap", "in", job.pid, 7)
    expect(r.status == 1 and "no device hale:7" in r.err, r)
    both = [d.start(HALE, "swap", "in", job.pid, 1) for _ in range(2)]
    expect(sorted(b.wait().status for b in both) == [0, 1], both[0].result(), both[1].result())
    goes_on(job)
    expect(len(d.processes()) == 1 and not os.listdir(s.path("out")), s.process_table())
    r = d.run(HALE, "offload", "migrate", job.pid, 0)
    expect(r.status == 0 and "is on device 0" in r.out, r)
    goes_on(job)
    r = d.run(HALE, "offload", "migrate", job.pid, 9)
    expect(r.status == 1 and "no device hale:9" in r.err, r)
    goes_on(job)
    ends_well(job)
    for argv in (("swap",), ("swap", "out"), ("swap", "in", 1), ("swap", "out", 1, "--dir"), ("offload", "list")):
        expect(d.run(HALE, *argv).status == 64, argv)
    r = d.run(HALE, "swap", "out", os.getpid())
    expect(r.status == 1 and "no device processes" in r.err, r)
    d.end()


@test
def a_full_or_damaged_snapshot_costs_nothing(s):
    d = Devices(s)
    job = moving(d, d.compile("offload_ticks"))
    small = s.tmpfs("small", "300k")
    r = d.run(HALE, "swap", "out", job.pid, "--dir", small)
    expect(r.status == 1 and "No space left" in r.err, r)
    goes_on(job)
    r = d.run(HALE, "swap", "out", job.pid, "--dir", s.path("out"))
    expect(r.status == 0, r)
    folder = r.out.split()[-1]
    for name, why in (("image", "the image of the snapshot"), ("store", "its store"), ("manifest", "its manifest")):
        path = os.path.join(folder, name)
        with open(path, "rb") as f:
            good = f.read()
        with open(path, "wb") as f:
            f.write(good[:30] + bytes([good[30] ^ 1]) + good[31:])
        r = d.run(HALE, "swap", "in", job.pid, 1)
        expect(r.status == 1 and why in r.err and "damaged" in r.err, name, r)
        with open(path, "wb") as f:
            f.write(good)
    r = d.run(HALE, "swap", "in", job.pid, 1)
    expect(r.status == 0, r)
    goes_on(job)
    ends_well(job)
    d.end()


def checkpointed(s, d, exe, ranks, options, times):
    """Ranks and device processes are killed at random moments, and go on from checkpoints of both."""
    rng = random.Random(SEED)
    job = s.start(HALE, "run", "-n", ranks, *options, "--ckpt-every", "off", "--max-restarts", times, "--report",
                  "report.json", "--", exe, d.object(), 4, 0, 5000, env=d.env)
    job.until_output(r"^[1-9]\d*$")
    for k in range(times):
        time.sleep(rng.random() * 0.2)
        job.checkpoint()
        time.sleep(rng.random() * 0.2)
        before = life(job.ranks(ranks)[rng.randrange(ranks)])
        if k % 2:
            for p in job.ranks(ranks).values():  # or one would see its device process gone, and end by itself
                os.kill(p, signal.SIGSTOP)
            for p in d.processes():
                os.kill(p, signal.SIGKILL)
        os.kill(before[0], signal.SIGKILL)
        job.until(lambda: before not in [life(p) for p in job.ranks(ranks).values()], "to restart")
        goes_on(job)
    expect(len(d.processes()) == ranks, s.process_table())
    rank = job.ranks(ranks)[ranks - 1]
    r = d.run(HALE, "offload", "migrate", rank, 1)  # it is heard again
    expect(r.status == 0, r)
    goes_on(job)
    os.kill(rank, signal.SIGTERM)
    r = job.wait()
    expect(r.status == 0 and "\ngood " in r.out and s.report()["restarts"] == times, r)


@test
def checkpoints_of_mpi_programs_have_their_device_processes(s):
    d = Devices(s)
    exe = s.compile("offload_ticks", flags=["-DTICKS_MPI", *LINK])
    checkpointed(s, d, exe, 2, [], 200 if LONG else 1)
    d.end()


@test
def checkpoints_without_mpi_too(s):
    if not LONG:
        skip("HALE_LONG=1")
    d = Devices(s)
    checkpointed(s, d, d.compile("offload_ticks"), 1, ["--no-mpi"], 200)
    d.end()


EIGHT = {"md": (300, 60), "mc": (200000, 60), "sg": (100, 60), "ss": (300000, 60), "km": (20000, 60), "jz": (200, 400),
         "gz": (200, 400), "hz": (40, 400)}


@test
def eight_programs_come_to_the_same_result_through_snapshots(s):
    d = Devices(s)
    s.compile("offload_kernels", mpi=None, flags=["-shared", "-fPIC", "-o", s.path("kernels.so"), "-lm"])
    exe, seen = d.compile("offload_eight"), set()
    os.mkdir(s.path("snapshot"))
    for name, (n, steps) in EIGHT.items():
        here = d.run(exe, name, s.path("kernels.so"), n, steps, 4, "here")
        there = d.run(exe, name, s.path("kernels.so"), n, steps, 4, s.path("snapshot"))
        expect(here.status == there.status == 0, here, there)
        lines = [line.split() for line in there.out.splitlines()]
        expect([line[0] for line in lines] == ["checkpoint", "swap", "move", name], there)
        expect(lines[-1][1] == here.out.split()[1], here, there)
        seen.add(lines[-1][1])
    expect(len(seen) == len(EIGHT), seen)
    d.end()


@test
def the_sample_functions_of_the_seed_run(s):
    d = Devices(s)
    r = s.run("gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-o", s.path("snapify"),
              os.path.join(ROOT, "examples", "snapify.c"), "-I", os.path.join(ROOT, "include"), *LINK)
    expect(r.status == 0, r)
    r = d.run(s.path("snapify"), d.object(), s.path("snapshot"))
    expect(r.status == 0 and r.out == "device 0: 1\ndevice 0: 2\ndevice 0: 3\ndevice 1: 4\n", r)
    d.end()


@test
def ranks_move_between_nodes_with_their_device_processes(s):
    d = Devices(s)
    job = s.start(HALE, "run", "-n", 2, "--nodes", 2, "--no-mpi", "--ckpt-every", "off", "--report", "report.json", "--",
                  d.compile("offload_ticks"), d.object(), 4, 0, 5000, env=d.env)
    job.until(lambda: len(d.processes()) == 2 and re.search(r"^[1-9]\d*$", job.out(), re.M), "both run")
    for node in ("node0", "node1"):
        r = s.hale("migrate", job.id(), "--from", node)
        expect(r.status == 0, r)
        goes_on(job)
    for rank in job.ranks(2).values():
        os.kill(rank, signal.SIGTERM)
    r = job.wait()
    expect(r.status == 0 and r.out.count("good ") == 2 and len(s.report()["migrations"]) == 2, r)
    d.end()


@test
def eight_programs_go_on_from_a_checkpoint(s):
    d = Devices(s)
    s.compile("offload_kernels", mpi=None, flags=["-shared", "-fPIC", "-o", s.path("kernels.so"), "-lm"])
    exe = d.compile("offload_eight")
    for name, (n, steps) in EIGHT.items() if LONG else [("mc", EIGHT["mc"])]:
        steps *= 20
        here = d.run(exe, name, s.path("kernels.so"), n, steps, 4, "here")
        job = s.start(HALE, "run", "-n", 1, "--no-mpi", "--ckpt-every", "off", "--report", "report.json", "--", exe, name,
                      s.path("kernels.so"), n, steps, 4, env=d.env)
        job.until(d.processes, "the device process runs")
        rank = job.ranks(1)[0]
        job.checkpoint()
        os.kill(rank, signal.SIGKILL)
        r = job.wait()
        expect(r.status == 0 and r.out.split()[1] == here.out.split()[1], name, here, r)
        expect(s.report()["restarts"] == 1, name, s.report())
    d.end()


@test
def snapshots_in_the_middle_of_functions_copies_and_creations(s):
    d = Devices(s)
    for name in ("snapshot", "other"):
        os.mkdir(s.path(name))
    r = d.run(d.compile("offload_races"), d.object(), 300 if LONG else 6, s.path("snapshot"), s.path("other"), limit=600)
    expect(r.status == 0 and r.out == "good\n", r)
    d.end()


@test
def a_daemon_that_dies_costs_no_process_that_is_swapped_out(s):
    d = Devices(s)
    job = moving(d, d.compile("offload_ticks"))
    r = d.run(HALE, "swap", "out", job.pid, "--dir", s.path("out"))
    expect(r.status == 0, r)
    d.jobs[0].kill()
    d.jobs[0].wait()
    r = d.run(HALE, "swap", "in", job.pid, 0)
    expect(r.status == 1 and "does not answer" in r.err, r)
    expect("swapped out" in d.run(HALE, "offload", "list", job.pid).out, s.process_table())
    address = d.env["HALE_DEVICES"].split("=")[1]
    d.jobs[0] = s.start(HALE, "device", "serve", "--devices", 2, "--memory", "64M", "--listen", address, "--root", s.dir,
                        env=d.env)
    d.jobs[0].until_output("serving at")
    r = d.run(HALE, "swap", "in", job.pid, 1)
    expect(r.status == 0, r)
    goes_on(job)
    ends_well(job)
    d.end()


@test
def a_program_whose_device_is_gone_comes_back_on_another(s):
    d = Devices(s, prefixes=((), ()), addresses=("127.0.0.1", "127.0.0.1"), devices=1)
    job = s.start(HALE, "run", "-n", 1, "--no-mpi", "--ckpt-every", "off", "--", d.compile("offload_ticks"), d.object(), 4,
                  0, 5000, env=d.env)
    job.until_output(r"^[1-9]\d*$")
    job.checkpoint()
    before = life(job.ranks(1)[0])
    gone = d.jobs.pop(0)
    gone.kill()
    gone.wait()
    os.kill(before[0], signal.SIGKILL)
    job.until(lambda: before not in [life(p) for p in job.ranks(1).values()], "to restart")
    goes_on(job)
    rank = job.ranks(1)[0]
    r = d.run(HALE, "offload", "list", rank)
    expect("on device 1 runs" in r.out, r, job.result())
    os.kill(rank, signal.SIGTERM)
    r = job.wait()
    expect(r.status == 0 and "\ngood " in r.out and "does not take its process back" in r.err, r)
    d.end()


@test
def whatever_is_killed_or_cut_nobody_hangs(s):
    with Namespaces(s, 2, "o", "10.73.5") as net:
        inside = [["ip", "netns", "exec", f"{net.prefix}{k}"] for k in range(2)]
        d = Devices(s, inside[:1], [net.address(0)])
        exe, obj = d.compile("offload_ticks"), d.object()

        def run():
            job = d.start(*inside[1], exe, obj, 2, 0, 1000)
            job.until_output(r"^[1-9]\d*$")
            return job

        job = run()  # the device process is killed
        os.kill(d.processes()[0], signal.SIGKILL)
        r = job.wait()
        expect(r.status == 1 and "ESRCH" in r.err, r)
        d.jobs[0].until_says("has ended with signal 9")
        job = run()  # the program is killed
        job.kill()
        job.wait()
        d.jobs[0].until(lambda: not d.processes(), "the device process ends with its program")
        job = run()  # the cable is cut
        net.cut(0)
        r = job.wait()
        expect(r.status == 1 and "ESRCH" in r.err, r)
        d.jobs[0].until(lambda: not d.processes(), "the device process ends")
        net.heal(0)
        d.end()


main()
