# SPDX-License-Identifier: BSD-3-Clause
"""What tests of `hale attach` share: a job that may lose its head, and the next one."""

from lib import *
from lib import stat_of

EXIT_SUPERSEDED = 71
GRACE = ["--head-grace", "60s", "--report", "report.json"]


def steps(s):
    exe = s.path("steps")
    return exe if os.path.exists(exe) else s.compile("steps")


def start(s, *options, ms=20, ranks=4, env=None):
    job = s.hale_start(ranks, steps(s), 0, ms, options=[*GRACE, *options], env=env)
    job.until_output("rank 0 step 5 ")
    job.name = job.id()
    return job


def jobs(s, hale=None):
    r = (hale or s.hale)("ps", "--json")
    expect(r.status == 0, r)
    return {j["id"]: j for j in json.loads(r.out)["jobs"]}


def until(condition, what, seconds=60):
    for _ in range(seconds * 50):
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise Failed(f"waited in vain: {what}")


def kill_head(s, job, hale=None):
    """Killed; its output daemon lists the job."""
    job.kill()
    job.wait()
    until(lambda: jobs(s, hale).get(job.name, {}).get("state") == "headless", "hale ps: headless")


def attach(s, before, *options, says="has a head again", env=None):
    job = s.start(HALE, "attach", before.name, *options, env=env)
    job.name = before.name
    if says:
        job.until_says(says)
    return job


def last_step(*heads):
    found = re.findall(r"^rank 0 step (\d+) ", "".join(h.out() for h in heads), re.M)
    return int(found[-1])


def goes_on(job, *before):
    job.until_output(f"rank 0 step {last_step(*before, job) + 5} ")


def end(s, *heads, ranks=4):
    """The job ends well, and all heads together have printed every line once."""
    s.write("stop", "")
    r = heads[-1].wait()
    expect(r.status == 0, r)
    os.unlink(s.path("stop"))
    out = "".join(h.out() for h in heads)
    for rank in range(ranks):
        mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) [0-9a-f]{{16}}$", out, re.M)]
        expect(mine == list(range(len(mine))), f"rank {rank}: lines are lost, or came twice", mine,
               r)
    expect(not any("second time" in h.err() for h in heads), r)
    expect(len(re.findall("^done ", out, re.M)) == 1, out[-400:], [h.result() for h in heads][-1])
    expect(heads[-1].name not in jobs(s), "the job is over, and listed")
    expect(not glob.glob(s.path("hale-ckpt/*/head.*")), "a record of heads is left")
    return s.report()


def record(s):
    with open(glob.glob(s.path("hale-ckpt/*/record.jsonl"))[0]) as f:
        return [json.loads(x) for x in f]


def agents(s, job, hale=None):
    r = (hale or s.hale)("nodes", job.name, "--json")
    expect(r.status == 0, r)
    return {n["node"]: n for n in json.loads(r.out)["nodes"]}


def rank_pids(s, name):
    def pids():
        j = jobs(s).get(name)
        found = {r["rank"]: r["pid"] for r in j["ranks"]} if j else {}
        return found if found and j["state"] == "running" and all(found.values()) else None
    return until(pids, "all ranks run")


def until_still(s):
    """Leases have run out, and the agents, not their supervisors, have seen to it: an agent has an eighth of a
    lease for that, so leases are long here."""
    def still():
        states = set()
        for p in children(os.getpid()):
            try:
                if os.readlink(f"/proc/{p}/exe") == s.path("steps"):
                    states.add(stat_of(p)[1])
            except (OSError, TypeError):  # just ended
                pass
        return states == {"T"}
    until(still, "the ranks stand still")


def s_comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read()
    except OSError:
        return ""


def host_job(s, hosts, *options, env=None):
    job = hosts.hale_start(4, steps(s), 0, 20, options=[*GRACE, *options], env=env)
    job.until_output("rank 0 step 5 ")
    job.name = re.search(r"steps\.\d+", " ".join(jobs(s, hosts.hale)))[0]
    return job


def host_attach(s, hosts, before, says="has a head again", env=None):
    job = s.start("ip", "netns", "exec", hosts.hub, HALE, "attach", before.name, env=env)
    job.name = before.name
    if says:
        job.until_says(says)
    return job


def heads_killed_at_random(s, first, longest, rng):
    """The head, and one after the other of its successors, is killed after up to so many seconds, sometimes
    together with a rank; all heads, the last one has taken over."""
    heads = [first]
    for _ in range(20 if LONG else 6):
        time.sleep(rng.uniform(0, longest))
        if rng.random() < 0.4:
            j = jobs(s).get(first.name)
            pids = [r["pid"] for r in j["ranks"] if r["pid"] > 0] if j else []
            if pids:
                try:
                    os.kill(rng.choice(pids), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(rng.uniform(0, 0.1))
        kill_head(s, heads[-1])
        heads.append(attach(s, heads[-1], says=None))
        time.sleep(rng.uniform(0, 0.05))
    heads[-1].until_says("has a head again|all ranks run again")
    goes_on(heads[-1], *heads)
    return heads


def deaths_at(s, *calls):
    shutil.rmtree(s.path("deaths"), ignore_errors=True)
    os.mkdir(s.path("deaths"))
    for n in calls:
        s.write(f"deaths/{n}", "")
    s.write("deaths/at-go", "")


def no_more_deaths(s):
    shutil.rmtree(s.path("deaths"))
    os.mkdir(s.path("deaths"))
    time.sleep(0.1)  # who has just seen that it is to die does
