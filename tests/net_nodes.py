# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces as nodes for minirun, which needs no agents: for scenarios of the network channel
alone. Cables can be cut, and replaced by bad ones."""

from lib import *

MINIRUN = os.path.join(os.path.dirname(HALE), "tests", "minirun")
ENV = {"LD_LIBRARY_PATH": os.path.dirname(HALE)}

# A switch between TAP devices, one in each node, that drops, delays, reorders and doubles frames.
BAD_WIRE = r'''
import ctypes, fcntl, heapq, os, random, select, struct, sys, time

prefix, nodes, loss, delay, seed = (sys.argv[1], int(sys.argv[2]), float(sys.argv[3]),
                                    float(sys.argv[4]), int(sys.argv[5]))
libc = ctypes.CDLL(None, use_errno=True)
draw = random.Random(seed)
taps = []
for k in range(nodes):
    ns = os.open(f"/run/netns/{prefix}{k}", os.O_RDONLY)
    assert libc.setns(ns, 0x40000000) == 0, os.strerror(ctypes.get_errno())
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, 0x400454ca, struct.pack("16sH22x", b"eth0", 0x0002 | 0x1000))  # TAP, NO_PI
    os.set_blocking(tap, False)
    taps.append(tap)
print("wired", flush=True)
queue, count, lost = [], 0, 0
while True:
    wait = max(0, queue[0][0] - time.monotonic()) if queue else None
    for tap in select.select(taps, [], [], wait)[0]:
        for _ in range(64):
            try:
                frame = os.read(tap, 65536)
            except OSError:
                break
            count += 1
            if draw.random() < loss:
                lost += 1
                continue
            for copy in range(2 if draw.random() < loss else 1):
                # now and then one that those behind it overtake
                late = delay * (3 if draw.random() < loss else 1)
                heapq.heappush(queue, (time.monotonic() + late, count, copy, tap, frame))
    while queue and queue[0][0] <= time.monotonic():
        _, _, _, source, frame = heapq.heappop(queue)
        for tap in taps:
            if tap != source:
                try:
                    os.write(tap, frame)
                except OSError:  # full, or not up yet
                    pass
'''


class Nodes:
    """Network namespaces PREFIX0, PREFIX1, … on one bridge in another one; bad: (loss, delay in
    seconds), on a bad wire instead."""

    def __init__(self, s, count, bad=None):
        if os.getuid() != 0 or not shutil.which("ip"):
            skip("network namespaces need root and iproute2")
        self.s, self.prefix, self.made = s, f"hn{os.getpid()}n", []
        self.count, self.wire = count, None
        hub = self.hub = self.add(f"hn{os.getpid()}hub")
        self.ip("-n", hub, "link", "add", "name", "bridge0", "type", "bridge")
        self.ip("-n", hub, "link", "set", "bridge0", "up")
        for k in range(count):
            node = self.add(f"{self.prefix}{k}")
            self.ip("-n", node, "link", "set", "lo", "up")
            if not bad:
                self.ip("-n", node, "link", "add", "eth0", "type", "veth", "peer", "name",
                        f"p{k}", "netns", hub)
                self.ip("-n", hub, "link", "set", f"p{k}", "master", "bridge0")
                self.ip("-n", hub, "link", "set", f"p{k}", "up")
        if bad:
            self.wire = s.start(PYTHON, s.write("wire.py", BAD_WIRE), self.prefix, count, *bad,
                                SEED)
            self.wire.until_output("wired")
        for k in range(count):
            node = f"{self.prefix}{k}"
            self.ip("-n", node, "addr", "add", f"10.77.0.{k + 1}/24", "dev", "eth0")
            self.ip("-n", node, "link", "set", "eth0", "up")

    def ip(self, *argv):
        r = self.s.run("ip", *argv)
        if r.status != 0 and not self.made:
            skip("no right to make network namespaces here")
        expect(r.status == 0, r)

    def add(self, name):
        self.ip("netns", "add", name)
        self.made.append(name)
        return name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.wire:
            self.wire.kill()
            self.wire.wait()
        for name in self.made:
            self.s.run("ip", "netns", "del", name)

    def cut(self, k):
        self.ip("-n", self.hub, "link", "set", f"p{k}", "down")

    def heal(self, k):
        self.ip("-n", self.hub, "link", "set", f"p{k}", "up")

    def run(self, ranks, nodes, *argv, env=None):
        return self.start(ranks, nodes, *argv, env=env).wait()

    def start(self, ranks, nodes, *argv, env=None):
        return self.s.start(MINIRUN, "-n", ranks, "--nodes", nodes, "--netns", self.prefix, *argv,
                            env=dict(ENV, HALE_NET_DEVICES="eth0", **(env or {})))

    def retransmitted(self, k):
        """Segments that node k has sent again."""
        r = self.s.run("ip", "netns", "exec", f"{self.prefix}{k}", "cat", "/proc/net/snmp")
        names, values = [line.split() for line in r.out.splitlines() if line.startswith("Tcp:")]
        return int(values[names.index("RetransSegs")])

    def listening(self, k):
        """Ports at which something listens on node k's address."""
        r = self.s.run("ip", "netns", "exec", f"{self.prefix}{k}", "cat", "/proc/net/tcp")
        rows = [line.split() for line in r.out.splitlines()[1:]]
        return [(row[1].split(":")[0], int(row[1].split(":")[1], 16)) for row in rows
                if row[3] == "0A"]
