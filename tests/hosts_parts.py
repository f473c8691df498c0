# SPDX-License-Identifier: BSD-3-Clause
"""What tests of faults over hosts (namespaces.py) share: a job of LAMMPS, or of random collectives that
compare each of their results, over shared memory and the network; whoever listens to `hale events`
meanwhile; and that nothing is lost at the end."""

from lib import *
from lib import name_of, parent_of, stat_of
from namespaces import Hosts

UNDISTURBED = {}  # what so many ranks of LAMMPS print: the longest that was needed so far


class Lammps:
    """Debian's own. Ends when it is told to, so that a test needs no particular time."""

    def __init__(self, s, ranks):
        have("lmp")
        self.s, self.ranks = s, ranks
        self.argv = self.melt(100000000)
        self.exe = os.path.realpath(shutil.which("lmp"))
        self.env = {}

    def melt(self, steps):
        return ["lmp", "-log", "none", "-in", os.path.join(ROOT, "tests/data/in.told"), "-var", "steps", steps]

    def begun(self, job):
        job.until_output(r"^ +100 ")

    def goes_on(self, job):
        """It comes to another line of its output."""
        lines = len(job.out().splitlines())
        for _ in range(3000):
            if len(job.out().splitlines()) > lines:
                return
            expect(job.running(), "it has ended", job.result())
            time.sleep(0.02)
        raise Failed(f"it stands still\n{job.result()}")

    def end(self, job):
        """What it prints is what it prints without any fault; a restart's: from there on."""
        r = stop_told(self.s, job)
        got = self.lines(r.out)
        expect(r.status == 0 and got, r)
        wanted = self.undisturbed(int(got[-1].split()[0]))
        at = wanted.index(got[0]) if "restart" in r.argv and got[0] in wanted else 0
        expect(wanted[at:at + len(got)] == got, "not what it prints without a fault", r)

    @staticmethod
    def lines(text):
        return [x.rstrip() for x in text.splitlines() if re.match(r"^ +\d+( +[-0-9.e]+){5} *$", x)]

    def undisturbed(self, steps):
        """Its lines for at least so many steps."""
        if UNDISTURBED.get(self.ranks, (0,))[0] < steps:
            r = self.s.hale_run(self.ranks, *self.melt(steps))
            expect(r.status == 0, r)
            UNDISTURBED[self.ranks] = (steps, self.lines(r.out))
        return UNDISTURBED[self.ranks][1]


def stop_told(s, job):
    """The program's Result, told to stop."""
    s.write("stop", "")
    r = job.wait()
    os.remove(s.path("stop"))
    return r


class Collectives:
    """Random collectives, on communicators that come and go; ends when it is told to."""

    def __init__(self, s, ranks):
        self.s = s
        self.exe = s.path("collectives")
        if not os.path.exists(self.exe):
            s.compile("collectives", flags=["-lm"])
        self.argv = [self.exe, 10000000, SEED, 20000]
        self.env = {"TREE": "1", "STOP": s.path("stop")}

    def begun(self, job):
        time.sleep(0.5)  # anything under way will do

    def goes_on(self, job):
        time.sleep(0.2)  # any of its results may be wrong from here on

    def end(self, job):
        r = stop_told(self.s, job)
        expect(r.status == 0 and r.out.endswith(" rounds, 0 wrong\n"), r)


