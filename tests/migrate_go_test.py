#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale migrate` from GO on: the copies are the ranks, whatever becomes of their streams and of the
processes that they have come from. What is to go wrong between GO and the end is made to: rank 0
is held, so that there is no GO, until all copies are whole and wait for it. None of these jobs has a
checkpoint, so going back would be the end."""

import contextlib

from lib import *
from lib import alive
from migrate_hosts_parts import *
from migrate_parts import *

RECVMSG, LINK_FD = 47, 900
REPORT = ["--spares", "1", "--report", "report.json"]
ENCRYPT = ["--net-security", "encrypt"]
RELAY = {"HALE_MIGRATE_WAY": "relay"}


def waits_for_welcome(pid):
    """The copy is whole, has said HELLO, and stands in link.c's welcome_receive."""
    try:
        with open(f"/proc/{pid}/syscall") as f:
            words = f.read().split()
    except OSError:
        return False
    return len(words) > 2 and words[0] == str(RECVMSG) and int(words[1], 16) >= LINK_FD


def comm_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def signal_all(pids, sig):
    for p in pids:
        os.kill(p, sig)


def held_before_go(s, job, start, of):
    """Ranks 2 and 3 are whole elsewhere. The migration, their processes, their copies."""
    pids = job.ranks(4)
    stopped(pids, [0])
    m = start()
    job.until(lambda: len(of()) == 2 and all(waits_for_welcome(p) for p in of()),
              "the copies wait for GO")
    return m, [pids[2], pids[3]], of(), pids[0]


def local_job(s, options, env):
    exe = s.path("steps")
    if not os.path.exists(exe):
        s.compile("steps")
    job = s.hale_start(4, exe, "0", "20", options=["--nodes", "2", *REPORT, *options], env=env)
    job.until_output(r"rank 0 step 5 ")
    return job


def moved(s, job, m, sources, copies_):
    r = m.wait()
    expect(r.status == 0 and "2 ranks moved" in r.out, r, job.err())
    expect(not any(alive(p) for p in sources), "the processes that ranks have moved from are left")
    ranks = job.ranks(4)
    expect(sorted([ranks[2], ranks[3]]) == sorted(copies_), ranks, copies_)
    until_steps_go_on(job)
    end(s, job)
    os.unlink(s.path("stop"))
    expect(s.report()["restarts"] == 0 and s.report()["failures"] == [], s.report())


@test
def who_is_killed_after_go_is_no_rank_any_more(s):
    for options, env, how in (([], {}, []), ([], RELAY, []), (ENCRYPT, {}, []),
                              ([], {}, ["--via-files"])):
        job = local_job(s, options, env)
        m, sources, copies_, first = held_before_go(
            s, job, lambda: s.start(HALE, "migrate", job.id(), "--from", "node1", *how),
            lambda: copies(s, job))
        signal_all(sources, signal.SIGSTOP)
        os.kill(first, signal.SIGCONT)
        job.until(lambda: not any(waits_for_welcome(p) for p in copies_), "GO is given")
        signal_all(sources, signal.SIGKILL)
        moved(s, job, m, sources, copies_)


@test
def a_copy_that_is_late_is_not_refused_by_a_checkpoint(s):
    """The move is over; the stream that it came through is no socket of the program's."""
    job = local_job(s, [], {})
    m, _, copies_, first = held_before_go(
        s, job, lambda: s.start(HALE, "migrate", job.id(), "--from", "node1"), lambda: copies(s, job))
    os.kill(copies_[0], signal.SIGSTOP)
    os.kill(first, signal.SIGCONT)
    r = m.wait()
    expect(r.status == 0, r)
    ckpt = s.start(HALE, "ckpt", job.id())
    time.sleep(0.5)  # it is looked at
    os.kill(copies_[0], signal.SIGCONT)
    r = ckpt.wait()
    expect(r.status == 0, r)
    end(s, job)


@test
def a_stream_that_breaks_after_go_costs_nothing(s):
    """Those who encrypt it are killed before the copies can say that they run."""
    for env in ({}, RELAY):
        job = local_job(s, ENCRYPT, env)
        m, sources, copies_, first = held_before_go(
            s, job, lambda: s.start(HALE, "migrate", job.id(), "--from", "node1"),
            lambda: copies(s, job))
        signal_all(copies_, signal.SIGSTOP)
        os.kill(first, signal.SIGCONT)
        job.until(lambda: not any(alive(p) for p in sources), "what they have come from has ended")
        for p in children(job.pid):
            if comm_of(p) == "hale-seal":
                with contextlib.suppress(ProcessLookupError):  # it ends by itself when both ends have
                    os.kill(p, signal.SIGKILL)
        job.until(lambda: not any(comm_of(p) == "hale-seal" for p in children(job.pid)),
                  "nobody passes on their words")
        signal_all(copies_, signal.SIGCONT)
        moved(s, job, m, sources, copies_)


@test
def a_cable_that_says_nothing_after_go_holds_up_nobody(s):
    """Between the two hosts only: agents hear the head."""
    with Hosts(s, 3) as hosts:
        job = host_job(s, hosts, env={"HALE_MIGRATE_TIMEOUT": "15s"})
        m, sources, copies_, first = held_before_go(
            s, job, lambda: start_move(s, hosts, job, 1), lambda: host_copies(s, hosts, 2))
        for k, other in ((1, 2), (2, 1)):
            hosts.ip("-n", f"{hosts.prefix}{k}", "route", "add", "blackhole",
                     hosts.address(other) + "/32")
        os.kill(first, signal.SIGCONT)
        moved(s, job, m, sources, copies_)
        expect("hang" not in job.err(), job.err())


@test
def a_copy_may_end_before_what_it_has_come_from(s):
    """Processes without MPI, which wait for nobody: one has nothing left to do but to end."""
    s.write("wait.py", "import os, time\nprint('begun', flush=True)\n"
            "while not os.path.exists('stop'): time.sleep(0.01)\nprint('over', flush=True)\n")
    job = s.hale_start(2, PYTHON, s.path("wait.py"), options=["--no-mpi", "--nodes", "2", *REPORT])
    job.until_output("begun\nbegun\n")
    first, source = (job.ranks(2)[k] for k in (0, 1))
    os.kill(first, signal.SIGSTOP)
    m = s.start(HALE, "migrate", job.id(), "--from", "node1")
    copy = job.until(lambda: [p for p in children(job.pid) if waits_for_welcome(p)], "a copy waits")[0]
    os.kill(source, signal.SIGSTOP)
    s.write("stop", "")
    os.kill(first, signal.SIGCONT)
    job.until(lambda: not alive(copy), "the copy has ended")
    os.kill(source, signal.SIGKILL)
    r = m.wait()
    expect(r.status == 0 and "1 rank moved" in r.out, r, job.err())
    r = job.wait()
    expect(r.status == 0 and sorted(r.out.splitlines()) == ["begun", "begun", "over", "over"], r)
    expect(s.report()["restarts"] == 0 and s.report()["failures"] == [], s.report())


main()
