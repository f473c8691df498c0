# SPDX-License-Identifier: BSD-3-Clause
"""What tests of agents that are replaced share."""

from lib import *
from levels_parts import comm

REPLACED = "another one goes on in its place"


def nodes(s, job):
    r = s.hale("nodes", getattr(job, "name", None) or job.id(), "--json")
    expect(r.status == 0, r)
    return {n["node"]: n for n in json.loads(r.out)["nodes"]}


def agents(of):
    return sorted(p for p in children(of) if comm(p) == "hale-agent")


def agent_of(supervisor):
    """The living one."""
    for _ in range(3000):
        found = agents(supervisor)
        if found:
            return found[0]
        time.sleep(0.01)
    raise Failed(f"supervisor {supervisor} has no agent")


def until_replaced(job, count):
    job.until(lambda: job.err().count(REPLACED) >= count, f"{count} agents are replaced")


def kill_agent(job, supervisor):
    before = job.err().count(REPLACED)
    os.kill(agent_of(supervisor), signal.SIGKILL)
    until_replaced(job, before + 1)


def preload(s):
    """The environment under which agents die of their calls (programs/dies_at.c)."""
    os.makedirs(s.path("deaths"), exist_ok=True)
    r = s.run("gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", s.path("dies_at.so"),
              os.path.join(ROOT, "tests/programs/dies_at.c"), "-ldl")
    expect(r.status == 0, r)
    return {"LD_PRELOAD": s.path("dies_at.so"), "HALE_DIES": s.path("deaths")}
