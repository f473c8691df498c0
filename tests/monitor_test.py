#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`hale monitor` on real things: a BMC (OpenIPMI's ipmi_sim) whose sensors change, an InfiniBand
fabric (ibsim) whose cables are cut, processes that stop, file systems that fill."""

import sqlite3

from lib import *
from monitor_parts import Bmc, Fabric, end_by_id


class Watch:
    """hale monitor, writing events to a file."""

    def __init__(self, s, *options, env=None):
        self.s = s
        self.file = f"events.{len(s.jobs)}"
        self.job = s.start(HALE, "monitor", "--to", s.path(self.file), *options,
                           env=dict(env or {}, HOME=s.dir))

    def events(self):
        if not os.path.exists(self.s.path(self.file)):
            return []
        return [json.loads(x) for x in self.s.read(self.file).splitlines()]

    def brief(self):
        return [(e["name"], e["severity"], e["payload"]) for e in self.events()]

    def until(self, *wanted):
        """These events, in this order and no others, come."""
        self.job.until(lambda: len(self.brief()) >= len(wanted), f"{len(wanted)} events")
        expect(self.brief() == list(wanted), self.brief(), self.job.result())

    def until_some(self, name, payload=""):
        return self.job.until(lambda: [e for e in self.events() if e["name"] == name
                                       and payload in e["payload"]], name)

    def end(self):
        self.job.kill(signal.SIGTERM)
        r = self.job.wait()
        expect(r.status == 0, r)


def comm_of(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


# ---- IPMI ----

@test
def a_fan_fails_a_processor_gets_hot_and_both_get_well(s):
    bmc = Bmc(s, "node3")
    healthy = s.start(HALE, "monitor", *bmc.options(), "--readings", env={"HOME": s.dir})
    healthy.until_output(r"FAN1,Fan,3600")
    end_by_id(s, healthy)
    watch = Watch(s, *bmc.options(), "--every", "100ms")
    ours = lambda: [b for b in watch.brief() if b[0].startswith("FTB_IPMI")]
    for change, event in (({"fan": 5}, ("FTB_IPMI_FANFAIL", "ERROR", "node3")),
                          ({"temperature": 90}, ("FTB_IPMI_OVERTEMP", "ERROR", "node3")),
                          ({"fan": 60}, None),
                          ({"temperature": 40}, ("FTB_IPMI_NORMAL", "INFO", "node3"))):
        before = ours()
        bmc.set(**change)
        if event:
            watch.job.until(lambda: len(ours()) > len(before), event[0])
            expect(ours() == before + [event], ours())
    expect(all(e["namespace"] == "FTB.FTB_IPMI" for e in watch.events()
               if e["name"].startswith("FTB_IPMI")), watch.events())
    bmc.job.kill(signal.SIGSTOP)  # a BMC that hangs is neither well nor ill
    watch.until_some("MONITOR_LOST", "NODE:node3::MONITOR:ipmi::REASON:")
    bmc.job.kill(signal.SIGCONT)
    watch.job.until(lambda: watch.brief()[-1][0] == "MONITOR_BACK", "MONITOR_BACK")
    expect(ours()[-1][0] == "FTB_IPMI_NORMAL", ours())
    watch.end()
    bmc.end()


# ---- InfiniBand ----

@test
def a_cut_cable_is_a_port_error_and_a_new_lid_is_told(s):
    fabric = Fabric(s)
    fabric.sweep()
    watch = Watch(s, "--ib", "--every", "100ms", "--node", "n1", env=fabric.host)
    start = [("FTB_IB_ADAPTER_AVAILABLE", "INFO", "NUM_ADAPTERS:1"),
             ("FTB_IB_ADAPTER_INFO", "INFO", "ADAPTER:0::NAME:ibsim0::PORTS:1"),
             ("FTB_IB_PORT_INFO", "INFO", "ADAPTER:0::PORT:1::STATE:ACTIVE")]
    watch.until(*start)
    fabric.say('unlink "Hca1"[1]')
    down = start + [("FTB_IB_PORT_ERR", "ERROR", "ADAPTER:0::PORT:1")]
    watch.until(*down)
    fabric.say('relink "Hca1"[1]')
    up = down + [("FTB_IB_PORT_INFO", "INFO", "ADAPTER:0::PORT:1::STATE:INIT")]
    watch.until(*up)
    fabric.sweep()
    watch.until_some("FTB_IB_PORT_ACTIVE", "ADAPTER:0::PORT:1")
    expect([e for e in watch.brief() if e not in up and e[0] != "FTB_IB_PORT_INFO"]
           == [("FTB_IB_PORT_ACTIVE", "INFO", "ADAPTER:0::PORT:1")], watch.brief())
    fabric.say('Baselid "Hca1"[1] 77')
    watch.until_some("FTB_IB_EVENT_LID_CHANGE", "ADAPTER:0::PORT:1")
    expect({e["namespace"] for e in watch.events()} == {"FTB.FTB_IB"}, watch.events())
    watch.end()
    fabric.end()


@test
def a_node_without_an_adapter_says_so_once(s):
    if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        skip("there is an adapter")
    watch = Watch(s, "--ib", "--every", "20ms", "--load", "--node", "n1")
    watch.until_some("FTB_IB_ADAPTER_UNAVAILABLE")
    count = lambda: sum(1 for e in watch.events() if e["namespace"] == "FTB.FTB_IB")
    reader = children(watch.job.pid)
    expect(len(reader) == 2, s.process_table())
    before = sum(proc_switches(p) for p in reader)
    watch.job.until(lambda: sum(proc_switches(p) for p in reader) > before + 20, "it looks again")
    expect(count() == 1 and ("FTB_IB_ADAPTER_UNAVAILABLE", "WARNING", "") in watch.brief(),
           watch.brief())
    watch.end()


def proc_switches(pid):
    with open(f"/proc/{pid}/status") as f:
        return sum(int(x.split()[1]) for x in f if "ctxt_switches" in x)


# ---- memory ----

@test
def memory_errors_are_told_from_counters_records_and_logs(s):
    dimm = s.path("edac", "mc", "mc0", "dimm0")
    os.makedirs(dimm)
    probe = s.path("edac", "mc", "mc0", "dimm1")
    os.makedirs(probe)
    for name, text in (("dimm_ce_count", "5"), ("dimm_ue_count", "0"), ("dimm_label", "DIMM A1")):
        s.write(os.path.join(dimm, name), text + "\n")
        s.write(os.path.join(probe, name), text.replace("A1", "B1") + "\n")
    s.write("kernel.log", "mce: [Hardware Error]: CPU 9: Machine Check Exception: 5 Bank 1: "
            "be00000000800400\n")  # old: not told
    s.write("mcelog.log", "")
    watch = Watch(s, "--memory", "--no-gpu", "--edac", s.path("edac"), "--rasdaemon",
                  s.path("ras.db"), "--kernel-log", s.path("kernel.log"), "--mcelog",
                  s.path("mcelog.log"), "--every", "50ms", "--node", "n1")
    count = iter(range(6, 10000))

    def looks():
        path = os.path.join(probe, "dimm_ce_count")
        s.write(path + ".new", f"{next(count)}\n")
        os.rename(path + ".new", path)
        return any("UNIT:DIMM B1" in e[2] for e in watch.brief())

    watch.job.until(looks, "it knows what was there before")
    s.write(os.path.join(dimm, "dimm_ce_count"), "8\n")
    watch.until_some("FTB_MEM_CORRECTED", "SOURCE:edac::UNIT:DIMM A1::COUNT:3")
    with open(s.path("kernel.log"), "a") as f:
        f.write("mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 4: "
                "be00000000800400\n")
    watch.until_some("FTB_MEM_MACHINE_CHECK", "CPU:2::BANK:4::STATUS:be00000000800400")
    os.rename(s.path("kernel.log"), s.path("kernel.log.1"))  # rotated
    s.write("kernel.log", "Memory failure: 0x1f5a2: recovery action for dirty LRU page: Recovered\n")
    watch.until_some("FTB_MEM_PAGE_FAILED", "PAGE:0x1f5a2::OUTCOME:Recovered")
    with open(s.path("mcelog.log"), "a") as f:
        f.write("CPU 1 BANK 3 TSC 5d\nSTATUS be00000000010090 MCGSTATUS 0\n")
    watch.until_some("FTB_MEM_MACHINE_CHECK", "CPU:1::BANK:3")
    expect(not [e for e in watch.brief() if "CPU:9" in e[2]], watch.brief())
    watch.end()


@test
def rasdaemons_records_are_counted(s):
    db = sqlite3.connect(s.path("ras.db"))
    db.execute("CREATE TABLE mc_event (id INTEGER PRIMARY KEY, timestamp TEXT, err_count INTEGER,"
               " err_type TEXT, err_msg TEXT, label TEXT, mc INTEGER)")
    add = ("INSERT INTO mc_event (timestamp, err_count, err_type, err_msg, label, mc)"
           " VALUES ('now', ?, ?, 'memory read error', ?, 0)")
    db.execute(add, (4, "Corrected", "DIMM_B2"))
    db.commit()
    watch = Watch(s, "--memory", "--no-gpu", "--edac", s.path("none"), "--rasdaemon",
                  s.path("ras.db"), "--kernel-log", s.path("none"), "--every", "50ms")

    def looks():
        db.execute(add, (1, "Corrected", "DIMM_A1"))
        db.commit()
        return any("UNIT:DIMM_A1" in e[2] for e in watch.brief())

    watch.job.until(looks, "it knows what was there before")
    db.execute(add, (2, "Corrected", "DIMM_B2"))
    db.execute(add, (1, "Uncorrected", "DIMM_B2"))
    db.commit()
    watch.until_some("FTB_MEM_UNCORRECTED")
    expect([e for e in watch.brief() if "DIMM_A1" not in e[2]] ==
           [("FTB_MEM_CORRECTED", "WARNING", "SOURCE:rasdaemon::UNIT:DIMM_B2::COUNT:2"),
            ("FTB_MEM_UNCORRECTED", "ERROR", "SOURCE:rasdaemon::UNIT:DIMM_B2::COUNT:1")], watch.brief())
    db.close()
    watch.end()


# ---- load ----

@test
def a_stopped_process_is_stuck_and_a_full_disk_is_full(s):
    disk = s.tmpfs("disk", "1m")
    sleeper = s.start(PYTHON, "-c", "import time\nwhile True: time.sleep(0.01)")
    watch = Watch(s, "--load", "--pid", sleeper.pid, "--disk", disk, "--stuck-after", "1s",
                  "--every", "50ms", "--pressure", "cpu=100", "--node", "n1")
    reader = watch.job.until(lambda: children(watch.job.pid), "the reader runs")[0]
    looked = proc_switches(reader)
    watch.job.until(lambda: proc_switches(reader) > looked + 5, "it has looked")
    sleeper.kill(signal.SIGSTOP)
    watch.until_some("FTB_LOAD_STUCK", f"PID:{sleeper.pid}::STATE:T::SECONDS:")
    sleeper.kill(signal.SIGCONT)
    watch.until_some("FTB_LOAD_MOVES", f"PID:{sleeper.pid}")
    with open(os.path.join(disk, "big"), "wb") as f:
        f.write(b"x" * 1000000)
    watch.until_some("FTB_LOAD_DISK_FULL", f"PATH:{disk}::FREE:")
    os.unlink(os.path.join(disk, "big"))
    watch.until_some("FTB_LOAD_DISK_OK", f"PATH:{disk}::FREE:")
    end_by_id(s, sleeper)
    watch.end()


# ---- the command ----

@test
def a_file_takes_the_place_of_a_sensor(s):
    file = s.write("sensors", "# as ipmi-sensors --comma-separated-output prints it\n"
                   "1,CPU Temp,Temperature,40.00,C,'OK'\n2,FAN1,Fan,3600.00,RPM,'OK'\nwait 50ms\n"
                   "2,FAN1,Fan,0.00,RPM,'At or Below (<=) Lower Critical Threshold'\n")
    watch = Watch(s, "--ipmi-file", f"n7={file}", "--every", "20ms")
    watch.until(("FTB_IPMI_FANFAIL", "ERROR", "n7"))
    with open(file, "a") as f:  # what is appended comes later
        f.write("2,FAN1,Fan,3600.00,RPM,'OK'\nwait 20ms\n1,CPU Temp,Temperature,40.00,C,'OK'\n"
                "wait 20ms\nend\n")
    r = watch.job.wait()
    expect(r.status == 0 and watch.brief()[1:] == [("FTB_IPMI_NORMAL", "INFO", "n7")], r,
           watch.brief())
    bad = s.hale("monitor", "--ib-file", s.write("bad", "adapters 1\nprt 0\nend\n"), "--to", "-")
    expect("bad: a line that begins with 'prt'" in bad.err and "NUM_ADAPTERS:1" in bad.out, bad)
    none = s.hale("monitor", "--load-file", s.path("none"), "--to", "-", "--once")
    expect("MONITOR_LOST" in none.out and "No such file" in none.out, none)
    for text, why in (("", "has no reading"), ("# a comment\n", "has no reading"), (None, "Is a directory")):
        path = s.dir if text is None else s.write("nothing", text)
        r = s.hale("monitor", "--load-file", path, "--to", "-", "--once")
        expect("MONITOR_LOST" in r.out and why in r.out, r)
    r = s.hale("monitor", "--ipmi-file", "n7=" + s.write("last", "1,CPU Temp,Temperature,99,C,Upper Critical"),
               "--to", "-", "--once")
    expect("FTB_IPMI_OVERTEMP" in r.out, "the last line has no newline", r)


@test
def a_reader_that_dies_is_started_again(s):
    watch = Watch(s, "--load", "--every", "50ms", "--pressure", "cpu=100", "--node", "n1")
    reader = watch.job.until(lambda: children(watch.job.pid), "the reader runs")[0]
    os.kill(reader, signal.SIGKILL)
    watch.until(("MONITOR_LOST", "WARNING",
                 "NODE:n1::MONITOR:load::REASON:its reader has ended"),
                ("MONITOR_BACK", "INFO", "NODE:n1::MONITOR:load"))
    second = children(watch.job.pid)
    expect(len(second) == 1 and second[0] != reader, s.process_table())
    watch.job.kill(signal.SIGKILL)  # readers do not outlive their owner: the harness looks
    watch.job.wait()


@test
def what_a_terminal_sends_to_all_is_for_the_owner(s):
    s.write("sensors", "2,FAN1,Fan,3600.00,RPM,OK\n")
    watch = Watch(s, "--ipmi-file", "n1=" + s.path("sensors"), "--every", "50ms")
    reader = watch.job.until(lambda: [p for p in children(watch.job.pid) if comm_of(p) == "hale-monitor"],
                             "the reader runs")[0]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(reader, number)
    with open(s.path("sensors"), "a") as f:
        f.write("2,FAN1,Fan,0.00,RPM,At or Below (<=) Lower Critical Threshold\n")
    watch.until(("FTB_IPMI_FANFAIL", "ERROR", "n1"))
    watch.end()


@test
def events_go_through_the_backplane(s):
    os.mkdir(s.path("ftb"), 0o700)
    env = {"HALE_FTB": s.path("ftb", "ftb")}
    broker = s.start(HALE, "backplane", env=env)
    broker.until(lambda: s.run(HALE, "backplane", "status", env=env).status == 0, "broker")
    clients = lambda: json.loads(s.run(HALE, "backplane", "status", "--json", env=env).out)["clients"]
    before = clients()
    seen = s.start(HALE, "events", "--follow", "--json", "--count", "2", "--filter",
                   "namespace=FTB.FTB_IPMI", env=env)
    broker.until(lambda: clients() > before, "the subscriber is there")
    file = s.write("sensors", "2,FAN1,Fan,0,RPM,'Lower Critical'\nwait 50ms\n"
                   "1,P1,Temperature,95,C,'Upper Critical'\nwait 50ms\nend\n")
    r = s.hale("monitor", "--ipmi-file", f"n1={file}", env=env)
    expect(r.status == 0, r)
    r = seen.wait()
    events = [json.loads(x) for x in r.out.splitlines()]
    expect([(e["namespace"], e["name"], e["severity"], e["payload"]) for e in events] ==
           [("FTB.FTB_IPMI", "FTB_IPMI_FANFAIL", "ERROR", "n1"),
            ("FTB.FTB_IPMI", "FTB_IPMI_OVERTEMP", "ERROR", "n1")], r)
    broker.kill(signal.SIGTERM)
    broker.wait()
    r = s.hale("monitor", "--load", "--once", env=env)
    expect(r.status == 1 and "hale backplane" in r.err and "--to FILE" in r.err, r)


@test
def wrong_options_are_refused_with_a_sentence(s):
    for argv, says in ((["--to", "-"], "nothing to watch"), (["--ibb"], "--ibb"),
                       (["--ib", "--every", "soon"], "not 'soon'"),
                       (["--load", "--pid", "x"], "not 'x'"), (["--ib", "extra"], "'extra'"),
                       (["--load", "--pressure", "net=5"], "not 'net=5'"),
                       (["--ipmi", "a=b", "--ipmi-overtemp", "hot"], "not 'hot'"),
                       (["--load", "--every"], "--every needs a value"),
                       (["--load", "--disk", s.path("none")], "a folder that is there"),
                       (["--load", "--pid", "4194304"], "there is no process 4194304"),
                       (["--ipmi-file", "n1="], "needs what is to be watched")):
        r = s.hale("monitor", *argv)
        expect(r.status == EXIT_USAGE and says in r.err and "hale help monitor" in r.err, r)
    r = s.hale("monitor", "--load", "--to", s.path("no", "such", "file"))
    expect(r.status == 1 and "can't write events" in r.err, r)


main()
