# SPDX-License-Identifier: BSD-3-Clause
"""What scenarios of `hale migrate` share."""

from lib import *

LMP = ["lmp", "-log", "none", "-in", os.path.join(ROOT, "tests/data/in.melt"), "-var", "steps"]


def lammps(s):
    """What it prints undisturbed, and a job over two nodes, with a spare, that has begun."""
    have("lmp")
    wanted = s.hale_run(4, *LMP, "1500")
    expect(wanted.status == 0, wanted)
    job = s.hale_start(4, *LMP, "1500", options=["--nodes", "2", "--spares", "1", "--report",
                                                 "report.json"])
    job.until_output(r"^ +200 ")
    return wanted, job


def nodes(s, job):
    r = s.hale("nodes", job.id(), "--json")
    expect(r.status == 0, r)
    return {n["node"]: (n["state"], n["ranks"]) for n in json.loads(r.out)["nodes"]}


def agent_pid(s, job, node):
    r = s.hale("nodes", job.id(), "--json")
    return next(n["pid"] for n in json.loads(r.out)["nodes"] if n["node"] == node)


def migrate(s, job, *args):
    return s.hale("migrate", job.id(), *args)


def copies(s, job):
    """Processes that may become ranks: what the agents have started and is none."""
    r = s.hale("nodes", job.id(), "--json")
    agents = {n["pid"] for n in json.loads(r.out)["nodes"]}
    ranks = {r["pid"] for r in job.info()["ranks"]}
    found = []
    for pid in children(job.pid):
        try:
            with open(f"/proc/{pid}/stat") as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
            if parent in agents and pid not in ranks and \
               os.readlink(f"/proc/{pid}/exe") == s.path("steps"):
                found.append(pid)
        except OSError:
            pass
    return found


def until_steps_go_on(job):
    last = int(re.findall(r"^rank 0 step (\d+) ", job.out(), re.M)[-1]) + 3
    job.until_output(f"rank 0 step {last} ")


def steps_job(s, *options, nodes=("--nodes", "2")):
    exe = s.path("steps")
    if not os.path.exists(exe):
        s.compile("steps")
    job = s.hale_start(4, exe, "0", "20", options=[*nodes, *options])
    job.until_output(r"rank 0 step 5 ")
    return job


def end(s, job):
    s.write("stop", "")
    r = job.wait()
    expect(r.status == 0, r)
    lines = [x for x in r.out.splitlines() if " step " in x]
    expect(len(lines) == len(set(lines)), "output came twice", r)
    for rank in range(4):
        mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) ", r.out, re.M)]
        expect(mine == sorted(mine) and len(set(b - a for a, b in zip(mine, mine[1:]))) <= 1,
               f"rank {rank} has lost a line", r)
    return r


def stopped(pids, of):
    """These ranks stand still until resume()."""
    for r in of:
        os.kill(pids[r], signal.SIGSTOP)


def resume(pids, of):
    for r in of:
        os.kill(pids[r], signal.SIGCONT)


def tmpfs(s, name, size):
    """A small disk at that path."""
    os.makedirs(s.path(name), exist_ok=True)
    if os.getuid() != 0 or s.run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs",
                                 s.path(name)).status != 0:
        skip("no right to mount a tmpfs")


def umount(s, name):
    s.run("umount", "-l", s.path(name))
