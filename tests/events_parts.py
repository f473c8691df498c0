# SPDX-License-Identifier: BSD-3-Clause
"""What tests of a job's events on its hosts share: a job that serves them, subscribers, publishers."""

from lib import *


class Job:
    def __init__(self, s, hosts, *options):
        exe = s.path("steps")
        if not os.path.exists(exe):
            s.compile("steps")
        self.s, self.hosts = s, hosts
        # no broker of the machine, which the job would join
        self.count = s.compile("ftb_count", mpi=None,
                               flags=["-L", BUILD, "-lftb", f"-Wl,-rpath,{BUILD}"])
        self.run = hosts.hale_start(2, exe, "0", "20",
                                    options=["--spares", "1", "--report", "report.json", *options],
                                    env={"HALE_FTB": "", "XDG_RUNTIME_DIR": s.path("run")})
        self.run.until_output("rank 0 step 3 ")
        jobs = json.loads(hosts.hale("ps", "--json").out)["jobs"]
        self.env = {"HALE_FTB": f"@hale/{os.geteuid()}/{jobs[0]['id']}/ftb"}

    def space(self, k):
        """Host k; None: the head's."""
        return ["ip", "netns", "exec", self.hosts.hub if k is None else f"{self.hosts.prefix}{k}"]

    def status(self, k):
        r = self.s.run(*self.space(k), HALE, "backplane", "status", "--json", env=self.env)
        return json.loads(r.out) if r.status == 0 else None

    def until(self, k, condition, what):
        return self.run.until(lambda: (lambda st: st if st and condition(st) else None)
                              (self.status(k)), what)

    def watch(self, k, *options):
        before = self.status(k)["subscriptions"]
        w = self.s.start(*self.space(k), HALE, "events", "--follow", "--json", *options,
                         env=self.env)
        self.until(k, lambda st: st["subscriptions"] > before, "the subscriber is there")
        return w

    def heard(self, k, name, *watchers):
        """Until host k's events reach them: subscriptions go through the tree by and by."""
        def probe():
            r = self.s.run(*self.space(k), HALE, "events", "publish", "FTB." + name, "PROBE",
                           "INFO", "0", env=self.env)
            expect(r.status == 0, r)
            return all(any(e["name"] == "PROBE" for e in events(w, "FTB." + name))
                       for w in watchers)
        self.run.until(probe, f"host {k} knows of the subscribers")

    def publish(self, k, name, count, severity="WARNING", pause=1000):
        p = self.s.start(*self.space(k), self.count, "FTB." + name, severity, count, pause,
                         env=self.env)
        p.until_output("connected")
        return p

    def end(self):
        self.s.write("stop", "")
        r = self.run.wait()
        expect(r.status == 0, r)
        os.remove(self.s.path("stop"))


def events(w, space):
    return [json.loads(x) for x in w.out().splitlines() if x.endswith("}") and
            json.loads(x)["namespace"].upper() == space.upper()]


def numbers(w, name):
    return [int(e["payload"].split()[0]) for e in events(w, "FTB." + name)
            if e["name"] != "PROBE"]


def until_all(job, w, name, count):
    job.run.until(lambda: len(numbers(w, name)) >= count, f"{count} of {name} have come")
    expect(numbers(w, name) == list(range(1, count + 1)), numbers(w, name))


def stop(*watchers):
    for w in watchers:
        w.kill(signal.SIGTERM)
        w.wait()
