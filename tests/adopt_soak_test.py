#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Agents die at random moments in a job over hosts (network namespaces), among checkpoints, moves and new heads
that come at random, too: every line comes once. HALE_LONG=1: hundreds of deaths."""

from adopt_parts import agent_of
from lib import *
from levels_parts import comm
from namespaces import Hosts
from hosts_parts import Collectives, Lammps, stop_told

DEATHS = 150 if LONG else 8
HOSTS = 3


class Soak:
    def __init__(self, s, hosts, program):
        self.s, self.hosts, self.program = s, hosts, program(s, 4)
        self.env = {"HALE_NET_DEVICES": "eth0", "HALE_NET_TIMEOUT": "4", "HALE_FTB": "",
                    "XDG_RUNTIME_DIR": s.path("run"), **self.program.env}
        self.draw = random.Random(SEED)
        self.heads, self.commands = [], []
        self.died = {k: [] for k in range(HOSTS)}  # when
        self.deaths = 0
        self.start("run", "-n", 4, *hosts.options("--report", "report.json", "--spares", "1", "--head-grace", "60s",
                                                  "--ckpt-every", "400ms", timeout="4s"), "--", *self.program.argv)
        # a head that dies before the ranks run has begun nothing that another one could go on with
        self.heads[0].until(self.all_run, "all ranks run")
        self.id = self.jobs()[0]["id"]
        self.program.begun(self.heads[0])

    def start(self, *argv):
        self.heads.append(self.s.start("ip", "netns", "exec", self.hosts.hub, HALE, *argv, env=self.env))

    def jobs(self):
        return json.loads(self.hosts.hale("ps", "--json").out)["jobs"]

    def all_run(self):
        ranks = [r for job in self.jobs() for r in job["ranks"]]
        return ranks and all(r["pid"] > 0 for r in ranks)

    def command(self, *argv):
        self.commands.append(self.s.start("ip", "netns", "exec", self.hosts.hub, HALE, *argv, env=self.env))

    def supervisor(self, k):
        return next(p for p in children(self.hosts.servers[k].pid) if comm(p) == "hale-supervisor")

    def agent(self):
        """No more than three in ten seconds, which would be a node that is given up."""
        k = self.draw.randrange(HOSTS)
        now = time.monotonic()
        self.died[k] = [t for t in self.died[k] if now - t < 12]
        if len(self.died[k]) >= 3:
            return
        os.kill(agent_of(self.supervisor(k)), signal.SIGKILL)
        self.died[k].append(now)
        self.deaths += 1

    def checkpoint(self):
        self.command("ckpt", self.id)

    def move(self):
        self.command("migrate", self.id, "--from", self.hosts.address(self.draw.randrange(HOSTS)))

    def head(self):
        self.heads[-1].kill()
        self.heads[-1].wait()
        if self.draw.random() < 0.5:
            self.agent()
        time.sleep(self.draw.random())
        self.start("attach", self.id, "--force")
        if self.draw.random() < 0.5:
            time.sleep(self.draw.random() * 0.3)
            self.agent()
        self.heads[-1].until_says("has a head again")

    def run(self):
        what = [self.agent] * 5 + [self.checkpoint, self.move, self.head]
        while self.deaths < DEATHS:
            for do in self.draw.sample(what, len(what)):
                do()
                time.sleep(self.draw.random() * 0.6)
                expect(self.heads[-1].running(), self.heads[-1].result())
        self.program.goes_on(self.heads[-1])
        for c in self.commands:
            c.wait()
        r = stop_told(self.s, self.heads[-1])
        expect(r.status == 0, r)
        expect(not any("is lost" in h.err() or "may come twice" in h.err() for h in self.heads),
               *[h.result() for h in self.heads])
        self.report = self.s.report()
        return "".join(h.out() for h in self.heads)

    def told(self):
        r = self.report
        return (f"{self.deaths} agents, {len(self.heads) - 1} heads died; {len(r['checkpoints'])} checkpoints, "
                f"{len(r['migrations'])} moves, {r['restarts']} rollbacks")


@test
def lammps_prints_the_same_whatever_dies(s):
    with Hosts(s, HOSTS) as hosts:
        soak = Soak(s, hosts, Lammps)
        got = Lammps.lines(soak.run())
        wanted = soak.program.undisturbed(int(got[-1].split()[0]))
        expect(wanted[:len(got)] == got, "not what it prints without a fault", soak.heads[-1].result())
        return soak.told()


@test
def random_collectives_are_right_whatever_dies(s):
    with Hosts(s, HOSTS) as hosts:
        soak = Soak(s, hosts, Collectives)
        out = soak.run()
        expect(out.endswith(" rounds, 0 wrong\n"), soak.heads[-1].result())
        return soak.told()


main()
