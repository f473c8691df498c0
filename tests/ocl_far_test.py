#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""OpenCL programs on devices of other nodes: HALE_OFFLOAD=1 and `hale device serve`. A node is a daemon on this machine, in
one test in a network namespace of its own."""

from lib import *
from namespaces import Namespaces
from ocl_parts import *

REMOTE = os.path.join(BUILD, "libhale_opencl_remote.so")


class Nodes:
    """Daemons whose devices programs use."""

    def __init__(self, s, prefixes=((), ()), addresses=("127.0.0.1", "127.0.0.1"), timeout="2s", devices=()):
        self.s, self.jobs, names = s, [], []
        for i, (prefix, address) in enumerate(zip(prefixes, addresses)):
            # a runtime that is started twice has the same devices
            env = dict({"HALE_RIO_TIMEOUT": timeout}, **(devices[i] if devices else {}))
            job = s.start(*prefix, HALE, "device", "serve", "--devices", "0", "--listen", f"{address}:0", "--root", s.dir,
                          env=env)
            names.append("node%d=%s" % (i + 1, job.until_output(r"serving at (\S+)")[1]))
            self.jobs.append(job)
        self.env = {"HALE_OFFLOAD": "1", "HALE_DEVICES": ",".join(names), "HALE_RIO_TIMEOUT": timeout}

    def servers(self, k):
        return [p for p in children(self.jobs[k].pid) if name_of(p).startswith("hale-opencl")]

    def end(self):
        for job in self.jobs:
            if job.running():
                job.kill(signal.SIGTERM)
                expect(job.wait().status == 0, "the daemon ends")


def far(s, nodes, exe, *args, prefix=(), **env):
    """Without hale run and the layer: the driver alone."""
    return s.run(*prefix, exe, *args, env=dict(nodes.env, OCL_ICD_VENDORS=REMOTE, **env))


@test
def programs_run_on_devices_of_another_node(s):
    # not those that use shared virtual memory without asking whether a device has it
    nodes = Nodes(s)
    for name, *args in (("ocl_solver", "300"), ("ocl_solver", "-q", "2", "-o", "-e", "200"), ("ocl_solver", "-m", "-w", "200"),
                        ("ocl_cg", "6"), ("ocl_misc", "image"), ("ocl_misc", "echo"), ("ocl_told",), ("ocl_called",)):
        exe = opencl(s, name)
        alone = s.run(exe, *args)
        expect(alone.status == 0, name, args, alone)
        r = far(s, nodes, exe, *args)
        expect(r.status == 0 and r.out == alone.out, name, args, alone, r)
        expect(not nodes.servers(1), "the second node has nothing to do")
        same(s, "check=none inject=epoch:2", exe, *args, alone=alone, OCL_ICD_VENDORS=REMOTE, **nodes.env)
    nodes.jobs[0].until(lambda: not nodes.servers(0), "servers end with their programs")
    nodes.end()


@test
def random_programs_are_the_same_there(s):
    parts = [os.path.join(ROOT, "tests", "programs", f"ocl_random_{part}.c") for part in ("images", "volumes", "seldom", "beside")]
    exe = opencl(s, "ocl_random", *parts)
    nodes = Nodes(s)
    for seed in some(range(1, 200), 10):
        alone = s.run(exe, str(seed), "60")
        expect(alone.status == 0, seed, alone)
        r = far(s, nodes, exe, str(seed), "60")
        expect(r.status == 0 and r.out == alone.out, seed, alone, r)
    nodes.end()


def lost(s, nodes, exe, *mode, how):
    """A solver loses its node in the middle, and goes on on the other one."""
    alone = s.run(exe, *mode, "1000")
    expect(alone.status == 0, mode, alone)
    job = run_opencl(s, exe, *mode, "-g", s.path("go"), "1000", HALE_OPENCL="check=none ckpt=epochs:10", **nodes.env)
    job.until_output(r"^100 ")
    how()
    s.write("go", "")
    r = job.wait()
    os.unlink(s.path("go"))
    expect(r.status == 0 and r.out == alone.out, mode, alone, r)
    return r


@test
def a_node_that_is_lost_costs_a_replay(s):
    exe = opencl(s, "ocl_solver")
    for mode in [[], ["-q", "2", "-o"], ["-m", "-w", "-r"]]:
        nodes = Nodes(s)

        def kill():
            expect(nodes.servers(0) and not nodes.servers(1), "it is on the first node")
            nodes.jobs[0].kill(signal.SIGKILL)
            nodes.jobs[0].wait()

        r = lost(s, nodes, exe, *mode, how=kill)
        expect("node 'node1', whose devices this program uses, is lost" in r.err, r)
        expect(re.search(r"errors in device memory, 1 recovered", r.err), r)
        nodes.end()


@test
def a_cable_that_is_cut_is_noticed(s):
    exe = opencl(s, "ocl_solver")
    with Namespaces(s, 2, "o", "10.74.1") as net:
        nodes = Nodes(s, [["ip", "netns", "exec", net.prefix + str(k)] for k in (0, 1)], [net.address(0), net.address(1)],
                      timeout="1s")
        inside = s.path("inside")
        os.chmod(s.write("inside", f'#!/bin/sh\nexec ip netns exec {net.hub} {exe} "$@"\n'), 0o755)
        alone = s.run(exe, "1000")
        job = s.start(inside, "-g", s.path("go"), "1000", env=dict(
            nodes.env, OCL_ICD_VENDORS=REMOTE, OPENCL_LAYERS=os.path.join(BUILD, "libhale_opencl.so"),
            HALE_OPENCL="check=none ckpt=epochs:10"))
        job.until_output(r"^100 ")
        net.cut(0)
        s.write("go", "")
        r = job.wait()
        expect(r.status == 0 and r.out == alone.out and "is lost" in r.err, alone, r)
        nodes.end()


@test
def a_server_that_is_busy_is_not_lost(s):
    exe = opencl(s, "ocl_pours")
    s.write("go", "")
    alone = s.run(exe, s.path("go"))
    expect(alone.status == 0, alone)
    os.unlink(s.path("go"))
    nodes = Nodes(s, timeout="1s")
    job = s.start(exe, s.path("go"), env=dict(nodes.env, OCL_ICD_VENDORS=REMOTE))
    job.until_output(r"^ready")
    server = nodes.servers(0)[0]
    os.kill(server, signal.SIGSTOP)
    s.write("go", "")
    time.sleep(4)  # four times the silence that means a loss, with full buffers
    os.kill(server, signal.SIGCONT)
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out and "lost" not in r.err, alone, r)
    nodes.end()


@test
def checkpoints_have_what_is_on_the_other_node(s):
    exe = opencl(s, "ocl_solver")
    nodes = Nodes(s)
    alone = s.run(exe, "1000")
    job = run_opencl(s, exe, "-g", s.path("go"), "1000", options=["--ckpt-every", "100ms", "--report", "report.json"],
                     HALE_OPENCL="check=none ckpt=epochs:10", **nodes.env)
    job.until(lambda: s.complete(), "to take a checkpoint")
    job.until_output(r"^100 ")
    os.kill(job.ranks(1)[0], signal.SIGKILL)
    s.write("go", "")
    r = job.wait()
    expect(r.status == 0 and r.out == alone.out and s.report()["restarts"] == 1, alone, r)
    nodes.end()


@test
def a_node_that_is_silent_is_passed_over(s):
    exe = opencl(s, "ocl_solver")
    alone = s.run(exe, "10")
    nodes = Nodes(s, timeout="1s")
    os.kill(nodes.jobs[0].pid, signal.SIGSTOP)  # its kernel still takes connections
    r = far(s, nodes, exe, "10")
    os.kill(nodes.jobs[0].pid, signal.SIGCONT)
    expect(alone.status == 0 and r.status == 0 and r.out == alone.out, alone, r)
    expect("node 'node1'" in r.err and "the next node is tried" in r.err, r)
    nodes.end()


@test
def what_is_wrong_is_said(s):
    exe = opencl(s, "ocl_solver")
    nodes = Nodes(s)
    for env, words in ((dict(HALE_DEVICES=""), "HALE_DEVICES (NAME=HOST:PORT,…) names none"),
                       (dict(HALE_DEVICES="gone=127.0.0.1:1"), "node 'gone' does not answer"),
                       (dict(HALE_DEVICE_KEY=s.path("another")), "it has another key")):
        r = far(s, nodes, exe, "10", **env)
        expect(r.status != 0 and words in r.err and "there is no OpenCL" in r.err, env, r)
    # the first that answers is taken
    r = far(s, nodes, exe, "10", HALE_DEVICES="gone=127.0.0.1:1," + nodes.env["HALE_DEVICES"])
    expect(r.status == 0 and "the next node is tried" in r.err, r)
    nodes.end()
    # a node with other devices can't take over
    nodes = Nodes(s, devices=({}, {"POCL_DEVICES": "pthread pthread"}))
    job = run_opencl(s, exe, "-g", s.path("go"), "1000", HALE_OPENCL="check=none ckpt=epochs:10", **nodes.env)
    job.until_output(r"^100 ")
    nodes.jobs[0].kill(signal.SIGKILL)
    s.write("go", "")
    r = job.wait()
    expect(r.status != 0 and "has other OpenCL devices than the one that was lost" in r.err, r)
    nodes.end()


main()
