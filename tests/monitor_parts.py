# SPDX-License-Identifier: BSD-3-Clause
"""Real parts for monitors: a BMC and an InfiniBand fabric, simulated by the programs that Debian has
for that. Used by monitor_test.py and bench/monitor/run."""

import socket

from lib import *

UMAD2SIM = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"



def end_by_id(s, job):
    job.kill(signal.SIGKILL)
    job.p.wait()


def sdr(record, sensor, entity, kind, unit, factor, low_nc, low, high_nc, high, name):
    b = [record, 0, 0x51, 1, 0, 0x20, 0, sensor, entity, 1, 0x7f, 0x68, kind, 1, 0x85, 0x32, 0x85,
         0x32, 0x1b, 0x1b, 0, unit, 0, 0, factor & 255, (factor >> 8) << 6, 0, 0, 0, 0, 0, 0, 0, 0, 0,
         0xff, 0, 0xff, high, high_nc, 0, low, low_nc, 2, 2, 0, 0, 0, 0xc0 | len(name)]
    b += [ord(c) for c in name]
    b[4] = len(b) - 5
    return "main_sdr_add 0x20 " + " ".join(f"0x{x:02x}" for x in b)


def sensor(number, kind, file, low_nc, low, high_nc, high):
    states = "000001010000101 " * 4
    return (f'sensor_add 0x20 0 {number} 0x{kind:02x} 0x01 poll 100 file "{file}"\n'
            f"sensor_set_threshold 0x20 0 {number} settable 011011 0 {high} {high_nc} 0 {low} {low_nc}\n"
            f"sensor_set_hysteresis 0x20 0 {number} settable 2 2\n"
            f"sensor_set_event_support 0x20 0 {number} enable scanning per-state {states}")


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as k:
        k.bind(("127.0.0.1", 0))
        return k.getsockname()[1]


class Bmc:
    """A BMC with a temperature and a fan, which read what stands in two files."""

    def __init__(self, s, name):
        have("ipmi_sim")
        self.s, self.name = s, name
        os.makedirs(s.path(name, "state"))
        self.set(temperature=40, fan=60)
        self.port = free_port(socket.SOCK_DGRAM)
        lan = s.write(f"{name}.lan", f"""name "{name}"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {self.port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  console 127.0.0.1 {free_port(socket.SOCK_STREAM)}
  user 2 true "watcher" "secret" user 10 none md2 md5 straight
""")
        emu = s.write(f"{name}.emu", "\n".join([
            "mc_setbmc 0x20", "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02",
            "sel_enable 0x20 1000 0x0a",
            sensor(1, 1, s.path(name, "temperature"), 5, 2, 75, 85),
            sdr(1, 1, 3, 1, 1, 1, 5, 2, 75, 85, "CPU Temp"),
            sensor(2, 4, s.path(name, "fan"), 20, 10, 250, 254),
            sdr(2, 2, 0x1d, 4, 18, 60, 20, 10, 250, 254, "FAN1"), "mc_enable 0x20"]) + "\n")
        self.job = s.start("ipmi_sim", "-n", "-c", lan, "-f", emu, "-s", s.path(name, "state"))

    def set(self, **values):
        for what, value in values.items():
            path = self.s.path(self.name, what)
            with open(path + ".new", "w") as f:
                f.write(f"{value}\n")
            os.rename(path + ".new", path)

    def options(self):
        return ["--ipmi", f"{self.name}=127.0.0.1:{self.port}", "--ipmi-user", "watcher",
                "--ipmi-password-file", self.s.write("password", "secret\n")]

    def end(self):
        end_by_id(self.s, self.job)


class Fabric:
    """A switch with two hosts, in ibsim; its console is our pipe."""

    def __init__(self, s):
        have("ibsim")
        if not os.path.exists(UMAD2SIM):
            skip("libumad2sim is not installed")
        self.s = s
        net = s.write("net", 'Switch 8 "Switch1"\n[1] "Hca1"[1]\n[2] "Hca2"[1]\n\n'
                      'Hca 1 "Hca1"\n[1] "Switch1"[1]\n\nHca 1 "Hca2"\n[1] "Switch1"[2]\n')
        name = f"hale-test-{os.getpid()}"
        self.env = {"IBSIM_SOCKNAME": name}
        self.host = dict(self.env, SIM_HOST="Hca1", LD_PRELOAD=UMAD2SIM)
        inside, outside = os.pipe()
        self.job = s.start("ibsim", "-s", net, env=self.env, stdin=inside)
        os.close(inside)
        self.console = os.fdopen(outside, "w")
        self.job.until(lambda: "Network simulator ready" in self.job.out() + self.job.err()
                       or "sim>" in self.job.out() + self.job.err(), "ibsim is ready")

    def say(self, line):
        self.console.write(line + "\n")
        self.console.flush()

    def sweep(self):
        """The subnet manager brings up what has a cable."""
        have("opensm")
        r = self.s.run("opensm", "-o", "-f", self.s.path("opensm.log"), env=self.host, limit=60)
        expect(r.status == 0, r)

    def end(self):
        self.console.close()
        end_by_id(self.s, self.job)
