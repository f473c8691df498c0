# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces, for scenarios: an address and a cable each, all on one bridge, which stands in a
namespace of its own. As hosts of a job:

    with Hosts(s, 3) as hosts:
        hosts.run("hale", "run", "--hosts", hosts.file(), *hosts.launcher(), …)

The head runs in a namespace of its own on that bridge. Agents are started through the network, by a
little server in each namespace that does what sshd does: so a cut cable cuts the session, too.
"""

import functools

from lib import *

PORT = 7022

# In each namespace: for each connection, the command that comes first (a length, then the text) gets
# it as its stdin and stdout.
SERVER = r'''
import os, signal, socket, struct, sys

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
s = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=16,
                         family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("listening", flush=True)
while True:
    c, _ = s.accept()
    n = struct.unpack("!I", c.recv(4, socket.MSG_WAITALL))[0]
    command = c.recv(n, socket.MSG_WAITALL).decode()
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        s.close()
        os.dup2(c.fileno(), 0)
        os.dup2(c.fileno(), 1)
        c.close()
        os.execv("/bin/sh", ["sh", "-c", command])
    c.close()
'''

# On the head's side: what ssh does.
CLIENT = r'''
import os, select, socket, struct, sys

s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
s.settimeout(None)
command = sys.argv[3].encode()
s.sendall(struct.pack("!I", len(command)) + command)
while True:
    for fd in select.select([0, s], [], [])[0]:
        b = os.read(0, 65536) if fd == 0 else s.recv(65536)
        if not b:
            sys.exit(0)
        if fd == 0:
            s.sendall(b)
        else:
            while b:
                b = b[os.write(1, b):]
'''


class Namespaces:
    """PREFIX0, PREFIX1, … with addresses NETWORK.1, NETWORK.2, … and cables to the bridge in PREFIXhub;
    removed at the end. Who connects them otherwise overrides wire()."""

    def __init__(self, s, count, prefix, network):
        if os.getuid() != 0 or not shutil.which("ip"):
            skip("network namespaces need root and iproute2")
        self.s, self.count, self.made = s, count, []
        self.prefix, self.network = f"{prefix}{os.getpid()}n", network
        try:
            self.make()
        except BaseException:  # before `with` could see to it
            self.close()
            raise

    def make(self):
        self.hub = self.add(f"{self.prefix}hub")
        self.ip("-n", self.hub, "link", "set", "lo", "up")
        for k in range(self.count):
            self.ip("-n", self.add(f"{self.prefix}{k}"), "link", "set", "lo", "up")
        self.wire()
        for k in range(self.count):
            self.add_address(f"{self.prefix}{k}", self.address(k), "eth0")
            self.ip("-n", f"{self.prefix}{k}", "link", "set", "eth0", "up")

    def wire(self):
        self.ip("-n", self.hub, "link", "add", "name", "bridge0", "type", "bridge")
        self.add_address(self.hub, self.address(99), "bridge0")
        self.ip("-n", self.hub, "link", "set", "bridge0", "up")
        for k in range(self.count):
            self.ip("-n", f"{self.prefix}{k}", "link", "add", "eth0", "type", "veth", "peer", "name",
                    f"p{k}", "netns", self.hub)
            self.ip("-n", self.hub, "link", "set", f"p{k}", "master", "bridge0")
            self.ip("-n", self.hub, "link", "set", f"p{k}", "up")

    def address(self, k):
        return f"{self.network}.{k + 1}"

    def add_address(self, namespace, address, device):
        v6 = ":" in address  # there at once: nobody else has it
        self.ip("-n", namespace, "addr", "add", address + ("/64" if v6 else "/24"), "dev", device,
                *(["nodad"] if v6 else []))

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
        self.close()

    def close(self):
        for name in self.made:
            self.s.run("ip", "netns", "del", name)

    def cut(self, k):
        self.ip("-n", self.hub, "link", "set", f"p{k}", "down")

    def heal(self, k):
        self.ip("-n", self.hub, "link", "set", f"p{k}", "up")

    def apart(self, *ks, on=True):
        """These reach each other, and nobody else: they get a bridge of their own. on=False: as before."""
        if on:
            self.ip("-n", self.hub, "link", "add", "name", "bridge1", "type", "bridge")
            self.ip("-n", self.hub, "link", "set", "bridge1", "up")
        for k in ks:
            self.ip("-n", self.hub, "link", "set", f"p{k}", "master", "bridge1" if on else "bridge0")
        if not on:
            self.ip("-n", self.hub, "link", "del", "bridge1")

    def part(self, *ks, on=True):
        """These reach all but each other; on=False: all again."""
        for k in ks:
            self.ip("-n", self.hub, "link", "set", "dev", f"p{k}", "type", "bridge_slave", "isolated",
                    "on" if on else "off")


# Monotonic clocks count from the start of a machine: days that the hosts have run for longer than this one.
UPTIMES = [400, 3, 40, 0, 1000]


@functools.cache
def uptime(k):
    days = str(UPTIMES[k % len(UPTIMES)] * 86400)
    argv = ["unshare", "--time", "--monotonic", days, "--boottime", days]
    known = subprocess.run([*argv, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    return argv if known else []


# A machine of its own as far as names and disks go: what is mounted there is gone with its processes.
MACHINE = 'hostname "$1" && mount -t tmpfs -o size="$2" tmpfs "$3" && shift 3 && exec "$@"'


class Hosts(Namespaces):
    """With a server in each that starts agents. disks: size of a disk that each host has for itself, at
    self.disk on all of them."""

    def __init__(self, s, count, disks=None):
        self.servers, self.disks, self.disk = [], disks, s.path("disk")
        super().__init__(s, count, "hh", "10.78.0")

    def make(self):
        super().make()
        self.client = self.s.write("client.py", CLIENT)
        server = self.s.write("server.py", SERVER)
        os.makedirs(self.disk, exist_ok=True)
        for k in range(self.count):
            machine = ["unshare", "--uts", "--mount", "sh", "-c", MACHINE, "sh", f"host{k}",
                       self.disks, self.disk] if self.disks else []
            job = self.s.start("ip", "netns", "exec", f"{self.prefix}{k}", *uptime(k), *machine,
                               PYTHON, server,
                               self.address(k), PORT)
            self.servers.append(job)
            job.until_output("listening")

    def close(self):
        for job in self.servers:
            job.kill()
        super().close()

    def lose(self, k):
        """It loses its current: all processes, and with the last of them its disk."""
        self.cut(k)
        for pid in [self.servers[k].pid, *children(self.servers[k].pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def file(self, slots=None):
        lines = [f"{self.address(k)}" + (f" slots={slots}" if slots else "")
                 for k in range(self.count)]
        return self.s.write("hosts.txt", "# the nodes\n" + "\n".join(lines) + "\n")

    def options(self, *more, timeout="2s", slots=None):
        return ["--hosts", self.file(slots), "--node-timeout", timeout, "--launcher",
                f"{PYTHON} {self.client} %h {PORT} \"%c\"", *more]

    def hale_start(self, ranks, *argv, options=(), env=None):
        return self.s.start("ip", "netns", "exec", self.hub, HALE, "run", "-n", ranks,
                            *self.options(*options), "--", *argv,
                            env=dict({"HALE_NET_DEVICES": "eth0"}, **(env or {})))

    def hale(self, *argv):
        return self.s.run("ip", "netns", "exec", self.hub, HALE, *argv)


class Hosts6(Hosts):
    """They have no address of IPv4."""

    def __init__(self, s, count, disks=None):
        if not os.path.exists("/proc/net/if_inet6"):
            skip("no IPv6 here")
        super().__init__(s, count, disks)

    def address(self, k):
        return f"fd00:78:0:0:0:0:0:{k + 1:x}"  # as nodes are called


# Reads along at the first host's cable, until it is told to go: how often it has seen these bytes.
READER = r'''
import socket, sys

raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
raw.bind(("p0", 0))
print("listening", flush=True)
wanted, found, total = sys.argv[1].encode(), 0, 0
while True:
    f = raw.recv(1 << 17)
    if b"the reader may go" in f:
        break
    found += f.count(wanted)
    total += len(f)
print(found, total, flush=True)
'''


class Reader:
    def __init__(self, s, hosts, wanted):
        self.hosts = hosts
        self.job = s.start("ip", "netns", "exec", hosts.hub, PYTHON, s.write("reader.py", READER),
                           wanted)
        self.job.until_output("listening")

    def seen(self):
        """How often what was wanted has come by, and bytes in all."""
        to = self.hosts.address(1)
        goodbye = (f"import socket; s = socket.socket(socket.AF_INET{'6' if ':' in to else ''}, "
                   f"socket.SOCK_DGRAM); s.sendto(b'the reader may go', ('{to}', 9))")
        self.hosts.ip("netns", "exec", self.hosts.prefix + "0", PYTHON, "-c", goodbye)
        found, total = self.job.wait().out.split()[1:]
        return int(found), int(total)
