#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hosts as administrators set them up, and what happens to jobs on the first day there: bridges that have the
same address on every host, networks that lead nowhere, firewalls that drop, refuse or reset, links that lose
what is large without a word, ranges of ports, few descriptors."""

from attach_parts import host_job, jobs, last_step
from hosts_parts import *
from levels_parts import copied
from namespaces import PORT, Hosts
from net_nodes import need_tun

# A switch between TAP devices, one in each namespace, with a firewall: the file "rule" says what becomes of TCP
# over IPv4 but for launchers' (which stands for ssh).
#   drop          nothing gets through
#   reject        who connects is refused
#   reset         what has flowed before the rule came is reset, at both ends
#   mtu N         packets of more than N bytes are lost
#   ports A B     whoever connects to a port below A or above B is not heard
WIRE = r'''
import ctypes, fcntl, os, select, struct, sys

port, names = int(sys.argv[1]), sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
taps, known = [], set()
for name in names:
    ns = os.open(f"/run/netns/{name}", os.O_RDONLY)
    assert libc.setns(ns, 0x40000000) == 0, os.strerror(ctypes.get_errno())
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, 0x400454ca, struct.pack("16sH22x", b"eth0", 0x0002 | 0x1000))  # TAP, NO_PI
    os.set_blocking(tap, False)
    taps.append(tap)
print("wired", flush=True)

def rule():
    try:
        with open("rule") as f:
            return f.read().split() or ["none"]
    except FileNotFoundError:
        return ["none"]

def total(b):
    s = sum(struct.unpack(f"!{len(b) // 2}H", b))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff

def reset(src, dst, sport, dport, seq, ack, macs):
    """As if src said it to dst; macs: to, from."""
    tcp = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, 5 << 4, 0x14, 0, 0, 0)
    pseudo = src + dst + struct.pack("!BBH", 0, 6, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", total(pseudo + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, src, dst)
    ip = ip[:10] + struct.pack("!H", total(ip)) + ip[12:]
    return macs[0] + macs[1] + b"\x08\x00" + ip + tcp

def look(f, what):
    """What is to be passed on of it; and what goes back to its sender."""
    if f[12:14] != b"\x08\x00" or f[23] != 6:
        return f, None
    at = 14 + (f[14] & 15) * 4
    src, dst = f[26:30], f[30:34]
    sport, dport, seq, ack, off, flags = struct.unpack("!HHIIBB", f[at:at + 14])
    size = struct.unpack("!H", f[16:18])[0] - (at - 14) - (off >> 4) * 4
    if port in (sport, dport):
        return f, None
    if what[0] == "mtu":
        return (f if len(f) - 14 <= int(what[1]) else None), None
    if what[0] == "drop":
        return None, None
    if what[0] == "ports":
        first = flags & 0x12 == 0x02
        return (None if first and not int(what[1]) <= dport <= int(what[2]) else f), None
    if what[0] == "reject" and flags & 0x12 == 0x02:
        return None, reset(dst, src, dport, sport, 0, seq + 1 & 0xffffffff, (f[6:12], f[0:6]))
    flow = tuple(sorted(((src, sport), (dst, dport))))
    if what[0] != "reset":
        known.add(flow)
    elif size > 0 and flow in known:
        known.remove(flow)
        return (reset(src, dst, sport, dport, seq, ack, (f[0:6], f[6:12])),
                reset(dst, src, dport, sport, ack, seq + size & 0xffffffff, (f[6:12], f[0:6])))
    return f, None

while True:
    for tap in select.select(taps, [], [])[0]:
        what = rule()
        for _ in range(64):
            try:
                frame = os.read(tap, 65536)
            except OSError:
                break
            on, back = look(frame, what)
            for to, bytes_ in [(t, on) for t in taps if t != tap] + [(tap, back)]:
                try:
                    if bytes_:
                        os.write(to, bytes_)
                except OSError:  # full, or not up yet
                    pass
'''


class Walled(Hosts):
    def wire(self):
        need_tun()
        self.ip("-n", self.hub, "link", "set", "lo", "up")
        names = [f"{self.prefix}{k}" for k in range(self.count)] + [self.hub]
        self.switch = self.s.start(PYTHON, self.s.write("wall.py", WIRE), PORT, *names)
        self.switch.until_output("wired")
        self.add_address(self.hub, self.address(99), "eth0")
        self.ip("-n", self.hub, "link", "set", "eth0", "up")

    def close(self):
        super().close()
        self.switch.kill()
        self.switch.wait()

    def rule(self, *words):
        self.s.write("rule.new", " ".join(words))
        os.rename(self.s.path("rule.new"), self.s.path("rule"))


class Bridged(Hosts):
    """Machines with Docker and libvirt, and with a network that leads nowhere; all of them were there before
    the one that connects the hosts."""

    def wire(self):
        for k in range(self.count):
            ns = f"{self.prefix}{k}"
            for device, address in (("docker0", "172.17.0.1"), ("br-0123456789a", "172.18.0.1"),
                                    ("virbr0", "192.168.122.1")):
                self.ip("-n", ns, "link", "add", "name", device, "type", "bridge")
                self.pair(ns, device[-4:] + "p")
                self.ip("-n", ns, "link", "set", device[-4:] + "px", "master", device)
                self.add_address(ns, address, device)
                self.ip("-n", ns, "link", "set", device, "up")
            self.pair(ns, "ib0")
            self.add_address(ns, f"10.{90 + k}.0.1", "ib0")
        super().wire()

    def pair(self, ns, name):
        """An interface that is up and whose cable leads to this same host."""
        self.ip("-n", ns, "link", "add", name, "type", "veth", "peer", "name", name + "x")
        for end in (name, name + "x"):
            self.ip("-n", ns, "link", "set", end, "up")


def job_over(s, hosts, *options, ranks=3, env=None):
    job = host_job_of(s, hosts, ranks, *options, env=env)
    job.name = re.search(r"steps\.\d+", " ".join(jobs(s, hosts.hale)))[0]
    return job


def host_job_of(s, hosts, ranks, *options, env=None):
    exe = s.path("steps")
    if not os.path.exists(exe):
        s.compile("steps")
    job = hosts.hale_start(ranks, exe, 0, 20, options=["--report", "report.json", *options],
                           env={"HALE_NET_DEVICES": "", **(env or {})})
    job.until_output("rank 0 step 5 ")
    return job


def goes_on(job):
    job.until_output(f"rank 0 step {last_step(job) + 5} ")


def end(s, job, ranks=3):
    s.write("stop", "")
    r = job.wait()
    os.unlink(s.path("stop"))
    expect(r.status == 0 and len(re.findall("^done ", r.out, re.M)) == 1, r)
    for rank in range(ranks):
        mine = [int(x) for x in re.findall(rf"^rank {rank} step (\d+) [0-9a-f]{{16}}$", r.out, re.M)]
        expect(mine == list(range(len(mine))), f"rank {rank}: lines are lost, or came twice", mine)
    return r


@test
def bridges_that_are_the_same_on_all_hosts_are_passed_by(s):
    """Nobody has to name an interface: messages, copies and moves all find the one that leads there."""
    with Bridged(s, 4, disks="200m") as hosts:
        job = job_over(s, hosts, "--spares", "1", "--ckpt-every", "1s", "--ckpt-local", hosts.disk)
        job.until(lambda: copied(s), "a checkpoint is copied")
        for k in (1, 3):
            r = hosts.hale("migrate", job.name, "--from", hosts.address(k))
            expect(r.status == 0, r, job.err())
            goes_on(job)
        r = end(s, job)
        expect("copy" not in r.err and "cut" not in r.err, r)
        report = s.report()
        moves = report["migrations"]
        expect(len(moves) == 2 and all(m["relayed_bytes"] == 0 for m in moves), moves)
        expect(report["restarts"] == 0, report)


@test
def a_firewall_is_told_of_and_the_job_goes_on_when_it_opens(s):
    with Walled(s, 2) as hosts:
        for rule in ("drop", "reject"):
            hosts.rule(rule)
            exe = s.path("steps")
            if not os.path.exists(exe):
                s.compile("steps")
            job = hosts.hale_start(2, exe, 0, 20, options=["--report", "report.json"])
            job.until_says("rank . on node .* and rank . on node .* still can't reach each other; .*"
                           "HALE_NET_PORTS=40000-40999 uses ports that it lets pass")
            hosts.rule("none")
            job.until_output("rank 0 step 5 ")
            end(s, job, ranks=2)
            expect(s.report()["restarts"] == 0, s.report())


@test
def ports_that_a_firewall_lets_pass_are_enough(s):
    """Messages, copies and moves keep to them, also on hosts whose own environment says nothing."""
    with Walled(s, 4, disks="200m") as hosts:
        hosts.rule("ports", "41000", "41015")
        job = job_over(s, hosts, "--spares", "1", "--ckpt-every", "1s", "--ckpt-local", hosts.disk,
                       env={"HALE_NET_PORTS": "41000-41015"})
        job.until(lambda: copied(s), "a checkpoint is copied")
        r = hosts.hale("migrate", job.name, "--from", hosts.address(1))
        expect(r.status == 0, r, job.err())
        goes_on(job)
        r = end(s, job)
        report = s.report()
        expect(report["migrations"][0]["relayed_bytes"] == 0 and report["restarts"] == 0, report)


@test
def connections_that_are_reset_are_made_again(s):
    with Walled(s, 4, disks="200m") as hosts:
        job = job_over(s, hosts, "--spares", "1", "--ckpt-every", "1s", "--ckpt-local", hosts.disk)
        for _ in range(4):
            move = s.start("ip", "netns", "exec", hosts.hub, HALE, "migrate", job.name, "--from",
                           hosts.address(1))
            while move.running():
                hosts.rule("none")
                time.sleep(0.1)
                hosts.rule("reset")
                time.sleep(0.1)
            r = move.wait()
            expect(r.status == 0 or "stay there" in r.err or "there is no rank on" in r.err, r)
            goes_on(job)
        before = max([0, *copied(s)])
        job.until(lambda: max([0, *copied(s)]) > before, "a checkpoint is copied")
        end(s, job)
        expect(s.report()["restarts"] == 0, s.report())


@test
def packets_that_are_lost_for_their_size_become_smaller(s):
    """As where a switch takes less than its hosts' MTU. Nothing of theirs ever got through: not of ranks, nor of images,
    nor of ranks that move."""
    with Walled(s, 4, disks="200m") as hosts:
        hosts.rule("mtu", "1400")
        job = job_over(s, hosts, "--spares", "1", "--ckpt-every", "1s", "--ckpt-local", hosts.disk, ranks=6,
                       env={"HALE_NET_TIMEOUT": "2"})
        expect("in packets of 1200 bytes" in job.err(), job.err())
        job.until(lambda: copied(s), "a checkpoint is copied")
        r = hosts.hale("migrate", job.name, "--from", hosts.address(1))
        expect(r.status == 0, r)
        goes_on(job)
        end(s, job, 6)
        report = s.report()
        expect(report["restarts"] == 0 and report["migrations"][0]["relayed_bytes"] == 0, report)


@test
def that_packets_are_lost_for_their_size_is_said_once_a_host(s):
    exe = s.compile("alltoalls")
    with Walled(s, 2) as hosts:
        hosts.rule("mtu", "1400")
        r = hosts.hale_start(8, exe, 1, env={"HALE_NET_TIMEOUT": "2"}).wait()
        expect(r.status == 0 and r.out == "0 wrong\n", r)
        said = [int(x) // 4 for x in re.findall(r"rank (\d+): .* in packets of 1200 bytes", r.err)]
        expect(said and len(said) == len(set(said)), r)


@test
def what_cannot_be_meant_is_refused_at_once(s):
    exe = s.compile("misuse")
    for name, value in (("HALE_NET_PORTS", "40000"), ("HALE_NET_DEVICES", "^docker0"), ("HALE_NET_PORTS", "")):
        r = s.hale_run(1, "true", options=["--no-mpi"], env={name: value})
        expect(r.status == 0 and not said(r), r)
    for name, value in (("HALE_NET_PORTS", "22"), ("HALE_NET_PORTS", "5-4"), ("HALE_NET_DEVICES", "10.0.0.0/40"),
                        ("HALE_NET_DEVICES", "eth0,,eth1")):
        for options, env in (([], {name: value}), (["-x", f"{name}={value}"], {})):
            r = s.hale_run(2, exe, "spin", options=options, env=env)
            expect(r.status == 64 and f"{name}={value}" in r.err and r.err.count("\n") == 1, r)


main()
