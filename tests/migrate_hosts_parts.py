# SPDX-License-Identifier: BSD-3-Clause
"""What scenarios of `hale migrate` between hosts share, which are network namespaces."""

from lib import *
from lib import name_of, parent_of
from migrate_parts import *
from namespaces import Hosts

OPTIONS = ["--spares", "1", "--report", "report.json"]
RELAY = {"HALE_MIGRATE_WAY": "relay"}


def seen_from_the_head(hosts, job):
    """`hale ps` finds jobs by names that belong to a network namespace; this one has one job."""
    def info():
        jobs = json.loads(hosts.hale("ps", "--json").out)["jobs"]
        return jobs[0] if jobs else None
    job.info = info
    return job


def host_job(s, hosts, *options, ranks=4, env=None):
    exe = s.path("steps")
    if not os.path.exists(exe):
        s.compile("steps")
    job = seen_from_the_head(hosts, hosts.hale_start(ranks, exe, "0", "20",
                                                     options=[*OPTIONS, *options], env=env))
    job.until_output(r"rank 0 step 5 ")
    return job


def move(hosts, job, k, *more):
    return hosts.hale("migrate", job.id(), "--from", hosts.address(k), *more)


def start_move(s, hosts, job, k, *more):
    return s.start("ip", "netns", "exec", hosts.hub, HALE, "migrate", job.id(), "--from",
                   hosts.address(k), *more)


def state_of(hosts, job, k):
    r = hosts.hale("nodes", job.id(), "--json")
    expect(r.status == 0, r)
    return next((n["state"], n["ranks"]) for n in json.loads(r.out)["nodes"]
                if n["node"] == hosts.address(k))


def host_copies(s, hosts, k):
    """Of a host without ranks: all that runs the program there."""
    found = []
    for pid in children(hosts.servers[k].pid):
        try:
            if os.readlink(f"/proc/{pid}/exe") == s.path("steps"):
                found.append(pid)
        except OSError:
            pass
    return found


def agent_of(hosts, k):
    """`hale nodes` has its launcher's pid."""
    agents = {p for p in children(hosts.servers[k].pid) if name_of(p).startswith(HALE + " agent")}
    return next(p for p in agents if parent_of(p) not in [None, *agents])