class Story:
    """That job over `count` hosts, and all its events."""

    def __init__(self, s, hosts, program, *options, timeout="2s", ranks=4):
        self.s, self.hosts = s, hosts
        self.program = program(s, ranks)
        argv = ["ip", "netns", "exec", hosts.hub, HALE, "run", "-n", ranks,
                *hosts.options("--report", "report.json", *options, timeout=timeout), "--",
                *self.program.argv]
        self.job = s.start(*argv, env={"HALE_NET_DEVICES": "eth0", "HALE_NET_TIMEOUT": "2", "HALE_FTB": "",
                                       "XDG_RUNTIME_DIR": s.path("run"), **self.program.env})
        self.job.until(self.pids, "all ranks run")
        self.id = self.info()["id"]
        self.listen()
        self.program.begun(self.job)

    def info(self):
        jobs = json.loads(self.hosts.hale("ps", "--json").out)["jobs"]
        return jobs[0] if jobs else None

    def pids(self):
        job = self.info()
        pids = [r["pid"] for r in job["ranks"]] if job else []
        return pids if pids and all(p > 0 for p in pids) else None

    def listen(self):
        self.watcher = self.s.start("ip", "netns", "exec", self.hosts.hub, HALE, "events", self.id,
                                    "--follow", "--json")

        def heard():
            r = self.hosts.hale("events", "publish", "--job", self.id, "FTB.TEST", "PROBE", "INFO")
            expect(r.status == 0, r)
            return "PROBE" in self.watcher.out()
        self.job.until(heard, "hale events shows what comes")

    def events(self):
        """(name, payload) in their order."""
        found = [json.loads(x) for x in self.watcher.out().splitlines() if x.endswith("}")]
        return [(e["name"], e["payload"]) for e in found]

    def told(self, *wanted):
        """These were told in this order, others perhaps between them: NAME or (NAME, part of its payload)."""
        wanted = [(w, "") if isinstance(w, str) else w for w in wanted]

        def all_of_them():
            left = list(wanted)
            for name, payload in self.events():
                if left and name == left[0][0] and left[0][1] in payload:
                    left.pop(0)
            return not left
        for _ in range(1500):
            if all_of_them():
                return
            time.sleep(0.02)
        raise Failed(f"hale events doesn't show {wanted}\n" + "\n".join(map(str, self.events()))
                     + f"\n{self.job.result()}")

    def never_told(self, *names):
        found = [e for e in self.events() if e[0] in names]
        expect(not found, found)

    def complete(self):
        """Folders of its complete checkpoints, the newest last."""
        found = [os.path.dirname(m) for m in glob.glob(self.s.path("hale-ckpt", self.id, "*",
                                                                   "manifest.json"))]
        return sorted((f for f in found if os.path.basename(f).isdigit()),
                      key=lambda f: int(os.path.basename(f)))

    def copied(self):
        """Those of which each image is on two nodes."""
        found = []
        for folder in self.complete():
            try:
                with open(folder + "/manifest.json") as f:
                    m = json.load(f)
            except FileNotFoundError:  # just removed
                continue
            if all(len(p.get("on", [])) >= 2 for p in m["parts"]):
                found.append(folder)
        return found

    # -- hosts --

    def state(self, k):
        """(state, ranks) of host k."""
        r = self.hosts.hale("nodes", self.id, "--json")
        expect(r.status == 0, r)
        return next((n["state"], n["ranks"]) for n in json.loads(r.out)["nodes"]
                    if n["node"] == self.hosts.address(k))

    def supervisor(self, k):
        """The process that stands for host k: what a launcher has started. The agent is its child."""
        agents = {p for p in children(self.hosts.servers[k].pid)
                  if name_of(p).startswith(HALE + " agent")}
        return next(p for p in agents if parent_of(p) not in [None, *agents])

    def kill_supervisor(self, k):
        os.kill(self.supervisor(k), signal.SIGKILL)

    def ranks_on(self, *ks):
        """pids of the ranks there."""
        places = {self.hosts.address(k) for k in ks}
        return [r["pid"] for r in self.info()["ranks"] if r["node"] in places]

    def processes(self, *ks):
        """Of the program, ranks or copies or who writes their images, on these hosts."""
        found = []
        for k in ks:
            for p in children(self.hosts.servers[k].pid):
                try:
                    if os.readlink(f"/proc/{p}/exe") == self.program.exe:
                        found.append(p)
                except OSError:
                    pass
        return found

    # -- commands --

    def move(self, k, *more):
        return self.hosts.hale("migrate", self.id, "--from", self.hosts.address(k), *more)

    def start_move(self, k, *more):
        return self.s.start("ip", "netns", "exec", self.hosts.hub, HALE, "migrate", self.id, "--from",
                            self.hosts.address(k), *more)

    def end(self):
        """Right to the last line; its last event has come."""
        self.program.end(self.job)
        self.told(("FTB_JOB_ENDED", "EXIT:0"))
        self.watcher.wait()
        return self.s.report()


def at_work(pids):
    """Those that may do anything: neither gone nor stopped. A stopped one that is just being killed wakes
    up to die, so a first look may be wrong."""
    def look(pids):
        states = {p: stat_of(p) for p in pids}
        return [p for p, st in states.items() if st and st[1] not in "ZXTt"]
    found = look(pids)
    if found:
        time.sleep(0.1)
    return look(found)
