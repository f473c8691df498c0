# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces as nodes for minirun, which needs no agents: for scenarios of the network channel
alone. Cables can be cut, and replaced by bad ones."""

from lib import *
from namespaces import Namespaces

MINIRUN = os.path.join(os.path.dirname(HALE), "tests", "minirun")
ENV = {"LD_LIBRARY_PATH": os.path.dirname(HALE)}

# A switch between TAP devices, one in each node, that drops, delays, reorders and doubles frames, and
# changes what they carry so that no checksum shows it.
BAD_WIRE = r'''
import ctypes, fcntl, heapq, os, random, select, struct, sys, time

prefix, nodes, loss, delay, change, seed = (sys.argv[1], int(sys.argv[2]), float(sys.argv[3]),
                                            float(sys.argv[4]), float(sys.argv[5]),
                                            int(sys.argv[6]))
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

def changed(f):
    """Two words of the payload in each other's place: their sum is the same."""
    if f[12:14] != b"\x08\x00" or f[23] != 6:
        return f
    ip = 14 + (f[14] & 15) * 4
    at = ip + (f[ip + 12] >> 4) * 4
    words = (14 + struct.unpack("!H", f[16:18])[0] - at) // 2
    if words < 20:
        return f
    a, b = at + 2 * draw.randrange(words), at + 2 * draw.randrange(words)
    f = bytearray(f)
    f[a:a + 2], f[b:b + 2] = f[b:b + 2], f[a:a + 2]
    return bytes(f)

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
            if draw.random() < change:
                frame = changed(frame)
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


def need_tun():
    if not os.path.exists("/dev/net/tun"):
        skip("no /dev/net/tun")


class Nodes(Namespaces):
    """bad: (loss, delay in seconds, share of frames that are changed), on a bad wire in place of the
    bridge."""

    def __init__(self, s, count, bad=None):
        self.bad, self.switch = bad, None
        super().__init__(s, count, "hn", "10.77.0")

    def wire(self):
        if not self.bad:
            super().wire()
            return
        self.switch = self.s.start(PYTHON, self.s.write("wire.py", BAD_WIRE), self.prefix,
                                   self.count, *self.bad, SEED)
        self.switch.until_output("wired")

    def close(self):
        if self.switch:
            self.switch.kill()
            self.switch.wait()
        super().close()

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
